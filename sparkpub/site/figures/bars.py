"""Means of a metric as bars from zero."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.site import sentences
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import cell_table, marks, rows, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import slug

ROW = 26


def offers(_campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory-bars`."""
    yield f"{slug(metric.name)}-bars", partial(figure, metric)


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The range of the means."""
    return selection.figure(
        key,
        Chart(draw, (selection.scope, metric)),
        {"cells": selection.rows_about("cells", metric)},
        title=f"{metric.label}: means",
        says=sentences.means(metric, selection.cells(metric)),
        **cell_table.details(selection, metric),
    )


def draw(scope: Scope, metric: Metric) -> dict[str, Any]:
    """Rows `cells`: the mean of each cell, with its 95 % confidence interval."""
    cells = marks.rows(scope, "cells", marks.about(metric))
    bar = cells.mark_bar(height=alt.RelativeBandSize(0.8)).encode(
        x=marks.x(metric, "mean", zero=True),
        y=marks.y(scope),
        color=marks.environment_colour(scope, None),
    )
    whisker = cells.mark_errorbar(ticks=True, color=theme.TEXT).encode(
        x=alt.X("lo:Q", title=theme.axis_title(metric.label, metric.unit)),
        x2=alt.X2("hi:Q"),
        y=marks.y(scope),
    )
    return theme.finish(
        alt.layer(bar, whisker).properties(height=marks.height(scope, ROW))
    )


KIND = Kind(of_metric=offers, tables={"cells": rows.cells})

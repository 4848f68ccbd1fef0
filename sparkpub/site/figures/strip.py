"""Every run of a metric as a point, in a row per cell, with the mean and its interval."""

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


def offers(_campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory`."""
    yield slug(metric.name), partial(figure, metric)


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The figure that leads: what differs, or else the range of the means."""
    differences = sentences.differences(metric, selection.comparisons(metric))
    return selection.figure(
        key,
        Chart(draw, (selection.scope, metric)),
        {name: selection.rows_about(name, metric) for name in ("runs", "cells")},
        title=f"{metric.label}: every run",
        says=differences or sentences.means(metric, selection.cells(metric)),
        **cell_table.details(selection, metric, runs="linked"),
    )


def draw(scope: Scope, metric: Metric) -> dict[str, Any]:
    """Rows `runs` and `cells`; from top to bottom of a row the runs are in order of iteration.

    The bar behind is the 95 % confidence interval of the mean, the tick the mean. Runs that are not in the figures
    are hollow.
    """
    points = marks.points(
        scope,
        marks.rows(scope, "runs", marks.has(metric.name)),
        title=None,
        x=marks.x(metric, metric.name, zero=False),
        y=marks.y(scope),
        yOffset=alt.YOffset("iteration:Q", scale=alt.Scale(zero=False)),
        tooltip=marks.run_tooltip(metric.label, metric.name),
    )
    cells = marks.rows(scope, "cells", marks.about(metric))
    interval = cells.mark_bar(height=10, opacity=0.22, color=theme.FAINT).encode(
        x=marks.x(metric, "lo", zero=False), x2=alt.X2("hi:Q"), y=marks.y(scope)
    )
    figures = [alt.Tooltip(f"{field}:Q") for field in ("mean", "lo", "hi", "n")]
    mean = cells.mark_tick(thickness=2.5, size=26, color=theme.TEXT).encode(
        x=marks.x(metric, "mean", zero=False),
        y=marks.y(scope),
        tooltip=[alt.Tooltip("cell:N"), *figures],
    )
    return theme.finish(
        alt.layer(interval, points, mean).properties(height=marks.height(scope))
    )


KIND = Kind(of_metric=offers, tables={"runs": rows.runs, "cells": rows.cells})

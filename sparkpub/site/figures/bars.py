"""Means of a metric as bars from zero, the best first."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.site import sentences
from sparkpub.site.figures import cell_table, marks, panels, rows, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import slug

BAR = 16
"""Height of a bar with its gap."""
LEAST = 24
"""Height of a row at least."""


def offers(_campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory-bars`."""
    yield f"{slug(metric.name)}-bars", partial(figure, metric)


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The best and the worst."""
    cells = selection.cells(metric)
    made = panels.charts(draw, selection, metric)
    return selection.figure(
        key,
        made.chart,
        {"cells": selection.rows_about("cells", metric)},
        title=f"{metric.label}: means",
        says=sentences.means(metric, cells),
        narrow=made.narrow,
        **cell_table.details(selection, metric, note=made.note),
    )


def draw(
    scope: Scope, metric: Metric, layout: Layout, narrow: bool = False
) -> dict[str, Any]:
    """Rows `cells`: the mean of each cell, with its 95 % confidence interval."""

    def layers(panel: Panel) -> "list[alt.Chart]":
        return _layers(panel, metric)

    step = max(LEAST, BAR * len(layout.environments))
    return panels.draw(
        scope, layout, layers, step, "cells", narrow=narrow, shared_x=True
    )


def _layers(panel: Panel, metric: Metric) -> "list[alt.Chart]":
    cells = panel.data("cells", marks.about(metric))
    side = {}
    if panel.legend:
        side["yOffset"] = alt.YOffset(
            "environment:N", sort=list(panel.layout.environments)
        )
    bar = cells.mark_bar(height=alt.RelativeBandSize(0.85)).encode(
        x=panel.x(metric, "mean", zero=True),
        y=panel.y,
        color=marks.environment_colour(panel.scope, panel.legend),
        tooltip=marks.tooltip("cell", "mean", "lo", "hi", "n"),
        **side,
    )
    whisker = cells.mark_rule(color=theme.TEXT, strokeWidth=1.5).encode(
        x=panel.x(metric, "lo", zero=True),
        x2=alt.X2("hi:Q"),
        y=panel.y,
        **side,
    )
    return [bar, whisker]


KIND = Kind(of_metric=offers, tables={"cells": rows.cells})

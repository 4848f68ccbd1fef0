"""Means of a metric as bars from zero, the best first."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.summary import CellStatistic
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
MOST_BEYOND = 1.3
"""An axis ends at the latest at so many times the largest mean."""
LEAST = 24
"""Height of a row at least."""


def offers(_campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory-bars`."""
    yield f"{slug(metric.name)}-bars", partial(figure, metric)


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The best and the worst."""
    cells = selection.cells(metric)
    made = panels.charts(draw, selection, metric, _top(cells))
    return selection.figure(
        key,
        made.chart,
        {"cells": selection.rows_about("cells", metric)},
        title=f"{metric.label}: means",
        says=sentences.means(metric, cells),
        narrow=made.narrow,
        **cell_table.details(selection, metric, note=made.note),
    )


def _top(cells: Sequence[CellStatistic]) -> float | None:
    """Where the axis ends: room for the intervals, of which those of two runs can be ten times the mean. None leaves
    it to the chart, where a mean lies below zero."""
    means = [cell.mean for cell in cells]
    if not means or min(means) < 0 or max(means) == 0:
        return None
    ends = [cell.ci95[1] for cell in cells if cell.ci95 is not None]
    return min(max(means + ends), MOST_BEYOND * max(means))


def draw(
    scope: Scope,
    metric: Metric,
    layout: Layout,
    top: float | None,
    narrow: bool = False,
) -> dict[str, Any]:
    """Rows `cells`: the mean of each cell, with its 95 % confidence interval. `top` is the end of the axis."""

    def layers(panel: Panel) -> "list[alt.Chart]":
        return _layers(panel, metric, top)

    step = max(LEAST, BAR * len(layout.environments))
    return panels.draw(
        scope, layout, layers, step, "cells", narrow=narrow, shared_x=True
    )


def _layers(panel: Panel, metric: Metric, top: float | None) -> "list[alt.Chart]":
    cells = panel.data("cells", marks.about(metric))
    side = {}
    if panel.legend:
        side["yOffset"] = alt.YOffset(
            "environment:N", sort=list(panel.layout.environments)
        )
    x = panel.x(metric, "mean", zero=True)
    if top is not None:
        x = x.scale(domain=[0, top], nice=True)
    bar = cells.mark_bar(height=alt.RelativeBandSize(0.85), clip=True).encode(
        x=x,
        y=panel.y,
        color=marks.environment_colour(panel.scope, panel.legend),
        tooltip=marks.tooltip("cell", "mean", "lo", "hi", "n"),
        **side,
    )
    whisker = cells.mark_rule(color=theme.TEXT, strokeWidth=1.5, clip=True).encode(
        x=alt.X("lo:Q"),
        x2=alt.X2("hi:Q"),
        y=panel.y,
        **side,
    )
    return [bar, whisker]


KIND = Kind(of_metric=offers, tables={"cells": rows.cells})

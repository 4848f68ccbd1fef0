"""Means of a metric as bars from zero, the best first."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences
from sparkpub.site.figures import cell_table, kind, marks, panels, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.selection import Selection

BAR = 16
"""Height of a bar with its gap."""
MOST_BEYOND = 1.3
"""An axis ends at the latest at so many times the largest mean."""
LEAST = 24
"""Height of a row at least."""


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The best and the worst."""
    cells = selection.cells(metric)
    chart, note = panels.chart(draw, selection, metric, _top(cells))
    return selection.figure(
        key,
        chart,
        selection.data(metric, "cells"),
        title=f"{metric.label}: means",
        says=sentences.means(selection.names, metric, cells),
        **cell_table.details(selection, metric, note=note),
    )


def _top(cells: Sequence[TableRow]) -> float | None:
    """Where the axis ends: room for the intervals, of which those of two runs can be ten times the mean. None leaves
    it to the chart, where a mean lies below zero."""
    means: list[float] = [cell.mean for cell in cells]
    if not means or min(means) < 0 or max(means) == 0:
        return None
    ends: list[float] = [cell.ci95[1] for cell in cells if cell.ci95 is not None]
    return min(max(means + ends), MOST_BEYOND * max(means))


def draw(
    metric: Metric, layout: Layout, top: float | None, narrow: bool = False
) -> dict[str, Any]:
    """Rows `cells`: the mean of each cell, with its 95 % confidence interval. `top` is the end of the axis."""
    layers = partial(_layers, metric, top)
    step = layout.row_height(BAR, least=LEAST)
    return panels.draw(layout, layers, step, "cells", narrow=narrow, shared_x=True)


def _layers(metric: Metric, top: float | None, panel: Panel) -> "list[alt.Chart]":
    cells = panel.data("cells", marks.about(metric))
    x = panel.x(metric, "mean", zero=True)
    if top is not None:
        x = x.scale(domain=[0, top], nice=True)
    bar = cells.mark_bar(height=alt.RelativeBandSize(0.85), clip=True).encode(
        x=x,
        y=panel.y,
        color=panel.environments.colour,
        tooltip=marks.tooltip("cell", "mean", "lo", "hi", "n"),
        **panel.beside,
    )
    whisker = cells.mark_rule(color=theme.TEXT, strokeWidth=1.5, clip=True).encode(
        x=alt.X("lo:Q"),
        x2=alt.X2("hi:Q"),
        y=panel.y,
        **panel.beside,
    )
    return [bar, whisker]


KIND = kind.of_each_metric("-bars", figure)
"""`peak-memory-bars`."""

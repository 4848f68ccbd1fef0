"""Every run of a metric as a point, in a row per cell, with the mean and its interval."""

from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.site import sentences
from sparkpub.site.figures import cell_table, kind, marks, panels, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.selection import Selection

STRIP = 22
"""Height of the strip of an environment within a row."""
LEAST = 34
"""Height of a row at least."""


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The figure that leads: what differs, or else the best and the worst."""
    cells = selection.cells(metric)
    differences = sentences.headline(
        selection.names, metric, selection.comparisons(metric)
    )
    chart, note = panels.chart(draw, selection, metric)
    return selection.figure(
        key,
        chart,
        selection.data(metric, "runs", "cells"),
        title=f"{metric.label}: every run",
        says=differences or sentences.means(selection.names, metric, cells),
        **cell_table.details(selection, metric, runs="linked", note=note),
    )


def draw(metric: Metric, layout: Layout, narrow: bool = False) -> dict[str, Any]:
    """Rows `runs` and `cells`; from top to bottom of a strip the runs are in order of iteration.

    The bar behind is the 95 % confidence interval of the mean, the tick the mean. Runs that are not in the figures
    are hollow.
    """
    layers = partial(_layers, metric)
    step = layout.row_height(STRIP, least=LEAST)
    return panels.draw(layout, layers, step, "cells", narrow=narrow, shared_x=False)


def _layers(metric: Metric, panel: Panel) -> "list[alt.Chart]":
    points = panel.runs(
        panel.data("runs", marks.has(metric.name)),
        x=panel.x(metric, metric.name, zero=False),
        tooltip=marks.run_tooltip(metric.label, metric.name),
    )
    cells = panel.strips(panel.data("cells", marks.about(metric)))
    interval = cells.mark_rule(strokeWidth=10, opacity=0.22, color=theme.FAINT).encode(
        x=panel.x(metric, "lo", zero=False),
        x2=alt.X2("hi:Q"),
        y=panel.y,
        yOffset=panel.offset,
    )
    figures = [alt.Tooltip(f"{name}:Q") for name in ("mean", "lo", "hi", "n")]
    mean = cells.mark_tick(thickness=2.5, size=18, color=theme.TEXT).encode(
        x=panel.x(metric, "mean", zero=False),
        y=panel.y,
        yOffset=panel.offset,
        tooltip=[alt.Tooltip("cell:N"), *figures],
    )
    return [interval, points, mean]


KIND = kind.of_each_metric("", figure)
"""`peak-memory`."""

"""Every run of a metric as a point, in a row per cell, with the mean and its interval."""

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

STRIP = 22
"""Height of the strip of an environment within a row."""
LEAST = 34
"""Height of a row at least."""


def offers(_campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory`."""
    yield slug(metric.name), partial(figure, metric)


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The figure that leads: what differs, or else the best and the worst."""
    cells = selection.cells(metric)
    differences = sentences.headline(metric, selection.comparisons(metric))
    made = panels.charts(draw, selection, metric)
    return selection.figure(
        key,
        made.chart,
        {name: selection.rows_about(name, metric) for name in ("runs", "cells")},
        title=f"{metric.label}: every run",
        says=differences or sentences.means(metric, cells),
        narrow=made.narrow,
        **cell_table.details(selection, metric, runs="linked", note=made.note),
    )


def draw(
    scope: Scope, metric: Metric, layout: Layout, narrow: bool = False
) -> dict[str, Any]:
    """Rows `runs` and `cells`; from top to bottom of a strip the runs are in order of iteration.

    The bar behind is the 95 % confidence interval of the mean, the tick the mean. Runs that are not in the figures
    are hollow.
    """

    def layers(panel: Panel) -> "list[alt.Chart]":
        return _layers(panel, metric)

    step = max(LEAST, STRIP * len(layout.environments))
    return panels.draw(
        scope, layout, layers, step, "cells", narrow=narrow, shared_x=False
    )


def _layers(panel: Panel, metric: Metric) -> "list[alt.Chart]":
    runs = panel.data("runs", marks.has(metric.name)).transform_joinaggregate(
        iterations="max(iteration)"
    )
    points = marks.points(
        panel.scope,
        panel.strips(runs, panels.BY_ITERATION),
        title=panel.legend,
        x=panel.x(metric, metric.name, zero=False),
        y=panel.y,
        yOffset=panel.offset,
        tooltip=marks.run_tooltip(metric.label, metric.name),
    )
    cells = panel.strips(panel.data("cells", marks.about(metric)))
    interval = cells.mark_rule(strokeWidth=10, opacity=0.22, color=theme.FAINT).encode(
        x=panel.x(metric, "lo", zero=False),
        x2=alt.X2("hi:Q"),
        y=panel.y,
        yOffset=panel.offset,
    )
    figures = [alt.Tooltip(f"{field}:Q") for field in ("mean", "lo", "hi", "n")]
    mean = cells.mark_tick(thickness=2.5, size=18, color=theme.TEXT).encode(
        x=panel.x(metric, "mean", zero=False),
        y=panel.y,
        yOffset=panel.offset,
        tooltip=[alt.Tooltip("cell:N"), *figures],
    )
    return [interval, points, mean]


KIND = Kind(of_metric=offers, tables={"runs": rows.runs, "cells": rows.cells})

"""A metric against requests at once."""

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


def offers(campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`output-throughput-sweep`, where the runs of the campaign handle different numbers of requests at once."""
    batches = {
        row["batch"] for row in campaign.rows("runs") if row["batch"] is not None
    }
    if len(batches) > 1:
        yield f"{slug(metric.name)}-sweep", partial(figure, metric)


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """What differs, or else the range of the means."""
    differences = sentences.differences(metric, selection.comparisons(metric))
    return selection.figure(
        key,
        Chart(draw, (selection.scope, metric)),
        {name: selection.rows_about(name, metric) for name in ("runs", "cells")},
        title=f"{metric.label} against requests at once",
        says=differences or sentences.means(metric, selection.cells(metric)),
        **cell_table.details(selection, metric),
    )


def draw(scope: Scope, metric: Metric) -> dict[str, Any]:
    """Rows `runs` as points, means of `cells` joined by lines, one line per model and environment."""
    title = theme.axis_title(metric.label, metric.unit)
    x = alt.X(
        "batch:Q",
        title="Requests at once (batch size or concurrency)",
        scale=alt.Scale(type="log", base=2),
        axis=alt.Axis(format="d"),
    )
    points = (
        marks.rows(scope, "runs", marks.has(metric.name), marks.has("batch"))
        .mark_point(size=40, filled=True, opacity=0.6)
        .encode(
            x=x,
            y=alt.Y(f"{metric.name}:Q", title=title),
            color=theme.colour("model", scope.models, "Model"),
            shape=theme.shape("environment", scope.environments, "Environment"),
            tooltip=marks.run_tooltip(
                metric.label,
                metric.name,
                [alt.Tooltip("batch:Q", title="requests at once")],
            ),
            href=alt.Href("href:N"),
        )
    )
    lines = (
        marks.rows(scope, "cells", marks.about(metric), marks.has("batch"))
        .mark_line()
        .encode(
            x=x,
            y=alt.Y("mean:Q", title=title),
            color=theme.colour("model", scope.models, "Model"),
            strokeDash=theme.dash("environment", scope.environments),
            detail=alt.Detail("environment:N"),
        )
    )
    return theme.finish(alt.layer(lines, points).properties(height=300))


KIND = Kind(of_metric=offers, tables={"runs": rows.runs, "cells": rows.cells})

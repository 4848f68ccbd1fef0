"""Two metrics of the same runs against each other."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import marks, rows, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Entry, Figure, Table, Value
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection, published
from sparkpub.site.publication import slug


def offers(campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`kv-cache-against-peak-memory`: every other metric against this one."""
    for other in campaign.publication.metrics(campaign.campaign):
        if other is not metric:
            yield (
                f"{slug(other.name)}-against-{slug(metric.name)}",
                partial(figure, metric, other),
            )


def figure(across: Metric, up: Metric, selection: Selection, key: str) -> Figure:
    """What lies across and what up; and whether the two are one piece of evidence."""
    runs = selection.runs_with(across, up)
    says = "Each point is a run."
    if across.name in up.derived_from or up.name in across.derived_from:
        says += " One metric is computed from the other, so this is no independent evidence."
    table: list[list[Value]] = []
    for row in runs:
        table.append(
            [
                Entry(row["run"], row["href"]),
                across.format(row[across.name]),
                up.format(row[up.name]),
            ]
        )
    shown = [
        marks.least_axis(metric, [row[metric.name] for row in runs])
        for metric in (across, up)
    ]
    return selection.figure(
        key,
        Chart(draw, (selection.scope, across, up, *shown)),
        {"runs": selection.rows_about("runs", across, up)},
        title=f"{up.label} against {across.within_sentence}",
        says=says,
        sample=f"n = {len(runs)} runs of campaign {selection.campaign.name}.",
        table=Table(("Run", across.label, up.label), table),
        rows=published(runs, across, up),
    )


def draw(
    scope: Scope,
    across: Metric,
    up: Metric,
    across_shown: marks.Span | None = None,
    up_shown: marks.Span | None = None,
) -> dict[str, Any]:
    """Rows `runs`, those with both metrics; the axes show at least what `least_axis` found."""
    points = (
        marks.rows(scope, "runs", marks.has(across.name), marks.has(up.name))
        .mark_point(size=50, filled=True, opacity=0.75)
        .encode(
            x=marks.x(
                across.name,
                theme.axis_title(across.label, across.unit),
                zero=False,
                shown=across_shown,
            ),
            y=alt.Y(
                f"{up.name}:Q",
                title=theme.axis_title(up.label, up.unit),
                scale=marks.scale(up_shown),
            ),
            color=marks.environment_colour(scope),
            shape=marks.environment_shape(scope),
            tooltip=marks.run_tooltip(
                across.label, across.name, [alt.Tooltip(f"{up.name}:Q", title=up.label)]
            ),
            href=alt.Href("href:N"),
        )
    )
    return theme.finish(theme.layered([points], height=300))


KIND = Kind(of_metric=offers, tables={"runs": rows.runs})

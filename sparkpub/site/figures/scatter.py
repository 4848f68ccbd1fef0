"""Two metrics of the same runs against each other."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Entry, Figure, Table, Value
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.publication import slug


def offers(campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`kv-cache-against-peak-memory`: every other metric against this one."""
    for other in campaign.publication.metrics(campaign.campaign):
        if other is not metric:
            name = f"{slug(other.name)}-against-{slug(metric.name)}"
            yield name, partial(figure, metric, other)


def figure(across: Metric, up: Metric, selection: Selection, key: str) -> Figure:
    """What lies across and what up; and whether the two are one piece of evidence."""
    runs = selection.runs_with(across, up)
    says = f"{up.subject} and {across.within_sentence} of {counted(len(runs), 'run')}."
    if across.name in up.derived_from or up.name in across.derived_from:
        says += " One metric is computed from the other, so this is no independent evidence."
    body: list[list[Value]] = []
    for row in runs:
        run = Entry(row["run"], row["href"])
        body.append([run, across.format(row[across.name]), up.format(row[up.name])])
    shown_across = marks.least_axis(across, [row[across.name] for row in runs])
    shown_up = marks.least_axis(up, [row[up.name] for row in runs])
    return selection.figure(
        key,
        Chart(draw, (selection.scope, across, up, shown_across, shown_up)),
        {"runs": selection.runs_about(across, up)},
        title=f"{up.label} against {across.within_sentence}",
        says=says,
        sample="Each point is a run.",
        table=Table(("Run", across.label, up.label), body),
    )


def draw(
    scope: Scope,
    across: Metric,
    up: Metric,
    shown_across: marks.Span | None = None,
    shown_up: marks.Span | None = None,
) -> dict[str, Any]:
    """Rows `runs`, those with both metrics; the axes show at least what `least_axis` found."""
    environments = marks.environments(scope)
    points = (
        marks.rows(scope, "runs", marks.has(across.name), marks.has(up.name))
        .mark_point(size=50, filled=True, opacity=0.75)
        .encode(
            x=marks.x(
                across.name,
                theme.metric_title(across),
                zero=False,
                shown=shown_across,
            ),
            y=marks.y(up.name, theme.metric_title(up), shown=shown_up),
            color=environments.colour,
            shape=environments.shape,
            tooltip=marks.run_tooltip(
                across.label,
                across.name,
                alt.Tooltip(f"{up.name}:Q", title=up.label),
            ),
            href=alt.Href("href:N"),
        )
    )
    return theme.finish(theme.layered([points], height=300))


KIND = Kind(of_metric=offers)

"""Environments against each other: the difference of each pair of cells, with its interval and its verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sparkpub.record.errors import SiteError
from sparkpub.record.text import counted, listed, percent
from sparkpub.review.dataset import CampaignData
from sparkpub.review.rows import ComparisonRow
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import marks, panels, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication

TABLE = "comparisons"
ROW = 24
"""Height of a row, in pixels."""
SHAPES = {
    "higher": "triangle-right",
    "lower": "triangle-left",
    "equivalent": "circle",
    "undecided": "diamond",
    "confounded": "cross",
}
OPEN = "datum.verdict === 'undecided' || datum.verdict === 'confounded'"
"""What is drawn hollow: nothing is shown."""


def offers(campaign: Selection) -> Iterator[Offer]:
    """`comparison`, where there is one in per cent."""
    if campaign.rows(TABLE):
        yield "comparison", figure


def comparisons(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per comparison of a leading metric on a scale with a true zero, by metric, what is decided first.

    Its cell, `label, metric, place` (within the metric), `percent, lo, hi` (the interval that decides), `verdict, p`
    (adjusted).
    """
    for metric in publication.headlines(campaign):
        found = [
            row
            for row in publication.comparisons_of(campaign, metric)
            if row.ratio is not None and row.deciding_ratio is not None
        ]
        names = _names(found)
        for place, row in enumerate(sorted(found, key=_interest)):
            assert row.ratio is not None
            assert row.deciding_ratio is not None
            low, high = row.deciding_ratio
            yield {
                "campaign": campaign.name,
                "model": row.model,
                "environment": row.candidate,
                "workload": row.workload,
                "label": names[row.model, row.candidate, row.workload],
                "metric": metric.name,
                "place": place,
                "percent": 100 * (row.ratio - 1),
                "lo": 100 * (low - 1),
                "hi": 100 * (high - 1),
                "verdict": row.verdict,
                "p": row.p_adjusted,
            }


def _names(rows: Sequence[ComparisonRow]) -> dict[tuple[str, str, str], str]:
    """Model, candidate and workload to those of them that differ among the rows; the model at least."""
    keys = [(row.model, row.candidate, row.workload) for row in rows]
    several = [len({key[axis] for key in keys}) > 1 for axis in range(3)]
    names = {}
    for model, candidate, workload in keys:
        parts = [model] if several[0] or not any(several) else []
        if several[1]:
            parts.append(candidate)
        if several[2]:
            parts.append(workload)
        names[model, candidate, workload] = ", ".join(parts)
    return names


def _interest(row: ComparisonRow) -> tuple[int, float]:
    """Differences first, the largest at the top; then what is open, then what is equivalent."""
    assert row.ratio is not None
    ranks = {"higher": 0, "lower": 0, "equivalent": 2}
    return ranks.get(row.verdict, 1), -abs(row.ratio - 1)


@dataclass(frozen=True)
class Group:
    """The comparisons of one metric: its name and label, and the labels of their rows in order."""

    metric: str
    title: str
    labels: tuple[str, ...]


def figure(selection: Selection, key: str) -> Figure:
    """How many comparisons have which verdict. Raises SiteError for a part without one."""
    rows = selection.rows(TABLE)
    if not rows:
        raise SiteError(
            f"figure {key}: nothing of this part is compared with the baseline",
            remedy="ask for the environment that is compared, or for the whole campaign",
        )
    margin = selection.campaign.margin_percent
    groups = groups_of(selection, rows)
    most = panels.room_for([len(group.labels) for group in groups])
    found = {row["verdict"] for row in rows}
    verdicts = tuple(word for word in SHAPES if word in found)
    subject = (selection.scope, groups, most, margin, verdicts)
    baseline = selection.campaign.baseline
    titles = {group.metric: group.title for group in groups}
    return selection.figure(
        key,
        Chart(draw, subject),
        {TABLE: rows},
        narrow=Chart(draw, (*subject, True)),
        title=f"Difference from {baseline}, metric by metric",
        says=_sentence(rows, baseline),
        sample=" ".join(_notes(rows, most, margin)),
        table=Table(
            (
                "Metric",
                "Comparison",
                "Difference",
                "Deciding interval",
                "p of a difference, adjusted",
                "Verdict",
            ),
            [[titles[row["metric"]], *_table_row(row)] for row in rows],
        ),
        rows=rows,
    )


def groups_of(selection: Selection, rows: Sequence[Row]) -> tuple[Group, ...]:
    """The rows by metric, metrics that lead first; rows have `metric` and `label`."""
    labels: dict[str, list[str]] = {}
    for row in rows:
        labels.setdefault(row["metric"], []).append(row["label"])
    return tuple(
        Group(metric.name, metric.label, tuple(labels[metric.name]))
        for metric in selection.publication.headlines(selection.campaign)
        if metric.name in labels
    )


def _sentence(rows: Sequence[Row], baseline: str) -> str:
    """`12 differences from native: 9 equivalent and 3 undecided.`"""
    verdicts = [row["verdict"] for row in rows]
    if len(rows) > 1 and len(set(verdicts)) == 1:
        return f"All {len(rows)} comparisons with {baseline} are {verdicts[0]}."
    words = sorted(set(verdicts), key=verdicts.count, reverse=True)
    counts = [f"{verdicts.count(word)} {word}" for word in words]
    return f"{counted(len(rows), 'comparison')} with {baseline}: {listed(counts)}."


def _notes(rows: Sequence[Row], most: int, margin: float) -> Iterator[str]:
    """How to read the chart, and what it has no room for."""
    yield f"Lines are the intervals behind the verdicts. Within the band of ±{margin:g} %, environments are equivalent."
    yield "Verdicts are corrected for multiple comparisons (Holm)."
    drawn = sum(row["place"] < most for row in rows)
    if drawn < len(rows):
        yield f"{drawn} of {len(rows)} are drawn, the largest differences first; the table has all."


def _table_row(row: Row) -> list[str]:
    interval = f"{percent(row['lo'])} to {percent(row['hi'])}"
    p = "n/a" if row["p"] is None else f"{row['p']:.2g}"
    return [row["label"], percent(row["percent"]), interval, p, row["verdict"]]


def draw(
    scope: Scope,
    groups: tuple[Group, ...],
    most: int,
    margin_percent: float,
    verdicts: tuple[str, ...],
    narrow: bool = False,
    table: str = TABLE,
) -> dict[str, Any]:
    """Rows `comparisons` or of another `table` like it, a panel for each metric, of which the first `most` rows are
    drawn.

    The band is the margin within which the campaign calls two environments equivalent. What is decided is filled, the
    rest hollow. `verdicts` are those that any row has.
    """
    room = panels.label_width([label for group in groups for label in group.labels])
    above = narrow and room > panels.BESIDE
    titled = []
    for group in groups:
        last = group is groups[-1]
        rows = marks.rows(scope, table, f"datum.metric === {group.metric!r}")
        if len(group.labels) > most:
            rows = rows.transform_window(
                row="row_number()",
                sort=[alt.SortField("place", order="ascending")],
            ).transform_filter(f"datum.row <= {most}")
        y = _y(group, room, above=above, alone=len(groups) == 1)
        once = marks.once(table)
        layers = _layers(rows, once, y, margin_percent, verdicts, last=last)
        if above:
            layers.append(marks.names(rows, y, "label"))
        step = ROW + panels.ABOVE if above else ROW
        height = max(1, min(len(group.labels), most)) * step
        titled.append((group.title, theme.layered(layers, height=height)))
    return panels.stacked(titled, room, narrow=narrow, shared_x=True)


def _y(group: Group, room: int, *, above: bool, alone: bool) -> "alt.Y":
    axis = alt.Axis(
        grid=True,
        labelColor=theme.TEXT,
        labelLimit=panels.MOST_LABEL,
        labels=not above,
    )
    if not alone:
        axis.minExtent = 0 if above else room
        axis.maxExtent = 0 if above else room
    padding = 0.75 if above else 0
    return alt.Y(
        "label:N",
        sort=list(group.labels),
        title=None,
        axis=axis,
        scale=alt.Scale(padding=padding),
    )


def _layers(
    rows: "alt.Chart",
    once: "alt.Chart",
    y: "alt.Y",
    margin_percent: float,
    verdicts: tuple[str, ...],
    *,
    last: bool,
) -> "list[alt.Chart]":
    title = "Difference in % of the baseline" if last else None
    x = marks.x("percent", title, zero=True, labels=last)
    span = rows.mark_rule(strokeWidth=2, color=theme.TEXT).encode(
        x=alt.X("lo:Q"), x2=alt.X2("hi:Q"), y=y
    )
    legend = alt.Legend(values=list(verdicts))
    shapes = alt.Scale(domain=list(SHAPES), range=list(SHAPES.values()))
    point = rows.mark_point(
        size=70,
        filled=True,
        color=theme.SERIES[0],
        strokeWidth=2,
        stroke=theme.SERIES[0],
    ).encode(
        x=x,
        y=y,
        shape=alt.Shape("verdict:N", title="Verdict", scale=shapes, legend=legend),
        fillOpacity=alt.condition(OPEN, alt.value(0), alt.value(1)),
        tooltip=marks.tooltip("label", "percent", "lo", "hi", "verdict", "p"),
    )
    return [
        marks.margin_band(once, margin_percent),
        marks.zero_line(once),
        span,
        point,
    ]


KIND = Kind(of_campaign=offers, tables={TABLE: comparisons})

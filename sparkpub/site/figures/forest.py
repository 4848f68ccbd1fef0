"""Environments against each other: the difference of each pair of cells, with its interval and its verdict."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparkpub.record.errors import SiteError
from sparkpub.record.text import SPACE, listed, outward, percent
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.names import Names, runs_of
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.estimate import deciding_level
from sparkpub.review.tables.comparisons import deciding
from sparkpub.site import sentences
from sparkpub.site.figures import kind, marks, panels, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.selection import Scope, Selection
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


def comparisons(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per comparison of a leading metric on a scale with a true zero, by metric, what is decided first.

    Its cell, `label, metric, place` (within the metric), `percent, lo, hi` (the interval that decides), its
    `level` in percent, `verdict, p` (adjusted).
    """
    for metric in publication.headlines(campaign):
        found = []
        for row in publication.results.comparisons_of(campaign.name, metric.name):
            interval = deciding(row, "ratio")
            if row.ratio is not None and interval is not None:
                low, high = interval
                found.append((row, row.ratio, low, high))
        found.sort(key=lambda item: _interest(item[0].verdict, item[1]))
        cells = [(row.model, row.candidate, row.workload) for row, *_ in found]
        names = _row_names(publication.names, campaign.name, cells)
        for place, (row, ratio, low, high) in enumerate(found):
            yield {
                "campaign": campaign.name,
                "model": row.model,
                "environment": row.candidate,
                "workload": row.workload,
                "label": names[row.model, row.candidate, row.workload],
                "metric": metric.name,
                "place": place,
                "percent": 100 * (ratio - 1),
                "lo": 100 * (low - 1),
                "hi": 100 * (high - 1),
                "verdict": row.verdict,
                "p": row.p_adjusted,
                "level": round(100 * deciding_level(row.verdict, row.equivalence_p)),
            }


def _row_names(names: Names, campaign: str, cells: Sequence[Cell]) -> dict[Cell, str]:
    """Cell to what tells it from the other rows: model and environment where they differ, and of the load what other
    rows of these have otherwise: `32B`, but `7B, CUDA graphs` beside `7B, no CUDA graphs`."""
    varied = [place for place in (0, 1) if len({cell[place] for cell in cells}) > 1]
    found = {}
    alike = grouped(cells, lambda cell: tuple(cell[place] for place in varied))
    for mine in alike.values():
        told = {cell: names.cell(campaign, cell) for cell in mine}
        loads = {cell: told[cell][2].split(", ") for cell in mine}
        shared = set.intersection(*map(set, loads.values()))
        for cell in mine:
            own = [part for part in loads[cell] if part not in shared]
            parts = [told[cell][place] for place in varied] + own
            found[cell] = ", ".join(parts) or told[cell][0]
    return found


def _interest(verdict: str, ratio: float) -> tuple[int, float]:
    """Differences first, the largest at the top; then what is open, then what is equivalent."""
    ranks = {"higher": 0, "lower": 0, "equivalent": 2}
    return ranks.get(verdict, 1), -abs(ratio - 1)


@dataclass(frozen=True)
class MetricRows:
    """The comparisons of one metric: its name and label, and the labels of their rows in order."""

    metric: str
    title: str
    labels: tuple[str, ...]

    def first(self, most: int) -> "MetricRows":
        """So many of its rows."""
        return replace(self, labels=self.labels[:most])


def figure(selection: Selection, key: str) -> Figure:
    """How many comparisons have which verdict. Raises SiteError for a part without one."""
    rows = compared(selection, key, TABLE)
    baseline = selection.scope.name(selection.campaign.baseline)
    return of_differences(
        selection,
        key,
        TABLE,
        rows,
        head=(
            "Comparison",
            "Difference",
            "Deciding interval",
            "p of a difference, adjusted",
            "Verdict",
        ),
        columns=_columns,
        title=f"Difference from {runs_of(baseline)}, metric by metric",
        says=_sentence(rows, baseline, selection.campaign.margin_percent),
        sample=" ".join(_notes(selection, rows)),
    )


def compared(selection: Selection, key: str, table: str) -> list[Row]:
    """The rows of a part in a table of differences. Raises SiteError where there is none."""
    rows = selection.rows(table)
    if not rows:
        raise SiteError(
            f"figure {key}: nothing of this part is compared with the baseline",
            remedy="ask for the environment that is compared, or for the whole campaign",
        )
    return rows


def of_differences(
    selection: Selection,
    key: str,
    table: str,
    rows: Sequence[Row],
    *,
    head: tuple[str, ...],
    columns: Callable[[Row], list[str]],
    **members: Any,
) -> Figure:
    """A figure of differences, by metric: what `draw` needs, and a table with these `columns` under this `head`."""
    groups = groups_of(selection, rows)
    verdicts = {row["verdict"] for row in rows}
    ordered = tuple(word for word in SHAPES if word in verdicts)
    margin = selection.campaign.margin_percent
    subject = (selection.scope, table, groups, margin, ordered)
    titles = {group.metric: group.title for group in groups}
    body = [[titles[row["metric"]], *columns(row)] for row in rows]
    return selection.figure(
        key,
        Chart(draw, subject, phone=(True,)),
        {table: rows},
        table=Table(("Metric", *head), body),
        **members,
    )


def groups_of(selection: Selection, rows: Sequence[Row]) -> tuple[MetricRows, ...]:
    """The rows by metric, metrics that lead first; rows have `metric` and `label`."""
    by_metric = grouped(rows, lambda row: str(row["metric"]))
    groups = []
    for metric in selection.publication.headlines(selection.campaign):
        if metric.name in by_metric:
            labels = tuple(row["label"] for row in by_metric[metric.name])
            groups.append(MetricRows(metric.name, metric.label, labels))
    return tuple(groups)


def _sentence(rows: Sequence[Row], baseline: str, margin: float) -> str:
    """`12 differences from native: 9 within ±1 % and 3 at most 2.4 %.`"""
    open_ends = [
        abs(end)
        for row in rows
        if row["verdict"] == "undecided"
        for end in (row["lo"], row["hi"])
    ]
    words = {
        "equivalent": f"within ±{margin:g}{SPACE}%",
        "undecided": sentences.at_most(max(open_ends, default=0)),
        "confounded": "perhaps due to time",
    }
    numbers = Counter(row["verdict"] for row in rows).most_common()
    told = [(number, words.get(verdict, verdict)) for verdict, number in numbers]
    against = runs_of(baseline)
    if len(rows) == 1:
        return f"The difference from {against} is {told[0][1]}."
    if len(told) == 1:
        return f"All {len(rows)} differences from {against} are {told[0][1]}."
    counts = listed(f"{number} {said}" for number, said in told)
    return f"{len(rows)} differences from {against}: {counts}."


def _notes(selection: Selection, rows: Sequence[Row]) -> Iterator[str]:
    """How to read the chart, and what it has no room for."""
    margin = selection.campaign.margin_percent
    text = f"Lines are {_levels(rows)}, the band ±{margin:g} %"
    if any(row["p"] is not None for row in rows):
        text += "; only verdicts are corrected for the number of comparisons (Holm)"
    yield f"{text}."
    most = _room(groups_of(selection, rows))
    drawn = sum(row["place"] < most for row in rows)
    if drawn < len(rows):
        yield f"{drawn} of {len(rows)} are drawn, the largest differences first; the table has all."


def _levels(rows: Sequence[Row]) -> str:
    """`90 % intervals`, and which are at 95 % where some are: a bound needs one side of an interval only."""
    levels = sorted({row["level"] for row in rows})
    text = f"{levels[0]} % intervals"
    if len(levels) > 1:
        text += f" ({levels[-1]} % for higher and lower)"
    return text


def _room(groups: Sequence[MetricRows]) -> int:
    """How many rows of each metric are drawn at most."""
    return panels.room_for([len(group.labels) for group in groups])


def _columns(row: Row) -> list[str]:
    low, high = outward(row["lo"], row["hi"])
    interval = f"{percent(low)} to {percent(high)}"
    p = "n/a"
    if row["p"] is not None:
        p = f"{row['p']:.2g}"
    return [row["label"], percent(row["percent"]), interval, p, row["verdict"]]


def draw(
    scope: Scope,
    table: str,
    groups: tuple[MetricRows, ...],
    margin_percent: float,
    verdicts: tuple[str, ...],
    narrow: bool = False,
) -> dict[str, Any]:
    """Rows of a table of differences, a panel for each metric, of which the first rows are drawn.

    The band is the margin within which the campaign calls two environments equivalent. What is decided is filled, the
    rest hollow. `verdicts` are those that any row has.
    """
    names = [label for group in groups for label in group.labels]
    room = panels.label_width(names)
    above = panels.stand_above(names, narrow=narrow)
    drawn = [group.first(_room(groups)) for group in groups]
    step = ROW
    if above:
        step += panels.ABOVE
    titled = []
    for group in drawn:
        last = group is drawn[-1]
        mine = marks.equal("metric", group.metric)
        rows = marks.rows(scope, table, mine, marks.among("label", group.labels))
        y = _y(group, room, above=above, alone=len(groups) == 1)
        once = marks.once(table)
        layers = _layers(rows, once, y, margin_percent, verdicts, last=last)
        if above:
            layers.append(marks.names(rows, y, "label", height=ROW // 2))
        height = max(1, len(group.labels)) * step
        titled.append((group.title, theme.layered(layers, height=height)))
    return panels.stacked(titled, names, narrow=narrow, shared_x=True)


def _y(group: MetricRows, room: int, *, above: bool, alone: bool) -> "alt.Y":
    axis = alt.Axis(
        grid=True,
        labelColor=theme.TEXT,
        labelLimit=panels.MOST_LABEL,
        labels=not above,
    )
    padding: float = 0
    if above:
        room, padding = 0, 0.75
    if not alone:
        axis.minExtent = axis.maxExtent = room
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
    title = None
    if last:
        title = "Difference in % of the baseline"
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
        fillOpacity=alt.FillOpacityValue(1, condition=marks.where(OPEN, 0)),
        tooltip=marks.tooltip("label", "percent", "lo", "hi", "verdict", "p"),
    )
    return [
        marks.margin_band(once, margin_percent),
        marks.zero_line(once),
        span,
        point,
    ]


KIND = kind.of_rows("comparison", figure, TABLE, comparisons)

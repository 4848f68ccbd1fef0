"""Throughput of the machine against throughput per user, along the load: what can be had of both at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted, rounded
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.growth import growth
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences, sweeps
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import kind, marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.figures.sweep import MOST_LINES, nothing_varies
from sparkpub.site.figures.theme import Series
from sparkpub.site.publication import Publication

TABLE = "pareto"
NAME = "pareto-front"
MILLISECONDS = 1000
LINE = sweeps.LOAD.line


@dataclass(frozen=True)
class Rates:
    """The two metrics that give the rate of the machine and of one user, in tok/s or in ms per token."""

    machine: Metric
    user: Metric

    @property
    def inverted(self) -> bool:
        """Whether the user's rate is the inverse of a time per token."""
        return self.user.unit == "ms"

    def of_user(self, value: float) -> float:
        """The user's rate in tok/s."""
        if self.inverted:
            return MILLISECONDS / value
        return value

    @property
    def user_title(self) -> str:
        """What stands beside the axis."""
        if self.inverted:
            return f"Per user: 1000 / {self.user.within_sentence} (tok/s)"
        return theme.metric_title(self.user)


def rates(publication: Publication, campaign: CampaignData) -> Rates | None:
    """The metrics of a campaign that give both rates; a measured rate of a user goes before a time per token."""
    metrics = publication.metrics(campaign)
    by_rate = grouped(metrics, lambda metric: metric.rate_of)
    if not {"machine", "user"} <= by_rate.keys():
        return None
    user = min(by_rate["user"], key=lambda metric: metric.unit == "ms")
    return Rates(by_rate["machine"][0], user)


def pareto(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per cell on a line of the load with both rates: its cell, `load, load_line, n`, `machine` and `user` in
    tok/s, and `front`: whether no cell of the same model has more of both."""
    both = rates(publication, campaign)
    if both is None:
        return
    machine = _means(publication.results.cells_of(campaign.name, both.machine.name))
    user = _means(publication.results.cells_of(campaign.name, both.user.name))
    lines = [line for line in publication.lines(campaign) if line.axis is sweeps.LOAD]
    found: list[Row] = []
    for line, name in sweeps.names(
        lines, publication.names.campaign(campaign.name)
    ).items():
        rows = []
        for load, cell in line.points:
            if cell in machine and cell in user:
                row = {
                    **cell_fields(publication, campaign, cell),
                    sweeps.LOAD.name: load,
                    LINE: name,
                    "n": machine[cell].n,
                    "machine": machine[cell].mean,
                    "user": both.of_user(user[cell].mean),
                }
                rows.append(row)
        if len(rows) > 1:
            found += rows
    for row in found:
        yield {**row, "front": not any(_beats(other, row) for other in found)}


def _means(cells: Sequence[TableRow]) -> dict[Cell, TableRow]:
    """Cell to its statistics, those above zero: a rate of zero has no inverse."""
    return {cell.cell: cell for cell in cells if cell.mean > 0}


def _beats(other: Row, row: Row) -> bool:
    """Whether another cell of the same model has at least as much of both rates, and more of one."""
    if other["model"] != row["model"]:
        return False
    ahead = [float(other[rate] - row[rate]) for rate in ("machine", "user")]
    return min(ahead) >= 0 and max(ahead) > 0


def figure(selection: Selection, key: str) -> Figure:
    """What machine and user get at the knee, or at both ends. Raises SiteError for a part without a line."""
    both = rates(selection.publication, selection.campaign)
    assert both is not None, "offered only where there are rows"
    shown = selection.rows(TABLE)
    if len(shown) < 2:
        raise nothing_varies(key)
    lines = tuple(dict.fromkeys(row[LINE] for row in shown))
    line = next(line for line in selection.lines if line.axis is sweeps.LOAD)
    workloads = {row["workload"] for row in shown}
    cells = selection.cells(both.machine)
    cells = [cell for cell in cells if cell.workload in workloads]
    notes = [
        sentences.sample(cells, {}),
        "Filled points are on the Pareto front of their model.",
    ]
    if len(lines) > MOST_LINES:
        notes.append(
            f"{MOST_LINES} of {len(lines)} lines are drawn; the table has all."
        )
    subject = (selection.scope, both, line.title, lines[:MOST_LINES])
    return selection.figure(
        key,
        Chart(draw, subject),
        {TABLE: shown, "runs": selection.runs_about(both.machine, both.user)},
        title="Throughput of the machine against throughput per user",
        says=_sentence(shown, line, both),
        sample=" ".join(notes),
        table=_table(shown, line.title),
        rows=shown,
    )


def _sentence(shown: Sequence[Row], line: sweeps.Line, both: Rates) -> str:
    """One line: both rates at the knee and at the end. Several: how many cells are on the front."""
    if len({row[LINE] for row in shown}) > 1:
        on_front = sum(row["front"] for row in shown)
        return (
            f"{on_front} of {counted(len(shown), 'cell')} are on the Pareto front of their model: "
            f"no other gives both machine and user more."
        )
    ordered = sorted(shown, key=lambda row: float(row["load"]))
    points = [(row["load"], row["machine"]) for row in ordered]
    knee = growth(points, repeated=all(row["n"] > 1 for row in ordered)).knee
    first, last, mark = ordered[0], ordered[-1], ""
    if knee is not None:
        first, mark = ordered[knee], " (the knee)"
    # A rate of a user is tokens by latency; the inverse of a time per token leaves out the time to the first one.
    after = " after the first token" if both.inverted else ""
    return (
        f"At {line.place(first['load'])}{mark}, the machine generates {rounded(first['machine'])} tok/s "
        f"and each user gets {rounded(first['user'])}{after}; "
        f"at {last['load']:,g}, {rounded(last['machine'])} and {rounded(last['user'])}."
    )


def _table(shown: Sequence[Row], across: str) -> Table:
    body = []
    for row in shown:
        on_front = "no"
        if row["front"]:
            on_front = "yes"
        body.append(
            [
                row[LINE],
                f"{row['load']:,g}",
                rounded(row["machine"], 4),
                rounded(row["user"], 4),
                on_front,
            ]
        )
    head = ("Line", across, "Machine (tok/s)", "Per user (tok/s)", "On the front")
    return Table(head, body)


def draw(
    scope: Scope, both: Rates, across: str, names: tuple[str, ...]
) -> dict[str, Any]:
    """Rows `pareto` joined in order of the load, which stands beside each; runs as faint points.

    What is on the front is filled. `names` are those of the lines, `across` what the load is.
    """
    shown = marks.among(LINE, names)
    cells = marks.rows(scope, TABLE, shown)
    x = alt.X("user:Q", title=both.user_title, scale=alt.Scale(zero=True, nice=True))
    title = theme.axis_title(f"{both.machine.label} of the machine", both.machine.unit)
    y = marks.y("machine", title, zero=True)
    series = marks.lines(LINE, names)
    points = _runs(scope, both, shown).mark_point(size=24, filled=True, opacity=0.35)
    each_run = points.encode(
        x=x,
        y=y,
        color=series.colour,
        tooltip=marks.run_tooltip(both.machine.label, "machine"),
        href=alt.Href("href:N"),
    )
    # A name of its own: with that of the points their symbols in the legend would be dashed.
    dashed = cells.transform_calculate(dashed=f"datum.{LINE}")
    line = dashed.mark_line().encode(
        x=x,
        y=y,
        order=alt.Order("load:Q"),
        color=series.colour,
        strokeDash=Series("dashed", names).dash,
    )
    points = cells.mark_point(size=70, filled=True, opacity=1).encode(
        x=x,
        y=y,
        color=series.colour,
        stroke=series.outline,
        shape=series.shape,
        fillOpacity=alt.condition("datum.front", alt.value(1), alt.value(0)),
        tooltip=marks.tooltip("cell", "load", "machine", "user", "n"),
    )
    loads = cells.mark_text(align="left", dx=8, dy=-8, fontSize=12).encode(
        x=x, y=y, text=alt.Text("load:Q", format=",")
    )
    heading = {
        "text": f"{across} beside each point",
        "anchor": "start",
        "fontSize": 12,
        "fontWeight": "normal",
        "color": theme.FAINT,
    }
    layers = [line, each_run, points, loads]
    return theme.finish(theme.layered(layers, height=300, title=heading))


def _runs(scope: Scope, both: Rates, shown: str) -> "alt.Chart":
    """Every counted run, with the columns `machine` and `user`."""
    user = f"datum.{both.user.name}"
    if both.inverted:
        user = f"{MILLISECONDS} / {user}"
    measured = [marks.has(both.user.name), marks.has(both.machine.name)]
    runs = marks.rows(scope, "runs", *measured, marks.COUNTED, shown)
    return runs.transform_calculate(user=user, machine=f"datum.{both.machine.name}")


KIND = kind.of_rows(NAME, figure, TABLE, pareto)

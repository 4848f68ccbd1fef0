"""Throughput of the machine against what each user gets, along the load: what can be had of both at once."""

from collections.abc import Iterator, Sequence
from typing import Any

from sparkpub.plan.requested import load_of
from sparkpub.record.metrics import METRICS
from sparkpub.record.text import counted, rounded
from sparkpub.review.dataset import CampaignData
from sparkpub.review.speeds import GENERATION, per_user
from sparkpub.review.statistics.growth import growth
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
MACHINE = METRICS[GENERATION]
LINE = sweeps.LOAD.line


def pareto(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per cell on a line of the load with both rates: its cell, `load, load_line, n`, `machine` and `user` in
    tok/s, and `front`: whether no cell of the same model has more of both."""
    measured = {
        speed.cell: speed
        for speed in publication.speeds
        if speed.campaign == campaign.name
    }
    lines = [line for line in publication.lines(campaign) if line.axis is sweeps.LOAD]
    found: list[Row] = []
    for line, name in sweeps.names(
        lines, publication.names.campaign(campaign.name)
    ).items():
        rows = []
        for load, cell in line.points:
            speed = measured.get(cell)
            # A share of the throughput would show the throughput a second time.
            if speed is None or GENERATION not in speed.figures:
                continue
            if not speed.per_user or not speed.measures_users:
                continue
            row = {
                **cell_fields(publication, campaign, cell),
                sweeps.LOAD.name: load,
                LINE: name,
                "n": speed.figures[GENERATION].n,
                "machine": speed.figures[GENERATION].mean,
                "user": speed.per_user,
            }
            rows.append(row)
        if len(rows) > 1:
            found += rows
    for row in found:
        yield {**row, "front": not any(_beats(other, row) for other in found)}


def _beats(other: Row, row: Row) -> bool:
    """Whether another cell of the same model has at least as much of both rates, and more of one."""
    if other["model"] != row["model"]:
        return False
    ahead = [float(other[rate] - row[rate]) for rate in ("machine", "user")]
    return min(ahead) >= 0 and max(ahead) > 0


def figure(selection: Selection, key: str) -> Figure:
    """What machine and user get at the knee, or at both ends. Raises SiteError for a part without a line."""
    shown = selection.rows(TABLE)
    if len(shown) < 2:
        raise nothing_varies(key)
    lines = tuple(dict.fromkeys(row[LINE] for row in shown))
    line = next(line for line in selection.lines if line.axis is sweeps.LOAD)
    workloads = {row["workload"] for row in shown}
    cells = selection.cells(MACHINE)
    cells = [cell for cell in cells if cell.workload in workloads]
    notes = [
        sentences.sample(cells, {}),
        "Filled points are on the Pareto front of their model.",
    ]
    if len(lines) > MOST_LINES:
        notes.append(
            f"{MOST_LINES} of {len(lines)} lines are drawn; the table has all."
        )
    subject = (selection.scope, line.title, lines[:MOST_LINES])
    return selection.figure(
        key,
        Chart(draw, subject),
        {TABLE: shown, "runs": _runs(selection)},
        title="Throughput of the machine against what each user gets",
        says=_sentence(shown, line),
        sample=" ".join(notes),
        table=_table(shown, line.title),
        rows=shown,
    )


def _sentence(shown: Sequence[Row], line: sweeps.Line) -> str:
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
    return (
        f"At {line.place(first['load'])}{mark}, the machine generates {rounded(first['machine'])} tok/s "
        f"and each user gets {rounded(first['user'])}; "
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
    head = ("Line", across, "Machine (tok/s)", "Each user (tok/s)", "On the front")
    return Table(head, body)


def draw(scope: Scope, across: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Rows `pareto` joined in order of the load, which stands beside each; runs as faint points.

    What is on the front is filled. `names` are those of the lines, `across` what the load is.
    """
    shown = marks.among(LINE, names)
    cells = marks.rows(scope, TABLE, shown)
    x = alt.X(
        "user:Q", title="Each user (tok/s)", scale=alt.Scale(zero=True, nice=True)
    )
    title = theme.axis_title(f"{MACHINE.label} of the machine", MACHINE.unit)
    y = marks.y("machine", title, zero=True)
    series = marks.lines(LINE, names)
    runs = marks.rows(scope, "runs", marks.has("user"), marks.COUNTED, shown)
    points = runs.mark_point(size=24, filled=True, opacity=0.35)
    each_run = points.encode(
        x=x,
        y=y,
        color=series.colour,
        tooltip=marks.run_tooltip(MACHINE.label, "machine"),
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


def _runs(selection: Selection) -> list[Row]:
    """The rows of runs, with `machine` and `user` where a run has both."""
    records = {record.run_id: record for record in selection.campaign.records}
    rows = []
    for row in selection.runs_about():
        record = records[row["run"]]
        machine = record.value(GENERATION)
        user = per_user(record.value, load_of(record))
        if machine and user:
            row |= {"machine": machine, "user": user}
        rows.append(row)
    return rows


KIND = kind.of_rows(NAME, figure, TABLE, pareto)

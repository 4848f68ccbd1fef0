"""Throughput of a machine against the speed of one user: along the load of a campaign, or of one model's set-ups."""

from collections.abc import Iterator, Mapping, Sequence
from math import log2
from typing import Any

from sparkpub.record.load import Load
from sparkpub.record.text import counted, rounded
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import USUAL
from sparkpub.review.models import ModelName
from sparkpub.review.names import lengths_name
from sparkpub.review.setup import Setup
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.review.statistics.growth import growth
from sparkpub.site import sweeps
from sparkpub.site.figures import kind, marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.figures.sweep import MOST_LINES, nothing_varies
from sparkpub.site.publication import Publication

NAME = "pareto-front"
TABLE = "pareto"
LOAD, LINE = sweeps.LOAD.name, sweeps.LOAD.line
FILLED = "Filled: no other point{} gives both more."
HEAD = ("Line", "Users", "All users (tok/s)", "Each user (tok/s)", "Best choice")


def _point(speed: Speed, line: str, load: float) -> Row:
    """What all users together and what one of them gets under a load, in tok/s."""
    return {
        LINE: line,
        LOAD: load,
        "machine": round(speed.figures[GENERATION].mean, 2),
        "user": round(speed.per_user or 0, 2),
    }


def _with_front(rows: Sequence[Row]) -> list[Row]:
    """The rows with `front`: whether no other one gives both more."""
    found = []
    for row in rows:
        beaten = any(_beats(other, row) for other in rows)
        found.append({**row, "front": not beaten})
    return found


NEAR = 0.06
"""Of both axes: a number beside a point nearer than this to another's would stand over it."""


def _with_labels(rows: Sequence[Row]) -> list[Row]:
    """The rows with `label`: the load, or nothing where another point's number has the place. Points that nothing beats
    have theirs first."""
    widest = max(row["user"] for row in rows) or 1
    highest = max(row["machine"] for row in rows) or 1
    taken: list[tuple[float, float]] = []
    labels: dict[int, str] = {}
    for place in sorted(range(len(rows)), key=lambda place: not rows[place]["front"]):
        across, up = rows[place]["user"] / widest, rows[place]["machine"] / highest
        is_free = all(max(abs(across - x), abs(up - y)) >= NEAR for x, y in taken)
        labels[place] = f"{rows[place][LOAD]:,g}" if is_free else ""
        if is_free:
            taken.append((across, up))
    return [{**row, "label": labels[place]} for place, row in enumerate(rows)]


def _beats(other: Row, row: Row) -> bool:
    """Whether another point has at least as much of both rates, and more of one."""
    ahead = [float(other[rate] - row[rate]) for rate in ("machine", "user")]
    return min(ahead) >= 0 and max(ahead) > 0


def _table(rows: Sequence[Row]) -> Table:
    body = []
    for row in rows:
        best = "no"
        if row["front"]:
            best = "yes"
        rates = [rounded(row["machine"], 4), rounded(row["user"], 4)]
        body.append([row[LINE], f"{row[LOAD]:,g}", *rates, best])
    return Table(HEAD, body)


# ---- A campaign ------------------------------------------------------------------------------------------------------


def pareto(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per cell on a line of the load with a rate of each user: its cell, `load, load_line, n`, `machine` and
    `user` in tok/s, and `front`: whether no cell of the same model has more of both."""
    speeds = {
        speed.cell: speed
        for speed in publication.speeds
        if speed.campaign == campaign.name
        and GENERATION in speed.figures
        and speed.per_user
    }
    lines = [line for line in publication.lines(campaign) if line.axis is sweeps.LOAD]
    called = sweeps.names(lines, publication.names.campaign(campaign.name))
    found: list[Row] = []
    for line, name in called.items():
        points = [(load, cell) for load, cell in line.points if cell in speeds]
        if len(points) < 2:
            continue
        for load, cell in points:
            fields = cell_fields(publication, campaign, cell)
            runs = {"n": speeds[cell].figures[GENERATION].n}
            found.append({**fields, **runs, **_point(speeds[cell], name, load)})
    for rows in grouped(found, lambda row: str(row["model"])).values():
        yield from _with_labels(_with_front(rows))


def figure(selection: Selection, key: str) -> Figure:
    """What machine and user get at the knee, or at both ends. Raises SiteError for a part without a line."""
    shown = selection.rows(TABLE)
    if len(shown) < 2:
        raise nothing_varies(key)
    names = tuple(dict.fromkeys(row[LINE] for row in shown))
    line = next(line for line in selection.lines if line.axis is sweeps.LOAD)
    notes = [f"{line.title} beside each point. {FILLED.format(_of(shown))}"]
    if len(names) > MOST_LINES:
        notes.append(
            f"{MOST_LINES} of {len(names)} lines are drawn; the table has all."
        )
    return selection.figure(
        key,
        Chart(draw, (names[:MOST_LINES], selection.scope)),
        {TABLE: shown},
        title="Throughput of the machine against the speed of each user",
        says=_sentence(shown, line),
        sample=" ".join(notes),
        table=_table(shown),
    )


def _sentence(shown: Sequence[Row], line: sweeps.Line) -> str:
    """One line: both rates at the knee and at the end. Several: how many points are best choices."""
    if len({row[LINE] for row in shown}) > 1:
        best = sum(row["front"] for row in shown)
        return (
            f"{best} of {counted(len(shown), 'point')} are best choices: no other{_of(shown)} gives both machine and "
            "user more."
        )
    ordered = sorted(shown, key=lambda row: float(row[LOAD]))
    points = [(row[LOAD], row["machine"]) for row in ordered]
    knee = growth(points, repeated=all(row["n"] > 1 for row in ordered)).knee
    first, last, mark = ordered[0], ordered[-1], ""
    if knee is not None:
        first, mark = ordered[knee], " (the knee)"
    return (
        f"At {line.place(first[LOAD])}{mark}, the machine generates {rounded(first['machine'])} tok/s "
        f"and each user gets {rounded(first['user'])}; "
        f"at {last[LOAD]:,g}, {rounded(last['machine'])} and {rounded(last['user'])}."
    )


def _of(shown: Sequence[Row]) -> str:
    """Among which points one is the best choice: those of its model, where there are several."""
    if len({row["model"] for row in shown}) > 1:
        return " of its model"
    return ""


# ---- A model ---------------------------------------------------------------------------------------------------------

Setups = Mapping[Setup, Sequence[Speed]]
"""Set-up to its speeds under loads that differ in their users alone."""


def of_model(
    model: ModelName, speeds: Sequence[Speed], names: Mapping[Setup, str]
) -> Figure | None:
    """A curve for each set-up over its users, for the machine, tool and lengths with the most points; None where no
    set-up was measured with several numbers of users. `names` are those of the set-ups."""
    setups = _usual(speeds)
    if not setups:
        return None
    points = []
    for setup, mine in setups.items():
        for speed in sorted(mine, key=lambda speed: speed.load.at_once or 0):
            points.append(_point(speed, names[setup], speed.load.at_once or 0))
    rows = _with_labels(_with_front(points))
    most = max(rows, key=lambda row: float(row["machine"]))
    first = next(iter(setups.values()))[0]
    shown = tuple(dict.fromkeys(row[LINE] for row in rows))[:MOST_LINES]
    return Figure(
        key=f"users-of-{model.slug}",
        title="How many users can it serve?",
        says=(
            f"Most measured: {rounded(most['machine'])} tok/s in all, with {counted(most[LOAD], 'user')} "
            f"at {rounded(most['user'])} tok/s each ({most[LINE]})."
        ),
        chart=Chart(draw, (shown,)),
        data={TABLE: rows},
        table=_table(rows),
        sample=(
            f"{first.machine}, {lengths_name(first.load)} ({first.load.tool}); users beside each point. "
            f"{FILLED.format('')}"
        ),
    )


def _usual(speeds: Sequence[Speed]) -> Setups:
    """Of the lengths that were measured with several numbers of users those nearest to a usual request; empty where
    there are none."""
    closed = []
    for speed in speeds:
        is_closed = speed.load.at_once and speed.load.request_rate is None
        if is_closed and speed.per_user and GENERATION in speed.figures:
            closed.append(speed)
    choices: list[Setups] = []
    for mine in grouped(closed, _shape).values():
        by_setup = grouped(mine, lambda speed: speed.setup)
        lines = {setup: found for setup, found in by_setup.items() if len(found) > 1}
        if lines:
            choices.append(lines)
    return min(choices, key=_unusual, default={})


def _shape(speed: Speed) -> tuple[object, ...]:
    """What the points of a chart have in common: all of the load but its users."""
    load = speed.load
    lengths = load.input_tokens, load.output_tokens, load.depth
    return speed.machine, load.tool, load.dataset, *lengths


def _unusual(setups: Setups) -> tuple[Any, ...]:
    """Sorts lengths: those with curves of at least three points first, then those nearest to a usual request."""
    load: Load = next(iter(setups.values()))[0].load
    wanted_in, wanted_out = USUAL
    before = (load.input_tokens or 0) + load.depth or 1
    away = abs(log2(before / wanted_in)) + abs(
        log2((load.output_tokens or 1) / wanted_out)
    )
    is_short = max(map(len, setups.values())) < sweeps.SHOWS_A_SHAPE
    return is_short, away, -len(setups)


# ---- Drawing ---------------------------------------------------------------------------------------------------------


def draw(names: tuple[str, ...], scope: Scope | None = None) -> dict[str, Any]:
    """Rows `pareto`, those of a scope or all: lines of these names along the load, which stands beside each point.

    Filled where no other point gives both more.
    """
    rows, title = marks.every(TABLE), "Recipe"
    if scope is not None:
        rows, title = marks.rows(scope, TABLE), "Line"
    rows = rows.transform_filter(marks.among(LINE, names))
    series = marks.lines(LINE, names, title)
    x = alt.X(
        "user:Q",
        title="Speed for each user (tok/s)",
        scale=alt.Scale(zero=True, nice=True),
    )
    y = marks.y("machine", "All users (tok/s)", zero=True)
    line = rows.mark_line().encode(
        x=x,
        y=y,
        order=alt.Order(f"{LOAD}:Q"),
        color=series.colour,
        strokeDash=series.dash,
    )
    points = rows.mark_point(size=70, filled=True, opacity=1).encode(
        x=x,
        y=y,
        color=series.colour,
        stroke=series.outline,
        shape=series.shape,
        fillOpacity=alt.FillOpacityValue(0, condition=marks.where("datum.front", 1)),
        tooltip=marks.tooltip(LINE, LOAD, "machine", "user"),
    )
    loads = rows.mark_text(align="left", dx=8, dy=-8, fontSize=12).encode(
        x=x, y=y, text=alt.Text("label:N")
    )
    return theme.finish(theme.layered([line, points, loads], height=320))


KIND = kind.of_rows(NAME, figure, TABLE, pareto)

"""Figures of speeds: of users of a campaign or of a model, of models beside each other, of versions of a model."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from sparkpub.record.text import counted, extent, percent, rounded
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import USES, Board
from sparkpub.review.models import ModelName
from sparkpub.review.names import Names, flow_name, lengths_name, load_name
from sparkpub.review.progress import (
    VersionLine,
    VersionPoint,
    change_between,
    in_words,
    is_beyond_noise,
)
from sparkpub.review.setup import Setup
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.site import sweeps
from sparkpub.site.figures import said, shapes
from sparkpub.site.figures.campaign import MOST_LINES, distinct
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.figure import Entry, Figure, Value, chart, table_of
from sparkpub.site.figures.others import FEWEST
from sparkpub.site.study import KEYS, StudiedCampaign, column, records

ONE = next(use for use in USES if use.key == "one")
FILLED = "Filled: no other point{} gives both more."
NEAR = 0.06
"""Of both axes: a number beside a point nearer than this to another's would stand over it."""


# ---- Machine and user ------------------------------------------------------------------------------------------------


def users_of(campaign: StudiedCampaign) -> pd.DataFrame:
    """Every cell on a line of the load with a rate of each user: `line, order` (the load), `x` (a user's tok/s),
    `value` (the machine's), `front` (whether no cell of its model has more of both), `label`, `n`."""
    speeds = {}
    for speed in campaign.site.speeds:
        is_here = speed.campaign == campaign.data.name and campaign.holds(*speed.cell)
        if is_here and GENERATION in speed.figures and speed.per_user:
            speeds[speed.cell] = speed
    rows = []
    for line, name in campaign.lines.items():
        points = [(load, speeds[cell]) for load, cell in line.points if cell in speeds]
        if line.axis is sweeps.LOAD and len(points) > 1:
            for load, speed in points:
                keys = dict(
                    zip(
                        KEYS,
                        speed.cell,
                        strict=True,
                    )
                )
                rows.append(keys | _rates(speed, name, load))
    if not rows:
        return pd.DataFrame()
    by_model = pd.DataFrame(rows).groupby("model", sort=False)
    return pd.concat([_with_front(mine) for _, mine in by_model])


def users(campaign: StudiedCampaign) -> Figure:
    """`pareto-front`: throughput of the machine against the speed of each user, along the load."""
    rows = users_of(campaign)
    line = next(line for line in campaign.lines if line.axis is sweeps.LOAD)
    notes = f"{line.title} beside each point. {FILLED.format(said.of_its_model(rows))}"
    number = rows["line"].nunique()
    if number > MOST_LINES:
        notes += f" {MOST_LINES} of {number} lines are drawn; the table has all."
    return Figure(
        says=said.users(rows, line),
        sample=notes,
        chart=_users_chart(rows, "Line"),
        table=table_of(list(rows["tip"])),
    )


def users_of_model(
    model: ModelName,
    speeds: Sequence[Speed],
    names: Mapping[Setup, str],
) -> Figure | None:
    """A curve for each set-up over its users, for the machine, tool and lengths with the most points; None where no
    set-up was measured with several numbers of users. `names` are those of the set-ups."""
    setups = _usual(speeds)
    if not setups:
        return None
    points = []
    for setup, mine in setups.items():
        for speed in sorted(mine, key=lambda speed: speed.load.at_once or 0):
            points.append(_rates(speed, names[setup], speed.load.at_once or 0))
    rows = _with_front(pd.DataFrame(points))
    most = rows.iloc[int(rows["value"].argmax())]
    first = next(iter(setups.values()))[0]
    return Figure(
        key=f"users-of-{model.slug}",
        title="How many users can it serve?",
        says=(
            f"Most measured: {rounded(most['value'])} tok/s in all, with {counted(most['order'], 'user')} "
            f"at {rounded(most['x'])} tok/s each ({most['line']})."
        ),
        chart=_users_chart(rows, "Recipe"),
        table=table_of(list(rows["tip"])),
        sample=(
            f"{first.machine}, {lengths_name(first.load)} ({first.load.tool}); users beside each point. "
            f"{FILLED.format('')}"
        ),
    )


def _rates(speed: Speed, line: str, load: float) -> dict[str, Any]:
    """What all users together and what one of them gets under a load, in tok/s."""
    return {
        "line": line,
        "order": load,
        "value": _rate(speed),
        "x": round(speed.per_user or 0, 2),
        "n": speed.figures[GENERATION].n,
    }


def _with_front(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `front`: whether no other one gives both more; and `label`: the load, or nothing where another
    point's number has the place, of which those on the front have theirs first."""
    best_first = rows.sort_values(["x", "value"], ascending=False)["value"]
    highest = best_first.cummax().shift(fill_value=-math.inf)
    # Of points that are alike each is as good a choice.
    alike = (best_first > highest).groupby([rows["x"], rows["value"]])
    rows = rows.assign(front=alike.transform("any"))
    scaled = (rows[["x", "value"]] / rows[["x", "value"]].max()).to_numpy()
    taken: list[int] = []
    for place in np.argsort(~rows["front"], kind="stable"):
        if (abs(scaled[taken] - scaled[place]).max(axis=1) >= NEAR).all():
            taken.append(place)
    has_room = np.isin(range(len(rows)), taken)
    told = [
        {
            "Line": row["line"],
            "Users": f"{row['order']:,g}",
            "All users (tok/s)": rounded(row["value"], 4),
            "Each user (tok/s)": rounded(row["x"], 4),
            "Best choice": "yes" if row["front"] else "no",
        }
        for row in records(rows)
    ]
    users = column(rows, [line["Users"] for line in told])
    return rows.assign(label=users.where(has_room, None), tip=column(rows, told))


def _users_chart(rows: pd.DataFrame, legend: str) -> Chart:
    lines = list(dict.fromkeys(rows["line"]))[:MOST_LINES]
    called, shared = distinct(lines)
    shown = rows[rows["line"].isin(lines)].assign(kind="mean")
    shown["group"] = shown["line"].map(
        dict(
            zip(
                lines,
                called,
                strict=True,
            )
        )
    )
    points = shown.drop(columns="label").assign(kind="run", counts=shown["front"])
    return chart(
        shapes.lines,
        pd.concat([shown, points]),
        across="Speed for each user (tok/s)",
        up="All users (tok/s)",
        groups=called if len(called) > 1 else (),
        legend=legend if shared == "Line" else shared,
    )


Setups = Mapping[Setup, Sequence[Speed]]
"""Set-up to its speeds under loads that differ in their users alone."""


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
    return min(
        choices,
        key=_unusual,
        default={},
    )


def _shape(speed: Speed) -> tuple[object, ...]:
    """What the points of a chart have in common: all of the load but its users."""
    load = speed.load
    lengths = load.input_tokens, load.output_tokens, load.depth
    return speed.machine, load.tool, load.dataset, *lengths


def _unusual(setups: Setups) -> tuple[Any, ...]:
    """Sorts lengths: those with curves of at least three points first, then those nearest to a usual request."""
    load = next(iter(setups.values()))[0].load
    is_short = max(map(len, setups.values())) < sweeps.SHOWS_A_SHAPE
    away = ONE.distance(dataclasses.replace(load, at_once=1))
    return is_short, away, -len(setups)


# ---- Models and versions ---------------------------------------------------------------------------------------------


def models(
    one: Board,
    some: Board,
    addresses: Mapping[str, str],
) -> Figure | None:
    """What one user gets alone and what some get together, of every set-up on both boards. None for fewer than three.
    `addresses` are those of the models' pages by name."""
    together = {speed.setup: speed for speed in some.speeds}
    found = [speed for speed in one.speeds if speed.setup in together]
    if len(found) < FEWEST:
        return None
    rates = [(_rate(speed), _rate(together[speed.setup])) for speed in found]
    users, slowest = flow_name(some.load), min(rates)
    named = {slowest, max(rates), max(rates, key=itemgetter(1))}
    rows: list[shapes.Row] = []
    told: list[dict[str, Value]] = []
    for speed, rate in zip(
        found,
        rates,
        strict=True,
    ):
        alone, all_users = rate
        name = speed.model.name
        line: dict[str, Value] = {
            "Model": name,
            "Weights": speed.weights,
            "One user (tok/s)": rounded(alone),
            f"{users} together (tok/s)": rounded(all_users),
        }
        row = {"kind": "run", "group": speed.weights, "x": alone, "value": all_users}
        if rate in named:
            # Left of the slowest one there is no room.
            row |= {"label": name, "left": rate != slowest}
        rows.append(row | {"tip": line})
        told.append(line | {"Model": Entry(name, addresses.get(name, ""))})
    ratios = [all_users / alone for alone, all_users in rates]
    most = some.load.at_once or math.inf
    possible = [ratio for ratio in ratios if ratio <= most] or ratios
    sample = f"Each point is a model in one format on a {one.machine}: {lengths_name(one.load)} ({one.load.tool})."
    if len(possible) < len(ratios):
        # No server can have these: their one user was held back.
        points = counted(len(ratios) - len(possible), "point")
        sample += f" Left out of the sentence: {points} above {most:g} times, whose single user was held back."
    return Figure(
        key="one-and-many-users",
        title="More users: more in total, less for each",
        says=f"{users.capitalize()} together get {extent(possible)} times the tokens of one.",
        chart=chart(
            shapes.points,
            rows,
            across="One user (tok/s)",
            up=f"{users} together (tok/s)",
            groups=list(dict.fromkeys(speed.weights for speed in found)),
            legend="Weights",
            log=True,
        ),
        table=table_of(told),
        sample=sample,
    )


def _rate(speed: Speed) -> float:
    """What all users together get, in tok/s."""
    return round(float(speed.figures[GENERATION].mean), 2)


MOST_LOADS = 4
"""With room below each other; the table has all."""


def versions_of_model(
    model: ModelName,
    lines: Sequence[VersionLine],
    names: Names,
) -> Figure | None:
    """What was measured more than once over versions and days, in per cent of the first; None where nothing was."""
    if not lines:
        return None
    called = _called(lines, names)
    drawn = dict(
        zip(
            called[:MOST_LOADS],
            lines,
            strict=False,
        )
    )
    sessions = _sessions(list(drawn.values()))
    rows = [
        {"panel": name, "name": sessions[_session(point)], **_since(line, point, name)}
        for name, line in drawn.items()
        for point in line.points
    ]
    sample = "Lines are 95 % intervals of the change from the first, each by itself; filled: beyond the noise."
    if len(drawn) < len(lines):
        sample += f" {len(drawn)} of {len(lines)} loads are drawn; the table has all."
    told = []
    for line, name in zip(
        lines,
        called,
        strict=True,
    ):
        points = [
            f"{rounded(point.mean.value)} ({point.day}, {point.speed.engine})"
            for point in line.points
        ]
        told.append(
            {
                "Weights and load": name,
                "Measured (tok/s)": " → ".join(points),
                "Set differently": line.differs,
                "Change": in_words(line.total),
            }
        )
    return Figure(
        key=f"versions-of-{model.slug}",
        title="Output throughput of one load, measured again",
        says=said.versions(lines),
        sample=sample,
        chart=chart(
            shapes.forest,
            rows,
            title="Change from the first (%)",
        ),
        table=table_of(told),
    )


def _since(line: VersionLine, point: VersionPoint, load: str) -> shapes.Row:
    """What changed from the first point of a line to this one, as `forest` draws it."""
    since = change_between(line.points[0].mean, point.mean)
    tip = {"load": load, "measured": f"{rounded(point.mean.value)} tok/s"}
    tip["from the first"] = percent(since.value)
    row = {"value": 0.0, "low": 0.0, "high": 0.0, "verdict": "first", "tip": tip}
    if point.change is not None:
        low, high = since.interval() or (since.value, since.value)
        verdict = "changed" if is_beyond_noise(point.change) else "not shown"
        row |= {"value": since.value, "low": low, "high": high, "verdict": verdict}
    return row


def _called(lines: Sequence[VersionLine], names: Names) -> list[str]:
    """`BF16, 8 users, 512 in, 128 out`; with environment and machine, `..., Docker, H200`, where that names several."""
    short = [f"{line.first.weights}, {load_name(line.first.load)}" for line in lines]
    called = []
    for line, name in zip(
        lines,
        short,
        strict=True,
    ):
        first = line.points[0].speed
        environment = names.environment(first.campaign, first.cell[1])
        where = f", {environment}, {line.first.machine}"
        called.append(name + (where if short.count(name) > 1 else ""))
    return called


Session = tuple[str, str, str]
"""Campaign, engine and day."""


def _session(point: VersionPoint) -> Session:
    return point.speed.campaign, point.speed.engine, point.day


def _sessions(lines: Sequence[VersionLine]) -> dict[Session, str]:
    """What stands beside each session, in order of time: `2026-08-16, vLLM 0.26.0`; a second one of a day has a 2."""
    points = [point for line in lines for point in line.points]
    points.sort(key=lambda point: point.speed.records[0].started.value)
    found: dict[Session, str] = {}
    days = []
    for session in dict.fromkeys(map(_session, points)):
        _, engine, day = session
        days.append((day, engine))
        number = days.count((day, engine))
        found[session] = f"{day}{f' ({number})' * (number > 1)}, {engine}"
    return found

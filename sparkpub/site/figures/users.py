"""Throughput of a machine against the speed of one user: many models as points, or one model's set-ups as curves."""

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from pydantic_core import to_json

from sparkpub.record.text import counted, rounded
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import USUAL, Board
from sparkpub.review.models import ModelName
from sparkpub.review.names import flow_name, lengths_name
from sparkpub.review.setup import Setup
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.site.content import Content
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Entry, Figure, Table
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.theme import Series

POINTS = "points"
MOST_LABELS = 6
MOST_CURVES = 6


def published(figure: Figure) -> tuple[str, Content]:
    """The rows of a figure as a file, for the browser: address and content."""
    return figure.sources[POINTS], Content(data=to_json(figure.data[POINTS]))


def _source(key: str) -> dict[str, str]:
    """Where the browser finds the rows."""
    return {POINTS: f"data/{key}.json"}


# -- all models --------------------------------------------------------------------------------------------


def of_models(one: Board, some: Board, addresses: dict[str, str]) -> Figure | None:
    """Every set-up under both loads: alone, and with other users. None for fewer than three."""
    together = {speed.setup: speed for speed in some.speeds}
    rows: list[Row] = []
    for speed in one.speeds:
        other = together.get(speed.setup)
        if other is not None:
            rows.append(
                {
                    "model": speed.model.name,
                    "weights": speed.weights,
                    "alone": round(speed.figures[GENERATION].mean, 2),
                    "together": round(other.figures[GENERATION].mean, 2),
                }
            )
    if len(rows) < 3:
        return None
    _label(rows)
    formats = tuple(dict.fromkeys(row["weights"] for row in rows))
    users = flow_name(some.load)
    key = "one-and-many-users"
    chart = Chart(draw_models, (formats, users))
    ratios = sorted(row["together"] / row["alone"] for row in rows)
    return Figure(
        key=key,
        title="More users: more in total, less for each",
        says=(
            f"{users.capitalize()} together get {rounded(ratios[0], 2)} to {rounded(ratios[-1], 2)} "
            "times the tokens of one."
        ),
        chart=chart,
        data={POINTS: rows},
        table=Table(
            ("Model", "Weights", "One user (tok/s)", f"{users} together (tok/s)"),
            [
                [
                    Entry(row["model"], addresses.get(row["model"], "")),
                    row["weights"],
                    rounded(row["alone"]),
                    rounded(row["together"]),
                ]
                for row in rows
            ],
        ),
        rows=rows,
        sample=f"Each point is a model in one format on a {one.machine}: {lengths_name(one.load)} ({one.load.tool}).",
        sources=_source(key),
    )


def _label(rows: list[Row]) -> None:
    """Write the name of a model beside the points at the edges, which have room for it."""
    ordered = sorted(rows, key=lambda row: float(row["alone"]))
    front = []
    most = 0.0
    for row in reversed(ordered):
        if row["together"] > most:
            most = row["together"]
            front.append(row)
    chosen = [*front, ordered[0]][:MOST_LABELS]
    for row in rows:
        row["label"] = row["model"] if row in chosen else ""


def draw_models(formats: tuple[str, ...], users: str) -> dict[str, Any]:
    """Rows `points`: `model, weights, alone, together, label`, on logarithmic axes."""
    series = Series("weights", formats, "Weights")
    x = alt.X("alone:Q", title="One user (tok/s)", scale=alt.Scale(type="log", nice=True))  # fmt: skip
    y = alt.Y(
        "together:Q",
        title=f"{users} together (tok/s)",
        scale=alt.Scale(type="log", nice=True),
    )
    points = (
        marks.every(POINTS)
        .mark_point(size=70, filled=True)
        .encode(
            x=x,
            y=y,
            color=series.colour,
            shape=series.shape,
            tooltip=marks.tooltip("model", "weights", "alone", "together"),
        )
    )
    names = (
        marks.every(POINTS)
        .mark_text(align="right", dx=-7, dy=-5, fontSize=12, limit=190)
        .encode(x=x, y=y, text=alt.Text("label:N"))
    )
    return theme.finish(theme.layered([points, names], height=340))


# -- one model ---------------------------------------------------------------------------------------------


def curves(
    model: ModelName, speeds: Sequence[Speed], names: Mapping[Setup, str]
) -> Figure | None:
    """A curve for each set-up over its users, for the machine, tool and lengths with the most points; None where no
    set-up was measured with several numbers of users. `names` are those of the set-ups."""
    closed = [
        speed
        for speed in speeds
        if speed.load.at_once and speed.load.request_rate is None and speed.per_user
        and GENERATION in speed.figures
    ]  # fmt: skip
    choices = []
    for shape, mine in grouped(closed, _shape).items():
        by_setup = grouped(mine, lambda speed: speed.setup)
        lines = {setup: found for setup, found in by_setup.items() if len(found) > 1}
        if lines:
            choices.append((shape, lines))
    if not choices:
        return None
    (_, tool, *_), lines = min(choices, key=_unusual)
    rows = [
        _point(speed, names[setup])
        for setup, mine in lines.items()
        for speed in sorted(mine, key=lambda speed: speed.load.at_once or 0)
    ]
    for row in rows:
        row["front"] = not any(_beats(other, row) for other in rows)
    first = next(iter(lines.values()))[0]
    most = max(rows, key=lambda row: float(row["machine"]))
    key = f"users-of-{model.slug}"
    shown = tuple(dict.fromkeys(row["recipe"] for row in rows))[:MOST_CURVES]
    return Figure(
        key=key,
        title="How many users can it serve?",
        says=(
            f"At most {rounded(most['machine'])} tok/s in all, with {counted(most['users'], 'user')} "
            f"at {rounded(most['user'])} tok/s each ({most['recipe']})."
        ),
        chart=Chart(draw_curves, (shown,)),
        data={POINTS: rows},
        table=Table(
            (
                "Recipe",
                "Users",
                "All users (tok/s)",
                "Each user (tok/s)",
                "Best choice",
            ),
            [
                [
                    row["recipe"],
                    str(row["users"]),
                    rounded(row["machine"]),
                    rounded(row["user"]),
                    "yes" if row["front"] else "no",
                ]
                for row in rows
            ],
        ),
        rows=rows,
        sample=(
            f"{first.machine}, {lengths_name(first.load)} ({tool}); users beside each point. "
            "Filled: no other point gives both more."
        ),
        sources=_source(key),
    )


def _unusual(choice: tuple[Any, Mapping[Setup, Sequence[Speed]]]) -> tuple[Any, ...]:
    """Sorts lengths: those with curves of at least three points first, then those nearest to a usual request."""
    (_, _, before, after, _, depth), lines = choice
    is_short = max(map(len, lines.values())) < 3
    wanted_in, wanted_out = USUAL
    away = abs(log2(((before or 0) + depth or 1) / wanted_in))
    return is_short, away + abs(log2((after or 1) / wanted_out)), -len(lines)


def _shape(speed: Speed) -> tuple[object, ...]:
    """What the points of a chart have in common: all of the load but its users."""
    load = speed.load
    return (
        speed.machine,
        load.tool,
        load.input_tokens,
        load.output_tokens,
        load.dataset,
        load.depth,
    )


def _point(speed: Speed, name: str) -> Row:
    return {
        "recipe": name,
        "users": speed.load.at_once,
        "machine": round(speed.figures[GENERATION].mean, 2),
        "user": round(speed.per_user or 0, 2),
    }


def _beats(other: Row, row: Row) -> bool:
    """Whether another point has at least as much of both rates, and more of one."""
    ahead = [float(other[rate] - row[rate]) for rate in ("machine", "user")]
    return min(ahead) >= 0 and max(ahead) > 0


def draw_curves(names: tuple[str, ...]) -> dict[str, Any]:
    """Rows `points`: `recipe, users, machine, user, front`, joined along the users; filled where nothing is better."""
    series = Series("recipe", names, "Recipe")
    shown = marks.every(POINTS).transform_filter(marks.among("recipe", names))
    x = alt.X("user:Q", title="Speed for each user (tok/s)", scale=alt.Scale(zero=True))
    y = alt.Y("machine:Q", title="All users (tok/s)", scale=alt.Scale(zero=True))
    order = alt.Order("users:Q")
    line = shown.mark_line().encode(x=x, y=y, order=order, color=series.colour)
    points = shown.mark_point(size=70, filled=True, opacity=1).encode(
        x=x,
        y=y,
        color=series.colour,
        stroke=series.outline,
        shape=series.shape,
        fillOpacity=alt.condition("datum.front", alt.value(1), alt.value(0)),
        tooltip=marks.tooltip("recipe", "users", "machine", "user"),
    )
    users = shown.mark_text(align="left", dx=7, dy=-7, fontSize=12).encode(
        x=x, y=y, text=alt.Text("users:Q")
    )
    return theme.finish(theme.layered([line, points, users], height=320))

"""Many models under two loads: what one user gets alone, and what some users get together."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sparkpub.record.text import (
    counted,
    extent,
    rounded,
)
from sparkpub.review.leaderboard import Board
from sparkpub.review.names import flow_name, lengths_name
from sparkpub.review.speeds import GENERATION
from sparkpub.site.figures import marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Entry, Figure, Table
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.theme import Series

KEY = "one-and-many-users"
POINTS = "points"
FEWEST = 3
"""Points from which on there is a picture."""
MOST_LABELS = 6


def figure(one: Board, some: Board, addresses: Mapping[str, str]) -> Figure | None:
    """Every set-up under the loads of both boards. None for fewer than three. `addresses` are those of the models'
    pages by name."""
    rows = _rows(one, some)
    if len(rows) < FEWEST:
        return None
    formats = tuple(dict.fromkeys(row["weights"] for row in rows))
    users = flow_name(some.load)
    ratios = [row["together"] / row["alone"] for row in rows]
    most = some.load.at_once or math.inf
    possible = [ratio for ratio in ratios if ratio <= most] or ratios
    body = []
    for row in rows:
        name = Entry(row["model"], addresses.get(row["model"], ""))
        rates = [rounded(row["alone"]), rounded(row["together"])]
        body.append([name, row["weights"], *rates])
    return Figure(
        key=KEY,
        title="More users: more in total, less for each",
        says=(
            f"{users.capitalize()} together get {extent(possible)} "
            "times the tokens of one."
        ),
        chart=Chart(draw, (formats, users)),
        data={POINTS: rows},
        table=Table(
            ("Model", "Weights", "One user (tok/s)", f"{users} together (tok/s)"), body
        ),
        sample=(
            f"Each point is a model in one format on a {one.machine}: {lengths_name(one.load)} ({one.load.tool})."
            f"{_beyond(len(ratios) - len(possible), most)}"
        ),
    )


def _beyond(count: int, most: float) -> str:
    """What is said of points that no server can have: its one user was held back."""
    if not count:
        return ""
    points = counted(count, "point")
    return f" Left out of the sentence: {points} above {most:g} times, whose single user was held back."


def _rows(one: Board, some: Board) -> list[Row]:
    """`model, weights, alone, together` (tok/s), `label`: the name of a model whose point has room for it, `slowest`:
    whether no other is slower alone."""
    together = {speed.setup: speed for speed in some.speeds}
    rows: list[Row] = []
    for speed in one.speeds:
        other = together.get(speed.setup)
        if other is None:
            continue
        rows.append(
            {
                "model": speed.model.name,
                "weights": speed.weights,
                "alone": round(speed.figures[GENERATION].mean, 2),
                "together": round(other.figures[GENERATION].mean, 2),
            }
        )
    if not rows:
        return []
    named = _at_the_edges(rows)
    least = min(row["alone"] for row in rows)
    found = []
    for row in rows:
        label = row["model"] if row in named else ""
        found.append({**row, "label": label, "slowest": row["alone"] == least})
    return found


def _at_the_edges(rows: Sequence[Row]) -> list[Row]:
    """The rows that no other one beats in both, and the slowest one."""
    ordered = sorted(rows, key=lambda row: float(row["alone"]), reverse=True)
    front: list[Row] = []
    for row in ordered:
        if not front or row["together"] > front[-1]["together"]:
            front.append(row)
    return [*front[: MOST_LABELS - 1], *ordered[-1:]]


def draw(formats: tuple[str, ...], users: str) -> dict[str, Any]:
    """Rows `points`: `model, weights, alone, together, label`, on logarithmic axes."""
    series = Series("weights", formats, "Weights")
    scale = alt.Scale(type="log", nice=True)
    x = alt.X("alone:Q", title="One user (tok/s)", scale=scale)
    y = alt.Y("together:Q", title=f"{users} together (tok/s)", scale=scale)
    rows = marks.every(POINTS)
    points = rows.mark_point(size=70, filled=True).encode(
        x=x,
        y=y,
        color=series.colour,
        shape=series.shape,
        tooltip=marks.tooltip("model", "weights", "alone", "together"),
    )
    # Left of the slowest one there is no room.
    left = rows.transform_filter("!datum.slowest")
    right = rows.transform_filter("datum.slowest")
    names = [
        left.mark_text(align="right", dx=-7, dy=-5, fontSize=12, limit=190),
        right.mark_text(align="left", dx=7, dy=-5, fontSize=12, limit=190),
    ]
    named = [each.encode(x=x, y=y, text=alt.Text("label:N")) for each in names]
    return theme.finish(theme.layered([points, *named], height=340))

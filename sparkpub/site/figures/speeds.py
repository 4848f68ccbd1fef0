"""Figures of a model: what its users get, what context costs, what versions changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sparkpub.record.text import counted, rounded
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import USES
from sparkpub.review.models import ModelName
from sparkpub.review.names import (
    Names,
    lengths_name,
    load_name,
    told_apart,
)
from sparkpub.review.progress import (
    VersionLine,
    day,
    in_words,
    is_beyond_noise,
    mean_of,
)
from sparkpub.review.setup import Setup
from sparkpub.review.speeds import GENERATION, MILLISECONDS, PROMPT, Speed
from sparkpub.review.statistics.estimate import Floats
from sparkpub.site.figures import said, shapes
from sparkpub.site.figures.campaign import MOST_LINES, drawn_of
from sparkpub.site.figures.figure import Figure, Heads, chart, telling
from sparkpub.site.figures.others import FEWEST
from sparkpub.site.study import KEYS

ONE = next(use for use in USES if use.key == "one")
BOTH = "mean run"
"""Kind of a mean that is a point as well."""
NEAR = 0.06
"""Of both axes: a number beside a point nearer than this to another's would stand over it."""
MOST_LOADS = 12
"""Of a model in the chart of versions; the table has all."""


# ---- Users -----------------------------------------------------------------------------------------------------------


def users_of_model(
    model: ModelName, speeds: Sequence[Speed], names: Mapping[Setup, str]
) -> Figure | None:
    """A curve for each set-up over its users, for the tool and lengths nearest to a usual request; None where no set-up
    was measured with several numbers of users. `names` are those of the set-ups, `speeds` are of one machine.

    Filled is the Pareto front: what no other point beats in one rate with no less of the other.
    """
    curves = _curves(speeds)
    if not curves:
        return None
    mine = [
        speed
        for curve in curves
        for speed in sorted(curve, key=lambda speed: speed.load.at_once or 0)
    ]
    points = np.array(
        [
            (round(speed.per_user or 0, 2), round(speed.figures[GENERATION].mean, 2))
            for speed in mine
        ]
    )
    beaten = _beaten(points)
    rows = _of_cells(
        mine,
        names,
        order=[speed.load.at_once for speed in mine],
        x=points[:, 0],
        value=points[:, 1],
        counts=~beaten,
    )
    heads: Heads = {
        "Line": ("line", str),
        "Users": ("order", "{:,}".format),
        "All users (tok/s)": ("value", _exactly),
        "Each user (tok/s)": ("x", _exactly),
        "Best choice": ("counts", lambda best: "yes" if best else "no"),
    }
    rows = telling(rows, heads)
    lines = list(dict.fromkeys(rows["line"]))
    drawn = lines[:MOST_LINES]
    called = told_apart([line.split(", ") for line in drawn])
    rows = rows.assign(kind=BOTH, label=_labels(points, beaten, rows["order"]))
    shown = rows[rows["line"].isin(drawn)]
    groups = shown["line"].map(dict(zip(drawn, called, strict=True)))
    first, most = mine[0], rows.iloc[int(rows["value"].argmax())]
    about = f"{first.machine}, {lengths_name(first.load)} ({first.load.tool}); users beside each point."
    return Figure(
        key=f"users-of-{model.slug}",
        title="How many users can it serve?",
        says=(
            f"Most measured: {rounded(most['value'])} tok/s in all, with {counted(most['order'], 'user')} "
            f"at {rounded(most['x'])} tok/s each ({most['line']})."
        ),
        chart=chart(
            shapes.lines,
            shown.assign(group=groups),
            across="Speed for each user (tok/s)",
            up="All users (tok/s)",
            groups=called if len(called) > 1 else (),
            legend="Recipe",
        ),
        table=[*rows["tip"]],
        sample=f"{about} {drawn_of(len(drawn), len(lines), 'lines')}".strip(),
        note="Filled: no other point of the model gives both more.",
    )


def _curves(speeds: Sequence[Speed]) -> Sequence[Sequence[Speed]]:
    """The speeds of each set-up with several numbers of users, for one tool and lengths: those of lines that show a
    shape, then those nearest to a usual request, then those of most set-ups."""
    closed = [
        speed
        for speed in speeds
        if speed.load.at_once and speed.load.request_rate is None
        if speed.per_user and GENERATION in speed.figures
    ]
    by_load = grouped(closed, lambda speed: (speed.load.tool, lengths_name(speed.load)))
    choices = []
    for same in by_load.values():
        by_setup = grouped(same, lambda speed: speed.setup).values()
        curves = [mine for mine in by_setup if len(mine) > 1]
        if curves:
            is_short = max(map(len, curves)) < FEWEST
            usual = ONE.distance(replace(same[0].load, at_once=1))
            choices.append((is_short, usual, -len(curves), curves))
    return min(choices, key=lambda choice: choice[:3])[-1] if choices else []


def _beaten(points: Floats) -> NDArray[np.bool_]:
    """Whether another point has more in one column, and no less in any."""
    ahead = points - points[:, None]
    is_better = (ahead >= 0).all(axis=2) & (ahead > 0).any(axis=2)
    found: NDArray[np.bool_] = np.any(is_better, axis=1)
    return found


def _labels(
    points: Floats, beaten: NDArray[np.bool_], users: "pd.Series[int]"
) -> "pd.Series[Any]":
    """The number of users of each point, or nothing where another's has the place, of which those on the front have
    theirs first."""
    places, labels = points / points.max(axis=0), dict[int, str]()
    for at in np.argsort(beaten, kind="stable"):
        if all(abs(places[at] - places[other]).max() >= NEAR for other in labels):
            labels[at] = f"{users[at]:,}"
    return pd.Series(labels, dtype=object)


def _exactly(rate: float) -> str:
    return rounded(rate, 4)


def _of_cells(
    speeds: Sequence[Speed], names: Mapping[Setup, str], **known: Any
) -> pd.DataFrame:
    """The cell of each speed, what its set-up is called as `line`, and what else is known of each."""
    rows = pd.DataFrame([speed.cell for speed in speeds], columns=KEYS)
    return rows.assign(line=[names[speed.setup] for speed in speeds], **known)


# ---- Context ---------------------------------------------------------------------------------------------------------


APART = ("llama-bench",)
"""Tools that measure prompts and answers apart: before an answer stands the depth alone."""
DECODE, FIRST = "Decode speed, one user (tok/s)", "First token (s)"


def context_of_model(
    model: ModelName, speeds: Sequence[Speed], names: Mapping[Setup, str]
) -> Figure | None:
    """How fast one user gets tokens, and how late the first, the more tokens stand before the answer: a line for each
    set-up, of the tool that measured most. None for fewer than three lengths. `speeds` are of one machine."""
    known = [speed for speed in speeds if shows_context(speed)]
    of_one_line = grouped(known, lambda speed: (speed.load.tool, speed.setup)).values()
    curves = [mine for mine in of_one_line if len(mine) >= FEWEST]
    if not curves:
        return None
    tool = max(curves, key=len)[0].load.tool
    mine = [speed for curve in curves for speed in curve if speed.load.tool == tool]
    points = _of_cells(
        mine,
        names,
        x=[before(speed) for speed in mine],
        answer=[speed.load.output_tokens for speed in mine],
        decode=[decode(speed) for speed in mine],
        first=[first_token(speed) for speed in mine],
        n=[len(speed.records) for speed in mine],
    )
    points = points.sort_values(["x", "decode"], ascending=[True, False])
    heads: Heads = {
        "Recipe": ("line", str),
        "Tokens before the answer": ("x", "{:,}".format),
        "Tokens of the answer": ("answer", "{:,}".format),
        DECODE: ("decode", rounded),
        FIRST: ("first", rounded),
        "n": ("n", str),
    }
    points = telling(points, heads)
    best = points.drop_duplicates("line", keep="last")
    best = best.sort_values(["x", "decode"], ascending=False).head(MOST_LINES)
    shown = points[points["line"].isin(best["line"])].assign(group=points["line"])
    panels = [
        shown.assign(panel=panel, value=shown[name]).dropna(subset="value")
        for panel, name in ((DECODE, "decode"), (FIRST, "first"))
    ]
    # In the order of the set-ups, as on the other charts of the page: a recipe keeps its colour.
    several = [name for name in names.values() if name in set(best["line"])]
    return Figure(
        key=f"context-of-{model.slug}",
        title="What does a long context cost?",
        says=said.context(points[points["line"] == best["line"].iloc[0]]),
        chart=chart(
            shapes.lines,
            pd.concat(panels).assign(kind=BOTH),
            across="Tokens before the answer",
            up="",
            groups=several if len(several) > 1 else [],
            legend="Recipe",
            ticks=sorted(map(float, shown["x"].unique())),
        ),
        table=[*points["tip"]],
        sample=f"{mine[0].machine}, {mine[0].load.tool}.",
        note="Answers are no longer than what stands before them.",
    )


def shows_context(speed: Speed) -> bool:
    """Whether one user was alone, the time of an answer is known without that of its prompt, and it is no longer than
    what stands before it."""
    load = speed.load
    is_alone = load.at_once == 1 and load.request_rate is None and not speed.cached
    is_known = decode(speed) is not None and speed.is_ranked(GENERATION)
    before = load.depth + (load.input_tokens or 0)
    return is_alone and is_known and 0 < (load.output_tokens or 0) <= before


def before(speed: Speed) -> int:
    """The tokens that stand before an answer."""
    prompt = 0 if speed.load.tool in APART else speed.load.input_tokens or 0
    return speed.load.depth + prompt


def decode(speed: Speed) -> float | None:
    """Tokens per second of an answer once it has begun: by the time of a token, else as a tool tells it that measures
    prompts and answers apart."""
    token_ms = speed.mean("tpot_mean_ms", "tpot_p50_ms")
    if token_ms:
        return MILLISECONDS / token_ms
    return speed.mean(GENERATION) if PROMPT in speed.figures else None


def first_token(speed: Speed) -> float | None:
    """Seconds to the first token."""
    wait_ms = speed.mean("ttft_p50_ms", "ttft_mean_ms")
    return wait_ms / MILLISECONDS if wait_ms else None


# ---- Versions --------------------------------------------------------------------------------------------------------


def versions_of_model(
    model: ModelName, lines: Sequence[VersionLine], names: Names
) -> Figure | None:
    """What was measured more than once over versions and days: the change of each load from the first time to the last,
    in per cent; None where nothing was."""
    if not lines:
        return None
    parts = []
    for line in lines:
        first = line.first
        place = names.called(first.campaign, "environment", first.cell[1])
        load = load_name(first.load).split(", ")
        parts.append((first.weights, *load, place, first.machine))
    rows = []
    for line, name, whole in zip(lines, told_apart(parts), parts, strict=True):
        points = [
            f"{rounded(mean_of(point).value)} ({day(point)}, {point.engine})"
            for point in line.points
        ]
        tip = {
            "Weights, load, place": ", ".join(whole),
            "Measured (tok/s)": " → ".join(points),
            "Set differently": line.differs,
            "Change": in_words(line.total),
        }
        value = line.total.value
        low, high = line.total.interval() or (value, value)
        verdict = "changed" if is_beyond_noise(line.total) else "not shown"
        row = {"name": name, "value": value, "low": low, "high": high}
        rows.append(row | {"verdict": verdict, "tip": tip})
    shown = rows[:MOST_LOADS]
    more = drawn_of(len(shown), len(rows), "loads")
    sample = (
        f"Lines are 95 % intervals, each by itself; filled: beyond the noise. {more}"
    )
    return Figure(
        key=f"versions-of-{model.slug}",
        title="Output throughput of one load, measured again",
        says=said.versions(lines),
        sample=sample.strip(),
        chart=chart(shapes.forest, shown, title="Change from the first (%)"),
        table=[row["tip"] for row in rows],
    )

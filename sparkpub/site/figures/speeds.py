"""Figures of speeds: of users of a campaign or of a model, of context and of versions of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

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
from sparkpub.review.sweeps import LOAD
from sparkpub.site.figures import said, shapes
from sparkpub.site.figures.campaign import MOST_LINES, drawn_of
from sparkpub.site.figures.figure import Figure, chart, table_of
from sparkpub.site.figures.others import FEWEST
from sparkpub.site.study import KEYS, StudiedCampaign, column, records

ONE = next(use for use in USES if use.key == "one")
NEAR = 0.06
"""Of both axes: a number beside a point nearer than this to another's would stand over it."""
MOST_LOADS = 12
"""Of a model in the chart of versions; the table has all."""
BESIDE, FILLED = (
    "beside each point.",
    "Filled: no other point of the model gives both more.",
)


# ---- Machine and user ------------------------------------------------------------------------------------------------


def users_of(campaign: StudiedCampaign) -> pd.DataFrame:
    """Every cell on a line of the load with a rate of each user: `line, order` (the load), `x` (a user's tok/s),
    `value` (the machine's), `front` (whether no cell of its model has more of both), `label`."""
    speeds = {
        speed.cell: speed
        for speed in campaign.site.speeds
        if speed.campaign == campaign.data.name and campaign.holds(*speed.cell)
    }
    rows = []
    for line, name in campaign.lines.items():
        points = [(at, speeds[cell]) for at, cell in line.points if cell in speeds]
        if line.axis is LOAD:
            of_line = [_rates(speed, name, at) for at, speed in points if _has(speed)]
            rows += of_line if len(of_line) > 1 else []
    if not rows:
        return pd.DataFrame()
    by_model = pd.DataFrame(rows).groupby("model", sort=False)
    return pd.concat([_with_front(mine) for _, mine in by_model])


def users(campaign: StudiedCampaign) -> Figure:
    """`pareto-front`: throughput of the machine against the speed of each user, along the load."""
    rows = users_of(campaign)
    line = next(line for line in campaign.lines if line.axis is LOAD)
    says = said.users(rows, line)
    return _users_figure(rows, "Line", says=says, sample=f"{line.title} {BESIDE}")


def users_of_model(
    model: ModelName, speeds: Sequence[Speed], names: Mapping[Setup, str]
) -> Figure | None:
    """A curve for each set-up over its users, for the tool and lengths nearest to a usual request; None where no set-up
    was measured with several numbers of users. `names` are those of the set-ups, `speeds` are of one machine."""
    closed = [
        speed
        for speed in speeds
        if _has(speed) and speed.load.at_once and speed.load.request_rate is None
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
    if not choices:
        return None
    *_, curves = min(choices, key=lambda choice: choice[:3])
    points = [
        _rates(speed, names[speed.setup], speed.load.at_once or 0)
        for mine in curves
        for speed in sorted(mine, key=lambda speed: speed.load.at_once or 0)
    ]
    rows, first = _with_front(pd.DataFrame(points)), curves[0][0]
    most = rows.iloc[int(rows["value"].argmax())]
    return _users_figure(
        rows,
        "Recipe",
        key=f"users-of-{model.slug}",
        title="How many users can it serve?",
        says=(
            f"Most measured: {rounded(most['value'])} tok/s in all, with {counted(most['order'], 'user')} "
            f"at {rounded(most['x'])} tok/s each ({most['line']})."
        ),
        sample=f"{first.machine}, {lengths_name(first.load)} ({first.load.tool}); users {BESIDE}",
    )


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
    points = pd.DataFrame(
        {
            "line": [names[speed.setup] for speed in mine],
            "x": [before(speed) for speed in mine],
            "answer": [speed.load.output_tokens for speed in mine],
            "decode": [decode(speed) for speed in mine],
            "first": [first_token(speed) for speed in mine],
            "n": [len(speed.records) for speed in mine],
        }
    )
    points[KEYS] = [speed.cell for speed in mine]
    points = points.sort_values(["x", "decode"], ascending=[True, False])
    best = points.drop_duplicates("line", keep="last")
    best = best.sort_values(["x", "decode"], ascending=False).head(MOST_LINES)
    told = [
        {
            "Recipe": row["line"],
            "Tokens before the answer": f"{row['x']:,}",
            "Tokens of the answer": f"{row['answer']:,}",
            DECODE: rounded(row["decode"]),
            FIRST: rounded(row["first"]) if row["first"] else "not measured",
            "n": str(row["n"]),
        }
        for row in records(points)
    ]
    points = points.assign(tip=column(points, told))
    shown = points[points["line"].isin(best["line"])].assign(group=points["line"])
    panels = [
        shown.assign(panel=panel, value=shown[name]).dropna(subset="value")
        for panel, name in ((DECODE, "decode"), (FIRST, "first"))
    ]
    means = pd.concat(panels).assign(kind="mean")
    # In the order of the set-ups, as on the other charts of the page: a recipe keeps its colour.
    several = [name for name in names.values() if name in set(best["line"])]
    return Figure(
        key=f"context-of-{model.slug}",
        title="What does a long context cost?",
        says=said.context(points[points["line"] == best["line"].iloc[0]]),
        chart=chart(
            shapes.lines,
            pd.concat([means, means.assign(kind="run")]),
            across="Tokens before the answer",
            up="",
            groups=several if len(several) > 1 else [],
            legend="Recipe",
            ticks=sorted(map(float, shown["x"].unique())),
        ),
        table=table_of(told),
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


def _has(speed: Speed) -> bool:
    """Whether both rates are known."""
    return GENERATION in speed.figures and bool(speed.per_user)


def _rates(speed: Speed, line: str, load: float) -> dict[str, Any]:
    """What all users together and what one of them gets under a load, in tok/s."""
    row: dict[str, Any] = dict(zip(KEYS, speed.cell, strict=True))
    row["value"] = round(float(speed.figures[GENERATION].mean), 2)
    row["x"] = round(speed.per_user or 0, 2)
    return row | {"line": line, "order": load}


def _with_front(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `front`: whether no other one gives more of one and no less of the other; `tip`; and `label`: the
    load, or nothing where another point's number has the place, of which those on the front have theirs first."""
    x, value = rows["x"].to_numpy(), rows["value"].to_numpy()
    told, front = [], []
    for row in records(rows):
        as_good = (x >= row["x"]) & (value >= row["value"])
        better = (x > row["x"]) | (value > row["value"])
        front.append(not (as_good & better).any())
        told.append(
            {
                "Line": row["line"],
                "Users": f"{row['order']:,g}",
                "All users (tok/s)": rounded(row["value"], 4),
                "Each user (tok/s)": rounded(row["x"], 4),
                "Best choice": "yes" if front[-1] else "no",
            }
        )
    places = (rows[["x", "value"]] / rows[["x", "value"]].max()).to_numpy()
    labels: dict[int, str] = {}
    for at in sorted(range(len(rows)), key=lambda at: not front[at]):
        if all(abs(places[at] - places[other]).max() >= NEAR for other in labels):
            labels[at] = told[at]["Users"]
    label = column(rows, map(labels.get, range(len(rows))))
    return rows.assign(front=front, label=label, tip=column(rows, told))


def _users_figure(rows: pd.DataFrame, legend: str, sample: str, **words: Any) -> Figure:
    """Rows with their front as lines along the load; `words` are what else the figure says."""
    every = list(dict.fromkeys(rows["line"]))
    lines = every[:MOST_LINES]
    more = drawn_of(len(lines), len(every), "lines")
    called = told_apart([line.split(", ") for line in lines])
    shown = rows[rows["line"].isin(lines)].assign(kind="mean")
    shown["group"] = shown["line"].map(dict(zip(lines, called, strict=True)))
    points = shown.drop(columns="label").assign(kind="run", counts=shown["front"])
    drawn = chart(
        shapes.lines,
        pd.concat([shown, points]),
        across="Speed for each user (tok/s)",
        up="All users (tok/s)",
        groups=called if len(called) > 1 else (),
        legend=legend,
    )
    return Figure(
        chart=drawn,
        table=table_of(list(rows["tip"])),
        sample=f"{sample} {more}".strip(),
        note=FILLED,
        **words,
    )


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
        table=table_of([row["tip"] for row in rows]),
    )

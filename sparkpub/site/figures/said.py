"""What figures say in a sentence: how far, in which direction, of how many, and what is not known."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.record.text import (
    SPACE,
    between,
    counted,
    percent,
    rounded,
    span,
)
from sparkpub.review.models import LARGE, is_large
from sparkpub.review.names import in_environment, runs_of
from sparkpub.review.progress import VersionLine, beyond_noise, in_words
from sparkpub.review.statistics.estimate import ALPHA, t_quantile
from sparkpub.review.statistics.growth import LEVEL_PERCENT, Growth, growth
from sparkpub.review.sweeps import SHOWS_A_SHAPE, Axis, Line
from sparkpub.review.tables.capacities import LIMITS, NOT_RANKED, TOLD_SECONDS
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences
from sparkpub.site.study import StudiedCampaign

CLOSE = 0.1
"""In per cent: runs that all lie nearer to the mean than this are not told apart."""
MOST_NAMED = 4
"""Builds that the sentence on capacity names one by one."""


# ---- Growth along a line ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A metric along a line of a sweep: the statistics of its cells with a mean, by rising value."""

    line: Line
    name: str
    cells: tuple[tuple[float, TableRow], ...]

    @property
    def growth(self) -> Growth:
        """How the means grow."""
        points = [(value, cell.mean) for value, cell in self.cells]
        return growth(points, repeated=all(cell.n > 1 for _, cell in self.cells))

    def last(self) -> float:
        """The mean at the largest value."""
        return float(self.cells[-1][1].mean)

    @property
    def knee(self) -> float | None:
        """The value at the knee, where there is one."""
        place = self.growth.knee
        return None if place is None else self.cells[place][0]


def curves(campaign: StudiedCampaign, axis: Axis, metric: Metric) -> list[Curve]:
    """The lines of an axis along which a metric has two means or more: those with a shape first, then those of
    large models, the best first."""
    statistics = {cell.cell: cell for cell in campaign.statistics(metric)}
    found = []
    for line, name in campaign.lines.items():
        points = [(at, statistics.get(cell)) for at, cell in line.points]
        cells = tuple((at, cell) for at, cell in points if cell is not None)
        if line.axis is axis and len(cells) > 1:
            found.append(Curve(line, name, cells))
    sign = 1 if metric.direction == "lower" else -1

    def place(curve: Curve) -> tuple[bool, bool, float]:
        is_short = len(curve.cells) < SHOWS_A_SHAPE
        return is_short, not is_large(curve.name), sign * curve.last()

    return sorted(found, key=place)


def growing(metric: Metric, found: Sequence[Curve]) -> str:
    """`Output throughput grows from concurrency 1 to 8: 100 to 440 tok/s; the knee is at 4.` Of several lines how many
    do the same, and how far the farthest of them gets."""
    line = found[0].line
    shapes = [curve.growth.shape for curve in found]
    shape = max(shapes, key=shapes.count)
    verb: str = shape
    if shape == "level":
        verb = f"changes by less than {LEVEL_PERCENT:g}{SPACE}%"
    if len(found) == 1:
        (begin, low), *_, (end, high) = found[0].growth.points
        values = f"{metric.rounded(low, unit=False)} to {metric.rounded(high)}"
        text = f"from {line.place(begin)} to {end:,g}: {values}"
        if found[0].knee is not None:
            text += f"; the knee is at {found[0].knee:,g}"
        return f"{metric.subject} {verb} {text}."
    alike = [curve for curve in found if curve.growth.shape == shape]
    text = f"with {line.word} on {len(alike)} of {len(found)} lines"
    if shape != "level":
        farthest, way = (max, "up") if shape == "grows" else (min, "down")
        large = [curve for curve in alike if is_large(curve.name)]
        best = farthest(large or alike, key=Curve.last)
        size = f" from {LARGE}B up" if 0 < len(large) < len(alike) else ""
        text += f", {way} to {metric.told(best.last())}{size} ({best.name})"
    return f"{metric.subject} {verb} {text}."


# ---- Differences -----------------------------------------------------------------------------------------------------


def verdicts(rows: pd.DataFrame, baseline: str, margin: float) -> str:
    """`12 differences from native: 9 equal within ±1 %, 3 not clear (at most 2.4 %).`"""
    open_ends = rows.loc[rows["verdict"] == "undecided", ["low", "high"]]
    farthest = open_ends.abs().to_numpy().max(initial=0.0)
    told = []
    for verdict, number in Counter(rows["verdict"]).most_common():
        words = sentences.verdict_words(verdict, margin)
        bound = f" ({sentences.at_most(farthest)})" if verdict == "undecided" else ""
        told.append(f"{number} {words}{bound}")
    differences = counted(len(rows), "difference")
    return f"{differences} from {runs_of(baseline)}: {', '.join(told)}."


def farthest(rows: pd.DataFrame, baseline: str) -> str:
    """How far the farthest run lies from the mean of the baseline, in per cent."""
    if rows.empty:
        return f"None of these runs is compared with {runs_of(baseline)}."
    far = percent(max(rows["value"].abs().max(), CLOSE)).lstrip("+")
    return f"Every run is within {far} of the mean measured {in_environment(baseline)}."


_REPLICATIONS = {
    "replicates": "replicated",
    "does not replicate": "not replicated",
    "undecided": "undecided",
}
"""What machines show together, and how a sentence says it."""


def replication(rows: Sequence[TableRow], sessions: Collection[Any]) -> str:
    """`3 comparisons over 2 machines: 1 replicated, 2 undecided (at most 3.2 %).` `rows` are those over all of the
    sessions."""
    parts: list[str] = []
    for word, said in _REPLICATIONS.items():
        mine = [row for row in rows if row.replication == word]
        bound = ""
        if word == "undecided" and mine and all(row.ci95_effect for row in mine):
            bound = f" ({sentences.at_most(max(map(_bound, mine)))})"
        if mine:
            parts.append(f"{len(mine)} {said}{bound}")
    number = max(row.machines for row in rows)
    on = counted(number, "machine" if len(sessions) == number else "session")
    return f"{counted(len(rows), 'comparison')} over {on}: {', '.join(parts)}."


def _bound(row: TableRow) -> float:
    """The farther end of the 90 % interval, of which each end is a bound of its side as everywhere; the lines are the
    wider ones at 95 %."""
    low, high = row.ci95_effect
    df = row.machines - 1
    narrower = t_quantile(1 - ALPHA, df) / t_quantile(1 - ALPHA / 2, df)
    far: float = abs(row.effect) + narrower * (high - low) / 2
    return far


# ---- Order, capacity, coverage, versions ----------------------------------------------------------------------------


def drifting(cells: Sequence[TableRow]) -> list[TableRow]:
    """Those of these cells that drift with run order."""
    tested = [cell for cell in cells if cell.trend_p_adjusted is not None]
    return [cell for cell in tested if cell.trend_p_adjusted < ALPHA]


def drift(campaign: StudiedCampaign, metric: Metric) -> str:
    """The cells that drift, or in how many runs no drift is seen; empty where none was tested."""
    cells = campaign.statistics(metric)
    tested = [cell for cell in cells if cell.trend_p_adjusted is not None]
    if not tested:
        return ""
    test = "Mann-Kendall over the runs in the figures, adjusted"
    of = counted(len(tested), "cell")
    found = [campaign.cells_here[cell.cell] for cell in drifting(cells)]
    if found:
        return f"{metric.label} drifts with run order in {len(found)} of {of} ({test}): {'; '.join(found)}."
    runs = f"{span([str(n) for n in sorted({cell.n for cell in tested})])} runs of {of}"
    return f"No trend of {metric.within_sentence} is seen in {runs} ({test})."


def capacity(rows: pd.DataFrame) -> str:
    """What the table of capacities shows: `4 of 37 builds kept up with 1 request/s, the highest rate tried; …`. Empty
    where there are none."""
    rows = rows[rows["limit_seconds"] == TOLD_SECONDS]
    if rows.empty:
        return ""
    if len(rows) <= MOST_NAMED:
        each = "; ".join(rows["name"] + " " + rows["text"].astype(str))
        return f"Requests a second with {LIMITS}: {each}."
    # A sweep that ended early, as where a server stopped, bears what it reached and no more is known.
    highest = rows["highest"].max()
    is_ranked = rows["text"] != NOT_RANKED
    held = is_ranked & rows["at_least"]
    reached = (held & (rows["highest"] == highest)).sum()
    none = (is_ranked & rows["rate"].isna()).sum()
    others = {
        "with all of a shorter sweep": held.sum() - reached,
        "with a lower one": (is_ranked & ~held).sum() - none,
        "with none": none,
        "not ranked, whose answers had another length": (~is_ranked).sum(),
    }
    told = [
        f"{reached} of {counted(len(rows), 'build')} kept up with {_rate(highest)}, the highest rate tried",
        *(f"{number} {words}" for words, number in others.items() if number),
    ]
    return f"{'; '.join(told)}."


def _rate(value: float) -> str:
    """`1 request/s`, `0.5 requests/s`."""
    return f"{value:g} {'request' if value == 1 else 'requests'}/s"


def coverage(states: Mapping[str, int]) -> str:
    """`All 100 runs done.`, `Of 100 runs: 98 done, 2 failed.`"""
    runs = counted(sum(states.values()), "run")
    told = [(number, state) for state, number in states.items() if number]
    if len(told) == 1:
        return f"All {runs} {told[0][1]}."
    return f"Of {runs}: {', '.join(f'{number} {state}' for number, state in told)}."


def versions(lines: Sequence[VersionLine]) -> str:
    """One load: how it changed, from which engine to which. Several: `10 of 30 loads changed beyond the noise of their
    runs, by −6.9 to +1.7 %.`, after a correction for their number."""
    if len(lines) == 1:
        (line,) = lines
        engines = dict.fromkeys((line.first.engine, line.points[-1].engine))
        return f"{' → '.join(engines)}: {in_words(line.total)}."
    loads, beyond = counted(len(lines), "load"), beyond_noise(lines)
    changes = [line.total.value for line in beyond or lines]
    ends = between(min(changes), max(changes), 1, signed=True)
    if all(line.total.interval() is None for line in lines):
        return (
            f"{loads}, {ends}{SPACE}%: too few runs to tell a change from their noise."
        )
    if not beyond:
        return f"None of {loads} is shown to change ({ends}{SPACE}% measured; Holm)."
    return f"{len(beyond)} of {loads} changed beyond the noise of their runs (Holm), by {ends}{SPACE}%."


def context(points: pd.DataFrame) -> str:
    """`One user gets 63.1 tok/s after 1,024 tokens, the first in 0.43 s, and 61.5 tok/s after 25,000, the first in
    3.6 s (NVFP4).` of the points of one line."""
    parts: list[str] = []
    for _, end in points.iloc[[0, -1]].iterrows():
        part = f"{rounded(end['decode'])} tok/s after {end['x']:,}{'' if parts else ' tokens'}"
        if not pd.isna(end["first"]):
            part += f", the first in {rounded(end['first'], 2)}{SPACE}s"
        parts.append(part)
    return f"One user gets {', and '.join(parts)} ({points['line'].iloc[0]})."

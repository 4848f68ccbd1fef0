"""What figures say in a sentence: how far, in which direction, of how many, and what is not known."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf

import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.record.text import (
    SPACE,
    between,
    counted,
    extent,
    listed,
    percent,
    rounded,
    spread,
    with_unit,
)
from sparkpub.review.names import in_environment, runs_of
from sparkpub.review.progress import VersionLine, beyond_noise, in_words
from sparkpub.review.statistics.estimate import ALPHA, t_quantile
from sparkpub.review.statistics.growth import LEVEL_PERCENT, Growth, Shape, growth
from sparkpub.review.statistics.series import detectable_change
from sparkpub.review.tables.capacities import LIMITS, NOT_RANKED, TOLD_SECONDS
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences, sweeps
from sparkpub.site.study import StudiedCampaign, records
from sparkpub.site.sweeps import Axis, Line

FOLD = 2
"""From this factor on growth is told in multiples, below in per cent."""
CLOSE = 0.1
"""In per cent: runs that all lie nearer to the mean than this are not told apart."""
MOST_NAMED = 4
"""Builds that the sentence on capacity names one by one."""
VERBS: dict[Shape, str] = {
    "level": f"changes by less than {LEVEL_PERCENT:g}{SPACE}%",
    "grows": "grows",
    "falls": "falls",
}
"""Of both ends of a line, which nothing tests."""


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

    @property
    def knee(self) -> float | None:
        """The value at the knee, where there is one."""
        place = self.growth.knee
        return None if place is None else self.cells[place][0]

    @property
    def last(self) -> float:
        """The mean at the largest value."""
        return float(self.cells[-1][1].mean)


def curves(
    campaign: StudiedCampaign,
    axis: Axis,
    metric: Metric,
) -> list[Curve]:
    """The lines of an axis along which a metric has two means or more: those with a shape first, the best first."""
    statistics = {cell.cell: cell for cell in campaign.statistics(metric)}
    found = []
    for line, name in campaign.lines.items():
        cells = [
            (at, statistics[cell]) for at, cell in line.points if cell in statistics
        ]
        if line.axis is axis and len(cells) > 1:
            found.append(Curve(line, name, tuple(cells)))
    found.sort(
        key=lambda curve: curve.last,
        reverse=metric.direction != "lower",
    )
    return sorted(found, key=lambda curve: len(curve.cells) < sweeps.SHOWS_A_SHAPE)


def growing(metric: Metric, found: Sequence[Curve]) -> str:
    """The shape and the knee of one line in at most 20 words; of several, how many have which shape."""
    if len(found) > 1:
        return _several(metric, found)
    (curve,) = found
    line, grown = curve.line, curve.growth
    (first, low), (last, high) = grown.points[0], grown.points[-1]
    begins, ends = (metric.rounded(value, unit=False) for value in (low, high))
    if grown.knee is None:
        along = f"from {line.place(first)} to {last:,g}"
        return f"{metric.subject} {_verb(grown)} {along}: {begins} to {with_unit(ends, metric.unit)}."
    at, there = grown.points[grown.knee]
    shape, level = grown.shape_before_knee, metric.rounded(there)
    how = f"{VERBS[shape]} from {begins} to {level} at"
    if shape == "level":
        how = f"stays near {level} up to"
    return (
        f"{metric.subject} {how} {line.place(at)} (the knee), then {ends} at {last:,g}."
    )


def _verb(grown: Growth) -> str:
    """What a line without a knee does."""
    verb = VERBS[grown.shape]
    if grown.shape == "level" or grown.factor is None:
        return verb
    if grown.factor >= FOLD:
        return f"{verb} {rounded(grown.factor, 2)}-fold"
    share = percent(abs(100 * (grown.factor - 1)), 0).lstrip("+")
    return f"{verb} by {share}"


def _several(metric: Metric, found: Sequence[Curve]) -> str:
    """The shape that most lines have."""
    shapes = [curve.growth.shape for curve in found]
    shape = max(shapes, key=shapes.count)
    alike = [curve for curve in found if curve.growth.shape == shape]
    along = f"with {found[0].line.word}"
    text, end = f"{metric.subject} {VERBS[shape]}", "."
    if len(alike) < len(found):
        others = len(found) - len(alike)
        end = f", but not on {others} of {counted(len(found), 'line')}."
    factors = sorted(
        factor for curve in alike if (factor := curve.growth.factor) is not None
    )
    if shape == "level" or not factors:
        return f"{text} {along}{end}"
    if factors[-1] < FOLD:
        shares = sorted(abs(100 * (factor - 1)) for factor in factors)
        by = spread([between(shares[0], shares[-1], 0)], "%")
        return f"{text} by {by} {along}{end}"
    fold = f"{extent(factors).replace(' to ', '- to ')}-fold"
    most = max(alike, key=lambda curve: curve.last)
    return f"{text} {fold} {along}, up to {metric.told(most.last)} ({most.name}){end}"


# ---- Differences -----------------------------------------------------------------------------------------------------


def verdicts(
    rows: pd.DataFrame,
    baseline: str,
    margin: float,
) -> str:
    """`12 differences from native: 9 within ±1 % and 3 at most 2.4 %.`"""
    undecided = rows[rows["verdict"] == "undecided"]
    farthest = undecided[["low", "high"]].abs().max().max()
    words = {
        "equivalent": f"within ±{margin:g}{SPACE}%",
        "undecided": sentences.at_most(0 if pd.isna(farthest) else farthest),
        "confounded": "perhaps due to time",
    }
    numbers = Counter(rows["verdict"]).most_common()
    told = [(number, words.get(verdict, verdict)) for verdict, number in numbers]
    against = runs_of(baseline)
    if len(rows) == 1:
        return f"The difference from {against} is {told[0][1]}."
    if len(told) == 1:
        return f"All {len(rows)} differences from {against} are {told[0][1]}."
    counts = listed(f"{number} {said}" for number, said in told)
    return f"{len(rows)} differences from {against}: {counts}."


def levels(rows: pd.DataFrame) -> str:
    """`90 % intervals`, and which are at 95 % where some are: a bound needs one side of an interval only."""
    found = sorted(set(rows["level"]))
    more = f" ({found[-1]} % for higher and lower)" if len(found) > 1 else ""
    return f"{found[0]} % intervals{more}"


def farthest(rows: pd.DataFrame, baseline: str) -> str:
    """How far the farthest run lies from the mean of the baseline, in per cent, and where that is."""
    if rows.empty:
        return f"None of these runs is compared with {runs_of(baseline)}."
    several = rows["workload"].nunique() > 1
    parts = rows["Model"] + (" (" + rows["Load"] + ")" if several else "")
    distances = rows["value"].abs().groupby(parts, sort=False).max()
    most, part = distances.max(), distances.idxmax()
    far = percent(max(most, CLOSE)).lstrip("+")
    text = f"Every run is within {far} of the mean measured {in_environment(baseline)}"
    if len(distances) > 1 and most > CLOSE:
        text += f"; the farthest is of {part}"
    return f"{text}."


_REPEATS = {
    "replicates": ("replicates", "replicate"),
    "does not replicate": ("does not replicate", "do not replicate"),
    "undecided": ("differs", "differ"),
}
"""What machines show together: of one comparison and of several."""


def replication(
    rows: pd.DataFrame,
    metrics: Mapping[str, str],
    sessions: int,
) -> str:
    """`Over 2 machines, 1 comparison replicates (median time per output token), and 2 comparisons differ by at most
    3.2 % (output throughput and request latency; undecided).`

    `rows` are those over all machines, `metrics` has each metric as it stands within a sentence, `sessions` is how many
    machines were measured.
    """
    most = int(rows["machines"].max())
    parts = []
    for word, (verb, several) in _REPEATS.items():
        mine = rows[rows["replication"] == word]
        if mine.empty:
            continue
        text = (
            f"{counted(len(mine), 'comparison')} {verb if len(mine) == 1 else several}"
        )
        named = dict.fromkeys(metrics[name] for name in mine["metric"])
        behind = [listed(named)] if len(named) <= sentences.MOST_NAMES else []
        if word == "undecided":
            text += f" by {_bound(mine)}"
            behind.append(word)
        parts.append(f"{text} ({'; '.join(behind)})" if behind else text)
    what = "machine" if sessions == most else "session"
    return f"Over {counted(most, what)}, {listed(parts)}."


def _bound(rows: pd.DataFrame) -> str:
    """`at most 3.2 %`: the farthest end of the 90 % intervals, of which each end is a bound of its side as everywhere;
    the lines are the wider ones at 95 %."""
    if rows["low"].isna().any():
        return "an amount for which these are too few runs"
    ends = []
    for row in records(rows):
        df = row["machines"] - 1
        narrower = t_quantile(1 - ALPHA, df) / t_quantile(1 - ALPHA / 2, df)
        ends.append(abs(row["value"]) + narrower * (row["high"] - row["low"]) / 2)
    return sentences.at_most(max(ends))


# ---- Order, capacity, coverage, users --------------------------------------------------------------------------------


def drifting(cells: Sequence[TableRow]) -> list[TableRow]:
    """Those of these cells that drift with run order."""
    tested = [cell for cell in cells if cell.trend_p_adjusted is not None]
    return [cell for cell in tested if cell.trend_p_adjusted < ALPHA]


def drift(campaign: StudiedCampaign, metric: Metric) -> str:
    """The cells that drift, or what change would have been seen; empty where none was tested."""
    cells = campaign.statistics(metric)
    tested = [cell for cell in cells if cell.trend_p_adjusted is not None]
    if not tested:
        return ""
    test = "Mann-Kendall over the runs in the figures, adjusted"
    found = [
        " · ".join(campaign.names.cell(cell.campaign, cell.cell))
        for cell in drifting(cells)
    ]
    if found:
        of_all = f"{len(found)} of {counted(len(tested), 'cell')}"
        return f"{metric.label} drifts with run order in {of_all} ({test}): {'; '.join(found)}."
    fewest, most = min(cell.n for cell in tested), max(cell.n for cell in tested)
    runs = f"{most} runs" if fewest == most else f"{fewest} to {most} runs"
    if len(tested) > 1:
        runs += f" of {counted(len(tested), 'cell')}"
    return f"No trend of {metric.within_sentence} is seen in {runs}; {_unseen(campaign, tested)} ({test})."


def _unseen(campaign: StudiedCampaign, cells: Sequence[TableRow]) -> str:
    """What change over a campaign would have been seen: a test that sees nothing says no more than that. The p-values
    are corrected for the number of trends that were tested in the campaign."""
    table = campaign.site.results.cells
    tests = table.loc[
        table["campaign"] == campaign.data.name, "trend_p_adjusted"
    ].count()
    changes = [
        detectable_change(cell.n, cell.sd, ALPHA / tests) / cell.mean
        for cell in cells
        if cell.n > 2 and cell.mean > 0
    ]
    largest = 100 * max(changes, default=inf)
    if isinf(largest):
        return "some are too few to show any"
    return f"a change of {largest:.2g} % from the first to the last run usually would have been"


def capacity(rows: pd.DataFrame) -> str:
    """What the table of capacities shows: `4 of 37 builds keep … at every rate up to 1.0 a second, 2 as far as theirs
    were measured, 12 up to a lower one, 18 at none. 1 is not ranked.` Empty where there are none."""
    rows = rows[rows["limit_seconds"] == TOLD_SECONDS]
    if rows.empty:
        return ""
    if len(rows) <= MOST_NAMED:
        each = "; ".join(rows["name"] + " " + rows["text"].astype(str))
        return f"Requests a second with {LIMITS}: {each}."
    ranked = rows[rows["text"] != NOT_RANKED]
    open_ended = ranked[ranked["at_least"]]
    none = (ranked["rate"].fillna(0) == 0).sum()
    # A sweep that ended early, as where a server stopped, bears what it reached and no more is known.
    highest = rows["highest"].max()
    to_the_end = (open_ended["highest"] == highest).sum()
    short = len(open_ended) - to_the_end
    ended = f"{short} as far as theirs were measured, " if short else ""
    text = (
        f"{to_the_end} of {counted(len(rows), 'build')} keep {LIMITS} at every rate up to {highest} a second, {ended}"
        f"{len(ranked) - len(open_ended) - none} up to a lower one, {none} at none."
    )
    if len(ranked) < len(rows):
        text += f" {len(rows) - len(ranked)} not ranked: the answers at some rates had another length than asked for."
    return text


def coverage(states: Sequence[str]) -> str:
    """`All 100 runs done.`, `Of 100 runs: 98 done, 2 failed.`"""
    runs, numbers = counted(len(states), "run"), Counter(states)
    if len(numbers) == 1:
        return f"All {runs} {states[0]}."
    told = ", ".join(f"{number} {state}" for state, number in numbers.items())
    return f"Of {runs}: {told}."


def users(rows: pd.DataFrame, line: Line) -> str:
    """One line: both rates at the knee and at the end. Several: how many points are best choices."""
    if rows["line"].nunique() > 1:
        of = of_its_model(rows)
        return (
            f"{rows['front'].sum()} of {counted(len(rows), 'point')} are best choices: no other{of} gives both machine "
            "and user more."
        )
    ordered = rows.sort_values("order")
    points = list(zip(ordered["order"], ordered["value"], strict=True))
    knee = growth(points, repeated=bool((ordered["n"] > 1).all())).knee
    first, last = ordered.iloc[knee or 0], ordered.iloc[-1]
    mark = "" if knee is None else " (the knee)"
    return (
        f"At {line.place(first['order'])}{mark}, the machine generates {rounded(first['value'])} tok/s "
        f"and each user gets {rounded(first['x'])}; "
        f"at {last['order']:,g}, {rounded(last['value'])} and {rounded(last['x'])}."
    )


def of_its_model(rows: pd.DataFrame) -> str:
    """Among which points one is the best choice: those of its model, where there are several."""
    return " of its model" if rows["model"].nunique() > 1 else ""


def versions(lines: Sequence[VersionLine]) -> str:
    """`10 of 30 loads changed beyond the noise of their runs, by −6.9 to +1.7 %.`, after a correction for their number;
    the range alone where the runs are too few to know their noise."""
    if len(lines) == 1:
        (line,) = lines
        engines = [point.speed.engine for point in (line.points[0], line.points[-1])]
        what = f"From {engines[0]} to {engines[1]}"
        if engines[0] == engines[1]:
            what = f"{engines[0]}, measured again"
        return f"{what}: {in_words(line.total)}."
    loads = counted(len(lines), "load")
    if all(line.total.interval() is None for line in lines):
        return (
            f"{loads}, {_range(lines)}: too few runs to tell a change from their noise."
        )
    beyond = beyond_noise(lines)
    if not beyond:
        return f"None of {loads} is shown to change ({_range(lines)} measured; Holm)."
    return f"{len(beyond)} of {loads} changed beyond the noise of their runs (Holm), by {_range(beyond)}."


def _range(lines: Sequence[VersionLine]) -> str:
    """`−6.9 to +1.7 %`: the smallest and the largest change."""
    changes = [line.total.value for line in lines]
    return spread(
        [
            between(
                min(changes),
                max(changes),
                1,
                signed=True,
            )
        ],
        "%",
    )

"""What a statistic of the vocabulary is of some runs: its value with the 95 % interval, and how a reader is told.

ask("mean", Question(choose(reviewed, model=["7b"]), "ttft_p50_ms")).text()      # "208.4 ms"
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.text import (
    NOT_AVAILABLE,
    counted,
    extent,
    number,
    outward,
    p_text,
    span,
    with_unit,
)
from sparkpub.review.claims.chosen import Chosen, split
from sparkpub.review.reviewed import Cell, Include, ReviewedCampaign
from sparkpub.review.statistics.estimate import Interval, over
from sparkpub.review.statistics.series import least_squares, trends
from sparkpub.review.tables.cells import levelled, rows_with_values, summary
from sparkpub.review.tables.column import TableRow, groups, rows, texts
from sparkpub.review.tables.comparisons import Margin, compare
from sparkpub.review.tables.over import of_cells
from sparkpub.review.tables.runs import of_all
from sparkpub.review.vocabulary import Statistic, statistic_called

_ASKED_IN_A_ROW = 64
"""Answers that are kept: whoever asks for one figure of a group asks for the others next."""
_FINER = {"pooled_difference": 2}
"""Digits beyond the metric's own: many cells together know more than one."""
_TESTED = (
    "difference",
    "difference_percent",
    "ratio",
    "inverse_ratio",
    "equivalence_p",
)
"""Statistics that rest on what the runs of a comparison are worth."""
_ALONE = ("pooled_difference", "gap")
"""Comparisons that are not a column of one: of one campaign alone."""


@dataclass(frozen=True)
class Question:
    """What is asked: a metric (perhaps against a second one) over a group (perhaps against a baseline)."""

    group: Chosen
    metric: str = ""
    against: str = ""
    baseline: Chosen | None = None
    margin_percent: float = 1.0
    repeats: tuple["Question", ...] = ()
    """The same asked of campaigns that repeat this one: the answer is then about all of them together."""


@dataclass(frozen=True)
class Quantity:
    """An answer: value and 95 % interval, None where the data do not carry them, and how to show it."""

    statistic: Statistic
    metric: Metric | None
    value: float | None
    ci95: Interval | None = None
    df: float = 1.0
    """Degrees of freedom of the interval; where they are not known, too few."""
    n: tuple[int, ...] = ()
    """What the answer rests on: runs of each side, or rounds where sides were compared within rounds."""
    rests_on: str = ""
    """The same in words: `n = 7 and 6`, `6 rounds`, `2 machines: 6 rounds; 10 rounds`."""
    sessions: int = 1
    """Machines, or campaigns on one machine, that the answer is combined from."""
    worth: float = 0.0
    """How many independent runs each side, or the rounds, are worth; of several sessions the one with the fewest."""

    def text(self, decimals: int | None = None) -> str:
        """For a reader: `70.47 GiB`, `+30.83 GiB`, `43.7 %`, `p = 0.0002`."""
        if self.value is None:
            return NOT_AVAILABLE
        if decimals is None and self.metric is not None and self._is_of_one_run:
            return self.metric.told(self.value)
        return self.say(self.value, decimals)

    @property
    def _is_of_one_run(self) -> bool:
        """Whether it is what one run measured, of which nobody knows how far another may be."""
        return self.statistic.name == "mean" and self.n == (1,)

    def interval(self, decimals: int | None = None) -> str:
        """The 95 % interval for a reader: `29.55 to 32.11 GiB`."""
        if self.ci95 is None:
            return "no interval"
        return self.between(*self.ci95, decimals)

    def between(self, low: float, high: float, decimals: int | None = None) -> str:
        """From one number to another for a reader, rounded outwards."""
        if decimals is None and self._is_of_one_run and low != high:
            return with_unit(extent((low, high), 3), self.unit)
        ends = []
        for end, value in enumerate((low, high)):
            digits = self._digits(value) if decimals is None else decimals
            ends.append(self.say(outward(low, high, digits)[end], digits, unit=False))
        return with_unit(span(ends), self.unit)

    def say(
        self, value: float, decimals: int | None = None, *, unit: bool = True
    ) -> str:
        """A number in this quantity's unit and sign convention."""
        if self.statistic.unit == "p":
            return p_text(value)
        if decimals is None:
            decimals = self._digits(value)
        words = number(value, decimals, signed=self.statistic.signed)
        return with_unit(words, self.unit) if unit else words

    @property
    def unit(self) -> str:
        """The unit of the value, empty for a plain number."""
        if self.statistic.unit != "metric":
            return self.statistic.unit
        return "" if self.metric is None else self.metric.unit

    def _digits(self, value: float) -> int:
        if self.statistic.unit == "metric" and self.metric is not None:
            return self.metric.decimals + _FINER.get(self.statistic.name, 0)
        if self.statistic.unit == "%":
            return 1 if abs(value) >= 1 else 2
        return self.statistic.digits


def ask(name: str, question: Question) -> Quantity:
    """The answer. Raises ClaimError where the statistic is unknown or needs what the question does not have."""
    statistic = statistic_called(name)
    _refuse(statistic, question)
    value, interval, df = _ANSWERS[statistic.kind](statistic, question)
    metric = None
    if question.metric in question.group.metrics:
        metric = question.group.reviewed.campaign.metrics[question.metric]
    each = sessions(question) if _is_combined(statistic) else [question]
    bases = [_basis(statistic, session) for session in each or [question]]
    rests_on = "; ".join(words for _, words, _ in bases)
    if len(bases) > 1:
        rests_on = f"{_called(each)}: {rests_on}"
    return Quantity(
        statistic,
        metric,
        None if value is None else float(value),
        interval,
        df or 1.0,
        n=sum((n for n, _, _ in bases), ()),
        rests_on=rests_on,
        sessions=len(bases),
        worth=min(worth for _, _, worth in bases),
    )


def _refuse(statistic: Statistic, question: Question) -> None:
    """Raise ClaimError for a question that the statistic does not answer."""
    name, kind = statistic.name, statistic.kind
    if kind != "runs" and not question.metric:
        raise ClaimError(f"{name} needs a metric", remedy="name one")
    if (kind == "relation" or name == "gap") and not question.against:
        raise ClaimError(
            f"{name} relates two metrics", remedy="name the second one with against"
        )
    if (kind == "comparison") != (question.baseline is not None):
        need = (
            "two environments to compare" if kind == "comparison" else "no comparison"
        )
        raise ClaimError(
            f"{name} needs {need}",
            remedy="see the list of statistics on the method page",
        )
    if question.repeats and not _is_combined(statistic):
        raise ClaimError(
            f"{name} is not combined over campaigns", remedy="leave out repeated_in"
        )


def _is_combined(statistic: Statistic) -> bool:
    """Whether several machines and campaigns have one answer, in which each of them counts once."""
    is_column = statistic.kind in ("sample", "comparison")
    return is_column and statistic.name not in _ALONE


def sessions(question: Question) -> list[Question]:
    """The question asked of each machine of each of its campaigns that has the values for it."""
    group = question.group
    is_one = group.include == "counted" and len(group.reviewed.machines) < 2
    if is_one and not question.repeats:
        return [question]
    found = []
    for one in (question, *question.repeats):
        sides = [side for side in (one.group, one.baseline) if side is not None]
        having = [
            dict.fromkeys(texts(side.rows(one.metric)["machine"])) for side in sides
        ]
        for machine in having[0]:
            if all(machine in machines for machines in having):
                group, *baseline = (side.of_machine(machine) for side in sides)
                alone = replace(one, group=group, repeats=())
                found.append(replace(alone, baseline=baseline[0] if baseline else None))
    return found


def _called(each: Sequence[Question]) -> str:
    """`2 machines`, or `2 sessions` where they share a machine."""
    machines = {machine for session in each for machine in session.group.machines}
    noun = "machine" if len(machines) == len(each) else "session"
    return counted(len(each), noun)


def _basis(
    statistic: Statistic, question: Question
) -> tuple[tuple[int, ...], str, float]:
    """What the answer of a session rests on, as numbers and in words, and what that is worth as independent runs:
    rounds, where sides were compared within rounds."""
    sides = [side for side in (question.baseline, question.group) if side is not None]
    n = tuple(
        len(side.rows(question.metric)) if question.metric else len(side.runs)
        for side in sides
    )
    words, worth = f"n = {' and '.join(map(str, n))}", float(min(n))
    if statistic.kind == "comparison":
        found = _compared(question)
        if found is not None:
            if found.analysis == "paired":
                n, words = (found.n_baseline,), f"{found.n_baseline} rounds"
            if found.servers is not None:
                words += f" on {counted(found.servers, 'server')} a side"
            if statistic.name in _TESTED and found.analysis != "description":
                worth = float(found.n_effective)
            else:
                worth = float(min(n))
    return n, words, worth


# -- the kinds of statistics ---------------------------------------------------------------------------------------

_Answer = tuple[float | None, Interval | None, float | None]
"""Value, 95 % interval and its degrees of freedom."""
_NOTHING: _Answer = (None, None, None)


def _column(statistic: Statistic, row: TableRow | None) -> _Answer:
    """A statistic that is a column of a table."""
    if row is None:
        return _NOTHING
    value = getattr(row, statistic.name)
    interval = getattr(row, statistic.interval) if statistic.interval else None
    if interval is not None and statistic.unit == "%":
        interval = 100 * (interval[0] - 1), 100 * (interval[1] - 1)
    return value, interval, row.df


def _sample(statistic: Statistic, question: Question) -> _Answer:
    group = question.group
    if len(group.cells) == 1 and group.machine is None and not question.repeats:
        of_cell = _of_cells(group.reviewed, group.include)
        return _column(statistic, of_cell.get((group.cells[0], question.metric)))
    values = _together([one.group for one in (question, *question.repeats)], question)
    row = None if values.empty else rows(summary(values, ["metric"]))[0]
    return _column(statistic, row)


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _of_cells(
    reviewed: ReviewedCampaign, include: Include
) -> Mapping[tuple[Cell, str], TableRow]:
    """The cells of a campaign, described together."""
    found = rows_with_values(reviewed.table, include)
    by = ["model", "environment", "workload", "metric"]
    return {(row.cell, row.metric): row for row in rows(summary(found, by))}


def _together(each: Sequence[Chosen], question: Question) -> pd.DataFrame:
    """The values of the metric in groups of several campaigns, in which every machine of every campaign is one of its
    own."""
    if len(each) == 1:
        return each[0].rows(question.metric)
    parts = []
    for group in each:
        name, table = group.reviewed.campaign.name, group.reviewed.table
        machines = [f"{name}/{machine}" for machine in texts(table["machine"])]
        own = table.assign(machine=pd.Categorical(machines))
        parts.append(own.loc[group.rows(question.metric).index])
    return of_all(parts)


def _comparison(statistic: Statistic, question: Question) -> _Answer:
    if statistic.name == "pooled_difference":
        return _pooled(question)
    found = _compared(question)
    if statistic.name == "gap":
        other = _compared(replace(question, metric=question.against))
        if found is None or other is None:
            return _NOTHING
        return abs(abs(found.difference) - abs(other.difference)), None, None
    return _column(statistic, found)


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _compared(question: Question) -> TableRow | None:
    """The group against its baseline; None where one side has no values."""
    each = (question, *question.repeats)
    baselines = [one.baseline for one in each if one.baseline is not None]
    campaign = question.group.reviewed.campaign
    return compare(
        _together(baselines, question),
        _together([one.group for one in each], question),
        campaign,
        Margin(question.margin_percent, campaign.margin_declared),
    )


def _pooled(question: Question) -> _Answer:
    """Over the models and workloads of a group: see `tables.over`."""
    assert question.baseline is not None
    found = []
    for part in split(question.group, ("model", "workload")):
        places = {(model, workload) for model, _, workload in part.cells}
        cells = tuple(
            cell for cell in question.baseline.cells if (cell[0], cell[2]) in places
        )
        baseline = replace(question.baseline, cells=cells)
        found.append(_compared(replace(question, group=part, baseline=baseline)))
    known = of_cells([one for one in found if one is not None], percent=False)
    if not known:
        return _NOTHING
    together = over(known)
    return together.value, together.interval(), together.df


def _order(_: Statistic, question: Question) -> _Answer:
    found = question.group.rows(question.metric)
    if len(found) < 3:
        return _NOTHING
    values = levelled(found, groups(found, ["metric"]))
    return trends(values[np.newaxis])["p_value"][0], None, None


def _relation(statistic: Statistic, question: Question) -> _Answer:
    y, x = (
        question.group.rows(metric).set_index("run")["value"]
        for metric in (question.metric, question.against)
    )
    both = pd.concat({"x": x, "y": y}, axis="columns", join="inner")
    if len(both) < 3 or both["x"].nunique() == 1:
        return _NOTHING
    line = least_squares(both["x"].tolist(), both["y"].tolist())
    if statistic.name == "zero_at":
        return -line.intercept / line.slope, None, None
    return getattr(line, statistic.name), None, None


def _runs(statistic: Statistic, question: Question) -> _Answer:
    return _OF_RUNS[statistic.name](question.group.records), None, None


_ANSWERS: Mapping[str, Callable[[Statistic, Question], _Answer]] = {
    "runs": _runs,
    "sample": _sample,
    "order": _order,
    "relation": _relation,
    "comparison": _comparison,
}

# -- runs, with or without values ----------------------------------------------------------------------------------

_Records = Sequence[Record]


def _count(counts: Callable[[Record], bool], records: _Records) -> float:
    return float(sum(map(counts, records)))


def _mean(measure: Callable[[Record], float | None], records: _Records) -> float | None:
    """The mean of what records state, None where none does."""
    known = [seconds for seconds in map(measure, records) if seconds is not None]
    return float(np.mean(known)) if known else None


def _phase(name: str, record: Record) -> float | None:
    for phase in record.phases:
        if phase.name == name:
            return phase.end_seconds - phase.start_seconds
    return None


def _identified(record: Record) -> bool:
    seen = record.observed
    shown = (seen.kv_bytes_per_token, seen.weight_bytes, seen.config_sha256)
    return any((*shown, seen.parameters))


def _gaps(records: _Records) -> list[float]:
    """Seconds from each start to the next."""
    moments = sorted(datetime.fromisoformat(record.started.value) for record in records)
    pairs = pairwise(moments)
    return [(later - earlier).total_seconds() for earlier, later in pairs]


_OF_RUNS: Mapping[str, Callable[[_Records], Any]] = {
    "runs": len,
    "failed": partial(_count, lambda record: record.status != "ok"),
    "with_log": partial(_count, lambda record: record.file("log") is not None),
    "identified": partial(_count, _identified),
    "hours": lambda records: sum(_gaps(records)) / 3600 if records else None,
    "minutes_apart": lambda records: (
        float(np.median(_gaps(records))) / 60 if len(records) > 1 else None
    ),
    "duration_seconds": partial(_mean, lambda record: record.duration_seconds),
    "warmup_seconds": partial(_mean, partial(_phase, "warmup")),
    "measure_seconds": partial(_mean, partial(_phase, "measure")),
}

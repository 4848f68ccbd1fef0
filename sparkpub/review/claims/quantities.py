"""What a statistic of the vocabulary is of some runs: its value with the 95 % interval, and how a reader is told.

ask("mean", Question(choose(reviewed, model=("7b",)), "ttft_p50_ms")).text()      # "208.4 ms"
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

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
from sparkpub.review.claims.chosen import Chosen
from sparkpub.review.statistics.estimate import Interval, over
from sparkpub.review.statistics.series import least_squares, trends
from sparkpub.review.tables.cells import levelled
from sparkpub.review.tables.column import TableRow, groups, texts
from sparkpub.review.tables.comparisons import Compared, Margin, compare
from sparkpub.review.tables.over import of_cells
from sparkpub.review.vocabulary import Statistic, statistic_called

_ASKED_IN_A_ROW = 64
"""Comparisons that are kept."""
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


@dataclass(frozen=True)
class Question:
    """What is asked: a metric (perhaps against a second one) over some runs, or of one of `sides`, environments of
    theirs, against the other (candidate and baseline)."""

    chosen: Chosen
    metric: str = ""
    against: str = ""
    sides: tuple[str, str] | None = None
    margin_percent: float = 1.0

    @property
    def compared(self) -> Compared | None:
        """The candidate against its baseline, over all machines and within each; None where one side has no values."""
        return _compared(self)

    @property
    def compared_by_cell(self) -> list[TableRow]:
        """The same over all machines, within each model and workload."""
        values = self.chosen.rows(self.metric)
        parts = groups(values, ["model", "workload"])
        found = [_compare(self, values.iloc[part]) for part in parts]
        return [one[0] for one in found if one is not None]


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _compared(question: Question) -> Compared | None:
    return _compare(question, question.chosen.rows(question.metric))


def _compare(question: Question, values: pd.DataFrame) -> Compared | None:
    """The sides of a question by some of its values."""
    assert question.sides is not None
    candidate, baseline = (
        values[values["environment"] == name] for name in question.sides
    )
    campaign = question.chosen.reviewed.campaign
    margin = Margin(question.margin_percent, campaign.margin_declared)
    return compare(baseline, candidate, campaign, margin)


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
    value, interval, df = _answer(statistic, question)
    metric = None
    if question.metric in question.chosen.metrics:
        metric = question.chosen.reviewed.campaign.metrics[question.metric]
    each = _sessions(statistic, question)
    rests_on = "; ".join(session.words for session in each)
    if len(each) > 1:
        machines = {session.machine.rpartition("/")[2] for session in each}
        noun = "machine" if len(machines) == len(each) else "session"
        rests_on = f"{counted(len(each), noun)}: {rests_on}"
    return Quantity(
        statistic,
        metric,
        None if value is None else float(value),
        interval,
        df or 1.0,
        n=sum((session.n for session in each), ()),
        rests_on=rests_on,
        sessions=len(each),
        worth=min(session.worth for session in each),
    )


def _refuse(statistic: Statistic, question: Question) -> None:
    """Raise ClaimError for a question that the statistic does not answer."""
    name, kind = statistic.name, statistic.kind
    what, remedy = "", "see the list of statistics on the method page"
    if kind != "runs" and not question.metric:
        what, remedy = "needs a metric", "name one"
    elif (kind == "relation" or name == "gap") and not question.against:
        what, remedy = "relates two metrics", "name the second one with against"
    elif kind == "comparison" and question.sides is None:
        what = "needs two environments to compare"
    elif kind != "comparison" and question.sides is not None:
        what = "needs no comparison"
    elif question.chosen.repeats and not statistic.is_column:
        what, remedy = "is not combined over campaigns", "leave out repeated_in"
    if what:
        raise ClaimError(f"{name} {what}", remedy=remedy)


class _Session(NamedTuple):
    """What an answer rests on, of one machine in one campaign, or of all where they have no answer of their own: runs
    of each side or rounds, the same in words, and how many independent runs these are worth."""

    machine: str
    n: tuple[int, ...]
    words: str
    worth: float


def _sessions(statistic: Statistic, question: Question) -> list[_Session]:
    """Several machines and campaigns have one answer to what is a column, in which each of them counts once."""
    values = question.chosen.rows(question.metric)
    if statistic.kind == "comparison":
        if question.compared is None:
            assert question.sides is not None
            on = [int((values["environment"] == name).sum()) for name in question.sides]
            return [_session("", *reversed(on))]
        overall, within = question.compared
        found = within if within and statistic.is_column else [overall]
        return [_of_comparison(statistic, row) for row in found]
    machines = texts(values["machine"])
    names = dict.fromkeys(machines)
    if statistic.is_column and len(names) > 1:
        return [_session(name, int((machines == name).sum())) for name in names]
    return [
        _session("", len(values) if question.metric else len(question.chosen.records))
    ]


def _session(machine: str, *n: int) -> _Session:
    return _Session(machine, n, f"n = {' and '.join(map(str, n))}", float(min(n)))


def _of_comparison(statistic: Statistic, row: TableRow) -> _Session:
    found = _session(row.machine or "", row.n_baseline, row.n_candidate)
    if row.analysis == "paired":
        n = (row.n_baseline,)
        found = found._replace(n=n, words=f"{row.n_baseline} rounds")
    if row.servers is not None:
        servers = counted(row.servers, "server")
        found = found._replace(words=f"{found.words} on {servers} a side")
    if statistic.name in _TESTED and row.analysis != "description":
        return found._replace(worth=float(row.n_effective))
    return found


# -- the kinds of statistics ---------------------------------------------------------------------------------------

_Answer = tuple[float | None, Interval | None, float | None]
"""Value, 95 % interval and its degrees of freedom."""
_NOTHING: _Answer = (None, None, None)


def _answer(statistic: Statistic, question: Question) -> _Answer:
    chosen = question.chosen
    match statistic.kind:
        case "runs":
            return _of_runs(statistic.name, chosen.records), None, None
        case "sample":
            return _column(statistic, chosen.described.get(question.metric))
        case "order":
            found = chosen.rows(question.metric)
            if len(found) < 3:
                return _NOTHING
            values = levelled(found, ["metric"])
            return trends(values[np.newaxis])["p_value"][0], None, None
        case "relation":
            return _relation(statistic, question)
        case "comparison":
            return _comparison(statistic, question)


def _column(statistic: Statistic, row: TableRow | None) -> _Answer:
    """A statistic that is a column of a table."""
    if row is None:
        return _NOTHING
    value = getattr(row, statistic.name)
    interval = getattr(row, statistic.interval) if statistic.interval else None
    if interval is not None and statistic.unit == "%":
        interval = 100 * (interval[0] - 1), 100 * (interval[1] - 1)
    return value, interval, row.df


def _comparison(statistic: Statistic, question: Question) -> _Answer:
    if statistic.name == "pooled_difference":
        known = of_cells(question.compared_by_cell, percent=False)
        together = over(known) if known else None
        if together is None:
            return _NOTHING
        return together.value, together.interval(), together.df
    found = question.compared
    if statistic.name == "gap":
        other = replace(question, metric=question.against).compared
        if found is None or other is None:
            return _NOTHING
        apart = abs(found[0].difference) - abs(other[0].difference)
        return abs(apart), None, None
    return _column(statistic, found and found[0])


def _relation(statistic: Statistic, question: Question) -> _Answer:
    y, x = (
        question.chosen.rows(metric).set_index("run")["value"]
        for metric in (question.metric, question.against)
    )
    both = pd.concat({"x": x, "y": y}, axis="columns", join="inner")
    if len(both) < 3 or both["x"].nunique() == 1:
        return _NOTHING
    line = least_squares(both["x"].tolist(), both["y"].tolist())
    if statistic.name == "zero_at":
        return -line.intercept / line.slope, None, None
    return getattr(line, statistic.name), None, None


# -- runs, with or without values ----------------------------------------------------------------------------------


def _phase(name: str, record: Record) -> float | None:
    for phase in record.phases:
        if phase.name == name:
            return phase.end_seconds - phase.start_seconds
    return None


def _is_identified(record: Record) -> bool:
    seen = record.observed
    shown = (seen.kv_bytes_per_token, seen.weight_bytes, seen.config_sha256)
    return any((*shown, seen.parameters))


_COUNTED: Mapping[str, Callable[[Record], bool]] = {
    "runs": lambda _: True,
    "failed": lambda record: record.status != "ok",
    "with_log": lambda record: record.file("log") is not None,
    "identified": _is_identified,
}
_MEASURED: Mapping[str, Callable[[Record], float | None]] = {
    "duration_seconds": lambda record: record.duration_seconds,
    "warmup_seconds": partial(_phase, "warmup"),
    "measure_seconds": partial(_phase, "measure"),
}
"""Statistics that are the mean of what records state."""


def _of_runs(name: str, records: Sequence[Record]) -> float | None:
    """A statistic of records; None where none of them tells."""
    if name in _COUNTED:
        return float(sum(map(_COUNTED[name], records)))
    if name in _MEASURED:
        known = [each for each in map(_MEASURED[name], records) if each is not None]
        return float(np.mean(known)) if known else None
    starts = sorted(datetime.fromisoformat(record.started.value) for record in records)
    if name == "hours":
        return (starts[-1] - starts[0]).total_seconds() / 3600 if starts else None
    apart = [(later - one).total_seconds() for one, later in pairwise(starts)]
    return float(np.median(apart)) / 60 if apart else None

"""What a statistic of the vocabulary is of some runs: its value with the 95 % interval, and how a reader is told.

ask("mean", Question(choose(reviewed, model=("7b",)), "ttft_p50_ms")).text()      # "208.4 ms"
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from statistics import linear_regression
from types import SimpleNamespace
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
from sparkpub.review.claims.chosen import Chosen
from sparkpub.review.statistics.estimate import Interval, over
from sparkpub.review.statistics.series import trends
from sparkpub.review.tables.cells import levelled
from sparkpub.review.tables.column import TableRow, groups, texts
from sparkpub.review.tables.comparisons import Compared, compare
from sparkpub.review.tables.over import of_cells
from sparkpub.review.tables.reasons import runs_of
from sparkpub.review.vocabulary import Statistic, StatisticKind, statistic_called

_ASKED_IN_A_ROW = 64
"""Comparisons that are kept."""


@dataclass(frozen=True)
class Question:
    """What is asked: a metric (perhaps against a second one) over some runs, or of one of `sides`, environments of
    theirs, against the other (candidate and baseline)."""

    chosen: Chosen
    metric: str = ""
    against: str = ""
    sides: tuple[str, str] | None = None
    margin_percent: float = 1.0

    @cached_property
    def values(self) -> pd.DataFrame:
        """The rows that have a value of the metric."""
        valued = self.chosen.valued
        return valued[valued["metric"] == self.metric]

    def compare(self, values: pd.DataFrame) -> Compared | None:
        """The candidate against its baseline in some of the values, over all machines and within each."""
        assert self.sides is not None
        where, campaign = values["environment"], self.chosen.campaign
        candidate, baseline = (values[where == name] for name in self.sides)
        return compare(baseline, candidate, campaign, self.margin_percent)


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _compared(question: Question) -> Compared | None:
    """The same of all the values: of two whole cells what the campaign's table says."""
    chosen, sides = question.chosen, question.sides or ("", "")
    candidate, baseline = sides
    known = chosen.campaigns[0].comparison_rows.where(
        candidate=candidate, baseline=baseline, metric=question.metric
    )
    mine = [
        row
        for row in known
        if {(row.model, side, row.workload) for side in sides} == chosen.whole
    ]
    if mine and question.margin_percent == chosen.campaign.margin_percent:
        return mine[0], mine[1:]
    return question.compare(question.values)


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
            return self.metric.decimals + self.statistic.finer
        if self.statistic.unit == "%":
            return 1 if abs(value) >= 1 else 2
        return self.statistic.digits


def ask(name: str, question: Question) -> Quantity:
    """The answer. Raises ClaimError where the statistic is unknown or needs what the question does not have."""
    statistic = statistic_called(name)
    _refuse(statistic, question)
    row = _ROWS[statistic.kind](question)
    value = getattr(row, name, None)
    interval = statistic.interval and getattr(row, statistic.interval, None)
    if interval and statistic.unit == "%":
        interval = 100 * (interval[0] - 1), 100 * (interval[1] - 1)
    parts = _parts(statistic, question)
    rests_on = "; ".join(words for _, words in parts)
    campaigns = question.chosen.campaigns
    if len(parts) > 1:
        noun = "machine" if len(campaigns) == 1 else "session"
        rests_on = f"{counted(len(parts), noun)}: {rests_on}"
    n = tuple(chain.from_iterable(n for n, _ in parts))
    is_tested = getattr(row, "analysis", "description") != "description"
    return Quantity(
        statistic,
        question.chosen.campaign.metrics.get(question.metric),
        None if value is None else float(value),
        interval or None,
        getattr(row, "df", None) or 1.0,
        n=n,
        rests_on=rests_on,
        sessions=len(parts),
        worth=float(row.n_effective if is_tested else min(n)),
    )


def _refuse(statistic: Statistic, question: Question) -> None:
    """Raise ClaimError for a question that the statistic does not answer."""
    kind, compares = statistic.kind, statistic.compares
    what = ""
    if kind != "runs" and not question.metric:
        what = "needs a metric"
    elif kind in ("relation", "gap") and not question.against:
        what = "relates two metrics: name the second one with against"
    elif compares != (question.sides is not None):
        what = f"needs {'two environments to compare' if compares else 'no comparison'}"
    elif len(question.chosen.campaigns) > 1 and not statistic.is_column:
        what = "is not combined over campaigns: leave out repeated_in"
    if what:
        remedy = "see the list of statistics on the method page"
        raise ClaimError(f"{statistic.name} {what}", remedy=remedy)


def _parts(
    statistic: Statistic, question: Question
) -> list[tuple[tuple[int, ...], str]]:
    """What an answer rests on: the runs of each side, or the rounds, in numbers and words. Several machines and
    campaigns have one answer to what is a column, in which each of them counts once."""
    if question.sides is None:
        return [((n,), f"n = {n}") for n in _counts(statistic, question)]
    compared = _compared(question)
    if compared is None:
        on = Counter(texts(question.values["environment"]))
        candidate, baseline = (on[name] for name in question.sides)
        return [((baseline, candidate), f"{baseline} and {candidate} runs")]
    overall, within = compared
    rests_on = within if within and statistic.is_column else [overall]
    return list(map(_of_comparison, rests_on))


def _counts(statistic: Statistic, question: Question) -> list[int]:
    """The runs that an answer rests on, by machine where each of them counts once."""
    if not question.metric:
        return [len(question.chosen.records)]
    row = _sample(question)
    if row is None:
        return [0]
    return (statistic.is_column and list(row.n_by_machine)) or [row.n]


def _of_comparison(row: TableRow) -> tuple[tuple[int, ...], str]:
    if row.analysis == "paired":
        return (row.n_baseline,), runs_of(row)
    return (row.n_baseline, row.n_candidate), runs_of(row)


# -- the rows in which statistics stand, by kind -------------------------------------------------------------------


def _records(question: Question) -> TableRow:
    """Runs, with or without values."""
    records = question.chosen.records
    times = (datetime.fromisoformat(record.started.value) for record in records)
    # An import may have local times of an unknown zone beside those of files.
    starts = sorted(time.replace(tzinfo=None) for time in times)
    apart = [(later - one).total_seconds() for one, later in pairwise(starts)]
    return SimpleNamespace(
        runs=len(records),
        failed=sum(record.status != "ok" for record in records),
        with_log=sum(record.file("log") is not None for record in records),
        identified=sum(map(_is_identified, records)),
        hours=(starts[-1] - starts[0]).total_seconds() / 3600 if starts else None,
        minutes_apart=float(np.median(apart)) / 60 if apart else None,
        duration_seconds=_mean(record.duration_seconds for record in records),
        warmup_seconds=_mean(_seconds(record, "warmup") for record in records),
        measure_seconds=_mean(_seconds(record, "measure") for record in records),
    )


def _is_identified(record: Record) -> bool:
    seen = record.observed
    shown = (seen.kv_bytes_per_token, seen.weight_bytes, seen.config_sha256)
    return any((*shown, seen.parameters))


def _seconds(record: Record, name: str) -> float | None:
    for phase in record.phases:
        if phase.name == name:
            return phase.end_seconds - phase.start_seconds
    return None


def _mean(told: Iterable[float | None]) -> float | None:
    """The mean of what records state; None where none of them does."""
    known = [each for each in told if each is not None]
    return float(np.mean(known)) if known else None


def _sample(question: Question) -> TableRow | None:
    rows = question.chosen.described.where(metric=question.metric)
    return next(iter(rows), None)


def _order(question: Question) -> TableRow | None:
    found = question.values
    if len(found) < 3:
        return None
    values = levelled(found, ["metric"])
    return SimpleNamespace(trend_p=trends(values[np.newaxis])["p_value"][0])


def _line(question: Question) -> TableRow | None:
    """The least-squares line of a metric on a second one."""
    y, x = (
        each.values.set_index("run")["value"]
        for each in (question, replace(question, metric=question.against))
    )
    both = pd.concat({"x": x, "y": y}, axis="columns", join="inner")
    if len(both) < 3 or both["x"].nunique() == 1:
        return None
    slope, intercept = linear_regression(both["x"].tolist(), both["y"].tolist())
    return SimpleNamespace(
        slope=slope,
        intercept=intercept,
        zero_at=-intercept / slope if slope else None,
        r_squared=both["x"].corr(both["y"]) ** 2 if slope else None,
    )


def _comparison(question: Question) -> TableRow | None:
    found = _compared(question)
    return None if found is None else found[0]


def _pooled(question: Question) -> TableRow | None:
    values = question.values
    parts = groups(values, ["model", "workload"])
    found = [question.compare(values.iloc[part]) for part in parts]
    compared = [one[0] for one in found if one is not None]
    known = of_cells(pd.DataFrame(compared)) if compared else None
    if known is None:
        return None
    together = over(known)
    return SimpleNamespace(
        pooled_difference=together.value, ci95=together.interval(), df=together.df
    )


def _gap(question: Question) -> TableRow | None:
    one, other = map(
        _comparison, (question, replace(question, metric=question.against))
    )
    if one is None or other is None:
        return None
    return SimpleNamespace(gap=abs(abs(one.difference) - abs(other.difference)))


_ROWS: Mapping[StatisticKind, Callable[[Question], Any]] = {
    "runs": _records,
    "sample": _sample,
    "order": _order,
    "relation": _line,
    "comparison": _comparison,
    "pooled": _pooled,
    "gap": _gap,
}
"""Kind of a statistic to the row that has it under its name; None where the data have none."""

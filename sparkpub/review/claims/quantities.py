"""Named statistics over groups of runs: the closed vocabulary of claims and of prose.

Here stands which name means which number and in which unit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

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
from sparkpub.review.reviewed import Include, ReviewedCampaign
from sparkpub.review.statistics.compare import Comparison
from sparkpub.review.statistics.describe import Description, description_of, or_none
from sparkpub.review.statistics.drift import least_squares
from sparkpub.review.statistics.estimate import Combined, Estimate, Interval, over
from sparkpub.review.tables.cells import described, trends
from sparkpub.review.tables.comparisons import Margin, compare_groups
from sparkpub.review.tables.pooled import over_cells
from sparkpub.review.tables.values import Values, rows_with_values

_ASKED_IN_A_ROW = 64
"""Answers that are kept: whoever asks for one figure of a group asks for the others next."""
QuantityKind = Literal["runs", "sample", "order", "relation", "comparison"]
ValueAndInterval = tuple[float | None, Interval | None]
NO_ANSWER: ValueAndInterval = (None, None)
_DIGITS = {
    "slope": 4,
    "r_squared": 7,
    "ratio": 3,
    "inverse_ratio": 3,
    "n": 0,
    "n_effective": 1,
    "hours": 1,
    "minutes_apart": 1,
}
"""Digits after the point for statistics without a metric's unit; counts have none, the others two."""
ESTIMATED = ("mean", "difference", "difference_percent")
"""Statistics that can be combined over sessions: those with a standard error."""
_COMPARED = (
    "difference",
    "difference_percent",
    "ratio",
    "inverse_ratio",
    "equivalence_p",
)
"""Statistics that the comparison of one group with its baseline tells."""
_FINER = {"pooled_difference": 2}
"""Digits beyond the metric's own: many cells together know more than one."""


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

    def comparison(self, metric: str = "") -> Comparison | None:
        """The group against its baseline; None where one side has no values."""
        if self.baseline is None:
            return None
        declared = self.group.reviewed.campaign.margin_declared
        margin = Margin(self.margin_percent, declared)
        return _compared(self.baseline, self.group, metric or self.metric, margin)


@dataclass(frozen=True)
class Statistic:
    """A name, what it means, its unit ("metric" is the metric's own) and how it is computed."""

    name: str
    kind: QuantityKind
    unit: str
    definition: str
    compute: Callable[[Question], ValueAndInterval] = field(repr=False)
    signed: bool = False


@dataclass(frozen=True)
class Quantity:
    """An answer: value and 95 % interval, None where the data do not carry them, and how to show it."""

    statistic: Statistic
    metric: Metric | None
    value: float | None
    ci95: Interval | None
    n: tuple[int, ...]
    """What the answer rests on: runs of each side, or rounds where sides were compared within rounds."""
    rests_on: str = ""
    """The same in words: `n = 7 and 6`, `6 rounds`, `2 machines: 6 rounds; 10 rounds`."""
    sessions: int = 1
    """Machines, or campaigns on one machine, that the answer is combined from."""
    worth: float = 0.0
    """How many independent runs each side, or the rounds, are worth; of several sessions the one with the fewest."""

    @property
    def df(self) -> float:
        """Degrees of freedom, or fewer: those between sessions, else those of the smaller sample."""
        if self.sessions > 1:
            return self.sessions - 1
        return max(1.0, self.worth - 1)

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
        if not unit:
            return words
        return with_unit(words, self.unit)

    @property
    def unit(self) -> str:
        """The unit of the value, empty for a plain number."""
        if self.statistic.unit != "metric":
            return self.statistic.unit
        if self.metric is None:
            return ""
        return self.metric.unit

    def _digits(self, value: float) -> int:
        if self.statistic.unit == "metric" and self.metric is not None:
            return self.metric.decimals + _FINER.get(self.statistic.name, 0)
        if self.statistic.unit == "%":
            return 1 if abs(value) >= 1 else 2
        if self.statistic.kind == "runs" and self.statistic.unit == "":
            return _DIGITS.get(self.statistic.name, 0)
        return _DIGITS.get(self.statistic.name, 2)


def _starts(question: Question) -> list[float]:
    """Seconds from the first start to every start, in order of time."""
    moments = sorted(
        datetime.fromisoformat(record.started.value)
        for record in question.group.records
    )
    return [(moment - moments[0]).total_seconds() for moment in moments]


def _hours(question: Question) -> ValueAndInterval:
    starts = _starts(question)
    if not starts:
        return NO_ANSWER
    return starts[-1] / 3600, None


def _minutes_apart(question: Question) -> ValueAndInterval:
    starts = _starts(question)
    if len(starts) < 2:
        return NO_ANSWER
    return float(np.median(np.diff(starts))) / 60, None


def _percent_interval(found: Comparison) -> Interval | None:
    if found.ci95_ratio is None:
        return None
    return 100 * (found.ci95_ratio[0] - 1), 100 * (found.ci95_ratio[1] - 1)


def _gap(question: Question) -> ValueAndInterval:
    one, other = question.comparison(), question.comparison(question.against)
    if one is None or other is None:
        return NO_ANSWER
    return abs(abs(one.difference) - abs(other.difference)), None


def _pooled_difference(question: Question) -> ValueAndInterval:
    """Over the models and workloads of a group: see `tables.pooled`."""
    assert question.baseline is not None
    found = []
    for part in split(question.group, ("model", "workload")):
        places = {(cell[0], cell[2]) for cell in part.cells}
        cells = [
            cell for cell in question.baseline.cells if (cell[0], cell[2]) in places
        ]
        base = replace(question.baseline, cells=tuple(cells))
        found.append(replace(question, group=part, baseline=base).comparison())
    known = [one for one in found if one is not None]
    together = over_cells(known, percent=False)
    if together is None:
        return NO_ANSWER
    return together.value, together.interval()


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _compared(
    baseline: Chosen, group: Chosen, metric: str, margin: Margin
) -> Comparison | None:
    rows = baseline.rows(metric), group.rows(metric)
    return compare_groups(*rows, group.reviewed, margin)


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _described(group: Chosen, metric: str) -> Description | None:
    """The values of a metric described; None where there are none."""
    values, number = _numbered(group, metric)
    if number is None:
        return None
    return description_of(_descriptions(values), number)


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _numbered(group: Chosen, metric: str) -> tuple[Values, int | None]:
    """Values, and which number of them are those of a metric over a group; None where it has none.

    A whole cell is one number of those of its campaign, which are described together.
    """
    if len(group.cells) == 1 and group.machine is None:
        values = _of_cells(group.reviewed, group.include)
        return values, values.number_of.get((group.cells[0], metric))
    rows, reviewed = group.rows(metric), group.reviewed
    values = Values.of(rows, {reviewed.campaign.name: reviewed}, ["metric"])
    return values, None if rows.empty else 0


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _of_cells(reviewed: ReviewedCampaign, include: Include) -> Values:
    rows = rows_with_values(reviewed.table, include)
    return Values.of_cells(rows, {reviewed.campaign.name: reviewed})


_descriptions = lru_cache(maxsize=_ASKED_IN_A_ROW)(described)


@lru_cache(maxsize=_ASKED_IN_A_ROW)
def _trends(values: Values) -> Mapping[str, Any]:
    return trends(values, np.full(len(values.sizes), True))


def _identified(record: Record) -> bool:
    seen = record.observed
    return any(
        (
            seen.kv_bytes_per_token,
            seen.weight_bytes,
            seen.config_sha256,
            seen.parameters,
        )
    )


def _count(name: str, definition: str, counts: Callable[[Record], bool]) -> Statistic:
    return Statistic(
        name,
        "runs",
        "",
        definition,
        lambda asked: (float(sum(map(counts, asked.group.records))), None),
    )


def _seconds(
    name: str, definition: str, measure: Callable[[Record], float | None]
) -> Statistic:
    def compute(question: Question) -> ValueAndInterval:
        known = [
            seconds
            for record in question.group.records
            if (seconds := measure(record)) is not None
        ]
        if not known:
            return NO_ANSWER
        return float(np.mean(known)), None

    return Statistic(name, "runs", "s", definition, compute)


def _phase(name: str) -> Statistic:
    def measure(record: Record) -> float | None:
        for phase in record.phases:
            if phase.name == name:
                return phase.end_seconds - phase.start_seconds
        return None

    return _seconds(f"{name}_seconds", f"mean length of the phase {name}", measure)


def _sample(name: str, unit: str, definition: str) -> Statistic:
    def compute(question: Question) -> ValueAndInterval:
        found = _described(question.group, question.metric)
        if found is None:
            return NO_ANSWER
        if name == "mean":
            return found.mean, found.ci95
        return getattr(found, name), None

    return Statistic(name, "sample", unit, definition, compute)


def _order(name: str, unit: str, definition: str, attribute: str) -> Statistic:
    def compute(question: Question) -> ValueAndInterval:
        values, number = _numbered(question.group, question.metric)
        if number is None:
            return NO_ANSWER
        return or_none(_trends(values)[attribute][number]), None

    return Statistic(name, "order", unit, definition, compute, signed=unit != "p")


def _relation(name: str, unit: str, definition: str) -> Statistic:
    def compute(question: Question) -> ValueAndInterval:
        y, x = (
            question.group.rows(metric).set_index("run")["value"]
            for metric in (question.metric, question.against)
        )
        both = pd.concat({"x": x, "y": y}, axis="columns", join="inner")
        if len(both) < 3 or both["x"].nunique() == 1:
            return NO_ANSWER
        line = least_squares(both["x"].tolist(), both["y"].tolist())
        if name == "zero_at":
            return -line.intercept / line.slope, None
        return getattr(line, name), None

    return Statistic(
        name, "relation", unit, definition, compute, signed=name == "slope"
    )


def _comparison(
    name: str,
    unit: str,
    definition: str,
    interval: Callable[[Comparison], Interval | None] = lambda _: None,
    *,
    signed: bool = True,
) -> Statistic:
    def compute(question: Question) -> ValueAndInterval:
        found = question.comparison()
        if found is None:
            return NO_ANSWER
        return getattr(found, name), interval(found)

    return Statistic(
        name,
        "comparison",
        unit,
        definition,
        compute,
        signed and unit in {"metric", "%"},
    )


_ALL = (
    _count("runs", "records, failed ones included", lambda _: True),
    _count(
        "failed",
        "runs with any status other than ok",
        lambda record: record.status != "ok",
    ),
    _count(
        "with_log",
        "runs whose log is kept",
        lambda record: record.file("log") is not None,
    ),
    _count("identified", "runs that show which model they ran", _identified),
    Statistic(
        "hours",
        "runs",
        "h",
        "hours from the start of the first run to the start of the last",
        _hours,
    ),
    Statistic(
        "minutes_apart",
        "runs",
        "min",
        "median time between the starts of neighbouring runs",
        _minutes_apart,
    ),
    _seconds(
        "duration_seconds",
        "mean time from launch to exit",
        lambda record: record.duration_seconds,
    ),
    _phase("warmup"),
    _phase("measure"),
    _sample("n", "", "runs with a value"),
    _sample("mean", "metric", "mean, with Student's interval"),
    _sample("sd", "metric", "sample standard deviation (divides by n − 1)"),
    _sample(
        "sd_population", "metric", "population standard deviation σ (divides by n)"
    ),
    _sample("min", "metric", "smallest value"),
    _sample("max", "metric", "largest value"),
    _sample("p50", "metric", "median"),
    _sample("p95", "metric", "95th percentile, linearly interpolated"),
    _sample(
        "cv_percent",
        "%",
        "coefficient of variation (sample standard deviation over mean)",
    ),
    _sample("n_effective", "", "what n is worth under the lag-1 autocorrelation"),
    _order(
        "trend_p",
        "p",
        "p-value of the Mann-Kendall test, in a claim with Holm's correction over its units",
        "p_value",
    ),
    _relation("slope", "", "least-squares slope of the metric on the second one"),
    _relation(
        "intercept", "metric", "least-squares intercept of the metric on the second one"
    ),
    _relation(
        "zero_at",
        "metric",
        "value of the second metric at which the line of the metric on it reaches zero",
    ),
    _relation("r_squared", "", "squared correlation of the two metrics"),
    _comparison(
        "mean_baseline",
        "metric",
        "mean of the baseline over the runs that the difference is of",
        signed=False,
    ),
    _comparison(
        "mean_candidate",
        "metric",
        "mean of the candidate over the runs that the difference is of",
        signed=False,
    ),
    _comparison(
        "difference",
        "metric",
        "mean of the candidate minus the baseline's",
        lambda c: c.ci95_difference,
    ),
    _comparison(
        "difference_percent",
        "%",
        "difference in percent of the baseline's mean",
        _percent_interval,
    ),
    _comparison(
        "ratio",
        "",
        "mean of the candidate over mean of the baseline",
        lambda c: c.ci95_ratio,
    ),
    _comparison("inverse_ratio", "", "mean of the baseline over mean of the candidate"),
    _comparison(
        "overhead_percent", "%", "increase of execution time, the inverse of a rate"
    ),
    _comparison(
        "p_value",
        "p",
        "two-sided p of no difference; none where environments ran in blocks",
    ),
    _comparison("equivalence_p", "p", "p of TOST within the declared margin"),
    Statistic(
        "pooled_difference",
        "comparison",
        "metric",
        "difference over all models and workloads together, each weighted by its precision",
        _pooled_difference,
        signed=True,
    ),
    _comparison("power_10_percent", "", "power against a difference of a tenth"),
    Statistic(
        "gap",
        "comparison",
        "metric",
        "distance between the differences of two metrics, signs aside",
        _gap,
    ),
)

STATISTICS: Mapping[str, Statistic] = {statistic.name: statistic for statistic in _ALL}


def statistic_called(name: str) -> Statistic:
    """The statistic of that name. Raises ClaimError where there is none."""
    if name not in STATISTICS:
        raise ClaimError(
            f"no statistic {name!r}",
            remedy=f"known are {', '.join(sorted(STATISTICS))}",
        )
    return STATISTICS[name]


def ask(name: str, question: Question) -> Quantity:
    """The answer. Raises ClaimError where the statistic is unknown or needs what the question does not have."""
    statistic = statistic_called(name)
    if statistic.kind != "runs" and not question.metric:
        raise ClaimError(f"{name} needs a metric", remedy="name one")
    if (statistic.kind == "relation" or name == "gap") and not question.against:
        raise ClaimError(
            f"{name} relates two metrics", remedy="name the second one with against"
        )
    if (statistic.kind == "comparison") != (question.baseline is not None):
        need = (
            "two environments to compare"
            if statistic.kind == "comparison"
            else "no comparison"
        )
        raise ClaimError(
            f"{name} needs {need}",
            remedy="see the list of statistics on the method page",
        )
    value, ci95 = statistic.compute(question)
    n, rests_on = _basis(statistic, question)
    metric = None
    if question.metric in question.group.metrics:
        metric = question.group.reviewed.campaign.metrics[question.metric]
    worth = _worth(statistic, question, n)
    found = Quantity(statistic, metric, value, ci95, n, rests_on, worth=worth)
    if question.repeats:
        return _over_sessions(found, question)
    if statistic.kind in ("sample", "comparison") and len(sessions(question)) > 1:
        return _resting_on(found, sessions(question))
    return found


def _basis(statistic: Statistic, question: Question) -> tuple[tuple[int, ...], str]:
    """What an answer rests on, as numbers and in words: rounds, where sides were compared within rounds."""
    comparison = question.comparison() if statistic.kind == "comparison" else None
    shared = ""
    if comparison is not None and comparison.servers is not None:
        shared = f" on {counted(comparison.servers, 'server')} a side"
    if comparison is not None and comparison.analysis == "paired":
        return (comparison.n_baseline,), f"{comparison.n_baseline} rounds{shared}"
    sides = [side for side in (question.baseline, question.group) if side is not None]
    n = tuple(_size(side, question.metric) for side in sides)
    return n, f"n = {' and '.join(map(str, n))}{shared}"


def _worth(statistic: Statistic, question: Question, n: Sequence[int]) -> float:
    """What the runs of a comparison are worth as independent ones; their number where they are only described."""
    if statistic.name in _COMPARED:
        comparison = question.comparison()
        if comparison is not None and comparison.analysis != "description":
            return comparison.n_effective
    return float(min(n))


def _over_sessions(found: Quantity, question: Question) -> Quantity:
    """An answer over several sessions: each counts once, and the interval holds what differs between them."""
    is_test = found.statistic.name == "equivalence_p"
    name = "difference_percent" if is_test else found.statistic.name
    together = over_sessions(name, question)
    value, ci95 = None, None
    if together is not None and is_test:
        value = float(together.equivalence_p(question.margin_percent))
    elif together is not None:
        value, ci95 = together.value, together.interval()
    return _resting_on(replace(found, value=value, ci95=ci95), sessions(question))


def _resting_on(found: Quantity, each: Sequence[Question]) -> Quantity:
    """An answer that rests on several sessions, with the runs or rounds of each."""
    bases = [_basis(found.statistic, session) for session in each]
    words = "; ".join(words for _, words in bases)
    worth = [
        _worth(found.statistic, session, n)
        for session, (n, _) in zip(each, bases, strict=True)
    ]
    return replace(
        found,
        worth=min(worth, default=0.0),
        n=sum((n for n, _ in bases), ()),
        rests_on=f"{_what(each)}: {words}",
        sessions=len(each),
    )


def _what(each: Sequence[Question]) -> str:
    """`2 machines`, or `2 sessions` where they share a machine."""
    machines = {machine for session in each for machine in session.group.machines}
    if len(machines) == len(each):
        return counted(len(each), "machine")
    return counted(len(each), "session")


def over_sessions(name: str, question: Question) -> Combined | None:
    """A statistic over a question and its repeats; None where one of them has no value with an interval.

    Every machine of every campaign is a session of its own. Raises ClaimError for a statistic that has no standard
    error of its own.
    """
    if name not in ESTIMATED:
        raise ClaimError(
            f"{name} is not combined over campaigns",
            remedy=f"use {', '.join(ESTIMATED)}",
        )
    known = []
    for session in sessions(question):
        found = _estimate(name, session)
        if found is None:
            return None
        known.append(found)
    return over(known)


def sessions(question: Question) -> list[Question]:
    """The question asked of each machine of each of its campaigns."""
    return [
        one
        for campaign in (question, *question.repeats)
        for one in _by_machine(replace(campaign, repeats=()))
    ]


def _by_machine(question: Question) -> list[Question]:
    """The question asked of each machine that has the values for it."""
    baseline = question.baseline
    asked = []
    for machine in _machines(question.group, question.metric):
        group = question.group.of_machine(machine)
        if baseline is None:
            asked.append(replace(question, group=group))
        elif machine in _machines(baseline, question.metric):
            side = baseline.of_machine(machine)
            asked.append(replace(question, group=group, baseline=side))
    return asked


def _machines(group: Chosen, metric: str) -> Sequence[str]:
    """The machines with values of a metric, the first one used first."""
    values, number = _numbered(group, metric)
    if number is None:
        return ()
    return tuple(dict.fromkeys(values.column("machine")[values.part(number)]))


def _estimate(name: str, question: Question) -> Estimate | None:
    """A statistic of `ESTIMATED` with its standard error."""
    if name == "mean":
        found = _described(question.group, question.metric)
        if found is None:
            return None
        return found.estimate
    compared = question.comparison()
    if compared is None:
        return None
    if name == "difference":
        return compared.estimate
    return compared.estimate_percent


def _size(group: Chosen, metric: str) -> int:
    """Runs of a group, or those that have a value of the metric."""
    if not metric:
        return len(group.runs)
    values, number = _numbered(group, metric)
    return 0 if number is None else int(values.sizes[number])

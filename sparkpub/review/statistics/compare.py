"""Two environments, one metric: how far apart, how sure, and whether the order of the runs allows a verdict.

The analysis follows the order as it was really run:

- interleaved: differences within complete rounds (paired t, TOST);
- random, or mixed without a declaration: two independent samples (Welch, TOST);
- blocked: a description only. Time and environment cannot be told apart, so there is no p, and the verdict is
  `confounded` whatever the figures.

Standard errors and degrees of freedom use the effective n; below four the verdict is `undecided`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from sparkpub.record.metrics import Direction
from sparkpub.record.text import p_text
from sparkpub.review.statistics.describe import (
    ALPHA,
    MINIMUM_RUNS,
    Estimate,
    Floats,
    Interval,
    around,
    error_of,
    resolution_of,
    rounding_variance,
)
from sparkpub.review.statistics.design import (
    Declared,
    Order,
    Sample,
    complete_rounds,
    order_as_run,
)
from sparkpub.review.statistics.means import TwoMeans, of_independent, of_rounds

Verdict = Literal["higher", "lower", "equivalent", "undecided", "confounded"]
Analysis = Literal["paired", "welch", "description", "machines"]
"""`machines`: within each of several machines, and then over them (see `replication`)."""

DETECTABLE_PERCENT = 10.0
"""The difference that a sample should be able to detect: success criterion 2 of the methodology."""
WANTED_POWER = 0.8
"""The power for which `runs_required` is given (Cohen 1988)."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Candidate against baseline. None where n, the scale or a zero baseline does not carry a figure.

    Means, difference and ratio are of the runs compared: those of complete rounds where the order was interleaved
    (`n_baseline` = `n_candidate` = rounds; `left_out` counts the rest), else all. `n_effective` is what they are
    worth (of the differences, or of the smaller side), `df` the degrees of freedom of the difference. Over several
    machines each of them counts once: `df` is one less than their number, and `n_effective` that of the machine with
    the fewest.

    A confounded comparison is a description: its p-values and powers are None. Its interval shows the spread of these
    runs and not what the environments differ by. `power` is that of showing equivalence within the margin when there
    is no difference, and `runs_required` how many runs a side (or rounds) would show it with a power of 0.8.
    `margin_declared` is False where the margin was chosen after the runs were seen.

    `overhead_percent` is the source's formula on execution times: 100 (T_candidate - T_baseline) / T_baseline
    with T the inverse of a rate; for times and memory it is their own relative increase. `effect_size` is Hedges' g.
    `p_adjusted` and `equivalence_p_adjusted` are Holm's where `adjust` has seen the family, else the plain p.
    Percentages and ratios are None on a scale without a true zero (°C).
    """

    order: Order
    analysis: Analysis
    n_baseline: int
    n_candidate: int
    left_out: int
    n_effective: float
    df: float | None
    mean_baseline: float
    mean_candidate: float
    difference: float
    difference_percent: float | None
    ratio: float | None
    inverse_ratio: float | None
    ci95_ratio: Interval | None
    ci90_ratio: Interval | None
    overhead_percent: float | None
    ci95_difference: Interval | None
    ci90_difference: Interval | None
    p_value: float | None
    p_adjusted: float | None
    effect_size: float | None
    equivalence_margin_percent: float
    margin_declared: bool
    equivalence_p: float | None
    equivalence_p_adjusted: float | None
    power: float | None
    runs_required: int | None
    power_10_percent: float | None
    better: Literal["baseline", "candidate"] | None
    machines: int = 1
    """On how many machines the runs ran that were compared within each of them."""

    @property
    def verdict(self) -> Verdict:
        """In a word, with the corrected p-values."""
        return verdict_of(
            self.n_effective,
            self.difference,
            self.p_adjusted,
            self.equivalence_p_adjusted,
            confounded=self.order == "blocked",
        )

    @property
    def deciding_level(self) -> float:
        """Confidence of the interval that decides: 0.90 where TOST decides or was left open, else 0.95."""
        asked = self.equivalence_p is not None and self.verdict in (
            "equivalent",
            "undecided",
        )
        if asked:
            return 1 - 2 * ALPHA
        return 1 - ALPHA

    @property
    def deciding_difference(self) -> Interval | None:
        """The interval of the difference that decides."""
        if self.deciding_level < 1 - ALPHA:
            return self.ci90_difference
        return self.ci95_difference

    @property
    def deciding_ratio(self) -> Interval | None:
        """The interval of the ratio at the same level."""
        if self.deciding_level < 1 - ALPHA:
            return self.ci90_ratio
        return self.ci95_ratio

    @property
    def estimate(self) -> Estimate | None:
        """The difference with its standard error; None where the runs are only described."""
        if self.ci95_difference is None or self.df is None or self.p_value is None:
            return None
        error = error_of(self.ci95_difference, self.df)
        return Estimate(self.difference, error, self.df)

    @property
    def estimate_percent(self) -> Estimate | None:
        """The same in percent of the baseline's mean; None on a scale without a true zero, too."""
        if self.estimate is None or self.difference_percent is None:
            return None
        error = 100 * self.estimate.error / abs(self.mean_baseline)
        return Estimate(self.difference_percent, error, self.estimate.df)

    @property
    def why(self) -> str:
        """What the verdict rests on, in one sentence or two."""
        return _why(self)


def verdict_of(
    n_effective: float,
    difference: float,
    p_value: float | None,
    equivalence_p: float | None,
    *,
    confounded: bool,
) -> Verdict:
    """The rule. Equivalence within the declared margin comes first: what is negligible is not a difference."""
    if confounded:
        return "confounded"
    if n_effective < MINIMUM_RUNS:
        return "undecided"
    if significant(equivalence_p):
        return "equivalent"
    if significant(p_value):
        return "higher" if difference > 0 else "lower"
    return "undecided"


def significant(p: float | None) -> bool:
    """Whether a p-value is there and below 5 %."""
    return p is not None and p < ALPHA


def compare(
    baseline: Sample | Sequence[float],
    candidate: Sample | Sequence[float],
    *,
    order: Declared,
    margin_percent: float,
    direction: Direction = "neither",
    unit: str = "",
    resolution: float | None = None,
    margin_declared: bool = True,
) -> Comparison:
    """Compare two samples of one metric. Raises ValueError where one is empty or not finite.

    `order` is the one declared; times in the samples show whether it was kept. `margin_percent` is the equivalence
    margin in percent of the baseline's mean, `margin_declared` whether it was fixed before the first run. `direction`
    says which way is better, `unit` whether values are a rate (ends in /s) or lack a true zero (°C). `resolution` is
    the step to which the instrument rounds, read off the values where it is not given.
    """
    one, other = _sample(baseline), _sample(candidate)
    if resolution is None:
        resolution = resolution_of([*one.values, *other.values])
    as_run = order_as_run(order, one, other)
    runs = _runs_compared(one, other, as_run, resolution)
    given = len(one.values) + len(other.values)
    relative = _relative(runs, direction, unit)
    tests = _tests(runs, relative, margin_percent)
    return Comparison(
        order=as_run,
        analysis=runs.analysis,
        n_baseline=len(runs.baseline),
        n_candidate=len(runs.candidate),
        left_out=given - len(runs.baseline) - len(runs.candidate),
        n_effective=runs.n_effective,
        df=None if runs.means is None else float(runs.means.df),
        mean_baseline=runs.mean_baseline,
        mean_candidate=runs.mean_candidate,
        difference=runs.mean_candidate - runs.mean_baseline,
        difference_percent=relative.percent,
        ratio=relative.ratio,
        inverse_ratio=1 / relative.ratio if relative.ratio else None,
        ci95_ratio=_ratio_interval(runs.means, relative, 1 - ALPHA),
        ci90_ratio=_ratio_interval(runs.means, relative, 1 - 2 * ALPHA),
        overhead_percent=relative.overhead_percent,
        ci95_difference=_difference_interval(runs.means, 1 - ALPHA),
        ci90_difference=_difference_interval(runs.means, 1 - 2 * ALPHA),
        p_value=tests.p_value,
        p_adjusted=tests.p_value,
        effect_size=hedges_g(runs.baseline, runs.candidate, resolution),
        equivalence_margin_percent=margin_percent,
        margin_declared=margin_declared,
        equivalence_p=tests.equivalence_p,
        equivalence_p_adjusted=tests.equivalence_p,
        power=tests.power,
        runs_required=tests.runs_required,
        power_10_percent=tests.power_10_percent,
        better=better_of(runs.mean_baseline, runs.mean_candidate, direction),
    )


def power_to_detect(
    baseline: Sample, candidate: Sample, *, order: Declared, unit: str = ""
) -> float | None:
    """`power_10_percent` of `compare` alone, for those who read nothing else of it."""
    resolution = resolution_of([*baseline.values, *candidate.values])
    as_run = order_as_run(order, baseline, candidate)
    runs = _runs_compared(baseline, candidate, as_run, resolution)
    if runs.means is None or runs.analysis == "description":
        return None
    if _relative(runs, "neither", unit).ratio is None:
        return None
    return _power_to_detect(runs.means, runs.mean_baseline)


def _sample(side: Sample | Sequence[float]) -> Sample:
    if isinstance(side, Sample):
        return side
    return Sample(tuple(side))


@dataclass(frozen=True)
class _Runs:
    """The values that are compared, and their means where each side has two or more."""

    analysis: Analysis
    baseline: Floats
    candidate: Floats
    means: TwoMeans | None
    n_effective: float

    @cached_property
    def mean_baseline(self) -> float:
        return float(self.baseline.mean())

    @cached_property
    def mean_candidate(self) -> float:
        return float(self.candidate.mean())


def _runs_compared(one: Sample, other: Sample, order: Order, step: float) -> _Runs:
    if order != "interleaved":
        analysis: Analysis = "description" if order == "blocked" else "welch"
        a, b = one.array, other.array
        if min(len(a), len(b)) < 2:
            return _Runs(analysis, a, b, None, float(min(len(a), len(b))))
        means = of_independent(a, b, step)
        return _Runs(analysis, a, b, means, float(means.n_effective))
    rounds = complete_rounds(one, other)
    if not rounds:
        return _Runs("description", one.array, other.array, None, 0.0)
    a = one.array[[place for place, _ in rounds]]
    b = other.array[[place for _, place in rounds]]
    if len(rounds) < 2:
        return _Runs("paired", a, b, None, 1.0)
    means = of_rounds(a, b, step)
    return _Runs("paired", a, b, means, float(means.n_effective))


def _difference_interval(means: TwoMeans | None, level: float) -> Interval | None:
    if means is None:
        return None
    return around(float(means.difference), float(means.error), float(means.df), level)


@dataclass(frozen=True)
class _Relative:
    """A difference on the scale of the baseline's mean; all None on a scale without a true zero."""

    percent: float | None = None
    ratio: float | None = None
    overhead_percent: float | None = None


def _relative(runs: _Runs, direction: Direction, unit: str) -> _Relative:
    base = runs.mean_baseline
    if unit == "°C" or base <= 0:
        return _Relative()
    ratio = runs.mean_candidate / base
    return _Relative(
        percent=100 * (runs.mean_candidate - base) / base,
        ratio=ratio,
        overhead_percent=overhead(ratio, direction, unit),
    )


def _ratio_interval(
    means: TwoMeans | None, relative: _Relative, level: float
) -> Interval | None:
    if means is None or relative.ratio is None:
        return None
    return means.ratio_interval(level)


@dataclass(frozen=True)
class Tests:
    """What the tests say; all None where runs are only described."""

    p_value: float | None = None
    equivalence_p: float | None = None
    power: float | None = None
    runs_required: int | None = None
    power_10_percent: float | None = None


def _tests(runs: _Runs, relative: _Relative, margin_percent: float) -> Tests:
    means = runs.means
    if means is None or runs.analysis == "description":
        return Tests()
    p_value = float(means.p_value)
    if relative.ratio is None:
        return Tests(p_value)
    margin = margin_percent / 100 * runs.mean_baseline
    fewer = min(len(runs.baseline), len(runs.candidate))
    return Tests(
        p_value=p_value,
        equivalence_p=float(means.equivalence_p(margin)),
        power=means.equivalence_power(margin),
        runs_required=means.runs_for_equivalence(margin, fewer, WANTED_POWER),
        power_10_percent=_power_to_detect(means, runs.mean_baseline),
    )


def _power_to_detect(means: TwoMeans, base: float) -> float:
    return means.detection_power(DETECTABLE_PERCENT / 100 * base)


def overhead(ratio: float, direction: Direction, unit: str) -> float | None:
    """The increase of execution time in percent that a ratio of means stands for; None where it stands for none."""
    if ratio == 0:
        return None
    if unit.endswith("/s"):
        return 100 * (1 / ratio - 1)
    return 100 * (ratio - 1) if direction == "lower" else None


def better_of(
    mean_a: float, mean_b: float, direction: Direction
) -> Literal["baseline", "candidate"] | None:
    """Which side has the better mean; None where no direction is better."""
    if direction == "neither" or mean_a == mean_b:
        return None
    return "candidate" if (mean_b > mean_a) == (direction == "higher") else "baseline"


def equivalence(
    baseline: Sequence[float], candidate: Sequence[float], margin_percent: float
) -> float | None:
    """p of TOST that two means differ by less than `margin_percent` of the baseline's; None where n < 2.

    For samples that no order joins, such as those of two models; every run counts in full.
    """
    a, b = np.array(baseline, dtype=np.float64), np.array(candidate, dtype=np.float64)
    if min(len(a), len(b)) < 2:
        return None
    means = of_independent(a, b, resolution_of([*baseline, *candidate]), serial=False)
    return float(means.equivalence_p(margin_percent / 100 * abs(means.baseline)))


def hedges_g(a: Floats, b: Floats, resolution: float) -> float | None:
    """(mean_b - mean_a) / pooled sd × (1 - 3 / (4 df - 1)): Hedges (1981). None where n < 2 on a side.

    The rounding of the readings counts as spread.
    """
    if min(len(a), len(b)) < 2:
        return None
    df = len(a) + len(b) - 2
    squares = (len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)
    spread = float(np.sqrt(squares / df + rounding_variance(resolution)))
    return float(b.mean() - a.mean()) / spread * (1 - 3 / (4 * df - 1))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's (1979) step-down adjusted p in the order given; None stays None and does not count as a test."""
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        adjusted[index] = largest
    return adjusted


C = TypeVar("C", bound=Comparison)


def adjust(family: Sequence[C]) -> list[C]:
    """The comparisons of one family with Holm's correction of their tests of difference and, apart, of equivalence.

    A family is the primary comparisons of a campaign. Exploratory ones are left uncorrected and labelled so.
    """
    different = holm([item.p_value for item in family])
    equal = holm([item.equivalence_p for item in family])
    return [
        replace(item, p_adjusted=p, equivalence_p_adjusted=q)
        for item, p, q in zip(family, different, equal, strict=True)
    ]


def _why(c: Comparison) -> str:
    if c.analysis == "description" and c.machines > 1:
        return (
            "No machine ran both environments, so that a difference between machines cannot be told from one between "
            "environments. The figures describe these runs only."
        )
    if c.order == "blocked":
        return (
            "The environments ran in separate blocks of time, so that a change over time cannot be told from a "
            "difference between them. The figures describe these runs only."
        )
    if c.n_effective < MINIMUM_RUNS:
        return _too_few(c)
    if c.verdict == "equivalent":
        text = f"The difference lies within {_margin(c)} of the baseline ({_test(c)}, {_equivalence_text(c)})."
        if significant(c.p_adjusted):
            text += f" It is detectable within that margin ({p_text(c.p_adjusted)})."
        return text
    if c.verdict != "undecided":
        return f"The difference is larger than chance explains ({_test(c)}, {_difference_text(c)})."
    if c.equivalence_p is None:
        return f"No difference is shown ({_test(c)}, {_difference_text(c)})."
    return (
        f"Neither a difference ({_difference_text(c)}) nor equivalence within {_margin(c)} ({_equivalence_text(c)}) "
        f"is shown ({_test(c)}).{_power_text(c)}"
    )


def _too_few(c: Comparison) -> str:
    if c.machines > 1:
        return (
            f"On one of the {c.machines} machines there are too few runs or rounds to decide: they are worth "
            f"{c.n_effective:.1f} independent ones, and {MINIMUM_RUNS} are needed."
        )
    few = min(c.n_baseline, c.n_candidate) < MINIMUM_RUNS
    if c.order == "interleaved" and (few or c.analysis == "description"):
        rounds = c.n_baseline if c.analysis == "paired" else 0
        return f"Too few complete rounds to decide: {rounds}, and {MINIMUM_RUNS} are needed."
    if few:
        return f"Too few runs to decide: {c.n_baseline} and {c.n_candidate}, and {MINIMUM_RUNS} a side are needed."
    what = (
        f"{c.n_baseline} rounds"
        if c.analysis == "paired"
        else f"{c.n_baseline} and {c.n_candidate} runs"
    )
    return (
        f"Neighbouring runs are alike: the {what} are worth {c.n_effective:.1f} independent ones, and {MINIMUM_RUNS} "
        "are needed."
    )


def _margin(c: Comparison) -> str:
    margin = f"±{c.equivalence_margin_percent:g} %"
    if not c.margin_declared:
        margin += " (a margin chosen afterwards)"
    return margin


def _test(c: Comparison) -> str:
    if c.machines > 1:
        return f"within each machine, then over {c.machines} machines"
    if c.analysis == "paired":
        return f"paired within {c.n_baseline} rounds"
    return f"Welch, {c.n_baseline} and {c.n_candidate} runs"


def _difference_text(c: Comparison) -> str:
    return _corrected(c.p_value, c.p_adjusted)


def _equivalence_text(c: Comparison) -> str:
    return f"TOST {_corrected(c.equivalence_p, c.equivalence_p_adjusted)}"


def _corrected(plain: float | None, adjusted: float | None) -> str:
    if plain == adjusted:
        return p_text(adjusted)
    return f"adjusted {p_text(adjusted)}"


def _power_text(c: Comparison) -> str:
    if c.power is None:
        return ""
    alone = ""
    if c.equivalence_p != c.equivalence_p_adjusted:
        alone = " by itself, without the correction,"
    text = f" The power to show equivalence{alone} was {c.power:.2f}"
    if c.power >= WANTED_POWER:
        return f"{text}."
    if c.machines > 1:
        return f"{text}; more machines would raise it."
    each = "rounds" if c.analysis == "paired" else "runs a side"
    needed = (
        "no number of runs would"
        if c.runs_required is None
        else f"{c.runs_required:,} {each} would"
    )
    return f"{text}; {needed} raise it to {WANTED_POWER:g}."

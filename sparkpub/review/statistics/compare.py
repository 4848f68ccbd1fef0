"""Two environments, one metric: how far apart, how sure, and whether the difference matters.

Every comparison rests on Welch's t, which assumes neither equal spreads nor equal n. Rank tests and the paired
analysis stand beside it and are named in `why` where they disagree; they do not choose the verdict.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
import scipy

from sparkpub.record.metrics import Direction
from sparkpub.record.text import p_text
from sparkpub.review.statistics.describe import (
    ALPHA,
    MINIMUM_RUNS,
    Floats,
    Interval,
    around,
    autocorrelation,
    effective_n,
    resolution_of,
    standard_error,
    t_quantile,
)
from sparkpub.review.statistics.remembered import remembered

Verdict = Literal["higher", "lower", "equivalent", "undecided"]

DETECTABLE_PERCENT = 10.0
"""The difference that a sample should be able to detect: success criterion 2 of the methodology."""
_CERTAIN, _NO_LOWER_TAIL = 1e3, 5.0
"""Shifts in standard errors beyond which the noncentral t's tails are 1 and 0 and cannot be evaluated."""


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Student's paired t on the differences within pairs (candidate - baseline of one iteration)."""

    n: int
    difference: float
    ci95_difference: Interval
    p_value: float
    equivalence_p: float | None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Candidate against baseline. None where n, the scale or a zero baseline does not carry a figure.

    `overhead_percent` is the source's formula on execution times: 100 (T_candidate - T_baseline) / T_baseline
    with T the inverse of a rate; for times and memory it is their own relative increase. `effect_size` is Hedges' g.
    `p_adjusted` and `equivalence_p_adjusted` are Holm's where `adjust` has seen the family, else the plain p.
    Percentages and ratios are None on a scale without a true zero (°C).
    """

    n_baseline: int
    n_candidate: int
    n_effective_baseline: float
    n_effective_candidate: float
    mean_baseline: float
    mean_candidate: float
    difference: float
    difference_percent: float | None
    ratio: float | None
    inverse_ratio: float | None
    ci95_ratio: Interval | None
    overhead_percent: float | None
    ci95_difference: Interval | None
    p_value: float | None
    p_adjusted: float | None
    mann_whitney_p: float | None
    effect_size: float | None
    equivalence_margin_percent: float
    equivalence_p: float | None
    equivalence_p_adjusted: float | None
    power_10_percent: float | None
    paired: Paired | None
    better: Literal["baseline", "candidate"] | None

    @property
    def verdict(self) -> Verdict:
        """In a word. Equivalence within the declared margin comes first: what is negligible is not a difference."""
        if min(self.n_baseline, self.n_candidate) < MINIMUM_RUNS:
            return "undecided"
        if _significant(self.equivalence_p_adjusted):
            return "equivalent"
        if _significant(self.p_adjusted):
            return "higher" if self.difference > 0 else "lower"
        return "undecided"

    @property
    def why(self) -> str:
        """What the verdict rests on and what speaks against it, in one sentence."""
        return "; ".join((_ground(self), *_doubts(self))) + "."


@remembered
def compare(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    margin_percent: float,
    direction: Direction = "neither",
    unit: str = "",
    pairs: Sequence[tuple[float, float]] | None = None,
) -> Comparison:
    """Compare two samples of one metric, each in run order. Raises ValueError where one is empty or not finite.

    `margin_percent` is the equivalence margin in percent of the baseline's mean. `direction` says which way is
    better, `unit` whether values are a rate (ends in /s) or lack a true zero (°C). `pairs` are (baseline,
    candidate) values of the same iteration where the order of runs was interleaved.
    """
    a, b = np.array(baseline, dtype=np.float64), np.array(candidate, dtype=np.float64)
    if not len(a) or not len(b) or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a comparison needs at least one value on each side, and finite ones")
    welch, mean_a, mean_b = Welch.of(a, b), float(a.mean()), float(b.mean())
    scaled = unit != "°C" and mean_a > 0
    ratio = mean_b / mean_a if scaled else None
    margin = margin_percent / 100 * mean_a if scaled else None
    p_value, neither = None if welch is None else welch.p_value, direction == "neither" or mean_a == mean_b
    equivalence_p = None if welch is None or margin is None else welch.tost(margin)
    return Comparison(
        n_baseline=len(a),
        n_candidate=len(b),
        n_effective_baseline=effective_n(len(a), autocorrelation(a)),
        n_effective_candidate=effective_n(len(b), autocorrelation(b)),
        mean_baseline=mean_a,
        mean_candidate=mean_b,
        difference=mean_b - mean_a,
        difference_percent=100 * (mean_b - mean_a) / mean_a if scaled else None,
        ratio=ratio,
        inverse_ratio=1 / ratio if ratio else None,
        ci95_ratio=None if welch is None or not scaled else welch.ratio_interval(),
        overhead_percent=_overhead(ratio, direction, unit),
        ci95_difference=None if welch is None else around(mean_b - mean_a, welch.error, welch.df),
        p_value=p_value,
        p_adjusted=p_value,
        mann_whitney_p=mann_whitney(a, b),
        effect_size=hedges_g(a, b),
        equivalence_margin_percent=margin_percent,
        equivalence_p=equivalence_p,
        equivalence_p_adjusted=equivalence_p,
        power_10_percent=None if welch is None or not scaled else welch.power(DETECTABLE_PERCENT / 100 * mean_a),
        paired=None if pairs is None else paired(pairs, margin),
        better=None if neither else "candidate" if (mean_b > mean_a) == (direction == "higher") else "baseline",
    )


def _overhead(ratio: float | None, direction: Direction, unit: str) -> float | None:
    time = ratio and (1 / ratio if unit.endswith("/s") else ratio if direction == "lower" else None)
    return 100 * (time - 1) if time else None


@dataclass(frozen=True)
class Welch:
    """Welch's (1947) approximation for two means: errors of both, and their difference's `error` and `df`."""

    mean_a: float
    mean_b: float
    error_a: float
    error_b: float
    df_a: int
    df_b: int

    @classmethod
    def of(cls, a: Floats, b: Floats) -> "Welch | None":
        """From two samples of one instrument, whose rounding is the finer of both; None for fewer than two values."""
        if min(len(a), len(b)) < 2:
            return None
        shared = resolution_of(np.concatenate((a, b)))
        error_a, error_b = (standard_error(values, shared) for values in (a, b))
        return cls(float(a.mean()), float(b.mean()), error_a, error_b, len(a) - 1, len(b) - 1)

    @property
    def error(self) -> float:
        """Standard error of the difference."""
        return math.hypot(self.error_a, self.error_b)

    @property
    def df(self) -> float:
        """Degrees of freedom of the difference."""
        return self._df(1.0)

    def _df(self, weight: float) -> float:
        """Welch-Satterthwaite degrees of freedom of mean_b - weight × mean_a."""
        va, vb = (weight * self.error_a) ** 2, self.error_b**2
        return (va + vb) ** 2 / (va**2 / self.df_a + vb**2 / self.df_b)

    @property
    def p_value(self) -> float:
        """Two-sided p of no difference."""
        return _two_sided((self.mean_b - self.mean_a) / self.error, self.df)

    def tost(self, margin: float) -> float:
        """p of two one-sided tests that |difference| < margin (Schuirmann 1987), with Welch's error and df."""
        return _tost(self.mean_b - self.mean_a, self.error, self.df, margin)

    def power(self, difference: float) -> float:
        """Probability that this test rejects at 5 % when the true difference is `difference` (noncentral t:
        Cohen, Statistical Power Analysis, 1988), the spreads being those observed."""
        critical, shift = t_quantile(1 - ALPHA / 2, self.df), abs(difference) / self.error
        above = 1.0 if shift > _CERTAIN else float(1 - scipy.special.nctdtr(self.df, shift, critical))
        below = float(scipy.special.nctdtr(self.df, shift, -critical)) if shift < _NO_LOWER_TAIL else 0.0
        return min(1.0, above + below)

    def ratio_interval(self) -> Interval | None:
        """Fieller's (1954) 95 % interval of mean_b / mean_a; None where the baseline is not clear of zero."""
        ratio = self.mean_b / self.mean_a
        t = t_quantile(1 - ALPHA / 2, self._df(ratio))
        g = (t * self.error_a / self.mean_a) ** 2
        if g >= 1:
            return None
        half = t / abs(self.mean_a) * math.sqrt((1 - g) * self.error_b**2 + (ratio * self.error_a) ** 2)
        return (ratio - half) / (1 - g), (ratio + half) / (1 - g)


def _two_sided(t: float, df: float) -> float:
    return float(2 * scipy.special.stdtr(df, -abs(t)))


def _tost(difference: float, error: float, df: float, margin: float) -> float:
    above = scipy.special.stdtr(df, (difference - margin) / error)
    below = scipy.special.stdtr(df, -(difference + margin) / error)
    return float(max(above, below))


@remembered
def equivalence(baseline: Sequence[float], candidate: Sequence[float], margin_percent: float) -> float | None:
    """p of TOST that two means differ by less than `margin_percent` of the baseline's; None where n < 2."""
    welch = Welch.of(np.array(baseline, dtype=np.float64), np.array(candidate, dtype=np.float64))
    return None if welch is None else welch.tost(margin_percent / 100 * abs(welch.mean_a))


def mann_whitney(a: Floats, b: Floats) -> float | None:
    """Two-sided p of the Mann-Whitney U test (exact without ties), None where even complete separation of n and
    m values, 2 of C(n + m, n) arrangements, would not reject at 5 %."""
    n, m = len(a), len(b)
    if min(n, m) < MINIMUM_RUNS and 2 / math.comb(n + m, n) > ALPHA:
        return None
    distinct = len(np.unique(np.concatenate((a, b))))
    exact = distinct == n + m and n * m <= 2500
    if distinct == 1:
        return 1.0
    return float(scipy.stats.mannwhitneyu(a, b, method="exact" if exact else "asymptotic").pvalue)


def hedges_g(a: Floats, b: Floats) -> float | None:
    """(mean_b - mean_a) / pooled sd × (1 - 3 / (4 df - 1)): Hedges (1981). None where n < 2 on a side.

    A spread below the readings' rounding counts as that rounding.
    """
    if min(len(a), len(b)) < 2:
        return None
    df = len(a) + len(b) - 2
    pooled = math.sqrt(((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / df)
    spread = max(pooled, resolution_of(np.concatenate((a, b))) / math.sqrt(12))
    return float(b.mean() - a.mean()) / spread * (1 - 3 / (4 * df - 1))


def paired(pairs: Sequence[tuple[float, float]], margin: float | None) -> Paired | None:
    """Student's t on differences; None for fewer than two pairs. `margin` in units."""
    if len(pairs) < 2:
        return None
    table = np.array(pairs)
    change = table[:, 1] - table[:, 0]
    step, df, mean = resolution_of(table.ravel()), len(pairs) - 1, float(change.mean())
    error = standard_error(change, step)
    return Paired(
        n=len(pairs),
        difference=mean,
        ci95_difference=around(mean, error, df),
        p_value=_two_sided(mean / error, df),
        equivalence_p=None if margin is None else _tost(mean, error, df, margin),
    )


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
    """The comparisons of one family with Holm's correction of their tests of difference and, apart, of equivalence."""
    different = holm([item.p_value for item in family])
    equal = holm([item.equivalence_p for item in family])
    return [
        replace(item, p_adjusted=p, equivalence_p_adjusted=q)
        for item, p, q in zip(family, different, equal, strict=True)
    ]


def _significant(p: float | None) -> bool:
    return p is not None and p < ALPHA


def _ground(c: Comparison) -> str:
    margin = f"±{c.equivalence_margin_percent:g} %"
    if min(c.n_baseline, c.n_candidate) < MINIMUM_RUNS:
        return f"n too small to decide: {c.n_baseline} and {c.n_candidate} runs, {MINIMUM_RUNS} on each side are needed"
    if c.verdict == "equivalent":
        text = f"within {margin} of the baseline's mean (TOST, {_holm(c.equivalence_p, c.equivalence_p_adjusted)})"
        return text + (f", and detectable within it ({p_text(c.p_adjusted)})" if _significant(c.p_adjusted) else "")
    if c.verdict != "undecided":
        return f"Welch t, {_holm(c.p_value, c.p_adjusted)}"
    power = "" if c.power_10_percent is None else f"; power against a 10 % difference is {c.power_10_percent:.2f}"
    different = _holm(c.p_value, c.p_adjusted)
    if c.equivalence_p is None:
        return f"no difference is shown ({different}){power}"
    equal = _holm(c.equivalence_p, c.equivalence_p_adjusted)
    return f"neither a difference ({different}) nor equivalence within {margin} ({equal}) is shown{power}"


def _holm(plain: float | None, adjusted: float | None) -> str:
    return ("" if plain == adjusted else "adjusted ") + p_text(adjusted)


def _doubts(c: Comparison) -> list[str]:
    """Tests that see it otherwise than Welch's t before correction, and runs that are not independent."""
    others = [("Mann-Whitney", c.mann_whitney_p)]
    if c.paired is not None:
        others.append((f"the paired analysis of {c.paired.n} iterations", c.paired.p_value))
    sides = (("baseline", c.n_baseline, c.n_effective_baseline), ("candidate", c.n_candidate, c.n_effective_candidate))
    return [
        f"{name} disagrees ({p_text(p)} against {p_text(c.p_value)})"
        for name, p in others
        if p is not None and _significant(p) != _significant(c.p_value)
    ] + [
        f"neighbouring runs are alike: the {n} of the {name} are worth {worth:.1f} independent ones"
        for name, n, worth in sides
        if worth < MINIMUM_RUNS <= n
    ]

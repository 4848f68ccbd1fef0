"""Everything that runs show is an estimate: a value, its standard error, and the degrees of freedom behind the error.

A mean is one (`mean_of`), and so is the difference of two means (`two_means`), or what several machines or cells say
together (`over`). What an estimate shows is asked of it in one way: its interval, and its tests. Value, error and
degrees of freedom are numbers, or arrays of many. Functions that take arrays work on the last axis, so that many
samples can be described at once. NumPy and scipy.special do the work: importing scipy.stats takes 0.6 s, and `check` of
350 runs 2 s. The tests hold it against scipy.stats and statsmodels.

Rounding. Readings rounded to a step r carry a standard uncertainty of r/√12 that averaging does not reduce
(JCGM 100:2008, F.2.2.1). It is added to the spread of the readings: se² = s²/n + r²/12.

Dependence. Runs that resemble the run before are worth fewer than they are. Standard errors and degrees of freedom
use the effective n (Zwiers and von Storch 1995, Journal of Climate 8, 336-351).

Several estimates of one effect. Runs of one session share a machine, a day and whatever else nobody varied: their
interval says how well that session knows its own figure. What another machine or another day would give shows only
between sessions (Kalibera and Jones 2013, Rigorous Benchmarking in Reasonable Time):

- the variance between machines, τ², by Paule and Mandel (1982, Journal of Research of the National Bureau of Standards
  87, 377-385), recommended by Veroniki et al. (2016, Research Synthesis Methods 7, 55-79);
- the interval of the mean with Student's t on k - 1 degrees of freedom (Hartung and Knapp 2001, Statistics in Medicine
  20, 3875-3889; Sidik and Jonkman 2002). Their factor √(Q(τ²) / (k - 1)) is 1 at Paule and Mandel's τ², and is not
  taken below 1 where τ² is zero (Röver, Knapp and Friede 2015, BMC Medical Research Methodology 15:99);
- Cochran's Q (1954, Biometrics 10, 101-129) with its chi-squared p, I² (Higgins and Thompson 2002) and, from three
  machines on, the interval in which the effect on another machine is expected (Higgins, Thompson and Spiegelhalter
  2009, with t on k - 2 degrees of freedom).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.record.percentiles import quantiles

Floats = NDArray[np.float64]
Interval = tuple[float, float]

ALPHA = 0.05
WANTED_POWER = 0.8
"""The power that a test should have (Cohen 1988)."""
DETECTABLE_PERCENT = 10.0
"""The difference that a sample should be able to detect: success criterion 2 of the methodology."""
POOR_VARIATION_PERCENT = 5.0
"""Coefficient of variation above which the source's methodology calls a cell's data poor."""
MINIMUM_RUNS = 4
"""Fewest independent runs that carry a statement: with three against three not even a complete separation of the ranks
is significant at 5 % (2 of 20 arrangements), so at n ≤ 3 everything would rest on the assumption of normality."""
_LEAST_DF = 0.5
"""Fewest degrees of freedom that carry an interval; Student's 97.5 % quantile is 165 there."""
_CERTAIN = 1e3
"""Shift in standard errors beyond which the noncentral t cannot be evaluated."""
_STEPS = 100
"""More than Newton's method needs: it doubles the correct digits with every step."""
_CLOSE = 1e-12
_TRUSTED_DIGITS = 1e-9
_MOST_PLACES = 16
_MOST_ALIKE = 0.99
"""Largest lag-1 autocorrelation that is used: at 1 no number of runs would be worth two."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its standard error, in the same unit, and the degrees of freedom behind the error."""

    value: Any
    error: Any
    df: Any = math.inf

    def of(self, which: Any) -> "Estimate":
        """Some of many."""
        return Estimate(self.value[which], self.error[which], self.df[which])

    def ends(self, level: float = 1 - ALPHA) -> tuple[Any, Any]:
        """The ends of Student's interval; NaN with too few degrees of freedom."""
        is_enough = np.asarray(self.df) >= _LEAST_DF
        df = np.where(is_enough, self.df, np.nan)
        half = scipy.special.stdtrit(df, (1 + level) / 2) * self.error
        return self.value - half, self.value + half

    def interval(self) -> Interval | None:
        """The 95 % interval of a single estimate; None with too few degrees of freedom."""
        low, high = self.ends()
        return None if np.isnan(low) else (float(low), float(high))

    @property
    def p_value(self) -> Any:
        """Two-sided p that the true value is zero: Student's t."""
        t = -np.abs(self.value) / self.error
        return 2 * scipy.special.stdtr(self.df, t)

    def equivalence_p(self, margin: Any) -> Any:
        """p of two one-sided tests that the true value lies within ± `margin` (Schuirmann 1987), in its unit."""
        t = (np.abs(self.value) - margin) / self.error
        return scipy.special.stdtr(self.df, t)

    def detection_power(self, difference: Any) -> Any:
        """Probability that the test rejects zero at 5 % when the true value is `difference`.

        Noncentral t (Cohen, Statistical Power Analysis, 1988); the error is that observed. What cannot be evaluated of
        its tails is too small to count.
        """
        critical = scipy.special.stdtrit(self.df, 1 - ALPHA / 2)
        shift = np.abs(difference / self.error)
        shown = np.minimum(shift, _CERTAIN)
        missed = np.nan_to_num(scipy.special.nctdtr(self.df, shown, critical))
        below = np.nan_to_num(scipy.special.nctdtr(self.df, shown, -critical))
        unknown = 0 * shift
        return np.minimum(1.0, 1 - missed + below) + unknown

    def detectable(self) -> Any:
        """The true value that the test finds with `WANTED_POWER`: the noncentral t's shift."""
        critical = scipy.special.stdtrit(self.df, 1 - ALPHA / 2)
        shift = scipy.special.nctdtrinc(self.df, 1 - WANTED_POWER, critical)
        return shift * self.error


# -- one sample ----------------------------------------------------------------------------------------------------


def described(values: Floats) -> dict[str, NDArray[Any]]:
    """How the values of samples of one size lie, each a row: the columns of the table of cells. `sd` divides by n - 1,
    `sd_population` by n."""
    p50, p95, p99 = quantiles(values, (0.5, 0.95, 0.99))
    return {
        "n": np.full(len(values), values.shape[-1]),
        "mean": values.mean(axis=-1),
        "sd": _sd(values),
        "sd_population": values.std(axis=-1),
        "min": values.min(axis=-1),
        "max": values.max(axis=-1),
        "p50": p50,
        "p95": p95,
        "p99": p99,
    }


def mean(values: Floats, resolution: Any, worth: Any = None) -> Estimate:
    """The mean along the last axis of readings in run order, rounded to steps of `resolution`. They count as `worth`,
    by default their effective n."""
    n = effective_n(values) if worth is None else worth
    error = np.sqrt(_sd(values) ** 2 / n + resolution**2 / 12)
    return Estimate(values.mean(axis=-1), error, n - 1)


def mean_of(values: Floats) -> dict[str, NDArray[Any]]:
    """What the means of samples of one size are worth, each a row of values in run order: `error` and `df` by the
    `n_effective` to which the lag-1 `autocorrelation` brings n, and Student's interval: none below `MINIMUM_RUNS`
    values, and none below zero for what is always positive."""
    found = mean(values, resolution_of(values))
    low, high = found.ends()
    if values.shape[-1] < MINIMUM_RUNS:
        low = high = np.full(len(values), np.nan)
    is_positive = values.min(axis=-1) > 0
    return {
        "ci95_low": np.where(is_positive, np.maximum(low, 0.0), low),
        "ci95_high": high,
        "autocorrelation": autocorrelation(values),
        "n_effective": found.df + 1,
        "error": found.error,
        "df": found.df,
    }


def _sd(values: Floats) -> Floats:
    """The standard deviation along the last axis; NaN for a single value."""
    n = values.shape[-1]
    found: Floats = values.std(axis=-1)
    return found * (math.sqrt(n / (n - 1)) if n > 1 else math.nan)


def resolution_of(values: Sequence[float] | Floats) -> Any:
    """The decimal step to which values are rounded, along the last axis: at most 1, and never finer than nine
    significant digits."""
    array = np.asarray(values, dtype=np.float64)
    finest = _TRUSTED_DIGITS * np.abs(array).max(axis=-1)
    step = np.ones_like(finest)
    for places in range(_MOST_PLACES):
        is_finer = (np.round(array, places) != array).any(axis=-1) & (step > finest)
        if not is_finer.any():
            break
        step = np.where(is_finer, 10.0 ** -(places + 1), step)
    return np.maximum(step, finest)


def autocorrelation(values: Sequence[float] | Floats) -> Any:
    """Lag-1 autocorrelation r1 (NIST/SEMATECH e-Handbook, 1.3.5.12) along the last axis; NaN for n < 3 or without
    spread."""
    array = np.asarray(values, dtype=np.float64)
    centred = array - array.mean(axis=-1, keepdims=True)
    spread = (centred**2).sum(axis=-1)
    trusted = _TRUSTED_DIGITS * np.abs(array).max(axis=-1)
    known = (spread > trusted**2) & (array.shape[-1] > 2)
    products = centred[..., :-1] * centred[..., 1:]
    return products.sum(axis=-1) / np.where(known, spread, np.nan)


def effective_n(values: Sequence[float] | Floats) -> Any:
    """What n values in run order are worth as independent ones, along the last axis: between 1 and n.

    Zwiers and von Storch (1995): n / (1 + 2 Σ (1 - k/n) ρᵏ) for a first-order process. ρ is r1 + 1/n, since r1 of
    independent values is -1/n on average (Moran 1948, Biometrika 35, 255-260). A negative ρ is not taken as extra
    evidence. Values without spread, and fewer than three, count in full.
    """
    n = np.shape(values)[-1]
    r1 = np.asarray(autocorrelation(values))
    rho = np.clip(np.nan_to_num(r1 + 1 / n), 0.0, _MOST_ALIKE)
    # The sum in closed form.
    shared = rho / (1 - rho) - rho * (1 - rho**n) / (n * (1 - rho) ** 2)
    return n / (1 + 2 * shared)


# -- two samples ---------------------------------------------------------------------------------------------------


def two_means(
    baseline: Floats, candidate: Floats, resolution: Any, *, paired: bool
) -> tuple[Estimate, dict[str, Any]]:
    """The difference of two means, candidate minus baseline, and beside it `mean_baseline`, `mean_candidate`,
    `n_effective` and the ends of Fieller's (1954) intervals of their ratio, NaN where the baseline is not clear of
    zero.

    Values are in run order. Paired are those of one round: the differences within rounds count with their effective n.
    Else each side does; `n_effective` is that of the smaller side, and the degrees of freedom are Welch's. One value a
    side has no error.
    """
    worth: Any = effective_n(candidate - baseline) if paired else None
    one, other = (mean(side, resolution, worth) for side in (baseline, candidate))
    if paired:
        apart = candidate - baseline
        # Each is the difference of two readings.
        found = mean(apart, math.sqrt(2) * resolution, worth)
        df_of_ratio = found.df
        # Of a ± b: that of the sum is the larger by four covariances.
        fourfold = _sd(baseline + candidate) ** 2 - _sd(apart) ** 2
        covariance = fourfold / 4 / worth
    else:
        found, covariance = difference_of(one, other), np.zeros_like(one.value)
        with np.errstate(divide="ignore", invalid="ignore"):
            weighted = replace(one, error=one.error * other.value / one.value)
        df_of_ratio = difference_of(weighted, other).df
    beside = {
        "n_effective": 1 + np.minimum(one.df, other.df),
        "mean_baseline": one.value,
        "mean_candidate": other.value,
    }
    for name, level in (("ci95_ratio", 1 - ALPHA), ("ci90_ratio", 1 - 2 * ALPHA)):
        t = scipy.special.stdtrit(df_of_ratio, (1 + level) / 2)
        low, high = _fieller(one, other, covariance, t)
        beside |= {f"{name}_low": low, f"{name}_high": high}
    unknown = 0 * found.error
    return Estimate(other.value - one.value, found.error, found.df + unknown), beside


def _fieller(
    baseline: Estimate, candidate: Estimate, covariance: Any, t: Any
) -> tuple[Floats, Floats]:
    """The ratios θ at which candidate - θ × baseline lies `t` of its own errors from zero."""
    a, va, vb = baseline.value, baseline.error**2, candidate.error**2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = candidate.value / a
        g = t**2 * va / a**2
        spread = vb - 2 * ratio * covariance + ratio**2 * va
        spread = spread - g * (vb - covariance**2 / va)
        half = t / np.abs(a) * np.sqrt(np.maximum(0.0, spread))
        centre = ratio - g * covariance / va
        clear = np.where(g < 1, 1 - g, np.nan)
        return (centre - half) / clear, (centre + half) / clear


def difference_of(baseline: Estimate, candidate: Estimate) -> Estimate:
    """Candidate minus baseline, of which nothing is known but their errors, with Welch's (1947) degrees of freedom, by
    Satterthwaite (1946, doi 10.2307/3002019); NaN where neither has an error."""
    variances = baseline.error**2, candidate.error**2
    with np.errstate(divide="ignore", invalid="ignore"):
        doubts = map(np.divide, np.square(variances), (baseline.df, candidate.df))
        df = np.divide(sum(variances) ** 2, sum(doubts))
    return Estimate(candidate.value - baseline.value, np.sqrt(sum(variances)), df)


# -- several estimates ---------------------------------------------------------------------------------------------


def over(each: Estimate) -> Estimate:
    """Two or more estimates of one effect together, in one unit: the mean over machines, or cells, like these."""
    weights = 1 / (each.error**2 + between_variance(each.value, each.error**2))
    mean = float(np.average(each.value, weights=weights))
    return Estimate(mean, math.sqrt(1 / weights.sum()), len(weights) - 1)


def together(means: Estimate) -> Estimate:
    """Means of one thing over machines: `over` where each has an error, else their mean, of which no error is known."""
    if (means.error > 0).all():
        return over(means)
    return Estimate(float(means.value.mean()), np.nan, np.nan)


def spread(each: Estimate) -> dict[str, float]:
    """How much machines differ: `between_sd` is τ, the spread of the true effects, `i2_percent` the share of the spread
    of the estimates that is due to it, `q` Cochran's with its p, and `prediction95` where the effect on one more
    machine is expected, NaN for two, which leave no degree of freedom for it."""
    values, variances, mean = each.value, each.error**2, over(each)
    df = len(values) - 1
    q, _ = _q(values, variances)
    between = between_variance(values, variances)
    error = math.sqrt(between + mean.error**2)
    low, high = Estimate(mean.value, error, df - 1).ends()
    return {
        "between_sd": math.sqrt(between),
        "i2_percent": 100 * max(0.0, q - df) / max(q, df),
        "q": q,
        "heterogeneity_p": float(scipy.special.chdtrc(df, q)),
        "prediction95_low": float(low),
        "prediction95_high": float(high),
    }


def between_variance(values: Floats, variances: Floats) -> float:
    """Paule and Mandel's τ²: with it, the squared distances from the weighted mean are what they are expected to be.

    By Newton's method from zero, which never overshoots, since Q(τ²) is convex and falls (DerSimonian and Kacker 2007,
    Contemporary Clinical Trials 28, 105-114). Zero where the values differ by no more than their errors.
    """
    df = len(values) - 1
    between = 0.0
    for _ in range(_STEPS):
        q, slope = _q(values, variances + between)
        if q <= df * (1 + _CLOSE):
            break
        between += (q - df) / slope
    return between


def _q(values: Floats, variances: Floats) -> tuple[float, float]:
    """The weighted squared distances from the weighted mean, and how fast they fall as every variance grows."""
    weights = 1 / variances
    squares = (values - np.average(values, weights=weights)) ** 2
    return float(weights @ squares), float(weights**2 @ squares)


# -- what is said of them ------------------------------------------------------------------------------------------


def t_quantile(q: float, df: float) -> float:
    """The q quantile of Student's t."""
    return float(scipy.special.stdtrit(df, q))


def unseen_percent(n: float) -> float:
    """The share of runs of another kind, such as slow ones, in percent, of which `n` independent runs have none in one
    of twenty campaigns: 25.9 for ten. What is rarer may well be missing."""
    return float(100 * (1 - ALPHA ** (1 / n)))


def is_significant(p: float | None) -> bool:
    """Whether a p-value is there and below 5 %."""
    return p is not None and p < ALPHA


def holm(p_values: Sequence[float | None] | Floats) -> list[float | None]:
    """Holm's (1979) step-down adjusted p in the order given; what is missing, None or NaN, is no test: None."""
    p = np.array(p_values, dtype=np.float64)
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]  # NaN last
    left = len(order) - np.arange(len(order))
    p[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * left))
    return [None if np.isnan(each) else each for each in p.tolist()]


def verdict_of(
    n_effective: Any,
    difference: Any,
    p_value: Any,
    equivalence_p: Any,
    *,
    confounded: Any,
) -> Any:
    """The rule, for each element. Equivalence within the declared margin comes first: what is negligible is not a
    difference."""
    return np.select(
        [
            confounded,
            np.less(n_effective, MINIMUM_RUNS),
            np.less(equivalence_p, ALPHA),
            np.less(p_value, ALPHA),
        ],
        [
            "confounded",
            "undecided",
            "equivalent",
            np.where(np.greater(difference, 0), "higher", "lower"),
        ],
        "undecided",
    )


def deciding_level(verdict: str, equivalence_p: float | None) -> float:
    """Confidence of the interval that decides: 0.90 where TOST decides or was left open, else 0.95.

    "At most" speaks of one side. An end of the 90 % interval bounds its side with 95 % confidence, and it is the end
    that TOST compares with the margin: so a bound never contradicts the verdict beside it.
    """
    if equivalence_p is not None and verdict in ("equivalent", "undecided"):
        return 1 - 2 * ALPHA
    return 1 - ALPHA


def replication(
    overall: str,
    verdicts: Sequence[str],
    heterogeneity_p: float | None,
) -> Literal["replicates", "does not replicate", "undecided"]:
    """Whether machines show one thing: `overall` is the verdict on their mean, `verdicts` are their own. The p of their
    having one effect is None where too few of them have an interval.

    It replicates where the mean over machines decides and no machine decides otherwise. It does not where two machines
    decide differently and Q shows that they differ. All else is open.
    """
    decided = {verdict for verdict in verdicts if verdict != "undecided"}
    if heterogeneity_p is None:
        return "undecided"
    if len(decided) > 1 and is_significant(heterogeneity_p):
        return "does not replicate"
    if overall != "undecided" and decided <= {overall}:
        return "replicates"
    return "undecided"

"""Two means, their difference and ratio: errors, tests, intervals, power.

Everything works on arrays with any number of leading axes, so that one call judges one comparison or thousands.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from sparkpub.review.statistics.describe import (
    ALPHA,
    Estimate,
    Floats,
    by_block,
    effective_n,
    rounding_variance,
    satterthwaite,
)

_CERTAIN, _NO_LOWER_TAIL = 1e3, 5.0
"""Shifts in standard errors beyond which the noncentral t's tails are 1 and 0 and cannot be evaluated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoMeans:
    """Means of baseline and candidate, with the variances and the covariance of these means and of their difference.

    `df_baseline` and `df_candidate` are the degrees of freedom behind each variance; within rounds both are those of
    the differences. `n_effective` is what the runs are worth: of the smaller side, or of the differences within rounds.
    """

    baseline: Any
    candidate: Any
    variance_baseline: Any
    variance_candidate: Any
    covariance: Any
    variance_difference: Any
    df_baseline: Any
    df_candidate: Any
    n_effective: Any
    paired: bool

    @property
    def difference(self) -> Any:
        """Candidate minus baseline."""
        return self.candidate - self.baseline

    @property
    def error(self) -> Any:
        """Standard error of the difference."""
        return np.sqrt(self.variance_difference)

    @property
    def df(self) -> Any:
        """Degrees of freedom of the difference."""
        return self._df(1.0)

    def _df(self, weight: Any) -> Any:
        """Degrees of freedom of candidate - weight × baseline: Welch-Satterthwaite where the sides are independent."""
        if self.paired:
            return self.df_baseline
        variances = weight**2 * self.variance_baseline, self.variance_candidate
        return satterthwaite(variances, (self.df_baseline, self.df_candidate))

    @property
    def p_value(self) -> Any:
        """Two-sided p of no difference: Student's t within rounds, Welch's (1947) between independent samples."""
        return 2 * scipy.special.stdtr(self.df, -np.abs(self.difference) / self.error)

    def equivalence_p(self, margin: Any) -> Any:
        """p of two one-sided tests that |difference| < margin (Schuirmann 1987), in the metric's unit."""
        above = scipy.special.stdtr(self.df, (self.difference - margin) / self.error)
        below = scipy.special.stdtr(self.df, -(self.difference + margin) / self.error)
        return np.maximum(above, below)

    def ratio_ends(self, level: float = 1 - ALPHA) -> tuple[Any, Any]:
        """The ends of Fieller's (1954) interval of candidate / baseline; NaN where the baseline is not clear of zero.

        They are the ratios θ at which candidate - θ × baseline lies t of its own errors from zero.
        """
        ratio = self.candidate / self.baseline
        t = scipy.special.stdtrit(self._df(ratio), (1 + level) / 2)
        va, vb, cov = self.variance_baseline, self.variance_candidate, self.covariance
        g = t**2 * va / self.baseline**2
        clear = g < 1
        spread = vb - 2 * ratio * cov + ratio**2 * va - g * (vb - cov**2 / va)
        half = t / np.abs(self.baseline) * np.sqrt(np.maximum(0.0, spread))
        centre = ratio - g * cov / va
        below_one = np.where(clear, 1 - g, np.nan)
        return (centre - half) / below_one, (centre + half) / below_one

    def detection_power(self, difference: Any) -> Any:
        """Probability that the test of a difference rejects at 5 % when the true one is `difference`.

        Noncentral t (Cohen, Statistical Power Analysis, 1988); the spreads are those observed.
        """
        return detection_power(difference / self.error, self.df)

    def detectable(self, power: float) -> Any:
        """The difference that the test finds with that probability."""
        return detectable_shift(self.df, power) * self.error


def detectable_shift(df: Any, power: float) -> Any:
    """How many standard errors a difference is that the test finds with that probability: the noncentral t's shift."""
    critical = scipy.special.stdtrit(df, 1 - ALPHA / 2)
    return scipy.special.nctdtrinc(df, 1 - power, critical)


def detection_power(difference: Any, df: Any) -> Any:
    """Probability that the test rejects at 5 % when the true difference is so many standard errors."""
    critical = scipy.special.stdtrit(df, 1 - ALPHA / 2)
    shift = np.abs(difference)
    # Beyond these shifts the tails cannot be evaluated, and are 1 and 0. Some that are nearly 0 come as NaN before.
    missed = scipy.special.nctdtr(df, np.minimum(shift, _CERTAIN), critical)
    known = (shift <= _CERTAIN) & ~(np.isnan(missed) & np.isfinite(shift))
    above = np.where(known, 1 - missed, 1.0)
    below = scipy.special.nctdtr(df, np.minimum(shift, _NO_LOWER_TAIL), -critical)
    below = np.where(shift < _NO_LOWER_TAIL, below, 0.0)
    return np.minimum(1.0, above + below)


def difference_of(baseline: Estimate, candidate: Estimate) -> Estimate:
    """Candidate minus baseline, of which nothing is known but their errors: Welch's degrees of freedom."""
    variances = baseline.error**2, candidate.error**2
    df = float(satterthwaite(variances, (baseline.df, candidate.df)))
    return Estimate(candidate.value - baseline.value, math.sqrt(sum(variances)), df)


def of_independent(
    baseline: Floats, candidate: Floats, resolution: Any, *, serial: bool = True
) -> TwoMeans:
    """From two independent samples of two values or more each, along the last axis, in run order.

    Each side counts with its effective n, unless `serial` is False: then every run counts in full.
    """
    rounding = rounding_variance(resolution)
    worth = []
    variances = []
    for values in (baseline, candidate):
        n = effective_n(values) if serial else np.float64(values.shape[-1])
        worth.append(n)
        variances.append(values.var(axis=-1, ddof=1) / n + rounding)
    return TwoMeans(
        baseline=baseline.mean(axis=-1),
        candidate=candidate.mean(axis=-1),
        variance_baseline=variances[0],
        variance_candidate=variances[1],
        covariance=np.zeros_like(variances[0]),
        variance_difference=variances[0] + variances[1],
        df_baseline=worth[0] - 1,
        df_candidate=worth[1] - 1,
        n_effective=np.minimum(worth[0], worth[1]),
        paired=False,
    )


def of_rounds(baseline: Floats, candidate: Floats, resolution: Any) -> TwoMeans:
    """From the two values of each of two rounds or more, along the last axis, in order of time.

    The differences within rounds count with their effective n.
    """
    rounding = rounding_variance(resolution)
    n = baseline.shape[-1]
    differences = candidate - baseline
    worth = effective_n(differences)
    apart_a = baseline - baseline.mean(axis=-1, keepdims=True)
    apart_b = candidate - candidate.mean(axis=-1, keepdims=True)
    per_run = (n - 1) * worth
    return TwoMeans(
        baseline=baseline.mean(axis=-1),
        candidate=candidate.mean(axis=-1),
        variance_baseline=(apart_a**2).sum(axis=-1) / per_run + rounding,
        variance_candidate=(apart_b**2).sum(axis=-1) / per_run + rounding,
        covariance=(apart_a * apart_b).sum(axis=-1) / per_run,
        variance_difference=differences.var(axis=-1, ddof=1) / worth + 2 * rounding,
        df_baseline=worth - 1,
        df_candidate=worth - 1,
        n_effective=worth,
        paired=True,
    )


def of_servers(
    baseline: Floats,
    candidate: Floats,
    baseline_blocks: Sequence[Sequence[int]],
    candidate_blocks: Sequence[Sequence[int]],
    resolution: Any,
    by_order: Callable[[Floats, Floats, Any], TwoMeans],
) -> TwoMeans:
    """The means of all runs, with errors from the servers that served them, two or more a side.

    Runs of one server are no independent runs, so that the server is the unit of the analysis: the variance is that
    between clusters (Liang and Zeger 1986, Biometrika 73, 13-22), with one degree of freedom fewer than there are. Each
    run is in one block: the runs of a server or, where `by_order` compares within rounds, of neighbouring servers.
    """
    return by_order(
        by_block(baseline, baseline_blocks),
        by_block(candidate, candidate_blocks),
        resolution,
    )

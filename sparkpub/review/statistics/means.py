"""Two means: the estimate of their difference, and the interval of their ratio.

Everything works on arrays with any number of leading axes, so that one call judges one comparison or thousands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from sparkpub.review.statistics.describe import by_block, effective_n, rounding_variance
from sparkpub.review.statistics.estimate import ALPHA, Estimate, Floats, satterthwaite


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoMeans(Estimate):
    """The difference of two means, candidate minus baseline, and these means with their variances and covariance.

    `df_baseline` and `df_candidate` are the degrees of freedom behind each variance; within rounds both are those of
    the differences. `n_effective` is what the runs are worth: of the smaller side, or of the differences within rounds.
    """

    baseline: Any
    candidate: Any
    variance_baseline: Any
    variance_candidate: Any
    covariance: Any
    df_baseline: Any
    df_candidate: Any
    n_effective: Any
    paired: bool

    def _df(self, weight: Any) -> Any:
        """Degrees of freedom of candidate - weight × baseline: Welch-Satterthwaite where the sides are independent."""
        if self.paired:
            return self.df
        variances = weight**2 * self.variance_baseline, self.variance_candidate
        return satterthwaite(variances, (self.df_baseline, self.df_candidate))

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
    means = baseline.mean(axis=-1), candidate.mean(axis=-1)
    dfs = worth[0] - 1, worth[1] - 1
    return TwoMeans(
        means[1] - means[0],
        np.sqrt(variances[0] + variances[1]),
        satterthwaite(variances, dfs),
        baseline=means[0],
        candidate=means[1],
        variance_baseline=variances[0],
        variance_candidate=variances[1],
        covariance=np.zeros_like(variances[0]),
        df_baseline=dfs[0],
        df_candidate=dfs[1],
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
    means = baseline.mean(axis=-1), candidate.mean(axis=-1)
    return TwoMeans(
        means[1] - means[0],
        np.sqrt(differences.var(axis=-1, ddof=1) / worth + 2 * rounding),
        worth - 1,
        baseline=means[0],
        candidate=means[1],
        variance_baseline=(apart_a**2).sum(axis=-1) / per_run + rounding,
        variance_candidate=(apart_b**2).sum(axis=-1) / per_run + rounding,
        covariance=(apart_a * apart_b).sum(axis=-1) / per_run,
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

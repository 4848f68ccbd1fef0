"""One effect over several cells: too small to show in each, clear in all together.

Not by statsmodels' `combine_effects`, against which the tests hold it: that takes the errors of cells as known, and
with six runs a cell they are not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from sparkpub.review.statistics.describe import (
    ALPHA,
    MINIMUM_RUNS,
    Estimate,
    Floats,
    Interval,
    satterthwaite,
    t_quantile,
)


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """The difference that several cells show together.

    `df` are the degrees of freedom behind `error`, `t` is their quotient's. `q` is Cochran's heterogeneity;
    `heterogeneity_p` is small where the cells differ by more than their errors explain, and then the mean stands for
    none of them.
    """

    cells: int
    difference: float
    error: float
    df: float
    ci95: Interval
    t: float
    p_value: float
    q: float
    heterogeneity_p: float


def pooled(effects: Sequence[Estimate]) -> Pooled | None:
    """The mean of the differences, each weighted by the inverse of its variance (Cochran 1954, doi 10.2307/3001666).

    The variances are estimates themselves, and a cell whose few runs lie close together by luck weighs too much. So
    the variance of the mean has Meier's (1953, doi 10.2307/3001633) correction, its degrees of freedom are
    Satterthwaite's, and heterogeneity is judged by Welch's F (1951, doi 10.2307/2332579) in place of chi-square.
    Where cells scatter by more than their errors, the error grows by Birge's ratio √(q / (cells - 1)) (1932, doi
    10.1103/PhysRev.40.207). Cells worth fewer than four runs are left out. None for fewer than two cells, or where
    one has no spread at all.
    """
    known = [effect for effect in effects if effect.df >= MINIMUM_RUNS - 1]
    if len(known) < 2 or not all(effect.error > 0 for effect in known):
        return None
    differences = np.array([effect.value for effect in known])
    weights = np.array([effect.error**-2 for effect in known])
    df = np.array([effect.df for effect in known])
    total = float(weights.sum())
    shares = weights / total
    mean = float(shares @ differences)
    q = float(weights @ (differences - mean) ** 2)
    meier = 1 + 4 * float((shares * (1 - shares) / df).sum())
    birge = max(1.0, q / (len(known) - 1))
    error = math.sqrt(meier * birge / total)
    worth = float(satterthwaite(shares, df))
    t = mean / error
    reach = t_quantile(1 - ALPHA / 2, worth) * error
    return Pooled(
        cells=len(known),
        difference=mean,
        error=error,
        df=worth,
        ci95=(mean - reach, mean + reach),
        t=t,
        p_value=float(2 * scipy.special.stdtr(worth, -abs(t))),
        q=q,
        heterogeneity_p=heterogeneity_p(q, shares, df),
    )


def heterogeneity_p(q: float, shares: Floats, df: Floats) -> float:
    """p of Welch's test that all cells have one difference; chi-square's where every error is known."""
    cells = len(shares)
    doubt = float(((1 - shares) ** 2 / df).sum())
    if doubt == 0:
        return float(scipy.special.chdtrc(cells - 1, q))
    f = q / (cells - 1) / (1 + 2 * (cells - 2) / (cells**2 - 1) * doubt)
    return float(scipy.special.fdtrc(cells - 1, (cells**2 - 1) / (3 * doubt), f))

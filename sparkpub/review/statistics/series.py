"""A series of runs: does their order show in their values (trends, first runs that stand out), and do any lie apart
from the others?

pymannkendall lets Hamed and Rao's factor fall below 1, so that runs that swing count as extra evidence. The tests show
that case, and hold all others against pymannkendall.
"""

import math
from collections.abc import Sequence
from functools import cache
from statistics import fmean

import numpy as np
import scipy

from sparkpub.review.statistics.estimate import (
    ALPHA,
    Floats,
    resolution_of,
    t_quantile,
)

_EXACT_RUNS = 33
"""Values without ties up to which the distribution of Kendall's S is worked out; beyond, its normal limit is used."""
_TRUSTED_DIGITS = 9
_ROUNDING_STEPS = 2.0
_SMALLEST = 3
_SIGMA = 3.0


# -- trends --------------------------------------------------------------------------------------------------------


def trends(values: Floats) -> dict[str, Floats]:
    """Samples of one size against their run order, each a row of `values`: `slope` in units per run, `p_value`
    (two-sided, Mann-Kendall) and `inflation`, Hamed and Rao's factor on the test's variance where runs that follow each
    other are alike around the trend. NaN where n is too small to say; a constant sample has slope 0 and p 1.

    Theil (1950) and Sen (1968) for the slope, Mann (1945) and Kendall (1975) for the test (exact for small n without
    ties, with continuity where the factor is above 1), Hamed and Rao (1998, Journal of Hydrology 204, 182-196) for its
    variance.
    """
    samples, n = values.shape
    if n < _SMALLEST:
        nothing = np.full(samples, np.nan)
        return {"slope": nothing, "p_value": nothing, "inflation": nothing}
    earlier, later = np.triu_indices(n, 1)
    rises = values[:, later] - values[:, earlier]
    slope = np.median(rises / (later - earlier), axis=-1)
    line = slope[:, np.newaxis] * np.arange(n)
    inflation = variance_inflation(values - line)
    # Kendall's S without its sign. Each of t equal values adds its part of t (t - 1) (2 t + 5) to its variance.
    score = np.abs(np.sign(rises).sum(axis=-1))
    _, ties = _ranks(values)
    tied = ((ties - 1) * (2 * ties + 5)).sum(axis=-1)
    variance = (n * (n - 1) * (2 * n + 5) - tied) / 18
    variance = np.maximum(1, variance) * inflation
    is_inflated = inflation > 1
    corrected = np.where(is_inflated, np.maximum(0, score - 1), score)
    p_value = 2 * scipy.special.ndtr(-corrected / np.sqrt(variance))
    if n <= _EXACT_RUNS:
        is_exact = (tied == 0) & ~is_inflated
        inversions = (len(earlier) - score.astype(int)) // 2
        exact = np.minimum(1.0, 2 * _share_of_orders(n)[inversions])
        p_value = np.where(is_exact, exact, p_value)
    return {"slope": slope, "p_value": p_value, "inflation": inflation}


def variance_inflation(around_trend: Floats) -> Floats:
    """Hamed and Rao's (1998) factor on the variance of Kendall's S, from the ranks of values without their trend, for
    each row.

    The trend runs through two of the values, whose distances from it are equal but for arithmetic: digits beyond the
    ninth are not trusted. Only autocorrelations beyond chance (5 %) count, and together they never count as extra
    evidence: the factor is at least 1.
    """
    n = around_trend.shape[-1]
    largest = np.abs(around_trend).max(axis=-1, keepdims=True)
    scaled = around_trend / np.where(largest > 0, largest, 1)
    ranks, _ = _ranks(np.round(scaled, _TRUSTED_DIGITS))
    centred = ranks - (n + 1) / 2
    squares = (centred**2).sum(axis=-1)
    squares = np.where(squares > 0, squares, 1)
    chance = scipy.special.ndtri(1 - ALPHA / 2) / math.sqrt(n)
    total = np.zeros_like(squares)
    for lag in range(1, n):
        products = centred[:, lag:] * centred[:, :-lag]
        correlation = products.sum(axis=-1) / squares
        weight = (n - lag) * (n - lag - 1) * (n - lag - 2)
        is_beyond_chance = np.abs(correlation) > chance
        total += np.where(is_beyond_chance, weight * correlation, 0.0)
    found: Floats = 1 + 2 * total / (n * (n - 1) * (n - 2))
    return np.maximum(1.0, found)


def _ranks(values: Floats) -> tuple[Floats, Floats]:
    """The rank of each value in its row, from 1, where equal values share the middle of theirs; and how many values are
    equal to it, itself included."""
    each = values[..., np.newaxis]
    others = values[..., np.newaxis, :]
    ties = (each == others).sum(axis=-1)
    smaller = (each > others).sum(axis=-1)
    return smaller + (ties + 1) / 2, ties


@cache
def _share_of_orders(n: int) -> Floats:
    """Of the orders of n values, the share with at most 0, 1, 2, … inversions (Kendall 1970): a further value, put into
    an order of j - 1, adds 0 to j - 1."""
    shares = np.ones(1)
    for size in range(2, n + 1):
        added = np.full(size, 1 / size)
        shares = np.convolve(shares, added)
    return shares.cumsum()


def first_run_p(blocks: Sequence[Sequence[float]]) -> float:
    """p that the first runs of blocks are the highest of theirs, or the lowest, as often as they are.

    Without a transient the first of n runs is the highest with probability 1/n, so that the number of such blocks is
    binomial; with blocks of several lengths the mean probability makes large numbers no rarer than they are (Hoeffding
    1956, doi 10.1214/aoms/1177728178). Blocks of fewer than three runs say nothing; 1 where none is left.
    """
    used = [block for block in blocks if len(block) >= _SMALLEST]
    if not used:
        return 1.0
    chance = fmean(1 / len(block) for block in used)
    highest = sum(block[0] > max(block[1:]) for block in used)
    lowest = sum(block[0] < min(block[1:]) for block in used)
    extreme = max(highest, lowest)
    at_least = scipy.special.bdtrc(extreme - 1, len(used), chance)
    return min(1.0, 2 * float(at_least))


# -- values that lie apart -----------------------------------------------------------------------------------------


def grubbs(values: Sequence[float], alpha: float = ALPHA) -> tuple[int, ...]:
    """The place of the value that is an outlier by Grubbs' (1969) two-sided test for one, else none.

    Fewer than three values have none. Three sigma cannot fire at n ≤ 10: no value lies further than (n - 1)/√n standard
    deviations from the mean, 2.85 at n = 10.
    """
    n = len(values)
    if n < _SMALLEST:
        return ()
    # Two-sided critical value: NIST/SEMATECH e-Handbook, 1.3.5.17.1.
    t = t_quantile(1 - alpha / (2 * n), n - 2)
    share = t * t / (n - 2 + t * t)
    critical = (n - 1) / math.sqrt(n) * math.sqrt(share)
    return _beyond(values, critical, most=1)


def beyond_three_sigma(values: Sequence[float]) -> tuple[int, ...]:
    """Places of the values further than three standard deviations from the mean: the methodology's rule, which finds
    several that mask each other in Grubbs' test."""
    return _beyond(values, _SIGMA, most=len(values))


def _beyond(values: Sequence[float], deviations: float, most: int) -> tuple[int, ...]:
    """Places of the values further than so many standard deviations from the mean, of at most so many, without those
    within two rounding steps of the others' mean: nine readings of 60 °C and one of 61 show rounding."""
    array = np.array(values, dtype=np.float64)
    far = np.abs(array - array.mean())
    farthest = np.sort(np.argsort(-far, kind="stable")[:most])
    places = farthest[far[farthest] > deviations * array.std(ddof=1)]
    others = np.delete(array, places).mean()
    rounding = _ROUNDING_STEPS * resolution_of(array)
    is_no_rounding = np.abs(array[places] - others) > rounding
    return tuple(places[is_no_rounding].tolist())

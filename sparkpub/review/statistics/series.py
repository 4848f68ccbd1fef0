"""A series of runs: does their order show in their values (trends, first runs that stand out), do any lie apart from
the others, and do two series make a line?

pymannkendall lets Hamed and Rao's factor fall below 1, so that runs that swing count as extra evidence. The tests show
that case, and hold all others against pymannkendall.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy

from sparkpub.review.statistics.estimate import (
    ALPHA,
    WANTED_POWER,
    Floats,
    resolution_of,
    t_quantile,
)

_SLOPE_RUNS = 1000
_PAIRS_TOGETHER = 1_000_000
"""Pairs of values that are looked at at once."""
_EXACT_RUNS = 33
"""Values without ties up to which the distribution of Kendall's S is worked out; beyond, its normal limit is used."""
_LARGEST_FACTORIAL = 170
"""The most values whose orders a float can count; the share of one of them is below 1e-306."""
_TRUSTED_DIGITS = 9
_ROUNDING_STEPS = 2.0
_SMALLEST = 3
_SIGMA = 3.0


FEW_RUNS = 25.0
"""Fitted to simulations of 10 to 40 runs, which the tests repeat."""


def detectable_change(n: int, sd: float, alpha: float) -> float:
    """The change from the first of n runs to the last that a test of trend finds in four of five campaigns, in the unit
    of `sd`, the spread of the runs.

    By the standard error of a least-squares slope, sd / √(n (n² − 1) / 12) (NIST/SEMATECH e-Handbook, 4.4.3.1), and
    Student's t with n − 2 degrees of freedom. Mann-Kendall needs more: 3 / π as efficient on normal values (Stuart
    1956, Journal of the American Statistical Association 51, 285-287), and of few runs 1 + `FEW_RUNS` / n² times as
    much, since its p comes in steps. Infinite where not even runs in perfect order have a p below `alpha`.
    """
    if trends(np.arange(n, dtype=np.float64)[np.newaxis])["p_value"][0] >= alpha:
        return math.inf
    quantiles = scipy.special.stdtrit(n - 2, (1 - alpha / 2, WANTED_POWER))
    error = sd / math.sqrt(n * (n * n - 1) / 12)
    steps = 1 + FEW_RUNS / n**2
    return float(quantiles.sum() * error * (n - 1) / math.sqrt(3 / math.pi) * steps)


def trends(values: Floats) -> dict[str, Floats]:
    """Samples of one size against their run order, each a row of `values`: `slope` in units per run, `p_value`
    (two-sided, Mann-Kendall) and `inflation`, Hamed and Rao's factor on the test's variance where runs that follow each
    other are alike around the trend. NaN where n is too small to say; a constant sample has slope 0 and p 1.

    Theil (1950) and Sen (1968) for the slope, Mann (1945) and Kendall (1975) for the test (exact for small n without
    ties), Hamed and Rao (1998, Journal of Hydrology 204, 182-196) for its variance. Beyond 1,000 values the slope is
    that of 1,000 evenly spaced ones, so that cost grows with n and not with its square.
    """
    samples, n = values.shape
    if n < 3:
        return {name: np.full(samples, np.nan) for name in _CONSTANT}
    columns = {name: np.full(samples, value) for name, value in _CONSTANT.items()}
    varied = np.flatnonzero(values.min(axis=-1) != values.max(axis=-1))
    # A slope is the median over all pairs of a sample's values: a few samples are held at once.
    together = max(1, _PAIRS_TOGETHER // n**2)
    for start in range(0, len(varied), together):
        rows = varied[start : start + together]
        for name, column in _trends(values[rows]).items():
            columns[name][rows] = column
    return columns


_CONSTANT = {"slope": 0.0, "p_value": 1.0, "inflation": 1.0}
"""The trend of a sample that does not vary."""


def _trends(values: Floats) -> dict[str, Floats]:
    """The figures of a trend for samples that vary, each a row."""
    slope = theil_sen(values)
    around_trend = values - slope[:, np.newaxis] * np.arange(values.shape[-1])
    inflation = variance_inflation(around_trend)
    _, ties = _ranks(values)
    p_value = _score_p(_score(values), ties, inflation)
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
    scaled = np.divide(around_trend, largest, where=largest > 0, out=0 * around_trend)
    ranks, _ = _ranks(np.round(scaled, _TRUSTED_DIGITS))
    centred = ranks - ranks.mean(axis=-1, keepdims=True)
    squares = (centred**2).sum(axis=-1)
    chance = scipy.special.ndtri(1 - ALPHA / 2) / math.sqrt(n)
    total = np.zeros_like(squares)
    for lag in range(1, n):
        products = (centred[..., lag:] * centred[..., :-lag]).sum(axis=-1)
        correlation = products / np.where(squares > 0, squares, 1)
        weight = (n - lag) * (n - lag - 1) * (n - lag - 2)
        total += np.where(np.abs(correlation) > chance, weight * correlation, 0.0)
    found: Floats = np.maximum(1.0, 1 + 2 * total / (n * (n - 1) * (n - 2)))
    return found


def _ranks(values: Floats) -> tuple[Floats, Floats]:
    """The rank of each value in its row, from 1, where equal values share the middle of theirs; and how many values are
    equal to it, itself included."""
    each, others = values[..., np.newaxis], values[..., np.newaxis, :]
    ties = (each == others).sum(axis=-1)
    return (each > others).sum(axis=-1) + (ties + 1) / 2, ties


def _pairs(n: int) -> int:
    return n * (n - 1) // 2


def _score(values: Floats) -> Floats:
    """Kendall's S along the last axis: the pairs of which the later value is the higher, less those of which it is the
    lower."""
    score = np.zeros(values.shape[:-1])
    for apart in range(1, values.shape[-1]):
        rises = values[..., apart:] - values[..., :-apart]
        score += np.sign(rises).sum(axis=-1)
    return score


def _score_p(score: Floats, ties: Floats, inflation: Floats) -> Floats:
    """Two-sided p of Kendall's S: exact for few values without ties, else by its normal limit. Where `inflation` makes
    its variance larger, by that limit with continuity. `ties` are those of `_ranks`."""
    n = ties.shape[-1]
    sizes = np.abs(score)
    # Each of t equal values adds its part of t (t - 1) (2 t + 5) to the variance where there is no trend.
    tied = ((ties - 1) * (2 * ties + 5)).sum(axis=-1)
    variance = (n * (n - 1) * (2 * n + 5) - tied) / 18
    p_values = 2 * scipy.special.ndtr(-sizes / np.sqrt(variance))
    inversions = (_pairs(n) - sizes.astype(np.int64)) // 2
    exact = (ties == 1).all(axis=-1) & ((n <= _EXACT_RUNS) | (inversions <= 1))
    for place in np.flatnonzero(exact):
        p_values[place] = _exact_score_p(int(inversions[place]), n)
    corrected = np.maximum(0.0, sizes - 1) / np.sqrt(variance * inflation)
    found: Floats = np.where(
        inflation != 1, 2 * scipy.special.ndtr(-corrected), p_values
    )
    return found


@cache
def _exact_score_p(inversions: int, n: int) -> float:
    """Twice the share of the orders of n values that have at most so many inversions (Kendall 1970).

    An order of j values is one of j - 1 with the last one put in, which adds 0 to j - 1 inversions.
    """
    if n > _LARGEST_FACTORIAL:
        return 0.0
    orders = np.zeros(inversions + 1)
    orders[0] = 1.0
    for size in range(2, n + 1):
        added = orders.cumsum()
        orders = added.copy()
        orders[size:] -= added[: max(0, inversions + 1 - size)]
    return min(1.0, 2 * float(orders.sum()) / math.factorial(n))


def theil_sen(values: Floats) -> Floats:
    """Median of the slopes of all pairs, per step of the index, along the last axis."""
    n = values.shape[-1]
    evenly = np.linspace(0, n - 1, min(n, _SLOPE_RUNS))
    positions = evenly.round().astype(np.int64)
    earlier, later = np.triu_indices(len(positions), 1)
    chosen = values[..., positions]
    rises = chosen[..., later] - chosen[..., earlier]
    found: Floats = np.median(rises / (positions[later] - positions[earlier]), axis=-1)
    return found


class FittedLine(NamedTuple):
    """A least-squares line; `r_squared` is the share of the variation that it explains."""

    slope: float
    intercept: float
    r_squared: float


def least_squares(x: Sequence[float], y: Sequence[float]) -> FittedLine:
    """The line of y on x, of three points or more that differ in x."""
    (xx, xy), (_, yy) = np.cov(x, y, bias=True).tolist()
    slope = xy / xx
    intercept = float(np.mean(y)) - slope * float(np.mean(x))
    explained = min(1.0, abs(xy) / math.sqrt(xx * yy)) if yy > 0 else math.nan
    return FittedLine(slope, intercept, explained**2)


def first_run_p(blocks: Sequence[Sequence[float]]) -> float:
    """p that the first runs of blocks are the highest of theirs, or the lowest, as often as they are.

    Without a transient the first of n runs is the highest with probability 1/n, so that the number of such blocks is
    binomial; with blocks of several lengths the mean probability makes large numbers no rarer than they are (Hoeffding
    1956, doi 10.1214/aoms/1177728178). Blocks of fewer than three runs say nothing; 1 where none is left.
    """
    used = [block for block in blocks if len(block) >= 3]
    if not used:
        return 1.0
    chance = float(np.mean([1 / len(block) for block in used]))
    highest = sum(block[0] > max(block[1:]) for block in used)
    lowest = sum(block[0] < min(block[1:]) for block in used)
    extreme = max(highest, lowest)
    return min(1.0, 2 * float(scipy.special.bdtrc(extreme - 1, len(used), chance)))


def grubbs(values: Sequence[float], alpha: float = ALPHA) -> tuple[int, ...]:
    """The place of the value that is an outlier by Grubbs' (1969) two-sided test for one, else none.

    Fewer than three values have none. Three sigma cannot fire at n ≤ 10: no value lies further than (n - 1)/√n standard
    deviations from the mean, 2.85 at n = 10.
    """
    array = np.array(values, dtype=np.float64)
    if len(array) < _SMALLEST or array.min() == array.max():
        return ()
    deviation = np.abs(array - array.mean()) / array.std(ddof=1)
    worst = int(deviation.argmax())
    if deviation[worst] <= critical_value(len(array), alpha):
        return ()
    return _beyond_rounding(array, [worst])


def beyond_three_sigma(values: Sequence[float]) -> tuple[int, ...]:
    """Places of the values further than three standard deviations from the mean: the methodology's rule, which finds
    several that mask each other in Grubbs' test."""
    array = np.array(values, dtype=np.float64)
    deviation = np.abs(array - array.mean())
    beyond = np.flatnonzero(deviation > _SIGMA * array.std(ddof=1)).tolist()
    return _beyond_rounding(array, beyond)


def _beyond_rounding(array: Floats, places: Sequence[int]) -> tuple[int, ...]:
    """Without values within two rounding steps of the others' mean: nine readings of 60 °C and one of 61 show
    rounding."""
    others = float(np.delete(array, places).mean())
    rounding = _ROUNDING_STEPS * resolution_of(array)
    return tuple(
        place for place in places if abs(float(array[place]) - others) > rounding
    )


def critical_value(n: int, alpha: float = ALPHA) -> float:
    """Two-sided critical value of Grubbs' G for n values (NIST/SEMATECH e-Handbook, 1.3.5.17.1)."""
    t = t_quantile(1 - alpha / (2 * n), n - 2)
    return (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t))

"""Does the order of runs show in their values? Trends, changes of level, transients at the start of blocks; lines.

Ranks, Kendall's S and the line are worked out here and not by scipy.stats, which takes 0.4 s to import: a fifth of what
it takes to review sixty runs. The tests hold them against it.

pymannkendall lets Hamed and Rao's factor fall below 1, so that runs that swing count as extra evidence; pyhomogeneity
draws 20,000 samples without ties anew for each of Pettitt's tests, which takes a second and says p = 0 of rounded
values. The tests show the first case, and hold all others against pymannkendall.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from sparkpub.review.statistics.describe import (
    ALPHA,
    MINIMUM_RUNS,
    SEED,
    WANTED_POWER,
    Floats,
    autocorrelation,
)

_SLOPE_RUNS = 1000
_EXACT_RUNS = 33
"""Values without ties up to which the distribution of Kendall's S is worked out; beyond, its normal limit is used."""
_LARGEST_FACTORIAL = 170
"""The most values whose orders a float can count; the share of one of them is below 1e-306."""
_FAR_FROM_SIGNIFICANT = 1.5
"""Standard deviations from 0 within which no two-sided p of Kendall's S is below 10 %, exact or not."""
_EXACT_BLOCKS = 8
_GRID = 1000
_TRUSTED_DIGITS = 9
_ORDERS = 9999
"""Random orders against which a change of level is held: the smallest p is 1/10,000."""
_ORDERS_UP_TO = 200
"""Values up to which orders are drawn; beyond, Pettitt's own limit is close enough."""


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A sample against its run order. `slope` is in units per run; None where n is too small to say.

    `p_value` is two-sided, of the Mann-Kendall test, with Hamed and Rao's variance where runs that follow each other
    are alike around the trend: `inflation` is the factor on the variance, 1 where they are not. `spearman` is the rank
    correlation with run order, `lag1` the autocorrelation of neighbours.
    """

    n: int
    slope: float | None = None
    p_value: float | None = None
    inflation: float | None = None
    spearman: float | None = None
    lag1: float | None = None


def detectable_change(n: int, sd: float, alpha: float) -> float:
    """The change from the first of n runs to the last that a test of trend finds in four of five campaigns, in the unit
    of `sd`, the spread of the runs.

    By the standard error of a least-squares slope, sd / √(n (n² − 1) / 12) (NIST/SEMATECH e-Handbook, 4.4.3.1), and
    Student's t with n − 2 degrees of freedom. Mann-Kendall needs a little more: 3 / π as efficient on normal values
    (Stuart 1956, Journal of the American Statistical Association 51, 285-287).
    """
    quantiles = scipy.special.stdtrit(n - 2, (1 - alpha / 2, WANTED_POWER))
    error = sd / math.sqrt(n * (n * n - 1) / 12)
    return float(quantiles.sum() * error * (n - 1) / math.sqrt(3 / math.pi))


def trend(values: Sequence[float]) -> Trend:
    """The trend of values in run order; a constant sample has slope 0 and p 1.

    Theil (1950) and Sen (1968) for the slope, Mann (1945) and Kendall (1975) for the test (exact for small n without
    ties), Hamed and Rao (1998, Journal of Hydrology 204, 182-196) for its variance. Beyond 1,000 values the slope is
    that of 1,000 evenly spaced ones, so that cost grows with n and not with its square.
    """
    array, n = np.array(values, dtype=np.float64), len(values)
    if n < 3:
        return Trend(n=n)
    if array.min() == array.max():
        return Trend(
            n=n,
            slope=0.0,
            p_value=1.0,
            inflation=1.0,
            spearman=0.0,
        )
    slope = theil_sen(array)
    inflation = variance_inflation(array - slope * np.arange(n))
    score = _score(values)
    p_value = _score_p(score, array)
    if inflation != 1:
        p_value = _corrected_p(score, array, inflation)
    return Trend(
        n=n,
        slope=slope,
        p_value=p_value,
        inflation=inflation,
        spearman=float(np.corrcoef(np.arange(n), _ranks(array))[0, 1]),
        lag1=autocorrelation(array),
    )


def variance_inflation(around_trend: Floats) -> float:
    """Hamed and Rao's (1998) factor on the variance of Kendall's S, from the ranks of values without their trend.

    The trend runs through two of the values, whose distances from it are equal but for arithmetic: digits beyond the
    ninth are not trusted. Only autocorrelations beyond chance (5 %) count, and together they never count as extra
    evidence: the factor is at least 1.
    """
    n = len(around_trend)
    largest = float(np.abs(around_trend).max()) or 1.0
    ranks = _ranks(np.round(around_trend / largest, _TRUSTED_DIGITS))
    centred = ranks - ranks.mean()
    if not centred.any():
        return 1.0
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    correlations = np.fft.irfft(spectrum)[1:n] / float(centred @ centred)
    lags = np.arange(1, n)
    beyond_chance = np.abs(correlations) > scipy.special.ndtri(
        1 - ALPHA / 2
    ) / math.sqrt(n)
    weights = (n - lags) * (n - lags - 1) * (n - lags - 2)
    total = float((weights * correlations)[beyond_chance].sum())
    return max(1.0, 1 + 2 * total / (n * (n - 1) * (n - 2)))


def is_far_from_a_trend(values: Sequence[float]) -> bool:
    """Whether the p-value of a trend is above 10 %, told without working it out.

    Kendall's S lies within 1.5 of its standard deviations then. False for samples that are large or too small.
    """
    array, n = np.array(values, dtype=np.float64), len(values)
    if not 3 <= n <= _SLOPE_RUNS:
        return False
    return abs(_score(values)) < _FAR_FROM_SIGNIFICANT * math.sqrt(
        _score_variance(array)
    )


def _ranks(values: Floats) -> Floats:
    """The rank of each value, from 1; equal values share the middle of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles: Floats = counts.cumsum() - (counts - 1) / 2
    return middles[places]


def _pairs(n: int) -> int:
    return n * (n - 1) // 2


def _ties(values: Floats) -> Floats:
    """How often each value stands there."""
    return np.unique(values, return_counts=True)[1].astype(np.float64)


def _untied_pairs(values: Floats) -> float:
    """Pairs of values that differ."""
    ties = _ties(values)
    return _pairs(len(values)) - float((ties * (ties - 1)).sum()) / 2


def _score(values: Sequence[float]) -> int:
    """Kendall's S: the pairs of which the later value is the higher, less those of which it is the lower."""
    score = 0
    before: list[float] = []
    for value in values:
        lower = bisect_left(before, value)
        not_higher = bisect_right(before, value)
        score += lower - (len(before) - not_higher)
        before.insert(lower, value)
    return score


def _score_variance(values: Floats) -> float:
    """Variance of Kendall's S where there is no trend, with ties."""
    n = len(values)
    ties = _ties(values)
    tied = float((ties * (ties - 1) * (2 * ties + 5)).sum())
    return (n * (n - 1) * (2 * n + 5) - tied) / 18


def _score_p(score: int, values: Floats) -> float:
    """Two-sided p of Kendall's S: exact for few values without ties, else by its normal limit."""
    n = len(values)
    lower_pairs = (_pairs(n) - abs(score)) // 2
    if _untied_pairs(values) == _pairs(n) and (n <= _EXACT_RUNS or lower_pairs <= 1):
        return _exact_score_p(lower_pairs, n)
    z = abs(score) / math.sqrt(_score_variance(values))
    return float(2 * scipy.special.ndtr(-z))


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


def _corrected_p(score: int, values: Floats, inflation: float) -> float:
    """Two-sided p of Kendall's S by its normal limit, with ties, continuity, and a variance larger by `inflation`."""
    variance = _score_variance(values)
    return float(
        2
        * scipy.special.ndtr(
            -max(0.0, abs(score) - 1) / math.sqrt(variance * inflation)
        )
    )


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """Where a sample changes its level. `before` is the number of values before the change, `shift` by how much the
    mean of those after it is higher, in the unit of the values. `p_value` is that of any change at all."""

    before: int
    shift: float
    p_value: float


def change_point(values: Sequence[float]) -> ChangePoint | None:
    """Pettitt's (1979, Applied Statistics 28, 126-135) test for one change of level in run order.

    The p-value is the share of random orders of the same values with a statistic at least as large (9,999 orders, the
    same at every call); Pettitt's limit, which cannot reject at n = 10, only beyond 200 values. None for fewer than
    four values and for values that are all equal.
    """
    array, n = np.array(values, dtype=np.float64), len(values)
    if n < MINIMUM_RUNS or array.min() == array.max():
        return None
    ranks = _ranks(array)
    apart = _apart(ranks)
    before = int(apart.argmax()) + 1
    largest = float(apart.max())
    if n <= _ORDERS_UP_TO:
        orders = np.random.default_rng((SEED, n)).permuted(
            np.tile(ranks, (_ORDERS, 1)), axis=1
        )
        as_large = int((_apart(orders).max(axis=-1) >= largest - 1e-9).sum())
        p_value = (1 + as_large) / (1 + _ORDERS)
    else:
        p_value = min(1.0, 2 * math.exp(-6 * largest**2 / (n**3 + n**2)))
    shift = float(array[before:].mean() - array[:before].mean())
    return ChangePoint(before=before, shift=shift, p_value=p_value)


def _apart(ranks: Floats) -> Floats:
    """|U| of Pettitt's test for a change after the first value, after the second, …, along the last axis."""
    n = ranks.shape[-1]
    steps = np.arange(1, n)
    scores: Floats = np.abs(2 * ranks.cumsum(axis=-1)[..., :-1] - steps * (n + 1))
    return scores


def theil_sen(values: Floats) -> float:
    """Median of the slopes of all pairs, per step of the index."""
    positions = np.arange(len(values))
    if len(values) > _SLOPE_RUNS:
        positions = (
            np.linspace(0, len(values) - 1, _SLOPE_RUNS).round().astype(np.int64)
        )
    earlier, later = np.triu_indices(len(positions), 1)
    chosen = values[positions]
    return float(
        np.median(
            (chosen[later] - chosen[earlier]) / (positions[later] - positions[earlier])
        )
    )


@dataclass(frozen=True)
class FittedLine:
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


@dataclass(frozen=True, kw_only=True)
class FirstRuns:
    """How the first run of each block ranks in its block. `ranks` count from 1, the lowest value."""

    ranks: tuple[float, ...]
    p_value: float


def first_runs(blocks: Sequence[Sequence[float]]) -> FirstRuns:
    """Do the first runs of blocks stand out? A permutation test that needs no distribution.

    Without a transient the first value takes every rank of its block equally often; the statistic is the sum over
    blocks of the rank's distance from the middle in units of its range, the p-value exact by convolution over
    up to eight blocks and by the sum's normal limit beyond. Blocks of fewer than three runs say nothing and are
    left out; p is 1 where none is left.
    """
    (found,) = first_runs_of_many([blocks])
    return found


def first_runs_of_many(
    samples: Sequence[Sequence[Sequence[float]]],
) -> list[FirstRuns]:
    """`first_runs` of each sample. Samples whose blocks are of the same lengths share one distribution of the sum."""
    distances: dict[tuple[int, ...], _Distances] = {}
    found = []
    for blocks in samples:
        used = [block for block in blocks if len(block) >= 3]
        ranks = tuple(_rank_of_first(block) for block in used)
        lengths = tuple(len(block) for block in used)
        places = zip(ranks, lengths, strict=True)
        observed = abs(sum(_eccentricity(rank, n) for rank, n in places))
        if len(used) > _EXACT_BLOCKS:
            p_value = _limit_p(lengths, observed)
        else:
            if lengths not in distances:
                distances[lengths] = _Distances.of_blocks(lengths)
            p_value = distances[lengths].p_value(observed)
        found.append(FirstRuns(ranks=ranks, p_value=min(1.0, p_value)))
    return found


def _limit_p(lengths: Sequence[int], observed: float) -> float:
    """Chance of a sum at least as far from 0 by its normal limit."""
    # Ranks 1 … n on a scale from -1 to 1, each as likely, have the variance (n + 1) / (3 (n - 1)).
    variance = sum((n + 1) / (3 * (n - 1)) for n in lengths)
    return float(2 * scipy.special.ndtr(-observed / math.sqrt(variance)))


def _rank_of_first(block: Sequence[float]) -> float:
    """The rank of the first value in its block; of values that are equal the middle one."""
    first = block[0]
    lower = sum(value < first for value in block)
    equal = sum(value == first for value in block)
    return lower + (equal + 1) / 2


@dataclass(frozen=True)
class _Distances:
    """How far from 0 the sum over blocks lies, and the chance of it, over all ranks that the first runs can have."""

    far: Floats
    chances: Floats

    @classmethod
    def of_blocks(cls, lengths: Sequence[int]) -> "_Distances":
        """The distribution is the convolution of the blocks' distributions, by Fourier transform, on a grid of
        thousandths: a few thousand places for each block, however many runs the block has."""
        size = 2 * _GRID * len(lengths) + 1
        padded = scipy.fft.next_fast_len(size, real=True)
        transform = np.ones(padded // 2 + 1, dtype=complex)
        for n, blocks in Counter(lengths).items():
            ranks = np.arange(1, n + 1)
            places = np.rint((1 + _eccentricity(ranks, n)) * _GRID).astype(int)
            transform *= np.fft.rfft(np.bincount(places) / n, padded) ** blocks
        chances = np.fft.irfft(transform, padded)[:size]
        totals = np.arange(size) / _GRID - len(lengths)
        return cls(np.abs(totals), chances)

    def p_value(self, observed: float) -> float:
        """Chance of a sum at least as far from 0."""
        return float(self.chances[self.far >= observed - 5e-3].sum())


def _eccentricity(rank: Any, n: int) -> Any:
    """Rank 1 … n on a scale from -1 to 1; a number for a number, an array for an array."""
    return (2 * rank - n - 1) / (n - 1)

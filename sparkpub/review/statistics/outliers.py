"""Outliers: by a test that can fire at the n there is, and by three standard deviations where n is large enough."""

import math
from collections.abc import Sequence

import numpy as np

from sparkpub.review.statistics.describe import resolution_of
from sparkpub.review.statistics.estimate import ALPHA, Floats, t_quantile

_ROUNDING_STEPS = 2.0
_SMALLEST = 3
_SIGMA = 3.0


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

"""Outliers by tests that can fire at the n there is. (Three sigma cannot at n ≤ 10: no value lies further than
(n - 1)/√n standard deviations from the mean, 2.85 at n = 10.)"""

import math
from collections.abc import Sequence

import numpy as np

from sparkpub.review.statistics.describe import ALPHA, resolution_of, t_quantile

_ROUNDING_STEPS = 2.0
_SMALLEST = 3
_SEVERAL_FROM = 15
_MOST = 50


def grubbs(values: Sequence[float], alpha: float = ALPHA) -> tuple[int, ...]:
    """Indices of outliers, the most extreme first.

    Below 15 values it is Grubbs' (1969) two-sided test for a single outlier. From 15 it is Rosner's (1983)
    generalised ESD, the test iterated so that outliers do not mask each other and `alpha` still holds for all
    iterations together, for up to a tenth of the values and 50. A value within two rounding steps of the others'
    mean is never an outlier: nine readings of 60 °C and one of 61 show rounding. Fewer than three values have none.
    """
    array = np.array(values, dtype=np.float64)
    n = len(array)
    if n < _SMALLEST or array.min() == array.max():
        return ()
    limit = 1 if n < _SEVERAL_FROM else min(n // 10, _MOST)
    left, found, count = np.arange(n), list[int](), 0
    for step in range(limit):
        rest = array[left]
        deviation = np.abs(rest - rest.mean())
        worst, spread = int(deviation.argmax()), float(rest.std(ddof=1))
        if spread == 0:
            break
        found.append(int(left[worst]))
        if deviation[worst] / spread > critical_value(n - step, alpha):
            count = step + 1
        left = np.delete(left, worst)
    if not count:
        return ()
    others, rounding = (
        float(np.delete(array, found[:count]).mean()),
        _ROUNDING_STEPS * resolution_of(array),
    )
    return tuple(
        index for index in found[:count] if abs(float(array[index]) - others) > rounding
    )


def critical_value(n: int, alpha: float = ALPHA) -> float:
    """Two-sided critical value of Grubbs' G for n values (NIST/SEMATECH e-Handbook, 1.3.5.17.1)."""
    t = t_quantile(1 - alpha / (2 * n), n - 2)
    return (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t))

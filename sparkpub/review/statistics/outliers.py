"""Outliers by tests that can fire at the n there is. (Three sigma cannot at n ≤ 10: no value lies further than
(n - 1)/√n standard deviations from the mean, 2.85 at n = 10.)"""

import math
from collections.abc import Sequence

import numpy as np

from sparkpub.review.statistics.describe import ALPHA, Floats, resolution_of, t_quantile

_ROUNDING_STEPS = 2.0
_SMALLEST = 3
_MOST = 50


def grubbs(values: Sequence[float], alpha: float = ALPHA) -> tuple[int, ...]:
    """Indices of outliers, the most extreme first.

    Below 20 values it is Grubbs' (1969) two-sided test for a single outlier. From 20 it is Rosner's (1983) generalised
    ESD, the test iterated so that outliers do not mask each other and `alpha` still holds for all iterations together,
    for up to a tenth of the values and 50. A value within two rounding steps of the others' mean is never an outlier:
    nine readings of 60 °C and one of 61 show rounding. Fewer than three values have none.
    """
    array = np.array(values, dtype=np.float64)
    if len(array) < _SMALLEST or array.min() == array.max():
        return ()
    outlying = _extreme(array, alpha)
    if not outlying:
        return ()
    others = float(np.delete(array, outlying).mean())
    rounding = _ROUNDING_STEPS * resolution_of(array)
    return tuple(
        place for place in outlying if abs(float(array[place]) - others) > rounding
    )


def _extreme(array: Floats, alpha: float) -> list[int]:
    """Places of the values that the test calls outliers. The last one that exceeds its critical value counts, and with
    it all that were set aside before it."""
    most = max(1, min(len(array) // 10, _MOST))
    left = np.arange(len(array))
    aside: list[int] = []
    count = 0
    while len(aside) < most:
        rest = array[left]
        spread = float(rest.std(ddof=1))
        if spread == 0:
            break
        deviation = np.abs(rest - rest.mean())
        worst = int(deviation.argmax())
        aside.append(int(left[worst]))
        if deviation[worst] / spread > critical_value(len(rest), alpha):
            count = len(aside)
        left = np.delete(left, worst)
    return aside[:count]


def critical_value(n: int, alpha: float = ALPHA) -> float:
    """Two-sided critical value of Grubbs' G for n values (NIST/SEMATECH e-Handbook, 1.3.5.17.1)."""
    t = t_quantile(1 - alpha / (2 * n), n - 2)
    return (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t))

"""Outliers by tests that can fire at the n there is. (Three sigma cannot at n ≤ 10: no value lies further than
(n - 1)/√n standard deviations from the mean, 2.85 at n = 10.)"""

import math
from collections.abc import Sequence

import numpy as np

from sparkpub.review.statistics.describe import ALPHA, resolution_of, t_quantile

_ROUNDING_STEPS = 2.0
_SMALLEST = 3
_FAR = 3.5
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
    others, rounding = float(np.delete(array, found[:count]).mean()), _ROUNDING_STEPS * resolution_of(array)
    return tuple(index for index in found[:count] if abs(float(array[index]) - others) > rounding)


def critical_value(n: int, alpha: float = ALPHA) -> float:
    """Two-sided critical value of Grubbs' G for n values (NIST/SEMATECH e-Handbook, 1.3.5.17.1)."""
    t = t_quantile(1 - alpha / (2 * n), n - 2)
    return (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t))


def far_from_median(values: Sequence[float]) -> tuple[int, ...]:
    """Indices of values whose modified z-score, 0.6745 |x - median| / MAD, is above 3.5 (Iglewicz and Hoaglin 1993).

    Median and MAD hold still where several outliers hide each other from a test. Where more than half the values are
    equal MAD is 0, and 1.2533 × the mean absolute deviation stands for σ in its place. A reason to look, not a test:
    no error rate is promised. The rounding rule of `grubbs` holds here too.
    """
    array = np.array(values, dtype=np.float64)
    distance = np.abs(array - np.median(array))
    scale = float(np.median(distance)) / 0.6745 or 1.253314 * float(distance.mean())
    far = distance > max(_FAR * scale, _ROUNDING_STEPS * resolution_of(array))
    return tuple(int(index) for index in np.flatnonzero(far))

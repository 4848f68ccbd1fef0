"""One effect over several cells: too small to show in each, clear in all together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from sparkpub.review.statistics.describe import ALPHA, Estimate, Interval


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """The difference that several cells show together.

    `q` is Cochran's heterogeneity with its p-value: where that is small, the cells differ by more than their errors
    explain, and the mean stands for none of them.
    """

    cells: int
    difference: float
    error: float
    ci95: Interval
    z: float
    p_value: float
    q: float
    heterogeneity_p: float


def pooled(effects: Sequence[Estimate]) -> Pooled | None:
    """The mean of the differences, each weighted by the inverse of its variance (Cochran 1954, doi 10.2307/3001666).

    Where cells scatter by more than their errors, the error grows by Birge's ratio √(q / (cells - 1)) (1932, doi
    10.1103/PhysRev.40.207). None for fewer than two cells, or where one has no spread at all.
    """
    if len(effects) < 2 or not all(effect.error > 0 for effect in effects):
        return None
    differences = np.array([effect.value for effect in effects])
    weights = np.array([effect.error**-2 for effect in effects])
    df = len(effects) - 1
    mean = float(weights @ differences / weights.sum())
    q = float(weights @ (differences - mean) ** 2)
    error = math.sqrt(max(1.0, q / df) / float(weights.sum()))
    z = mean / error
    reach = float(scipy.special.ndtri(1 - ALPHA / 2)) * error
    return Pooled(
        cells=len(effects),
        difference=mean,
        error=error,
        ci95=(mean - reach, mean + reach),
        z=z,
        p_value=math.erfc(abs(z) / math.sqrt(2)),
        q=q,
        heterogeneity_p=float(scipy.special.chdtrc(df, q)),
    )

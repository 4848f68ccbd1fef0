"""Percentiles, by the one definition that records, statistics and checks share.

They are interpolated linearly between order statistics: NumPy's default, Hyndman and Fan's (1996) type 7.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def quantiles(
    values: NDArray[np.float64], shares: Sequence[float]
) -> list[NDArray[np.float64]]:
    """The values below which these shares (0 to 1) of one finite value or more lie, along the last axis."""
    return list(np.quantile(values, shares, axis=-1))

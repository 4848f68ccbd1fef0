"""Percentiles, by the one definition that records, statistics and checks share.

They are interpolated linearly between order statistics: NumPy's default, Hyndman and Fan's (1996) type 7. The
arithmetic is NumPy's to the last bit; its own function spends twenty times as long on finding out what it was given,
which was a twentieth of a review and a tenth of the statistics.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def quantiles(
    values: NDArray[np.float64], shares: Sequence[float]
) -> list[NDArray[np.float64]]:
    """The values below which these shares (0 to 1) of one finite value or more lie, along the last axis."""
    ordered = np.sort(values, axis=-1)
    return [_quantile(ordered, share) for share in shares]


def _quantile(ordered: NDArray[np.float64], share: float) -> Any:
    last = ordered.shape[-1] - 1
    place = last * share
    below = int(place)
    above = min(below + 1, last)
    low, high = ordered[..., below], ordered[..., above]
    beyond = place - below
    if beyond < 0.5:
        return low + (high - low) * beyond
    return high - (high - low) * (1 - beyond)

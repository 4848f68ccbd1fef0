"""Samples for tests of estimates."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FINE = 1e-12
"""A resolution that adds nothing."""


def apart(values: Sequence[float] | Floats) -> Floats:
    """The values as lowest, highest, second lowest, …: no neighbours are alike, so that each run counts in full."""
    rising = np.sort(np.asarray(values, dtype=np.float64))
    order = [
        place
        for pair in zip(range(len(rising)), reversed(range(len(rising))), strict=True)
        for place in pair
    ]
    return rising[order[: len(rising)]]


def two_samples(seed: int, n: int = 10, m: int = 13) -> tuple[Floats, Floats]:
    """Two samples in which no neighbours are alike; the second one lies higher by 0.4."""
    generator = np.random.default_rng(seed)
    return apart(generator.normal(120, 0.5, n)), apart(generator.normal(120.4, 1.0, m))


def rounds(seed: int, n: int = 10) -> tuple[Floats, Floats]:
    """Baseline and candidate of rounds that share a drift; neighbouring differences are not alike."""
    generator = np.random.default_rng(seed)
    baseline = 120 + np.linspace(0, 3, n) + generator.normal(0, 0.5, n)
    return baseline, baseline + apart(generator.normal(0.3, 0.4, n))

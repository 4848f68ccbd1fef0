"""Samples for tests of comparisons."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparkpub.review.statistics.describe import bootstrap_many
from sparkpub.review.statistics.design import Sample
from sparkpub.review.statistics.estimate import Interval

Floats = NDArray[np.float64]


def apart(values: Sequence[float] | Floats) -> Floats:
    """The values as lowest, highest, second lowest, …: no neighbours are alike, so that each run counts in full."""
    rising = np.sort(np.asarray(values, dtype=np.float64))
    order = [
        place
        for pair in zip(range(len(rising)), reversed(range(len(rising))), strict=True)
        for place in pair
    ]
    return rising[order[: len(rising)]]


def two_samples(
    seed: int, n: int = 10, m: int = 13, shift: float = 0.4
) -> tuple[Floats, Floats]:
    """Two samples in which no neighbours are alike; the second one lies higher by `shift`."""
    generator = np.random.default_rng(seed)
    baseline, candidate = (
        generator.normal(120, 0.5, n),
        generator.normal(120 + shift, 1.0, m),
    )
    return apart(baseline), apart(candidate)


def turns(
    baseline: Sequence[float] | Floats, candidate: Sequence[float] | Floats
) -> tuple[Sample, Sample]:
    """Two samples whose order was reversed in every second round: baseline, candidate, candidate, baseline, …"""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(len(baseline)):
        first = number % 2
        times[first].append(2.0 * number)
        times[1 - first].append(2.0 * number + 1)
    sides = zip((baseline, candidate), times, strict=True)
    one, other = (
        Sample(tuple(map(float, side)), tuple(range(len(side))), tuple(when))
        for side, when in sides
    )
    return one, other


def bootstrap(values: Sequence[float] | Floats) -> Interval | None:
    """The bootstrap-t interval of one sample; None where there is none."""
    array = np.asarray(values, dtype=np.float64)
    low, high = bootstrap_many(array[np.newaxis])
    if np.isnan(low[0]):
        return None
    return float(low[0]), float(high[0])

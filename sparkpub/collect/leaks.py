"""Memory that keeps growing while a run is measured: the rule, and the signals it is applied to."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparkpub.review.statistics.drift import trend

FLOOR_GIB = 0.5
"""Less is no leak, neither growing in a run nor left behind after it: an idle machine moves by less."""
SPAN_SECONDS = 60.0
"""The least stretch of the measured phase that shows a trend: garbage is collected more often than once a minute."""
EVERY_SECONDS = 5.0
"""Between two looks at the same signal."""
ALPHA = 0.001
POINTS = 64
"""Samples of a stretch that are looked at, evenly spread: enough for the test, and the cost does not grow."""
STEADY = 0.125
"""Least share of the whole growth from each quarter of a stretch to the next; a straight line has a third."""


@dataclass(frozen=True)
class MemoryGrowth:
    """By how much memory grew over the last seconds of the measured phase."""

    gib: float
    seconds: float

    def __str__(self) -> str:
        rate = 60 * self.gib / self.seconds
        return f"grew steadily by {self.gib:.2f} GiB in the last {self.seconds:.0f} s, {rate:.2f} GiB/min"


def growth(times: Sequence[float], gib: Sequence[float]) -> MemoryGrowth | None:
    """The leak that samples of the measured phase show, or None. Times in seconds, memory in GiB.

    The whole phase is looked at, then its last half and its last quarter, so that a leak that begins late is found
    soon. A stretch of at least `SPAN_SECONDS` shows a leak where

    - its trend (the Theil-Sen slope, the median of the slopes of all pairs) comes to `FLOOR_GIB` or more over it, and
      its last sample lies as far above the median of the phase before it, so that no swing back is taken for growth,
    - it grows throughout: the medians of its four quarters rise, each step by at least `STEADY` of the whole. One
      large allocation, caches that fill and then hold, or a collector of garbage that saws up and down do not.
    - chance does not explain it: Mann-Kendall's test gives p < `ALPHA`, for which eight samples are the least.
    """
    for first in (0, len(times) // 2, len(times) * 3 // 4):
        span = times[-1] - times[first] if times else 0.0
        if span < SPAN_SECONDS:
            return None
        found = _steady(np.asarray(gib[first:]))
        if found is not None and (
            first == 0 or gib[-1] - np.median(gib[:first]) >= FLOOR_GIB
        ):
            return MemoryGrowth(found, span)
    return None


def _steady(values: np.ndarray) -> float | None:
    """Growth over a stretch, where it is one by the rule of `growth`."""
    picked = values[
        np.linspace(0, len(values) - 1, min(len(values), POINTS)).round().astype(int)
    ]
    if len(picked) < 8:
        return None
    steps = np.diff([np.median(quarter) for quarter in np.array_split(picked, 4)])
    if steps.sum() < FLOOR_GIB / 2 or steps.min() < STEADY * steps.sum():
        return None
    found = trend(picked.tolist())
    if found.slope is None or found.p_value is None or found.p_value >= ALPHA:
        return None
    total = found.slope * (len(picked) - 1)
    return total if total >= FLOOR_GIB else None


SIGNALS = (
    "memory in use on the machine",
    "memory of the run's control group",
    "memory of the run's processes",
    "GPU memory in use",
)


class LeakWatch:
    """Follows every signal from the moment the measurement begins, and reports each leak once."""

    def __init__(self) -> None:
        importlib.import_module("scipy.special")  # not while something is measured
        self._series: dict[str, tuple[list[float], list[float]]] = {
            name: ([], []) for name in SIGNALS
        }
        self._due = 0.0

    def sample(self, at: float, row: Mapping[str, float | None]) -> list[str]:
        """Take a sample of the measured phase; returns leaks that show now and did not before, in words."""
        for name, value in zip(SIGNALS, _signals(row), strict=True):
            if value is not None and name in self._series:
                times, values = self._series[name]
                times.append(at)
                values.append(value)
        if at < self._due:
            return []
        self._due = at + EVERY_SECONDS
        found = {
            name: leak
            for name, series in self._series.items()
            if (leak := growth(*series)) is not None
        }
        for name in found:
            del self._series[name]
        return [f"{name} {leak}" for name, leak in found.items()]


def _signals(row: Mapping[str, float | None]) -> tuple[float | None, ...]:
    """Memory in GiB by signal. Used memory is what MemAvailable lost; a group's page cache is not its own memory,
    but shared memory, which the kernel counts as cache, is."""
    lost, own = row.get("mem_available_gib"), row.get("cgroup_current_gib")
    cache = (row.get("cgroup_file_gib") or 0.0) - (row.get("cgroup_shmem_gib") or 0.0)
    if lost is not None:
        lost = -lost
    if own is not None:
        own -= cache
    return (
        lost,
        own,
        row.get("processes_pss_gib"),
        row.get("gpu_memory_used_gib"),
    )

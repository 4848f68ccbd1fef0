"""Memory that keeps growing while a run is measured, by its telemetry."""

from collections.abc import Iterator

import numpy as np

from sparkpub.record import telemetry
from sparkpub.record.store import Stored
from sparkpub.review.checks.evidence import Samples, measured_phase
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View
from sparkpub.review.statistics.estimate import Floats
from sparkpub.review.statistics.series import trends

LEAK_GIB = Threshold(
    "leak gib",
    telemetry.LEAK_GIB,
    "GiB from which memory that grows steadily leaks: an idle machine moves by less.",
)
LEAK_SECONDS = Threshold(
    "leak seconds",
    60.0,
    "The least stretch of the measured phase that shows a leak: garbage is collected more often than once a minute.",
)
ALPHA = 0.001
POINTS = 64
"""Samples of a stretch that are looked at, evenly spread: enough for the test, and the cost does not grow."""
STEADY = 0.125
"""Least share of the whole growth from each quarter of a stretch to the next; a straight line has a third."""


def of_run(view: View, stored: Stored) -> Iterator[str]:
    """What leaked in a run: as it was noted meanwhile, and what the samples of its measured phase show besides.

    Loading a model and warming up may well take more and more memory: where nothing says when the measurement began,
    the samples say nothing either. Neither do imported ones, of a machine of which nobody knows what else ran there.
    """
    noted = [event.text for event in stored.record.events if event.kind == "leak"]
    yield from noted
    samples = view.evidence.of(stored).samples
    phase = measured_phase(stored.record)
    is_own = stored.record.plan.order != "as-published"
    if samples is None or phase is None or not is_own:
        return
    places = samples.within(phase)
    for signal, values in _signals(samples).items():
        known = places & ~np.isnan(values)
        found = growth(samples.times[known], values[known])
        if found is not None and not any(text.startswith(signal) for text in noted):
            yield f"{signal} {found}"


def _signals(samples: Samples) -> dict[str, Floats]:
    """Memory in GiB by signal. Used memory is what MemAvailable lost; a group's page cache is not its own memory, but
    shared memory, which the kernel counts as cache, is."""
    columns = samples.columns
    cache = columns["cgroup_file_gib"] - columns["cgroup_shmem_gib"]
    return {
        "memory in use on the machine": -columns["mem_available_gib"],
        "memory of the run's control group": columns["cgroup_current_gib"]
        - np.nan_to_num(cache),
        "memory of the run's processes": columns["processes_pss_gib"],
        "GPU memory in use": columns["gpu_memory_used_gib"],
    }


def growth(times: Floats, gib: Floats) -> str | None:
    """The leak that samples of the measured phase show, in words, or None. Times in seconds, memory in GiB.

    The whole phase is looked at, then its last half and its last quarter, so that a leak that begins late is found. A
    stretch of at least `LEAK_SECONDS` shows a leak where

    - its trend (the Theil-Sen slope, the median of the slopes of all pairs) comes to `LEAK_GIB` or more over it, and
      its last sample lies as far above the median of the phase before it, so that no swing back is taken for growth,
    - it grows throughout: the medians of its four quarters rise, each step by at least `STEADY` of the whole. One
      large allocation, caches that fill and then hold, or a collector of garbage that saws up and down do not.
    - chance does not explain it: Mann-Kendall's test gives p < `ALPHA`, for which eight samples are the least.
    """
    for first in (0, len(times) // 2, len(times) * 3 // 4):
        span = float(times[-1] - times[first]) if len(times) else 0.0
        if span < LEAK_SECONDS:
            return None
        found = _steady(gib[first:])
        if found is not None and (
            first == 0 or gib[-1] - np.median(gib[:first]) >= LEAK_GIB
        ):
            rate = 60 * found / span
            return f"grew steadily by {found:.2f} GiB in the last {span:.0f} s, {rate:.2f} GiB/min"
    return None


def _steady(values: Floats) -> float | None:
    """Growth over a stretch, where it is one by the rule of `growth`."""
    evenly = np.linspace(0, len(values) - 1, min(len(values), POINTS))
    picked = values[evenly.round().astype(int)]
    if len(picked) < 8:
        return None
    steps = np.diff([np.median(quarter) for quarter in np.array_split(picked, 4)])
    if steps.sum() < LEAK_GIB / 2 or steps.min() < STEADY * steps.sum():
        return None
    found = trends(picked[np.newaxis])
    if not found["p_value"][0] < ALPHA:
        return None
    total = float(found["slope"][0]) * (len(picked) - 1)
    return total if total >= LEAK_GIB else None

"""Whether telemetry is that of its run: its clock, its counters, its levels, and what the record took from it."""

import math
from collections.abc import Iterator

import numpy as np

from sparkpub.record.record import Phase, Record
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import Samples, measured_phase
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View, by_gpu

SAMPLER_TOLERANCE = Threshold(
    "sampler tolerance",
    1e-3,
    "Allowed relative difference between a recorded figure and its samples, which have six digits.",
)
OVERRUN_SECONDS = Threshold(
    "overrun seconds",
    120.0,
    "Telemetry that continues for longer than this after a run belongs to another run. Memory is sampled for a minute.",
)
LEVEL_GIB = Threshold(
    "telemetry level gib",
    0.5,
    "GiB by which the peak reported by a tool may exceed the highest sample.",
)
POWER_SHARE = Threshold(
    "power share",
    0.3,
    "Relative difference between energy by the readings of power and by the counter: 0.16 at most in 268 real runs.",
)
REST_PERCENT = Threshold(
    "rest percent",
    5.0,
    "Highest utilisation of the GPU in a measured phase below which it did not serve this run: a desktop needs this "
    "much.",
)
POWER_SAMPLES = Threshold(
    "power samples",
    50,
    "Samples from which power that never changes is that of a sensor that stands still.",
)


LOAD_SAMPLES = 5
"""Samples in the measured phase from which its utilisation is known: the driver averages over up to a second."""


def foreign_telemetry(view: View) -> Iterator[Finding]:
    """Runs whose telemetry cannot be theirs."""
    foreign: list[Case] = []
    unphased = []
    for stored in view.happened:
        samples = view.evidence.of(stored).samples
        if samples is None or not len(samples.times):
            continue
        problem = _problem(stored.record, samples)
        if problem is not None:
            foreign.append((stored, problem))
        elif not stored.record.phases:
            unphased.append(stored)
    yield from view.cases(
        "foreign-telemetry",
        "error",
        foreign,
        "has telemetry that cannot belong to the run",
        "have telemetry that cannot belong to the run",
    )
    yield from view.cases(
        "foreign-telemetry",
        "error",
        _turned_back(view),
        "has an energy counter that decreased",
    )
    yield from view.unjudged(
        "foreign-telemetry", {"when the measured phase began and ended": unphased}
    )


def _problem(record: Record, samples: Samples) -> str | None:
    """What shows that samples are not of a run, in words."""
    lasted, end = record.duration_seconds, samples.times[-1]
    if lasted is not None and end > lasted + OVERRUN_SECONDS:
        return f"it continues to second {end:.0f}, and the run was over after {lasted:.0f} s"
    measured = measured_phase(record)
    if measured is not None and _unsampled(measured, samples):
        return "no sample lies within the measured phase"
    if measured is not None:
        load = samples.known("gpu_utilization_percent", samples.within(measured))
        if len(load) >= LOAD_SAMPLES and load.max() < REST_PERCENT:
            return f"the GPU was at rest throughout the measured phase ({load.max():.0f} % at most)"
    for name, given in samples.metrics.items():
        recorded = record.metrics.get(name)
        if recorded is None or recorded.value is None or recorded.source != "sampler":
            continue
        if not any(
            math.isclose(recorded.value, value, rel_tol=SAMPLER_TOLERANCE, abs_tol=1e-6)
            for value in given
        ):
            return f"the record has {name} = {recorded.value:.6g}, but the samples give {given[0]:.6g}"
    return _levels(record, samples) or _power(samples)


def _power(samples: Samples) -> str | None:
    """Where the readings of power are no measurement of this run, or not of the GPU whose energy was counted."""
    if len(samples.times) < POWER_SAMPLES:
        return None
    if len(np.unique(samples.known("gpu_power_watt"))) == 1:
        return "the power sensor stood still"
    share = _power_share(samples)
    if share is not None and abs(share - 1) > POWER_SHARE:
        return f"the energy by its readings of power is {share:.2g} times that of its counter"
    return None


def _power_share(samples: Samples) -> float | None:
    """Energy by the readings of power, as a share of what the counter says; None where they are not of one time."""
    power, counter = (
        ~np.isnan(samples.columns[name])
        for name in ("gpu_power_watt", "gpu_energy_joule")
    )
    times, joule = samples.times[power], samples.known("gpu_energy_joule")
    if len(times) < 2 or len(joule) < 2 or joule[-1] <= joule[0]:
        return None
    if (times[[0, -1]] != samples.times[counter][[0, -1]]).any():
        return None
    read = np.trapezoid(samples.known("gpu_power_watt"), times)
    return float(read / (joule[-1] - joule[0]))


def _unsampled(phase: Phase, samples: Samples) -> bool:
    """Whether a phase that is long enough for several samples has none."""
    long_enough = phase.end_seconds - phase.start_seconds > 2 * samples.interval
    return long_enough and not samples.within(phase).any()


def _levels(record: Record, samples: Samples) -> str | None:
    """Where levels of memory, before the run or at its peak, are those of another run."""
    said = None if record.memory is None else record.memory.baseline.available_gib
    sampled = samples.before("mem_available_gib")
    if (
        said is not None
        and sampled is not None
        and not math.isclose(said, sampled, rel_tol=SAMPLER_TOLERANCE)
    ):
        return f"{said:.2f} GiB were available before the run, and the samples begin with {sampled:.2f} GiB"
    peak = samples.metrics.get("gpu_memory_peak_gib")
    held = record.value("allocated_peak_gib")
    if peak is not None and held is not None and held > peak[0] + LEVEL_GIB:
        return f"the run held {held:.2f} GiB of GPU memory, and the samples show {peak[0]:.2f} GiB at most"
    return None


def _turned_back(view: View) -> list[Case]:
    """Runs whose energy counter begins below the end of a run before them: it only ever grows until the driver is
    loaded again."""
    cases = []
    for runs in by_gpu(view.happened):
        runs.sort(key=lambda run: run.record.started.value)
        reached, before = 0.0, ""
        for stored in runs:
            samples = view.evidence.of(stored).samples
            if samples is None or not len(joule := samples.known("gpu_energy_joule")):
                continue
            if joule[0] < reached:
                detail = f"it begins at {joule[0]:.0f} J, and {before} had reached {reached:.0f} J"
                cases.append((stored, detail))
            reached, before = joule[-1], stored.run_id
    return cases


CHECKS = (
    Check(
        "foreign-telemetry",
        "evidence",
        ("error",),
        "Does the telemetry belong to its run?",
        foreign_telemetry,
        thresholds=(
            SAMPLER_TOLERANCE,
            OVERRUN_SECONDS,
            LEVEL_GIB,
            POWER_SHARE,
            POWER_SAMPLES,
            REST_PERCENT,
        ),
        remedy="Quarantine the runs, or import them without this telemetry.",
    ),
)

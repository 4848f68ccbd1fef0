"""Whether telemetry is that of its run: its clock, its load, and what the record took from it."""

import math
from collections.abc import Iterator

from sparkpub.record.record import Phase, Record
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import Samples, measured_phase
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View

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
REST_PERCENT = Threshold(
    "rest percent",
    5.0,
    "Highest utilisation of the GPU in a measured phase below which it did not serve this run: a desktop needs this "
    "much.",
)


LOAD_SAMPLES = 5
"""Samples in the measured phase from which its utilisation is known: the driver averages over up to a second."""


def foreign_telemetry(view: View) -> Iterator[Finding]:
    """Runs whose telemetry cannot be theirs."""
    foreign: list[Case] = []
    for stored in view.happened:
        samples = view.evidence.of(stored).samples
        if samples is None or not len(samples.times):
            continue
        problem = _problem(stored.record, samples)
        if problem is not None:
            foreign.append((stored, problem))
    yield from view.cases(
        "foreign-telemetry",
        "error",
        foreign,
        "has telemetry that cannot belong to the run",
        "have telemetry that cannot belong to the run",
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
    return None


def _unsampled(phase: Phase, samples: Samples) -> bool:
    """Whether a phase that is long enough for several samples has none."""
    long_enough = phase.end_seconds - phase.start_seconds > 2 * samples.interval
    return long_enough and not samples.within(phase).any()


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
            REST_PERCENT,
        ),
        remedy="Quarantine the runs, or import them without this telemetry.",
    ),
)

"""Under which conditions a run took place: heat, throttling, clocks, company, kernel messages, telemetry, machine."""

from collections.abc import Iterator

from sparkpub.record import telemetry
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import LOAD_PERCENT, POWER_CAP
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

START_TEMPERATURE_CELSIUS = Threshold(
    "start temperature celsius",
    45.0,
    "Start temperature of the methodology, for runs whose gate is not recorded.",
)
SLOW_CLOCK_SHARE = Threshold(
    "slow clock share",
    0.5,
    "Share of the maximum SM clock under load below which the clock is stuck. A DGX Spark with a badly "
    "negotiated power supply runs at 500 to 850 of some 2,400 MHz.",
)
THROTTLED_SHARE = Threshold(
    "throttled share",
    0.01,
    "Share of samples under load with a thermal or hardware slowdown: one of a hundred is no accident of sampling.",
)
TELEMETRY_GAP_INTERVALS = Threshold(
    "telemetry gap intervals",
    5.0,
    "A gap is longer than this many sampling intervals and than this many seconds: sensors answer late under load.",
)
TELEMETRY_GAP_SECONDS = Threshold(
    "telemetry gap seconds",
    2.0,
    "A gap is longer than this many sampling intervals and than this many seconds: sensors answer late under load.",
)
POWER_CAPPED_SHARE = Threshold(
    "power capped share",
    0.5,
    "Share of samples under load at the power limit from which it is worth a note.",
)


def _events(stored: Stored, *kinds: str) -> list[str]:
    return [event.text for event in stored.record.events if event.kind in kinds]


def _unmet(stored: Stored, *words: str) -> list[str]:
    """Gates of those names that let the run start although their condition was not met, in words."""
    return [
        f"{gate.name.replace('_', ' ')} wanted {gate.wanted} {gate.unit}".strip()
        + (f" and read {gate.readings[-1].value}" if gate.readings else "")
        for gate in stored.record.gates
        if gate.met is False and any(word in gate.name for word in words)
    ]


def thermal_gate(view: View) -> Iterator[Finding]:
    """Runs that started hot."""
    for stored in view.happened:
        problems, start = _unmet(stored, "temp"), stored.record.value("gpu_temp_start_celsius")
        gated = any("temp" in gate.name for gate in stored.record.gates)
        if not gated and start is not None and start > START_TEMPERATURE_CELSIUS:
            problems = [f"the GPU had {start:.0f} °C, and {START_TEMPERATURE_CELSIUS:g} °C is the limit"]
        if problems:
            yield view.finding("thermal-gate", "warning", f"This run started hot: {'; '.join(problems)}.", run=stored,
                               start_celsius=start)  # fmt: skip


def throttled(view: View) -> Iterator[Finding]:
    """Runs that heat or hardware slowed down; a power cap, which is how a GPU is built to run, is only noted."""
    capped, harmless = [], {telemetry.THROTTLES[POWER_CAP]}
    for stored in view.happened:
        conditions = view.evidence.of(stored).samples
        events = [text for text in _events(stored, "throttle") if set(text.split(", ")) != harmless]
        slowed = (conditions.slowed_share if conditions is not None else None) or 0.0
        if slowed > THROTTLED_SHARE or events:
            text = f"Heat or hardware held the GPU back in {100 * slowed:.0f} % of the samples under load"
            yield view.finding("throttled", "warning", f"{text}{f': {events[0]}' if events else ''}.", run=stored,
                               slowed_share=slowed, events=events)  # fmt: skip
        elif conditions is not None and (conditions.capped_share or 0) > POWER_CAPPED_SHARE:
            capped.append(stored)
    yield from view.together("throttled", "info", capped, lambda runs: f"The power limit held the clock in {runs}.")


def slow_clock(view: View) -> Iterator[Finding]:
    """Runs whose SM clock under load stayed far below what the GPU can do and what the matrix set."""
    for stored in view.happened:
        record, conditions = stored.record, view.evidence.of(stored).samples
        clock = record.value("gpu_clock_sm_mean_mhz") if conditions is None else conditions.clock_under_load_mhz
        limits = [gpu.clock_max_sm_mhz for gpu in record.machine.gpus if gpu.clock_max_sm_mhz]
        limit = record.machine.clocks_locked_mhz or max(limits, default=None)
        slow = clock is not None and limit is not None and clock < SLOW_CLOCK_SHARE * limit
        events = _events(stored, "slow-clock")
        if slow or events:
            text = f"The SM clock was {clock:.0f} MHz under load, of {limit:.0f} MHz." if slow else f"{events[0]}."
            yield view.finding("slow-clock", "warning", text, run=stored, clock_mhz=clock, limit_mhz=limit)


def foreign_load(view: View) -> Iterator[Finding]:
    """Runs that shared the GPU, the CPU or the memory with somebody else."""
    for stored in view.happened:
        conditions = view.evidence.of(stored).samples
        problems = _unmet(stored, "exclusive", "cpu", "memory") + _events(stored, "foreign-process")
        if conditions is not None and conditions.foreign_processes:
            problems.append(f"up to {conditions.foreign_processes} other processes were on the GPU")
        if problems:
            yield view.finding("foreign-load", "warning", f"This run was not alone: {'; '.join(problems)}.", run=stored,
                               problems=problems)  # fmt: skip


def leak(view: View) -> Iterator[Finding]:
    """Runs whose memory kept growing while they were measured, or did not come back after them."""
    for stored in view.happened:
        if events := _events(stored, "leak"):
            yield view.finding("leak", "warning", f"This run leaked: {'; '.join(events)}.", run=stored, events=events)


def kernel_warning(view: View) -> Iterator[Finding]:
    """Runs during which kernel or driver complained."""
    for stored in view.happened:
        if events := _events(stored, "xid", "oom", "kernel", "memory-floor"):
            times = f"{len(events)} times" if len(events) > 1 else "once"
            text = f"Kernel or driver complained {times} during this run: {events[0]}."
            yield view.finding("kernel-warning", "warning", text, run=stored, events=events)


def telemetry_gap(view: View) -> Iterator[Finding]:
    """Runs in which the sampler was silent for a while, or whose samples are gone."""
    for stored in view.happened:
        record, conditions = stored.record, view.evidence.of(stored).samples
        if conditions is None:
            if any(value.source == "sampler" and value.value is not None for value in record.metrics.values()):
                yield view.finding("telemetry-gap", "warning", "Figures of this run come from the sampler, whose "
                                   "samples were not kept.", run=stored)  # fmt: skip
            continue
        matrix = view.campaign.matrix
        interval = conditions.interval if matrix is None else matrix.telemetry.interval
        allowed = max(TELEMETRY_GAP_INTERVALS * interval, TELEMETRY_GAP_SECONDS)
        late = (record.duration_seconds or 0.0) - conditions.end
        silent, at = max((conditions.widest_gap, conditions.widest_gap_at), (late, conditions.end))
        if silent > allowed:
            text = (
                f"The sampler was silent for {silent:.1f} s from second {at:.0f} of the run on; a sample every "
                f"{interval:g} s was wanted. Peaks in between were not seen."
            )
            yield view.finding("telemetry-gap", "warning", text, run=stored, gap_seconds=silent, at_seconds=at,
                               interval_seconds=interval, samples=conditions.samples)  # fmt: skip


CHECKS = (
    Check(
        "thermal-gate",
        "evidence",
        ("warning",),
        "Did every run start cool?",
        thermal_gate,
        thresholds=(START_TEMPERATURE_CELSIUS,),
    ),
    Check(
        "throttled",
        "evidence",
        ("warning", "info"),
        "Did the GPU run as fast as it can?",
        throttled,
        thresholds=(LOAD_PERCENT, THROTTLED_SHARE, POWER_CAPPED_SHARE),
    ),
    Check(
        "slow-clock",
        "evidence",
        ("warning",),
        "Was the clock what the GPU can do?",
        slow_clock,
        thresholds=(SLOW_CLOCK_SHARE,),
    ),
    Check(
        "foreign-load",
        "evidence",
        ("warning",),
        "Was the run alone on the machine?",
        foreign_load,
    ),
    Check(
        "leak",
        "evidence",
        ("warning",),
        "Did memory stay level, and come back after the run?",
        leak,
    ),
    Check(
        "kernel-warning",
        "evidence",
        ("warning",),
        "Were kernel and driver content?",
        kernel_warning,
    ),
    Check(
        "telemetry-gap",
        "evidence",
        ("warning",),
        "Are the samples complete?",
        telemetry_gap,
        thresholds=(TELEMETRY_GAP_INTERVALS, TELEMETRY_GAP_SECONDS),
    ),
)

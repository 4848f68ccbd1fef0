"""Under which conditions a run took place: heat, throttling, clocks, company, kernel messages, telemetry, machine."""

from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean, median

import numpy as np

from sparkpub.plan.matrix import START_CELSIUS
from sparkpub.record import telemetry
from sparkpub.record.record import Gate
from sparkpub.record.store import Stored
from sparkpub.record.text import other_processes
from sparkpub.review.checks.check import Check, of_each_run
from sparkpub.review.checks.evidence import LOAD_PERCENT, Samples, while_measuring
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.integrity import published_only
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View, first_of, label
from sparkpub.review.reviewed import Cell

START_TEMPERATURE_CELSIUS = Threshold(
    "start temperature celsius",
    START_CELSIUS,
    "Maximum start temperature in the methodology, used for runs without a recorded gate.",
)
START_RANGE_CELSIUS = Threshold(
    "start range celsius",
    20.0,
    "Maximum difference between the start temperatures of a cell's runs: a warmer GPU boosts less and leaks more. In "
    "real campaigns it was 12 at most.",
)
WAITED_PERCENT = Threshold(
    "waited percent",
    20.0,
    "Share of the measured time in which some process waited for processors, disk or memory, by the kernel's pressure "
    "stall information, from which something else was at work. In real runs it was 7 at most.",
)
BUSIER_PERCENT = Threshold(
    "busier percent",
    25.0,
    "Points of CPU load by which a run may exceed the median of its cell: more means that another program was running.",
)
SLOW_CLOCK_SHARE = Threshold(
    "slow clock share",
    0.5,
    "Below this share of the maximum SM clock under load, the clock counts as stuck. A DGX Spark whose power "
    "negotiation failed runs at 500 to 850 MHz instead of about 2,400 MHz.",
)
THROTTLED_SHARE = Threshold(
    "throttled share",
    0.01,
    "Share of samples under load with a thermal or hardware slowdown from which a run counts as throttled.",
)
TELEMETRY_GAP_INTERVALS = Threshold(
    "telemetry gap intervals",
    5.0,
    "A gap is longer than both limits, because sensors can answer late under load.",
)
TELEMETRY_GAP_SECONDS = Threshold(
    "telemetry gap seconds",
    2.0,
    "A gap is longer than both limits, because sensors can answer late under load.",
)
POWER_CAPPED_SHARE = Threshold(
    "power capped share",
    0.1,
    "Share of samples under load at the power limit from which the check adds a note.",
)


PRESSURES = {
    "processors": "pressure_cpu_some_percent",
    "the disk": "pressure_io_some_percent",
    "memory": "pressure_memory_some_percent",
}
"""What processes wait for, and the column of the telemetry that says how long."""
POWER_CAP = 0x4
"""NVML's bit for a clock held by the power limit."""
_SLOWDOWN = sum(telemetry.THROTTLES) - POWER_CAP


def _events(stored: Stored, *kinds: str) -> list[str]:
    return [event.text for event in stored.record.events if event.kind in kinds]


def _unmet(stored: Stored, *words: str) -> list[str]:
    """Gates of those names that let the run start although their condition was not met, in words."""
    found = []
    for gate in stored.record.gates:
        concerned = any(word in gate.name for word in words)
        if not concerned or not (gate.met is False or _read_otherwise(gate)):
            continue
        wanted = f"{gate.name.replace('_', ' ')} wanted {gate.wanted} {gate.unit}"
        read = f" and read {gate.readings[-1].value}" if gate.readings else ""
        found.append(wanted.strip() + read)
    return found


def _read_otherwise(gate: Gate) -> bool:
    """Whether a gate that calls itself met has a last reading that does not meet it."""
    if not gate.met or not gate.readings:
        return False
    read, wanted = gate.readings[-1].value, gate.wanted
    if not isinstance(read, int | float) or not isinstance(wanted, int | float):
        return False
    if gate.name.startswith("max_"):
        return read > wanted
    if gate.name.startswith("min_"):
        return read < wanted
    return False


def thermal_gate(view: View) -> Iterator[Finding]:
    """Runs that a gate let start hot, and those that no gate held back."""
    yield from view.faulty(
        "thermal-gate", "warning", lambda run: _unmet(run, "temp"), "started hot"
    )
    yield from view.faulty(
        "thermal-gate",
        "warning",
        _hot_without_a_gate,
        "started hot",
        remedy="Let the machine cool before each run; a matrix waits for that (max_start_temp_celsius: in gates:).",
    )
    yield from _rounds_of_other_heat(view)


def _rounds_of_other_heat(view: View) -> Iterator[Finding]:
    """Cells whose runs started cool and hot, so that they are not repetitions of one measurement."""
    ranges: dict[Cell, tuple[float, float]] = {}
    for cell in view.counted:
        starts = view.figures(cell, "gpu_temp_start_celsius")
        if starts and max(starts) - min(starts) > START_RANGE_CELSIUS:
            ranges[cell] = min(starts), max(starts)
    if not ranges:
        return
    cells = list(ranges)
    least, most = ranges[cells[0]]
    text = (
        f"Runs of {label(cells[0])} started at {least:.0f} to {most:.0f} °C. A warmer GPU is slower, so they do not "
        "repeat one measurement."
    )
    yield view.concerning(
        "thermal-gate", "warning", text, cells, cases=len(cells), what="start range"
    )


def _hot_without_a_gate(stored: Stored) -> Iterator[str]:
    """A temperature above the methodology's limit, where no gate asked for it."""
    start = stored.record.value("gpu_temp_start_celsius")
    gated = any("temp" in gate.name for gate in stored.record.gates)
    if not gated and start is not None and start > START_TEMPERATURE_CELSIUS:
        yield f"the GPU had {start:.0f} °C, and {START_TEMPERATURE_CELSIUS:g} °C is the limit"


def throttled(view: View) -> Iterator[Finding]:
    """Runs that heat, hardware or an operator slowed down; a power cap, which is how a GPU is built to run, is only
    noted."""
    yield from view.faulty(
        "throttled",
        "warning",
        _less_than_the_gpu,
        "had less than the GPU that they are called by",
        remedy="Restore the GPU's default (nvidia-smi -pl, -mig 0) and re-run, or name the machine after what it had.",
    )
    harmless = {telemetry.THROTTLES[POWER_CAP]}
    slowed: list[Case] = []
    capped = []
    unsampled = []
    for stored in view.happened:
        samples = view.evidence.of(stored).samples
        events = [
            text
            for text in _events(stored, "throttle")
            if set(text.split(", ")) != harmless
        ]
        share = _share_under_load(samples, _SLOWDOWN)
        if share > THROTTLED_SHARE or events:
            said = f": {events[0]}" if events else ""
            detail = f"{100 * share:.0f} % of the samples under load{said}"
            slowed.append((stored, detail))
        elif _share_under_load(samples, POWER_CAP) > POWER_CAPPED_SHARE:
            capped.append(stored)
        elif samples is None and _is_sampled(stored):
            unsampled.append(stored)
    yield from view.cases(
        "throttled", "warning", slowed, "ran with a GPU slowed by heat or hardware"
    )
    yield from view.together(
        "throttled",
        "info",
        capped,
        lambda runs: (
            f"The GPU was at its power limit, which lowers the clock, in {runs}."
        ),
    )
    yield from view.unjudged(
        "throttled", {"throttle reasons in the telemetry": unsampled}
    )


def _is_sampled(stored: Stored) -> bool:
    """Whether a run should have samples of a GPU."""
    return bool(stored.record.machine.gpus) and not published_only(stored)


def _share_under_load(samples: Samples | None, reasons: int) -> float:
    """Share of the samples under load in which one of these reasons held the clock; 0 where none tells."""
    if samples is None:
        return 0.0
    found = samples.known("gpu_throttle_reasons", samples.under_load).astype(np.int64)
    return float(np.mean(found & reasons > 0)) if len(found) else 0.0


def _less_than_the_gpu(stored: Stored) -> Iterator[str]:
    """A part of a GPU, and one that may not draw what it is built for."""
    for gpu in stored.record.machine.gpus:
        limit, usual = gpu.power_limit_watt, gpu.power_default_watt
        if gpu.mig:
            yield f"a slice of {gpu.name} (MIG)"
        if limit is not None and usual is not None and limit < usual:
            yield f"{gpu.name} was limited to {limit:g} W of {usual:g} W"


def slow_clock(view: View) -> Iterator[Finding]:
    """Runs whose SM clock under load stayed far below what the GPU can do and what the matrix set."""
    stuck: list[Case] = []
    unknown = []
    for stored in view.happened:
        record, samples = stored.record, view.evidence.of(stored).samples
        clock = record.value("gpu_clock_sm_mean_mhz")
        if samples is not None:
            clock = samples.clock("gpu_clock_sm_mhz")
        limits = [
            gpu.clock_max_sm_mhz for gpu in record.machine.gpus if gpu.clock_max_sm_mhz
        ]
        limit = record.machine.clocks_locked_mhz or max(limits, default=None)
        events = _events(stored, "slow-clock")
        if clock is not None and limit is not None and clock < SLOW_CLOCK_SHARE * limit:
            stuck.append((stored, f"{clock:.0f} MHz under load, of {limit:.0f} MHz"))
        elif events:
            stuck.append((stored, events[0]))
        elif clock is not None and limit is None:
            unknown.append(stored)
    yield from view.cases("slow-clock", "warning", stuck, "ran with a slow SM clock")
    yield from view.unjudged("slow-clock", {"the highest SM clock of the GPU": unknown})


def _company(view: View, stored: Stored) -> Iterator[str]:
    """Somebody else on the GPU, the CPU or in the memory."""
    yield from _unmet(stored, "exclusive", "cpu", "memory")
    yield from _events(stored, "foreign-process")
    samples = view.evidence.of(stored).samples
    if samples is None:
        return
    most = samples.known("gpu_foreign_processes").max(initial=0)
    if most:
        yield f"the GPU was in use by up to {other_processes(int(most))}"
    for what, column in PRESSURES.items():
        waited = while_measuring(stored.record, samples, column)
        if waited and fmean(waited) > WAITED_PERCENT:
            yield f"processes waited for {what} in {fmean(waited):.0f} % of the measured time"
    usual = view.once(_usual_cpu_percent).get(stored.record.cell)
    load = while_measuring(stored.record, samples, "cpu_percent")
    if load and usual is not None and fmean(load) > usual + BUSIER_PERCENT:
        yield f"processors were {fmean(load):.0f} % busy, and {usual:.0f} % usually"


def _usual_cpu_percent(view: View) -> dict[Cell, float]:
    """The median load of the processors in the runs of each cell."""
    loads: dict[Cell, list[float]] = {}
    for run in view.happened:
        samples = view.evidence.of(run).samples
        if samples is not None:
            load = while_measuring(run.record, samples, "cpu_percent")
            if load:
                loads.setdefault(run.record.cell, []).append(fmean(load))
    return {cell: median(known) for cell, known in loads.items()}


def _complaints(_view: View, stored: Stored) -> Iterator[str]:
    """The first message of kernel, driver or container engine, and how many there are."""
    events = _events(stored, "xid", "oom", "kernel", "memory-floor")
    container = stored.record.container
    if container is not None and container.oom_killed:
        events.append("the engine reports that it was killed for lack of memory")
    yield from first_of(events, "messages")


def telemetry_gap(view: View) -> Iterator[Finding]:
    """Runs in which the sampler was silent for a while, or whose samples are gone."""
    lost = []
    silent: list[Case] = []
    for stored in view.happened:
        record, samples = stored.record, view.evidence.of(stored).samples
        if samples is None:
            if any(
                value.source == "sampler" and value.value is not None
                for value in record.metrics.values()
            ):
                lost.append(stored)
            continue
        matrix = view.campaign.matrix
        interval = samples.interval if matrix is None else matrix.telemetry.interval
        allowed = max(TELEMETRY_GAP_INTERVALS * interval, TELEMETRY_GAP_SECONDS)
        moments = samples.times.tolist() or [0.0]
        silences = pairwise([*moments, record.duration_seconds or 0.0])
        gap, at = max((later - earlier, earlier) for earlier, later in silences)
        if gap > allowed:
            detail = f"{gap:.1f} s from second {at:.0f} on, with one sample every {interval:g} s requested"
            silent.append((stored, detail))
    yield from view.together(
        "telemetry-gap",
        "warning",
        lost,
        lambda runs: (
            f"Figures of {runs} come from the sampler, but its samples were not kept."
        ),
    )
    yield from view.cases(
        "telemetry-gap",
        "warning",
        silent,
        "had gaps in the telemetry, so peaks may be missing",
    )


CHECKS = (
    Check(
        "thermal-gate",
        "evidence",
        ("warning",),
        "Did every run start cool?",
        thermal_gate,
        thresholds=(START_TEMPERATURE_CELSIUS, START_RANGE_CELSIUS),
        remedy="Lengthen cooldown: or lower max_start_temp_celsius: in gates:, and re-run.",
    ),
    Check(
        "throttled",
        "evidence",
        ("warning", "info"),
        "Was the GPU whole, and not throttled?",
        throttled,
        thresholds=(LOAD_PERCENT, THROTTLED_SHARE, POWER_CAPPED_SHARE),
        remedy="Improve the cooling, or lock the clocks lower (lock_clocks_mhz: in gates:), and re-run.",
    ),
    Check(
        "slow-clock",
        "evidence",
        ("warning",),
        "Did the GPU reach its normal clock?",
        slow_clock,
        thresholds=(SLOW_CLOCK_SHARE,),
        remedy="Check power supply and power mode, restart the machine, and re-run.",
    ),
    of_each_run(
        "foreign-load",
        "evidence",
        "warning",
        "Was the run alone on the machine?",
        _company,
        ("shared the machine",),
        thresholds=(WAITED_PERCENT, BUSIER_PERCENT),
        remedy="Stop the other programs or lift the limit on processors, set exclusive_gpu: in gates:, and re-run.",
    ),
    of_each_run(
        "leak",
        "evidence",
        "warning",
        "Any memory leaks?",
        lambda _, stored: _events(stored, "leak"),
        ("leaked memory",),
        remedy="End the processes that kept the memory before the next run.",
    ),
    of_each_run(
        "kernel-warning",
        "evidence",
        "warning",
        "Any kernel or driver warnings?",
        _complaints,
        ("ran while the kernel or the driver reported problems",),
        remedy="Look the message up in NVIDIA's list of Xid errors before you measure on.",
    ),
    Check(
        "telemetry-gap",
        "evidence",
        ("warning",),
        "Is the telemetry complete?",
        telemetry_gap,
        thresholds=(TELEMETRY_GAP_INTERVALS, TELEMETRY_GAP_SECONDS),
        remedy="Leave the sampler a processor, or raise interval: in telemetry:.",
    ),
)

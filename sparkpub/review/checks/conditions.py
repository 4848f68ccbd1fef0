"""Under which conditions a run took place: heat, throttling, clocks, company, kernel messages, telemetry, machine."""

import json
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean

import numpy as np

from sparkpub.plan.matrix import START_CELSIUS
from sparkpub.record import telemetry
from sparkpub.record.record import Gate, Record
from sparkpub.record.store import Stored
from sparkpub.record.text import other_processes
from sparkpub.review.checks import leaks
from sparkpub.review.checks.check import Check, of_each_run
from sparkpub.review.checks.evidence import LOAD_PERCENT, while_measuring
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.rules import limit_of
from sparkpub.review.checks.tenants import (
    TENANT_GIB,
    TENANT_LOAD_PERCENT,
    TENANT_SHARE,
    foreign_tenant,
)
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, first_of
from sparkpub.review.grouping import grouped
from sparkpub.review.physics import machine_of

START_TEMPERATURE_CELSIUS = Threshold(
    "start temperature celsius",
    START_CELSIUS,
    "Maximum start temperature in the methodology, used for runs without a recorded gate.",
)
WAITED_PERCENT = Threshold(
    "waited percent",
    20.0,
    "Share of the measured time in which some process waited for processors, disk or memory, by the kernel's pressure "
    "stall information, from which something else was at work. In real runs it was 7 at most.",
)
BUSY_PERCENT = Threshold(
    "busy percent",
    40.0,
    "Load of all processors from which a run may wait for those that it uses itself: four with 40 % to do "
    "are all busy in 9 % of the time where the work comes at random, and in more where it comes together.",
)
SLOW_CLOCK_SHARE = Threshold(
    "slow clock share",
    0.5,
    "Below this share of the maximum SM clock under load, the clock counts as stuck. A DGX Spark whose power "
    "negotiation failed runs at 500 to 850 MHz instead of about 2,400 MHz.",
)
HELD_CLOCK_SHARE = Threshold(
    "held clock share",
    0.7,
    "Below this share of the maximum SM clock under load, something holds the clock down where neither power nor heat "
    "does. In real runs at less than full power it was 0.98 at least.",
)
MEMORY_CLOCK_SHARE = Threshold(
    "memory clock share",
    0.95,
    "Below this share of the catalogue's memory clock under load, decoding is slower than on such a machine. In real "
    "runs it was 1.",
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
LOWERED_SHARE = Threshold(
    "lowered share",
    0.01,
    "Share by which a power limit must lie below the GPU's default to be a lowered one: drivers round.",
)
TELEMETRY_GAP_SECONDS = Threshold(
    "telemetry gap seconds",
    2.0,
    "A gap is longer than both limits, because sensors can answer late under load.",
)
HOT_CLOCK_SHARE = Threshold(
    "hot clock share",
    2 / 3,
    "Below this share of the maximum SM clock, heat holds the clock of a GPU at its slowdown temperature, whatever its "
    "driver says: a DGX Spark at 92 °C had 850 MHz, and no reason was given.",
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
        "thermal-gate", "warning", lambda _, run: _unmet(run, "temp"), "started hot"
    )
    yield from view.faulty(
        "thermal-gate",
        "warning",
        _hot_without_a_gate,
        "started hot",
        remedy="Let the machine cool before each run; a matrix waits for that (max_start_temp_celsius: in gates:).",
    )


def _hot_without_a_gate(_view: View, stored: Stored) -> Iterator[str]:
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
        _less_on_every_side,
        "had less than the GPU that they are called by",
        remedy="Restore the GPU's default (nvidia-smi -pl, -mig 0) and re-run, or say in campaign.json why it had less "
        "(acknowledged:).",
    )
    yield from view.faulty(
        "throttled",
        "warning",
        _slowed,
        "ran with a GPU slowed by heat or hardware",
    )
    capped = [run for run in view.happened if _was_capped(view, run)]
    yield from view.together(
        "throttled",
        "info",
        capped,
        lambda runs: (
            f"The GPU was at its power limit, which lowers the clock, in {runs}."
        ),
    )


def _slowed(view: View, stored: Stored) -> Iterator[str]:
    """Heat or hardware that slowed a run, by its samples or by what was noted meanwhile."""
    share = _share_under_load(view, stored, _SLOWDOWN)
    harmless = {telemetry.THROTTLES[POWER_CAP]}
    noted = _events(stored, "throttle")
    events = [text for text in noted if set(text.split(", ")) != harmless]
    if share > THROTTLED_SHARE or events:
        said = f": {events[0]}" if events else ""
        yield f"{100 * share:.0f} % of the samples under load{said}"
    else:
        yield from _hot(view, stored)


def _hot(view: View, stored: Stored) -> Iterator[str]:
    """A clock far below the GPU's at its slowdown temperature: not every driver gives a reason, and few imports have
    one."""
    samples, highest = view.evidence.of(stored).samples, _highest_clock(stored)
    limit = getattr(machine_of(stored.record), "slowdown_celsius", None)
    if samples is None or highest is None or limit is None:
        return
    busy = samples.under_load
    celsius = samples.columns["gpu_temp_celsius"]
    clocks = samples.columns["gpu_clock_sm_mhz"]
    is_held = busy & (celsius >= limit) & (clocks < HOT_CLOCK_SHARE * highest)
    if is_held.any() and is_held.sum() > THROTTLED_SHARE * busy.sum():
        yield (
            f"{np.median(clocks[is_held]):.0f} of {highest:.0f} MHz at {celsius[is_held].max():.0f} °C, "
            f"and {limit:.0f} °C is where it slows down"
        )


def _was_capped(view: View, stored: Stored) -> bool:
    """Whether nothing but the power limit held the clock down."""
    share = _share_under_load(view, stored, POWER_CAP)
    return share > POWER_CAPPED_SHARE and not any(_slowed(view, stored))


def _share_under_load(view: View, stored: Stored, reasons: int) -> float:
    """Share of the samples under load in which one of these reasons held the clock; 0 where none tells."""
    samples = view.evidence.of(stored).samples
    if samples is None:
        return 0.0
    found = samples.known("gpu_throttle_reasons", samples.under_load).astype(np.int64)
    return float(np.mean(found & reasons > 0)) if len(found) else 0.0


def _less_on_every_side(view: View, stored: Stored) -> Iterator[str]:
    """What all runs of a model and workload lacked of their GPU: where some had it, they differ, which is told."""
    if _load(stored) in view.once(_loads_with_less):
        yield from _less_than_the_gpu(stored)


def _loads_with_less(view: View) -> frozenset[tuple[str, str]]:
    """The models and workloads of which no run had its whole GPU."""
    groups = grouped(view.happened, _load)
    return frozenset(
        load
        for load, runs in groups.items()
        if all(any(_less_than_the_gpu(run)) for run in runs)
    )


def _load(stored: Stored) -> tuple[str, str]:
    return stored.record.model, stored.record.workload


def _less_than_the_gpu(stored: Stored) -> Iterator[str]:
    """A part of a GPU, and one that may not draw what it is built for."""
    for gpu in stored.record.machine.gpus:
        limit, usual = gpu.power_limit_watt, gpu.power_default_watt
        if gpu.mig and not _asks_for_a_slice(stored.record):
            yield f"a slice of {gpu.name} (MIG)"
        if (
            limit is not None
            and usual is not None
            and limit < (1 - LOWERED_SHARE) * usual
        ):
            yield f"{gpu.name} was limited to {limit:g} W of {usual:g} W"


def _asks_for_a_slice(record: Record) -> bool:
    """Whether the environment names a slice by its UUID, `MIG-...`, as a device or in a variable."""
    return "MIG-" in json.dumps(record.requested.environment)


def slow_clock(view: View) -> Iterator[Finding]:
    """Runs whose SM clock under load stayed far below what the GPU can do and what the matrix set."""
    yield from view.faulty(
        "slow-clock",
        "warning",
        _stuck,
        "ran with a slow clock",
    )


def _stuck(view: View, stored: Stored) -> Iterator[str]:
    """What of a run's clocks is far below what the GPU can do."""
    if any(_hot(view, stored)):
        return  # which is told as such
    clock, limit = _clock(view, stored), _highest_clock(stored)
    share = HELD_CLOCK_SHARE if _is_free(view, stored) else SLOW_CLOCK_SHARE
    if clock is not None and limit is not None and clock < share * limit:
        yield f"{clock:.0f} MHz under load, of {limit:.0f} MHz"
    else:
        yield from _events(stored, "slow-clock")[:1]
    usual = getattr(machine_of(stored.record), "memory_clock_mhz", None)
    samples = view.evidence.of(stored).samples
    of_memory = None if samples is None else samples.clock("gpu_clock_mem_mhz")
    if of_memory is not None and usual and of_memory < MEMORY_CLOCK_SHARE * usual:
        yield f"{of_memory:.0f} MHz of the memory, of {usual:.0f} MHz"


def _is_free(view: View, stored: Stored) -> bool:
    """Whether neither power nor heat held the clock in any sample, by the driver's word."""
    samples = view.evidence.of(stored).samples
    if samples is None or not len(samples.known("gpu_throttle_reasons")):
        return False
    return _share_under_load(view, stored, _SLOWDOWN | POWER_CAP) == 0


def _clock(view: View, stored: Stored) -> float | None:
    """The SM clock under load in MHz."""
    samples = view.evidence.of(stored).samples
    if samples is None:
        return stored.record.value("gpu_clock_sm_mean_mhz")
    return samples.clock("gpu_clock_sm_mhz")


def _highest_clock(stored: Stored) -> float | None:
    """What the matrix set, else what the GPU can do by its driver or the catalogue, in MHz."""
    return stored.record.machine.clocks_locked_mhz or limit_of(
        stored.record, "clock_max_sm_mhz"
    )


def foreign_load(view: View) -> Iterator[Finding]:
    """Runs beside which something else was at work, and those before which it held the GPU."""
    yield from view.faulty("foreign-load", "warning", _company, "shared the machine")
    yield from foreign_tenant(view)


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
    busy = while_measuring(stored.record, samples, "cpu_percent")
    # An engine that computes on processors waits for them itself, and a limit may have been asked for.
    waits_for_itself = "cpuset" in stored.record.requested.environment or (
        busy and fmean(busy) > BUSY_PERCENT
    )
    for what, column in PRESSURES.items():
        waited = while_measuring(stored.record, samples, column)
        if not waited or (what == "processors" and waits_for_itself):
            continue
        if fmean(waited) > WAITED_PERCENT:
            yield f"processes waited for {what} in {fmean(waited):.0f} % of the measured time"


def _complaints(_view: View, stored: Stored) -> Iterator[str]:
    """The first message of kernel, driver or container engine, and how many there are."""
    events = _events(stored, "xid", "oom", "kernel", "memory-floor")
    container = stored.record.container
    if container is not None and container.oom_killed:
        events.append("the engine reports that it was killed for lack of memory")
    yield from first_of(events, "messages")


def telemetry_gap(view: View) -> Iterator[Finding]:
    """Runs in which the sampler was silent for a while, or whose samples are gone."""
    lost = [run for run in view.happened if _lost_samples(view, run)]
    yield from view.together(
        "telemetry-gap",
        "warning",
        lost,
        lambda runs: (
            f"Figures of {runs} come from the sampler, but its samples were not kept."
        ),
    )
    yield from view.faulty(
        "telemetry-gap",
        "warning",
        _silence,
        "had gaps in the telemetry, so peaks may be missing",
    )


def _lost_samples(view: View, stored: Stored) -> bool:
    values = stored.record.metrics.values()
    sampled = any(
        value.source == "sampler" and value.value is not None for value in values
    )
    return sampled and view.evidence.of(stored).samples is None


def _silence(view: View, stored: Stored) -> Iterator[str]:
    """The longest time without a sample, where it is too long."""
    samples, matrix = view.evidence.of(stored).samples, view.campaign.matrix
    if samples is None:
        return
    interval = samples.interval if matrix is None else matrix.telemetry.interval
    allowed = max(TELEMETRY_GAP_INTERVALS * interval, TELEMETRY_GAP_SECONDS)
    moments = samples.times.tolist() or [0.0]
    silences = pairwise([*moments, stored.record.duration_seconds or 0.0])
    gap, at = max((later - earlier, earlier) for earlier, later in silences)
    if gap > allowed:
        yield f"{gap:.1f} s from second {at:.0f} on, with one sample every {interval:g} s requested"


CHECKS = (
    Check(
        "thermal-gate",
        "evidence",
        ("warning",),
        "Did every run start cool?",
        thermal_gate,
        thresholds=(START_TEMPERATURE_CELSIUS,),
        remedy="Lengthen cooldown: or lower max_start_temp_celsius: in gates:, and re-run.",
    ),
    Check(
        "throttled",
        "evidence",
        ("warning", "info"),
        "Was the GPU whole, and not throttled?",
        throttled,
        thresholds=(
            LOAD_PERCENT,
            THROTTLED_SHARE,
            HOT_CLOCK_SHARE,
            POWER_CAPPED_SHARE,
            LOWERED_SHARE,
        ),
        remedy="Improve the cooling, or lock the clocks lower (lock_clocks_mhz: in gates:), and re-run.",
    ),
    Check(
        "slow-clock",
        "evidence",
        ("warning",),
        "Did the GPU reach its normal clock?",
        slow_clock,
        thresholds=(SLOW_CLOCK_SHARE, HELD_CLOCK_SHARE, MEMORY_CLOCK_SHARE),
        remedy="Check power supply, power mode and locked clocks (nvidia-smi -rgc), restart the machine, and re-run.",
    ),
    Check(
        "foreign-load",
        "evidence",
        ("warning",),
        "Was the run alone on the machine, and was the GPU free before it?",
        foreign_load,
        thresholds=(
            WAITED_PERCENT,
            BUSY_PERCENT,
            TENANT_GIB,
            TENANT_SHARE,
            TENANT_LOAD_PERCENT,
        ),
        remedy="Stop the other programs or lift the limit on processors, set exclusive_gpu: in gates:, and re-run.",
    ),
    of_each_run(
        "leak",
        "evidence",
        "warning",
        "Any memory leaks?",
        leaks.of_run,
        ("leaked memory",),
        thresholds=(leaks.LEAK_GIB, leaks.LEAK_SECONDS),
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

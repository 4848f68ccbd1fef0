"""Under which conditions a run took place: heat, clocks, company, memory, kernel messages, and whether the telemetry is
its own and whole. Events that were noted meanwhile count beside the samples, which are read once after the run."""

import json
import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean, median

import numpy as np

from sparkpub.plan.matrix import START_CELSIUS
from sparkpub.plan.requested import is_of_running_server
from sparkpub.record import telemetry
from sparkpub.record.store import Stored
from sparkpub.record.text import other_processes
from sparkpub.review.checks.check import AskedOfRun, Check
from sparkpub.review.checks.evidence import (
    COLUMNS,
    LOAD_PERCENT,
    Samples,
    measured_phase,
    while_measuring,
)
from sparkpub.review.checks.finding import Threshold
from sparkpub.review.checks.rules import limit_of, memory_gib
from sparkpub.review.checks.view import View, first_of
from sparkpub.review.physics import machine_of
from sparkpub.review.statistics.estimate import Floats

START_TEMPERATURE_CELSIUS = Threshold(
    "start temperature celsius",
    START_CELSIUS,
    "Maximum start temperature in the methodology, used for runs without a recorded gate.",
)
WAITED_PERCENT = Threshold(
    "waited percent",
    20.0,
    "Share of the measured time in which some process waited for disk or memory, by the kernel's pressure stall "
    "information, from which something else was at work. In real runs it was 7 at most.",
)
TENANT_GIB = Threshold(
    "tenant gib",
    0.25,
    "GPU memory in use before a run, above the usual value of the campaign: a CUDA context alone takes this much.",
)
TENANT_SHARE = Threshold(
    "tenant share",
    0.05,
    "Share of GPU memory in use before a run from which another process holds it, even if it is so in every run. A "
    "driver alone uses less than 1 %.",
)
TENANT_LOAD_PERCENT = Threshold(
    "tenant load percent",
    10.0,
    "GPU utilisation before a run from which another process uses it.",
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
    "Below this share of the maximum SM clock under load, something holds the clock down: heat where the GPU is at its "
    "slowdown temperature, whatever its driver says (a DGX Spark at 92 °C had 850 MHz), else a lock where neither "
    "power nor heat does. In real runs at less than full power it was 0.98 at least.",
)
THROTTLED_SHARE = Threshold(
    "throttled share",
    0.01,
    "Share of samples under load with a thermal or hardware slowdown from which a run counts as throttled.",
)
TELEMETRY_GAP_INTERVALS = Threshold(
    "telemetry gap intervals",
    5.0,
    "A gap is longer than so many intervals, and than two seconds: sensors can answer late under load.",
)
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

PRESSURES = {
    "the disk": "pressure_io_some_percent",
    "memory": "pressure_memory_some_percent",
}
"""What processes wait for, and the column of the telemetry that says how long."""
POWER_CAP = 0x4
"""NVML's bit for a clock held by the power limit, which is how a GPU is built to run."""
_SLOWDOWN = sum(telemetry.THROTTLES) - POWER_CAP
_SM, _CELSIUS = "gpu_clock_sm_mhz", "gpu_temp_celsius"
STEADY = 0.125
"""Least share of the whole growth from each quarter of a stretch to the next; a straight line has a third."""
GAP_SECONDS = 2.0
LOAD_SAMPLES = 5
"""Samples in the measured phase from which its utilisation is known: the driver averages over up to a second."""


NONE = Samples({name: np.empty(0) for name in COLUMNS})
"""The telemetry of a run that has none: nothing shows in it."""


def _samples(view: View, stored: Stored) -> Samples:
    return view.evidence.of(stored).samples or NONE


def _events(stored: Stored, *kinds: str) -> list[str]:
    return [event.text for event in stored.record.events if event.kind in kinds]


def _unmet(stored: Stored, *words: str) -> Iterator[str]:
    """Gates of those names that let the run start although their condition was not met, with the last reading."""
    for gate in stored.record.gates:
        if gate.met is False and any(word in gate.name for word in words):
            read = f" and read {gate.readings[-1].value}" if gate.readings else ""
            name = gate.name.replace("_", " ")
            yield f"{name} wanted {gate.wanted} {gate.unit}".strip() + read


# -- heat and clocks ---------------------------------------------------------------------------------------------


def _started_hot(_view: View, stored: Stored) -> Iterator[str]:
    """What a gate let start, and a temperature above the methodology's limit where no gate asked for one."""
    yield from _unmet(stored, "temp")
    start = stored.record.value("gpu_temp_start_celsius")
    gated = any("temp" in gate.name for gate in stored.record.gates)
    if not gated and start is not None and start > START_TEMPERATURE_CELSIUS:
        yield f"the GPU had {start:.0f} °C, and {START_TEMPERATURE_CELSIUS:g} °C is the limit"


def _share_under_load(samples: Samples, reasons: int) -> float:
    """Share of the samples under load in which one of these reasons held the clock; 0 where none tells."""
    found = samples.known("gpu_throttle_reasons", samples.under_load).astype(np.int64)
    return float(np.mean(found & reasons > 0)) if len(found) else 0.0


def _slowed(view: View, stored: Stored) -> Iterator[str]:
    """Heat or hardware that slowed a run, by its samples, by what was noted meanwhile, or by a hot GPU's clock."""
    share = _share_under_load(_samples(view, stored), _SLOWDOWN)
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
    samples = _samples(view, stored)
    limit = getattr(machine_of(stored.record), "slowdown_celsius", None)
    highest = _highest_clock(stored)
    if limit is None or highest is None:
        return
    busy, celsius = samples.under_load, samples.columns[_CELSIUS]
    clocks = samples.columns[_SM]
    held = busy & (celsius >= limit) & (clocks < HELD_CLOCK_SHARE * highest)
    if held.sum() > THROTTLED_SHARE * busy.sum():
        clock = np.median(clocks[held])
        yield (
            f"{clock:.0f} of {highest:.0f} MHz at {celsius[held].max():.0f} °C, and {limit:.0f} °C is where it slows "
            "down"
        )


def _highest_clock(stored: Stored) -> float | None:
    """What the matrix set, else what the GPU can do by its driver or the catalogue, in MHz."""
    locked = stored.record.machine.clocks_locked_mhz
    return locked or limit_of(stored.record, "clock_max_sm_mhz")


def _stuck(view: View, stored: Stored) -> Iterator[str]:
    """What of a run's clocks is far below what the GPU can do; heat is told as such."""
    if any(_hot(view, stored)):
        return
    samples, limit = _samples(view, stored), _highest_clock(stored)
    recorded = stored.record.value("gpu_clock_sm_mean_mhz")
    clock = samples.clock(_SM) or recorded
    # Neither power nor heat held the clock in any sample, by the driver's word.
    is_free = len(samples.known("gpu_throttle_reasons")) and not _share_under_load(
        samples, _SLOWDOWN | POWER_CAP
    )
    share = HELD_CLOCK_SHARE if is_free else SLOW_CLOCK_SHARE
    if clock is not None and limit is not None and clock < share * limit:
        yield f"{clock:.0f} MHz under load, of {limit:.0f} MHz"
    else:
        yield from _events(stored, "slow-clock")[:1]


def _less_than_the_gpu(_view: View, stored: Stored) -> Iterator[str]:
    """A part of a GPU that no environment names by its UUID, and a GPU that may not draw what it is built for."""
    record = stored.record
    for gpu in record.machine.gpus:
        limit, usual = gpu.power_limit_watt, gpu.power_default_watt
        if gpu.mig and "MIG-" not in json.dumps(record.requested.environment):
            yield f"a slice of {gpu.name} (MIG)"
        if limit and usual and limit < 0.99 * usual:
            yield f"{gpu.name} was limited to {limit:g} W of {usual:g} W"


# -- company -----------------------------------------------------------------------------------------------------


def _company(view: View, stored: Stored) -> Iterator[str]:
    """Somebody else on the GPU, the processors, the disk or in the memory, before the run or in it."""
    yield from _unmet(stored, "exclusive", "cpu", "memory")
    yield from _events(stored, "foreign-process")
    record, samples = stored.record, _samples(view, stored)
    most = samples.known("gpu_foreign_processes").max(initial=0)
    if most:
        yield f"the GPU was in use by up to {other_processes(int(most))}"
    for what, column in PRESSURES.items():
        waited = while_measuring(record, samples, column)
        if waited and fmean(waited) > WAITED_PERCENT:
            yield f"processes waited for {what} in {fmean(waited):.0f} % of the measured time"
    if _begins_alone(stored):
        yield from _tenants(view, stored)


def _tenants(view: View, stored: Stored) -> Iterator[str]:
    """Memory or load that was on the GPU before the run."""
    record, samples = stored.record, _samples(view, stored)
    used, usual = _used_before(stored), view.once(_usually_used)
    if record.machine.unified_memory:
        used = None
    share = TENANT_SHARE * (memory_gib(record) or math.inf)
    if used is not None and used > min(usual + TENANT_GIB, share):
        yield f"{used:.2f} GiB were in use before it, and {usual:.2f} GiB usually are"
    idle = samples.known("gpu_utilization_percent", samples.times < 0)
    if len(idle) and np.median(idle) >= TENANT_LOAD_PERCENT:
        yield f"the GPU was {np.median(idle):.0f} % busy before it"


def _begins_alone(stored: Stored) -> bool:
    """Whether nothing of its own was on the GPU before a run: no server that lives for several runs, that ran before
    the campaign, or that an imported client measured."""
    record = stored.record
    return (
        "server" not in record.observed.settings
        and not is_of_running_server(record)
        and record.plan.order != "as-published"
    )


def _usually_used(view: View) -> float:
    """GPU memory in use before the runs of a campaign, in GiB."""
    before = [_used_before(run) for run in view.happened if _begins_alone(run)]
    return median([used for used in before if used is not None] or [0.0])


def _used_before(stored: Stored) -> float | None:
    """GPU memory in use before the run: by the memory ledger, else by the tool's own report."""
    ledger = stored.record.memory
    used = None if ledger is None else ledger.baseline.gpu_used_gib
    return stored.record.value("device_used_before_gib") if used is None else used


def _complaints(_view: View, stored: Stored) -> Iterator[str]:
    """The first message of kernel, driver or container engine, and how many there are."""
    events = _events(stored, "xid", "oom", "kernel", "memory-floor")
    container = stored.record.container
    if container is not None and container.oom_killed:
        events.append("the engine reports that it was killed for lack of memory")
    yield from first_of(events, "messages")


# -- memory that grows -------------------------------------------------------------------------------------------


def _leaks(view: View, stored: Stored) -> Iterator[str]:
    """What leaked in a run: as it was noted, else what the samples of its measured phase show.

    Loading a model and warming up may well take more and more memory: where nothing says when the measurement began,
    the samples say nothing either. Neither do imported ones, of a machine of which nobody knows what else ran there.
    """
    noted = _events(stored, "leak")
    yield from noted
    samples, phase = _samples(view, stored), measured_phase(stored.record)
    if noted or phase is None or stored.record.plan.order == "as-published":
        return
    for signal, (column, sign) in MEMORY.items():
        values = sign * samples.columns[column]
        known = samples.within(phase) & ~np.isnan(values)
        found = growth(samples.times[known], values[known])
        if found is not None:
            yield f"{signal} {found}"


MEMORY = {
    "memory in use on the machine": ("mem_available_gib", -1),
    "memory of the run's processes": ("processes_pss_gib", 1),
    "GPU memory in use": ("gpu_memory_used_gib", 1),
}
"""By signal the column in GiB and its sign: used memory is what MemAvailable lost."""


def growth(times: Floats, gib: Floats) -> str | None:
    """The leak that samples of the measured phase show, in words, or None. Times in seconds, memory in GiB.

    The whole phase is looked at, then its last half and its last quarter, so that a leak that begins late is found. A
    stretch of at least `LEAK_SECONDS` shows a leak where it grows throughout: the medians of its four quarters rise,
    each step by at least `STEADY` of the whole, which comes to `LEAK_GIB` over the stretch. One large allocation,
    caches that fill and then hold, or a collector of garbage that saws up and down do not. Its last sample lies as far
    above the median of the phase before it, so that no swing back is taken for growth.
    """
    for first in (0, len(times) // 2, len(times) * 3 // 4):
        span = float(times[-1] - times[first]) if len(times) else 0.0
        if span < LEAK_SECONDS:
            return None
        steps = np.diff([np.median(part) for part in np.array_split(gib[first:], 4)])
        # From the middle of the first quarter to that of the last are three quarters of the stretch.
        total = 4 / 3 * steps.sum()
        beyond = gib[-1] - np.median(gib[:first]) if first else total
        is_steady = steps.min() >= STEADY * steps.sum()
        if is_steady and min(total, beyond) >= LEAK_GIB:
            rate = 60 * total / span
            return f"grew steadily by {total:.2f} GiB in the last {span:.0f} s, {rate:.2f} GiB/min"
    return None


# -- the telemetry itself ----------------------------------------------------------------------------------------


def _silence(view: View, stored: Stored) -> Iterator[str]:
    """The longest time without a sample, where it is too long."""
    samples, matrix = view.evidence.of(stored).samples, view.campaign.matrix
    if samples is None:
        return
    interval = samples.interval if matrix is None else matrix.telemetry.interval
    allowed = max(TELEMETRY_GAP_INTERVALS * interval, GAP_SECONDS)
    moments = samples.times.tolist() or [0.0]
    silences = pairwise([*moments, stored.record.duration_seconds or 0.0])
    gap, at = max((later - earlier, earlier) for earlier, later in silences)
    if gap > allowed:
        yield f"{gap:.1f} s from second {at:.0f} on, with one sample every {interval:g} s requested"


def _foreign(view: View, stored: Stored) -> Iterator[str]:
    """What shows that samples are not those of a run: they go on after it, or the GPU did nothing while it measured."""
    samples, phase = _samples(view, stored), measured_phase(stored.record)
    end = samples.times.max(initial=0)
    lasted = stored.record.duration_seconds
    if lasted is not None and end > lasted + OVERRUN_SECONDS:
        yield f"it continues to second {end:.0f}, and the run was over after {lasted:.0f} s"
    elif phase is not None and end:
        within = samples.within(phase)
        load = samples.known("gpu_utilization_percent", within)
        is_long = phase.end_seconds - phase.start_seconds > 2 * samples.interval
        if is_long and not within.any():
            yield "no sample lies within the measured phase"
        if len(load) >= LOAD_SAMPLES and load.max() < REST_PERCENT:
            yield f"the GPU was at rest throughout the measured phase ({load.max():.0f} % at most)"


CHECKS = (
    Check(
        "thermal-gate",
        "evidence",
        ("warning",),
        "Did every run start cool?",
        asked=(AskedOfRun(_started_hot, "started hot"),),
        thresholds=(START_TEMPERATURE_CELSIUS,),
        remedy="Let the machine cool before each run (cooldown:, and max_start_temp_celsius: in gates:), and re-run.",
    ),
    Check(
        "throttled",
        "evidence",
        ("warning",),
        "Was the GPU whole, and not throttled?",
        asked=(
            AskedOfRun(
                _less_than_the_gpu,
                "had less than the GPU that they are called by",
                remedy="Restore the GPU's default (nvidia-smi -pl, -mig 0) and re-run, or say in campaign.json why it "
                "had less (acknowledged:).",
            ),
            AskedOfRun(_slowed, "ran with a GPU slowed by heat or hardware"),
        ),
        thresholds=(LOAD_PERCENT, THROTTLED_SHARE, HELD_CLOCK_SHARE),
        remedy="Improve the cooling, or lock the clocks lower (lock_clocks_mhz: in gates:), and re-run.",
    ),
    Check(
        "slow-clock",
        "evidence",
        ("warning",),
        "Did the GPU reach its normal clock?",
        asked=(AskedOfRun(_stuck, "ran with a slow clock"),),
        thresholds=(SLOW_CLOCK_SHARE, HELD_CLOCK_SHARE),
        remedy="Check power supply, power mode and locked clocks (nvidia-smi -rgc), restart the machine, and re-run.",
    ),
    Check(
        "foreign-load",
        "evidence",
        ("warning",),
        "Was the run alone on the machine, and was the GPU free before it?",
        asked=(AskedOfRun(_company, "shared the machine"),),
        thresholds=(WAITED_PERCENT, TENANT_GIB, TENANT_SHARE, TENANT_LOAD_PERCENT),
        remedy="Stop the other programs, set exclusive_gpu: in gates:, and re-run.",
    ),
    Check(
        "leak",
        "evidence",
        ("warning",),
        "Any memory leaks?",
        asked=(AskedOfRun(_leaks, "leaked memory"),),
        thresholds=(LEAK_GIB, LEAK_SECONDS),
        remedy="End the processes that kept the memory before the next run.",
    ),
    Check(
        "kernel-warning",
        "evidence",
        ("warning",),
        "Any kernel or driver warnings?",
        asked=(
            AskedOfRun(
                _complaints, "ran while the kernel or the driver reported problems"
            ),
        ),
        remedy="Look the message up in NVIDIA's list of Xid errors before you measure on.",
    ),
    Check(
        "telemetry-gap",
        "evidence",
        ("warning",),
        "Is the telemetry complete?",
        asked=(
            AskedOfRun(_silence, "had gaps in the telemetry, so peaks may be missing"),
        ),
        thresholds=(TELEMETRY_GAP_INTERVALS,),
        remedy="Leave the sampler a processor, or raise interval: in telemetry:.",
    ),
    Check(
        "foreign-telemetry",
        "evidence",
        ("error",),
        "Does the telemetry belong to its run?",
        asked=(
            AskedOfRun(
                _foreign, "has|have telemetry that cannot belong to the run", "error"
            ),
        ),
        thresholds=(OVERRUN_SECONDS, REST_PERCENT),
        remedy="Quarantine the runs, or import them without this telemetry.",
    ),
)

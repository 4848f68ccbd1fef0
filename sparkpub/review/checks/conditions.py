"""Under which conditions a run took place: heat, clocks, company, memory, what kernel and engine said, and whether the
telemetry is its own and whole. Events that were noted meanwhile count beside the samples."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from sparkpub.plan.matrix import START_CELSIUS
from sparkpub.plan.requested import is_of_running_server
from sparkpub.plan.workloads.payload import pages
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record import telemetry
from sparkpub.record.store import Stored
from sparkpub.record.text import other_processes
from sparkpub.review.checks.check import ASK, Asked, Check, each
from sparkpub.review.checks.evidence import (
    COLUMNS,
    Samples,
    measured_phase,
    while_measuring,
)
from sparkpub.review.checks.finding import Threshold
from sparkpub.review.checks.rules import limit_of
from sparkpub.review.checks.view import View, is_planned
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
STEADY = 0.125
"""Least share of the whole growth from each quarter of a phase to the next; a straight line has a third."""
LEAK_SECONDS = 60.0
"""Garbage is collected more often than once a minute."""
GAP_SECONDS = 2.0
LOAD_SAMPLES = 5
"""Samples in the measured phase from which its utilisation is known: the driver averages over up to a second."""


NONE = Samples({name: np.empty(0) for name in COLUMNS})
"""The telemetry of a run that has none: nothing shows in it."""


def _samples(view: View, stored: Stored) -> Samples:
    return view.evidence.of(stored).samples or NONE


def _events(stored: Stored, *kinds: str) -> list[str]:
    return [event.text for event in stored.record.events if event.kind in kinds]


def _first_of(texts: Sequence[str], what: str) -> Sequence[str]:
    """One line for several of a kind."""
    if len(texts) < 2:
        return texts
    return [f"{len(texts)} {what}, the first: {texts[0]}"]


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


def _share_held(samples: Samples, reasons: int) -> float:
    """Share of the samples under load in which one of these reasons held the clock; 0 where none tells."""
    found = samples.known("gpu_throttle_reasons", samples.under_load).astype(np.int64)
    return float(np.mean(found & reasons > 0)) if len(found) else 0.0


def _slowed(view: View, stored: Stored) -> Iterator[str]:
    """Heat or hardware that slowed a run, by its samples, by what was noted meanwhile, or by a hot GPU's clock."""
    share = _share_held(_samples(view, stored), _SLOWDOWN)
    harmless = {telemetry.THROTTLES[POWER_CAP]}
    noted = _events(stored, "throttle")
    events = [text for text in noted if set(text.split(", ")) != harmless]
    if share > THROTTLED_SHARE or events:
        said = f": {events[0]}" if events else ""
        yield f"{100 * share:.0f} % of the samples under load{said}"
    else:
        yield from _hot(view, stored)


def _hot(view: View, stored: Stored) -> Iterator[str]:
    """A clock far below the GPU's at its slowdown temperature, by the driver or else by the catalogue: not every driver
    gives a reason, and few imports have one."""
    samples, machine = _samples(view, stored), stored.record.machine
    usual = getattr(machine_of(stored.record), "slowdown_celsius", None)
    limit, highest = machine.gpu_slowdown_celsius or usual, _highest_clock(stored)
    if limit is None or highest is None:
        return
    busy, celsius = samples.under_load, samples.columns["gpu_temp_celsius"]
    clocks = samples.columns["gpu_clock_sm_mhz"]
    held = busy & (celsius >= limit) & (clocks < HELD_CLOCK_SHARE * highest)
    if held.sum() > THROTTLED_SHARE * busy.sum():
        yield (
            f"{np.median(clocks[held]):.0f} of {highest:.0f} MHz at {celsius[held].max():.0f} °C, and {limit:.0f} °C "
            "is where it slows down"
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
    clock = samples.clock("gpu_clock_sm_mhz") or recorded
    # Neither power nor heat held the clock in any sample, by the driver's word.
    is_told = len(samples.known("gpu_throttle_reasons")) > 0
    is_free = is_told and not _share_held(samples, _SLOWDOWN | POWER_CAP)
    share = HELD_CLOCK_SHARE if is_free else SLOW_CLOCK_SHARE
    if clock is not None and limit is not None and clock < share * limit:
        yield f"{clock:.0f} MHz under load, of {limit:.0f} MHz"
    else:
        yield from _events(stored, "slow-clock")[:1]


def _less_than_the_gpu(_view: View, stored: Stored) -> Iterator[str]:
    """A GPU that may not draw what it is built for."""
    for gpu in stored.record.machine.gpus:
        limit, usual = gpu.power_limit_watt, gpu.power_default_watt
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
    samples, used = _samples(view, stored), _used_before(stored)
    usual = view.once(_usually_used)
    if used is not None and used > usual + TENANT_GIB:
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
        and is_planned(record)
    )


def _usually_used(view: View) -> float:
    """GPU memory in use before the runs of a campaign, in GiB."""
    before = [_used_before(run) for run in view.happened if _begins_alone(run)]
    return median([used for used in before if used is not None] or [0.0])


def _used_before(stored: Stored) -> float | None:
    """GPU memory in use before the run, where it has its own: by the memory ledger, else by the tool's own report."""
    record = stored.record
    if record.machine.unified_memory:
        return None
    used = None if record.memory is None else record.memory.baseline.gpu_used_gib
    return record.value("device_used_before_gib") if used is None else used


def _complaints(_view: View, stored: Stored) -> Iterator[str]:
    """The first message of kernel, driver or container engine, and how many there are."""
    events = _events(stored, "xid", "oom", "kernel", "memory-floor")
    container = stored.record.container
    if container is not None and container.oom_killed:
        events.append("the engine reports that it was killed for lack of memory")
    yield from _first_of(events, "messages")


# -- what the engine said ----------------------------------------------------------------------------------------


def _nonsense(_view: View, stored: Stored) -> Iterator[str]:
    """What is wrong with the answers that a run of trained weights kept. What we measure ourselves is not timed after
    such an answer; what others measured may keep one beside its results."""
    for note in _events(stored, "note"):
        if note.startswith(ANSWERED) and not stored.record.requested.random_weights:
            problem = pages.nonsense(note.removeprefix(ANSWERED))
            yield from filter(None, [problem])


class Trouble(NamedTuple):
    """What an engine warns of that changes the figures of a run, and what to do about it."""

    said: re.Pattern[str]
    happened: str
    remedy: str
    is_of_all: bool = False
    """Whether what is said before the measurement, or in a log that does not say when that was, is true of it, too."""


TROUBLES = (
    Trouble(
        re.compile(r"preempt|recomput|evict|in the KV cache|pool is full", re.I),
        "took requests out of its batch, to compute them again later",
        "Send fewer requests at once, or give the KV cache more memory, and re-run.",
    ),
    Trouble(
        re.compile(r"fall(?:s|ing)?[ -]?back|fell back|sub-?optimal|degrade", re.I),
        "used slower code than it could",
        "Install what the engine lacks, or choose another kernel, and re-run.",
    ),
    Trouble(
        re.compile(r"truncat|context shift", re.I),
        "cut prompts short, or forgot their beginning, to fit them into its context",
        "Give each request a longer context (`-c`, `num_ctx`, `--context-length`), and re-run.",
        is_of_all=True,
    ),
    Trouble(
        re.compile(r"no usable GPU|layers on the GPU", re.I),
        "computed the model, or a part of it, on the processor",
        "Install a build for the GPU, or let all layers fit into its memory, and re-run.",
        is_of_all=True,
    ),
    Trouble(
        re.compile(r"compil|autotun", re.I),
        "compiled kernels, which the requests waited for",
        "Warm up with the same lengths and the same number of requests, and re-run.",
    ),
)
"""Of the warnings of real engines, those that a reader has to know. Others say what a client or a server would have
liked better: samplers, limits of open files, lengths of prompts."""
ERRORS = Trouble(
    re.compile(""), "reported errors", "Read the log around the error, and re-run."
)


def _of_engine(trouble: Trouble) -> Asked:
    """Whether an engine warned of this, and of nothing that is told before it."""

    def problems(view: View, stored: Stored) -> Iterable[str]:
        answer, said = view.evidence.of(stored).answer, []
        for text, measured, is_error in answer.warnings if answer else ():
            known = (*TROUBLES, *[ERRORS] * is_error)
            first = next((one for one in known if one.said.search(text)), None)
            if first is trouble and (measured or trouble.is_of_all):
                said.append(text)
        return _first_of(said, "warnings")

    happened = f"ran on an engine that {trouble.happened}"
    happened += "" if trouble.is_of_all else ", while it was measured"
    return Asked(happened, each(problems), remedy=trouble.remedy)


# -- memory that grows -------------------------------------------------------------------------------------------

MEMORY = {
    "memory in use on the machine": ("mem_available_gib", -1),
    "memory of the run's processes": ("processes_pss_gib", 1),
    "GPU memory in use": ("gpu_memory_used_gib", 1),
}
"""By signal the column in GiB and its sign: used memory is what MemAvailable lost."""


def _leaks(view: View, stored: Stored) -> Iterator[str]:
    """What leaked in a run: as it was noted, else what the samples of its measured phase show.

    Loading a model and warming up may well take more and more memory: where nothing says when the measurement began,
    the samples say nothing either. Neither do imported ones, of a machine of which nobody knows what else ran there.
    """
    noted = _events(stored, "leak")
    yield from noted
    samples, phase = _samples(view, stored), measured_phase(stored.record)
    if noted or phase is None or not is_planned(stored.record):
        return
    for signal, (column, sign) in MEMORY.items():
        values = sign * samples.columns[column]
        known = samples.within(phase) & ~np.isnan(values)
        found = growth(samples.times[known], values[known])
        if found is not None:
            yield f"{signal} {found}"


def growth(times: Floats, gib: Floats) -> str | None:
    """The leak that samples of the measured phase show, in words, or None. Times in seconds, memory in GiB.

    A phase of `LEAK_SECONDS` or more shows a leak where memory grows throughout: the medians of its quarters rise, each
    step by at least `STEADY` of the whole, which comes to `LEAK_GIB` over the phase. One large allocation, caches
    that fill and then hold, or a collector of garbage that saws up and down do not.
    """
    span = float(times[-1] - times[0]) if len(times) else 0.0
    if span < LEAK_SECONDS:
        return None
    steps = np.diff([np.median(part) for part in np.array_split(gib, 4)])
    # From the middle of the first quarter to that of the last are three quarters of the phase.
    total = 4 / 3 * steps.sum()
    if steps.min() < STEADY * steps.sum() or total < LEAK_GIB:
        return None
    rate = 60 * total / span
    return f"grew steadily by {total:.2f} GiB in {span:.0f} s, {rate:.2f} GiB/min"


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
    """What shows that samples are not those of a run: none is of the time in which it measured, or the GPU did nothing
    then."""
    samples, phase = _samples(view, stored), measured_phase(stored.record)
    if phase is None or not len(samples.times):
        return
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
        "Did every run start cool?",
        kind="evidence",
        asked=(Asked("started hot", each(_started_hot)),),
        remedy="Let the machine cool before each run (cooldown:, and max_start_temp_celsius: in gates:), and re-run.",
        imported=ASK,
    ),
    Check(
        "throttled",
        "Was the GPU whole, and not throttled?",
        kind="evidence",
        asked=(
            Asked(
                "had less than the GPU that they are called by",
                each(_less_than_the_gpu),
                remedy="Restore the GPU's default (nvidia-smi -pl, -mig 0) and re-run, or say in campaign.json why it "
                "had less (acknowledged:).",
            ),
            Asked("ran with a GPU slowed by heat or hardware", each(_slowed)),
        ),
        remedy="Improve the cooling, or lock the clocks lower (lock_clocks_mhz: in gates:), and re-run.",
        imported=ASK,
    ),
    Check(
        "slow-clock",
        "Did the GPU reach its normal clock?",
        kind="evidence",
        asked=(Asked("ran with a slow clock", each(_stuck)),),
        remedy="Check power supply, power mode and locked clocks (nvidia-smi -rgc), restart the machine, and re-run.",
        imported=ASK,
    ),
    Check(
        "foreign-load",
        "Was the run alone on the machine, and was the GPU free before it?",
        kind="evidence",
        asked=(Asked("shared the machine", each(_company)),),
        remedy="Stop the other programs, set exclusive_gpu: in gates:, and re-run.",
        imported=ASK,
    ),
    Check(
        "leak",
        "Any memory leaks?",
        kind="evidence",
        asked=(Asked("leaked memory", each(_leaks)),),
        remedy="End the processes that kept the memory before the next run.",
    ),
    Check(
        "kernel-warning",
        "Any kernel or driver warnings?",
        kind="evidence",
        asked=(
            Asked(
                "ran while the kernel or the driver reported problems",
                each(_complaints),
            ),
        ),
        remedy="Look the message up in NVIDIA's list of Xid errors before you measure on.",
        imported=ASK,
    ),
    Check(
        "telemetry-gap",
        "Is the telemetry complete?",
        kind="evidence",
        asked=(
            Asked("had gaps in the telemetry, so peaks may be missing", each(_silence)),
        ),
        remedy="Leave the sampler a processor, or raise interval: in telemetry:.",
    ),
    Check(
        "foreign-telemetry",
        "Does the telemetry belong to its run?",
        kind="evidence",
        asked=(
            Asked(
                "had telemetry that cannot belong to the run", each(_foreign), "error"
            ),
        ),
        remedy="Quarantine the runs, or import them without this telemetry.",
    ),
    Check(
        "sanity",
        "Did the model make sense before it was timed?",
        asked=(
            Asked(
                "measured a model whose answer makes no sense, so the weights or the engine are broken",
                each(_nonsense),
                "error",
            ),
        ),
        remedy="Ask the server a question yourself, and correct weights, quantisation or chat template.",
    ),
    Check(
        "engine-warning",
        "Did the engine work undisturbed while it was measured?",
        kind="evidence",
        asked=tuple(map(_of_engine, (*TROUBLES, ERRORS))),
        imported=ASK,
    ),
)

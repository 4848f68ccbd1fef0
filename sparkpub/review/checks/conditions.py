"""Under which conditions a run took place: heat, clocks, company, memory, what kernel and engine said, and whether the
telemetry is its own and whole. Events that were noted meanwhile count beside the samples."""

import re
from collections.abc import Iterator

import numpy as np

from sparkpub.plan.matrix import START_CELSIUS
from sparkpub.plan.workloads.payload import pages
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record import telemetry
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import ASK, Asked, Check, Problems
from sparkpub.review.checks.finding import Threshold
from sparkpub.review.checks.rules import Rule, Wrong
from sparkpub.review.checks.sensors import (
    HELD_CLOCK_SHARE,
    POWER_CAP,
    measured_phase,
)
from sparkpub.review.checks.view import View, is_planned
from sparkpub.review.statistics.estimate import Floats

START_TEMPERATURE_CELSIUS = Threshold(
    START_CELSIUS,
    "Maximum start temperature in the methodology, used for runs without a recorded gate.",
)
WAITED_PERCENT = Threshold(
    20.0,
    "Share of the measured time in which some process waited for disk or memory, by the kernel's pressure stall "
    "information, from which something else was at work. In real runs it was 7 at most.",
)
TENANT_LOAD_PERCENT = Threshold(
    10.0,
    "GPU utilisation before a run from which another process uses it.",
)
SLOW_CLOCK_SHARE = Threshold(
    0.5,
    "Below this share of the maximum SM clock under load, the clock counts as stuck. A DGX Spark whose power "
    "negotiation failed runs at 500 to 850 MHz instead of about 2,400 MHz.",
)
THROTTLED_SHARE = Threshold(
    0.01,
    "Share of samples under load with a thermal or hardware slowdown from which a run counts as throttled.",
)
TELEMETRY_GAP_INTERVALS = Threshold(
    5.0,
    "A gap is longer than so many intervals, and than two seconds: sensors can answer late under load.",
)
LEAK_GIB = Threshold(
    telemetry.LEAK_GIB,
    "GiB from which memory that grows steadily leaks: an idle machine moves by less.",
)
REST_PERCENT = Threshold(
    5.0,
    "Highest utilisation of the GPU in a measured phase below which it did not serve this run: a desktop needs this "
    "much.",
)

STEADY = 0.125
"""Least share of the whole growth from each quarter of a phase to the next; a straight line has a third."""
LEAK_SECONDS = 60.0
"""Garbage is collected more often than once a minute."""
GAP_SECONDS = 2.0


# -- what was noted meanwhile ------------------------------------------------------------------------------------


def _noted(*kinds: str, gates: str | None = None) -> Problems:
    """Events of these kinds, and gates of these names that let the run start although their condition was not met. A
    clock that the power limit holds is as it should be."""

    def problems(_view: View, stored: Stored) -> Iterator[str]:
        for gate in stored.record.gates:
            if gates and gate.met is False and re.search(gates, gate.name):
                read = f" and read {gate.readings[-1].value}" if gate.readings else ""
                name = gate.name.replace("_", " ")
                yield f"{name} wanted {gate.wanted} {gate.unit}".strip() + read
        for event in stored.record.events:
            if event.kind in kinds and event.text != telemetry.THROTTLES[POWER_CAP]:
                yield event.text

    return problems


# -- what the engine said ----------------------------------------------------------------------------------------


def _nonsense(_view: View, stored: Stored) -> Iterator[str]:
    """What is wrong with the answers that a run of trained weights kept. What we measure ourselves is not timed after
    such an answer; what others measured may keep one beside its results."""
    for note in stored.record.events:
        is_answer = note.kind == "note" and note.text.startswith(ANSWERED)
        if is_answer and not stored.record.requested.random_weights:
            problem = pages.nonsense(note.text.removeprefix(ANSWERED))
            yield from filter(None, [problem])


_TROUBLE = re.compile(
    r"preempt|recomput|evict|in the KV cache|pool is full"
    r"|fall(?:s|ing)?[ -]?back|fell back|sub-?optimal|degrade|compil|autotun",
    re.I,
)
"""What engines warn of that changes the figures of a run, if it comes while that is measured: requests that were taken
out of the batch, slower code, code that was not ready. Others say what a client or a server would have liked better:
samplers, limits of open files, lengths of prompts."""
_DOES_NOT_FIT = re.compile(
    r"truncat|context shift|no usable GPU|layers on the GPU", re.I
)
"""The same, whenever it is said: prompts that were cut short, and layers that the processor computed."""


def _trouble(view: View, stored: Stored) -> Iterator[str]:
    """What an engine warned of that a reader has to know."""
    answer = view.evidence.of(stored).answer
    for text, measured, is_error in answer.warnings if answer else ():
        is_bad = measured and (is_error or _TROUBLE.search(text))
        if is_bad or _DOES_NOT_FIT.search(text):
            yield text


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
    noted = [event.text for event in stored.record.events if event.kind == "leak"]
    yield from noted
    samples, phase = view.evidence.of(stored).samples, measured_phase(stored.record)
    if noted or not samples or phase is None or not is_planned(stored.record):
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


CHECKS = (
    Check(
        "thermal-gate",
        "Did every run start cool?",
        asked=(
            Asked(
                "started hot",
                Wrong(
                    _noted(gates="temp"),
                    Rule(
                        f"gpu_temp_start_celsius <= {START_TEMPERATURE_CELSIUS}",
                        "the GPU had {left:.0f} °C, and {right:g} °C is the limit",
                        where="has_gate == 0",
                    ),
                ),
            ),
        ),
        remedy="Let the machine cool before each run (cooldown:, and max_start_temp_celsius: in gates:), and re-run.",
        imported=ASK,
    ),
    Check(
        "throttled",
        "Was the GPU whole, and not throttled?",
        asked=(
            Asked(
                "ran under a lower power limit than the GPU is built for",
                Wrong(
                    Rule(
                        "limit_W >= 0.99 * default_W",
                        "{left:g} W of {default_W:g} W",
                    )
                ),
                remedy="Restore the GPU's default (nvidia-smi -pl) and re-run, or say in campaign.json why it "
                "had less (acknowledged:).",
            ),
            Asked(
                "ran with a GPU slowed by heat or hardware",
                Wrong(
                    _noted("throttle"),
                    Rule(
                        f"100 * slowed <= 100 * {THROTTLED_SHARE}",
                        "{left:.0f} % of the samples under load",
                    ),
                    Rule(
                        f"hot <= {THROTTLED_SHARE}",
                        "{hot_clock:.0f} of {highest:.0f} MHz at {hottest:.0f} °C, and {slowdown:.0f} °C is where it "
                        "slows down",
                    ),
                ),
            ),
        ),
        remedy="Improve the cooling, or lock the clocks lower (lock_clocks_mhz: in gates:), and re-run.",
        imported=ASK,
    ),
    Check(
        "slow-clock",
        "Did the GPU reach its normal clock?",
        asked=(
            Asked(
                "ran with a slow clock",
                Wrong(
                    _noted("slow-clock"),
                    Rule(
                        f"clock >= where(held == 0, {HELD_CLOCK_SHARE}, {SLOW_CLOCK_SHARE}) * highest",
                        "{left:.0f} MHz under load, of {highest:.0f} MHz",
                        # Heat is told as such.
                        where=f"known(hot, 0) <= {THROTTLED_SHARE}",
                    ),
                ),
            ),
        ),
        remedy="Check power supply, power mode and locked clocks (nvidia-smi -rgc), restart the machine, and re-run.",
        imported=ASK,
    ),
    Check(
        "foreign-load",
        "Was the run alone on the machine, and was the GPU free before it?",
        asked=(
            Asked(
                "shared the machine",
                Wrong(
                    _noted("foreign-process", gates="exclusive|cpu|memory"),
                    Rule(
                        "others <= 0",
                        "up to {left:g} processes of others were on the GPU",
                    ),
                    Rule(
                        f"waited_for_disk <= {WAITED_PERCENT}",
                        "processes waited for the disk in {left:.0f} % of the measured time",
                    ),
                    Rule(
                        f"waited_for_memory <= {WAITED_PERCENT}",
                        "processes waited for memory in {left:.0f} % of the measured time",
                    ),
                    Rule(
                        f"busy_before < {TENANT_LOAD_PERCENT}",
                        "the GPU was {left:.0f} % busy before it",
                        where="begins_alone",
                    ),
                ),
            ),
        ),
        remedy="Stop the other programs, set exclusive_gpu: in gates:, and re-run.",
        imported=ASK,
    ),
    Check(
        "leak",
        "Any memory leaks?",
        asked=(Asked("leaked memory", Wrong(_leaks)),),
        remedy="End the processes that kept the memory before the next run.",
    ),
    Check(
        "kernel-warning",
        "Any kernel or driver warnings?",
        asked=(
            Asked(
                "ran while the kernel or the driver reported problems",
                Wrong(
                    _noted("xid", "oom", "kernel", "memory-floor"),
                    Rule(
                        "killed <= 0",
                        "the engine reports that it was killed for lack of memory",
                    ),
                ),
            ),
        ),
        remedy="Look the message up in NVIDIA's list of Xid errors before you measure on.",
        imported=ASK,
    ),
    Check(
        "telemetry-gap",
        "Is the telemetry complete?",
        asked=(
            Asked(
                "had gaps in the telemetry, so peaks may be missing",
                Wrong(
                    Rule(
                        f"gap <= fmax({TELEMETRY_GAP_INTERVALS} * interval, {GAP_SECONDS})",
                        "{left:.1f} s from second {gap_at:.0f} on, with one sample every {interval:g} s",
                    )
                ),
            ),
        ),
        remedy="Leave the sampler a processor, or raise interval: in telemetry:.",
        imported=ASK,
    ),
    Check(
        "foreign-telemetry",
        "Does the telemetry belong to its run?",
        asked=(
            Asked(
                "had telemetry that cannot belong to the run",
                Wrong(
                    Rule(
                        "samples_within >= 1",
                        "no sample lies within the measured phase",
                    ),
                    Rule(
                        f"most_load >= {REST_PERCENT}",
                        "the GPU was at rest throughout the measured phase ({left:.0f} % at most)",
                    ),
                ),
                "error",
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
                Wrong(_nonsense),
                "error",
            ),
        ),
        remedy="Ask the server a question yourself, and correct weights, quantisation or chat template.",
        imported=ASK,
    ),
    Check(
        "engine-warning",
        "Did the engine work undisturbed while it was measured?",
        asked=(
            Asked(
                "ran on an engine that warned of slower work, or of less",
                Wrong(_trouble),
            ),
        ),
        remedy="Read the warning in the log. Fewer requests, more KV cache, a longer context, all layers on the GPU or "
        "a longer warm-up mend most of them; then re-run.",
        imported=ASK,
    ),
)

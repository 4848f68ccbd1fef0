"""What lies beside a record, read once per review: sums of files, what the parser finds, and the samples in short."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

from pydantic import ValidationError

from sparkpub.plan.workloads import WORKLOADS, llama_benchy, openai_endpoint
from sparkpub.plan.workloads.base import MEASURING
from sparkpub.plan.workloads.vllm_bench import CLIENT_BEGINS
from sparkpub.record import outside, sampled_metrics, telemetry
from sparkpub.record.record import Evidence, Observed, Phase
from sparkpub.record.store import EVIDENCE_CAP, Stored
from sparkpub.record.telemetry import Telemetry
from sparkpub.review.checks.threshold import Threshold

LOAD_PERCENT = Threshold(
    "load percent",
    telemetry.LOAD_PERCENT,
    "GPU utilisation from which a sample counts as under load.",
)

LOAD_SAMPLES = 5
"""Samples in the measured phase from which its utilisation is known: the driver averages over up to a second."""
_PRESSURES = {
    "processors": "pressure_cpu_some_percent",
    "the disk": "pressure_io_some_percent",
    "memory": "pressure_memory_some_percent",
}
"""What processes wait for, and the column of the telemetry that says how long."""
DIGEST_VALUES = 20
"""Different values in a column of the telemetry from which no other run has the same column."""
POWER_CAP = 0x4
"""NVML's bit for a clock held by the power limit."""
_SLOWDOWN = sum(telemetry.THROTTLES) - POWER_CAP


WARNING_LETTERS = 100
"""Of a warning's first sentence that are kept."""
_BEGINS = re.compile(
    "|".join((CLIENT_BEGINS, MEASURING, llama_benchy.BEGINS, openai_endpoint.BEGINS))
)
"""What a log says when the measurement begins."""
_SHUTDOWN = "[shutdown]"
"""What vLLM begins the lines with that it warns with when it ends: of processes that it has to kill."""
_WARNING = re.compile(
    r"(?:\b(WARN(?:ING)?|ERROR|CRITICAL)\b|\[([WE])\]|^\d[\d.]+ (E) )"
    r"[\s:\]]*(?:\d\d-\d\d [\d:.]+ )?(?:\[[\w.:]+\] ?)?(.*\w.*)"
)
"""A line of Python's logging, with or without a time and a place in the source, of TensorRT-LLM's, and an error of
llama.cpp's."""
_QUIET = re.compile(
    r"KV cache pool is full|failed to find free space in the KV cache"
    r"|(?:slot context shift|input truncated)\b|stop processing: .*truncated = 1\b"
    r"|no usable GPU found"
)
"""What SGLang and llama.cpp say in lines that look like any other, of a model or a prompt that did not fit."""
_LAYERS = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")
"""How much of a model llama.cpp, and what is made of it, has on the GPU."""
_CHANGING = re.compile(r"/\S+|\d[\d.,:]*")
_MOST_BYTES = 4 * EVIDENCE_CAP
"""A larger file cannot be the one that was recorded: what is kept is capped."""


@dataclass(frozen=True)
class FileSum:
    """A piece of evidence as it lies on disk; both are None where it is gone."""

    size: int | None
    sha256: str | None

    def is_of(self, item: Evidence) -> bool:
        """Whether it is the file that was recorded."""
        return self.size == item.bytes and self.sha256 == item.sha256


class Warned(NamedTuple):
    """A warning or an error in a log, without its numbers and paths; `measured` where it came while measuring."""

    text: str
    measured: bool
    is_error: bool = False


@dataclass(frozen=True)
class Reread:
    """What the workload's parser finds today in a run's evidence.

    `truncated` where not all of it was kept. `printed` holds what the log says in digits of its own, each with half
    a unit of the last digit. `observed` is what the evidence says of engine, model, load and machine. `series` holds
    one measurement per batch or repetition, in order, where the tool kept them (milliseconds). `epoch` is the UNIX time
    at which the tool itself says that it began, `said_at` a time that it printed, local where it has no zone.
    """

    values: Mapping[str, float | None]
    complete: bool
    problems: tuple[str, ...]
    truncated: bool
    epoch: float | None
    said_at: datetime | None
    series: tuple[float, ...]
    printed: Mapping[str, tuple[float, float]]
    observed: Observed
    warnings: tuple[Warned, ...] = ()
    deviations: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Samples:
    """A run's telemetry in short; None where it has no such column. Times in seconds since the launch, memory in GiB.

    `load_measured_percent` is the highest utilisation of the GPU in the measured phase, `cpu_percent` and
    `swap_used_gib` are the mean and the highest in it. `waited_percent` says for how much of it some process waited
    for processors, disk or memory (the kernel's pressure). `metrics` holds the figures that records take from
    the sampler, computed again by each of their definitions. `trace` is a digest of the power that was drawn, sample by
    sample, and `moments` one of when the samples were taken: no two runs share either. `power_values` counts the
    different readings of power, and `power_share` is the energy by these readings in that of the counter.
    """

    samples: int
    start: float
    end: float
    times: tuple[float, ...]
    widest_gap: float
    widest_gap_at: float
    interval: float
    slowed_share: float | None
    capped_share: float | None
    clock_under_load_mhz: float | None
    memory_clock_under_load_mhz: float | None
    foreign_processes: int | None
    gpu_used_before_gib: float | None
    available_before_gib: float | None
    load_before_percent: float | None
    load_measured_percent: float | None
    cpu_percent: float | None
    swap_used_gib: float | None
    waited_percent: Mapping[str, float]
    energy_start_joule: float | None
    energy_end_joule: float | None
    metrics: Mapping[str, tuple[float, ...]]
    trace: str | None
    moments: str | None
    power_values: int
    power_share: float | None


@dataclass(frozen=True)
class Examined:
    """The evidence of one run: sums by file name, the parser's answer and the samples; None where there is none."""

    stored: Stored
    sums: Mapping[str, FileSum]
    answer: Reread | None

    @cached_property
    def samples(self) -> Samples | None:
        """Read when they are first asked for: whether the run happened is known without them."""
        record = self.stored.record
        item = record.file("telemetry")
        if item is None:
            return None
        try:
            content = _content(self.stored, item)
        except (OSError, outside.UnfitError):
            return None
        phase = next(
            (phase for phase in record.phases if phase.name == "measure"), None
        )
        table = telemetry.parse(content.decode("utf-8", errors="replace"))
        return _samples(table, record.duration_seconds, phase)


class EvidenceReader:
    """Reads the evidence of each run once and keeps what it found for as long as the review lasts."""

    def __init__(self) -> None:
        self._examined: dict[str, Examined] = {}

    def of(self, stored: Stored) -> Examined:
        """The evidence of a run."""
        run = stored.record.run_id
        if run not in self._examined:
            self._examined[run] = _examine(stored)
        return self._examined[run]


def _examine(stored: Stored) -> Examined:
    contents: dict[str, bytes] = {}
    sums: dict[str, FileSum] = {}
    for item in stored.record.evidence:
        try:
            content = _content(stored, item)
        except (OSError, outside.UnfitError):
            sums[item.path] = FileSum(None, None)
            continue
        contents.setdefault(item.role, content)
        sums[item.path] = FileSum(len(content), hashlib.sha256(content).hexdigest())
    whole = all(sums[item.path].is_of(item) for item in stored.record.evidence)
    contents.pop("telemetry", None)
    return Examined(stored, sums, _reread(stored, contents) if whole else None)


def _content(stored: Stored, item: Evidence) -> bytes:
    """The bytes of a piece of evidence. Raises OSError or UnfitError where it cannot be read."""
    return outside.content(stored.evidence_path(item), _MOST_BYTES)


def _reread(stored: Stored, contents: Mapping[str, bytes]) -> Reread | None:
    record = stored.record
    kind = record.requested.workload.get("type")
    # A tool that prints no log of its own has its report alone.
    if contents.keys().isdisjoint(("log", "report")) or kind not in WORKLOADS:
        return None
    log = contents.get("log", b"")
    workload = WORKLOADS[str(kind)]
    options = None
    # An import knows some of the options at most: it was read without any, and is read again like that.
    if record.plan.order != "as-published":
        given = dict(record.requested.workload)
        given.pop("type")
        with suppress(ValidationError):
            options = workload.options.model_validate(given)
    files = {role: content for role, content in contents.items() if role != "log"}
    answer = workload.parse(log, files, options)
    return Reread(
        values={name: value.value for name, value in answer.metrics.items()},
        complete=answer.complete,
        problems=answer.problems,
        truncated=any(
            item.truncated for item in record.evidence if item.role != "telemetry"
        ),
        epoch=answer.phases_epoch,
        said_at=answer.said_at,
        series=answer.series or _repeated(answer.samples),
        printed={} if workload.printed is None else workload.printed(log),
        observed=answer.observed,
        warnings=_warnings(log.decode("utf-8", errors="replace")),
        deviations=answer.deviations,
    )


def _warnings(log: str) -> tuple[Warned, ...]:
    """What a log warns of until its engine ends, each once, in the order of the first time."""
    found: dict[Warned, None] = {}
    measured = False
    for line in log.splitlines():
        if _SHUTDOWN in line:
            break
        measured = measured or _BEGINS.search(line) is not None
        quiet, warned = _QUIET.search(line), _WARNING.search(line)
        layers = _LAYERS.search(line)
        if layers is not None and layers[1] != layers[2]:
            text = f"{layers[1]} of {layers[2]} layers on the GPU"
            found[Warned(text, measured)] = None
        elif quiet is not None:
            found[Warned(_without_figures(quiet[0]), measured)] = None
        elif warned is not None:
            *levels, said = warned.groups()
            level = next(filter(None, levels))
            is_error = level[0] in "EC"
            found[Warned(_without_figures(said), measured, is_error)] = None
    return tuple(found)


def _without_figures(said: str) -> str:
    """The first sentence of a warning, the same however often it comes."""
    text = _CHANGING.sub("…", said).split(". ")[0].strip()
    return text[:WARNING_LETTERS]


def _repeated(samples: Mapping[str, Sequence[float]]) -> tuple[float, ...]:
    """Milliseconds per token or batch of repeated measurements, of the metric whose first one is slowest against the
    others: a tool that measures prompts and generation may warm up for one of them only."""
    found = [_milliseconds(name, values) for name, values in samples.items()]
    comparable = [times for times in found if len(times) > 2]
    return max(comparable, key=lambda times: times[0] / median(times[1:]), default=())


def _milliseconds(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Times as they are, and rates per second turned over; empty where there is nothing to divide by."""
    if not all(value > 0 for value in values):
        return ()
    if name.endswith("_ms"):
        return tuple(values)
    return tuple(1e3 / value for value in values) if name.endswith("_s") else ()


def _samples(table: Telemetry, duration: float | None, phase: Phase | None) -> Samples:
    times = tuple(time for time in table.numbers("elapsed_seconds") if time is not None)
    gaps = [(later - earlier, earlier) for earlier, later in pairwise(times)] or [
        (0.0, 0.0)
    ]
    widest, widest_at = max(gaps)
    load = table.timed("gpu_utilization_percent")
    busy = {time for time, percent in load if percent >= LOAD_PERCENT}
    clocks, memory_clocks = (
        [value for time, value in table.timed(column) if time in busy]
        for column in ("gpu_clock_sm_mhz", "gpu_clock_mem_mhz")
    )
    texts = table.columns.get("gpu_throttle_reasons", ())
    said = zip(table.numbers("elapsed_seconds"), texts, strict=False)
    masks = [_mask(text) for time, text in said if time in busy]
    reasons = [mask for mask in masks if mask is not None]
    foreign = [value for _, value in table.timed("gpu_foreign_processes")]
    energy = table.timed("gpu_energy_joule")
    idle = [percent for time, percent in load if time < 0]
    return Samples(
        samples=len(times),
        start=min(times, default=0.0),
        end=max(times, default=0.0),
        times=times,
        widest_gap=widest,
        widest_gap_at=widest_at,
        interval=median(gap for gap, _ in gaps),
        slowed_share=_share(reasons, _SLOWDOWN),
        capped_share=_share(reasons, POWER_CAP),
        clock_under_load_mhz=_summary(clocks, median),
        memory_clock_under_load_mhz=_summary(memory_clocks, median),
        foreign_processes=int(max(foreign)) if foreign else None,
        gpu_used_before_gib=table.before("gpu_memory_used_gib"),
        available_before_gib=table.before("mem_available_gib"),
        load_before_percent=_summary(idle, median),
        load_measured_percent=_highest_load(table, phase),
        cpu_percent=_summary(_measured(table, "cpu_percent", phase), fmean),
        swap_used_gib=_summary(_measured(table, "swap_used_gib", phase), max),
        waited_percent={
            what: fmean(values)
            for what, column in _PRESSURES.items()
            if (values := _measured(table, column, phase))
        },
        energy_start_joule=energy[0][1] if energy else None,
        energy_end_joule=energy[-1][1] if energy else None,
        metrics=sampled_metrics.by_every_definition(table, duration, phase),
        trace=_trace(table),
        moments=_moments(times),
        power_values=len({power for _, power in table.timed("gpu_power_watt")}),
        power_share=_power_share(table),
    )


def _summary(
    values: Sequence[float], summary: Callable[[Sequence[float]], float]
) -> float | None:
    """Some values in one figure; None where there are none."""
    return summary(values) if values else None


def _measured(table: Telemetry, column: str, phase: Phase | None) -> Sequence[float]:
    """A column while measuring; from the launch on where nobody says when that was."""
    values = () if phase is None else table.within(column, phase)
    return values or table.during(column)


def _highest_load(table: Telemetry, phase: Phase | None) -> float | None:
    """The highest utilisation of the GPU in the measured phase; None where too few samples lie in it to tell."""
    if phase is None:
        return None
    load = table.within("gpu_utilization_percent", phase)
    return max(load) if len(load) >= LOAD_SAMPLES else None


def _power_share(table: Telemetry) -> float | None:
    """Energy by the readings of power, as a share of what the counter says; None without both."""
    power, energy = table.timed("gpu_power_watt"), table.timed("gpu_energy_joule")
    if len(power) < 2 or len(energy) < 2:
        return None
    (begin, first), (end, last) = energy[0], energy[-1]
    if last <= first or (power[0][0], power[-1][0]) != (begin, end):
        return None
    joule = sum(
        (one + other) / 2 * (later - earlier)
        for (earlier, one), (later, other) in pairwise(power)
    )
    return joule / (last - first)


def _trace(table: Telemetry) -> str | None:
    # An idle or coarse sensor may well repeat itself.
    return _digest(
        [value for value in table.numbers("gpu_power_watt") if value is not None]
    )


def _moments(times: Sequence[float]) -> str | None:
    # Whole seconds and their hundredths may agree.
    return _digest([time for time in times if time != round(time, 2)])


def _digest(values: Sequence[float]) -> str | None:
    """Of values of which enough differ for two runs not to have the same by chance."""
    if len(set(values)) < DIGEST_VALUES:
        return None
    return hashlib.sha256(repr(values).encode()).hexdigest()


def _mask(text: float | str | None) -> int | None:
    with suppress(ValueError):
        return int(str(text), 16)
    return None


def _share(masks: Sequence[int], bits: int) -> float | None:
    if not masks:
        return None
    return sum(1 for mask in masks if mask & bits) / len(masks)

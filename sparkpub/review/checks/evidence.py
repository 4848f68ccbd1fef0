"""What lies beside a record, read once per review: sums of files, what the parser finds, and the samples."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from sparkpub.plan.workloads import WORKLOADS, command, llama_benchy, parser_of
from sparkpub.plan.workloads.base import MEASURING, Answer
from sparkpub.plan.workloads.vllm_bench import CLIENT_BEGINS
from sparkpub.record import outside, telemetry
from sparkpub.record.record import Evidence, Phase, Record
from sparkpub.record.store import EVIDENCE_CAP, Stored
from sparkpub.record.telemetry import Telemetry
from sparkpub.review.statistics.estimate import Floats

Marked = NDArray[np.bool_]
"""Which of a run's samples are meant."""
LOAD_PERCENT = telemetry.LOAD_PERCENT
"""GPU utilisation from which a sample counts as under load."""

WARNING_LETTERS = 100
"""Of a warning's first sentence that are kept."""
_OF_TOOLS = (begins for begins, _ in command.SPANS.values())
_BEGINS = re.compile(
    "|".join((CLIENT_BEGINS, MEASURING, llama_benchy.BEGINS, *_OF_TOOLS))
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
_SLOWING = sum(telemetry.THROTTLES)
_MOST_BYTES = 4 * EVIDENCE_CAP
"""A larger file cannot be the one that was recorded: what is kept is capped."""


class FileSum(NamedTuple):
    """A piece of evidence as it lies on disk; both are None where it is gone."""

    bytes: int | None
    sha256: str | None


class Warned(NamedTuple):
    """A warning or an error in a log, without its numbers and paths; `measured` where it came while measuring."""

    text: str
    measured: bool
    is_error: bool = False


@dataclass(frozen=True)
class Reread(Answer):
    """What the workload's parser finds today in a run's evidence.

    `truncated` where not all of it was kept. `printed` holds what the log says in digits of its own, each with half
    a unit of the last digit. Of a tool that keeps no batches, `series` are the repetitions of a measurement.
    """

    truncated: bool = False
    printed: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    warnings: tuple[Warned, ...] = ()

    def value(self, metric: str) -> float | None:
        """A figure that the evidence has; None where it has none of that name."""
        found = self.metrics.get(metric)
        return None if found is None else found.value


COLUMNS = (
    "elapsed_seconds",
    "gpu_utilization_percent",
    "gpu_clock_sm_mhz",
    "gpu_temp_celsius",
    "gpu_clock_mem_mhz",
    "gpu_throttle_reasons",
    "gpu_foreign_processes",
    "gpu_memory_used_gib",
    "gpu_power_watt",
    "mem_available_gib",
    "processes_pss_gib",
    "pressure_io_some_percent",
    "pressure_memory_some_percent",
)
"""The columns of a run's telemetry that checks read."""


@dataclass(frozen=True, eq=False)
class Samples:
    """A run's telemetry: of each column a number per sample, NaN where the sensor gave nothing."""

    columns: Mapping[str, Floats]

    @property
    def times(self) -> Floats:
        """Seconds since the launch of the run; below zero before it."""
        return self.columns["elapsed_seconds"]

    @property
    def under_load(self) -> Marked:
        """The samples in which the GPU was busy."""
        return self.columns["gpu_utilization_percent"] >= LOAD_PERCENT

    @property
    def interval(self) -> float:
        """The usual time between two samples; 0 where there are fewer."""
        gaps = np.diff(self.times)
        return float(np.median(gaps)) if len(gaps) else 0.0

    def within(self, phase: Phase) -> Marked:
        """The samples of a phase, both of its ends included."""
        return (self.times >= phase.start_seconds) & (self.times <= phase.end_seconds)

    def known(self, column: str, places: Marked | slice = slice(None)) -> Floats:
        """The values of a column, or of some of its samples, that the sensor gave."""
        values = self.columns[column][places]
        return values[~np.isnan(values)]

    def clock(self, column: str) -> float | None:
        """The usual clock under load in MHz; None where no sample shows it."""
        clocks = self.known(column, self.under_load).tolist()
        return median(clocks) if clocks else None


@dataclass(frozen=True)
class Examined:
    """The evidence of one run: sums by file name, the parser's answer and the samples; None where there is none."""

    stored: Stored
    sums: Mapping[str, FileSum]
    answer: Reread | None

    @cached_property
    def samples(self) -> Samples | None:
        """Read when they are first asked for: whether the run happened is known without them."""
        item = self.stored.record.file("telemetry")
        if item is None:
            return None
        try:
            content = _content(self.stored, item)
        except (OSError, outside.UnfitError):
            return None
        table = telemetry.parse(content.decode("utf-8", errors="replace"))
        return Samples(_columns(table))


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
        sums[item.path] = FileSum(None, None)
        with suppress(OSError, outside.UnfitError):
            content = _content(stored, item)
            sums[item.path] = FileSum(len(content), hashlib.sha256(content).hexdigest())
            contents.setdefault(item.role, content)
    whole = all(
        sums[item.path] == (item.bytes, item.sha256) for item in stored.record.evidence
    )
    return Examined(stored, sums, _reread(stored, contents) if whole else None)


def _content(stored: Stored, item: Evidence) -> bytes:
    """The bytes of a piece of evidence. Raises OSError or UnfitError where it cannot be read."""
    path = stored.evidence_path(item)
    if path.is_symlink():
        raise outside.UnfitError("a link and not a file")
    return outside.content(path, _MOST_BYTES)


def _reread(stored: Stored, contents: Mapping[str, bytes]) -> Reread | None:
    record = stored.record
    given = dict(record.requested.workload)
    kind = str(given.pop("type", None))
    parse, workload, options = parser_of(kind), WORKLOADS.get(kind), None
    # A tool that prints no log of its own has its report alone.
    if contents.keys().isdisjoint(("log", "report")) or parse is None:
        return None
    # An import knows some of the options at most: it was read without any, and is read again like that.
    if workload is not None and record.plan.order != "as-published":
        with suppress(ValidationError):
            options = workload.options.model_validate(given)
    files = {**contents}
    log = files.pop("log", b"")
    files.pop("telemetry", None)
    answer = parse(log, files, options)
    printed = workload and workload.printed
    beside = {
        "series": answer.series or _repeated(answer.samples),
        "truncated": any(
            item.truncated for item in record.evidence if item.role != "telemetry"
        ),
        "warnings": _warnings(log.decode("utf-8", errors="replace")),
        "printed": printed(log) if printed else {},
    }
    return Reread(**vars(answer) | beside)


def _warnings(log: str) -> tuple[Warned, ...]:
    """What a log warns of until its engine ends, each once, in the order of the first time."""
    found: dict[Warned, None] = {}
    measured = False
    for line in log.splitlines():
        if _SHUTDOWN in line:
            break
        measured = measured or _BEGINS.search(line) is not None
        quiet, warned = _QUIET.search(line), _WARNING.search(line)
        layers, text, is_error = _LAYERS.search(line), "", False
        if layers is not None and layers[1] != layers[2]:
            text = f"{layers[1]} of {layers[2]} layers on the GPU"
        elif quiet is not None:
            text = _without_figures(quiet[0])
        elif warned is not None:
            *levels, said = warned.groups()
            is_error = next(filter(None, levels))[0] in "EC"
            text = _without_figures(said)
        if text:
            found[Warned(text, measured, is_error)] = None
    return tuple(found)


def _without_figures(said: str) -> str:
    """The first sentence of a warning, the same however often it comes."""
    text = _CHANGING.sub("…", said).split(". ")[0].strip()
    return text[:WARNING_LETTERS]


def _repeated(samples: Mapping[str, Sequence[float]]) -> tuple[float, ...]:
    """Milliseconds per token or batch of repeated measurements, of the metric whose first one is slowest against the
    others: a tool that measures prompts and generation may warm up for one of them only."""
    found = []
    for name, values in samples.items():
        is_known = len(values) > 2 and min(values) > 0
        if is_known and name.endswith("_s"):
            found.append(tuple(1e3 / value for value in values))
        elif is_known and name.endswith("_ms"):
            found.append(tuple(values))
    return max(found, key=lambda times: times[0] / median(times[1:]), default=())


def measured_phase(record: Record) -> Phase | None:
    """When a run measured; None where nobody knows."""
    return next((phase for phase in record.phases if phase.name == "measure"), None)


def while_measuring(record: Record, samples: Samples, column: str) -> list[float]:
    """The values of the measured phase; from the launch on where nobody knows when that was."""
    phase = measured_phase(record)
    values: list[float] = []
    if phase is not None:
        values = samples.known(column, samples.within(phase)).tolist()
    return values or samples.known(column, samples.times >= 0).tolist()


def _columns(table: Telemetry) -> dict[str, Floats]:
    """The columns that checks read, of every sample that has a time."""
    none = [None] * max(map(len, table.columns.values()), default=0)
    reasons = map(_mask, table.columns.get("gpu_throttle_reasons", ()))
    read = {name: table.numbers(name) for name in COLUMNS}
    read["gpu_throttle_reasons"] = tuple(reasons)
    columns = {name: np.array(has or none, np.float64) for name, has in read.items()}
    timed = ~np.isnan(columns["elapsed_seconds"])
    return {name: values[timed] for name, values in columns.items()}


def _mask(text: str) -> float:
    """The reasons that slow a GPU, as the number of their bits; NaN where the text is none."""
    try:
        return float(int(text, 16) & _SLOWING)
    except ValueError:
        return np.nan

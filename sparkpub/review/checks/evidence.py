"""What lies beside a record, read once per review: sums of files, what the parser finds, and the samples."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import NamedTuple

from pydantic import ValidationError

from sparkpub.plan.workloads import WORKLOADS, command, llama_benchy, parser_of
from sparkpub.plan.workloads.base import MEASURING, Answer
from sparkpub.plan.workloads.vllm_bench import CLIENT_BEGINS
from sparkpub.record import outside
from sparkpub.record.record import Evidence
from sparkpub.record.store import EVIDENCE_CAP, Stored
from sparkpub.review.checks import sensors
from sparkpub.review.checks.sensors import Samples

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
        return sensors.read(content.decode("utf-8", errors="replace"))


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

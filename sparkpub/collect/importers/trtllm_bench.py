"""Evidence of trtllm-bench as it lies in a folder: logs, `--report_json` and `--request_json`, told apart by content.

Files of one run share their name up to the role: `a.log`, `a.report.json` (or `a_report.json`, `a.json`),
`a.requests.json`. The tool does not say where it ran, so that the command line must. What was asked for stands in the
command that a shell echoed into the log, model and options; a label of the report names the model before it.

Excerpts of the printed report are read without its headings. A table of several results is a run of each column, and
each column is a cell of its own: what tells them apart is a thing that no file says.
"""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkpub.collect.importers.base import (
    Draft,
    Given,
    Left,
)
from sparkpub.collect.importers.formats import FileReader
from sparkpub.plan.workloads import WORKLOADS, trtllm_answer
from sparkpub.plan.workloads.base import Answer
from sparkpub.record.record import Moment
from sparkpub.tools import reading
from sparkpub.tools.asked import as_key
from sparkpub.tools.forms import ResultFile

_ROLE = re.compile(r"[._-](?:report|requests?|request_json|report_json)$")
_ITERATION = re.compile(r"(?:iter|run)[_-]?(\d+)")
_SPOKEN = re.compile("TensorRT[- ]?LLM|TRT-LLM|PERFORMANCE OVERVIEW")
_SURE = (b"PERFORMANCE OVERVIEW", b'"performance"', b'"end_to_end_latency"')
_COMMAND = re.compile(r"(?:^|[\s/;&])(trtllm-bench\s+-.*)")
_STAMP = re.compile(r"\[(\d\d)/(\d\d)/(\d{4})-(\d\d:\d\d:\d\d)\]")
_MODES = ("throughput", "latency")
_FLAGS = {
    "--num_requests": "requests",
    "--concurrency": "concurrency",
    "--max_batch_size": "max_batch_size",
    "--max_num_tokens": "max_num_tokens",
    "--max_seq_len": "max_seq_len",
    "--warmup": "warmup",
}
"""Flags with a number, and the options of our workload that they are."""


class TrtllmBench(FileReader):
    """Reads files of the tool, several of which make a run."""

    tool = "trtllm-bench"

    def __init__(self, given: Given, *, among_others: bool = False) -> None:
        super().__init__(given)
        self._among_others = among_others
        self._groups: dict[str, dict[str, ResultFile]] = defaultdict(dict)

    def takes(self, file: ResultFile) -> bool:
        """Whether a file is a log or a report."""
        role = _role(file)
        if role is None or (self._among_others and not _is_surely(file)):
            return False
        stem = _ROLE.sub("", file.source.removesuffix(".gz").removesuffix(file.suffix))
        if role in self._groups[stem]:
            self._found.append(Left(file.source, f"a second {role} of {stem}"))
        else:
            self._groups[stem][role] = file
        return True

    def found(self) -> Iterator[Draft | Left]:
        """The runs of all files."""
        yield from super().found()
        for stem, files in self._groups.items():
            yield from _FilesOfRun(stem, files).drafts(self._given)


def _is_surely(file: ResultFile) -> bool:
    """Whether a file can only be of this tool: texts of any kind speak of TensorRT-LLM."""
    return any(mark in file.content for mark in _SURE)


def _role(file: ResultFile) -> str | None:
    """What a file is, from what it holds."""
    document = reading.json_value(file.content)
    if isinstance(document, dict) and "performance" in document:
        return "report"
    if reading.objects(document) and "end_to_end_latency" in document[0]:
        return "requests"
    if file.suffix == ".json":
        cut_short = document is None and b'"engine"' in file.content
        return "report" if cut_short else None
    words = reading.text(file.content)
    if _SPOKEN.search(words) or trtllm_answer.is_excerpt(file.content):
        return "log"
    return None


class _FilesOfRun:
    """The files of one run, or a log with a table of several."""

    def __init__(self, stem: str, files: Mapping[str, ResultFile]) -> None:
        self.stem = stem
        self.content = {role: file.content for role, file in files.items()}
        self.modified = max(
            (file.modified for file in files.values()), key=lambda moment: moment.value
        )
        self.log = self.content.get("log", b"")
        self.command = _LoggedCommand.echoed(self.log)

    def drafts(self, given: Given) -> Iterator[Draft | Left]:
        """The run, or the run of each column of a table."""
        logs = trtllm_answer.results(self.log)
        if len(logs) == 1:
            yield self._draft(self.content, given)
            return
        for number, log in enumerate(logs, 1):
            yield self._draft({**self.content, "log": log}, given, column=number)

    def _draft(
        self, files: Mapping[str, bytes], given: Given, column: int | None = None
    ) -> Draft | Left:
        outputs = {role: text for role, text in files.items() if role != "log"}
        log = files.get("log", b"")
        answer: Answer = WORKLOADS["trtllm-bench"].parse(log, outputs, None)
        label = answer.observed.settings.get("model") or self.command.model
        model = _model_key(label, given)
        if model is None:
            reason = "it does not say which model was asked for; give --model"
            return Left(self.stem, reason)
        started, missing = self._started()
        if "log" not in files:
            missing["log"] = "none was given: memory stands in the log only"
        source, workload = self.stem, given.workload
        originals: tuple[tuple[bytes, str], ...] = ()
        notes = answer.problems
        if column is not None:
            source = f"{self.stem}, column {column}"
            workload = f"{given.workload_key}-column-{column}"
            originals = ((self.log, ".log"),)
            notes += (f"column {column} of a table of several results",)
        return Draft(
            source=source,
            tool="trtllm-bench",
            model=model,
            model_id=label,
            model_path=self.command.model_path,
            environment=given.environment,
            iteration=self._iteration(),
            started=started,
            metrics=answer.metrics,
            asked=_asked(self.command, answer),
            workload=workload,
            observed=answer.observed,
            files=files,
            originals=originals,
            unavailable=missing,
            status="ok" if answer.complete else "invalid",
            status_reason=None if answer.complete else "; ".join(answer.problems),
            notes=notes if answer.complete else (),
        )

    def _iteration(self) -> int | None:
        """The number in the name of the file; none begins at 0 or below."""
        named = _ITERATION.search(self.stem.rpartition("/")[2])
        if named is None or int(named[1]) == 0:
            return None
        return int(named[1])

    def _started(self) -> tuple[Moment, dict[str, str]]:
        """By the log's first date, whose zone it does not say, and what has to be said of it."""
        found = _STAMP.search(reading.text(self.log))
        if found is None:
            why = "the evidence holds no date; the time is the file's last modification"
            return self.modified, {"started": why}
        month, day, year, clock = found.groups()
        return Moment(value=f"{year}-{month}-{day}T{clock}", zone="unknown"), {}


@dataclass(frozen=True)
class _LoggedCommand:
    """The command line that a shell or a container wrote into the log, as far as it is there."""

    model: str | None = None
    model_path: str | None = None
    options: Mapping[str, Any] | None = None
    """In the vocabulary of our workload; None where there is no command."""

    @classmethod
    def echoed(cls, log: bytes) -> "_LoggedCommand":
        """The first command in a log; its line may begin with a prompt, or with the `+` of `set -x`."""
        text = "\n".join(reading.lines(log)).replace("\\\n", " ")
        for line in text.splitlines():
            command = _COMMAND.search(line)
            if command is not None:
                return cls._of(_words(command[1]))
        return cls()

    @classmethod
    def _of(cls, words: list[str]) -> "_LoggedCommand":
        values = {}
        for word, following in zip(words, [*words[1:], ""], strict=True):
            flag, equals, value = word.partition("=")
            values[flag] = value if equals else following
        options: dict[str, Any] = {}
        for mode in _MODES:
            if mode in words:
                options["mode"] = mode
        for flag, name in _FLAGS.items():
            number = reading.positive_int(values.get(flag))
            if number is not None:
                options[name] = number
        return cls(
            reading.word(values.get("--model")) or reading.word(values.get("-m")),
            reading.word(values.get("--model_path")),
            options,
        )


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quote without its end
        return command.split()


def _asked(command: _LoggedCommand, answer: Answer) -> dict[str, Any]:
    """What was asked for: as the command says, else what the report says of its load."""
    observed = answer.observed
    reported = {
        "requests": observed.requests,
        "input_tokens": reading.positive_int(observed.input_tokens_mean),
        "output_tokens": reading.positive_int(observed.output_tokens_mean),
    }
    known = {name: value for name, value in reported.items() if value is not None}
    return {"type": "trtllm-bench"} | known | dict(command.options or {})


def _model_key(label: str | None, given: Given) -> str | None:
    """The matrix's key of the id that the operator typed, else that id in the form of a key; `--model` where the
    evidence names none."""
    if label is None:
        return given.model
    return given.model_key(label) or as_key(label)

"""Evidence of trtllm-bench as it lies in a folder: logs, `--report_json` and `--request_json`, told apart by content.

Files of one run share their name up to the role: `a.log`, `a.report.json` (or `a_report.json`, `a.json`),
`a.requests.json`. The tool does not say where it ran, so that the command line must. Where a log has lost the
report's `Model:`, the command that a shell echoed into it names the model.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from sparkpub.collect.importers.base import Draft, Given, Left, as_key
from sparkpub.collect.importers.files import ResultFile, result_files
from sparkpub.plan.workloads import WORKLOADS, reading
from sparkpub.plan.workloads.base import Answer
from sparkpub.record.errors import ImportFormatError, UsageError
from sparkpub.record.record import Moment

_ROLE = re.compile(r"[._-](?:report|requests?|request_json|report_json)$")
_ITERATION = re.compile(r"(?:iter|run)[_-]?(\d+)")
_COMMAND = re.compile(r"(?:^|[\s/;&])trtllm-bench\s+-.*")
_MODEL = re.compile(r"\s(?:--model|-m)[ =]['\"]?([^\s'\"]+)")
_STAMP = re.compile(r"\[(\d\d)/(\d\d)/(\d{4})-(\d\d:\d\d:\d\d)\]")


def read(path: Path, given: Given) -> Iterator[Draft | Left]:
    """Runs of a folder, or one file as a run."""
    if given.environment is None:
        raise UsageError(
            "trtllm-bench does not say where it ran",
            where="--environment",
            remedy="name the environment",
        )
    groups: dict[str, dict[str, ResultFile]] = defaultdict(dict)
    for file in result_files(path, given):
        if isinstance(file, Left):
            yield file
            continue
        role = _role(file)
        stem = _ROLE.sub("", file.source.removesuffix(".gz").removesuffix(file.suffix))
        if role is None:
            yield Left(
                file.source, "neither a log nor a report of trtllm-bench", refused=False
            )
        elif role in groups[stem]:
            yield Left(file.source, f"a second {role} of {stem}")
        else:
            groups[stem][role] = file
    runs = [_Run(stem, files) for stem, files in groups.items() if files]
    if not runs:
        raise ImportFormatError(
            "nothing of trtllm-bench in it",
            where=str(path),
            remedy="give its log or reports",
        )
    for run in runs:
        model = _model(run, given)
        if model is None:
            yield Left(
                run.stem, "it does not say which model was asked for; give --model"
            )
            continue
        yield run.draft(model, given)


def _role(file: ResultFile) -> str | None:
    """What a file is, from what it holds."""
    document = reading.json_value(file.content)
    if isinstance(document, dict) and "performance" in document:
        return "report"
    if reading.objects(document) and "end_to_end_latency" in document[0]:
        return "requests"
    if document is None and file.suffix == ".json":
        return "report" if b'"engine"' in file.content else None
    spoken = re.search(
        "TensorRT[- ]?LLM|TRT-LLM|PERFORMANCE OVERVIEW|Token Throughput",
        reading.text(file.content),
    )
    return "log" if spoken and file.suffix != ".json" else None


class _Run:
    """The files of one run, and what they say."""

    def __init__(self, stem: str, files: dict[str, ResultFile]) -> None:
        self.stem = stem
        self.files = {role: file.content for role, file in files.items()}
        self.modified = max(
            (file.modified for file in files.values()), key=lambda moment: moment.value
        )
        outputs = {
            role: content for role, content in self.files.items() if role != "log"
        }
        log = self.files.get("log", b"")
        self.answer: Answer = WORKLOADS["trtllm-bench"].parse(log, outputs, None)
        self.label = self.answer.observed.settings.get("model") or _echoed(log)
        found = _STAMP.search(reading.text(log))
        self.local = f"{found[3]}-{found[1]}-{found[2]}T{found[4]}" if found else None

    def draft(self, model: str, given: Given) -> Draft:
        assert given.environment is not None
        named = _ITERATION.search(self.stem.rpartition("/")[2])
        missing = (
            {}
            if "log" in self.files
            else {"log": "none was given: memory stands in the log only"}
        )
        if self.local is None:
            moment = self.modified
            missing["started"] = (
                "the evidence holds no date; the time is the file's last modification"
            )
        else:
            moment = Moment(value=self.local, zone="unknown")
        answer = self.answer
        options = (
            given.matrix.environments.get(given.environment) if given.matrix else None
        )
        return Draft(
            source=self.stem,
            model=model,
            model_id=self.label,
            environment=given.environment,
            environment_type="unknown" if options is None else options.type,
            iteration=int(named[1]) if named and int(named[1]) > 0 else None,
            started=moment,
            metrics=answer.metrics,
            asked={"type": "trtllm-bench"},
            observed=answer.observed,
            files=self.files,
            unavailable=missing,
            status="ok" if answer.complete else "invalid",
            status_reason=None if answer.complete else "; ".join(answer.problems),
            notes=answer.problems if answer.complete else (),
        )


def _echoed(log: bytes) -> str | None:
    """The model in the command line that a shell or a container wrote into the log."""
    for line in reading.lines(log):
        # The line may begin with a prompt, or with the `+` of `set -x`.
        command = _COMMAND.search(line)
        if command is not None:
            named = _MODEL.search(command[0])
            return None if named is None else named[1]
    return None


def _model(run: _Run, given: Given) -> str | None:
    """The matrix's key of the id that the operator typed, else that id in the form of a key; `--model` where the
    evidence names none."""
    known = (
        {facts.id: key for key, facts in given.matrix.models.items()}
        if given.matrix
        else {}
    )
    if run.label is None:
        return given.model
    return known.get(run.label) or as_key(run.label)

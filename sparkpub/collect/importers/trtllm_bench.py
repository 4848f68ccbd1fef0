"""Evidence of trtllm-bench as it lies in a folder: logs, `--report_json` and `--request_json`, told apart by content.

Files of one run share their name up to the role: `a.log`, `a.report.json` (or `a_report.json`, `a.json`),
`a.requests.json`. The tool does not say where it ran, so that the command line must.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from sparkpub.collect.importers.base import Draft, Given, Left, as_key
from sparkpub.plan.workloads import WORKLOADS, reading
from sparkpub.plan.workloads.base import Answer
from sparkpub.record.errors import ImportFormatError, UsageError
from sparkpub.record.record import Moment

_ROLE = re.compile(r"[._-](?:report|requests?|request_json|report_json)$")
_ITERATION = re.compile(r"(?:iter|run)[_-]?(\d+)")
_STAMP = re.compile(r"\[(\d\d)/(\d\d)/(\d{4})-(\d\d:\d\d:\d\d)\]")


def read(path: Path, given: Given) -> Iterator[Draft | Left]:
    """Runs of a folder, or one file as a run; runs of a cell are numbered in order of time."""
    if given.environment is None:
        raise UsageError("trtllm-bench does not say where it ran", where="--environment", remedy="name the environment")
    groups: dict[str, dict[str, Path]] = defaultdict(dict)
    for file in sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]:
        role = _role(file)
        stem = _ROLE.sub("", file.name.removesuffix(file.suffix))
        if role is None:
            yield Left(file.name, "neither a log nor a report of trtllm-bench", refused=False)
        elif role in groups[stem]:
            yield Left(file.name, f"a second {role} of {stem}")
        else:
            groups[stem][role] = file
    runs = [_Run(stem, {role: file.read_bytes() for role, file in files.items()}) for stem, files in groups.items()]
    if not runs:
        raise ImportFormatError("nothing of trtllm-bench in it", where=str(path), remedy="give its log or reports")
    moments = {stem: max(file.stat().st_mtime for file in files.values()) for stem, files in groups.items()}
    numbers: dict[str, int] = defaultdict(int)
    for run in sorted(runs, key=lambda run: (run.local or "", moments[run.stem], run.stem)):
        model = _model(run.answer, given)
        if model is None:
            yield Left(run.stem, "it does not say which model was asked for; give --model")
            continue
        numbers[model] += 1
        yield run.draft(model, numbers[model], moments[run.stem], given)


def _role(file: Path) -> str | None:
    """What a file is, from what it holds."""
    content = file.read_bytes()
    document = reading.json_value(content)
    if isinstance(document, dict) and "performance" in document:
        return "report"
    if reading.objects(document) and "end_to_end_latency" in document[0]:
        return "requests"
    if document is None and file.suffix == ".json":
        return "report" if b'"engine"' in content else None
    spoken = re.search("TensorRT[- ]?LLM|TRT-LLM|PERFORMANCE OVERVIEW|Token Throughput", reading.text(content))
    return "log" if spoken and file.suffix != ".json" else None


class _Run:
    """The files of one run, and what they say."""

    def __init__(self, stem: str, files: dict[str, bytes]) -> None:
        self.stem, self.files = stem, files
        outputs = {role: content for role, content in files.items() if role != "log"}
        self.answer: Answer = WORKLOADS["trtllm-bench"].parse(files.get("log", b""), outputs, None)
        found = _STAMP.search(reading.text(files.get("log", b"")))
        self.local = f"{found[3]}-{found[1]}-{found[2]}T{found[4]}" if found else None

    def draft(self, model: str, number: int, modified: float, given: Given) -> Draft:
        assert given.environment is not None
        named = _ITERATION.search(self.stem)
        missing = {} if "log" in self.files else {"log": "none was given: memory stands in the log only"}
        if self.local is None:
            moment = Moment.at(datetime.fromtimestamp(modified, UTC))
            missing["started"] = "the evidence holds no date; the time is the file's last modification"
        else:
            moment = Moment(value=self.local, zone="unknown")
        answer = self.answer
        options = given.matrix.environments.get(given.environment) if given.matrix else None
        return Draft(
            source=self.stem,
            model=model,
            model_id=answer.observed.settings.get("model"),
            environment=given.environment,
            environment_type="unknown" if options is None else options.type,
            iteration=int(named[1]) if named and int(named[1]) > 0 else number,
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


def _model(answer: Answer, given: Given) -> str | None:
    """As given, else the matrix's key of the id that the operator typed, else that id in the form of a key."""
    label = answer.observed.settings.get("model")
    known = {facts.id: key for key, facts in given.matrix.models.items()} if given.matrix else {}
    return given.model or (None if label is None else known.get(label) or as_key(label))

"""Reports of clients that measure a server, or of an engine: JSON objects, one run each.

What all of them share: a file is one object, or JSON lines of several; the log of a run lies beside its report under
the same name; runs of one cell must have measured requests of the same size, which most reports say as a mean only.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkpub.collect.importers.base import Draft, Given, Left, as_key
from sparkpub.collect.importers.files import (
    FileError,
    ResultFile,
    documents,
    result_files,
)
from sparkpub.collect.importers.matching import SAME_SIZE
from sparkpub.plan.workloads import reading
from sparkpub.plan.workloads.base import Answer
from sparkpub.record.errors import UsageError
from sparkpub.record.outside import UnfitError, unpacked
from sparkpub.record.record import Moment

_LOGS = (".log", ".stdout", ".txt")


@dataclass(frozen=True)
class Report:
    """What a tool's reader makes of one object.

    `answer` is complete where there is a result, `failure` says why the run failed. `model` is None where the object
    does not name it. `sizes` are mean tokens per request, where the lengths asked for are not said.
    """

    answer: Answer
    model: str | None
    workload: str | None
    """Key of the workload as the object shows it; None where it does not say what was asked for."""
    asked: Mapping[str, Any]
    """As of a `Draft`, and `fits` below too."""
    started: Moment | None
    sizes: tuple[float, ...] = ()
    failure: str | None = None
    refusal: str | None = None
    """Why the object cannot become a run whatever the command line says."""
    fits: Mapping[str, tuple[object, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A tool's reader, and how its files are laid out."""

    name: str
    report: Callable[[dict[str, Any], bytes, bytes], Report | None]
    """From an object, its bytes, and the log beside it, empty where there is none; None for an object of another
    tool."""
    is_report: Callable[[ResultFile], bool] | None = None
    """For a tool that writes a folder for each run: which file is the report. The others are not spoken of."""
    runs: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None
    """For a tool that writes several runs into one object: an object of each, in the same form."""


def read_reports(tool: Tool, path: Path, given: Given) -> Iterator[Draft | Left]:
    """The runs of every file. Raises UsageError without the environment, of which no client says anything."""
    if given.environment is None:
        what = f"{tool.name} does not say where it ran"
        raise UsageError(what, where="--environment", remedy="name the environment")
    cells: dict[tuple[str, str], Report] = {}
    for file in result_files(path, given):
        if isinstance(file, Left):
            yield file
        elif tool.is_report is not None and not tool.is_report(file):
            continue
        elif file.suffix in (".json", ".jsonl"):
            yield from _runs(tool, file, given, cells)
        elif not _is_log_of_report(file):
            yield Left(file.source, f"not a result of {tool.name}", refused=False)


def _runs(
    tool: Tool, file: ResultFile, given: Given, cells: dict[tuple[str, str], Report]
) -> Iterator[Draft | Left]:
    try:
        objects = documents(file)
    except FileError as problem:
        yield Left(file.source, str(problem))
        return
    found = (
        objects
        if tool.runs is None
        else [run for item in objects for run in tool.runs(item)]
    )
    alone = len(found) == 1
    log = _log_beside(file) if alone else b""
    reports = 0
    for number, document in enumerate(found, 1):
        content = file.content if alone else json.dumps(document, indent=1).encode()
        report = tool.report(document, content, log)
        if report is None:
            continue
        reports += 1
        source = file.source if alone else f"{file.source}, run {number}"
        reason = _refusal(report, given, cells)
        if reason is None:
            yield _draft(
                source,
                file,
                report,
                {"report": content} | ({"log": log} if log else {}),
                given,
            )
        else:
            yield Left(source, reason)
    if reports == 0:
        yield Left(file.source, f"not a result of {tool.name}", refused=False)


def _refusal(
    report: Report, given: Given, cells: dict[tuple[str, str], Report]
) -> str | None:
    """Why a report becomes no run; `cells` has the first run of each cell."""
    if report.refusal is not None:
        return report.refusal
    if report.model is None and given.model is None:
        return "it does not name the model; give --model"
    workload = given.workload or report.workload
    if workload is None and given.matrix is not None:
        return None  # the one of the matrix that it fits, if there is one
    if workload is None:
        return "it does not say what was asked for; name it with --workload"
    cell = (_model(report, given), workload)
    first = cells.setdefault(cell, report)
    if not first.sizes:
        cells[cell] = report
    if first.workload != report.workload:
        return f"{report.workload} is another load than {first.workload}, which --workload names; leave it out"
    # A run whose requests failed has no sizes, or those of the requests that went well.
    for one, other in zip(first.sizes, report.sizes, strict=False):
        if abs(one - other) > SAME_SIZE * max(one, other):
            what = f"{other:.0f} tokens per request in place of {one:.0f} in another run of {workload}"
            return f"{what}; import them apart, each with its --workload"
    return None


def _draft(
    source: str,
    file: ResultFile,
    report: Report,
    files: Mapping[str, bytes],
    given: Given,
) -> Draft:
    answer = report.answer
    missing = (
        {} if "log" in files else {"log": "none that can be read lay beside the report"}
    )
    if report.started is None:
        missing["started"] = (
            "the report holds no date; the time is the file's last modification"
        )
    reason = report.failure
    if reason is None and not answer.complete:
        reason = "; ".join(answer.problems)
    incomplete = "failed" if report.failure else "invalid"
    assert given.environment is not None
    return Draft(
        source=source,
        model=_model(report, given),
        model_id=report.model,
        environment=given.environment,
        environment_type=given.environment_type,
        iteration=None,
        started=report.started or file.modified,
        metrics=answer.metrics,
        asked=report.asked,
        fits=report.fits,
        workload=given.workload or report.workload,
        samples=answer.samples,
        observed=answer.observed,
        files=files,
        shared=None if files["report"] == file.content else file.content,
        shared_suffix=file.suffix,
        unavailable=missing,
        status="ok" if reason is None else incomplete,  # type: ignore[arg-type]
        status_reason=reason,
        notes=answer.problems if reason is None else (),
    )


def _model(report: Report, given: Given) -> str:
    """The matrix's key of the model that the report names, else that name in the form of a key; else as given."""
    if report.model is None:
        assert given.model is not None
        return given.model
    return given.model_key(report.model) or as_key(report.model)


def _log_beside(file: ResultFile) -> bytes:
    """What the tool printed: the file of the same name; empty where there is none that can be read."""
    for suffix in (*_LOGS, *(f"{suffix}.gz" for suffix in _LOGS)):
        path = file.path.with_name(file.stem + suffix)
        if path.is_file():
            with suppress(OSError, UnfitError):
                return unpacked(path)
    return b""


def _is_log_of_report(file: ResultFile) -> bool:
    names = [f"{file.stem}{suffix}" for suffix in (".json", ".json.gz")]
    return file.suffix in _LOGS and any(
        file.path.with_name(name).is_file() for name in names
    )


def positive(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options without those that nothing says."""
    return {name: value for name, value in values.items() if value is not None}


def key_of(parts: Mapping[str, Any]) -> str:
    """A workload's key of letters and values, e.g. `serve-in64-out16-c4-n12`; what is None is left out."""
    texts = [
        f"{letters}{_short(value)}"
        for letters, value in parts.items()
        if value is not None
    ]
    return as_key("-".join(texts))


def _short(value: Any) -> str:
    known = reading.number(value)
    return str(value) if known is None else f"{known:g}"

"""Whether a run properly happened and its evidence is whole: damage, exit status, log, report."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from sparkpub.plan.workloads import WORKLOADS
from sparkpub.record.metrics import Metric
from sparkpub.record.record import metric_of
from sparkpub.record.store import Stored, file_sha256
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.thresholds import RELATIVE_TOLERANCE
from sparkpub.review.checks.view import View
from sparkpub.review.dataset import read_cached

_UNIT_DAMAGE = re.compile(r"metrics\.\w+\.(?:unit|value)")


def damaged(campaign: str, lines: Iterable[str], *, units: bool) -> Iterator[Finding]:
    """Files that could not be read as records, from the lines of `Dataset.skipped`: those whose fault is a
    metric's unit or range where `units`, else all others."""
    name = "unit" if units else "schema"
    for line in lines:
        if bool(_UNIT_DAMAGE.search(line)) is units:
            text = f"A damaged file was left out: {line}."
            yield Finding(name, "error", campaign, None, None, text, {"damage": line})


def schema(view: View) -> Iterator[Finding]:
    """Damaged records, which are nowhere in the figures."""
    yield from damaged(view.campaign.name, view.damage, units=False)


def checksum(view: View) -> Iterator[Finding]:
    """Evidence that is gone or differs from the sum that its record carries."""
    for stored in view.runs:
        for item in stored.record.evidence:
            path = stored.evidence_path(item)
            size, sha256 = fingerprint(path)
            if size is None:
                yield view.finding("checksum", "error", f"The {item.role} {item.path} of this run is gone.", run=stored,
                                   file=item.path, expected=item.sha256, found=None)  # fmt: skip
            elif sha256 != item.sha256 or size != item.bytes:
                same = size == item.bytes
                how = "other content of the same size" if same else f"{size:,} bytes instead of {item.bytes:,}"
                text = f"The {item.role} {item.path} is not the file that was recorded: {how}."
                yield view.finding("checksum", "error", text, run=stored, file=item.path,
                                   expected=item.sha256, found=sha256, bytes=size)  # fmt: skip


def fingerprint(path: Path) -> tuple[int | None, str]:
    """Size and SHA-256 of a file, computed again only when it changed; (None, "") where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None, ""
    return status.st_size, _sha256(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=500_000)
def _sha256(path: Path, _size: int, _modified: int) -> str:
    return file_sha256(path)


def exit_status(view: View) -> Iterator[Finding]:
    """Runs that did not end well. Where a later attempt did, nothing is missing, and the finding is for the record."""
    good = {(*run.record.cell, run.record.iteration) for run in view.runs if run.record.status == "ok"}
    for stored in view.standing:
        record = stored.record
        if record.status != "ok":
            again = (*record.cell, record.iteration) in good
            text = f"This run ended as {record.status}: {record.status_reason}."
            text += " A later attempt succeeded." if again else " It is in no figure."
            yield view.finding("exit-status", "info" if again else "warning", text, run=stored,
                               status=record.status, exit_code=record.exit_code)  # fmt: skip


def published_only(stored: Stored) -> bool:
    """Whether every figure of a run was taken from a publication, so that no evidence can be asked for."""
    return all(value.source == "published" for value in stored.record.metrics.values())


def missing_log(view: View) -> Iterator[Finding]:
    """Runs without a log. Figures that were only ever published cannot have one: a warning, and nothing leaves."""
    without = [run for run in view.standing if run.record.status == "ok" and run.record.file("log") is None]
    published = [run for run in without if published_only(run)]
    # A report that somebody handed over without its log still carries its own figures.
    given = [run for run in without if run.record.plan.order == "as-published" and run.record.file("report")]
    yield from view.together(
        "missing-log", "warning", given,
        lambda runs: f"No log was given for {runs}: the report carries the figures, and nothing shows memory or model.",
    )  # fmt: skip
    yield from view.together(
        "missing-log", "warning", published,
        lambda runs: f"No log exists for {runs}: the figures are as published and nobody can check them.",
        lambda runs: {"reasons": sorted({run.record.unavailable.get("log", "not given") for run in runs})},
    )  # fmt: skip
    yield from view.together(
        "missing-log", "error", [run for run in without if run not in published and run not in given],
        lambda runs: f"The log is missing for {runs}, so the figures rest on nothing.",
    )  # fmt: skip


def missing_report(view: View) -> Iterator[Finding]:
    """Runs that call themselves good although the engine never gave its result."""
    for stored in view.standing:
        record = stored.record
        if record.status != "ok" or published_only(stored):
            continue
        reported = any(value.source == "report" for value in record.metrics.values())
        answer = reread(stored)
        if all(value.value is None for value in record.metrics.values()):
            text = "The run ended with exit code 0 and has no figure at all: its result is missing."
        elif reported and record.file("report") is None:
            text = "Figures of this run are said to come from a report, and there is no report."
        elif answer is not None and not answer.complete and not answer.truncated:
            text = f"The engine ended without its result: {'; '.join(answer.problems) or 'the report is incomplete'}."
        else:
            continue
        yield view.finding("missing-report", "error", text, run=stored, exit_code=record.exit_code)


def metric_mismatch(view: View) -> Iterator[Finding]:
    """Recorded figures that their own log or report contradicts. Figures with a checksum fault are not read."""
    for stored in view.standing:
        answer = reread(stored) if stored.record.status == "ok" else None
        if answer is None or not (answer.complete or answer.truncated):
            continue
        for name, value in stored.record.metrics.items():
            if value.source not in ("log", "report"):
                continue
            found = answer.values.get(name)
            if not _same(value.value, found) and not (found is None and answer.truncated):
                metric: Metric = metric_of(name, value)
                text = (
                    f"{metric.label} is recorded as {_text(value.value, metric)}, "
                    f"and the {value.source} of the run says {_text(found, metric)}."
                )
                yield view.finding("metric-mismatch", "error", text, run=stored, metric=name, recorded=value.value,
                                   found=found, unit=metric.unit)  # fmt: skip


def _text(value: float | None, metric: Metric) -> str:
    return "nothing" if value is None else f"{value:.6g} {metric.unit}".strip()


def _same(recorded: float | None, found: float | None) -> bool:
    if recorded is None or found is None:
        return recorded is found
    return abs(recorded - found) <= RELATIVE_TOLERANCE * max(abs(recorded), abs(found))


@dataclass(frozen=True)
class Reread:
    """What the workload's parser reads today in a run's evidence. `truncated` where not all of it was kept."""

    values: Mapping[str, float | None]
    complete: bool
    problems: tuple[str, ...]
    truncated: bool


def reread(stored: Stored) -> Reread | None:
    """The evidence read again, when it or the record changed; None without a log or a parser, or where damaged."""
    record = stored.record
    if record.file("log") is None or record.requested.workload.get("type") not in WORKLOADS:
        return None
    if any(fingerprint(stored.evidence_path(item)) != (item.bytes, item.sha256) for item in record.evidence):
        return None
    return _reread(stored.path, stored.sha256)


@functools.lru_cache(maxsize=20_000)
def _reread(path: Path, _sha256: str) -> Reread:
    stored = read_cached(path)
    record = stored.record
    items = [item for item in record.evidence if item.role != "telemetry"]
    contents = {str(item.role): stored.evidence_path(item).read_bytes() for item in items}
    workload = WORKLOADS[str(record.requested.workload["type"])]
    options = {name: value for name, value in record.requested.workload.items() if name != "type"}
    try:
        parsed = workload.options.model_validate(options)
    except ValidationError:
        parsed = None  # an import that knows only some of the options
    answer = workload.parse(contents.pop("log"), contents, parsed)
    values = {name: value.value for name, value in answer.metrics.items()}
    return Reread(values, answer.complete, answer.problems, any(item.truncated for item in items))

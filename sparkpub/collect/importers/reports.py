"""Reports of clients that measure a server, or of an engine: JSON objects, one run each.

What all of them share: a file is one object, or JSON lines of several; a run's log, notes and telemetry lie beside its
report (`sidecars`); runs of one cell must have measured requests of the same size, which most reports say as a mean
only.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sparkpub.collect.importers.base import NAMELESS, Draft, Given, Left, as_key
from sparkpub.collect.importers.files import ResultFile, documents
from sparkpub.collect.importers.layout import Facts
from sparkpub.collect.importers.matching import SAME_SIZE
from sparkpub.collect.importers.samples import TelemetryBeside, samples
from sparkpub.collect.importers.sidecars import Sidecars, is_sidecar
from sparkpub.collect.phases import MEASURE
from sparkpub.plan.workloads import reading
from sparkpub.plan.workloads.base import Answer
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record import sampled_metrics
from sparkpub.record.record import MetricValue, Moment, Phase, Spread, Status
from sparkpub.record.telemetry import parse


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
    partly: str = ""
    """What the object says of it all the same, in the form of a key."""
    sizes: tuple[float, ...] = ()
    failure: str | None = None
    refusal: str | None = None
    """Why the object cannot become a run whatever the command line says."""
    notes: tuple[str, ...] = ()
    """What the tool says besides, in words."""
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    fits: Mapping[str, tuple[object, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A tool's reader, and how its files are laid out."""

    name: str
    report: Callable[[dict[str, Any], bytes, Sidecars], Report | None]
    """From an object, its bytes, and what lies beside it; None for an object of another tool."""
    is_report: Callable[[ResultFile], bool] | None = None
    """For a tool that writes a folder for each run: which file is the report. The others are not spoken of."""
    runs: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None
    """For a tool that writes several runs into one object: an object of each, in the same form."""
    suffixes: tuple[str, ...] = (".json", ".jsonl")
    """Of the files that may be reports."""
    objects: Callable[[ResultFile], list[dict[str, Any]]] = documents
    """The objects of a file, whatever its format. Raises FileError."""
    twin: Callable[[ResultFile], str | None] = lambda _: None
    """The name of a file beside it that says the same with more, and is read in its place."""


@dataclass(frozen=True)
class Forms:
    """What a tool's results need besides a mapping: other forms than JSON, whose objects are those of its JSON."""

    suffixes: tuple[str, ...]
    """Of all files that may be reports."""
    objects: Callable[[ResultFile], list[dict[str, Any]]]
    twin: Callable[[ResultFile], str | None]
    """Both as of a `Tool`, and `runs` too."""
    runs: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None
    beside: Callable[[Sidecars], dict[str, Any]] = lambda _: {}
    """What the text beside a report says of it, by the names of the report."""


class ReportReader:
    """Reads the reports of one tool."""

    def __init__(self, layout: Tool, given: Given) -> None:
        self.tool = layout.name
        self._layout = layout
        self._given = given
        self._found: list[Draft | Left] = []
        self._cells: dict[tuple[str, str], Report] = {}
        """The first run of each cell."""

    def takes(self, file: ResultFile) -> bool:
        """Whether a file is a report. Raises FileError."""
        layout = self._layout
        if file.suffix not in layout.suffixes or not self._may_be_report(file):
            return False
        objects = layout.objects(file)
        found = objects
        if layout.runs is not None:
            found = [run for item in objects for run in layout.runs(item)]
        is_alone = len(found) == 1
        beside = Sidecars.of(file, self._given.layouts, alone=is_alone)
        taken: list[Draft | Left] = []
        for number, document in enumerate(found, 1):
            source, content = file.source, file.content
            if not is_alone:
                source = f"{file.source}, run {number}"
            if reading.json_object(content) != document:
                content = json.dumps(document, indent=1).encode()
            report = layout.report(document, content, beside)
            if report is not None:
                taken.append(self._run(source, report, content, beside))
        twin = layout.twin(file) if taken else None
        if twin is not None and file.suffix != ".csv" and is_sidecar(file):
            return False  # it is read with the report
        if twin is not None:
            taken = [Left(file.source, f"the same results as {twin}", refused=False)]
        self._found += taken
        return bool(taken)

    def found(self) -> Iterator[Draft | Left]:
        """The runs of the files that were taken."""
        yield from self._found

    def passes_over(self, file: ResultFile) -> bool:
        """Whether a file is one of those that lie beside reports; a CSV may be one itself."""
        if not self._may_be_report(file):
            return True
        may_be_table = file.suffix == ".csv" and ".csv" in self._layout.suffixes
        return is_sidecar(file) and not may_be_table

    def _may_be_report(self, file: ResultFile) -> bool:
        is_report = self._layout.is_report
        return is_report is None or is_report(file)

    def _run(
        self, source: str, report: Report, content: bytes, beside: Sidecars
    ) -> Draft | Left:
        given, facts = self._given, beside.facts
        if _name(report, facts) is None and given.model is None:
            return Left(source, NAMELESS)
        if report.refusal is not None:
            return Left(source, report.refusal)
        if report.workload is None and given.workload is None and given.matrix is None:
            report = _named_after(report, beside, alone=self._layout.is_report is None)
        workload = given.workload or report.workload
        if workload is not None:
            cell = (_key(_name(report, facts), given), workload)
            first = self._first_of(cell, report)
            if first.workload != report.workload:
                what = f"{report.workload} is another load than {first.workload}"
                return Left(source, f"{what}, which --workload names; leave it out")
            if given.workload is None and not _same_size(first, report):
                report = _apart(first, report)
            elif not _same_size(first, report):
                return Left(
                    source,
                    f"{_other_size(first, report)} of {workload}; leave out --workload",
                )
        return _draft(self.tool, source, report, content, beside, given)

    def _first_of(self, cell: tuple[str, str], report: Report) -> Report:
        """The first run of a cell that has sizes, or would have them."""
        first = self._cells.setdefault(cell, report)
        if not first.sizes:
            self._cells[cell] = report
        return first


def _named_after(report: Report, beside: Sidecars, *, alone: bool) -> Report:
    """With the name of the file in that of the load, which nothing says. One of several files that a tool writes for
    each run is named after its folder, too."""
    assert beside.report is not None
    name = beside.report.stem
    if not alone:
        name = f"{beside.report.path.parent.name}-{name}"
    note = "the results do not say what was asked for; the load is named after the file"
    workload = as_key("-".join(filter(None, (name, report.partly))))
    return replace(report, workload=workload, notes=(*report.notes, note))


def _same_size(first: Report, other: Report) -> bool:
    """Whether requests of two runs may have been the same; a run whose requests failed has no sizes, or those of the
    requests that went well."""
    return all(
        abs(one - two) <= SAME_SIZE * max(one, two)
        for one, two in zip(first.sizes, other.sizes, strict=False)
    )


def _other_size(first: Report, other: Report) -> str:
    """How the requests of two runs differ, in words."""
    one, two = next(
        (one, two)
        for one, two in zip(first.sizes, other.sizes, strict=False)
        if abs(one - two) > SAME_SIZE * max(one, two)
    )
    return f"{two:.0f} tokens per request in place of {one:.0f} in another run"


def _apart(first: Report, other: Report) -> Report:
    """A load of its own, since the requests of the first one had other sizes: named after about how long they were."""
    sizes = "-".join(f"{float(f'{size:.2g}'):.0f}" for size in other.sizes)
    note = f"{_other_size(first, other)} of {first.workload}; the results do not say which lengths were asked for"
    workload = as_key(f"{other.workload}-about{sizes}")
    return replace(other, workload=workload, notes=(*other.notes, note))


def _draft(
    tool: str,
    source: str,
    report: Report,
    content: bytes,
    beside: Sidecars,
    given: Given,
) -> Draft:
    file = beside.report
    assert file is not None
    answer = report.answer
    telemetry = _telemetry(report, beside)
    missing: dict[str, str] = {}
    if not beside.log:
        missing["log"] = "none that can be read lay beside the report"
    if report.started is None:
        missing["started"] = (
            "the report holds no date; the time is the file's last modification"
        )
    if telemetry.problem is not None:
        missing["telemetry"] = telemetry.problem
    notes = (*answer.problems, *report.notes)
    status: Status = "ok"
    reason = report.failure
    if reason is not None:
        status = "failed"
    elif not answer.complete:
        status, reason = "invalid", "; ".join(answer.problems)
    if reason is not None:
        notes = ()
    if beside.notes:
        notes += (f"noted beside the report: {_words(beside.notes)}",)
    if beside.facts.answer is not None:
        notes += (f"{ANSWERED}{beside.facts.answer}",)
    name = _name(report, beside.facts)
    return Draft(
        source=source,
        tool=tool,
        model=_key(name, given),
        model_id=name,
        environment=given.environment,
        facts=beside.facts if beside.facts.is_of(report.model) else Facts(),
        iteration=None,
        started=report.started or file.modified,
        metrics=dict(answer.metrics) | _sampled(report, telemetry.content),
        asked=report.asked,
        fits=report.fits,
        workload=given.workload or report.workload,
        samples=answer.samples,
        spreads=report.spreads,
        observed=answer.observed,
        phases=_phases(report) if telemetry.content else (),
        files=_files(content, beside, telemetry),
        originals=tuple(_originals(file, content, beside, telemetry)),
        unavailable=missing,
        status=status,
        status_reason=reason,
        notes=notes,
    )


def _files(
    content: bytes, beside: Sidecars, telemetry: TelemetryBeside
) -> dict[str, bytes]:
    """What is a run's own, by role."""
    files = {"report": content, "log": beside.log, "telemetry": telemetry.content}
    return {role: found for role, found in files.items() if found}


def _originals(
    file: ResultFile, content: bytes, beside: Sidecars, telemetry: TelemetryBeside
) -> Iterator[tuple[bytes, str]]:
    """Files that were read and are not a run's own as they are."""
    if file.content not in (content, beside.log):
        yield file.content, file.suffix
    if telemetry.content and beside.telemetry != telemetry.content:
        yield beside.telemetry, ".csv"
    if beside.notes_content:
        yield beside.notes_content, beside.notes_suffix


def _telemetry(report: Report, beside: Sidecars) -> TelemetryBeside:
    """The telemetry beside a report, its times counted from the start of the run."""
    if not beside.telemetry:
        return TelemetryBeside()
    started = None
    if report.started is not None:
        started = datetime.fromisoformat(report.started.value).replace(tzinfo=None)
    seconds = report.answer.observed.measured_seconds
    return samples(beside.telemetry, started, beside.layout.telemetry, seconds)


def _phases(report: Report) -> tuple[Phase, ...]:
    """A client measures from its start to its end; nothing where the report does not say how long."""
    seconds = report.answer.observed.measured_seconds
    if not seconds:
        return ()
    return (Phase(name=MEASURE, start_seconds=0.0, end_seconds=seconds),)


def _sampled(report: Report, telemetry: bytes) -> dict[str, MetricValue]:
    """The sampler's metrics over the measured phase; none of the whole run, which began before the client did."""
    table = parse(reading.text(telemetry))
    found: dict[str, MetricValue] = {}
    for phase in _phases(report):
        found = sampled_metrics.metrics(table, phase.end_seconds, phase)
    return {
        name: value
        for name, value in found.items()
        if name in _OF_PHASE and value.value is not None
    }


_OF_PHASE = (
    "gpu_power_mean_watt",
    "gpu_energy_joule",
    "gpu_utilization_mean_percent",
    "gpu_clock_sm_mean_mhz",
)


def _words(notes: Mapping[str, Any]) -> str:
    """What people noted, as far as it is short."""
    plain = [
        f"{name}={value}"
        for name, value in notes.items()
        if isinstance(value, str | int | float | bool)
    ]
    return ", ".join(plain)[:_MOST_NOTES]


_MOST_NOTES = 1000


def _name(report: Report, facts: Facts) -> str | None:
    """The model's id where notes say it, else as the report names the model."""
    if facts.model_id is not None and facts.is_of(report.model):
        return facts.model_id
    return report.model


def _key(name: str | None, given: Given) -> str:
    """The matrix's key of the model of that name, else the name in the form of a key; else as given."""
    if name is None:
        assert given.model is not None
        return given.model
    return given.model_key(name) or as_key(name)


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

"""Reports of tools that sparkpub knows, by their mappings (`tools/*.yaml`): JSON objects, one run each.

What all of them share: a file is one object, or JSON lines of several; a run's log, notes and telemetry lie beside its
report (`sidecars`); runs of one cell must have measured requests of the same size, which most reports say as a mean
only. A tool with several forms of reports has a mapping of each.
"""

import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparkpub.collect.importers.base import (
    NAMELESS,
    Draft,
    Given,
    Left,
)
from sparkpub.collect.importers.formats import FileReader
from sparkpub.collect.importers.layout import Facts
from sparkpub.collect.importers.matching import SAME_SIZE
from sparkpub.collect.importers.rows import spread_out
from sparkpub.collect.importers.said import SaidOfRun
from sparkpub.collect.importers.samples import TelemetryBeside, samples
from sparkpub.collect.importers.sidecars import Sidecars, is_sidecar
from sparkpub.collect.phases import MEASURE
from sparkpub.plan.workloads import parser_of
from sparkpub.plan.workloads.base import Answer
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record import sampled_metrics
from sparkpub.record.errors import field_problems
from sparkpub.record.record import MetricValue, Moment, Observed, Phase, Status
from sparkpub.record.telemetry import parse
from sparkpub.tools import cells, forms, reading
from sparkpub.tools.asked import AskedLoad, as_key, asked
from sparkpub.tools.cells import CellError, local_moment
from sparkpub.tools.figures import Figures
from sparkpub.tools.forms import ResultFile
from sparkpub.tools.language import ResultMapping, RunPlaces
from sparkpub.tools.reader import ReportReading
from sparkpub.tools.shapes import SHAPES
from sparkpub.tools.shapes.base import ShapedRun
from sparkpub.tools.where import at, holds

NO_SUCCESS = "no request succeeded"


@dataclass(frozen=True)
class Report:
    """What a mapping makes of the report of one run.

    `answer` is complete where there is a result, `failure` says why the run failed. `model` is None where the report
    does not name it. `workload` is the name of the load, None where the report does not say what was asked for. `sizes`
    are mean tokens per request, where the lengths asked for are not said.
    """

    kind: str
    """The workload that it is, else the tool."""
    answer: Answer
    figures: Figures
    said: SaidOfRun
    model: str | None
    shaped: ShapedRun
    workload: str | None
    asked: AskedLoad
    started: Moment | None
    sizes: tuple[float, ...] = ()
    failure: str | None = None
    notes: tuple[str, ...] = ()
    """What the tool says besides, in words."""


@dataclass(frozen=True)
class RunDocument:
    """One run of a file: where values are looked for, and its evidence by role."""

    run: ShapedRun
    files: Mapping[str, bytes]
    mapping: ResultMapping | None = None
    """None for what no mapping is of."""


class ReportReader(FileReader):
    """Reads the reports of one tool."""

    def __init__(
        self,
        mappings: Sequence[ResultMapping],
        given: Given,
        *,
        among_others: bool = False,
    ) -> None:
        super().__init__(given)
        self._among_others = among_others
        self.tool = str(mappings[0].tool)
        self._mappings = mappings
        named = [mapping.shape for mapping in mappings if mapping.shape is not None]
        self._shape = SHAPES[named[0] if named else None]
        self._named: dict[str, str | None] = {}
        """The load that a workload stands for, once a run has shown it."""
        self._cells: dict[tuple[str, str], Report] = {}
        """The first run of each cell."""

    def takes(self, file: ResultFile) -> bool:
        """Whether a file is a report. Raises FileError."""
        suffixes = self._shape.suffixes
        is_other = suffixes is not None and file.suffix not in suffixes
        if is_other or not self._may_be_report(file):
            return False
        runs = [
            run for shaped in self._shape.runs(file) for run in self._runs(file, shaped)
        ]
        if self._among_others:
            runs = [run for run in runs if run.run.is_sure]
        if not any(run.mapping or run.run.omitted for run in runs):
            return False
        twin = self._shape.twin(file)
        if twin is not None and file.suffix != ".csv" and is_sidecar(file):
            return False  # it is read with the report
        if twin is not None:
            why = f"the same results as {twin}"
            self._found.append(Left(file.source, why, refused=False))
        else:
            self._found += self._read(file, runs)
        return True

    def _read(
        self, file: ResultFile, runs: Sequence[RunDocument]
    ) -> Iterator[Draft | Left]:
        """What the runs of a file become."""
        is_alone = len(runs) == 1
        beside = Sidecars.of(file, self._given.layouts, alone=is_alone)
        for number, run in enumerate(runs, 1):
            source = file.source if is_alone else f"{file.source}, run {number}"
            if run.run.omitted:
                yield Left(file.source, run.run.omitted, refused=False)
            elif run.mapping is not None:
                yield self._run(source, run, beside)

    def passes_over(self, file: ResultFile) -> bool:
        """Whether a file is one of those that lie beside reports; a CSV may be one itself."""
        if not self._may_be_report(file):
            return True
        may_be_table = file.suffix == ".csv" and ".csv" in (self._shape.suffixes or ())
        return is_sidecar(file) and not may_be_table

    def _may_be_report(self, file: ResultFile) -> bool:
        """Whether a file, by its name and its folders, is one of those that the tool's mapping speaks of."""
        first = self._mappings[0]
        names = {*Path(file.source).parts[:-1], file.name}
        is_inside = names.isdisjoint(first.others)
        return is_inside and fnmatch.fnmatch(file.name, first.files)

    def _runs(self, file: ResultFile, shaped: ShapedRun) -> list[RunDocument]:
        """The runs of a document, by the first mapping that it is of."""
        for mapping in self._mappings:
            runs = [
                RunDocument(
                    replace(shaped, said=said),
                    shaped.files or {"report": _as_report(file, kept)},
                    mapping,
                )
                for said, kept in _spread(mapping, shaped.said)
                if holds(said, mapping.when)
            ]
            if runs:
                return runs
        return [RunDocument(shaped, shaped.files)]

    def _run(self, source: str, run: RunDocument, beside: Sidecars) -> Draft | Left:
        given, facts = self._given, beside.facts
        assert run.mapping is not None
        try:
            report = _report(run.mapping, run, beside)
        except CellError as problem:
            return Left(source, str(problem))
        except ValidationError as error:
            return Left(source, "; ".join(field_problems(error)))
        key, _ = _names(report, facts, given)
        if key is None:
            return Left(source, NAMELESS)
        if report.workload is None and given.workload is None and given.matrix is None:
            is_alone = run.mapping.files == "*" and not run.mapping.others
            report = _named_after(report, beside, alone=is_alone)
        workload = given.workload or report.workload
        if workload is not None:
            named = self._named.setdefault(workload, report.workload)
            if named != report.workload:
                what = f"{report.workload} is another load than {named}"
                return Left(source, f"{what}, which --workload names; leave it out")
            first = self._first_of((key, workload), report)
            if given.workload is None and not _same_size(first, report):
                report = _apart(first, report)
            elif not _same_size(first, report):
                return Left(
                    source,
                    f"{_other_size(first, report)} of {workload}; leave out --workload",
                )
        return _draft(self.tool, source, report, run.files, beside, given)

    def _first_of(self, cell: tuple[str, str], report: Report) -> Report:
        """The first run of a cell that has sizes, or would have them."""
        first = self._cells.setdefault(cell, report)
        if not first.sizes:
            self._cells[cell] = report
        return first


def _as_report(file: ResultFile, kept: Any) -> bytes:
    """A document as it is kept: the file as it is where it holds nothing else."""
    is_object = file.suffix in forms.JSON and file.content.lstrip()[:1] == b"{"
    if is_object and forms.of_json(file.content) == [kept]:
        return file.content
    return json.dumps(kept, indent=1).encode()


def _spread(
    mapping: ResultMapping, document: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The runs of a document, each with what is kept of it: its row with what lies around it, or the document."""
    if mapping.rows is None:
        yield document, document
        return
    for said, alone in spread_out(document, mapping.rows.split(".")):
        row = at(said, mapping.rows)
        if not mapping.around:
            yield said, alone
        elif isinstance(row, dict):
            around = {name: at(said, where) for name, where in mapping.around.items()}
            yield said, {**row, **around}


def _report(mapping: ResultMapping, run: RunDocument, beside: Sidecars) -> Report:
    """Raises CellError for a number that is none."""
    more = SHAPES[mapping.shape].beside(beside.told, beside.log or beside.log_of_call)
    document = {**more, **run.run.said, "noted": beside.notes}
    assert mapping.run is not None
    found = ReportReading(mapping, document)
    said = SaidOfRun(mapping.run, mapping.same, document)
    answer = _answer(found, said, run.files, beside)
    load = asked(mapping, document)
    named = said.text("workload")
    workload = load.name if load.is_known else None
    return Report(
        str(mapping.reads or mapping.tool),
        answer,
        found.figures,
        said,
        model=said.word("model_id") or said.word("model"),
        shaped=run.run,
        workload=workload if named is None else as_key(named),
        asked=load,
        started=_started(mapping.run, said),
        sizes=_sizes(mapping, document, load, answer),
        failure=None if found.succeeded else NO_SUCCESS,
        notes=load.notes,
    )


def _answer(
    found: ReportReading,
    said: SaidOfRun,
    files: Mapping[str, bytes],
    beside: Sidecars,
) -> Answer:
    """With what the workload's reader finds in the logs beside it, where it is one of a workload."""
    if found.mapping.reads is not None:
        parse = parser_of(found.mapping.reads)
        assert parse is not None
        outputs = {role: found for role, found in files.items() if role != "log"}
        return parse(files.get("log", beside.log), outputs, None)
    is_complete = any(reading.known(found.metrics, name) for name in found.metrics)
    problems = found.problems
    if not is_complete:
        problems.append("the report holds none of the figures")
    observed = said.observed().model_dump(exclude_defaults=True)
    return Answer(
        found.metrics,
        reading.observed(found.facts | observed),
        complete=is_complete,
        problems=tuple(problems),
        notes=found.notes,
        samples=found.figures.samples,
        deviations=found.deviations,
    )


def _sizes(
    mapping: ResultMapping, document: Mapping[str, Any], load: AskedLoad, answer: Answer
) -> tuple[float, ...]:
    """Mean tokens of a request, where nothing says what was asked for."""
    requests = answer.observed.requests
    if not requests or {"dataset", "input_tokens"} & set(load.options):
        return ()
    totals = [reading.number(at(document, where)) for where in mapping.sizes]
    return tuple((total or 0) / requests for total in totals)


def _started(run: RunPlaces, said: SaidOfRun) -> Moment | None:
    """When the run began: as the report says, else its end without the seconds before."""
    started = cells.moment(said.text("started"))
    ended = cells.moment(said.text("ended"))
    took = reading.number(at(said.document, run.seconds))
    if started is not None or ended is None or took is None:
        return started or ended
    try:
        began = datetime.fromisoformat(ended.value) - timedelta(seconds=round(took))
    except OverflowError:
        return ended
    return local_moment(began) or ended


def _named_after(report: Report, beside: Sidecars, *, alone: bool) -> Report:
    """With the name of the file in that of the load, which nothing says. One of several files that a tool writes for
    each run is named after its folder, too."""
    assert beside.report is not None
    name = beside.report.stem
    if not alone:
        name = f"{beside.report.path.parent.name}-{name}"
    note = "the results do not say what was asked for; the load is named after the file"
    workload = as_key("-".join(filter(None, (name, report.asked.name))))
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
    files: Mapping[str, bytes],
    beside: Sidecars,
    given: Given,
) -> Draft:
    file = beside.report
    assert file is not None
    answer = report.answer
    telemetry = _telemetry(report, beside)
    missing: dict[str, str] = {}
    if not beside.log and not beside.log_of_call:
        missing["log"] = "none that can be read lay beside the report"
    if report.started is None:
        missing["started"] = (
            "the report holds no date; the time is the file's last modification"
        )
    if telemetry.problem is not None:
        missing["telemetry"] = telemetry.problem
    status, reason = _status(report)
    notes = _notes(report, beside, is_good=reason is None)
    key, name = _names(report, beside.facts, given)
    assert key is not None
    facts = beside.facts if beside.facts.is_of(report.model) else Facts()
    log_of_call = b"" if "log" in files else beside.log_of_call
    environment = report.said.text("environment")
    return Draft(
        source=source,
        tool=tool,
        model=key,
        model_id=name,
        model_path=report.said.word("model_path"),
        environment=given.environment or (environment and as_key(environment)),
        facts=report.said.facts(facts),
        iteration=reading.positive_int(report.said.text("iteration")),
        started=report.started or file.modified,
        metrics=dict(answer.metrics) | _sampled(report, telemetry.content),
        asked={"type": report.kind, **report.asked.options},
        fits=report.asked.fits,
        workload=given.workload or report.workload,
        samples=answer.samples,
        spreads=report.figures.spreads,
        observed=_observed(report),
        phases=_phases(report) if telemetry.content else (),
        files=_files(files, beside, telemetry),
        originals=tuple(_originals(file, files, beside, telemetry)),
        log_of_call=log_of_call,
        unavailable=missing,
        status=status,
        status_reason=reason,
        notes=notes,
    )


def _status(report: Report) -> tuple[Status, str | None]:
    """The status of a run, and why it is none that counts."""
    if report.failure is not None:
        return "failed", report.failure
    if not report.answer.complete:
        return "invalid", "; ".join(report.answer.problems)
    return "ok", None


def _notes(report: Report, beside: Sidecars, *, is_good: bool) -> tuple[str, ...]:
    """What is to be said of a run: by the tool where it is a good one, and by what lies beside its report."""
    answer = report.answer
    notes = (*answer.problems, *answer.notes, *report.notes) if is_good else ()
    if beside.notes:
        notes += (f"noted beside the report: {_words(beside.notes)}",)
    if beside.facts.answer is not None:
        notes += (f"{ANSWERED}{beside.facts.answer}",)
    return notes


def _observed(report: Report) -> Observed:
    """As the workload's reader found it, and what the mapping names for the rest."""
    seen = report.answer.observed
    named = report.said.observed().model_dump(exclude_none=True, exclude={"settings"})
    missing = {
        name: value for name, value in named.items() if getattr(seen, name) is None
    }
    return seen.model_copy(update=missing)


def _files(
    own: Mapping[str, bytes], beside: Sidecars, telemetry: TelemetryBeside
) -> dict[str, bytes]:
    """What is a run's own, by role."""
    files = {**own, "log": own.get("log", beside.log)}
    files["telemetry"] = telemetry.content
    return {role: found for role, found in files.items() if found}


def _originals(
    file: ResultFile,
    own: Mapping[str, bytes],
    beside: Sidecars,
    telemetry: TelemetryBeside,
) -> Iterator[tuple[bytes, str]]:
    """Files that were read and are not a run's own as they are."""
    logs = (beside.log, b"" if "log" in own else beside.log_of_call)
    if file.content not in (*own.values(), *logs):
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


def _names(report: Report, facts: Facts, given: Given) -> tuple[str | None, str | None]:
    """The key of the model, and its name: as notes say it, else the report, else as the file is called that it was
    read from. None where nothing says either."""
    path = (report.said.word("model_path") or "").replace("\\", "/")
    file = path.rpartition("/")[2]
    family = report.shaped.family and as_key(report.shaped.family)
    if report.shaped.is_mixed and not file:
        return family, None
    if facts.model_id is not None and facts.is_of(report.model) and not file:
        return given.model_key(facts.model_id) or as_key(facts.model_id), facts.model_id
    if report.model is not None:
        return given.model_key(report.model) or as_key(report.model), report.model
    if file:
        key = given.model_key(path) or given.model_key(file)
        return key or as_key(file.removesuffix(".gguf")), file
    return given.model or family, None

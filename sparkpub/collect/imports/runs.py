"""Results of tools as runs, by their mappings (`tools/*.yaml`).

What all of them share: a file is one object, or JSON lines of several; a run's log, notes and telemetry lie beside its
report (`folder`); runs of one cell must have measured requests of the same size, which most reports say as a mean
only. A tool with several forms of reports has a mapping of each.
"""

import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparkpub.collect.imports.benchmark_spark import BenchmarkSpark
from sparkpub.collect.imports.facts import Facts, SaidOfRun
from sparkpub.collect.imports.folder import Beside, Folder
from sparkpub.collect.imports.given import NAMELESS, UNDATED, Draft, Given, Left
from sparkpub.collect.imports.matching import SAME_SIZE
from sparkpub.collect.imports.telemetry import TelemetryBeside, samples
from sparkpub.collect.phases import MEASURE
from sparkpub.plan.workloads import parser_of
from sparkpub.plan.workloads.base import Answer
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record import sampled_metrics
from sparkpub.record.errors import field_problems
from sparkpub.record.record import MetricValue, Moment, Phase, Status
from sparkpub.record.telemetry import parse
from sparkpub.tools import cells, forms, reading
from sparkpub.tools.asked import AskedLoad, as_key, asked
from sparkpub.tools.cells import CellError, local_moment
from sparkpub.tools.forms import FileError, ResultFile, spread_out
from sparkpub.tools.language import ResultMapping
from sparkpub.tools.reader import ReportReading
from sparkpub.tools.shapes import SHAPES
from sparkpub.tools.shapes.base import Document, ShapedRun
from sparkpub.tools.where import at, holds

NO_RESULT = "not a result of"
NO_SUCCESS = "no request succeeded"
_MOST_NOTES = 1000
_OF_PHASE = (
    "gpu_power_mean_watt",
    "gpu_energy_joule",
    "gpu_utilization_mean_percent",
    "gpu_clock_sm_mean_mhz",
)
"""The sampler's metrics of a client's run; none of the whole run, which began before the client did."""


@dataclass(frozen=True)
class _Run:
    """One run of a file: where values are looked for, what is kept of it, and the mapping that it is of, if any."""

    shaped: ShapedRun
    said: Document
    kept: Document
    mapping: ResultMapping | None = None

    def files(self, file: ResultFile) -> Mapping[str, bytes]:
        """Its evidence by role; a file that holds nothing else is kept as it is."""
        if self.shaped.files:
            return self.shaped.files
        is_object = file.suffix in forms.JSON and file.content.lstrip()[:1] == b"{"
        if is_object and forms.of_json(file.content) == [self.kept]:
            return {"report": file.content}
        return {"report": json.dumps(self.kept, indent=1).encode()}


class ToolReader:
    """Reads the reports of one tool."""

    def __init__(
        self,
        mappings: Sequence[ResultMapping],
        given: Given,
        *,
        among_others: bool = False,
    ) -> None:
        self.tool = str(mappings[0].tool)
        self.found: list[Draft | Left] = []
        """What the files that were taken hold."""
        self._given, self._mappings = given, mappings
        self._among_others = among_others
        named = (mapping.shape for mapping in mappings if mapping.shape is not None)
        self._shape = SHAPES[next(named, None)]
        self._named: dict[str, str | None] = {}
        """The load that a workload stands for, once a run has shown it."""
        self._sizes: dict[tuple[str, str], tuple[float, ...]] = {}
        """Mean tokens of a request in each cell, by its first run that says them."""

    def takes(self, beside: Beside) -> bool:
        """Whether a file is a report, which is then kept. Raises FileError for one that is damaged."""
        file, suffixes = beside.file, self._shape.suffixes
        is_other = suffixes is not None and file.suffix not in suffixes
        if is_other or not self._may_be_report(file):
            return False
        runs = [run for shaped in self._shape.runs(file) for run in self._of(shaped)]
        if self._among_others:
            runs = [run for run in runs if run.shaped.is_sure]
        if not any(run.mapping or run.shaped.omitted for run in runs):
            return False
        twin = self._shape.twin(file)
        if twin is None:
            self.found += self._read(runs, beside)
        elif file.suffix != ".csv" and beside.folder.is_sidecar(file):
            return False  # it is read with the report
        else:
            why = f"the same results as {twin}"
            self.found.append(Left(file.source, why, refused=False))
        return True

    def passes_over(self, beside: Beside) -> bool:
        """Whether a file is one of those that lie beside reports; a CSV may be one itself."""
        file = beside.file
        if not self._may_be_report(file):
            return True
        may_be_table = file.suffix == ".csv" and ".csv" in (self._shape.suffixes or ())
        return beside.folder.is_sidecar(file) and not may_be_table

    def _may_be_report(self, file: ResultFile) -> bool:
        """Whether a file, by its name and its folders, is one of those that the tool's mapping speaks of."""
        first = self._mappings[0]
        if not fnmatch.fnmatch(file.name, first.files):
            return False
        folders = Path(file.source).parts[:-1] if first.others else ()
        return {*folders, file.name}.isdisjoint(first.others)

    def _of(self, shaped: ShapedRun) -> list[_Run]:
        """The runs of a document, by the first mapping that it is of."""
        for mapping in self._mappings:
            runs = [
                _Run(shaped, said, kept, mapping)
                for said, kept in _spread(mapping, shaped.said)
                if holds(said, mapping.when)
            ]
            if runs:
                return runs
        return [_Run(shaped, shaped.said, shaped.said)]

    def _read(self, runs: Sequence[_Run], beside: Beside) -> Iterator[Draft | Left]:
        """What the runs of a file become."""
        beside.is_of_one_run = len(runs) == 1
        for number, run in enumerate(runs, 1):
            source = beside.file.source
            if run.shaped.omitted:
                yield Left(source, run.shaped.omitted, refused=False)
                continue
            if len(runs) > 1:
                source += f", run {number}"
            if run.mapping is None:
                continue
            try:
                yield self._run(source, run, run.mapping, beside)
            except CellError as problem:
                yield Left(source, str(problem))
            except ValidationError as error:
                yield Left(source, "; ".join(field_problems(error)))

    def _run(
        self, source: str, run: _Run, mapping: ResultMapping, beside: Beside
    ) -> Draft:
        """Raises CellError for a number that is none, and where the run cannot be placed."""
        given, file, files = self._given, beside.file, run.files(beside.file)
        more = SHAPES[mapping.shape].beside(
            beside.told, beside.log or beside.log_of_call
        )
        document = {**more, **run.said, "noted": beside.notes}
        said = SaidOfRun(mapping.run, mapping.same, document)
        found = ReportReading(mapping, document)
        answer = _answer(found, files, beside)
        load = asked(mapping, document)
        key, name = _names(said, run.shaped, beside.facts, given)
        if key is None:
            raise CellError(NAMELESS)
        load_name, notes = self._load_name(said, load, mapping, beside)
        sizes = _sizes(mapping, document, load, answer)
        workload, noted = self._workload(key, load_name, sizes)
        notes += noted
        started = _started(said)
        telemetry = _telemetry(started, answer, beside)
        phases = _phases(answer) if telemetry.content else ()
        status, reason = _status(found, answer)
        notes = (*answer.problems, *answer.notes, *notes) if reason is None else ()
        is_of_it = beside.facts.is_of(said.word("model_id") or said.word("model"))
        facts = said.facts(beside.facts if is_of_it else Facts())
        environment = said.text("environment")
        return Draft(
            source,
            self.tool,
            key,
            name,
            given.environment or (environment and as_key(environment)),
            reading.positive_int(said.text("iteration")),
            started or file.modified,
            dict(answer.metrics) | _sampled(telemetry.content, phases),
            {"type": str(mapping.reads or mapping.tool), **load.options},
            model_path=said.word("model_path"),
            facts=facts,
            fits=load.fits,
            workload=workload,
            samples=answer.samples,
            spreads=found.figures.spreads,
            observed=said.observed(facts, name, answer.observed),
            phases=phases,
            files=_files(files, beside, telemetry),
            originals=tuple(_originals(files, beside, telemetry)),
            unavailable=_missing(started, telemetry, beside),
            status=status,
            status_reason=reason,
            notes=(*notes, *_noted(beside)),
        )

    def _workload(
        self, model: str, load: str | None, sizes: tuple[float, ...]
    ) -> tuple[str | None, tuple[str, ...]]:
        """The key of a run's workload, by the name of its load and the sizes of its requests, and what is to be said of
        it. Raises CellError where --workload names another one."""
        given = self._given.workload
        workload = given or load
        if workload is None:
            return None, ()
        named = self._named.setdefault(workload, load)
        if named != load:
            what = f"{load} is another load than {named}"
            raise CellError(f"{what}, which --workload names; leave it out")
        other = self._of_other_size((model, workload), sizes)
        if other is None:
            return workload, ()
        if given is not None:
            raise CellError(f"{other} of {workload}; leave out --workload")
        about = "-".join(f"{float(f'{size:.2g}'):.0f}" for size in sizes)
        what = "the results do not say which lengths were asked for"
        return as_key(f"{workload}-about{about}"), (f"{other} of {workload}; {what}",)

    def _load_name(
        self,
        said: SaidOfRun,
        load: AskedLoad,
        mapping: ResultMapping,
        beside: Beside,
    ) -> tuple[str | None, tuple[str, ...]]:
        """The name of the load, and what is to be said of it. One that nothing says is named after the file, and where
        a tool writes several files for each run after the folder, too."""
        named, given = said.text("workload"), self._given
        if named is not None:
            return as_key(named), load.notes
        if load.is_known:
            return load.name, load.notes
        if given.workload is not None or given.matrix is not None:
            return None, load.notes
        name = beside.file.stem
        if mapping.files != "*" or mapping.others:
            name = f"{beside.file.path.parent.name}-{name}"
        note = "the results do not say what was asked for; the load is named after the file"
        return as_key("-".join(filter(None, (name, load.name)))), (*load.notes, note)

    def _of_other_size(
        self, cell: tuple[str, str], sizes: tuple[float, ...]
    ) -> str | None:
        """How the requests of a run differ from those of its cell, in words. A run whose requests failed has no sizes,
        or those of the requests that went well."""
        first = self._sizes.setdefault(cell, sizes)
        if not first:
            self._sizes[cell] = sizes
        for one, two in zip(first, sizes, strict=False):
            if abs(one - two) > SAME_SIZE * max(one, two):
                return (
                    f"{two:.0f} tokens per request in place of {one:.0f} in another run"
                )
        return None


FileReader = BenchmarkSpark | ToolReader
"""Reads the results of one tool."""


def read_files(folder: Folder, readers: Sequence[FileReader]) -> list[Draft | Left]:
    """The runs of a file or folder: the readers are offered every file, and the first that takes it has it."""
    others: list[Draft | Left] = []
    for file in folder.files():
        if isinstance(file, Left):
            others.append(file)
            continue
        beside = Beside(file, folder)
        if not beside.layout.is_other(file.name):
            others += _offered(beside, readers)
    found = [*others, *(item for reader in readers for item in reader.found)]
    return sorted(found, key=lambda item: item.source)


def _offered(beside: Beside, readers: Sequence[FileReader]) -> Iterator[Left]:
    """Offer a file to the readers: why none takes it, if something has to be said."""
    file, problem = beside.file, ""
    for reader in readers:
        try:
            if reader.takes(beside):
                return
        except FileError as error:
            problem = problem or str(error)
    only = readers[0] if len(readers) == 1 else None
    if problem and (only is not None or file.suffix in forms.JSON):
        yield Left(file.source, problem)
        return
    is_sidecar = beside.folder.is_sidecar
    if not (is_sidecar(file) if only is None else only.passes_over(beside)):
        name = "a known tool" if only is None else only.tool
        yield Left(file.source, f"{NO_RESULT} {name}", refused=False)


def _spread(
    mapping: ResultMapping, document: Document
) -> Iterator[tuple[Document, Document]]:
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


def _answer(found: ReportReading, files: Mapping[str, bytes], beside: Beside) -> Answer:
    """With what the workload's reader finds in the logs beside it, where it is one of a workload."""
    if found.mapping.reads is not None:
        parse_ = parser_of(found.mapping.reads)
        assert parse_ is not None
        outputs = {role: content for role, content in files.items() if role != "log"}
        return parse_(files.get("log", beside.log), outputs, None)
    is_complete = any(reading.known(found.metrics, name) for name in found.metrics)
    problems = found.problems
    if not is_complete:
        problems.append("the report holds none of the figures")
    return Answer(
        found.metrics,
        reading.observed(found.facts),
        complete=is_complete,
        problems=tuple(problems),
        notes=found.notes,
        samples=found.figures.samples,
        deviations=found.deviations,
    )


def _status(found: ReportReading, answer: Answer) -> tuple[Status, str | None]:
    """The status of a run, and why it is none that counts."""
    if not found.succeeded:
        return "failed", NO_SUCCESS
    if not answer.complete:
        return "invalid", "; ".join(answer.problems)
    return "ok", None


def _sizes(
    mapping: ResultMapping, document: Mapping[str, Any], load: AskedLoad, answer: Answer
) -> tuple[float, ...]:
    """Mean tokens of a request, where nothing says what was asked for."""
    requests = answer.observed.requests
    if not requests or {"dataset", "input_tokens"} & set(load.options):
        return ()
    totals = [reading.number(at(document, where)) for where in mapping.sizes]
    return tuple((total or 0) / requests for total in totals)


def _started(said: SaidOfRun) -> Moment | None:
    """When the run began: as the report says, else its end without the seconds before."""
    started = cells.moment(said.text("started"))
    ended = cells.moment(said.text("ended"))
    took = reading.number(at(said.document, said.run.seconds))
    if started is not None or ended is None or took is None:
        return started or ended
    try:
        began = datetime.fromisoformat(ended.value) - timedelta(seconds=round(took))
    except OverflowError:
        return ended
    return local_moment(began) or ended


def _names(
    said: SaidOfRun, shaped: ShapedRun, facts: Facts, given: Given
) -> tuple[str | None, str | None]:
    """The key of the model, and its name: as notes say it, else the report, else as the file is called that it was
    read from. None where nothing says either."""
    model = said.word("model_id") or said.word("model")
    path = (said.word("model_path") or "").replace("\\", "/")
    file = path.rpartition("/")[2]
    family = shaped.family and as_key(shaped.family)
    if shaped.is_mixed and not file:
        return family, None
    if facts.model_id is not None and facts.is_of(model) and not file:
        model = facts.model_id
    if model is not None:
        return given.model_key(model) or as_key(model), model
    if file:
        key = given.model_key(path) or given.model_key(file)
        return key or as_key(file.removesuffix(".gguf")), file
    return given.model or family, None


def _telemetry(
    started: Moment | None, answer: Answer, beside: Beside
) -> TelemetryBeside:
    """The telemetry beside a report, its times counted from the start of the run."""
    if not beside.telemetry:
        return TelemetryBeside()
    began = None
    if started is not None:
        began = datetime.fromisoformat(started.value).replace(tzinfo=None)
    seconds = answer.observed.measured_seconds
    return samples(beside.telemetry, began, beside.layout.telemetry, seconds)


def _missing(
    started: Moment | None, telemetry: TelemetryBeside, beside: Beside
) -> dict[str, str]:
    """What a record cannot have, and why."""
    missing = {}
    if not beside.log and not beside.log_of_call:
        missing["log"] = "none that can be read lay beside the report"
    if started is None:
        missing["started"] = UNDATED
    if telemetry.problem is not None:
        missing["telemetry"] = telemetry.problem
    return missing


def _phases(answer: Answer) -> tuple[Phase, ...]:
    """A client measures from its start to its end; nothing where the report does not say how long."""
    seconds = answer.observed.measured_seconds
    if not seconds:
        return ()
    return (Phase(name=MEASURE, start_seconds=0.0, end_seconds=seconds),)


def _sampled(telemetry: bytes, phases: Sequence[Phase]) -> dict[str, MetricValue]:
    """The sampler's metrics over the measured phase."""
    if not phases:
        return {}
    (phase,) = phases
    table = parse(reading.text(telemetry))
    found = sampled_metrics.metrics(table, phase.end_seconds, phase)
    return {
        name: value
        for name, value in found.items()
        if name in _OF_PHASE and value.value is not None
    }


def _files(
    own: Mapping[str, bytes], beside: Beside, telemetry: TelemetryBeside
) -> dict[str, bytes]:
    """What is a run's own, by role."""
    files = {**own, "log": own.get("log", beside.log), "telemetry": telemetry.content}
    return {role: found for role, found in files.items() if found}


def _originals(
    own: Mapping[str, bytes], beside: Beside, telemetry: TelemetryBeside
) -> Iterator[tuple[str, bytes, str]]:
    """Files that were read and are not a run's own as they are."""
    file, notes = beside.file, beside.nearest_notes
    log_of_call = b"" if "log" in own else beside.log_of_call
    if file.content not in (*own.values(), beside.log, log_of_call):
        yield "original", file.content, file.suffix
    if telemetry.content and beside.telemetry != telemetry.content:
        yield "original", beside.telemetry, ".csv"
    if notes is not None:
        yield "original", notes.content, notes.suffix
    if log_of_call:
        yield "log", log_of_call, ".log"


def _noted(beside: Beside) -> Iterator[str]:
    """What people noted, as far as it is short, and what the model answered."""
    plain = [
        f"{name}={value}"
        for name, value in beside.notes.items()
        if isinstance(value, str | int | float | bool)
    ]
    if beside.notes:
        yield f"noted beside the report: {', '.join(plain)[:_MOST_NOTES]}"
    if beside.facts.answer is not None:
        yield f"{ANSWERED}{beside.facts.answer}"

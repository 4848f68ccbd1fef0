"""One run of a file as the draft of a record: its names, its load, its figures, and what lies beside it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sparkpub.collect.imports.doubtful import invented
from sparkpub.collect.imports.facts import Facts, SaidOfRun
from sparkpub.collect.imports.folder import Beside
from sparkpub.collect.imports.given import (
    UNDATED,
    Draft,
    Given,
    Left,
)
from sparkpub.collect.imports.telemetry import samples
from sparkpub.collect.phases import MEASURE
from sparkpub.plan.workloads import parser_of
from sparkpub.plan.workloads.base import Answer
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record import sampled_metrics
from sparkpub.record.record import MetricValue, Moment, Phase, Status
from sparkpub.record.telemetry import parse
from sparkpub.tools import cells, forms, reading
from sparkpub.tools.asked import AskedLoad, as_key, asked
from sparkpub.tools.cells import local_moment
from sparkpub.tools.forms import ResultFile
from sparkpub.tools.language import (
    TABLE,
    MappingFile,
    ResultMapping,
)
from sparkpub.tools.reader import ReportReading
from sparkpub.tools.shapes.base import Document, ReportShape, ShapedRun
from sparkpub.tools.where import at

NO_SUCCESS = "no request succeeded"
SAME_SIZE = 0.1
"""Mean lengths within this share of each other are one load: random lengths vary, and another load is another size."""
_MOST_NOTES = 1000
_OF_PHASE = (
    "gpu_power_mean_watt",
    "gpu_energy_joule",
    "gpu_utilization_mean_percent",
    "gpu_clock_sm_mean_mhz",
)
"""The sampler's metrics of a client's run; none of the whole run, which began before the client did."""


class UnplacedError(Exception):
    """A run that cannot be placed; the text says why, and what to do."""


@dataclass(frozen=True)
class FoundRun:
    """One run of a file: where values are looked for, what is kept of it, and the mapping that it is of."""

    shaped: ShapedRun
    said: Document
    kept: list[Document]
    mapping: ResultMapping
    shape: ReportShape

    def document(self, beside: Beside) -> Document:
        """Where its values are looked for, with what lies beside the file."""
        more = self.shape.beside(beside.told, beside.log or beside.log_of_call)
        lines = forms.beside(self.files(beside).get("requests", b""))
        return {"lines": lines, **more, **self.said, "noted": beside.notes}

    def files(self, beside: Beside) -> Mapping[str, bytes]:
        """Its evidence by role, with a file of its requests."""
        files = self._own(beside.file)
        name = self.mapping.lines
        return files if name is None else {**files, "requests": beside.read([name])}

    def _own(self, file: ResultFile) -> Mapping[str, bytes]:
        """What its file holds of it; one that holds nothing else is kept as it is."""
        if self.shaped.files is not None:
            return self.shaped.files
        is_object = file.suffix in forms.JSON and file.content.lstrip()[:1] == b"{"
        if is_object and forms.of_json(file.content) == self.kept:
            return {"report": file.content}
        kept = self.kept[0] if len(self.kept) == 1 else self.kept
        return {"report": json.dumps(kept, indent=1).encode()}


class Drafts:
    """Makes drafts of runs, whose loads and sizes are compared over all files."""

    def __init__(self, given: Given, declared: MappingFile | None) -> None:
        self._given, self._declared = given, declared
        self._sizes: dict[tuple[str, str], tuple[float, ...]] = {}
        """Mean tokens of a request in each cell, by its first run that says them."""
        self._kept: dict[bytes, str] = {}
        """Reports so far, and where each stood first."""
        self._counts: Counter[object] = Counter()
        """Runs of a table in each cell, which are numbered in their order."""

    def draft(self, source: str, run: FoundRun, beside: Beside) -> Draft | Left:
        """The draft of a run. Raises UnplacedError for one that cannot be placed, and ValidationError."""
        mapping, given = run.mapping, self._given
        file, files = beside.file, run.files(beside)
        is_table = mapping.tool == TABLE
        first = self._kept.setdefault(files.get("report", b""), source)
        if is_table and first != source:
            return Left(source, f"the same as {first}", refused=False)
        document = run.document(beside)
        said = SaidOfRun(mapping, document)
        of_figures = "published" if is_table else run.shape.source
        found = ReportReading(mapping, document, of_figures)
        if is_table:
            if said_so := invented(document):
                return Left(source, said_so, refused=False)
            _refuse_cells(found.metrics)
        answer, load = _answer(found, files, beside), asked(mapping, document)
        model, name = _names(said, run.shaped, beside.facts, given)
        if model is None:
            raise UnplacedError("it does not name the model; give --model")
        load_name, of_load = self._load_name(said, load, beside)
        sizes = _sizes(mapping, document, load, answer)
        workload, of_size = self._workload(model, load_name, sizes)
        environment = said.text("environment") or given.environment
        started = _started(said)
        seconds = answer.observed.measured_seconds
        telemetry = samples(beside.telemetry, beside.layout.telemetry, seconds)
        facts = _facts(said, beside)
        measured = _measured(found, answer, said, run.shaped.missing, telemetry)
        notes = (*answer.problems, *answer.notes, *of_load, *of_size)
        if measured["status_reason"]:
            notes = ()  # it says so already
        return Draft(
            source=source,
            tool=mapping.tool,
            is_of_table=is_table,
            model=model,
            model_id=name,
            model_path=said.text("model_path"),
            environment=environment and as_key(environment),
            workload=workload,
            iteration=self._iteration(said, model, environment, workload),
            started=started or file.modified,
            asked={"type": mapping.reads or mapping.tool, **load.options},
            facts=facts,
            observed=said.observed(facts, name, answer.observed),
            measured=measured,
            files=_files(files, beside, telemetry),
            originals=tuple(self._originals(files, beside, telemetry)),
            unavailable=_missing(started, beside),
            notes=(*notes, *_noted(beside)),
        )

    def _iteration(self, said: SaidOfRun, *cell: str | None) -> int | None:
        """As the run says; the rows of a table that do not are numbered in their order."""
        number = reading.positive_int(said.text("iteration"))
        if number is None and said.mapping.tool == TABLE:
            self._counts[cell] += 1
            number = self._counts[cell]
        return number

    def _originals(
        self, own: Mapping[str, bytes], beside: Beside, telemetry: bytes
    ) -> Iterator[tuple[str, bytes, str]]:
        """Files that were read and are not a run's own as they are."""
        file, notes = beside.file, beside.noted
        log_of_call = b"" if "log" in own else beside.log_of_call
        is_own = file.content in (*own.values(), beside.log, log_of_call)
        if not is_own:
            yield "original", file.content, file.suffix
        if telemetry:
            yield "original", beside.telemetry, ".csv"
        if notes is not None:
            yield "original", notes.content, notes.suffix
        if log_of_call:
            yield "log", log_of_call, ".log"
        if self._declared is not None:
            yield "original", self._declared.content, ".yaml"

    def _workload(
        self, model: str, workload: str | None, sizes: tuple[float, ...]
    ) -> tuple[str | None, tuple[str, ...]]:
        """The key of a run's workload, by the name of its load and the sizes of its requests, and what is to be said of
        it."""
        if workload is None:
            return None, ()
        other = self._of_other_size((model, workload), sizes)
        if other is None:
            return workload, ()
        about = "-".join(f"{float(f'{size:.2g}'):.0f}" for size in sizes)
        what = "the results do not say which lengths were asked for"
        return as_key(f"{workload}-about{about}"), (f"{other} of {workload}; {what}",)

    def _load_name(
        self, said: SaidOfRun, load: AskedLoad, beside: Beside
    ) -> tuple[str | None, tuple[str, ...]]:
        """The name of the load, and what is to be said of it. One that nothing says is named after the file, and where
        a tool writes several files for each run after the folder, too."""
        named, given = said.text("workload"), self._given
        if named is not None:
            return as_key(named), load.notes
        if load.is_known:
            return load.name, load.notes
        if given.matrix is not None:
            return None, load.notes
        name = beside.file.stem
        if said.mapping.files != "*" or said.mapping.others:
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


def _refuse_cells(metrics: Mapping[str, MetricValue]) -> None:
    """Raise UnplacedError for a cell of somebody's table that is no figure: they can correct it."""
    for name, metric in metrics.items():
        if metric.value is None:
            remedy = "write a number, as 1234.5, or nothing"
            raise UnplacedError(f"{name} is {metric.reason}; {remedy}")


def _answer(found: ReportReading, files: Mapping[str, bytes], beside: Beside) -> Answer:
    """With what the workload's reader finds in the logs beside it, where it is one of a workload."""
    log = files.get("log", beside.log)
    of_workload = (
        None if found.mapping.reads is None else parser_of(found.mapping.reads)
    )
    if of_workload is not None and (log or found.source == "report"):
        outputs = {role: content for role, content in files.items() if role != "log"}
        answer = of_workload(log, outputs, None)
        if found.source == "report":
            return answer
        return replace(answer, metrics={**answer.metrics, **found.metrics})
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


def _status(
    found: ReportReading, answer: Answer, said: SaidOfRun, missing: str
) -> tuple[Status, str | None]:
    """The status of a run, and why it is none that counts."""
    code = _exit_code(said)
    if code:
        return "failed", f"exit status {code}"
    if not found.succeeded:
        return "failed", NO_SUCCESS
    if missing or not answer.complete:
        return "invalid", missing or "; ".join(answer.problems)
    return "ok", None


def _exit_code(said: SaidOfRun) -> int | None:
    """Below zero where a signal ended the tool."""
    code = reading.number(at(said.document, said.mapping.run.exit_code))
    return None if code is None else int(code)


def _measured(
    found: ReportReading,
    answer: Answer,
    said: SaidOfRun,
    missing: str,
    telemetry: bytes,
) -> dict[str, Any]:
    """The fields of the record that are as they are."""
    phases = _phases(answer) if telemetry else ()
    status, reason = _status(found, answer, said, missing)
    return {
        "metrics": {**answer.metrics, **_sampled(telemetry, phases)},
        "samples": dict(answer.samples),
        "spreads": found.figures.spreads,
        "phases": phases,
        "status": status,
        "status_reason": reason,
        "exit_code": _exit_code(said),
    }


def _facts(said: SaidOfRun, beside: Beside) -> Facts:
    """What is said of server and machine; what lies beside the file counts where it is about the run's model."""
    is_of_it = beside.facts.is_of(said.text("model_id") or said.text("model"))
    return said.facts(beside.facts if is_of_it else Facts())


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
    took = said.number("seconds")
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
    short, model_id = said.text("model"), said.text("model_id")
    model = model_id or short
    path = (said.text("model_path") or "").replace("\\", "/")
    file = path.rpartition("/")[2]
    family = shaped.family and as_key(shaped.family)
    if shaped.is_mixed and not file:
        return family, None
    if facts.model_id is not None and facts.is_of(model) and not file:
        model = facts.model_id
    if model is not None:
        called = short if model_id and short else model
        return given.model_key(model) or as_key(called), model
    if file:
        key = given.model_key(path) or given.model_key(file)
        return key or as_key(file.removesuffix(".gguf")), file
    return given.model or family, None


def _missing(started: Moment | None, beside: Beside) -> dict[str, str]:
    """What a record cannot have, and why."""
    missing = {}
    if not beside.log and not beside.log_of_call:
        missing["log"] = "none that can be read lay beside the report"
    if started is None:
        missing["started"] = UNDATED
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
    own: Mapping[str, bytes], beside: Beside, telemetry: bytes
) -> dict[str, bytes]:
    """What is a run's own, by role."""
    files = {**own, "log": own.get("log", beside.log), "telemetry": telemetry}
    return {role: found for role, found in files.items() if found}


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

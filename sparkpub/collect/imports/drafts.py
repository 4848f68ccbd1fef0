"""One run of a file as the draft of a record: its names, its load, its figures, and what lies beside it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from sparkpub.collect.imports.doubtful import invented
from sparkpub.collect.imports.facts import Facts, SaidByName, amount, counted, said_in
from sparkpub.collect.imports.folder import Beside
from sparkpub.collect.imports.given import (
    CONTAINER,
    UNDATED,
    Given,
    Left,
)
from sparkpub.collect.imports.telemetry import samples
from sparkpub.collect.phases import MEASURE
from sparkpub.plan.workloads import parser_of
from sparkpub.plan.workloads.base import Answer
from sparkpub.plan.workloads.clients import LeftBehind
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record import sampled_metrics
from sparkpub.record.record import (
    Machine,
    MetricValue,
    Moment,
    Observed,
    Phase,
    Status,
)
from sparkpub.record.telemetry import parse
from sparkpub.tools import cells, forms, reading
from sparkpub.tools.asked import AskedLoad, as_key, asked
from sparkpub.tools.cells import local_moment
from sparkpub.tools.language import TABLE, ResultMapping
from sparkpub.tools.reader import ReportReading
from sparkpub.tools.shapes.base import Document, ReportShape, ShapedRun
from sparkpub.tools.variant import variant
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


@dataclass(frozen=True)
class FoundRun:
    """One run of a file: where values are looked for, what is kept of it, the mapping that it is of, and what lies
    beside the file."""

    shaped: ShapedRun
    row: Document
    kept: Document
    mapping: ResultMapping
    shape: ReportShape
    beside: Beside
    declared: bytes | None
    """The file of a mapping of somebody's."""

    @property
    def is_table(self) -> bool:
        """Whether it is of a table of anybody's."""
        return self.mapping.tool == TABLE

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Its own evidence by role, with its requests and its log where they are there."""
        beside, files = self.beside, dict(self._own)
        if self.mapping.lines is not None:
            files["requests"] = beside.read(self.mapping.lines)
        files.setdefault("log", beside.log)
        return {role: content for role, content in files.items() if content}

    @property
    def _own(self) -> Mapping[str, bytes]:
        """What its file holds of it; one that holds nothing else is kept as it is."""
        if self.shaped.files is not None:
            return self.shaped.files
        file = self.beside.file
        is_object = file.suffix in forms.JSON and file.content.lstrip()[:1] == b"{"
        if is_object and forms.of_json(file.content) == [self.kept]:
            return {"report": file.content}
        return {"report": json.dumps(self.kept, indent=1).encode()}

    @cached_property
    def document(self) -> Document:
        """Where its values are looked for, with what lies beside the file."""
        beside = self.beside
        more = self.shape.beside(beside.told, beside.log or beside.log_of_call)
        lines = forms.beside(self.files.get("requests", b""))
        return {"lines": lines, **more, **self.row, "noted": beside.notes}

    @cached_property
    def said(self) -> SaidByName:
        """What it says of its names and of what served it."""
        return said_in(self.document, self.mapping.run, self.mapping.same)

    def text(self, name: str) -> str | None:
        """What it says of a name, as text."""
        return cells.text(self.said[name])

    @cached_property
    def found(self) -> ReportReading:
        """What its report says."""
        source = "published" if self.is_table else self.shape.source
        return ReportReading(self.mapping, self.document, source)

    @cached_property
    def answer(self) -> Answer:
        """With what the workload's reader finds in the logs beside it, where it is one of a workload."""
        found, files = self.found, dict(self.files)
        log, reads = files.pop("log", b""), self.mapping.reads
        of_workload = None if reads is None else parser_of(reads)
        if of_workload is None or not (log or found.source == "report"):
            return LeftBehind(b"", {}).whole(found)
        answer = of_workload(log, files, None)
        if found.source == "report":
            return answer
        return replace(answer, metrics={**answer.metrics, **found.metrics})

    @cached_property
    def load(self) -> AskedLoad:
        """What was asked for."""
        return asked(self.mapping, self.document)

    @property
    def facts(self) -> Facts:
        """What is said of server and machine; what lies beside the file counts where it is about the run's model."""
        beside = self.beside.facts
        is_of_it = beside.is_of(self.text("model_id") or self.text("model"))
        return (beside if is_of_it else Facts()).with_own(self.said)

    def names(self, given: Given) -> tuple[str | None, str | None]:
        """The key of the model, and its name: as notes say it, else the report, else as the file is called that it was
        read from. None where nothing says either."""
        short, model_id = self.text("model"), self.text("model_id")
        model, noted = model_id or short, self.beside.facts
        path = (self.text("model_path") or "").replace("\\", "/")
        file = path.rpartition("/")[2]
        family = self.shaped.family and as_key(self.shaped.family)
        if self.shaped.is_mixed and not file:
            return family, None
        if noted.model_id is not None and noted.is_of(model) and not file:
            model = noted.model_id
        if model is not None:
            called = short if model_id and short else model
            return given.model_key(model) or as_key(called), model
        if file:
            key = given.model_key(path) or given.model_key(file)
            return key or as_key(file.removesuffix(".gguf")), file
        return given.model or family, None

    @cached_property
    def started(self) -> Moment | None:
        """When it began: as the report says, else its end without the seconds before."""
        started, ended = (
            cells.moment(self.text(name)) for name in ("started", "ended")
        )
        took = amount(self.said["seconds"])
        if started is not None or ended is None or took is None:
            return started or ended
        try:
            began = datetime.fromisoformat(ended.value) - timedelta(seconds=round(took))
        except OverflowError:
            return ended
        return local_moment(began) or ended

    @cached_property
    def sizes(self) -> tuple[float, ...]:
        """Mean tokens of a request, where nothing says what was asked for."""
        requests, totals = self.answer.observed.requests, self.mapping.sizes
        if not requests or {"dataset", "input_tokens"} & set(self.load.options):
            return ()
        numbers = (reading.number(at(self.document, where)) for where in totals)
        return tuple((total or 0) / requests for total in numbers)

    @cached_property
    def telemetry(self) -> bytes:
        """Samples of the sensors in our columns; empty where there are none."""
        beside, seconds = self.beside, self.answer.observed.measured_seconds
        return samples(beside.telemetry, beside.layout.telemetry, seconds)

    def measured(self) -> dict[str, Any]:
        """The fields of the record that are as they are. A client measures from its start to its end; where the report
        does not say how long, nothing says when."""
        answer, seconds = self.answer, self.answer.observed.measured_seconds
        phases: list[Phase] = []
        sampled: dict[str, MetricValue] = {}
        if self.telemetry and seconds:
            phase = Phase(name=MEASURE, start_seconds=0.0, end_seconds=seconds)
            table = parse(reading.text(self.telemetry))
            phases, sampled = [phase], sampled_metrics.metrics(table, seconds, phase)
        status, reason = self._status
        return {
            "metrics": dict(answer.metrics)
            | {
                name: sampled[name]
                for name in _OF_PHASE
                if reading.known(sampled, name)
            },
            "samples": dict(answer.samples),
            "spreads": self.found.figures.spreads,
            "phases": tuple(phases),
            "status": status,
            "status_reason": reason,
            "exit_code": self._exit_code,
        }

    @property
    def _status(self) -> tuple[Status, str | None]:
        """The status of a run, and why it is none that counts."""
        missing, answer = self.shaped.missing, self.answer
        if self._exit_code:
            return "failed", f"exit status {self._exit_code}"
        if not self.found.succeeded:
            return "failed", NO_SUCCESS
        if missing or not answer.complete:
            return "invalid", missing or "; ".join(answer.problems)
        return "ok", None

    @property
    def _exit_code(self) -> int | None:
        """Below zero where a signal ended the tool."""
        code = reading.number(self.said["exit_code"])
        return None if code is None else int(code)

    @property
    def originals(self) -> Iterator[tuple[str, bytes, str]]:
        """Files that were read and are not a run's own as they are."""
        beside, own = self.beside, self.files
        log_of_call = b"" if "log" in own else beside.log_of_call
        if beside.file.content not in (*own.values(), log_of_call):
            yield "original", beside.file.content, beside.file.suffix
        if self.telemetry:
            yield "original", beside.telemetry, ".csv"
        if beside.noted is not None:
            yield "original", beside.noted.content, beside.noted.suffix
        if log_of_call:
            yield "log", log_of_call, ".log"
        if self.declared is not None:
            yield "original", self.declared, ".yaml"

    @property
    def unavailable(self) -> dict[str, str]:
        """What its record cannot have, and why."""
        missing = {}
        if not self.beside.log and not self.beside.log_of_call:
            missing["log"] = "none that can be read lay beside the report"
        if self.started is None:
            missing["started"] = UNDATED
        return missing

    @property
    def noted(self) -> Iterator[str]:
        """What people noted, as far as it is short, and what the model answered."""
        beside = self.beside
        plain = [
            f"{name}={value}"
            for name, value in beside.notes.items()
            if isinstance(value, str | int | float | bool)
        ]
        if beside.notes:
            yield f"noted beside the report: {', '.join(plain)[:_MOST_NOTES]}"
        if beside.answer:
            yield f"{ANSWERED}{beside.answer}"


@dataclass(frozen=True)
class Draft:
    """A run with its place. `fields` are those of the record, as they are.

    `iteration` is None where the results do not number their runs: then it is the next one of its cell, in order of
    time.
    """

    source: str
    run: FoundRun
    facts: Facts
    model: str
    model_id: str | None
    environment: str | None
    """None where neither the results nor the command line name it."""
    workload: str | None
    """Key of the workload, as the results show it; None: that of the matrix."""
    iteration: int | None
    started: Moment
    observed: Observed
    machine: Machine
    fields: Mapping[str, Any]
    notes: tuple[str, ...]


class Drafts:
    """Makes drafts of runs, whose loads and sizes are compared over all files."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._sizes: dict[tuple[str, str], tuple[float, ...]] = {}
        """Mean tokens of a request in each cell, by its first run that says them."""
        self._kept: dict[bytes, str] = {}
        """Reports so far, and where each stood first."""
        self._counts: Counter[object] = Counter()
        """Runs of a table in each cell, which are numbered in their order."""

    def draft(self, source: str, run: FoundRun) -> Draft | Left:
        """The draft of a run, or why there shall be none. Raises ValidationError."""
        given, answer = self._given, run.answer
        refused = self._refused(source, run) if run.is_table else None
        if refused is not None:
            return refused
        model, model_id = run.names(given)
        if model is None:
            return Left(source, "it does not name the model; give --model")
        workload, of_load = self._workload(run, model)
        environment = run.text("environment") or given.environment
        number = reading.positive_int(run.text("iteration"))
        if number is None and run.is_table:
            self._counts[model, environment, workload] += 1
            number = self._counts[model, environment, workload]
        facts = run.facts
        if facts.nodes is None:
            named = counted(source) or counted(model_id or model)
            facts = replace(facts, nodes=named)
        observed = facts.observed(run.said, model_id, answer.observed)
        if environment is None and run.is_table and observed.engine:
            parts = variant(observed, facts.nodes).values()
            environment = "-".join([*parts, facts.variant or ""])
        elif environment is None and facts.image is not None:
            environment = CONTAINER
        machine = facts.machine_of(given.about.machine, given.machine, observed.device)
        fields = run.measured()
        notes = (*answer.problems, *answer.notes, *of_load)
        if fields["status_reason"]:
            notes = ()  # it says so already
        odd = facts.contradiction(model_id)
        return Draft(
            source=source,
            run=run,
            facts=facts,
            model=model,
            model_id=model_id,
            environment=environment and as_key(environment),
            workload=workload,
            iteration=number,
            started=run.started or run.beside.file.modified,
            observed=observed,
            machine=machine,
            fields=fields,
            notes=(*notes, *run.noted, *([odd] if odd else [])),
        )

    def _refused(self, source: str, run: FoundRun) -> Left | None:
        """Why a row of a table is no run: it was there before, nobody measured it, or a cell has to be corrected."""
        first = self._kept.setdefault(run.files.get("report", b""), source)
        why = f"the same as {first}" if first != source else invented(run.document)
        if why:
            return Left(source, why, refused=False)
        for name, metric in run.found.metrics.items():
            if metric.value is None:
                remedy = "write a number, as 1234.5, or nothing"
                return Left(source, f"{name} is {metric.reason}; {remedy}")
        return None

    def _workload(
        self, run: FoundRun, model: str
    ) -> tuple[str | None, tuple[str, ...]]:
        """The key of a run's workload, by the name of its load and the sizes of its requests, and what is to be said of
        it. A run whose requests failed has no sizes, or those of the requests that went well."""
        name, notes = self._load_name(run)
        if name is None:
            return None, notes
        cell, sizes = (model, name), run.sizes
        if not self._sizes.get(cell):
            self._sizes[cell] = sizes
        for one, two in zip(self._sizes[cell], sizes, strict=False):
            if abs(one - two) > SAME_SIZE * max(one, two):
                about = "-".join(f"{float(f'{size:.2g}'):.0f}" for size in sizes)
                note = (
                    f"{two:.0f} tokens per request in place of {one:.0f} in another run of {name}; the results do not"
                    " say which lengths were asked for"
                )
                return as_key(f"{name}-about{about}"), (*notes, note)
        return name, notes

    def _load_name(self, run: FoundRun) -> tuple[str | None, tuple[str, ...]]:
        """The name of the load, and what is to be said of it. One that nothing says is named after the file, and where
        a tool writes several files for each run after the folder, too."""
        named, load = run.text("workload"), run.load
        if named is not None:
            return as_key(named), load.notes
        if load.is_known:
            return load.name, load.notes
        if self._given.matrix is not None:
            return None, load.notes
        name = run.beside.file.stem
        if run.mapping.files != "*" or run.mapping.others:
            name = f"{run.beside.file.path.parent.name}-{name}"
        note = "the results do not say what was asked for; the load is named after the file"
        return as_key("-".join(filter(None, (name, load.name)))), (*load.notes, note)

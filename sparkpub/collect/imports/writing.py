"""Drafts to records: one place for addresses, evidence, redaction, and an import that can be repeated."""

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from sparkpub.collect import invoker, journal
from sparkpub.collect.imports.drafts import Draft, FoundRun
from sparkpub.collect.imports.given import Given, Left
from sparkpub.collect.imports.outcome import ImportOutcome
from sparkpub.plan.matrix import Model, schema_words
from sparkpub.plan.requested import with_load
from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import ImportFormatError, field_problems
from sparkpub.record.record import (
    Event,
    Evidence,
    MetricValue,
    Plan,
    Record,
    Requested,
    stem_of,
)
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import (
    CAMPAIGN_FILE,
    read_campaign,
    read_folder,
    to_json,
    write_atomic,
)

_SUFFIXES = {"log": ".log", "telemetry": ".telemetry.csv"}
_EVIDENCE_KINDS = (
    *(".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".log", ".txt", ".md"),
    *(".yaml", ".yml"),
)
"""How names of evidence end: data and text, which nothing runs, includes or shows as a page."""
_REDRAWN = re.compile(rb"(?m)^[^\n]*\r(?=[^\r\n])")
"""What was drawn over in a line of a log, as progress bars are, many times a line: after a carriage return it begins
again, unless it ends there."""
_SHARED = "original-"
"""Begins the name of a file that several runs came from."""
_UNSAID = (
    "ended",
    "duration_seconds",
    "argv",
    "telemetry",
    "gates",
    "memory",
    "reproducibility",
    "container",
)


def write(
    found: Iterable[Draft | Left],
    data: Path,
    given: Given,
    outcome: ImportOutcome,
    *,
    originals: bool = True,
) -> None:
    """Write every draft as a record with its evidence, in order of time, and count what became of each. What is there
    already is left alone."""
    matrix, folder = given.matrix, data / given.campaign
    words = schema_words() if matrix is None else matrix.words
    writer = _Writer(folder, given, Redactor(words), originals)
    for stored in read_folder(folder) if folder.is_dir() else ():
        writer.add(stored.record)
    drafts: list[Draft] = []
    for item in found:
        if isinstance(item, Draft):
            drafts.append(item)
        else:
            outcome.leave(item)
    for draft in sorted(drafts, key=lambda draft: (draft.started.value, draft.source)):
        made = writer.made(draft)
        if isinstance(made, Left):
            outcome.leave(made)
            continue
        record, files = made
        outcome.records.append(record)
        if not outcome.preview:
            writer.write(record, files)
    if writer.written:
        os.sync()  # once: to wait for every file takes longer than all the rest


@dataclass(frozen=True)
class _File:
    """A file as it may be published, and what is to be said of what was changed in it."""

    evidence: Evidence
    content: bytes
    notes: tuple[str, ...]


@dataclass
class _Writer:
    """Writes the records of a campaign. It knows those that are there: by run id, by the files that are a run's own,
    whatever they are called, and by time and figures, which several files may hold, and which are all there is where
    no files are kept."""

    folder: Path
    given: Given
    redactor: Redactor
    originals: bool
    by_id: dict[str, Record] = field(default_factory=dict)
    twins: dict[object, str] = field(default_factory=dict)
    iterations: dict[tuple[str, str, str], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    loads: dict[str, str] = field(default_factory=dict)
    """The load, as results name it, that a workload of the matrix stands for: the first one."""
    shared: dict[tuple[str, bytes, str], _File] = field(default_factory=dict)
    """Files that several runs were made of: each is redacted, and written, once."""
    written: set[str] = field(default_factory=set)
    """Their names, once they are there."""

    def add(self, record: Record) -> None:
        """Know a record."""
        self.by_id[record.run_id] = record
        number = max(record.iteration, self.iterations[record.cell])
        self.iterations[record.cell] = number
        for sign in (_proof(record), _figures(record)):
            if sign is not None:
                self.twins[sign] = record.run_id

    def made(self, draft: Draft) -> tuple[Record, list[_File]] | Left:
        """A record and its files, or why there shall be none."""
        matrix = self.given.matrix
        workload = str(draft.workload)
        if matrix is not None and len(matrix.workloads) == 1:
            (workload,) = matrix.workloads  # whatever the results call it
        cell = (draft.model, str(draft.environment), workload)
        axes = ("model", "environment", "workload")
        for axis, name in zip(axes, cell, strict=True):
            if matrix is not None and name not in getattr(matrix, f"{axis}s"):
                why = f"the matrix has no {axis} {name}"
                if getattr(draft, axis) is None:
                    why = f"does not say its {axis}; give a matrix of that one alone"
                return Left(draft.source, why)
        if draft.workload is not None:
            load = self.loads.setdefault(workload, draft.workload)
            if draft.workload != load:
                why = f"{draft.workload} is another load than {load}; give a matrix of each"
                return Left(draft.source, why)
        iteration = draft.iteration or 1 + self.iterations[cell]
        try:
            record, files = self._record(draft, cell, iteration)
        except ValidationError as error:
            return Left(draft.source, "; ".join(field_problems(error)))
        return self._twin(draft, record) or (record, files)

    def _twin(self, draft: Draft, record: Record) -> Left | None:
        """Why a record adds nothing to those known, or contradicts one; one that does neither is known from now on."""
        twin = self.twins.get(_proof(record))
        # A numbered run is its own, and so is one with a log; several files may hold the same report.
        if twin is None and draft.iteration is None and "log" not in draft.run.files:
            twin = self.twins.get(_figures(record))
        if twin is not None:
            return Left(draft.source, f"is there already, as {twin}", refused=False)
        other = self.by_id.get(record.run_id)
        if other is None:
            self.add(record)
            return None
        if other.model_copy(update={"plan": record.plan}) == record:
            return Left(draft.source, "is there already", refused=False)
        return Left(draft.source, f"another {record.run_id} is there")

    def _files(self, run: FoundRun, stem: str) -> Iterator[_File]:
        """Files beside the record, redacted."""
        for role, content in {**run.files, "telemetry": run.telemetry}.items():
            kind = "jsonl" if b"}\n{" in content else "json"
            if content:
                name = f"{stem}{_SUFFIXES.get(role, f'.{role}.{kind}')}"
                yield self._file(role, name, content)
        for item in run.originals:
            if item not in self.shared:
                role, content, suffix = item
                digest = hashlib.sha256(content).hexdigest()
                kind = suffix if suffix in _EVIDENCE_KINDS else ".txt"
                name = f"{_SHARED}{digest[:12]}.original{kind}"
                self.shared[item] = self._file(role, name, content)
            yield self.shared[item]

    def _file(self, role: str, name: str, content: bytes) -> _File:
        is_own_log = role == "log" and not name.startswith(_SHARED)
        settled = _REDRAWN.sub(b"", content) if is_own_log else content
        clean = self.redactor.content(settled)
        evidence = Evidence(
            role=role,  # type: ignore[arg-type] # one of them, or the record is refused
            path=name,
            sha256=hashlib.sha256(clean).hexdigest(),
            bytes=len(clean),
        )
        notes = []
        if settled != content:
            digest = hashlib.sha256(content).hexdigest()
            notes.append(
                f"of each line that was redrawn in the {role} its last state is kept; "
                f"the original has the SHA-256 {digest}"
            )
        if clean != settled:
            digest = hashlib.sha256(settled).hexdigest()
            notes.append(
                f"private text was replaced in the {role}, whose original has the SHA-256 {digest}"
            )
        return _File(evidence, clean, tuple(notes))

    def _record(
        self, draft: Draft, cell: tuple[str, str, str], iteration: int
    ) -> tuple[Record, list[_File]]:
        """With its files. Raises ValidationError."""
        given, run = self.given, draft.run
        stem = stem_of(cell, iteration, draft.started)
        files = [*self._files(run, stem)] if self.originals else []
        requested = _requested(draft, cell[2], given)
        metrics = draft.fields["metrics"]
        notes = [*draft.notes, *(note for file in files for note in file.notes)]
        unsaid = dict.fromkeys(_UNSAID, "the source does not say") | run.unavailable
        known = given.about.unavailable.items()
        unsaid |= {name: why for name, why in known if name not in metrics}
        if requested.environment["type"] not in ("docker", "unknown"):
            unsaid["container"] = "not a container"
        there = {file.evidence.role for file in files}
        fields = {
            "run_id": f"{given.campaign}-{stem}",
            "campaign": given.campaign,
            **dict(zip(("model", "environment", "workload"), cell, strict=True)),
            "iteration": iteration,
            "plan": Plan(position=len(self.by_id), order="as-published"),
            "started": draft.started,
            "requested": requested,
            "observed": draft.observed,
            "machine": draft.machine,
            **draft.fields,
            "metrics": {
                name: self._metric(name, each) for name, each in metrics.items()
            },
            "events": [
                Event(at_seconds=None, kind="note", text=text) for text in notes
            ],
            "evidence": [file.evidence for file in files],
            "unavailable": {
                name: why for name, why in unsaid.items() if name not in there
            },
            "origin": given.about.origin,
        }
        document = self.redactor.record(to_jsonable_python(fields))
        return with_load(Record.model_validate(document, strict=False)), files

    def _metric(self, name: str, found: MetricValue) -> MetricValue:
        """A figure, with the reason that people know where it has no value; as published, where no file is kept that it
        could be held against."""
        told = self.given.about.unavailable.get(name, found.reason)
        reason = told if found.value is None else None
        source = found.source if self.originals else "published"
        return replace(found, reason=reason, source=source)

    def write(self, record: Record, files: Iterable[_File]) -> None:
        """The record, its files, and before the first one the file of the campaign. Raises ImportFormatError where the
        campaign declares another matrix."""
        if not self.written:
            _declare(self.folder, self.given, self.redactor)
        for file in files:
            name = file.evidence.path
            if name not in self.written:
                write_atomic(self.folder / name, file.content, durable=False)
            self.written.add(name)
        journal.write(self.folder, record, durable=False)
        self.written.add(record.stem)


def _proof(record: Record) -> object:
    """The files that are a run's own; None for one without."""
    own = [item.sha256 for item in record.evidence if not item.path.startswith(_SHARED)]
    return (record.cell, frozenset(own)) if own else None


def _figures(record: Record) -> object:
    """The time and figures of a run; None for one without."""
    values = {name: record.value(name) for name in record.metrics}
    known = {item for item in values.items() if item[1] is not None}
    if not record.metrics:
        return None
    return (record.cell, record.started.value, frozenset(known))


def _declare(folder: Path, given: Given, redactor: Redactor) -> None:
    """The campaign file, once. Raises ImportFormatError where the campaign declares another matrix."""
    about, matrix = given.about, given.matrix
    document = matrix.document() if matrix else None
    path = folder / CAMPAIGN_FILE
    if path.exists():
        declared = read_campaign(folder).matrix
        if None not in (document, declared) and declared != document:
            remedy = "give the campaign a new name"
            raise ImportFormatError(
                "the campaign has another matrix", where=str(path), remedy=remedy
            )
        return
    invoker.make_folder(folder)
    title = matrix.title if matrix else f"Results of {given.campaign}"
    campaign = Campaign(
        campaign=given.campaign,
        title=about.title or title,
        matrix=document,
        origin=about.origin,
        licence=about.licence or (matrix.licence if matrix else None),
        note=about.note,
        footnotes=about.footnotes,
    )
    clean = redactor.options(campaign.model_dump(exclude={"matrix", "campaign"}))
    campaign = Campaign.model_validate(
        clean | {"campaign": given.campaign, "matrix": document}, strict=False
    )
    write_atomic(path, to_json(campaign))
    invoker.give(path)


def _requested(draft: Draft, workload_key: str, given: Given) -> Requested:
    """What was asked for: in the vocabulary of the matrix where there is one, else only which tool and place."""
    matrix, image = given.matrix, draft.facts.image
    model = Model(id=draft.model)
    mapping, load = draft.run.mapping, draft.run.load
    workload = {"type": mapping.reads or mapping.tool, **load.options}
    environment: dict[str, Any] = {"type": "unknown"}
    if image is not None:
        environment = {"type": "docker", "image": image}
    if matrix is not None:
        model = matrix.models[draft.model]
        workload = matrix.workloads[workload_key].measured
        environment = matrix.declared_environment(str(draft.environment))
    return Requested(
        model_id=draft.model_id or model.id,
        model_path=draft.run.text("model_path") or model.path,
        random_weights=model.random_weights,
        architecture=model.architecture,
        workload=workload,
        environment=environment,
        disputed=given.about.disputed,
    )

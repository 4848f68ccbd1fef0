"""Drafts to records: one place for addresses, evidence, redaction, and an import that can be repeated."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparkpub.collect.importers import previewing
from sparkpub.collect.importers.base import (
    About,
    Draft,
    Given,
    Left,
)
from sparkpub.collect.importers.layout import OF_ONE_GPU, Facts, parts
from sparkpub.collect.importers.matching import workload_of
from sparkpub.collect.public import public, published
from sparkpub.plan.matrix import Model
from sparkpub.plan.requested import with_load
from sparkpub.record import catalogue
from sparkpub.record.campaign import Campaign
from sparkpub.record.errors import ImportFormatError, field_problems
from sparkpub.record.record import (
    Event,
    Evidence,
    Gpu,
    Machine,
    Plan,
    Record,
    Requested,
    stem_of,
)
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import (
    CAMPAIGN_FILE,
    EVIDENCE_CAP,
    read_campaign,
    read_folder,
    to_json,
    write_atomic,
)

_SUFFIXES = {"log": ".log", "telemetry": ".telemetry.csv"}
_EVIDENCE_KINDS = frozenset(
    {
        *(".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".log", ".txt"),
        *(".md", ".yaml", ".yml", ".parquet", ".npz"),
        *(".gz", ".zst", ".xz", ".zip"),
    }
)
"""How names of evidence end: data and text, which nothing runs, includes or shows as a page."""
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


@dataclass
class ImportOutcome:
    """What became of everything found."""

    imported: list[str] = field(default_factory=list)
    previewed: list[Record] | None = None
    """The records that an import would write, where this one writes nothing."""
    starter: tuple[str, ...] = ()
    """The lines of a mapping, for a table that has none yet."""
    machineless: int = 0
    """How many runs nothing says the machine of."""
    skipped: list[Left] = field(default_factory=list)
    refused: list[Left] = field(default_factory=list)

    def __iadd__(self, other: "ImportOutcome") -> "ImportOutcome":
        """With what became of another campaign's."""
        self.imported += other.imported
        self.skipped += other.skipped
        self.refused += other.refused
        self.machineless += other.machineless
        if other.previewed is not None:
            self.previewed = (self.previewed or []) + other.previewed
        return self

    def leave(self, item: Left) -> None:
        """Count something that became no record."""
        item = replace(item, source=_PADDED.sub(r" \1 ", item.source))
        (self.refused if item.refused else self.skipped).append(item)

    def lines(self, *, verbose: bool = False) -> list[str]:
        """For people: what was left and why, then the sum; `verbose` lists what is counted otherwise."""
        if self.starter:
            return [*self.starter]
        texts = _told("skipped", self.skipped, verbose=verbose)
        texts += _told("refused", self.refused, verbose=verbose)
        verb = "imported"
        if self.previewed is not None:
            texts += previewing.lines(self.previewed, verbose=verbose)
            verb = "would be imported"
        skipped, refused = (
            sum(item.number for item in items) for items in (self.skipped, self.refused)
        )
        counts = (
            f"{len(self.imported):,} {verb}, {skipped:,} skipped, {refused:,} refused"
        )
        return [*texts, counts]

    def document(self) -> dict[str, Any]:
        """For `--json`."""

        def told(left: list[Left]) -> list[dict[str, str]]:
            return [{"source": item.source, "reason": item.reason} for item in left]

        found: dict[str, Any] = {"preview": self.previewed is not None}
        return found | {
            "imported": self.imported,
            "skipped": told(self.skipped),
            "refused": told(self.refused),
        }


_PADDED = re.compile(r" (line|row) 0+")
"""Places are padded to sort like the rows."""
_PARTICULAR = re.compile(r", as \S+|'[^']*'|\S+\.[a-z]{2,5}\b|[\d.,]*\d")
"""What differs between reasons that are the same: names in quotes, files, and numbers."""


def _told(verb: str, items: Iterable[Left], *, verbose: bool) -> list[str]:
    """A line for each thing that was left; for those of one reason their number and the first."""
    groups: dict[str, list[Left]] = {}
    for item in items:
        kind = item.source if verbose else _PARTICULAR.sub("", item.reason)
        groups.setdefault(kind, []).append(item)
    texts = []
    for first, *others in groups.values():
        if verbose or not others:
            texts += [
                f"{verb} {item.source}: {item.reason}" for item in (first, *others)
            ]
        else:
            number = sum(item.number for item in (first, *others))
            texts.append(f"{verb} {number:,}, e.g. {first.source}: {first.reason}")
    return texts


def write(
    found: Iterable[Draft | Left],
    data: Path,
    given: Given,
    *,
    originals: bool = True,
    preview: bool = False,
) -> ImportOutcome:
    """Write every draft as a record with its evidence, in order of time. What is there already is left alone.

    With `preview` nothing is written.
    """
    outcome, folder = ImportOutcome(), data / given.campaign
    if preview:
        outcome.previewed = []
    known = _Known()
    for stored in read_folder(folder) if folder.is_dir() else ():
        known.add(stored.record)
    items = list(found)
    redactor = Redactor()
    if given.matrix is not None:
        shown, redactor = public(given.matrix)
        given = replace(given, matrix=shown)
    cleaner = _Cleaner(redactor)
    for left in (item for item in items if isinstance(item, Left)):
        outcome.leave(left)
    drafts = (item for item in items if isinstance(item, Draft))
    for draft in sorted(drafts, key=lambda draft: (draft.started.value, draft.source)):
        made = _made(draft, given, known, cleaner, originals)
        if isinstance(made, Left):
            outcome.leave(made)
            continue
        record, files = made
        known.add(record)
        outcome.imported.append(record.run_id)
        outcome.machineless += record.machine == Machine()
        if outcome.previewed is not None:
            outcome.previewed.append(record)
            continue
        _declare(folder, given, redactor)
        cleaner.write(folder, files)
        write_atomic(folder / f"{record.stem}.json", to_json(record))
    return outcome


def _made(
    draft: Draft,
    given: Given,
    known: "_Known",
    cleaner: "_Cleaner",
    originals: bool,
) -> tuple[Record, dict[str, bytes]] | Left:
    """A record and its files, or why there shall be none."""
    workload, why_none = _workload(draft, given)
    if workload is None:
        return Left(draft.source, why_none)
    if given.matrix is not None:
        cell = {
            "model": draft.model,
            "environment": draft.environment,
            "workload": workload,
        }
        for axis, name in cell.items():
            if name not in getattr(given.matrix, f"{axis}s"):
                return Left(draft.source, f"the matrix has no {axis} {name}")
    draft = replace(draft, workload=workload)
    iteration = draft.iteration
    if iteration is None:
        iteration = known.next_iteration(draft.model, str(draft.environment), workload)
    try:
        plan = Plan(position=len(known.by_id), order="as-published")
        record, files = _record(draft, given, iteration, plan, cleaner, originals)
    except ValidationError as error:
        return Left(draft.source, "; ".join(field_problems(error)))
    # A numbered run is its own, and so is one with a log; several files may hold the same report.
    by_figures = draft.iteration is None and f"{record.stem}.log" not in files
    same = known.compared(draft.source, record, by_figures=by_figures)
    return same or (record, files)


def _workload(draft: Draft, given: Given) -> tuple[str | None, str]:
    """The key of a run's workload, and why there is none: as the command line says, else the one of the matrix that
    the run fits, else as the results show it."""
    if given.workload is not None:
        return draft.workload or given.workload, ""
    if given.matrix is not None and draft.workload not in given.matrix.workloads:
        return workload_of(draft, given.matrix)
    return draft.workload or given.workload_key, ""


@dataclass
class _Known:
    """The records of the campaign: by run id, by the files that are a run's own, whatever they are called, and by time
    and figures, which several files may hold, and which are all there is where no files are kept."""

    by_id: dict[str, Record] = field(default_factory=dict)
    by_proof: dict[tuple[tuple[str, str, str], frozenset[str]], str] = field(
        default_factory=dict
    )
    by_figures: dict[tuple[object, ...], str] = field(default_factory=dict)
    iterations: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        self.by_id[record.run_id] = record
        self.iterations[record.cell] = max(
            record.iteration, self.iterations.get(record.cell, 0)
        )
        proof = _proof(record)
        if proof:
            self.by_proof[record.cell, proof] = record.run_id
        if record.metrics:
            self.by_figures[_figures(record)] = record.run_id

    def next_iteration(self, *cell: str) -> int:
        """The number of a run that has none: one more than the highest of its cell (model, environment, workload)."""
        model, environment, workload = cell
        return 1 + self.iterations.get((model, environment, workload), 0)

    def compared(self, source: str, record: Record, *, by_figures: bool) -> Left | None:
        """Why a record adds nothing to those known, or contradicts one. `by_figures`: equal figures of one time are one
        run."""
        twin = self.by_proof.get((record.cell, _proof(record)))
        if twin is None and by_figures:
            twin = self.by_figures.get(_figures(record))
        if twin is not None:
            return Left(source, f"is there already, as {twin}", refused=False)
        other = self.by_id.get(record.run_id)
        if other is None:
            return None
        same = other.model_copy(update={"plan": record.plan}) == record
        return Left(
            source,
            "is there already" if same else f"another {record.run_id} is there",
            refused=not same,
        )


def _proof(record: Record) -> frozenset[str]:
    return frozenset(
        item.sha256 for item in record.evidence if not item.path.startswith(_SHARED)
    )


def _figures(record: Record) -> tuple[object, ...]:
    values = sorted(
        (name, value.value)
        for name, value in record.metrics.items()
        if value.value is not None
    )
    return (record.cell, record.started.value, tuple(values))


def _declare(folder: Path, given: Given, redactor: Redactor) -> None:
    """The campaign file, once. Raises ImportFormatError where the campaign declares another matrix."""
    about, matrix = given.about, given.matrix
    document = matrix.document() if matrix else None
    path = folder / CAMPAIGN_FILE
    if path.exists():
        if document is not None and read_campaign(folder).matrix not in (
            None,
            document,
        ):
            remedy = "give the campaign a new name"
            raise ImportFormatError(
                "the campaign has another matrix", where=str(path), remedy=remedy
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(
        campaign=given.campaign,
        title=about.title
        or (matrix.title if matrix else f"Imported: {given.campaign}"),
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


def _record(
    draft: Draft,
    given: Given,
    iteration: int,
    plan: Plan,
    cleaner: "_Cleaner",
    originals: bool,
) -> tuple[Record, dict[str, bytes]]:
    """The record and the files that go beside it."""
    about = given.about
    workload = draft.workload
    assert workload is not None
    cell = (draft.model, str(draft.environment), workload)
    stem = stem_of(cell, iteration, draft.started)
    evidence, files, notes = _evidence(draft, stem, cleaner, originals)
    said = (*draft.all_notes, *notes)
    requested = _requested(draft, given)
    record = Record(
        run_id=f"{given.campaign}-{stem}",
        campaign=given.campaign,
        model=draft.model,
        environment=str(draft.environment),
        workload=workload,
        iteration=iteration,
        status=draft.status,
        status_reason=draft.status_reason,
        plan=plan,
        started=draft.started,
        exit_code=draft.exit_code,
        requested=requested,
        observed=draft.observed_with_facts,
        metrics=dict(draft.metrics),
        samples=dict(draft.samples),
        spreads=dict(draft.spreads),
        phases=draft.phases,
        events=tuple(Event(at_seconds=None, kind="note", text=text) for text in said),
        machine=_machine(draft.facts, given),
        evidence=evidence,
        unavailable=_unavailable(draft, about, requested, evidence),
        origin=about.origin,
    )
    return published(with_load(record), cleaner.redactor), files


def _requested(draft: Draft, given: Given) -> Requested:
    """What was asked for: in the vocabulary of the matrix where there is one, else only which tool and place."""
    matrix = given.matrix
    model = Model(id=draft.model)
    workload = dict(draft.asked)
    environment: dict[str, Any] = {"type": draft.environment_type}
    if draft.facts.image is not None:
        environment["image"] = draft.facts.image
    if matrix is not None:
        assert draft.workload is not None
        model = matrix.models[draft.model]
        workload = matrix.workloads[draft.workload].measured
        environment = matrix.declared_environment(str(draft.environment))
    return Requested(
        model_id=draft.model_id or model.id,
        model_path=draft.model_path or model.path,
        random_weights=model.random_weights,
        architecture=model.architecture,
        workload=workload,
        environment=environment,
        disputed=given.about.disputed,
    )


def _machine(facts: Facts, given: Given) -> Machine:
    """The machine as people describe it, else as the command line and what lies beside the results name it."""
    machine = given.about.machine
    kind = machine.kind or given.machine or facts.machine
    nodes = machine.count or facts.nodes
    if nodes is None and kind in OF_ONE_GPU:
        nodes = parts(facts.settings)
    told: dict[str, Any] = {
        "kind": kind,
        "count": nodes,
        "driver": machine.driver or facts.driver,
    }
    known = catalogue.machines().get(kind or "")
    if not machine.gpus and known is not None:
        told["gpus"] = (Gpu(name=f"NVIDIA {known.gpu_names[0]}", vbios=facts.vbios),)
    if machine.unified_memory is None and known is not None:
        told["unified_memory"] = known.unified_memory
    return machine.model_copy(update=told)


def _unavailable(
    draft: Draft, about: About, requested: Requested, evidence: Iterable[Evidence]
) -> dict[str, str]:
    """Why something is not there: as people know, else as the importer saw, else because the source is silent."""
    reasons = dict.fromkeys(_UNSAID, "the source does not say") | dict(
        draft.unavailable
    )
    for name, text in about.unavailable.items():
        if name not in draft.metrics:
            reasons[name] = text
    if requested.environment["type"] not in ("docker", "unknown"):
        reasons["container"] = "not a container"
    for item in evidence:
        reasons.pop(item.role, None)
    return reasons


@dataclass(frozen=True)
class _Clean:
    """A file as it may be published: redacted and capped. `original` is the SHA-256 of what it was made of."""

    content: bytes
    sha256: str
    truncated: bool
    changed: bool
    original: str


@dataclass
class _Cleaner:
    """Redacts files; one that many runs share is redacted, and written, once."""

    redactor: Redactor
    shared: dict[bytes, _Clean] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    """Names of the files that all runs share and that were written."""

    def own(self, content: bytes) -> _Clean:
        """A file of one run."""
        clean = self.redactor.content(content)
        capped = _capped(clean)
        return _Clean(
            content=capped,
            sha256=hashlib.sha256(capped).hexdigest(),
            truncated=len(clean) > EVIDENCE_CAP,
            changed=clean != content,
            original=hashlib.sha256(content).hexdigest(),
        )

    def of_all(self, content: bytes) -> _Clean:
        """A file that other runs may have, too."""
        if content not in self.shared:
            self.shared[content] = self.own(content)
        return self.shared[content]

    def write(self, folder: Path, files: Mapping[str, bytes]) -> None:
        """Write the files of a run; what all runs share is there after the first one."""
        for name, content in files.items():
            if name in self.written:
                continue
            write_atomic(folder / name, content)
            if name.startswith(_SHARED):
                self.written.add(name)


def _evidence(
    draft: Draft, stem: str, cleaner: _Cleaner, originals: bool
) -> tuple[tuple[Evidence, ...], dict[str, bytes], list[str]]:
    """Files beside the record, redacted and capped, and notes on what redaction changed."""
    found: list[tuple[str, str, _Clean]] = []
    redrawn: list[str] = []
    if originals:
        for role, content in draft.files.items():
            suffix = _SUFFIXES.get(role, f".{role}.json")
            settled = _settled(content) if role == "log" else content
            found.append((role, f"{stem}{suffix}", cleaner.own(settled)))
            if settled != content:
                digest = hashlib.sha256(content).hexdigest()
                redrawn.append(
                    f"of each line that was redrawn in the {role} its last state is kept; "
                    f"the original has the SHA-256 {digest}"
                )
        shared = [("original", *item) for item in draft.originals]
        if draft.log_of_call:
            shared.append(("log", draft.log_of_call, ".log"))
        for role, content, suffix in shared:
            clean = cleaner.of_all(content)
            kind = suffix if suffix in _EVIDENCE_KINDS else ".txt"
            name = f"{_SHARED}{clean.original[:12]}.original{kind}"
            found.append((role, name, clean))
    items, files, notes = [], {}, redrawn
    for role, name, clean in found:
        if clean.changed:
            notes.append(
                f"private text was replaced in the {role}, whose original has the SHA-256 {clean.original}"
            )
        files[name] = clean.content
        items.append(
            {
                "role": role,
                "path": name,
                "sha256": clean.sha256,
                "bytes": len(clean.content),
                "truncated": clean.truncated,
            }
        )
    return tuple(Evidence.model_validate(item) for item in items), files, notes


def _settled(log: bytes) -> bytes:
    """A log as it last stood on the screen: progress bars are redrawn after a carriage return, many times a line. One
    before a line break is a line's end."""
    if b"\r" not in log:
        return log
    return b"\n".join(map(_last_state, log.split(b"\n")))


def _last_state(line: bytes) -> bytes:
    """What was written after the last carriage return that begins a line again."""
    written = line.rstrip(b"\r")
    end = line[len(written) :]
    return written[written.rfind(b"\r") + 1 :] + end


def _capped(content: bytes) -> bytes:
    """Beginning and end of a file that is too large, with the cut marked."""
    if len(content) <= EVIDENCE_CAP:
        return content
    mark, tail = b"\n[sparkpub: cut here: evidence is capped]\n", EVIDENCE_CAP // 4
    return content[: 3 * tail] + mark + content[len(mark) - tail :]

"""A table of anybody's: CSV, JSON lines or Parquet, with a mapping that says what its columns mean.

Each row, or each group of rows in a long table, becomes a record, with the rows as they were as its evidence. Its
figures count as published: nothing but the table says them. A row that cannot be read is one line, and the others go
on. Rows without a number of their iteration are numbered in their order within a cell.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import get_args

from pydantic import ValidationError

from sparkpub.collect.imports.facts import Facts, SaidOfRun
from sparkpub.collect.imports.folder import Beside, Folder
from sparkpub.collect.imports.given import CONTAINER, UNDATED, Draft, Left
from sparkpub.collect.imports.rows import SUFFIXES, SourceRow, SourceTable, read_table
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError, field_problems
from sparkpub.record.record import LONGEST_TEXT, Moment, Status
from sparkpub.tools import cells, reading
from sparkpub.tools.asked import AskedLoad, as_key, asked
from sparkpub.tools.cells import CellError, shown
from sparkpub.tools.figures import Figures, PlacedValue, figures
from sparkpub.tools.forms import FileError
from sparkpub.tools.language import MappingFile
from sparkpub.tools.where import at, holds

_STATUSES = get_args(Status)
_MARKS = {"": False, "true": True, "yes": True, "1": True}
_MARKS |= {"false": False, "no": False, "0": False}
_FIGURES = ("metrics", "requests")
_NEEDED = (("run", "model"), ("run", "environment"))
"""Places without which a file has no runs."""
_QUESTIONS = {"model": "which model ran", "environment": "where it ran"}
_OF_A_RUN = ("model", "environment", "workload", "iteration", "started")
"""What the rows of one run have in common."""


def read(folder: Folder, mapping: MappingFile) -> Iterator[Draft | Left]:
    """The runs of a file or folder, of which a mapping may be for some files alone. Raises ImportFormatError for one
    that names columns that no file has."""
    is_alone = folder.path.is_file()
    tables: list[SourceTable] = []
    for file in folder.files():
        if isinstance(file, Left):
            yield file
        elif file.suffix not in SUFFIXES:
            yield Left(file.source, "not a table", refused=False)
        else:
            try:
                table = read_table(file, mapping.declared.rows)
                tables.append(table.with_path(mapping.declared))
            except FileError as problem:
                yield Left(file.source, str(problem), refused=is_alone)
    reader = _Reader(mapping, folder)
    fitting, others = _fitting(tables, mapping)
    yield from others
    for table in fitting:
        yield from reader.runs(table)


def _fitting(
    tables: list[SourceTable], mapping: MappingFile
) -> tuple[list[SourceTable], list[Left]]:
    """The tables that have the columns of a run and a figure, and why the others are none. Raises ImportFormatError
    for columns that no file has, with what the file says that has most of them."""
    needed = mapping.needed
    there = [
        {
            where
            for where in needed
            if where in table.columns
            or any(at(row.said, where) is not None for row in table.rows)
        }
        for table in tables
    ]
    missing = needed.keys() - set().union(*there)
    if tables and missing:
        most = max(range(len(tables)), key=lambda number: len(there[number]))
        _refuse_columns(tables[most], missing, mapping)
    figures_ = {name for name, key in needed.items() if key[0] in _FIGURES}
    names = {name for name, key in needed.items() if key[0] == "long" or key in _NEEDED}
    fitting, others = [], []
    for table, known in zip(tables, there, strict=True):
        absent = names - known
        if not figures_ & known:
            absent |= figures_
        if absent:
            what = f"it has no column {min(absent)!r}"
            others.append(Left(table.file.source, what, refused=False))
        else:
            fitting.append(table)
    return fitting, others


def _refuse_columns(
    table: SourceTable, missing: set[str], mapping: MappingFile
) -> None:
    """Raise ImportFormatError for columns that the mapping names and no table has."""
    source = table.file.source
    if mapping.lines is None:
        raise ImportFormatError(
            "the table has other columns than sparkpub export writes",
            where=source,
            remedy="say what its columns mean: --mapping FILE",
        )
    problems = [
        f"{source} has no column {column!r}, {mapping.lines.where(key)}; "
        + documents.suggestion(column, table.columns)
        for column, key in mapping.needed.items()
        if column in missing
    ]
    documents.refuse(problems, ImportFormatError)


@dataclass
class _Reader:
    """Makes drafts of rows. Iterations are counted, and names compared, over all files."""

    mapping: MappingFile
    folder: Folder
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Runs of a cell so far, to number those that have no number."""
    first: dict[object, str] = field(default_factory=dict)
    """What there can be once, to the place where it stood first, or the name that it was made of."""
    facts: Facts = field(default_factory=Facts)
    """What lies beside the file that is read."""

    def runs(self, table: SourceTable) -> Iterator[Draft | Left]:
        """A draft for each run of a file, or why there is none."""
        self.facts = Beside(table.file, self.folder).facts
        for number, why in table.faults:
            yield Left(table.place(number), why)
        groups: dict[object, list[SourceRow]] = {}
        copies: list[SourceRow] = []
        for row in table.rows:
            if not holds(row.said, self.mapping.declared.when):
                continue
            if self._is_copy(row, table.place(row.number)):
                copies.append(row)
            else:
                groups.setdefault(self._group(row), []).append(row)
        if copies:
            what = _copied(copies, table.unit)
            yield Left(table.file.source, what, False, len(copies))
        for rows in groups.values():
            place = table.place(rows[0].number)
            try:
                yield self._draft(rows, place, table)
            except CellError as problem:
                yield Left(place, str(problem))
            except ValidationError as error:
                yield Left(place, "; ".join(field_problems(error)))

    def _is_copy(self, row: SourceRow, place: str) -> bool:
        """Whether a row says in every cell what another one said before: a file joined twice, not a run of its own."""
        if self.mapping.declared.repeats:
            return False
        texts = {name: cells.text(cell) for name, cell in row.cells.items()}
        said = json.dumps(texts, sort_keys=True)
        return self.first.setdefault(said, place) != place

    def _group(self, row: SourceRow) -> object:
        """What rows of one run have in common."""
        long = self.mapping.declared.long
        if long is None:
            return row.number
        if long.run is not None:
            return cells.text(at(row.said, long.run))
        return tuple(self._cell(row, name) for name in _OF_A_RUN)

    def _draft(
        self, rows: list[SourceRow], place: str, table: SourceTable
    ) -> Draft | Left:
        first, file = rows[0], table.file
        for row in rows:
            self._refuse_long(row)
        for name in _OF_A_RUN:
            if any(self._cell(row, name) != self._cell(first, name) for row in rows):
                raise CellError(f"the rows of its run differ in {name}; correct them")
        if self._cell(first, "repeat_of") is not None:
            return Left(place, "it repeats another run", refused=False)
        said = self._said(first)
        name = self._named(first, "model")
        model = self.folder.given.model_key(self._cell(first, "model_id") or name)
        model = model or self._key("model", name)
        where = self._cell(first, "environment")
        environment = None if where is None else self._key("environment", where)
        load = asked(self.mapping.declared, first.said)
        workload = self._workload(first, load)
        status, reason = self._status(first)
        found = self._figures(rows)
        iteration = self._iteration(first, (model, str(environment), workload), place)
        started = self._started(first)
        missing = {"log": "a table has none"}
        if started is None:
            missing["started"] = UNDATED
        facts = said.facts(self.facts)
        evidence = [f'{{"iteration": {iteration}}}', *map(SourceRow.document, rows)]
        # Arrow's own format is no text, and only its rows are kept.
        kept = [(file.content, file.suffix), (self.mapping.content, ".yaml")]
        return Draft(
            place,
            "table",
            model,
            said.model_id,
            environment,
            iteration,
            started or file.modified,
            found.metrics,
            {"type": "table", **load.options},
            samples=found.samples,
            spreads=found.spreads,
            facts=facts,
            workload=workload,
            status=status,
            status_reason=reason,
            observed=said.observed(facts, said.model_id),
            files={"output": "\n".join(evidence).encode()},
            originals=tuple(
                ("original", content, suffix)
                for content, suffix in kept
                if content and suffix != ".parquet"
            ),
            unavailable=missing,
        )

    def _refuse_long(self, row: SourceRow) -> None:
        """Raise CellError where a cell that is used is longer than any text of a record."""
        for column in self.mapping.needed:
            cell = row.cells.get(column)
            if isinstance(cell, str) and len(cell) > LONGEST_TEXT:
                what = f"column {column!r} has a cell of {len(cell):,} letters"
                raise CellError(f"{what}; {LONGEST_TEXT:,} are the most")

    # -- names -----------------------------------------------------------------------------------------------

    def _said(self, row: SourceRow) -> SaidOfRun:
        declared = self.mapping.declared
        return SaidOfRun(declared.run, declared.same, row.said)

    def _cell(self, row: SourceRow, name: str) -> str | None:
        """What a column says of a run, else what holds for every row, else the command line, else what lies beside."""
        told = self._said(row).text(name)
        if told is not None or getattr(self.mapping.declared.run, name) is not None:
            return told
        given: str | None = getattr(self.folder.given, name, None)
        if given is not None:
            return given
        if name == "environment" and self.facts.image is not None:
            return CONTAINER
        return self.facts.model_id if name in ("model", "model_id") else None

    def _named(self, row: SourceRow, axis: str) -> str:
        """The name on an axis. Raises CellError where nothing says it."""
        found = self._cell(row, axis)
        if found is not None:
            return found
        column = getattr(self.mapping.declared.run, axis)
        if column is not None:
            raise CellError(f"column {column!r} is empty; fill it in")
        what = f"nothing says {_QUESTIONS[axis]}"
        raise CellError(f"{what}; add same: {{{axis}: ...}} to the mapping")

    def _key(self, axis: str, name: str) -> str:
        """A name in the form of a key. Raises CellError where another name has become the same key."""
        key = as_key(name)
        other = self.first.setdefault((axis, key), name)
        if other != name:
            raise CellError(
                f"the {axis}s {shown(other)} and {shown(name)} would both be {key}; rename one"
            )
        return key

    def _workload(self, row: SourceRow, load: AskedLoad) -> str:
        """As a column or the mapping names it, else after the load, else as for any import."""
        name = self._cell(row, "workload")
        if name is not None:
            return self._key("workload", name)
        return load.name if load.is_known else self.folder.given.workload_key

    def _iteration(self, row: SourceRow, cell: tuple[str, str, str], place: str) -> int:
        """The number of a run in its cell: as the table says, else in the order of its rows."""
        column = self.mapping.declared.run.iteration
        number = self.counts[cell] + 1
        if column is not None:
            said = self._cell(row, "iteration")
            value = reading.positive_int(said)
            if value is None:
                raise CellError(
                    f"column {column!r} has {shown(said or '')}; number the runs of a cell from 1"
                )
            number = value
        other = self.first.setdefault((cell, number), place)
        if other != place:
            what = f"iteration {number} of {'/'.join(cell)} is in {other}, too"
            raise CellError(f"{what}; number them apart, or choose rows with when:")
        self.counts[cell] += 1
        return number

    def _started(self, row: SourceRow) -> Moment | None:
        """When a run began; None where nothing says it. Raises CellError for what is no time."""
        said = self._cell(row, "started")
        moment = cells.moment(said)
        if said is not None and moment is None:
            raise CellError(
                f"started is {shown(said)}; write a time as 2026-11-21T18:30:00Z"
            )
        return moment

    def _status(self, row: SourceRow) -> tuple[Status, str | None]:
        """The status and its reason."""
        said = self._cell(row, "status") or "ok"
        mark = (self._cell(row, "quarantined") or "").lower()
        if said not in _STATUSES:
            raise CellError(
                f"status is {shown(said)}; write one of {', '.join(_STATUSES)}"
            )
        if mark not in _MARKS:
            raise CellError(f"quarantined is {shown(mark)}; write true or false")
        if said != "ok":
            status: Status = said  # type: ignore[assignment] # one of them, as was just seen
            return status, f"{said}, as the table says"
        if _MARKS[mark]:
            return "invalid", "excluded where the table comes from"
        return "ok", None

    # -- figures ---------------------------------------------------------------------------------------------

    def _figures(self, rows: list[SourceRow]) -> Figures:
        """Every metric of a run. Raises CellError for a cell that is no figure of its metric."""
        declared = self.mapping.declared
        long = declared.long
        if long is None:
            return figures(declared, rows[0].said, "published")
        found = Figures()
        for row in rows:
            name = cells.text(at(row.said, long.metric)) or ""
            if name in found.metrics:
                raise CellError(f"its run has {name} twice; keep one")
            reason = cells.text(at(row.said, long.reason))
            cell = PlacedValue(
                long.value, at(row.said, long.value), "published", reason
            )
            unit = cells.text(at(row.said, long.unit))
            found.metrics[name], _ = cell.value(declared, name, unit)
        return found


def _copied(rows: list[SourceRow], unit: str) -> str:
    """What rows that are there already are not, in words."""
    what = f"{unit} {rows[0].number} repeats an earlier one"
    if len(rows) > 1:
        what = f"{len(rows)} {unit}s repeat earlier ones, the first is {unit} {rows[0].number}"
    return f"{what}; for runs of their own, add repeats: true to the mapping"

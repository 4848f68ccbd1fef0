"""A table of anybody's: CSV, JSON lines or Parquet, with a mapping that says what its columns mean.

Each row, or each group of rows in a long table, becomes a record, with the rows as they were as its evidence. Its
figures count as published: nothing but the table says them. A row that cannot be read is one line, and the others go
on. Rows without a number of their iteration are numbered in their order within a cell.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from sparkpub.collect.importers.base import (
    CONTAINER,
    UNDATED,
    Draft,
    Given,
    Left,
)
from sparkpub.collect.importers.files import result_files
from sparkpub.collect.importers.layout import Facts
from sparkpub.collect.importers.rows import (
    SUFFIXES,
    SourceRow,
    SourceTable,
    as_document,
    read_table,
)
from sparkpub.collect.importers.said import SaidOfRun
from sparkpub.collect.importers.sidecars import Sidecars, is_notes
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError, field_problems
from sparkpub.record.record import LONGEST_TEXT, Moment, Status
from sparkpub.tools import cells, reading
from sparkpub.tools.asked import AskedLoad, as_key, asked
from sparkpub.tools.cells import CellError, shown
from sparkpub.tools.figures import Figures, PlacedValue, figures
from sparkpub.tools.forms import FileError, ResultFile
from sparkpub.tools.language import MappingFile
from sparkpub.tools.where import at, holds

_STATUSES = get_args(Status)
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")
_FIGURES = ("metrics", "requests")
_NEEDED = (("run", "model"), ("run", "environment"))
"""Places without which a file has no runs."""
_QUESTIONS = {"model": "which model ran", "environment": "where it ran"}


class OmittedError(Exception):
    """A run that is passed over on purpose; the text says why."""


def read(path: Path, given: Given, mapping: MappingFile) -> Iterator[Draft | Left]:
    """The runs of a file or folder, of which a mapping may be for some files alone. Raises ImportFormatError for one
    that names columns that no file has."""
    reader = _TableReader(mapping, given, needed=mapping.needed())
    tables: list[tuple[ResultFile, SourceTable]] = []
    for file in result_files(path, given):
        if isinstance(file, Left):
            yield file
        elif file.suffix not in SUFFIXES:
            yield Left(file.source, "not a table", refused=False)
        else:
            table = reader.table(file)
            if isinstance(table, SourceTable):
                tables.append((file, table))
            else:
                yield replace(table, refused=path.is_file())
    tables, others = reader.fitting(tables)
    yield from others
    for file, table in tables:
        yield from reader.runs(file, table)


def files_of(path: Path) -> Iterator[ResultFile]:
    """The files at or below a path that may be tables and are not the notes beside one."""
    for file in result_files(path, Given("table")):
        if isinstance(file, ResultFile) and not is_notes(file):
            yield file


@dataclass
class _TableReader:
    """Makes drafts of rows. Iterations are counted, and names compared, over all files."""

    mapping: MappingFile
    given: Given
    counts: dict[tuple[str, str, str], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    """Runs of a cell so far, to number those that have no number."""
    slots: dict[tuple[object, ...], str] = field(default_factory=dict)
    """Cell and iteration to the row that has them."""
    written: dict[tuple[str, str], str] = field(default_factory=dict)
    """Axis and key to the name that it was made of."""
    needed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The places that the mapping names, and its keys that do."""
    seen: dict[str, str] = field(default_factory=dict)
    """A row to the place where it stood first, where identical rows are one run."""
    _facts: Facts = field(default_factory=Facts)
    """What lies beside the file that is read."""

    def table(self, file: ResultFile) -> SourceTable | Left:
        """The rows of a file with what its path says, or why there are none."""
        try:
            found = read_table(file, self.mapping.declared.rows)
            return self._with_path(file, found)
        except FileError as problem:
            return Left(file.source, str(problem))

    def fitting(
        self, tables: list[tuple[ResultFile, SourceTable]]
    ) -> tuple[list[tuple[ResultFile, SourceTable]], list[Left]]:
        """The files that have the columns of a run and a figure, and why the others are none. Raises ImportFormatError
        for columns that no file has, with what the file says that has most of them."""
        there = [self._there(table) for _, table in tables]
        missing = self.needed.keys() - set().union(*there)
        if tables and missing:
            most = max(range(len(tables)), key=lambda number: len(there[number]))
            self._refuse_columns(*tables[most], missing)
        figures = {name for name, key in self.needed.items() if key[0] in _FIGURES}
        names = {
            name
            for name, key in self.needed.items()
            if key[0] == "long" or key in _NEEDED
        }
        fitting, others = [], []
        for (file, table), known in zip(tables, there, strict=True):
            absent = names - known
            if figures and not figures & known:
                absent |= figures
            if absent:
                what = f"it has no column {min(absent)!r}"
                others.append(Left(file.source, what, refused=False))
            else:
                fitting.append((file, table))
        return fitting, others

    def _there(self, table: SourceTable) -> set[str]:
        """The places of the mapping that a table has."""
        return {
            where
            for where in self.needed
            if where in table.columns
            or any(at(row.said, where) is not None for row in table.rows)
        }

    def runs(self, file: ResultFile, table: SourceTable) -> Iterator[Draft | Left]:
        """A draft for each run of a file, or why there is none."""
        self._facts = Sidecars.of(file, self.given.layouts).facts
        places = _Places(file.source, table)
        for number, why in table.faults:
            yield Left(places.of(number), why)
        groups: dict[object, list[SourceRow]] = {}
        copies: list[SourceRow] = []
        for row in filter(self._is_wanted, table.rows):
            if self._is_copy(row, places.of(row.number)):
                copies.append(row)
            else:
                groups.setdefault(self._group(row), []).append(row)
        if copies:
            yield Left(file.source, _copied(copies, table.unit), False, len(copies))
        for rows in groups.values():
            place = places.of(rows[0].number)
            try:
                yield self._draft(rows, place, file)
            except CellError as problem:
                yield Left(place, str(problem))
            except ValidationError as error:
                yield Left(place, "; ".join(field_problems(error)))
            except OmittedError as reason:
                yield Left(place, str(reason), refused=False)

    def _with_path(self, file: ResultFile, table: SourceTable) -> SourceTable:
        """With the columns that the path of a file says. Raises FileError where it is another one."""
        pattern = self.mapping.declared.path_pattern
        if pattern is None:
            return table
        found = pattern.search(file.source)
        if found is None:
            raise FileError(f"its path is not {self.mapping.declared.path}")
        named = {f"path.{name}": value for name, value in found.groupdict().items()}
        rows = tuple(row.saying(named) for row in table.rows)
        return replace(table, columns=(*table.columns, *named), rows=rows)

    def _refuse_columns(
        self, file: ResultFile, table: SourceTable, missing: set[str]
    ) -> None:
        """Raise ImportFormatError for columns that the mapping names and no table has."""
        if self.given.mapping is None:
            raise ImportFormatError(
                "the table has other columns than sparkpub export writes",
                where=file.source,
                remedy="say what its columns mean: --mapping FILE",
            )
        problems = [
            f"{file.source} has no column {column!r}, {self.mapping.where(key)}; "
            + documents.suggestion(column, table.columns)
            for column, key in self.needed.items()
            if column in missing
        ]
        documents.refuse(problems, ImportFormatError)

    def _is_wanted(self, row: SourceRow) -> bool:
        """Whether a row is one of those that `when` chooses."""
        return holds(row.said, self.mapping.declared.when)

    def _is_copy(self, row: SourceRow, place: str) -> bool:
        """Whether a row says in every cell what another one said before: a file joined twice, not a run of its own."""
        if self.mapping.declared.repeats:
            return False
        texts = {name: cells.text(cell) for name, cell in row.cells.items()}
        said = json.dumps(texts, sort_keys=True)
        return self.seen.setdefault(said, place) != place

    def _group(self, row: SourceRow) -> object:
        """What rows of one run have in common."""
        long = self.mapping.long
        if long is None:
            return row.number
        if long.run is not None:
            return cells.text(at(row.said, long.run))
        names = ("model", "environment", "workload", "iteration", "started")
        return tuple(self._cell(row, name) for name in names)

    def _draft(self, rows: list[SourceRow], place: str, file: ResultFile) -> Draft:
        first = rows[0]
        for row in rows:
            self._refuse_long(row)
        for name in ("model", "environment", "workload", "iteration", "started"):
            if any(self._cell(row, name) != self._cell(first, name) for row in rows):
                raise CellError(f"the rows of its run differ in {name}; correct them")
        if self._cell(first, "repeat_of") is not None:
            raise OmittedError("it repeats another run")
        model, environment = self._names(first)
        load = asked(self.mapping.declared, first.said)
        workload = self._workload(first, load)
        status, reason = self._status(first)
        found = self._figures(rows)
        iteration = self._iteration(first, (model, str(environment), workload), place)
        missing = {"log": "a table has none"}
        started = self._started(first)
        if started is None:
            missing["started"] = UNDATED
            started = file.modified
        said = self._said(first)
        evidence = [*map(as_document, rows)]
        if iteration is not None:
            evidence.insert(0, f'{{"iteration": {iteration}}}')
        return Draft(
            source=place,
            tool="table",
            model=model,
            model_id=said.model_id,
            environment=environment,
            iteration=iteration,
            started=started,
            metrics=found.metrics,
            samples=found.samples,
            spreads=found.spreads,
            facts=said.facts(self._facts),
            asked={"type": "table", **load.options},
            workload=workload,
            status=status,
            status_reason=reason,
            observed=said.observed(),
            files={"output": "\n".join(evidence).encode()},
            originals=self._originals(file),
            unavailable=missing,
        )

    def _refuse_long(self, row: SourceRow) -> None:
        """Raise CellError where a cell that is used is longer than any text of a record."""
        for column in self.needed:
            cell = row.cells.get(column)
            if isinstance(cell, str) and len(cell) > LONGEST_TEXT:
                what = f"column {column!r} has a cell of {len(cell):,} letters"
                raise CellError(f"{what}; {LONGEST_TEXT:,} are the most")

    def _originals(self, file: ResultFile) -> tuple[tuple[bytes, str], ...]:
        """The table and its mapping, shared by all runs. Arrow's own format is no text, and only its rows are kept."""
        found = []
        if file.suffix != ".parquet":
            found.append((file.content, file.suffix))
        if self.mapping.content:
            found.append((self.mapping.content, ".yaml"))
        return tuple(found)

    # -- names -----------------------------------------------------------------------------------------------

    def _said(self, row: SourceRow) -> SaidOfRun:
        return SaidOfRun(self.mapping.run, self.mapping.declared.same, row.said)

    def _cell(self, row: SourceRow, name: str) -> str | None:
        """What a column says of a run, else what holds for every row, else the command line."""
        told = self._said(row).text(name)
        if told is not None or getattr(self.mapping.run, name) is not None:
            return told
        said: str | None = getattr(self.given, name, None)
        if said is None and name in ("model", "model_id"):
            return self._facts.model_id
        if said is None and name == "environment" and self._facts.image is not None:
            return CONTAINER
        return said

    def _named(self, row: SourceRow, axis: str) -> str:
        """The name on an axis. Raises CellError where nothing says it."""
        found = self._cell(row, axis)
        if found is not None:
            return found
        column = getattr(self.mapping.run, axis)
        if column is not None:
            raise CellError(f"column {column!r} is empty; fill it in")
        what = f"nothing says {_QUESTIONS[axis]}"
        raise CellError(f"{what}; add same: {{{axis}: ...}} to the mapping")

    def _names(self, row: SourceRow) -> tuple[str, str | None]:
        """The keys of model and environment, of which the reports of tools say nothing."""
        name = self._named(row, "model")
        model = self.given.model_key(self._cell(row, "model_id") or name)
        place = self._cell(row, "environment")
        environment = None if place is None else self._key("environment", place)
        return model or self._key("model", name), environment

    def _key(self, axis: str, name: str) -> str:
        """A name in the form of a key. Raises CellError where another name has become the same key."""
        key = as_key(name)
        other = self.written.setdefault((axis, key), name)
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
        return load.name if load.is_known else self.given.workload_key

    def _iteration(self, row: SourceRow, cell: tuple[str, str, str], place: str) -> int:
        """The number of a run in its cell: as the table says, else in the order of its rows."""
        column = self.mapping.run.iteration
        number = self.counts[cell] + 1
        if column is not None:
            said = self._cell(row, "iteration")
            value = reading.number(said)
            if value is None or not value.is_integer() or value < 1:
                raise CellError(
                    f"column {column!r} has {shown(said or '')}; number the runs of a cell from 1"
                )
            number = int(value)
        other = self.slots.setdefault((cell, number), place)
        if other != place:
            what = f"iteration {number} of {'/'.join(cell)} is in {other}, too"
            raise CellError(f"{what}; number them apart, or choose rows with when:")
        self.counts[cell] += 1
        return number

    def _started(self, row: SourceRow) -> Moment | None:
        """When a run began; None where nothing says it. Raises CellError for what is no time."""
        said = self._cell(row, "started")
        if said is None:
            return None
        moment = cells.moment(said)
        if moment is None:
            raise CellError(
                f"started is {shown(said or '')}; write a time as 2026-11-21T18:30:00Z"
            )
        return moment

    def _status(self, row: SourceRow) -> tuple[Status, str | None]:
        """The status and its reason."""
        said = self._cell(row, "status")
        mark = (self._cell(row, "quarantined") or "").lower()
        if said is not None and said not in _STATUSES:
            raise CellError(
                f"status is {shown(said or '')}; write one of {', '.join(_STATUSES)}"
            )
        if mark and mark not in (*_YES, *_NO):
            raise CellError(f"quarantined is {shown(mark)}; write true or false")
        if said not in (None, "ok"):
            status: Status = said  # type: ignore[assignment] # one of them, as was just seen
            return status, f"{said}, as the table says"
        if mark in _YES:
            return "invalid", "excluded where the table comes from"
        return "ok", None

    # -- figures ---------------------------------------------------------------------------------------------

    def _figures(self, rows: list[SourceRow]) -> Figures:
        """Every metric of a run. Raises CellError for a cell that is no figure of its metric."""
        long, declared = self.mapping.long, self.mapping.declared
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


class _Places:
    """Where the rows of a table stand, in words that sort like the rows."""

    def __init__(self, source: str, table: SourceTable) -> None:
        numbers = [row.number for row in table.rows]
        numbers += [number for number, _ in table.faults]
        self._begin = f"{source} {table.unit}"
        self._width = len(str(max(numbers, default=0)))

    def of(self, number: int) -> str:
        """`runs.csv line 007`."""
        return f"{self._begin} {number:0{self._width}d}"


def _copied(rows: list[SourceRow], unit: str) -> str:
    """What rows that are there already are not, in words."""
    what = f"{unit} {rows[0].number} repeats an earlier one"
    if len(rows) > 1:
        what = f"{len(rows)} {unit}s repeat earlier ones, the first is {unit} {rows[0].number}"
    return f"{what}; for runs of their own, add repeats: true to the mapping"

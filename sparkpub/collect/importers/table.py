"""A table of anybody's: CSV, JSON lines or Parquet, with a mapping that says what its columns mean.

Each row, or each group of rows in a long table, becomes a record, with the rows as they were as its evidence. Its
figures count as published: nothing but the table says them. A row that cannot be read is one line, and the others go
on. Rows without a number of their iteration are numbered in their order within a cell.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from sparkpub.collect.importers.base import Draft, Given, Left, as_key, local_moment
from sparkpub.collect.importers.files import FileError, ResultFile, result_files
from sparkpub.collect.importers.reports import key_of
from sparkpub.collect.importers.table_mapping import MappingFile, read_mapping
from sparkpub.collect.importers.table_rows import (
    SUFFIXES,
    SourceRow,
    SourceTable,
    as_document,
    read_table,
)
from sparkpub.plan.workloads import reading
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import MetricValue, Moment, Observed, Status

_STATUSES = get_args(Status)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d*)?(?:[eE][-+]?\d+)?")
"""With commas only between groups of three digits: `12,5` is no number here, since nobody can tell which one it is."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")
_OBSERVED = ("engine", "engine_version", "quantization")
_QUESTIONS = {
    "model": "which model ran",
    "environment": "where it ran",
    "started": "when it ran",
}
_EMPTY = ("", "nan", "null", "none", "n/a", "-")
"""Words for no value, as pandas and people write them."""


class CellError(Exception):
    """A cell that cannot be used; the text says which, why, and what to do."""


class OmittedError(Exception):
    """A run that is passed over on purpose; the text says why."""


def read(path: Path, given: Given) -> Iterator[Draft | Left]:
    """The runs of a file or folder. Raises ImportFormatError for a mapping with mistakes, or one that names columns
    that the table does not have."""
    mapping = read_mapping(given.mapping)
    reader = _Reader(mapping, given)
    for file in result_files(path, given):
        if isinstance(file, Left):
            yield file
        elif file.suffix not in SUFFIXES:
            yield Left(file.source, "not a table", refused=False)
        else:
            yield from reader.runs(file)


@dataclass
class _Reader:
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

    def runs(self, file: ResultFile) -> Iterator[Draft | Left]:
        """A draft for each run of a file, or why there is none."""
        try:
            table = read_table(file)
        except FileError as problem:
            yield Left(file.source, str(problem))
            return
        self._refuse_columns(table, file)
        places = _Places(file.source, table)
        for number, why in table.faults:
            yield Left(places.of(number), why)
        for rows in self._grouped(table):
            place = places.of(rows[0].number)
            try:
                yield self._draft(rows, place, file)
            except CellError as problem:
                yield Left(place, str(problem))
            except OmittedError as reason:
                yield Left(place, str(reason), refused=False)

    def _refuse_columns(self, table: SourceTable, file: ResultFile) -> None:
        """Raise ImportFormatError for columns that the mapping names and the table does not have."""
        problems = []
        for column, key in self.mapping.needed().items():
            if column not in table.columns:
                near = documents.suggestion(column, table.columns)
                where = self.mapping.where(key)
                problems.append(
                    f"{file.source} has no column {column!r}, {where}; {near}"
                )
        if problems and self.given.mapping is None:
            raise ImportFormatError(
                "the table has other columns than sparkpub export writes",
                where=file.source,
                remedy="say what its columns mean: --mapping FILE",
            )
        documents.refuse(problems, ImportFormatError)

    def _grouped(self, table: SourceTable) -> list[list[SourceRow]]:
        """The rows of each run, in the order of their first ones, without those that `only` leaves out."""
        wanted = self.mapping.declared.only
        groups: dict[object, list[SourceRow]] = {}
        for row in table.rows:
            kept = all(
                _text(row.cells.get(name)) in words for name, words in wanted.items()
            )
            if kept:
                groups.setdefault(self._group(row), []).append(row)
        return list(groups.values())

    def _group(self, row: SourceRow) -> object:
        """What rows of one run have in common."""
        long = self.mapping.long
        if long is None:
            return row.number
        if long.run is not None:
            return _text(row.cells.get(long.run))
        names = ("model", "environment", "workload", "iteration", "started")
        return tuple(self._cell(row, name) for name in names)

    def _draft(self, rows: list[SourceRow], place: str, file: ResultFile) -> Draft:
        first = rows[0]
        for name in ("model", "environment", "workload", "iteration", "started"):
            if any(self._cell(row, name) != self._cell(first, name) for row in rows):
                raise CellError(f"the rows of its run differ in {name}; correct them")
        if self._cell(first, "repeat_of") is not None:
            raise OmittedError("it repeats another run")
        model, environment = self._names(first)
        asked = self._asked(first)
        workload = self._workload(first, asked)
        status, reason = self._status(first)
        metrics = self._metrics(rows)
        iteration = self._iteration(first, (model, environment, workload), place)
        observed = {name: self._cell(first, name) for name in _OBSERVED}
        evidence = "\n".join([f'{{"iteration": {iteration}}}', *map(as_document, rows)])
        return Draft(
            source=place,
            model=model,
            model_id=self._model_id(first),
            environment=environment,
            iteration=iteration,
            started=self._started(first),
            metrics=metrics,
            asked={"type": "table", **asked},
            workload=workload,
            status=status,
            status_reason=reason,
            observed=Observed(**observed),  # type: ignore[arg-type] # all three are text
            files={"output": evidence.encode()},
            originals=self._originals(file),
            unavailable={"log": "a table has none"},
        )

    def _originals(self, file: ResultFile) -> tuple[tuple[bytes, str], ...]:
        """The table and its mapping, shared by all runs. Arrow's own format is no text, and only its rows are kept."""
        found = []
        if file.suffix != ".parquet":
            found.append((file.content, file.suffix))
        if self.mapping.content:
            found.append((self.mapping.content, ".yaml"))
        return tuple(found)

    # -- names -----------------------------------------------------------------------------------------------

    def _cell(self, row: SourceRow, name: str) -> str | None:
        """What a column says of a run, else what holds for every row, else the command line."""
        column = getattr(self.mapping.columns, name, None)
        if column is not None:
            return _text(row.cells.get(column))
        same: str | None = getattr(self.mapping.declared.same, name, None)
        if same is not None:
            return same
        said: str | None = getattr(self.given, name, None)
        return said

    def _named(self, row: SourceRow, axis: str) -> str:
        """The name on an axis. Raises CellError where nothing says it."""
        found = self._cell(row, axis)
        if found is not None:
            return found
        column = getattr(self.mapping.columns, axis)
        if column is not None:
            raise CellError(f"column {column!r} is empty; fill it in")
        what = f"nothing says {_QUESTIONS[axis]}"
        raise CellError(f"{what}; add same: {{{axis}: ...}} to the mapping")

    def _names(self, row: SourceRow) -> tuple[str, str]:
        """The keys of model and environment."""
        name = self._named(row, "model")
        model = self.given.model_key(self._cell(row, "model_id") or name)
        environment = self._key("environment", self._named(row, "environment"))
        return model or self._key("model", name), environment

    def _key(self, axis: str, name: str) -> str:
        """A name in the form of a key. Raises CellError where another name has become the same key."""
        key = as_key(name)
        other = self.written.setdefault((axis, key), name)
        if other != name:
            raise CellError(
                f"the {axis}s {other!r} and {name!r} would both be {key}; rename one"
            )
        return key

    def _model_id(self, row: SourceRow) -> str | None:
        """The model's name on Hugging Face, where a column or the name itself says it."""
        name = self._cell(row, "model") or ""
        return self._cell(row, "model_id") or (name if "/" in name else None)

    def _asked(self, row: SourceRow) -> dict[str, Any]:
        """What was asked for, by option; whole numbers as such."""
        found: dict[str, Any] = {}
        for option, column in self.mapping.declared.options.items():
            cell = _text(row.cells.get(column))
            if cell is None:
                continue
            value = _number(cell)
            if value is None:
                found[option] = cell
            elif value.is_integer():
                found[option] = int(value)
            else:
                found[option] = value
        return found

    def _workload(self, row: SourceRow, asked: Mapping[str, Any]) -> str:
        """As a column or the mapping names it, else after the options, else as for any import."""
        name = self._cell(row, "workload")
        if name is not None:
            return self._key("workload", name)
        if asked:
            return key_of(
                {option.replace("_", "-"): value for option, value in asked.items()}
            )
        return self.given.workload_key

    def _iteration(self, row: SourceRow, cell: tuple[str, str, str], place: str) -> int:
        """The number of a run in its cell: as the table says, else in the order of its rows."""
        column = self.mapping.columns.iteration
        number = self.counts[cell] + 1
        if column is not None:
            said = self._cell(row, "iteration")
            value = _number(said or "")
            if value is None or not value.is_integer() or value < 1:
                raise CellError(
                    f"column {column!r} has {said!r}; number the runs of a cell from 1"
                )
            number = int(value)
        other = self.slots.setdefault((cell, number), place)
        if other != place:
            what = f"iteration {number} of {'/'.join(cell)} is in {other}, too"
            raise CellError(f"{what}; number them apart, or choose rows with only:")
        self.counts[cell] += 1
        return number

    def _started(self, row: SourceRow) -> Moment:
        said = self._named(row, "started")
        moment = _moment(said)
        if moment is None:
            raise CellError(
                f"started is {said!r}; write a time as 2026-11-21T18:30:00Z"
            )
        return moment

    def _status(self, row: SourceRow) -> tuple[Status, str | None]:
        """The status and its reason."""
        said = self._cell(row, "status")
        mark = (self._cell(row, "quarantined") or "").lower()
        if said is not None and said not in _STATUSES:
            raise CellError(f"status is {said!r}; write one of {', '.join(_STATUSES)}")
        if mark and mark not in (*_YES, *_NO):
            raise CellError(f"quarantined is {mark!r}; write true or false")
        if said not in (None, "ok"):
            status: Status = said  # type: ignore[assignment] # one of them, as was just seen
            return status, f"{said}, as the table says"
        if mark in _YES:
            return "invalid", "excluded where the table comes from"
        return "ok", None

    # -- figures ---------------------------------------------------------------------------------------------

    def _metrics(self, rows: list[SourceRow]) -> dict[str, MetricValue]:
        """Every metric of a run. Raises CellError for a cell that is no figure of its metric."""
        long = self.mapping.long
        found: dict[str, MetricValue] = {}
        if long is None:
            for name, metric in self.mapping.declared.metrics.items():
                cell = _Cell(str(metric.column), rows[0], metric.unit)
                found[name] = self._value(name, cell)
            return found
        for row in rows:
            name = _text(row.cells.get(long.metric)) or ""
            if name in found:
                raise CellError(f"its run has {name} twice; keep one")
            unit = row.cells.get(long.unit or "")
            reason = row.cells.get(long.reason or "")
            cell = _Cell(long.value, row, _text(unit), _text(reason))
            found[name] = self._value(name, cell)
        return found

    def _value(self, name: str, cell: "_Cell") -> MetricValue:
        """The value of a metric in its unit; null with its reason where the cell is empty."""
        own = self.mapping.declared.metrics.get(name)
        declared: dict[str, Any] = {}
        if name in METRICS:
            unit = METRICS[name].unit
        elif own is not None:
            unit = own.unit or ""
            declared = own.model_dump(include={"label", "direction", "definition"})
        else:
            near = documents.suggestion(name, _known_like(name))
            remedy = f"declare it under metrics: in the mapping, or {near}"
            raise CellError(f"sparkpub does not know the metric {name!r}; {remedy}")
        factor = self.mapping.declared.factor(name, cell.unit)
        if factor is None:
            what = f"{name} is in {cell.unit!r} in place of {unit!r}"
            raise CellError(f"{what}; give its scale: in the mapping")
        value = cell.number
        reason = None
        if value is None:
            reason = cell.reason or "the table has no value"
        else:
            value *= factor
            self._refuse_impossible(name, value, cell.column)
        return MetricValue(
            value=value, unit=unit, source="published", reason=reason, **declared
        )

    def _refuse_impossible(self, name: str, value: float, column: str) -> None:
        known = METRICS.get(name)
        if known is not None and not known.minimum <= value <= known.maximum:
            what = f"column {column!r} gives {value:g} {known.unit}"
            bounds = f"{known.minimum:g} to {known.maximum:g}"
            raise CellError(f"{what}, and {name} can be {bounds}; correct cell or unit")


@dataclass(frozen=True)
class _Cell:
    """Where a figure stands, its unit, and why it may not be there."""

    column: str
    row: SourceRow
    unit: str | None
    reason: str | None = None

    @property
    def number(self) -> float | None:
        """The figure; None for an empty cell. Raises CellError where it is no number."""
        text = _text(self.row.cells.get(self.column))
        if text is None:
            return None
        found = _number(text)
        if found is None:
            what = f"column {self.column!r} has {text!r}"
            raise CellError(f"{what}; write a number, as 1234.5")
        return found


@dataclass(frozen=True)
class _Places:
    """Where rows stand, in words that sort like the rows."""

    source: str
    table: SourceTable

    def of(self, number: int) -> str:
        """`runs.csv line 007`."""
        last = max((row.number for row in self.table.rows), default=number)
        return f"{self.source} {self.table.unit} {number:0{len(str(last))}d}"


def _known_like(name: str) -> list[str]:
    """The known metrics that share a first word with a name; all where none does."""
    begin = name.partition("_")[0]
    return [known for known in METRICS if known.startswith(begin)] or list(METRICS)


def _text(cell: Any) -> str | None:
    """A cell as text; None for an empty one."""
    if cell is None:
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = str(cell).strip()
    return None if text.lower() in _EMPTY else text


def _number(text: str) -> float | None:
    """A finite number; None for anything else."""
    if not _NUMBER.fullmatch(text):
        return None
    return reading.number(text)


def _moment(text: str) -> Moment | None:
    """A time, in UTC where the text says its zone; a date alone is its midnight."""
    if _DATE.fullmatch(text):
        return local_moment(f"{text}T00:00:00")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return local_moment(text)
    if moment.tzinfo is None:
        return local_moment(text)
    return Moment.at(moment.astimezone(UTC))

"""A table of anybody's: CSV, JSON lines or Parquet, with a mapping that says what its columns mean.

Each row, or each group of rows in a long table, becomes a record, with the rows as they were as its evidence. Its
figures count as published: nothing but the table says them. A row that cannot be read is one line, and the others go
on. Rows without a number of their iteration are numbered in their order within a cell.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

from pydantic import ValidationError

from sparkpub.collect.importers.base import (
    CONTAINER,
    NAMELESS,
    UNDATED,
    Draft,
    Given,
    Left,
    as_key,
    local_moment,
    unix_moment,
    utc_moment,
)
from sparkpub.collect.importers.files import FileError, ResultFile, result_files
from sparkpub.collect.importers.files import documents as json_objects
from sparkpub.collect.importers.layout import (
    Facts,
    NotesLayout,
    engine_named,
    facts_in,
    weights_in,
)
from sparkpub.collect.importers.reports import key_of
from sparkpub.collect.importers.sidecars import Sidecars, is_notes, is_sidecar
from sparkpub.collect.importers.table_mapping import (
    MappingFile,
    MetricColumn,
    read_mapping,
)
from sparkpub.collect.importers.table_rows import (
    SUFFIXES,
    SourceRow,
    SourceTable,
    as_document,
    read_table,
)
from sparkpub.plan.workloads import reading
from sparkpub.record import documents
from sparkpub.record import metrics as registry
from sparkpub.record.errors import ImportFormatError, field_problems
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import (
    LONGEST_TEXT,
    MetricValue,
    Moment,
    Observed,
    Spread,
    Status,
)

Metrics = dict[str, MetricValue]
_STATUSES = get_args(Status)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d*)?(?:[eE][-+]?\d+)?")
"""With commas only between groups of three digits: `12,5` is no number here, since nobody can tell which one it is."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SECONDS = re.compile(r"\d{9,10}(?:\.\d+)?")
"""UNIX time of the years 1973 to 2286."""
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")
_OBSERVED = ("engine", "engine_version", "quantization")
_MACHINE = ("machine", "nodes", "image", "driver")
"""Columns of the machine and what ran on it, which are facts of a run."""
_MACHINE_LAYOUT = NotesLayout.model_validate(
    {"facts": {name: name for name in _MACHINE}}
)
_PARALLEL = re.compile(r"\bTP[ =]?(\d+)\b")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_FIGURES = ("metrics", "requests")
_NEEDED = (("columns", "model"), ("columns", "environment"))
"""Columns without which a file has no runs."""
_QUESTIONS = {
    "model": "which model ran",
    "environment": "where it ran",
    "started": "when it ran",
}
_MOST = 2**53
"""The largest whole number of an option: up to there a float is exact."""
_LONGEST_SHOWN = 60
_EMPTY = ("", "nan", "null", "none", "n/a", "-")
"""Words for no value, as pandas and people write them."""


class CellError(Exception):
    """A cell that cannot be used; the text says which, why, and what to do."""


class OmittedError(Exception):
    """A run that is passed over on purpose; the text says why."""


def read(path: Path, given: Given) -> Iterator[Draft | Left]:
    """The runs of a file or folder, of which a mapping may be for some files alone. Raises ImportFormatError for a
    mapping with mistakes, or one that names columns that no file has."""
    mapping = read_mapping(given.mapping)
    reader = _TableReader(mapping, given, needed=tuple(mapping.needed()))
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


class MappedReader:
    """Reads the reports of one tool, which a mapping of ours describes."""

    def __init__(self, mapping: MappingFile, given: Given) -> None:
        self.tool = str(mapping.declared.tool)
        self._mapping = mapping
        self._reader = _TableReader(mapping, given, needed=tuple(mapping.needed()))
        self._found: list[Draft | Left] = []

    def takes(self, file: ResultFile) -> bool:
        """Whether a file is a report of the tool. Raises FileError."""
        if file.suffix not in (".json", ".jsonl"):
            return False
        found = json_objects(file)
        paths = self._mapping.declared.when
        is_report = bool(found) and all(
            reading.at(document, path) is not None
            for document in found
            for path in paths
        )
        if is_report:
            table = self._reader.table(file)
            if isinstance(table, Left):
                self._found.append(table)
            else:
                self._found += self._reader.runs(file, table)
        return is_report

    def found(self) -> Iterator[Draft | Left]:
        """The runs of the files that were taken."""
        yield from self._found

    def passes_over(self, file: ResultFile) -> bool:
        """Whether a file is one of those that lie beside reports."""
        return is_sidecar(file)


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
    needed: tuple[str, ...] = ()
    """The columns that the mapping names."""
    seen: dict[str, str] = field(default_factory=dict)
    """A row to the place where it stood first, where identical rows are one run."""
    _facts: Facts = field(default_factory=Facts)
    """What lies beside the file that is read."""

    @property
    def _tool(self) -> str:
        return self.mapping.declared.tool or "table"

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
        needed = self.mapping.needed()
        known = {column for _, table in tables for column in table.columns}
        if tables and not set(needed) <= known:
            most = max(tables, key=lambda item: len(set(needed) & set(item[1].columns)))
            self._refuse_columns(*most, known)
        figures = {name for name, key in needed.items() if key[0] in _FIGURES}
        names = {
            name for name, key in needed.items() if key[0] == "long" or key in _NEEDED
        }
        fitting, others = [], []
        for file, table in tables:
            missing = names - set(table.columns)
            if figures and not figures & set(table.columns):
                missing |= figures
            if missing:
                what = f"it has no column {min(missing)!r}"
                others.append(Left(file.source, what, refused=False))
            else:
                fitting.append((file, table))
        return fitting, others

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
        rows = tuple(
            SourceRow(row.number, {**row.cells, **named}) for row in table.rows
        )
        return replace(table, columns=(*table.columns, *named), rows=rows)

    def _refuse_columns(
        self, file: ResultFile, table: SourceTable, known: set[str]
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
            for column, key in self.mapping.needed().items()
            if column not in known
        ]
        documents.refuse(problems, ImportFormatError)

    def _is_wanted(self, row: SourceRow) -> bool:
        """Whether a row is one of those that `only` chooses."""
        wanted = self.mapping.declared.only
        return all(
            _text(row.cells.get(name)) in words for name, words in wanted.items()
        )

    def _is_copy(self, row: SourceRow, place: str) -> bool:
        """Whether a row says in every cell what another one said before: a file joined twice, not a run of its own."""
        if self.mapping.declared.repeats:
            return False
        cells = {name: _text(cell) for name, cell in row.cells.items()}
        said = json.dumps(cells, sort_keys=True)
        return self.seen.setdefault(said, place) != place

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
        for row in rows:
            self._refuse_long(row)
        for name in ("model", "environment", "workload", "iteration", "started"):
            if any(self._cell(row, name) != self._cell(first, name) for row in rows):
                raise CellError(f"the rows of its run differ in {name}; correct them")
        if self._cell(first, "repeat_of") is not None:
            raise OmittedError("it repeats another run")
        model, environment = self._names(first)
        asked = self._asked(first)
        workload = self._workload(first, asked)
        status, reason = self._status(first)
        metrics, samples, spreads = self._metrics(rows)
        cell = (model, str(environment), workload)
        iteration = self._iteration(first, cell, place)
        missing = {"log": "a table has none"}
        started = self._started(first)
        if started is None:
            missing["started"] = UNDATED
            started = file.modified
        evidence = [*map(as_document, rows)]
        if iteration is not None:
            evidence.insert(0, f'{{"iteration": {iteration}}}')
        return Draft(
            source=place,
            tool=self._tool,
            model=model,
            model_id=self._model_id(first),
            environment=environment,
            iteration=iteration,
            started=started,
            metrics=metrics,
            samples=samples,
            spreads=spreads,
            facts=self._facts_of(first),
            asked={"type": self._tool, **asked},
            workload=workload,
            status=status,
            status_reason=reason,
            observed=self._observed(first),
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

    def _cell(self, row: SourceRow, name: str) -> str | None:
        """What a column says of a run, else what holds for every row, else the command line."""
        column = getattr(self.mapping.columns, name, None)
        if column is not None:
            return _text(row.cells.get(column))
        same: str | None = getattr(self.mapping.declared.same, name, None)
        if same is not None:
            return same
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
        column = getattr(self.mapping.columns, axis)
        if column is not None:
            raise CellError(f"column {column!r} is empty; fill it in")
        if axis == "model" and self.mapping.declared.tool is not None:
            raise CellError(NAMELESS)
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
                f"the {axis}s {_shown(other)} and {_shown(name)} would both be {key}; rename one"
            )
        return key

    def _facts_of(self, row: SourceRow) -> Facts:
        """What lies beside the file, and what the row itself says of machine and server."""
        told = facts_in(
            {name: self._cell(row, name) for name in _MACHINE}, _MACHINE_LAYOUT
        )
        said = {name: getattr(told, name) for name in _MACHINE}
        settings = dict(self._facts.settings)
        for name, column in (("engine", "engine"), ("weights", "quantization")):
            text = self._cell(row, column)
            if text is not None and text not in (engine_named(text), weights_in(text)):
                settings[name] = text  # with more than the name
            parallel = _PARALLEL.search(text or "")
            if parallel is not None:
                settings["tensor_parallel_size"] = parallel[1]
        return replace(
            self._facts,
            settings=settings,
            **{name: value for name, value in said.items() if value is not None},
        )

    def _observed(self, row: SourceRow) -> Observed:
        """What served the model: a text such as `vLLM 0.25 (TP=2)` says the version, too."""
        engine, version, weights = (self._cell(row, name) for name in _OBSERVED)
        known = engine_named(engine)
        if version is None and known != engine:
            found = _VERSION.search(engine or "")
            version = None if found is None else found[0]
        return Observed(
            engine=known,
            engine_version=version,
            quantization=weights_in(weights) or weights,
        )

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
            elif abs(value) > _MOST:
                raise CellError(f"column {column!r} has {_shown(cell)}; correct it")
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

    def _iteration(
        self, row: SourceRow, cell: tuple[str, str, str], place: str
    ) -> int | None:
        """The number of a run in its cell: as the table says, else in the order of its rows; tools number none."""
        column = self.mapping.columns.iteration
        if column is None and self.mapping.declared.tool is not None:
            return None
        number = self.counts[cell] + 1
        if column is not None:
            said = self._cell(row, "iteration")
            value = _number(said or "")
            if value is None or not value.is_integer() or value < 1:
                raise CellError(
                    f"column {column!r} has {_shown(said or '')}; number the runs of a cell from 1"
                )
            number = int(value)
        other = self.slots.setdefault((cell, number), place)
        if other != place:
            what = f"iteration {number} of {'/'.join(cell)} is in {other}, too"
            raise CellError(f"{what}; number them apart, or choose rows with only:")
        self.counts[cell] += 1
        return number

    def _started(self, row: SourceRow) -> Moment | None:
        """When a run began; None where nothing says it. Raises CellError for what is no time."""
        said = self._cell(row, "started")
        if said is None:
            return None
        moment = _moment(said)
        if moment is None:
            raise CellError(
                f"started is {_shown(said or '')}; write a time as 2026-11-21T18:30:00Z"
            )
        return moment

    def _status(self, row: SourceRow) -> tuple[Status, str | None]:
        """The status and its reason."""
        said = self._cell(row, "status")
        mark = (self._cell(row, "quarantined") or "").lower()
        if said is not None and said not in _STATUSES:
            raise CellError(
                f"status is {_shown(said or '')}; write one of {', '.join(_STATUSES)}"
            )
        if mark and mark not in (*_YES, *_NO):
            raise CellError(f"quarantined is {_shown(mark)}; write true or false")
        if said not in (None, "ok"):
            status: Status = said  # type: ignore[assignment] # one of them, as was just seen
            return status, f"{said}, as the table says"
        if mark in _YES:
            return "invalid", "excluded where the table comes from"
        return "ok", None

    # -- figures ---------------------------------------------------------------------------------------------

    def _metrics(
        self, rows: list[SourceRow]
    ) -> tuple[Metrics, dict[str, tuple[float, ...]], dict[str, Spread]]:
        """Every metric of a run, with the repetitions or the deviation behind it. Raises CellError for a cell that is
        no figure of its metric."""
        long = self.mapping.long
        metrics: Metrics = {}
        samples: dict[str, tuple[float, ...]] = {}
        spreads: dict[str, Spread] = {}
        if long is None:
            for name, times in self.mapping.declared.requests.items():
                cell = _Cell(str(times.column), rows[0], times.unit)
                scale = times.scale or registry.factor(times.unit or "ms", "ms") or 1.0
                values = [scale * value for value in cell.numbers]
                metrics |= reading.distribution(name, values, "published")
            for name, metric in self.mapping.declared.metrics.items():
                is_silent = metric.column not in rows[0].cells
                if is_silent and self.mapping.declared.tool is not None:
                    continue
                cell = _Cell(str(metric.column), rows[0], metric.unit)
                metrics[name], factor = self._value(name, cell)
                repeated = tuple(factor * value for value in cell.numbers)
                if len(repeated) > 1:
                    samples[name] = repeated
                elif metrics[name].value is not None:
                    spreads |= cell.spread(name, metric, factor)
            return metrics, samples, spreads
        for row in rows:
            name = _text(row.cells.get(long.metric)) or ""
            if name in metrics:
                raise CellError(f"its run has {name} twice; keep one")
            unit = row.cells.get(long.unit or "")
            reason = row.cells.get(long.reason or "")
            cell = _Cell(long.value, row, _text(unit), _text(reason))
            metrics[name], _ = self._value(name, cell)
        return metrics, samples, spreads

    def _value(self, name: str, cell: "_Cell") -> tuple[MetricValue, float]:
        """The value of a metric in its unit, null with its reason where the cell is empty; and what it was multiplied
        with."""
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
            raise CellError(
                f"sparkpub does not know the metric {_shown(name)}; {remedy}"
            )
        factor = self.mapping.declared.factor(name, cell.unit)
        if factor is None:
            what = f"{name} is in {_shown(cell.unit or '')} in place of {unit!r}"
            raise CellError(f"{what}; give its scale: in the mapping")
        value = cell.number
        reason = None
        if value is None:
            reason = cell.reason or "the table has no value"
        else:
            value *= factor
            self._refuse_impossible(name, value, cell.column)
        metric = MetricValue(
            value=value, unit=unit, source="published", reason=reason, **declared
        )
        return metric, factor

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
    def numbers(self) -> list[float]:
        """The repetitions in a cell that holds a list; empty for any other. Raises CellError where one is no number."""
        cell = self.row.cells.get(self.column)
        if not isinstance(cell, list):
            return []
        return [self._number(str(item)) for item in cell if item is not None]

    @property
    def number(self) -> float | None:
        """The figure, or the mean of several; None for an empty cell. Raises CellError where it is no number."""
        if isinstance(self.row.cells.get(self.column), list):
            return fmean(self.numbers) if self.numbers else None
        text = _text(self.row.cells.get(self.column))
        if text is None:
            return None
        return self._number(text.partition("±")[0].strip())

    def spread(
        self, name: str, metric: MetricColumn, factor: float
    ) -> dict[str, Spread]:
        """The deviation of a mean, by the name of its metric, where this cell or another one says it."""
        deviation = _Cell(metric.deviation or "", self.row, None).number
        _, mark, behind = (_text(self.row.cells.get(self.column)) or "").partition("±")
        if mark:
            deviation = self._number(behind.strip())
        if deviation is None:
            return {}
        count = _Cell(metric.repetitions or "", self.row, None).number
        return {
            name: Spread(
                repetitions=reading.positive_int(count),
                deviation=abs(factor * deviation),
                divisor=None,
            )
        }

    def _number(self, text: str) -> float:
        found = _number(text)
        if found is None:
            what = f"column {self.column!r} has {_shown(text)}"
            raise CellError(f"{what}; write a number, as 1234.5")
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


def _shown(text: str) -> str:
    """What stands in a cell, for a line to people."""
    if len(text) > _LONGEST_SHOWN:
        text = f"{text[:_LONGEST_SHOWN]}…"
    return repr(text)


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
    """A time, in UTC where the text says its zone or is UNIX time; a date alone is its midnight."""
    seconds = reading.number(text) if _SECONDS.fullmatch(text) else None
    if seconds is not None:
        return unix_moment(seconds)
    if _DATE.fullmatch(text):
        return local_moment(f"{text}T00:00:00")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return local_moment(text)
    if moment.tzinfo is None:
        return local_moment(text)
    return utc_moment(moment)

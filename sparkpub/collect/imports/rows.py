"""The rows of a table in a file: CSV, JSON, JSON lines or Parquet. Each knows where it stands, for lines to people."""

import csv
import functools
import importlib.util
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from datetime import date
from multiprocessing import get_context
from typing import Any

from sparkpub.record import outside
from sparkpub.record.text import file_size
from sparkpub.tools import reading
from sparkpub.tools.cells import without_commas
from sparkpub.tools.forms import FileError, ResultFile, spread_out
from sparkpub.tools.language import ResultMapping

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
_NO_OBJECT = "no JSON object; write {column: value, ...}"
MOST_CELLS = 10_000_000
"""Cells of one table: some 100 bytes of memory each."""
_BATCH_ROWS = 100
"""So many rows are unpacked at a time before their size is looked at."""
_DELIMITERS = ",;\t"
Numbered = Iterable[tuple[int, Any]]
"""What a row is made of, or why it cannot be read (UnfitError), with the number of its line or place."""


@dataclass(frozen=True)
class SourceRow:
    """One row: column to what stands there (text, number, truth or None), and the number of its line or place."""

    number: int
    cells: Mapping[str, Any]
    said: Mapping[str, Any]
    """The cells, numbers with a point; in JSON also what they are parts of."""

    def document(self) -> str:
        """As JSON, the same for the same cells."""
        return json.dumps(self.cells, ensure_ascii=False, sort_keys=True, default=str)


@dataclass(frozen=True)
class SourceTable:
    """The rows of a file. `unit` is the word for a row's number: line, or row where a file has no lines."""

    file: ResultFile
    columns: tuple[str, ...]
    rows: tuple[SourceRow, ...]
    unit: str
    faults: tuple[tuple[int, str], ...]
    """Rows that could not be read: number, and why."""

    def place(self, number: int) -> str:
        """Where a row stands, in words that sort like the rows: `runs.csv line 007`."""
        return f"{self.file.source} {self.unit} {number:0{self._width}d}"

    @functools.cached_property
    def _width(self) -> int:
        """Digits of the largest number."""
        numbers = [row.number for row in self.rows[-1:]]
        numbers += [number for number, _ in self.faults]
        return len(str(max(numbers, default=0)))

    def with_path(self, mapping: ResultMapping) -> "SourceTable":
        """With the columns that the path of the file says. Raises FileError where it is another one."""
        if mapping.path_pattern is None:
            return self
        found = mapping.path_pattern.search(self.file.source)
        if found is None:
            raise FileError(f"its path is not {mapping.path}")
        more = {f"path.{name}": value for name, value in found.groupdict().items()}
        rows = tuple(
            SourceRow(row.number, {**row.cells, **more}, {**row.said, **more})
            for row in self.rows
        )
        return replace(self, columns=(*self.columns, *more), rows=rows)


def read_table(file: ResultFile, rows: str | None = None) -> SourceTable:
    """The table in a file; `rows` says where its rows are in JSON. Raises FileError where it is none."""
    columns: Iterable[str] | None = None
    unit = "row"
    found: Numbered
    if file.suffix in (".csv", ".tsv"):
        unit = "line"
        columns, found = _csv(reading.text(file.content))
    elif file.suffix == ".parquet":
        columns, found = _parquet(file.content)
    else:
        unit, found = _json(file.content, rows)
    made: list[SourceRow] = []
    faults: list[tuple[int, str]] = []
    for number, item in found:
        try:
            made.append(_row(number, item, is_flat=columns is not None))
        except (FileError, outside.UnfitError) as problem:
            faults.append((number, str(problem)))
    if columns is None:
        columns = dict.fromkeys(name for row in made for name in row.cells)
        if not made:
            told = [text for _, text in faults if text != _NO_OBJECT]
            nothing = "no JSON objects in it; write one for each row"
            raise FileError(next(iter(told), nothing))
    names = tuple(columns)
    if len(names) > outside.MOST_KEYS:
        raise FileError(f"more than {outside.MOST_KEYS:,} columns")
    return SourceTable(file, names, _with_points(names, made), unit, tuple(faults))


def _row(number: int, item: Any, *, is_flat: bool) -> SourceRow:
    """Raises FileError or UnfitError where it cannot be read."""
    if isinstance(item, outside.UnfitError):
        raise item
    if not isinstance(item, dict):
        raise FileError(_NO_OBJECT)
    if is_flat:
        return SourceRow(number, item, item)
    cells = dict(_listed(flat(item)))
    return SourceRow(number, cells, {**item, **cells})


def _with_points(
    columns: Iterable[str], rows: list[SourceRow]
) -> tuple[SourceRow, ...]:
    """With the numbers of each column written with a point; the cells stay as they are, for they are evidence."""
    changed: list[dict[str, Any]] = [{} for _ in rows]
    for column in columns:
        written = [row.cells.get(column) for row in rows]
        for more, before, after in zip(
            changed, written, without_commas(written), strict=True
        ):
            if after is not before:
                more[column] = after
    return tuple(
        replace(row, said={**row.said, **more}) if more else row
        for row, more in zip(rows, changed, strict=True)
    )


def _csv(text: str) -> tuple[list[str], list[tuple[int, Any]]]:
    header = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    # A long cell is a matter of its row. The limit is one for the whole process, so it is put back.
    before = csv.field_size_limit(outside.MOST_BYTES)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: list[tuple[int, Any]] = []
    try:
        columns = [name.strip() for name in next(reader, [])]
        _refuse_columns(columns)
        for cells in reader:
            refuse_cells(len(found) * len(columns))
            if len(cells) == len(columns):
                values = [cell.strip() or None for cell in cells]
                item: Any = dict(zip(columns, values, strict=True))
            else:
                item = outside.UnfitError(
                    f"{len(cells)} cells under {len(columns)} columns; correct the row"
                )
            if any(cell.strip() for cell in cells):
                found.append((reader.line_num, item))
    except csv.Error as problem:
        raise FileError(f"not CSV: {problem}, line {reader.line_num}") from None
    finally:
        csv.field_size_limit(before)
    return columns, found


def _refuse_columns(columns: list[str]) -> None:
    """Raise FileError for a header that cannot name cells."""
    if not any(columns):
        raise FileError("it has no header; name the columns in the first line")
    name, count = Counter(columns).most_common(1)[0]
    if count > 1:
        what = f"column {name!r} stands twice" if name else "two columns have no name"
        raise FileError(f"{what} in the header; rename one")


def _json(content: bytes, rows: str | None) -> tuple[str, Numbered]:
    """A list of objects, one object, or an object on each line; with `rows` what lies there in each of them. With the
    word for their numbers."""
    try:
        document = _document(content)
    except ValueError as problem:
        unit, found = "line", [*_lines(content)]
        is_unfit = isinstance(problem, outside.UnfitError)
        if is_unfit and not any(isinstance(item, dict) for _, item in found):
            raise FileError(str(problem)) from None
    else:
        unit = "row"
        found = [*enumerate(document if isinstance(document, list) else [document], 1)]
    if rows is None:
        return unit, found
    return "row", enumerate(_spread(found, rows.split(".")), 1)


def _document(content: bytes) -> Any:
    """A JSON document in which a number of too many digits is why it cannot be read: the other rows can. Raises
    ValueError."""
    return reading.strict_json(content, whole_number=_number_or_why_not)


def _number_or_why_not(digits: str) -> int | outside.UnfitError:
    try:
        return outside.whole_number(digits)
    except outside.UnfitError as problem:
        return problem


def _lines(content: bytes) -> Iterator[tuple[int, Any]]:
    """The JSON value of each line with its number, or why it has none."""
    for number, line in enumerate(reading.text(content).splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield number, _document(line.encode())
        except ValueError as problem:
            yield number, problem


def _spread(items: Numbered, path: list[str]) -> list[Any]:
    """The rows at a path below each of several objects."""
    spread: list[Any] = []
    for _, item in items:
        if isinstance(item, outside.UnfitError):
            spread.append(item)
        else:
            spread += [row for row, _ in spread_out(item, path)]
        refuse_cells(len(spread))
    return spread


def _listed(cells: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The cells; a list of objects is a list of each of their figures, as `requests.*.ttft_s`."""
    for name, cell in cells.items():
        items = reading.objects(cell)
        if not items or len(items) != len(cell):
            yield name, cell
            continue
        for part in dict.fromkeys(key for item in items for key in item):
            if f"{name}.*.{part}" not in cells:
                yield f"{name}.*.{part}", [item.get(part) for item in items]


def _parquet(content: bytes) -> tuple[list[str], Numbered]:
    """In a process of its own: Arrow ends the whole interpreter over some damaged files."""
    if importlib.util.find_spec("pyarrow") is None:
        remedy = "pip install 'sparkpub[site]', or write the table as CSV"
        raise FileError(f"reading Parquet needs pyarrow; {remedy}")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        try:
            columns, found = apart.submit(_unpacked, content).result()
        except BrokenProcessPool:
            raise FileError("not Parquet: its reader ended over it") from None
    return columns, enumerate(found, 1)


def _unpacked(content: bytes) -> tuple[list[str], list[dict[str, Any]]]:
    """The columns and rows of a Parquet file. Raises FileError where it is none, or is too large: a kilobyte can unpack
    to gigabytes."""
    import pyarrow as pa  # noqa: PLC0415 - a machine that only measures has no Arrow
    import pyarrow.parquet as pq  # noqa: PLC0415

    rows: list[dict[str, Any]] = []
    size = 0
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        refuse_cells(file.metadata.num_rows * max(1, file.metadata.num_columns))
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
            size += batch.nbytes
            if size > outside.MOST_BYTES:
                most = file_size(outside.MOST_BYTES)
                raise FileError(f"larger than {most} when unpacked")
            rows += [
                {name: _plain(value) for name, value in flat(item).items()}
                for item in batch.to_pylist()
            ]
        names = file.schema_arrow.names
    except (pa.ArrowException, OSError, ValueError, OverflowError) as problem:
        said = " ".join(str(problem).split())
        raise FileError(f"not Parquet that can be read: {said}") from None
    columns = dict.fromkeys(name for row in rows for name in row)
    return list(columns or names), rows


def _plain(value: Any) -> Any:
    """A value as JSON has it: times and dates as text, bytes not at all."""
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, str):
        return outside.plain(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    return str(value)


def refuse_cells(count: int) -> None:
    """Raise FileError for more cells than are read."""
    if count > MOST_CELLS:
        raise FileError(f"more than {MOST_CELLS:,} cells; split the table")


def flat(item: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by dotted path: `{"a": {"b": 1}}` has a column `a.b`. Raises FileError where two values have one path,
    UnfitError where a value could not be read."""
    cells: dict[str, Any] = {}
    for name, value in item.items():
        path = f"{prefix}{name}"
        if isinstance(value, outside.UnfitError):
            raise value
        more = flat(value, f"{path}.") if isinstance(value, dict) else {path: value}
        for column in more.keys() & cells.keys():
            raise FileError(f"column {column!r} stands twice; rename one")
        cells |= more
    return cells

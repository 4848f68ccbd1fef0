"""The rows of a table in a file: CSV, JSON, JSON lines or Parquet. Each knows where it stands, for lines to people."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from sparkpub.collect.importers.files import FileError, ResultFile
from sparkpub.plan.workloads import reading
from sparkpub.record import outside
from sparkpub.record.text import file_size

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
MOST_CELLS = 10_000_000
"""Cells of one table: some 100 bytes of memory each."""
_NO_OBJECT = "no JSON object; write {column: value, ...}"
_DELIMITERS = ",;\t"
_BATCH_ROWS = 1000
_BATCH_BYTES = 1 << 30
"""Parquet is unpacked so many rows, and at worst so many bytes of a column, at a time before its size is looked at."""


@dataclass(frozen=True)
class SourceRow:
    """One row: column to what stands there (text, number, truth or None), and the number of its line or place."""

    number: int
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class SourceTable:
    """The rows of a file. `unit` is the word for a row's number: line, or row where a file has no lines."""

    columns: tuple[str, ...]
    rows: tuple[SourceRow, ...]
    unit: str = "line"
    faults: tuple[tuple[int, str], ...] = ()
    """Rows that could not be read: number, and why."""


def read_table(file: ResultFile) -> SourceTable:
    """The table in a file. Raises FileError where it is none."""
    if file.suffix in (".csv", ".tsv"):
        return _csv(reading.text(file.content))
    if file.suffix == ".parquet":
        return _parquet(file.content)
    return _json(file.content)


def _csv(text: str) -> SourceTable:
    header = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = tuple(name.strip() for name in next(reader, []))
        _refuse_columns(columns)
        rows: list[SourceRow] = []
        faults: list[tuple[int, str]] = []
        for cells in reader:
            _refuse_cells(len(rows) * len(columns))
            number = reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                what = (
                    f"{len(cells)} cells under {len(columns)} columns; correct the row"
                )
                faults.append((number, what))
                continue
            values = [cell.strip() or None for cell in cells]
            rows.append(SourceRow(number, dict(zip(columns, values, strict=True))))
    except csv.Error as problem:
        raise FileError(f"not CSV: {problem}, line {reader.line_num}") from None
    return SourceTable(columns, tuple(rows), faults=tuple(faults))


def _refuse_columns(columns: tuple[str, ...]) -> None:
    """Raise FileError for a header that cannot name cells."""
    if not any(columns):
        raise FileError("it has no header; name the columns in the first line")
    if len(columns) > outside.MOST_KEYS:
        raise FileError(f"more than {outside.MOST_KEYS:,} columns")
    name, count = Counter(columns).most_common(1)[0]
    if count > 1:
        what = f"column {name!r} stands twice" if name else "two columns have no name"
        raise FileError(f"{what} in the header; rename one")


def _refuse_cells(count: int) -> None:
    """Raise FileError for more cells than are read."""
    if count > MOST_CELLS:
        raise FileError(f"more than {MOST_CELLS:,} cells; split the table")


def _json(content: bytes) -> SourceTable:
    """A list of objects, one object, or an object on each line."""
    why_no_document = ""
    try:
        document = reading.strict_json(content)
    except ValueError as problem:
        if isinstance(problem, outside.UnfitError):
            why_no_document = str(problem)
        found = _objects(_lines(content), "line")
    else:
        listed = document if isinstance(document, list) else [document]
        found = _objects(enumerate(listed, 1), "row")
    if found.rows:
        return found
    told = [text for _, text in found.faults if text != _NO_OBJECT]
    if why_no_document:
        told.insert(0, why_no_document)
    nothing = "no JSON objects in it; write one for each row"
    raise FileError(told[0] if told else nothing)


def _lines(content: bytes) -> Iterator[tuple[int, Any]]:
    """The JSON value of each line with its number, or why it has none."""
    for number, line in enumerate(reading.text(content).splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield number, reading.strict_json(line.encode())
        except ValueError as problem:
            yield number, problem


def _objects(found: Iterable[tuple[int, Any]], unit: str) -> SourceTable:
    rows: list[SourceRow] = []
    faults: list[tuple[int, str]] = []
    for number, item in found:
        if isinstance(item, outside.UnfitError):
            faults.append((number, str(item)))
        elif isinstance(item, dict):
            try:
                rows.append(SourceRow(number, _flat(item)))
            except FileError as problem:
                faults.append((number, str(problem)))
        else:
            faults.append((number, _NO_OBJECT))
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    if len(columns) > outside.MOST_KEYS:
        raise FileError(f"more than {outside.MOST_KEYS:,} columns")
    return SourceTable(tuple(columns), tuple(rows), unit, tuple(faults))


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted path: `{"a": {"b": 1}}` has a column `a.b`. Raises FileError where two values have one path."""
    cells: dict[str, Any] = {}
    for path, value in _paths(item, ""):
        if path in cells:
            raise FileError(f"column {path!r} stands twice; rename one")
        cells[path] = value
    return cells


def _paths(item: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in item.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _parquet(content: bytes) -> SourceTable:
    try:
        import pyarrow as pa  # noqa: PLC0415 - a machine that only measures has no Arrow
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        remedy = "pip install 'sparkpub[site]', or write the table as CSV"
        raise FileError(f"reading Parquet needs pyarrow; {remedy}") from None
    rows: list[SourceRow] = []
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        for batch in _batches(file):
            for item in batch.to_pylist():
                cells = {name: _plain(value) for name, value in _flat(item).items()}
                rows.append(SourceRow(len(rows) + 1, cells))
        names = file.schema_arrow.names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        raise FileError(f"not Parquet: {' '.join(str(problem).split())}") from None
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    return SourceTable(tuple(columns or names), tuple(rows), "row")


def _batches(file: "pq.ParquetFile") -> Iterator["pa.RecordBatch"]:
    """The rows of a Parquet file, some at a time. Raises FileError where they are more than are read, as soon as the
    file says so or they turn out to be: a kilobyte can unpack to gigabytes."""
    declared = file.metadata
    sizes = _declared_sizes(declared)
    _refuse_size(sum(sizes))
    width = max(1, declared.num_columns)
    _refuse_cells(declared.num_rows * width)
    # No value is longer than its part of the file, and each row may repeat the longest.
    longest = max(sizes, default=0)
    rows = min(_BATCH_ROWS, max(1, _BATCH_BYTES // max(1, longest)))
    size = count = 0
    for batch in file.iter_batches(rows, use_threads=False):
        size += batch.nbytes
        count += batch.num_rows
        _refuse_size(size)
        _refuse_cells(count * width)
        yield batch


def _declared_sizes(declared: "pq.FileMetaData") -> list[int]:
    """Bytes of each column of each row group, not compressed, as the file says."""
    found = []
    for number in range(declared.num_row_groups):
        group = declared.row_group(number)
        for column in range(group.num_columns):
            found.append(group.column(column).total_uncompressed_size)
    return found


def _refuse_size(size: int) -> None:
    if size > outside.MOST_BYTES:
        raise FileError(f"larger than {file_size(outside.MOST_BYTES)} when unpacked")


def _plain(value: Any) -> Any:
    """A value as JSON has it: times and dates as text, bytes not at all."""
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, str):
        return outside.plain(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    return str(value)


def as_document(row: SourceRow) -> str:
    """A row as JSON, the same for the same cells."""
    return json.dumps(row.cells, ensure_ascii=False, sort_keys=True, default=str)

"""The rows of a table in a file: CSV, JSON, JSON lines or Parquet. Each knows where it stands, for lines to people."""

import csv
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
from sparkpub.tools.forms import FileError, ResultFile

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
_NO_OBJECT = "no JSON object; write {column: value, ...}"
MOST_CELLS = 10_000_000
"""Cells of one table: some 100 bytes of memory each."""
_BATCH_ROWS = 100
"""So many rows are unpacked at a time before their size is looked at."""
_DELIMITERS = ",;\t"


@dataclass(frozen=True)
class SourceRow:
    """One row: column to what stands there (text, number, truth or None), and the number of its line or place."""

    number: int
    cells: Mapping[str, Any]
    said: Mapping[str, Any]
    """The cells, and in JSON what they are parts of."""

    def saying(self, more: Mapping[str, Any]) -> "SourceRow":
        """With further cells."""
        return SourceRow(self.number, {**self.cells, **more}, {**self.said, **more})


@dataclass(frozen=True)
class SourceTable:
    """The rows of a file. `unit` is the word for a row's number: line, or row where a file has no lines."""

    columns: tuple[str, ...]
    rows: tuple[SourceRow, ...]
    unit: str = "line"
    faults: tuple[tuple[int, str], ...] = ()
    """Rows that could not be read: number, and why."""


def read_table(file: ResultFile, rows: str | None = None) -> SourceTable:
    """The table in a file; `rows` says where its rows are in JSON. Raises FileError where it is none."""
    if file.suffix in (".csv", ".tsv"):
        found = _csv(reading.text(file.content))
    elif file.suffix == ".parquet":
        found = _parquet(file.content)
    else:
        found = _json(file.content, rows)
    return _without_commas(found)


def _without_commas(table: SourceTable) -> SourceTable:
    """With the numbers of each column written with a point; the cells stay as they are, for they are evidence."""
    said: list[dict[str, Any]] = [{} for _ in table.rows]
    for column in table.columns:
        written = [row.cells.get(column) for row in table.rows]
        plain = without_commas(written)
        for row, before, after in zip(said, written, plain, strict=True):
            if after is not before:
                row[column] = after
    rows = tuple(
        replace(row, said={**row.said, **changed}) if changed else row
        for row, changed in zip(table.rows, said, strict=True)
    )
    return replace(table, rows=rows)


def _csv(text: str) -> SourceTable:
    header = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    # A long cell is a matter of its row. The limit is one for the whole process, so it is put back.
    before = csv.field_size_limit(outside.MOST_BYTES)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = tuple(name.strip() for name in next(reader, []))
        _refuse_columns(columns)
        rows: list[SourceRow] = []
        faults: list[tuple[int, str]] = []
        for cells in reader:
            refuse_cells(len(rows) * len(columns))
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
            row = dict(zip(columns, values, strict=True))
            rows.append(SourceRow(number, row, row))
    except csv.Error as problem:
        raise FileError(f"not CSV: {problem}, line {reader.line_num}") from None
    finally:
        csv.field_size_limit(before)
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


def _json(content: bytes, rows: str | None) -> SourceTable:
    """A list of objects, one object, or an object on each line; with `rows` what lies there in each of them."""
    why_no_document = ""
    unit = "row"
    try:
        document = _document(content)
    except ValueError as problem:
        if isinstance(problem, outside.UnfitError):
            why_no_document = str(problem)
        unit = "line"
        items = list(_lines(content))
    else:
        listed = document if isinstance(document, list) else [document]
        items = list(enumerate(listed, 1))
    if rows is not None:
        unit = "row"
        items = list(enumerate(_spread_all(items, rows), 1))
    found = _objects(items, unit)
    if found.rows:
        return found
    told = [text for _, text in found.faults if text != _NO_OBJECT]
    if why_no_document:
        told.insert(0, why_no_document)
    nothing = "no JSON objects in it; write one for each row"
    raise FileError(told[0] if told else nothing)


def _document(content: bytes) -> Any:
    """A JSON document in which a number of too many digits is why it cannot be read: the other rows can. Raises
    ValueError."""
    return reading.strict_json(content, whole_number=_number_or_why_not)


def _number_or_why_not(digits: str) -> int | outside.UnfitError:
    try:
        return outside.whole_number(digits)
    except outside.UnfitError as problem:
        return problem


def _spread_all(items: list[tuple[int, Any]], path: str) -> list[Any]:
    """The rows at a path below each of several objects."""
    spread: list[Any] = []
    for _, item in items:
        if isinstance(item, outside.UnfitError):
            spread.append(item)
        else:
            spread += [row for row, _ in spread_out(item, path.split("."))]
        refuse_cells(len(spread))
    return spread


def spread_out(item: Any, path: list[str]) -> Iterator[tuple[dict[str, Any], Any]]:
    """The rows at a path below an object: each as the object is with that row in the place of all, without the lists
    around it, and as it is with no other row."""
    if not path:
        yield _row(item), item
        return
    if not isinstance(item, dict):
        return
    step, *rest = path
    if step == "*":
        for name, value in item.items():
            for row, alone in spread_out(value, rest):
                yield {"key": name, **row}, {name: alone}
        return
    around = {
        name: value
        for name, value in item.items()
        if name != step and not isinstance(value, list)
    }
    below = item.get(step)
    for part in below if isinstance(below, list) else [below]:
        for row, alone in spread_out(part, rest):
            kept = [alone] if isinstance(below, list) else alone
            yield {**around, step: row}, {**item, step: kept}


def _row(item: Any) -> dict[str, Any]:
    """The parts of a row; a figure alone is its `value`."""
    if isinstance(item, dict):
        return item
    return {} if item is None else {"value": item}


def _lines(content: bytes) -> Iterator[tuple[int, Any]]:
    """The JSON value of each line with its number, or why it has none."""
    for number, line in enumerate(reading.text(content).splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield number, _document(line.encode())
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
                cells = dict(_listed(_whole(flat(item))))
                rows.append(SourceRow(number, cells, {**item, **cells}))
            except (FileError, outside.UnfitError) as problem:
                faults.append((number, str(problem)))
        else:
            faults.append((number, _NO_OBJECT))
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    if len(columns) > outside.MOST_KEYS:
        raise FileError(f"more than {outside.MOST_KEYS:,} columns")
    return SourceTable(tuple(columns), tuple(rows), unit, tuple(faults))


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


def _whole(cells: dict[str, Any]) -> dict[str, Any]:
    """The cells, all of which could be read. Raises UnfitError."""
    for cell in cells.values():
        if isinstance(cell, outside.UnfitError):
            raise cell
    return cells


def _parquet(content: bytes) -> SourceTable:
    """In a process of its own: Arrow ends the whole interpreter over some damaged files."""
    if importlib.util.find_spec("pyarrow") is None:
        remedy = "pip install 'sparkpub[site]', or write the table as CSV"
        raise FileError(f"reading Parquet needs pyarrow; {remedy}")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        try:
            columns, found = apart.submit(_unpacked, content).result()
        except BrokenProcessPool:
            raise FileError("not Parquet: its reader ended over it") from None
    rows = [SourceRow(number, row, row) for number, row in enumerate(found, 1)]
    return SourceTable(tuple(columns), tuple(rows), "row")


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


def flat(item: Mapping[str, Any]) -> dict[str, Any]:
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


def as_document(row: SourceRow) -> str:
    """A row as JSON, the same for the same cells."""
    return json.dumps(row.cells, ensure_ascii=False, sort_keys=True, default=str)

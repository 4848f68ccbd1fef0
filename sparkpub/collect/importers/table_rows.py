"""The rows of a table in a file: CSV, JSON, JSON lines or Parquet. Each knows where it stands, for lines to people."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkpub.collect.importers import parquet
from sparkpub.collect.importers.files import FileError, ResultFile
from sparkpub.plan.workloads import reading
from sparkpub.record import outside

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
_DELIMITERS = ",;\t"


@dataclass(frozen=True)
class Row:
    """One row: column to what stands there (text, number, truth or None), and the number of its line or place."""

    number: int
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """The rows of a file. `unit` is the word for a row's number: line, or row where a file has no lines."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    unit: str = "line"
    faults: tuple[tuple[int, str], ...] = ()
    """Rows that could not be read: number, and why."""


def read_table(file: ResultFile, rows: str | None = None) -> Table:
    """The table in a file; `rows` says where its rows are in JSON. Raises FileError where it is none."""
    if file.suffix in (".csv", ".tsv"):
        return _csv(reading.text(file.content))
    if file.suffix == ".parquet":
        return _parquet(file.content)
    return _json(file.content, rows)


def _csv(text: str) -> Table:
    header = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header.count)
    csv.field_size_limit(outside.MOST_BYTES)  # a long cell is a matter of its row
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = tuple(name.strip() for name in next(reader, []))
        _refuse_columns(columns)
        rows: list[Row] = []
        faults: list[tuple[int, str]] = []
        for cells in reader:
            parquet.refuse_cells(len(rows) * len(columns))
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
            rows.append(Row(number, dict(zip(columns, values, strict=True))))
    except csv.Error as problem:
        raise FileError(f"not CSV: {problem}, line {reader.line_num}") from None
    return Table(columns, tuple(rows), faults=tuple(faults))


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


def _json(content: bytes, rows: str | None) -> Table:
    """A list of objects, one object, or an object on each line; with `rows` what lies there in each of them."""
    document = reading.json_value(content)
    if document is None:
        found, unit = list(_lines(content)), "line"
    else:
        listed = document if isinstance(document, list) else [document]
        found, unit = list(enumerate(listed, 1)), "row"
    if rows is None:
        return _objects(found, unit)
    spread: list[Any] = []
    for _, item in found:
        spread += _spread(item, rows.split("."), "")
        parquet.refuse_cells(len(spread))
    return _objects(list(enumerate(spread, 1)), "row")


def _spread(item: Any, path: list[str], prefix: str) -> list[dict[str, Any]]:
    """The rows at a path below an object, each with the plain values around it, by dotted path."""
    if not path:
        return [{f"{prefix}{name}": cell for name, cell in _cells(item)}]
    if not isinstance(item, dict):
        return []
    step, *rest = path
    around = {
        f"{prefix}{name}": value
        for name, value in item.items()
        if name != step and not isinstance(value, list)
    }
    inner = f"{prefix}{step}."
    if step == "*":
        around, inner = {}, prefix
        parts = [({f"{prefix}key": name}, value) for name, value in item.items()]
    else:
        below = item.get(step)
        listed = below if isinstance(below, list) else [below]
        parts = [({}, value) for value in listed]
    found = []
    for named, part in parts:
        rows = _spread(part, rest, inner)
        found += [{**around, **named, **row} for row in rows]
    return found


def _cells(item: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a row; a figure alone is its `value`."""
    if isinstance(item, dict):
        yield from item.items()
    elif item is not None:
        yield "value", item


def _lines(content: bytes) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(reading.text(content).splitlines(), 1):
        if line.strip():
            yield number, reading.json_value(line.encode())


def _objects(found: Iterator[tuple[int, Any]] | Any, unit: str) -> Table:
    rows: list[Row] = []
    faults: list[tuple[int, str]] = []
    for number, item in found:
        if isinstance(item, dict):
            rows.append(Row(number, parquet.flat(item)))
        else:
            faults.append((number, "no JSON object; write {column: value, ...}"))
    if not rows:
        raise FileError("no JSON objects in it; write one for each row")
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    if len(columns) > outside.MOST_KEYS:
        raise FileError(f"more than {outside.MOST_KEYS:,} columns")
    return Table(tuple(columns), tuple(rows), unit, tuple(faults))


def _parquet(content: bytes) -> Table:
    columns, found = parquet.read(content)
    rows = tuple(Row(number, cells) for number, cells in enumerate(found, 1))
    return Table(tuple(columns), rows, "row")


def as_document(row: Row) -> str:
    """A row as JSON, the same for the same cells."""
    return json.dumps(row.cells, ensure_ascii=False, sort_keys=True, default=str)

"""Parquet to rows, in a process of its own: Arrow ends the whole interpreter over some damaged files.

`python -m sparkpub.collect.importers.parquet` reads a file from its standard input and writes JSON lines: the names of
the columns, then each row as an object, or `{"problem": ...}` in place of them.
"""

import importlib.util
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from sparkpub.record import outside
from sparkpub.record.text import file_size
from sparkpub.tools import reading
from sparkpub.tools.forms import FileError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MOST_CELLS = 10_000_000
"""Cells of one table: some 100 bytes of memory each."""
_PROGRAM = (sys.executable, "-P", "-m", "sparkpub.collect.importers.parquet")
_LONGEST_SECONDS = 300
_BATCH_ROWS = 1000
_BATCH_BYTES = 1 << 30
"""So many rows, and at worst so many bytes of a column, are unpacked at a time before their size is looked at."""


def read(content: bytes) -> tuple[list[str], list[dict[str, Any]]]:
    """The columns and the rows of a Parquet file. Raises FileError where it is none, or is too large."""
    if importlib.util.find_spec("pyarrow") is None:
        remedy = "pip install 'sparkpub[site]', or write the table as CSV"
        raise FileError(f"reading Parquet needs pyarrow; {remedy}")
    try:
        done = subprocess.run(
            _PROGRAM,
            input=content,
            capture_output=True,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        what = f"not read within {_LONGEST_SECONDS} s"
        raise FileError(f"{what}; write the table as CSV") from None
    if done.returncode != 0:
        raise FileError(f"not Parquet: its reader ended with {_ending(done)}")
    first, *lines = done.stdout.splitlines()
    header = reading.json_value(first)
    if "problem" in header:
        raise FileError(header["problem"])
    return header["columns"], [reading.json_value(line) for line in lines]


def _ending(done: "subprocess.CompletedProcess[bytes]") -> str:
    """How a process ended, in words."""
    if done.returncode < 0:
        return signal.Signals(-done.returncode).name
    said = reading.text(done.stderr).split("\n")
    return " ".join([line for line in said if line][-1:]) or "an error"


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


# -- in the process of its own ---------------------------------------------------------------------------------


def main() -> None:
    """Write the rows of the file on standard input."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        columns, rows = _unpacked(sys.stdin.buffer.read())
    except FileError as problem:
        sys.stdout.write(json.dumps({"problem": str(problem)}))
        return
    sys.stdout.write(json.dumps({"columns": columns}) + "\n")
    for row in rows:
        sys.stdout.write(json.dumps(row) + "\n")


def _unpacked(content: bytes) -> tuple[list[str], list[dict[str, Any]]]:
    import pyarrow as pa  # noqa: PLC0415 - a machine that only measures has no Arrow
    import pyarrow.parquet as pq  # noqa: PLC0415

    rows: list[dict[str, Any]] = []
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        for batch in _batches(file):
            for item in _items(batch):
                cells = {name: _plain(value) for name, value in flat(item).items()}
                rows.append(cells)
        names = file.schema_arrow.names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        raise FileError(f"not Parquet: {' '.join(str(problem).split())}") from None
    columns = dict.fromkeys(name for row in rows for name in row)
    return list(columns or names), rows


def _batches(file: "pq.ParquetFile") -> Iterator["pa.RecordBatch"]:
    """The rows of a Parquet file, some at a time. Raises FileError where they are more than are read, as soon as the
    file says so or they turn out to be: a kilobyte can unpack to gigabytes."""
    declared = file.metadata
    sizes = _declared_sizes(declared)
    _refuse_size(sum(sizes))
    width = max(1, declared.num_columns)
    refuse_cells(declared.num_rows * width)
    # No value is longer than its part of the file, and each row may repeat the longest.
    longest = max(sizes, default=0)
    rows = min(_BATCH_ROWS, max(1, _BATCH_BYTES // max(1, longest)))
    size = count = 0
    for batch in file.iter_batches(rows, use_threads=False):
        size += batch.nbytes
        count += batch.num_rows
        _refuse_size(size)
        refuse_cells(count * width)
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


def _items(batch: "pa.RecordBatch") -> Iterator[dict[str, Any]]:
    """The rows of a batch; cell by cell where Python cannot express one, such as a time beyond the year 9999."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        for number in range(batch.num_rows):
            yield {
                name: _cell(batch.column(name)[number]) for name in batch.schema.names
            }


def _cell(scalar: "pa.Scalar[Any]") -> Any:
    """A value as Python has it, or in Arrow's words."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return f"a {scalar.type} that is out of range"


def _plain(value: Any) -> Any:
    """A value as JSON has it: times and dates as text, bytes not at all."""
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, str):
        return outside.plain(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    return str(value)


if __name__ == "__main__":
    main()

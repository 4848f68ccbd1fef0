"""The three tables in the formats that people load elsewhere. Polars and DuckDB read what is written here as well."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from sparkpub.record.store import write_atomic

PART = "part-0.parquet"
ROWS_AT_ONCE = 20_000
"""Rows that are text at the same time: all of the runs' table of 10,000 runs would take most of a gigabyte."""


def csv(table: pd.DataFrame) -> bytes:
    """CSV with a header; empty where there is no value, lists joined by spaces."""
    pieces: list[str] = [
        rows.to_csv(index=False, header=number == 0, lineterminator="\n")
        for number, rows in enumerate(_parts(table))
    ]
    return "".join(pieces).encode()


def parquet(table: pd.DataFrame) -> bytes:
    """Parquet, with the columns' types; text is text, whatever it was held as here."""
    import pyarrow as pa  # noqa: PLC0415 - CSV and JSON do without
    import pyarrow.parquet as pq  # noqa: PLC0415

    buffer = io.BytesIO()
    parts = (pa.Table.from_pandas(rows, preserve_index=False) for rows in _parts(table))
    first = next(parts)
    with pq.ParquetWriter(buffer, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part.cast(first.schema))
    return buffer.getvalue()


def json_rows(table: pd.DataFrame) -> bytes:
    """A JSON list with one object per row; null where there is no value."""
    plain = _plain(table).astype(object)
    rows = plain.where(plain.notna(), None).to_dict(orient="records")
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode()


FORMATS: Mapping[str, Callable[[pd.DataFrame], bytes]] = {
    "csv": csv,
    "parquet": parquet,
    "json": json_rows,
}
"""Name of a format to what writes it."""


def _parts(table: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The table as `_plain` has it, so many rows at once; an empty one is one part."""
    for start in range(0, max(1, len(table)), ROWS_AT_ONCE):
        yield _plain(table.iloc[start : start + ROWS_AT_ONCE])


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """The table with text as text and lists as text, which every format can hold."""
    columns = {}
    for name, column in table.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            columns[name] = column.astype("string")
        elif column.dtype == object:
            columns[name] = column.map(_listed)
        else:
            columns[name] = column
    return pd.DataFrame(columns)


def _listed(value: Any) -> Any:
    """A list as text; what is missing, or is none, as it is."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def write_partitioned(runs: pd.DataFrame, folder: Path) -> int:
    """Write a Parquet file per campaign, `campaign=NAME/part-0.parquet`; how many.

    The name of the folder is the value of the column `campaign`, as Hive, DuckDB, Polars and Spark read it.
    """
    groups = runs.groupby("campaign", observed=True, sort=False)
    for name, rows in groups:
        part = folder / f"campaign={name}"
        part.mkdir(parents=True, exist_ok=True)
        write_atomic(part / PART, parquet(rows.drop(columns="campaign")))
    return len(groups)

"""The tidy table, one row per run and metric, in the formats that people load elsewhere.

The table of each campaign is kept in its memory, so that a table of a hundred thousand runs is put together and not
made again. Arrow holds it, pandas writes it; Polars and DuckDB read what is written here as well.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from sparkpub.record.store import write_atomic
from sparkpub.review import cache
from sparkpub.review.cache import Cache
from sparkpub.review.checks import Review
from sparkpub.review.frame import FIELDS, Frame

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES = {"iteration": "int64", "position": "int64", "quarantined": "bool"}
_TYPES |= {"value": "double"}
"""Type of a column that is not text. Text is stored as a list of its distinct values and their places."""
_ROWS = ("rows",)
_WRITING = ("pyarrow", "pandas")
PART = "part-0.parquet"


def table(review: Review) -> "pa.Table":
    """The rows of every campaign, null where there is no value; text as dictionaries."""
    import pyarrow as pa  # noqa: PLC0415 - only the exports shall wait for it

    parts = [campaign_table(frame) for frame in review.frames.values()]
    if not parts:
        return pa.Table.from_pylist([], schema=_schema())
    return pa.concat_tables(parts).unify_dictionaries()


def campaign_table(frame: Frame) -> "pa.Table":
    """The rows of one campaign, from its memory where they are known."""
    import pyarrow as pa  # noqa: PLC0415

    memory = frame.campaign.memory
    what = (*_ROWS, pa.__version__, *sorted(frame.out.items()))
    data = memory.data(what)
    if data is None:
        made = _made(frame)
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, made.schema) as writer:
            writer.write_table(made)
        memory.keep_data(what, stream.getvalue().to_pybytes())
        return made
    return pa.ipc.open_stream(data).read_all()


def _made(frame: Frame) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415

    columns: list[tuple[object, ...]] = list(zip(*frame.rows(), strict=True))
    if not columns:
        return pa.Table.from_pylist([], schema=_schema())
    arrays = [
        pa.array(column, type=field.type)
        for column, field in zip(columns, _schema(), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=_schema())


def _schema() -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415

    text = pa.dictionary(pa.int32(), pa.string())
    types = {name: pa.type_for_alias(alias) for name, alias in _TYPES.items()}
    return pa.schema([(name, types.get(name, text)) for name in FIELDS])


def csv(table: "pa.Table") -> bytes:
    """CSV with a header; empty where there is no value."""
    text: str = table.to_pandas().to_csv(index=False, lineterminator="\n")
    return text.encode()


def parquet(table: "pa.Table") -> bytes:
    """Parquet, with the columns' types; text is text, whatever it was stored as here."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", store_schema=False)
    return buffer.getvalue()


def json_rows(table: "pa.Table") -> bytes:
    """A JSON list with one object per row; null where there is no value."""
    frame = table.to_pandas().astype(object)
    rows = frame.where(frame.notna(), None).to_dict(orient="records")
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode()


FORMATS: Mapping[str, Callable[["pa.Table"], bytes]] = {
    "csv": csv,
    "parquet": parquet,
    "json": json_rows,
}
"""Name of a format to what writes it."""


def written(review: Review, formats: Sequence[str], kept: Cache) -> dict[str, bytes]:
    """The table in each of these formats, from `kept` where the same table was written before."""
    decided_by = _decided_by(review)
    if decided_by is None:
        return _written(review, formats)
    names = {form: cache.key("export", form, *decided_by) for form in formats}
    known = {form: kept.get(name) for form, name in names.items()}
    found = {form: data for form, data in known.items() if data is not None}
    if len(found) < len(formats):
        found = _written(review, formats)
        for form, data in found.items():
            kept.put(names[form], data)
    return found


def _decided_by(review: Review) -> list[object] | None:
    """All that decides what is written, campaign by campaign; None where files may still change."""
    found: list[object] = [metadata.version(library) for library in _WRITING]
    for frame in review.frames.values():
        memory = frame.campaign.memory
        if memory.files is None or not memory.settled():
            return None
        found.append([memory.files, sorted(frame.out.items())])
    return found


def _written(review: Review, formats: Sequence[str]) -> dict[str, bytes]:
    rows = table(review)
    return {form: FORMATS[form](rows) for form in formats}


def write_partitioned(review: Review, folder: Path) -> int:
    """Write a Parquet file per campaign, `campaign=NAME/part-0.parquet`, one at a time; how many.

    The name of the folder is the value of the column `campaign`, as Hive, DuckDB, Polars and Spark read it.
    """
    for name, frame in review.frames.items():
        part = folder / f"campaign={name}"
        part.mkdir(parents=True, exist_ok=True)
        rows = campaign_table(frame).drop_columns(["campaign"])
        write_atomic(part / PART, parquet(rows))
    return len(review.frames)

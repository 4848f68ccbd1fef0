"""The tidy table, one row per run and metric, in the formats that people load elsewhere."""

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from sparkpub.record.store import write_atomic
from sparkpub.review.checks import Review
from sparkpub.review.frame import FIELDS

if TYPE_CHECKING:
    import pandas as pd


def table(review: Review) -> "pd.DataFrame":
    """The rows of every campaign's frame, with NaN where a metric is not available."""
    import pandas as pd  # noqa: PLC0415 - half a second, for which only the exports shall wait

    return pd.DataFrame(_rows(review), columns=list(FIELDS))


def _rows(review: Review) -> list[tuple[object, ...]]:
    return [row for frame in review.frames.values() for row in frame.rows()]


def csv(frame: "pd.DataFrame") -> bytes:
    """CSV with a header; empty where there is no value."""
    return frame.to_csv(index=False, lineterminator="\n").encode()


def parquet(frame: "pd.DataFrame") -> bytes:
    """Parquet, with the columns' types."""
    buffer = io.BytesIO()
    typed = frame.astype(
        {
            "value": "float64",
            "iteration": "int64",
            "position": "int64",
            "quarantined": "bool",
        }
    )
    typed.to_parquet(buffer, index=False)
    return buffer.getvalue()


def json_rows(frame: "pd.DataFrame") -> bytes:
    """A JSON list with one object per row; null where there is no value."""
    rows = json.loads(
        frame.to_json(orient="records", double_precision=15, force_ascii=False)
    )
    return (json.dumps(rows, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


FORMATS: Mapping[str, Callable[["pd.DataFrame"], bytes]] = {
    "csv": csv,
    "parquet": parquet,
    "json": json_rows,
}
"""Name of a format to what writes it."""


def files(review: Review, cache: Path) -> Mapping[str, bytes]:
    """The table in every format, from `cache` where the rows are as they were: loading pandas takes longer."""
    content = repr(
        (_rows(review), metadata.version("pandas"), metadata.version("pyarrow"))
    )
    key = hashlib.sha256(content.encode()).hexdigest()
    folder = cache / "tables"
    places = {name: folder / f"{key}.{name}" for name in FORMATS}
    if not all(place.is_file() for place in places.values()):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        frame = table(review)
        for name, place in places.items():
            write_atomic(place, FORMATS[name](frame), durable=False)
    return {name: place.read_bytes() for name, place in places.items()}

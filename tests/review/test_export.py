"""The tables in the formats that other programs read, and a file per campaign."""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as arrow
import pytest

from sparkpub.review.results import load
from sparkpub.review.tables.runs import COLUMNS
from sparkpub.review.told import FORMATS, write_partitioned
from sparkpub.review.told import csv as as_csv
from tests.review.statistics.campaigns import a_campaign, written


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two campaigns of one cell: two runs, and three."""
    for name, values in (("a", [1.5, 0.1 + 0.2]), ("b", [1.0, 2.0, 3.0])):
        campaign = a_campaign(name, {("m", "native"): {"ttft_p50_ms": values}})
        written(campaign, tmp_path / "data")
    return tmp_path / "data"


def rows_of(runs: pd.DataFrame) -> list[dict[str, object]]:
    """What every format should hold."""
    plain = runs.astype(object)
    return list(plain.where(plain.notna(), None).to_dict(orient="records"))


def test_every_format_has_every_row(data: Path) -> None:
    runs = load(data).runs
    assert list(runs) == list(COLUMNS)
    assert json.loads(FORMATS["json"](runs)) == rows_of(runs)
    parquet = pd.read_parquet(io.BytesIO(FORMATS["parquet"](runs)))
    assert parquet["value"].tolist() == [1.5, 0.30000000000000004, 1.0, 2.0, 3.0]
    assert not parquet["counts"].any()
    assert str(parquet["run"].dtype) in ("object", "str", "string")
    lines = list(csv.DictReader(io.StringIO(as_csv(runs).decode())))
    assert [line["value"] for line in lines][:2] == ["1.5", "0.30000000000000004"]
    assert (lines[0]["repeat_of"], lines[0]["quarantined"]) == ("", "False")


def test_partitions_are_read_as_one_table(data: Path, tmp_path: Path) -> None:
    found = load(data).runs
    out = tmp_path / "parts"
    write_partitioned(found, out)
    parts = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*"))
    assert parts == [f"campaign={name}/part-0.parquet" for name in "ab"]
    types = pa.schema([("campaign", pa.string())])
    read = arrow.dataset(out, partitioning=arrow.partitioning(types, flavor="hive"))
    rows = read.to_table().select(list(COLUMNS)).to_pylist()
    assert sorted(rows, key=lambda row: row["run"]) == sorted(
        rows_of(found), key=lambda row: str(row["run"])
    )

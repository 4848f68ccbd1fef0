"""The tidy table: the same rows in every format, the same from memory, and a file per campaign."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as arrow
import pytest

from sparkpub.record.store import to_json
from sparkpub.review import export, memory
from sparkpub.review.cache import Cache
from sparkpub.review.checks import Review, review
from sparkpub.review.dataset import load
from sparkpub.review.export import FORMATS, table, write_partitioned, written
from sparkpub.review.export import csv as as_csv
from sparkpub.review.frame import FIELDS, Frame
from sparkpub.review.memory import Keeper
from tests.review.statistics.campaigns import a_campaign


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two campaigns of one cell: two runs, and three."""
    for name, values in (("a", [1.5, 0.1 + 0.2]), ("b", [1.0, 2.0, 3.0])):
        campaign = a_campaign(name, {("m", "native"): {"ttft_p50_ms": values}})
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        (folder / "campaign.json").write_text(to_json(campaign.info))
        for record in campaign.records:
            (folder / f"{record.stem}.json").write_text(to_json(record))
    return tmp_path / "data"


def rows_of(found: Review) -> list[dict[str, object]]:
    """What every format should hold."""
    return [
        dict(zip(FIELDS, row, strict=True))
        for frame in found.frames.values()
        for row in frame.rows()
    ]


def test_every_format_has_every_row(data: Path) -> None:
    found = review(load(data))
    expected = rows_of(found)
    rows = table(found)
    assert len(expected) == 5
    assert rows.to_pylist() == expected
    assert json.loads(FORMATS["json"](rows)) == expected
    parquet = pd.read_parquet(io.BytesIO(FORMATS["parquet"](rows)))
    assert parquet["value"].tolist() == [1.5, 0.30000000000000004, 1.0, 2.0, 3.0]
    assert parquet["excluded"].notna().all()
    assert {str(parquet[name].dtype) for name in ("run", "metric")} <= {"object", "str"}
    lines = list(csv.DictReader(io.StringIO(as_csv(rows).decode())))
    assert [line["value"] for line in lines][:2] == ["1.5", "0.30000000000000004"]
    assert lines[0]["repeat_of"] == ""
    assert lines[0]["quarantined"] == "False"


def test_rows_from_memory_are_the_same(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "SETTLED_SECONDS", -1.0)
    keeper = Keeper(Cache(tmp_path / "cache"), "this program")
    first = table(review(load(data, keeper=keeper)))

    def unread(path: Path) -> object:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr("sparkpub.record.store.read_record", unread)
    monkeypatch.setattr("sparkpub.review.dataset.read_record", unread)
    assert table(review(load(data, keeper=keeper))).to_pylist() == first.to_pylist()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of every table that was put together, in order."""
    found: list[int] = []

    def making(found_in: Review) -> pa.Table:
        rows = table(found_in)
        found.append(len(rows))
        return rows

    monkeypatch.setattr(export, "table", making)
    return found


def test_what_was_written_once_is_not_written_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[int]
) -> None:
    monkeypatch.setattr(memory, "SETTLED_SECONDS", -1.0)
    keeper, kept = Keeper(Cache(tmp_path / "own"), "p"), Cache(tmp_path / "site")
    found = review(load(data, keeper=keeper))
    first = written(found, ["csv", "json"], kept)
    assert first == {name: FORMATS[name](table(found)) for name in ("csv", "json")}
    assert written(review(load(data, keeper=keeper)), ["csv", "json"], kept) == first
    assert made == [5]
    assert list(written(found, ["parquet"], kept)) == ["parquet"]
    assert made == [5, 5]
    # One file more, or another program, and it is another table.
    more = data / "c"
    more.mkdir()
    (more / "campaign.json").write_text('{"campaign": "c", "title": "none yet"}')
    written(review(load(data, keeper=keeper)), ["csv"], kept)
    written(review(load(data, keeper=Keeper(keeper.cache, "q"))), ["csv"], kept)
    assert made == [5, 5, 5, 5]


def test_a_table_without_runs_that_are_left_out_is_another_table(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[int]
) -> None:
    monkeypatch.setattr(memory, "SETTLED_SECONDS", -1.0)
    kept = Cache(tmp_path / "site")
    dataset = load(data, keeper=Keeper(Cache(tmp_path / "own"), "p"))
    found = review(dataset)
    every = {name: Frame(campaign, {}) for name, campaign in dataset.campaigns.items()}
    assert written(found, ["csv"], kept) != written(
        replace(found, frames=every), ["csv"], kept
    )
    assert made == [5, 5]


def test_nothing_is_kept_of_files_that_may_still_change(
    data: Path, tmp_path: Path, made: list[int]
) -> None:
    kept = Cache(tmp_path / "site")
    for keeper in (None, Keeper(Cache(tmp_path / "own"), "p")):
        found = review(load(data, keeper=keeper))
        assert written(found, ["csv"], kept) == written(found, ["csv"], kept)
    assert made == [5, 5, 5, 5]
    assert kept.empty


def test_no_campaign_is_an_empty_table(tmp_path: Path) -> None:
    rows = table(review(load(tmp_path)))
    assert as_csv(rows) == (",".join(FIELDS) + "\n").encode()
    assert FORMATS["json"](rows) == b"[]\n"
    empty = pd.read_parquet(io.BytesIO(FORMATS["parquet"](rows)))
    assert list(empty.columns) == list(FIELDS)


def test_a_campaign_without_runs_adds_no_row(data: Path) -> None:
    folder = data / "c"
    folder.mkdir()
    (folder / "campaign.json").write_text('{"campaign": "c", "title": "none yet"}')
    assert len(table(review(load(data)))) == 5


def test_partitions_are_read_as_one_table(data: Path, tmp_path: Path) -> None:
    found = review(load(data))
    out = tmp_path / "parts"
    assert write_partitioned(found, out) == 2
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*")) == [
        "campaign=a/part-0.parquet",
        "campaign=b/part-0.parquet",
    ]
    types = pa.schema([("campaign", pa.string())])
    read = arrow.dataset(out, partitioning=arrow.partitioning(types, flavor="hive"))
    rows = read.to_table().select(list(FIELDS)).to_pylist()
    assert sorted(rows, key=lambda row: row["run"]) == sorted(
        rows_of(found), key=lambda row: str(row["run"])
    )

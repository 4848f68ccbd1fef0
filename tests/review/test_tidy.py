"""The tidy table of a data folder is recalled in one piece, and only while every file is as it was."""

from pathlib import Path

import pyarrow as pa
import pytest

from sparkpub.record.errors import RecordError, UsageError
from sparkpub.record.store import to_json
from sparkpub.review import export, memory, tidy, workers
from sparkpub.review.cache import Cache
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from sparkpub.review.memory import Keeper
from tests.review.statistics.campaigns import a_campaign


def write(folder: Path, values: list[float]) -> None:
    """A campaign of one cell with a run for each value."""
    campaign = a_campaign(folder.name, {("m", "native"): {"ttft_p50_ms": values}})
    folder.mkdir(parents=True)
    (folder / "campaign.json").write_text(to_json(campaign.info))
    for record in campaign.records:
        (folder / f"{record.stem}.json").write_text(to_json(record))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two campaigns: two runs, and three."""
    write(tmp_path / "data" / "a", [1.5, 2.5])
    write(tmp_path / "data" / "b", [1.0, 2.0, 3.0])
    return tmp_path / "data"


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """In a folder of the test's own; files count as settled as soon as they are written."""
    monkeypatch.setattr(memory, "SETTLED_SECONDS", -1.0)
    found = Keeper(Cache(tmp_path / "cache"), "this program")
    monkeypatch.setattr(Keeper, "of_user", lambda: found)
    return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many campaigns each table was put together from, in order."""
    counts: list[int] = []
    real = export.table

    def counting(found: export.Review) -> pa.Table:
        counts.append(len(found.frames))
        return real(found)

    monkeypatch.setattr(export, "table", counting)
    return counts


def record_of(folder: Path, value: str) -> Path:
    """The record in which a value stands."""
    (found,) = (
        path for path in folder.iterdir() if f'"value": {value},' in path.read_text()
    )
    return found


def values(table: pa.Table) -> list[float]:
    return list(table.column("value").to_pylist())


@pytest.mark.usefixtures("keeper")
def test_the_table_is_recalled_as_it_was_put_together(
    data: Path, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tidy.tidy_table(data)
    assert first.to_pylist() == export.table(review(load(data))).to_pylist()
    assert values(first) == [1.5, 2.5, 1.0, 2.0, 3.0]
    made.clear()

    def loaded(*_: object, **__: object) -> None:
        raise AssertionError("loaded again")

    monkeypatch.setattr(workers, "load_known", loaded)
    again = tidy.tidy_table(data)
    assert made == []
    assert again.equals(first)
    assert again.schema == first.schema
    assert again.column("value").num_chunks == first.column("value").num_chunks == 1


@pytest.mark.usefixtures("keeper")
def test_any_change_of_any_campaign_is_seen(data: Path, made: list[int]) -> None:
    tidy.tidy_table(data)
    record = record_of(data / "b", "2.0")
    record.write_text(record.read_text().replace("2.0", "7.0"))
    assert values(tidy.tidy_table(data)) == [1.5, 2.5, 1.0, 7.0, 3.0]
    write(data / "c", [9.0])
    assert values(tidy.tidy_table(data)) == [1.5, 2.5, 1.0, 7.0, 3.0, 9.0]
    for path in (data / "a").iterdir():
        path.unlink()
    assert values(tidy.tidy_table(data)) == [1.0, 7.0, 3.0, 9.0]
    assert made == [2, 2, 3, 2]


@pytest.mark.usefixtures("keeper")
def test_a_damaged_record_is_damage_again_and_again(data: Path) -> None:
    tidy.tidy_table(data)
    record = record_of(data / "a", "1.5")
    record.write_text("{")
    for _ in range(2):
        with pytest.raises(RecordError, match=record.name):
            tidy.tidy_table(data)


@pytest.mark.usefixtures("keeper")
def test_another_program_makes_its_own(
    data: Path, made: list[int], keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidy.tidy_table(data)
    other = Keeper(keeper.cache, "another program")
    monkeypatch.setattr(Keeper, "of_user", lambda: other)
    tidy.tidy_table(data)
    monkeypatch.setattr(pa, "__version__", "0")
    tidy.tidy_table(data)
    assert made == [2, 2, 2]


@pytest.mark.usefixtures("keeper")
def test_a_damaged_entry_is_made_again(
    data: Path, made: list[int], tmp_path: Path
) -> None:
    first = tidy.tidy_table(data)
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file() and path.stat().st_size > 2000:
            path.write_bytes(path.read_bytes()[:-1])
    assert tidy.tidy_table(data).equals(first)
    assert made == [2, 2]


@pytest.mark.usefixtures("keeper")
def test_of_files_that_changed_meanwhile_no_table_is_kept(
    data: Path, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = export.table

    def changing(found: export.Review) -> pa.Table:
        table = real(found)
        record = record_of(data / "b", "2.0")
        record.write_text(record.read_text().replace("2.0", "7.0"))
        return table

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(export, "table", changing)
        assert values(tidy.tidy_table(data)) == [1.5, 2.5, 1.0, 2.0, 3.0]
    assert values(tidy.tidy_table(data)) == [1.5, 2.5, 1.0, 7.0, 3.0]
    assert made == [2, 2]


@pytest.mark.usefixtures("keeper")
def test_without_campaigns_the_table_is_empty(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    folder.mkdir()
    assert len(tidy.tidy_table(folder)) == 0
    assert len(tidy.tidy_table(folder)) == 0
    with pytest.raises(UsageError, match="no such data folder"):
        tidy.tidy_table(tmp_path / "nowhere")


@pytest.mark.parametrize(("runs", "kind"), [(2, "int8"), (128, "int8"), (129, "int16")])
@pytest.mark.usefixtures("keeper")
def test_places_are_as_small_as_the_number_of_texts_allows(
    tmp_path: Path, runs: int, kind: str
) -> None:
    """The largest place of 128 texts is 127, which is the largest number of eight bits with a sign."""
    write(tmp_path / "data" / "a", [float(number) for number in range(1, runs + 1)])
    table = tidy.tidy_table(tmp_path / "data")
    assert str(table.schema.field("run").type.index_type) == kind
    assert len(set(table.column("run").to_pylist())) == runs
    plain = export.table(review(load(tmp_path / "data")))
    for name, form in export.FORMATS.items():
        assert form(table) == form(plain), name


@pytest.mark.parametrize(
    ("texts", "kind"), [(32_768, pa.int16()), (32_769, pa.int32())]
)
def test_many_texts_need_more_room(texts: int, kind: pa.DataType) -> None:
    assert tidy._places(texts) == kind

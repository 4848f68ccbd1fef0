"""What is kept of a campaign is what its files say, or nothing: any change is seen, and no file is read in vain."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkpub.record.errors import RecordError
from sparkpub.record.record import Evidence
from sparkpub.record.store import file_sha256, to_json
from sparkpub.review import dataset as datasets
from sparkpub.review import memory
from sparkpub.review.cache import Cache
from sparkpub.review.checks import review
from sparkpub.review.dataset import Dataset, load
from sparkpub.review.memory import Keeper, Memory, state_of
from sparkpub.review.summary import statistics
from tests.building import a_record
from tests.review.statistics.campaigns import Cells, a_campaign


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs of campaign `c`, one with a log, which count as settled as soon as they are written."""
    monkeypatch.setattr(memory, "SETTLED_SECONDS", -1.0)
    folder = tmp_path / "data" / "c"
    folder.mkdir(parents=True)
    (folder / "campaign.json").write_text(
        to_json(a_campaign("c", {("m", "native"): {"ttft_p50_ms": [1.0]}}).info)
    )
    log = folder / "one.log"
    log.write_text("rate 100\n")
    item = Evidence(role="log", path=log.name, sha256=file_sha256(log), bytes=9)
    first = a_record(run_id="c-one", iteration=1, evidence=(item,))
    for record in (first, a_record(run_id="c-two", iteration=2)):
        (folder / f"{record.stem}.json").write_text(to_json(record))
    return folder.parent


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(Cache(tmp_path / "cache"), "this program")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the records that were read, in order."""
    names: list[str] = []
    real = datasets.read_record

    def reading(path: Path) -> object:
        names.append(path.name)
        return real(path)

    monkeypatch.setattr("sparkpub.review.dataset.read_record", reading)
    monkeypatch.setattr("sparkpub.record.store.read_record", reading)
    return names


def checks_of(dataset: Dataset) -> list[str]:
    return sorted({finding.check for finding in review(dataset).findings})


def test_what_was_reviewed_once_is_not_read_again(
    data: Path, keeper: Keeper, read: list[str]
) -> None:
    first = load(data, keeper=keeper)
    found = review(first)
    assert len(read) == 2
    read.clear()
    second = load(data, keeper=keeper)
    again = review(second)
    assert again.findings == found.findings
    assert again.excluded == found.excluded
    assert list(second.by_id) == ["c-one", "c-two"]
    assert read == []
    assert second.runs[1].record == first.runs[1].record
    assert read == [first.runs[1].path.name]


def test_figures_are_recalled_to_the_last_digit(
    tmp_path: Path, data: Path, keeper: Keeper, read: list[str]
) -> None:
    steps = [0.1, -0.2, 0.2, 0.3, -0.3, 0.0, -0.1, 1 / 3]
    cells: Cells = {
        ("m", "native"): {"ttft_p50_ms": [1.1 + step for step in steps]},
        ("m", "container"): {"ttft_p50_ms": [1.2 - step for step in steps]},
        ("k", "native"): {"ttft_p50_ms": [2.1 - step for step in steps]},
        ("k", "container"): {"ttft_p50_ms": [2.3 + step / 3 for step in steps]},
    }
    campaign = a_campaign("two", cells)
    folder = data / "two"
    folder.mkdir()
    (folder / "campaign.json").write_text(to_json(campaign.info))
    for record in campaign.records:
        (folder / f"{record.stem}.json").write_text(to_json(record))
    made = statistics(load(data, keeper=keeper), include="all")
    read.clear()
    dataset = load(data, keeper=keeper)
    assert statistics(dataset, include="all") == made
    assert read == []
    assert len(made.cells) == 5
    assert len(made.comparisons) == 2
    assert [row.cells for row in made.pooled] == [2]
    assert {part.value for part in made.completeness} == {100.0}
    counted = statistics(dataset, review(dataset).frames)
    assert counted != made, "runs that are out are in other figures"


def rewritten(path: Path) -> None:
    """Other content of the same size, with the old time of modification."""
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"100", b"101"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced(path: Path) -> None:
    """Another file of the same size and time under the same name."""
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"100", b"101"))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.rename(path)


@pytest.mark.parametrize("change", [rewritten, replaced, Path.unlink])
def test_a_changed_file_is_seen_whatever_its_date_says(
    data: Path, keeper: Keeper, change: Callable[[Path], None]
) -> None:
    assert "checksum" not in checks_of(load(data, keeper=keeper))
    change(data / "c" / "one.log")
    assert "checksum" in checks_of(load(data, keeper=keeper))


def test_a_damaged_record_is_damage_again_and_again(data: Path, keeper: Keeper) -> None:
    path = load(data, keeper=keeper).runs[1].path
    path.write_text("{")
    for _ in range(2):
        with pytest.raises(RecordError, match=path.name):
            load(data, keeper=keeper)
        left = load(data, keeper=keeper, skip=lambda _: None)
        assert [run.run_id for run in left.runs] == ["c-one"]
        assert "schema" in checks_of(left)


def test_a_quarantine_is_seen(data: Path, keeper: Keeper) -> None:
    assert "missing-log" in review(load(data, keeper=keeper)).excluded["c-two"]
    path = data / "c" / "campaign.json"
    entry = {"run": "c-two", "reason": "the fan was blocked"}
    document = json.loads(path.read_text()) | {"quarantined": [entry]}
    path.write_text(json.dumps(document))
    found = review(load(data, keeper=keeper))
    assert found.excluded["c-two"] == "quarantined: the fan was blocked"


def test_another_program_knows_nothing_of_it(
    data: Path, keeper: Keeper, read: list[str]
) -> None:
    review(load(data, keeper=keeper))
    read.clear()
    review(load(data, keeper=Keeper(keeper.cache, "another program")))
    assert len(read) == 2


def test_the_same_files_elsewhere_are_known(
    data: Path, keeper: Keeper, read: list[str]
) -> None:
    found = review(load(data, keeper=keeper))
    read.clear()
    moved = data.with_name("moved")
    shutil.copytree(data, moved)
    dataset = load(moved, keeper=keeper)
    assert review(dataset).findings == found.findings
    assert read == []
    assert {run.path.parent for run in dataset.runs} == {moved / "c"}
    rewritten(moved / "c" / "one.log")
    assert "checksum" in checks_of(load(moved, keeper=keeper))
    assert "checksum" not in checks_of(load(data, keeper=keeper))


def test_a_campaign_under_another_name_is_another_campaign(
    data: Path, keeper: Keeper
) -> None:
    review(load(data, keeper=keeper))
    (data / "c").rename(data / "d")
    with pytest.raises(RecordError, match="'c' lies in folder 'd'"):
        load(data, keeper=keeper)


def test_files_with_new_dates_and_old_content_are_known(
    data: Path, keeper: Keeper, read: list[str]
) -> None:
    review(load(data, keeper=keeper))
    read.clear()
    for path in (data / "c").iterdir():
        os.utime(path, (1_000_000_000, 1_000_000_000))
    review(load(data, keeper=keeper))
    assert read == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:40] + b"?"),
        lambda path: path.write_bytes(b"\x00" * path.stat().st_size),
        lambda path: (path.unlink(), path.mkdir()),
    ],
)
def test_no_damage_to_what_is_kept_changes_a_finding(
    data: Path, keeper: Keeper, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    """Each entry by itself, since what another still holds may hide the damage."""
    found = review(load(data, keeper=keeper)).findings
    figures = statistics(load(data, keeper=keeper))
    entries = [path for path in (tmp_path / "cache").glob("*/*") if path.is_file()]
    assert len(entries) >= 4
    for entry in entries:
        whole = entry.read_bytes()
        damage(entry)
        again = load(data, keeper=Keeper(keeper.cache, keeper.program))
        assert review(again).findings == found
        assert statistics(again) == figures
        if entry.is_dir():
            entry.rmdir()
        entry.write_bytes(whole)


def test_a_pipe_among_the_files_is_not_read(data: Path, keeper: Keeper) -> None:
    """Opening one would wait for a writer for ever."""
    os.mkfifo(data / "c" / "pipe")
    found = review(load(data, keeper=keeper)).findings
    assert review(load(data, keeper=keeper)).findings == found
    assert memory.contents_of(data / "c", state_of(data / "c")) is not None


def test_of_files_that_cannot_be_read_nothing_is_kept(
    data: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(memory, "file_sha256", refused)
    review(load(data, keeper=keeper))
    assert keeper.cache.empty


def test_two_programs_at_once_find_what_one_finds(data: Path, tmp_path: Path) -> None:
    """Three commands share an empty cache; whoever comes later finds what any of them kept."""
    argv = [sys.executable, "-m", "sparkpub", "check", str(data), "--json"]
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    alone = subprocess.run([*argv, "--deep"], stdout=subprocess.PIPE, check=False)
    for path in (data / "c").iterdir():
        os.utime(path, (1_000_000_000, 1_000_000_000))
    time.sleep(max(0.0, memory.SETTLED_SECONDS))
    together = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, env=variables) for _ in range(3)
    ]
    for process in together:
        with process:
            assert process.communicate()[0] == alone.stdout
    later = subprocess.run(argv, stdout=subprocess.PIPE, env=variables, check=False)
    assert later.stdout == alone.stdout
    assert json.loads(alone.stdout)["runs"] == 2


def test_of_files_just_written_nothing_is_kept(
    data: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "SETTLED_SECONDS", 60.0)
    review(load(data, keeper=keeper))
    assert keeper.cache.empty


def test_of_files_that_change_meanwhile_nothing_is_kept(
    data: Path, keeper: Keeper
) -> None:
    folder = data / "c"
    known = Memory(folder, state_of(folder), keeper)
    rewritten(folder / "one.log")
    assert known.keep(("figure",), [1, 2]) == [1, 2]
    assert keeper.cache.empty


def test_a_document_is_kept_under_its_whole_name(data: Path, keeper: Keeper) -> None:
    folder = data / "c"
    Memory(folder, state_of(folder), keeper).keep(("a", "b"), {"x": [0.1, None]})
    known = Memory(folder, state_of(folder), keeper)
    assert known.document(("a", "b")) == {"x": [0.1, None]}
    assert known.document(("a",)) is None
    assert known.document(("a", "c")) is None


def test_without_a_keeper_documents_pass_through(data: Path) -> None:
    folder = data / "c"
    known = Memory(folder, state_of(folder))
    assert known.keep(("a",), {"x": (1, 2)}) == {"x": [1, 2]}
    assert known.document(("a",)) is None


def test_what_is_made_once_in_a_process_is_not_made_twice() -> None:
    known = Memory()
    made: list[int] = []

    def make() -> str:
        made.append(1)
        return "made"

    assert [known.once(("a",), make) for _ in range(2)] == ["made", "made"]
    assert known.once(("b",), make) == "made"
    assert len(made) == 2


def test_the_users_own_folder_holds_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Keeper.of_user().cache.put("0" * 64, b"x")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [
        tmp_path / "sparkpub" / "review" / "00" / ("0" * 62)
    ]

"""Campaigns reviewed ahead are reviewed as ever, and processes start only where there is much to do."""

import gc
import shutil
from pathlib import Path

import pytest

from sparkpub.record.errors import RecordError
from sparkpub.record.store import to_json
from sparkpub.review import export, memory, statistics_json, workers
from sparkpub.review.cache import Cache
from sparkpub.review.checks import review
from sparkpub.review.dataset import Loader, load
from sparkpub.review.memory import Keeper
from sparkpub.review.summary import statistics
from tests.review.statistics.campaigns import a_campaign


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two campaigns of three runs, on a machine with two cores where two files are many."""
    monkeypatch.setattr(workers, "FEWEST_FILES", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    for name in ("a", "b"):
        values = {("m", "native"): {"ttft_p50_ms": [1.0, 2.0, 3.0]}}
        campaign = a_campaign(name, values)
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        (folder / "campaign.json").write_text(to_json(campaign.info))
        for record in campaign.records:
            (folder / f"{record.stem}.json").write_text(to_json(record))
    return tmp_path / "data"


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(Cache(tmp_path / "cache"), "this program")


@pytest.fixture
def reviewed_here(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Work goes to this process, which notes the folders; the list is empty where nothing was sent to a process."""
    folders: list[Path] = []

    class Pool:
        def __init__(self, *_: object, **__: object) -> None: ...
        def __enter__(self) -> "Pool":
            return self

        def __exit__(self, *_: object) -> None: ...
        def map(self, work: object, given: list[Path]) -> list[None]:
            folders.extend(given)
            return [work(folder) for folder in given]  # type: ignore[operator]

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", Pool)
    monkeypatch.setattr(memory, "SETTLED_SECONDS", -1.0)
    return folders


def test_what_was_reviewed_ahead_is_only_recalled(
    data: Path,
    keeper: Keeper,
    reviewed_here: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = load(data)
    expected = review(plain), statistics(plain, review(plain).frames)
    loader = Loader(keeper)
    workers.review_ahead(loader, keeper, [data], "figures")
    assert sorted(reviewed_here) == [data / "a", data / "b"]

    def unread(path: Path) -> object:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr("sparkpub.record.store.read_record", unread)
    monkeypatch.setattr("sparkpub.review.dataset.read_record", unread)
    dataset = loader.load(data)
    found = review(dataset)
    assert found.findings == expected[0].findings
    assert statistics(dataset, found.frames) == expected[1]
    reviewed_here.clear()
    workers.review_ahead(Loader(keeper), keeper, [data], "figures")
    assert reviewed_here == []


def test_figures_are_worked_out_ahead_only_where_they_are_asked_for(
    data: Path, keeper: Keeper, reviewed_here: list[Path]
) -> None:
    workers.review_ahead(Loader(keeper), keeper, [data])
    assert len(reviewed_here) == 2
    workers.review_ahead(Loader(keeper), keeper, [data], "figures")
    assert len(reviewed_here) == 4


def test_what_is_wanted_of_campaigns_is_made_ahead_and_only_recalled(
    data: Path,
    keeper: Keeper,
    reviewed_here: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = load(data)
    frames = review(plain).frames
    text = "".join(statistics_json.document(plain, frames))
    rows = export.table(review(plain)).to_pylist()
    workers.review_ahead(Loader(keeper), keeper, [data], "figures as JSON")
    workers.review_ahead(Loader(keeper), keeper, [data], "table")
    assert len(reviewed_here) == 4

    def made_again(*_: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(statistics_json, "statistics_of", made_again)
    monkeypatch.setattr(export, "_made", made_again)
    dataset = load(data, keeper=keeper)
    known = review(dataset)
    assert "".join(statistics_json.document(dataset, known.frames)) == text
    assert export.table(known).to_pylist() == rows


def test_what_a_process_finds_done_it_does_not_do_again(
    data: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a copy have other dates and are known by what they hold, once somebody read them."""
    monkeypatch.setattr(memory, "SETTLED_SECONDS", -1.0)
    workers._review(keeper, "review", data / "a")
    copy = shutil.copytree(data, data.with_name("copy"))
    done = ("reviewed ahead", "review")
    assert not Loader(keeper).memory(copy / "a").holds(done)

    def read_again(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("sparkpub.review.dataset.read_record", read_again)
    workers._review(keeper, "review", copy / "a")
    assert Loader(keeper).memory(copy / "a").holds(done)


@pytest.mark.parametrize(("threads", "method"), [(1, "fork"), (2, "forkserver")])
def test_only_a_process_without_threads_is_copied(
    threads: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.active_count", lambda: threads)
    assert workers._splitting().get_start_method() == method


def test_few_files_are_reviewed_without_processes(
    data: Path,
    keeper: Keeper,
    reviewed_here: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = len(list(data.glob("*/*")))
    monkeypatch.setattr(workers, "FEWEST_FILES", files + 1)
    workers.review_ahead(Loader(keeper), keeper, [data])
    assert reviewed_here == []
    monkeypatch.setattr(workers, "FEWEST_FILES", files)
    workers.review_ahead(Loader(keeper), keeper, [data])
    assert len(reviewed_here) == 2


def test_one_campaign_needs_no_process(
    data: Path, keeper: Keeper, reviewed_here: list[Path]
) -> None:
    shutil.rmtree(data / "a")
    workers.review_ahead(Loader(keeper), keeper, [data])
    assert reviewed_here == []


def test_one_core_reviews_ahead_without_processes(
    data: Path,
    keeper: Keeper,
    reviewed_here: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    loader = Loader(keeper)
    workers.review_ahead(loader, keeper, [data])
    assert reviewed_here == []
    assert loader.memory(data / "a").holds(("reviewed ahead", "review"))
    assert [run.given for run in loader.load(data).runs] == [None] * 6


def test_a_damaged_campaign_is_left_to_who_loads_it(
    data: Path, keeper: Keeper, reviewed_here: list[Path]
) -> None:
    next((data / "a").glob("native_*.json")).write_text("{")
    loader = Loader(keeper)
    workers.review_ahead(loader, keeper, [data])
    lines: list[str] = []
    loader.load(data, skip=lines.append)
    assert len(lines) == 1
    reviewed_here.clear()
    workers.review_ahead(Loader(keeper), keeper, [data])
    assert reviewed_here == [], "one campaign alone starts no process"


def test_processes_find_what_they_review(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes, to whom the keeper and the folders have to come."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    dataset = workers.load_known(data)
    assert list(dataset.campaigns) == ["a", "b"]
    assert len(dataset.runs) == 6


def test_garbage_is_looked_for_as_before_once_the_campaigns_are_loaded(
    data: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Keeper, "of_user", lambda: keeper)
    before = gc.get_threshold()
    meanwhile: list[tuple[int, ...]] = []
    real = workers.review_ahead

    def looking(*given: object) -> None:
        meanwhile.append(gc.get_threshold())
        real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "review_ahead", looking)
    workers.load_known(data)
    assert meanwhile[0][0] > before[0]
    assert gc.get_threshold() == before
    (data / "a" / "campaign.json").write_text("{")
    with pytest.raises(RecordError):
        workers.load_known(data)
    assert gc.get_threshold() == before

"""The run on disk: what is kept, sealed and recovered, whatever ends the collector."""

import json
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import journal
from sparkpub.collect import log as logs
from sparkpub.collect.journal import DRAFT, FOLDER, WORK
from sparkpub.collect.log import Log
from sparkpub.collect.run import Run
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import read_record
from tests.building import a_record
from tests.collect.collecting import a_matrix, records, run


def a_draft(**changes: Any) -> Record:
    known = {
        "campaign": "small",
        "status": "interrupted",
        "status_reason": journal.KILLED,
        "evidence": (),
    }
    return a_record(**(known | changes))


def begun(folder: Path, draft: Record | None = None, **outputs: str) -> Path:
    """The folder of a run that is on."""
    return journal.begin(folder, draft or a_draft(), outputs, Redactor())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "small"
    place.mkdir()
    return place


def test_a_run_that_has_its_record_is_never_overwritten_as_interrupted(
    folder: Path,
) -> None:
    """The collector died after it wrote the record and before it removed the run's folder."""
    draft = a_draft()
    place = begun(folder, draft)
    (place / "log").write_text("late\n")
    finished = draft.model_copy(update={"status": "ok", "status_reason": None})
    path = folder / f"{draft.stem}.json"
    path.write_text(json.dumps(finished.model_dump(mode="json")))
    before = path.read_bytes()
    assert journal.recover(folder, Redactor()) is None
    assert path.read_bytes() == before
    assert read_record(path).record.status == "ok"
    assert not place.exists()


@pytest.mark.parametrize(
    "content", [None, "", '{"run_id": "tor', '{"schema_version": 99}']
)
def test_a_torn_draft_is_no_run(folder: Path, content: str | None) -> None:
    (folder / FOLDER / WORK).mkdir(parents=True)
    if content is not None:
        (folder / FOLDER / DRAFT).write_text(content)
    assert journal.recover(folder, Redactor()) is None
    assert not (folder / FOLDER).exists()


def test_a_run_without_a_record_is_not_swept_away_by_the_next(folder: Path) -> None:
    first = a_draft()
    begun(folder, first)
    with pytest.raises(CollectError) as refused:
        begun(folder, a_draft(iteration=2))
    assert refused.value.lines() == [
        f"run {first.run_id} has no record yet, {folder / FOLDER}; "
        "start the collector again: it records what is there"
    ]
    stored = journal.recover(folder, Redactor())
    assert stored is not None
    assert stored.record.run_id == first.run_id


def test_a_link_in_the_place_of_a_runs_folder_is_refused_and_left_alone(
    folder: Path, tmp_path: Path
) -> None:
    """A campaign may be anybody's: what a run writes would land where its link leads."""
    target = tmp_path / "target"
    (target / WORK).mkdir(parents=True)
    (folder / FOLDER).symlink_to(target)
    assert journal.recover(folder, Redactor()) is None
    with pytest.raises(CollectError, match="cannot be removed"):
        begun(folder)
    assert [path.name for path in target.iterdir()] == [WORK]


def test_what_a_killed_collector_left_is_redacted_by_one_that_knows_none_of_its_secrets(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is raw while the run is on. Neither the variable nor a shape tells the next collector what is secret."""
    monkeypatch.setenv("DB_PASSWORD", "correct horse battery")
    place = begun(folder, a_draft(argv=("tool", "/home/khan/model")), report="r.json")
    log = Log(place / "log")
    log.write(b"rate 5, correct horse battery\nhalf a lo")

    (place / WORK / "r.json").write_text('{"with": "correct horse battery"}')
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert b"correct horse" in (place / "log").read_bytes()

    log.close()
    monkeypatch.delenv("DB_PASSWORD")
    stored = journal.recover(folder, Redactor())
    assert stored is not None
    assert stored.record.argv == ("tool", "<home>/model")
    texts = {
        item.role: (folder / item.path).read_text() for item in stored.record.evidence
    }
    assert texts == {
        "log": "rate 5, <secret>\nhalf a lo",
        "report": '{"with": "<secret>"}',
    }
    assert not any(item.truncated for item in stored.record.evidence)
    why = stored.record.unavailable["telemetry"]
    assert why == "the run ended before it was written"
    assert not place.exists()
    assert journal.recover(folder, Redactor()) is None


OUTPUTS = {"report": "report.json"}


def test_the_middle_of_a_large_output_is_cut_and_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each half what was read, but lines that are torn at the cut, and of the second what was read beside it."""
    monkeypatch.setattr(journal, "CAP", 20_000)
    monkeypatch.setattr(journal, "_MARGIN", 1000)
    place, path = begun(folder), folder / "stem.report.json"
    (place / WORK / "report.json").write_bytes(b"aaaa\n" * 4001 + b"bbbb\n" * 4000)
    evidence, lacking, read = journal.seal(place, folder, "stem", OUTPUTS, Redactor())
    # The first half ends with a line. The second begins with the end of one: 10,000 bytes less 1,000 and what is torn.
    kept = 10_000 + (10_000 - 1000 - 5)
    assert path.read_bytes() == (
        b"aaaa\n" * 2000
        + b"[sparkpub: %d bytes cut here: files are capped]\n" % (40_005 - kept)
        + b"bbbb\n" * ((10_000 - 1000 - 5) // 5)
    )
    assert evidence[0].truncated
    assert read == {}  # half a document is not parsed
    assert (
        lacking["report_content"]
        == f"{40_005 - kept} bytes in its middle were cut: files are capped"
    )


def test_a_folder_that_a_command_linked_is_not_entered(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.json").write_text("{}")
    place = begun(folder)
    (place / WORK / "in").symlink_to(tmp_path)
    outputs = {"report": "in/secret.json"}
    evidence, _, _ = journal.seal(place, folder, "stem", outputs, Redactor())
    assert evidence == ()


@pytest.mark.parametrize("place", ["watching", "sealing", "recording"])
def test_an_error_of_our_own_never_loses_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Wherever the collector itself fails, the run that was on becomes a record with its log."""
    targets: dict[str, tuple[Any, str]] = {
        "watching": (Run, "_must_stop"),
        "sealing": (journal, "seal"),
        "recording": (Run, "_noted"),
    }
    what, name = targets[place]
    whole = getattr(what, name)
    failed: list[bool] = []

    def once(*given: Any, **named: Any) -> Any:
        if not failed:
            failed.append(True)
            raise RuntimeError("of our own")
        return whole(*given, **named)

    with monkeypatch.context() as broken:
        broken.setattr(what, name, once)
        with pytest.raises(RuntimeError, match="of our own"):
            run(a_matrix("echo rate 5; sleep 0.4", iterations=1), tmp_path)
    (record,) = records(tmp_path)
    assert (record.status, record.status_reason) == (
        "interrupted",
        "the collector failed: RuntimeError: of our own",
    )
    assert record.file("log") is not None
    assert not (tmp_path / "small" / FOLDER).exists()


def test_a_full_disk_is_one_line_and_keeps_the_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more can be written: the next collector finds the draft and makes the record of it."""

    def full(path: Path, *_: object, **__: object) -> None:
        if (
            path.name not in (DRAFT, journal.PRIVATE)
            and path.suffix == ".json"
            and path.name != "campaign.json"
        ):
            raise OSError(28, "No space left on device", str(path))
        write(path, *_, **__)  # type: ignore[arg-type]

    write = journal.write_atomic
    with monkeypatch.context() as broken:
        broken.setattr(journal, "write_atomic", full)
        with pytest.raises(CollectError) as caught:
            run(a_matrix(iterations=1), tmp_path)
    (line,) = caught.value.lines()
    assert "cannot be written: No space left on device" in line
    assert str(tmp_path / "small") in line
    assert (tmp_path / "small" / FOLDER / DRAFT).exists()
    assert run(a_matrix(iterations=1), tmp_path).left == 0
    assert [record.status for record in records(tmp_path)] == ["interrupted", "ok"]


def test_a_log_ends_where_it_could_not_be_written_and_the_command_is_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk and an endless log: room that is there again would make a log with a hole that nothing marks."""
    full = Log(Path("/dev/full"), begins="two")
    full.write(b"one\n")
    full.write(b"two\n")
    full.close()
    assert full.problem == "No space left on device"
    assert full.began is not None

    monkeypatch.setattr(logs, "MOST", 2 << 20)
    endless = Log(tmp_path / "log")
    for _ in range(3):
        endless.write(b"x" * ((1 << 20) - 1) + b"\n")
    endless.write(b"late\n")
    endless.close()
    assert endless.problem == "it is longer than 2 MiB"
    assert (tmp_path / "log").stat().st_size == 2 << 20


def test_a_log_is_closed_while_somebody_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server prints on after a run: a thread that died of it would let the server wait on a full pipe."""
    died: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for _ in range(200):
        log, over = Log(tmp_path / "log"), threading.Event()
        writing = threading.Thread(target=printing, args=(log, over))
        writing.start()
        log.close()
        over.set()
        writing.join()
    sys.setswitchinterval(interval)
    assert died == []


def printing(log: Log, over: threading.Event) -> None:
    while not over.is_set():
        log.write(b"INFO ready\n")


def test_a_log_says_when_the_measurement_began_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A progress bar's first state has no line end: it counts when it is printed, not when the second overwrites it."""
    now = 100.0
    monkeypatch.setattr("sparkpub.collect.log.time.monotonic", lambda: now)
    log = Log(tmp_path / "log", begins=r"\bProcessed prompts", ends=r"^test \d")
    log.write(b"loading\nProcessed pro")
    assert log.began is None
    now = 101.0
    log.write(b"mpts:   0%|")
    assert log.began == 101.0
    now = 102.0
    log.write(b"\rProcessed prompts:  10%|\r")
    log.write(b"test 1 o")
    assert log.ended is None
    now = 103.0
    log.write(b"ver\n")
    assert log.ended == 103.0
    now = 104.0
    log.write(b"test 2 over\n")
    now = 105.0
    log.write(b"bye\n")
    log.close()
    assert (log.began, log.ended) == (101.0, 104.0)

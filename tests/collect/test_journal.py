"""The run on disk: what is kept, sealed and recovered, whatever ends the collector."""

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import following, journal
from sparkpub.collect import run as runs
from sparkpub.collect.journal import DRAFT, FOLDER, WORK
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Observed, Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import EVIDENCE_CAP, file_sha256, read_record, to_json
from tests.building import a_record
from tests.collect.collecting import a_command, a_matrix, records, run


def a_draft(**changes: Any) -> Record:
    known = {
        "campaign": "small",
        "status": "interrupted",
        "status_reason": journal.KILLED,
        "evidence": (),
    }
    return a_record(**(known | changes))


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
    place = journal.begin(folder, draft)
    (place / "log").write_text("late\n")
    finished = draft.model_copy(update={"status": "ok", "status_reason": None})
    path = folder / f"{draft.stem}.json"
    path.write_text(json.dumps(finished.model_dump(mode="json")))
    before = path.read_bytes()
    assert journal.recover(folder, Redactor()) is None
    assert path.read_bytes() == before
    assert read_record(path).record.status == "ok"
    assert not place.exists()


def test_the_record_and_its_evidence_belong_to_whoever_called_the_collector(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(
        "sparkpub.collect.invoker.give", lambda path: given.append(path.name)
    )
    place = journal.begin(folder, a_draft())
    (place / "log").write_text("half a lo")
    stored = journal.recover(folder, Redactor())
    assert stored is not None
    assert given == [f"{stored.record.stem}.log", stored.path.name]


def test_a_record_that_nobody_could_read_again_is_written_without_what_the_run_said(
    folder: Path,
) -> None:
    """A server said that its model has 1e308 bytes: every later command stopped at the record, which was committed."""
    draft = a_draft()
    journal.begin(folder, draft)
    too_much = Observed.model_construct(weight_bytes=int(1e308))
    found = {"status": "ok", "status_reason": None, "observed": too_much}
    stored = journal.finish(folder, draft.model_copy(update=found))
    record = read_record(stored.path).record
    assert record == stored.record
    assert (record.status, record.metrics) == ("invalid", {})
    assert record.status_reason == (
        "its record could not be read again: a number with 309 digits"
    )


@pytest.mark.parametrize(
    "content", [None, "a pipe", "", '{"run_id": "tor', '{"schema_version": 99}']
)
def test_a_torn_draft_is_no_run(folder: Path, content: str | None) -> None:
    (folder / FOLDER / WORK).mkdir(parents=True)
    if content == "a pipe":
        os.mkfifo(folder / FOLDER / DRAFT)
    elif content is not None:
        (folder / FOLDER / DRAFT).write_text(content)
    assert journal.recover(folder, Redactor()) is None
    assert not (folder / FOLDER).exists()


def test_a_run_without_a_record_is_not_swept_away_by_the_next(folder: Path) -> None:
    first = a_draft()
    journal.begin(folder, first)
    with pytest.raises(CollectError) as refused:
        journal.begin(folder, a_draft(iteration=2))
    assert refused.value.lines() == [
        f"run {first.run_id} has no record yet, {folder / FOLDER}; "
        "start the collector again: it records what is there"
    ]
    stored = journal.recover(folder, Redactor())
    assert stored is not None
    assert stored.record.run_id == first.run_id


def test_a_folder_without_a_run_is_emptied_before_the_next(folder: Path) -> None:
    """A draft that is torn is no run, and what lies beside it is no later run's."""
    stale = folder / FOLDER / WORK
    stale.mkdir(parents=True)
    (stale / "report.json").write_text("{}")
    (folder / FOLDER / "log").write_text("old\n")
    (folder / FOLDER / DRAFT).write_text("torn")
    place = journal.begin(folder, a_draft())
    assert list((place / WORK).iterdir()) == []
    assert not (place / "log").exists()
    assert (place / ".gitignore").read_text() == "*\n"


def test_files_that_stay_are_refused_and_not_taken_for_the_next_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / FOLDER / WORK).mkdir(parents=True)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    with pytest.raises(CollectError, match="cannot be removed"):
        journal.begin(folder, a_draft())
    assert not (folder / FOLDER / DRAFT).exists()


@pytest.mark.parametrize("mask", [0o022, 0])
def test_the_runs_folder_is_the_collectors_own(folder: Path, mask: int) -> None:
    """Any user of the machine could write the results of a run into it."""
    before = os.umask(mask)
    try:
        place = journal.begin(folder, a_draft())
    finally:
        os.umask(before)
    # A foreign user of a container may write into the work folder, and reaches it through the mount alone.
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["a link", "a pipe"])
def test_what_is_no_folder_of_a_run_is_refused_and_left_alone(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    """A campaign may be anybody's: what a run writes would land where its link leads."""
    target = tmp_path / "target"
    place = folder / FOLDER
    if kind == "a link":
        (target / WORK).mkdir(parents=True)
        (target / DRAFT).write_text(to_json(a_draft()))
        place.symlink_to(target)
    else:
        os.mkfifo(place)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    what = "a link" if kind == "a link" else "something else than a folder"
    said = f"{what} is where the collector keeps a run, {place}; remove it, and see who put it there"
    for call in (
        lambda: journal.recover(folder, Redactor()),
        lambda: journal.begin(folder, a_draft(iteration=2)),
    ):
        with pytest.raises(CollectError) as refused:
            call()
        assert refused.value.lines() == [said]
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_recovered_record_is_redacted_and_its_log_is_whole(folder: Path) -> None:
    """The draft was written by another version, perhaps, or before a variable was known to be secret."""
    place = journal.begin(folder, a_draft(argv=("tool", "/home/khan/model")))
    (place / "log").write_text("half a lo")
    stored = journal.recover(folder, Redactor())
    assert stored is not None
    assert stored.record.argv == ("tool", "<home>/model")
    log = stored.record.file("log")
    assert log is not None
    assert log.truncated is False
    assert (folder / log.path).read_text() == "half a lo"
    assert (
        stored.record.unavailable["telemetry"] == "the run ended before it was written"
    )
    assert not place.exists()
    assert journal.recover(folder, Redactor()) is None


OUTPUTS = {"report": "report.json"}


def sealed(folder: Path, content: bytes) -> tuple[journal.Sealed, Path]:
    place = journal.begin(folder, a_draft())
    (place / WORK / "report.json").write_bytes(content)
    return journal.seal(
        place, folder, "stem", OUTPUTS, Redactor(), cut=False
    ), folder / "stem.report.json"


def test_outputs_are_redacted_before_they_are_stored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hush-hush-4711")
    done, path = sealed(folder, b'{"token": "hush-hush-4711", "rate": 5}')
    assert json.loads(path.read_bytes()) == {"token": "<secret>", "rate": 5}
    assert done.content["report"] == path.read_bytes()
    (item,) = done.evidence
    assert (item.role, item.sha256, item.bytes) == (
        "report",
        file_sha256(path),
        path.stat().st_size,
    )


def test_the_middle_of_a_large_output_is_cut_and_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each half what was read, but words that are torn at the cut, and of the second what was read beside it."""
    monkeypatch.setattr(journal, "OUTPUT_CAP", 20_000)
    monkeypatch.setattr(journal, "_MARGIN", 1000)
    done, path = sealed(folder, b"aaa " * 5000 + b"bbb " * 5000)
    kept = 2500 * 4 + 2500 * 4 - 1000 - len("bbb")
    assert path.read_bytes() == (
        b"aaa " * 2500
        + b"\n[sparkpub: %d bytes cut here: files are capped]\n" % (40_000 - kept)
        + b" bbb" * ((10_000 - 1000 - 4) // 4)
        + b" "
    )
    assert done.evidence[0].truncated
    assert "report" not in done.content  # half a document is not parsed
    assert (
        done.unavailable["report_content"]
        == f"{40_000 - kept} bytes in its middle were cut: files are capped"
    )


def test_an_output_of_exactly_the_cap_is_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "OUTPUT_CAP", 20)
    done, path = sealed(folder, b"a" * 20)
    assert path.read_bytes() == done.content["report"] == b"a" * 20
    assert not done.evidence[0].truncated


def test_an_output_of_the_cap_has_room_for_what_redaction_adds() -> None:
    assert journal.OUTPUT_CAP < EVIDENCE_CAP


def test_an_output_that_is_not_there_is_said(folder: Path) -> None:
    place = journal.begin(folder, a_draft())
    done = journal.seal(place, folder, "stem", OUTPUTS, Redactor(), cut=False)
    assert done.unavailable["report"] == "the command did not write it"
    assert done.evidence == ()


def test_only_a_log_that_was_cut_is_marked_as_cut(folder: Path) -> None:
    place = journal.begin(folder, a_draft())
    for name in ("log", "telemetry.csv"):
        (place / name).write_text("1\n")
    done = journal.seal(place, folder, "stem", {}, Redactor(), cut=True)
    assert {item.role: item.truncated for item in done.evidence} == {
        "log": True,
        "telemetry": False,
    }


def test_a_folder_that_a_command_linked_is_not_entered(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.json").write_text("{}")
    place = journal.begin(folder, a_draft())
    (place / WORK / "in").symlink_to(tmp_path)
    outputs = {"report": "in/secret.json"}
    done = journal.seal(place, folder, "stem", outputs, Redactor(), cut=False)
    assert done.evidence == ()


def failing(message: str) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError(message)

    return fail


@pytest.mark.parametrize("place", ["watching", "sealing", "recording"])
def test_an_error_of_our_own_never_loses_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Wherever the collector itself fails, the run that was on becomes a record with its log."""
    targets: dict[str, tuple[Any, str]] = {
        "watching": (following._RunUnderWay, "_must_stop"),
        "sealing": (runs, "seal"),
        "recording": (runs, "_record"),
    }
    with monkeypatch.context() as broken:
        broken.setattr(*targets[place], failing("of our own"))
        with pytest.raises(RuntimeError, match="of our own"):
            run(a_matrix("echo rate 5; sleep 1", iterations=1), tmp_path)
    (record,) = records(tmp_path)
    assert (record.status, record.status_reason) == (
        "interrupted",
        "the collector failed: RuntimeError: of our own",
    )
    assert record.file("log") is not None
    assert not (tmp_path / "small" / FOLDER).exists()
    assert run(a_matrix("echo rate 5; sleep 1", iterations=1), tmp_path).measured == 1


def test_a_full_disk_is_one_line_and_keeps_the_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more can be written: the next collector finds the draft and makes the record of it."""

    def full(path: Path, *_: object, **__: object) -> None:
        if (
            path.name != DRAFT
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


def test_lines_stay_in_their_order_where_a_long_one_no_longer_fits(
    tmp_path: Path,
) -> None:
    """A cap of 1,000 bytes keeps 750 of the beginning: the second line does not fit there, the third would."""
    log = journal.Log(tmp_path / "log", Redactor(), cap=1000)
    for line in (b"a" * 699, b"b" * 40 + b" " * 9 + b"b" * 20, b"c" * 9):
        log.write(line + b"\n")
    log.close()
    text = (tmp_path / "log").read_text()
    assert text.index("a") < text.index("b") < text.index("c")


def test_the_last_words_stay_even_where_they_are_longer_than_the_end_may_be(
    tmp_path: Path,
) -> None:
    log = journal.Log(tmp_path / "log", Redactor(), cap=1000)
    log.write(b"a" * 700 + b"\n")
    log.write(b"b " * 2000 + b"the last words\n")
    log.close()
    assert (tmp_path / "log").read_text().endswith("the last words\n")


class _Counting(Redactor):
    """A redactor that counts the bytes that it was given."""

    seen = 0

    def content(self, data: bytes) -> bytes:
        self.seen += len(data)
        return super().content(data)


def test_what_is_cut_costs_no_redaction(tmp_path: Path) -> None:
    """10,000 lines of 10 bytes into a log of 1,000: about its own length is redacted, and its end is."""
    redactor = _Counting()
    log = journal.Log(tmp_path / "log", redactor, cap=1000)
    for _ in range(10_000):
        log.write(b"123456789\n")
    assert log.truncated  # what is cut is let go at once
    log.write(b"api_key=7f3d9a1c5b8e2046\n")
    log.close()
    assert redactor.seen < 1100
    text = (tmp_path / "log").read_text()
    assert "bytes cut here" in text
    assert "7f3d9a1c5b8e2046" not in text
    assert len(text) <= 1000


@pytest.mark.parametrize(("last", "secrets"), [(31, 1), (32, 0)])
def test_an_end_that_redaction_lengthens_still_fits(
    tmp_path: Path, last: int, secrets: int
) -> None:
    """The end may have 50 bytes. A secret has 15 bytes, and 19 redacted: 31 more fit, and 32 do not."""
    secret = b"password: ab12\n"
    assert len(Redactor().content(secret)) == 19
    log = journal.Log(tmp_path / "log", Redactor(), cap=1000)
    log.write(b"x" * 748 + b"\n")
    for _ in range(100):
        log.write(secret)
    words = b"." * (last - 1) + b"\n"
    log.write(words)
    log.close()
    text = (tmp_path / "log").read_text()
    kept = "password: <secret>\n" * secrets + words.decode()
    assert text.partition("capped]\n")[2] == kept
    assert f"[sparkpub: {(100 - secrets) * len(secret)} bytes cut here" in text
    assert len(text) <= 1000


class _FullOnce:
    """A file on a disk that is full for one write."""

    closed = False

    def __init__(self, error: OSError) -> None:
        self.error = error
        self.kept: list[bytes] = []
        self.tried = 0

    def write(self, content: bytes) -> None:
        self.tried += 1
        if self.tried == 1:
            raise self.error
        self.kept.append(content)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def test_a_log_ends_where_it_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room that is there again would make a log with a hole that nothing marks."""
    log = journal.Log(tmp_path / "log", Redactor(), begins="two")
    vars(log)["_file"].close()
    disk = _FullOnce(OSError(28, "No space left on device"))
    monkeypatch.setattr(log, "_file", disk)
    log.write(b"one\n")
    log.write(b"two\n")
    log.close()
    assert disk.kept == []
    assert log.problem == "No space left on device"
    assert log.began is not None  # what is printed is read on all the same


def test_what_comes_after_the_end_is_not_the_runs(tmp_path: Path) -> None:
    log = journal.Log(tmp_path / "log", Redactor())
    log.write(b"rate 5\n")
    log.close()
    log.write(b"late\n")
    log.write_served(b"late\n")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"rate 5\n"


def test_two_writers_keep_their_lines_apart(tmp_path: Path) -> None:
    log = journal.Log(tmp_path / "log", Redactor(), begins="go", ends="over")
    log.write(b"client o")
    log.write_served(b"server go over\nserver t")
    assert (log.began, log.ended) == (
        None,
        None,
    )  # the command's words count, not the server's
    log.write(b"ne\n")
    log.write_served(b"wo")
    log.write(b"client go over")
    log.close()
    assert (
        tmp_path / "log"
    ).read_text() == "server go over\nclient one\nserver two\nclient go over"
    assert log.began is not None
    assert log.ended is not None


def test_a_command_that_finds_its_files(tmp_path: Path) -> None:
    """The draft is on disk while the command runs, and its own folder holds nothing else."""
    script = f'ls "$0"; test -s "$0/../{DRAFT}" && echo noted; echo rate 1'
    workload = a_command(script) | {"argv": ["sh", "-c", script, "{workdir}"]}
    run(a_matrix(workloads={"w": workload}, iterations=1), tmp_path)
    (record,) = records(tmp_path)
    log = record.file("log")
    assert log is not None
    assert (tmp_path / "small" / log.path).read_text() == "noted\nrate 1\n"

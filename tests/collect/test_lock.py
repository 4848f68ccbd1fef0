"""One collector at a time, whoever runs it, and nothing that somebody else laid in its way."""

import os
import pwd
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sparkpub.collect import lock, state
from sparkpub.record.errors import CollectError

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
HOLDING = """
import os, sys
from pathlib import Path
from sparkpub.collect import lock
os.setuid(int(sys.argv[1]))
with lock.locked("of-another", Path("/")):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by(user: int) -> Iterator["subprocess.Popen[str]"]:
    """A process of another user that holds the lock."""
    argv = [sys.executable, "-c", HOLDING, str(user)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


@AS_ROOT
@pytest.mark.parametrize("user", [0, NOBODY])
def test_root_and_a_user_share_one_lock(
    own_state: Path, tmp_path: Path, user: int
) -> None:
    own_state.mkdir()
    with (
        held_by(user) as other,
        pytest.raises(CollectError) as refused,
        lock.locked("c", tmp_path),
    ):
        pass
    name = pwd.getpwuid(user).pw_name
    said = f"another collector runs on this machine: process {other.pid} of {name}, campaign of-another"
    assert refused.value.what == said
    with lock.locked("c", tmp_path):
        pass


def test_without_a_state_folder_of_ones_own_the_machine_has_one_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = lock.name()
    monkeypatch.delenv(state.VARIABLE)
    whoever = []
    for user in (0, NOBODY):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        whoever.append(lock.name())
    assert whoever == [lock.NAME, lock.NAME]
    assert own != lock.NAME


def test_the_lock_says_who_has_it_and_is_free_afterwards(
    own_state: Path, tmp_path: Path
) -> None:
    assert lock.holder() is None
    with lock.locked("c", tmp_path):
        state.write(state.NOTE, '{"run": "m/native/w 1", "campaign": "other"}')
        assert lock.holder() == {
            "run": "m/native/w 1",
            "campaign": "c",
            "folder": str(tmp_path),
            "pid": os.getpid(),
            "user": pwd.getpwuid(os.geteuid()).pw_name,
        }
    assert lock.holder() is None
    assert own_state.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("answer", [b"", b"[1]", b'{"campaign": "a\\u001bb"}'])
def test_somebody_else_with_the_name_is_named_whatever_he_says(
    own_state: Path, tmp_path: Path, answer: bytes
) -> None:
    with squatting() as other:

        def answering() -> None:
            asking, _ = other.accept()
            with asking:
                asking.sendall(answer)

        threading.Thread(target=answering, daemon=True).start()
        with pytest.raises(CollectError) as refused, lock.locked("c", tmp_path):
            pass
    said = f"process {os.getpid()} of {pwd.getpwuid(os.geteuid()).pw_name}, campaign unknown"
    assert refused.value.what.endswith(said)


def test_one_that_says_nothing_is_not_waited_for(
    own_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "ANSWER_SECONDS", 0.05)
    with squatting():
        found = lock.holder()
    assert found is not None
    assert found["pid"] == os.getpid()


@contextmanager
def squatting() -> Iterator[socket.socket]:
    """A socket of somebody else with the lock's name."""
    with socket.socket(socket.AF_UNIX, lock.KIND) as other:
        other.bind(f"\0{lock.name()}")
        other.listen()
        yield other


def test_a_pipe_among_the_notes_is_no_note(own_state: Path) -> None:
    own_state.mkdir()
    os.mkfifo(own_state / state.NOTE)
    assert state.read(state.NOTE) is None


@AS_ROOT
def test_notes_in_a_folder_of_another_user_are_refused(
    own_state: Path, tmp_path: Path
) -> None:
    """What the next collector undoes stands in them."""
    own_state.mkdir()
    os.chown(own_state, NOBODY, NOBODY)
    with pytest.raises(CollectError) as refused, lock.locked("c", tmp_path):
        pass
    assert refused.value.lines() == [
        f"the collector's notes would lie with another user, or in no folder, {own_state}; "
        "set SPARKPUB_STATE to a folder of your own"
    ]


@pytest.mark.parametrize("mode", [0o775, 0o755])
def test_a_chosen_folder_of_notes_keeps_its_mode(
    own_state: Path, tmp_path: Path, mode: int
) -> None:
    """Somebody may name /tmp or /etc: made private, it would be of no use to anybody else."""
    own_state.mkdir()
    own_state.chmod(mode)
    if mode & 0o022:
        with pytest.raises(CollectError) as refused, lock.locked("c", tmp_path):
            pass
        assert refused.value.lines() == [
            f"other users may write where the collector's notes would lie, {own_state}; "
            "set SPARKPUB_STATE to a folder of your own"
        ]
    else:
        with lock.locked("c", tmp_path):
            pass
    assert own_state.stat().st_mode & 0o7777 == mode


def test_what_is_no_folder_is_named_where_a_campaign_belongs(tmp_path: Path) -> None:
    place = tmp_path / "small"
    os.mkfifo(place)
    with pytest.raises(CollectError) as refused, lock.folder_locked(place):
        pass
    assert refused.value.lines() == [
        f"something else is where the campaign's folder belongs, {place}; "
        "move it away, or choose another --data"
    ]


READING = """
import fcntl, os, sys
os.setuid(int(sys.argv[1]))
for name in (".", ".collecting"):
    try:
        fcntl.flock(os.open(name, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        print(name, error.strerror)
print("read", flush=True)
sys.stdin.read()
"""


@AS_ROOT
@pytest.mark.parametrize("left", [True, False])
def test_who_may_read_a_folder_keeps_nobody_from_collecting(left: bool) -> None:
    """The folder itself can be locked by everybody who may read it; the file that is locked in its place cannot."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        if left:  # by a collector that was killed
            (folder / lock.FILE).touch(0o600)
        argv = [sys.executable, "-c", READING, str(NOBODY)]
        with subprocess.Popen(
            argv, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            why = "Permission denied" if left else "No such file or directory"
            assert process.stdout.readline() == f".collecting {why}\n"
            assert process.stdout.readline() == "read\n"
            with lock.folder_locked(folder):
                assert (folder / lock.FILE).stat().st_mode & 0o777 == 0o600
                with pytest.raises(CollectError), lock.folder_locked(folder):
                    pass
            process.communicate()
        assert list(folder.iterdir()) == []


@AS_ROOT
def test_what_root_leaves_is_the_folders_owners(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    with lock.folder_locked(tmp_path):
        assert (tmp_path / lock.FILE).stat().st_uid == NOBODY


def test_a_link_in_the_place_of_the_locked_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / lock.FILE).symlink_to(tmp_path / "victim")
    with pytest.raises(CollectError) as refused, lock.folder_locked(tmp_path):
        pass
    assert "cannot be locked" in refused.value.what
    assert not (tmp_path / "victim").exists()

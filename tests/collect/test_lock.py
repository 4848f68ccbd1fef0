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


@contextmanager
def squatting() -> Iterator[socket.socket]:
    """A socket of somebody else with the lock's name."""
    with socket.socket(socket.AF_UNIX, lock.KIND) as other:
        other.bind(f"\0{lock.name()}")
        other.listen()
        yield other


def test_a_folder_is_one_collectors_at_a_time_and_left_as_it_was(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data" / "small"
    with lock.folder_locked(folder):
        assert (folder / lock.FILE).stat().st_mode & 0o777 == 0o600
        with pytest.raises(CollectError), lock.folder_locked(folder):
            pass
    assert not folder.parent.exists()
    folder.mkdir(parents=True)
    (folder / lock.FILE).touch(0o600)  # of a collector that was killed
    with lock.folder_locked(folder):
        (folder / "campaign.json").touch()
    assert [path.name for path in folder.iterdir()] == ["campaign.json"]


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / lock.FILE).symlink_to(other)
    with (
        pytest.raises(CollectError, match="cannot be locked"),
        lock.folder_locked(tmp_path),
    ):
        pass
    assert other.read_text() == "mine"
    assert (tmp_path / lock.FILE).is_symlink()

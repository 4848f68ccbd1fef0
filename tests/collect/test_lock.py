"""One collector at a time, whoever runs it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkpub.collect import lock, state
from sparkpub.collect.progress import Progress
from sparkpub.record.errors import CollectError

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
HOLDING = """
import os, sys
from sparkpub.collect import lock
os.setuid(int(sys.argv[1]))
with lock.locked():
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by(user: int) -> Iterator[None]:
    """A process of another user holds the lock."""
    argv = [sys.executable, "-c", HOLDING, str(user)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield


@AS_ROOT
@pytest.mark.parametrize("user", [0, NOBODY])
def test_root_and_a_user_share_one_lock(own_state: Path, user: int) -> None:
    own_state.mkdir()
    with (
        held_by(user),
        pytest.raises(CollectError, match="runs on this machine"),
        lock.locked(),
    ):
        pass
    with lock.locked():
        pass


def test_without_a_state_folder_of_ones_own_the_machine_has_one_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert lock.name() != lock.NAME
    monkeypatch.delenv(state.VARIABLE)
    assert lock.name() == lock.NAME


def test_who_collects_is_said(own_state: Path) -> None:
    assert state.current() is None
    with lock.locked():
        progress = Progress("other", lambda _: None)
        with pytest.raises(CollectError) as refused, lock.locked():
            pass
        who = f"process {os.getpid()}, campaign other"
        assert refused.value.what.endswith(who)
        progress.close()
    assert state.current() is None
    assert own_state.stat().st_mode & 0o777 == 0o700
    state.write(state.NOTE, {"owner": "another boot:1:2:3", "pid": 1})
    assert state.current() is None  # a killed collector left it


def test_a_folder_is_one_collectors_at_a_time_and_left_as_it_was(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data" / "small"
    with (
        lock.folder_locked(folder),
        pytest.raises(CollectError, match="writes to this campaign"),
        lock.folder_locked(folder),
    ):
        pass
    assert not folder.exists()
    with lock.folder_locked(folder):
        (folder / "campaign.json").touch()
    assert [path.name for path in folder.iterdir()] == ["campaign.json"]

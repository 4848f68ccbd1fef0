"""Git as a process: started as the invoking user, ended with its hooks where it takes too long, and its locks removed.

Git removes its locks when it ends, at SIGTERM too. Only a git that is killed leaves them, and then no other can commit.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from sparkpub.collect import invoker
from sparkpub.collect.machine.processes import ends_within, everybody

TIMEOUT = 120.0
"""Seconds that git may take, hooks and network included."""
GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL."""
_LOOK = 0.02
"""Seconds between looks at whether the processes of a group have ended."""

LOCKING = ("add", "commit", "rm")
"""What takes a lock for longer than it takes to write a file."""

Identity = tuple[int, int]
"""Inode and time of change of a lock: another git's lock at the same place has others."""


class GitError(Exception):
    """Git refused; the message is its reason in one line."""


def started(
    place: Path, *arguments: str, timeout: float = TIMEOUT
) -> "subprocess.CompletedProcess[str]":
    """Run git, never waiting for a person, and deaf to the terminal's Ctrl-C. Raises GitError where it is not there, or
    takes longer than `timeout` seconds: it is then ended with all processes of its group, its hooks among them."""
    options = invoker.process_arguments()
    options["env"] |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    options["env"].setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        options["env"].pop(name, None)
    # Files and not pipes: what a hook leaves running in the background would keep a pipe open.
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        try:
            process = subprocess.Popen(
                ["git", *arguments],
                cwd=place,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                start_new_session=True,
                **options,
            )
        except FileNotFoundError:
            raise GitError("git is not installed") from None
        try:
            if not ends_within(process.pid, timeout):
                raise GitError(
                    f"git {arguments[0]} was ended with its hooks: it took more than {timeout:g} s"
                )
            code = process.wait()
        finally:
            if process.returncode is None or process.returncode < 0:
                _end(
                    process
                )  # where somebody has killed git, its hooks are still there
        return subprocess.CompletedProcess(
            process.args, code, _text(said), _text(complained)
        )


def _text(file: IO[bytes]) -> str:
    """What a process wrote, with the line ends of this system."""
    file.seek(0)
    lines = file.read().decode(errors="replace")
    return lines.replace("\r\n", "\n")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End git and every process of its group: SIGTERM, and SIGKILL for what is left after `GRACE` seconds."""
    group = process.pid
    _signal(group, signal.SIGTERM)
    _signal(group, signal.SIGCONT)  # a process that was stopped hears nothing
    deadline = time.monotonic() + GRACE
    while _signal(group, 0) and time.monotonic() < deadline:
        process.poll()
        time.sleep(_LOOK)
    _signal(group, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # it hangs in the kernel
        process.wait(GRACE)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a group of processes. Returns whether there still is one."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Locks:
    """The locks that git keeps in a repository while it changes something, and those of them that ours left behind."""

    def __init__(self, root: Path, folder: Path) -> None:
        """`root` is the work tree, `folder` where git keeps its index."""
        self._root, self._folder = root, folder
        self._left: dict[Path, Identity] = {}

    def there(self) -> dict[Path, Identity]:
        """Every lock of the index, of HEAD and of branches."""
        places = [*self._folder.glob("*.lock")]
        places += (self._folder / "refs").rglob("*.lock")
        found = {}
        for place in places:
            with suppress(FileNotFoundError):
                found[place] = _identity(place)
        return found

    def left_since(self, before: dict[Path, Identity]) -> None:
        """Note that a git of ours was killed: locks that were not there before it are its own."""
        now = self.there()
        self._left |= {
            place: seen for place, seen in now.items() if before.get(place) != seen
        }

    def clear(self) -> None:
        """Remove what a killed git of ours left behind, as soon as no other git is at work in the repository."""
        if not self._left or any(_at_work(self._root, self._folder)):
            return
        for place, seen in self._left.items():
            with suppress(OSError):
                if _identity(place) == seen:
                    place.unlink()
        self._left.clear()


def _identity(place: Path) -> Identity:
    found = place.lstat()
    return found.st_ino, found.st_ctime_ns


def _at_work(root: Path, folder: Path) -> Iterator[int]:
    """Ids of processes that may hold a lock: every living git in the work tree, and whoever has a lock open."""
    for pid in everybody():
        process = Path(f"/proc/{pid}")
        with suppress(OSError):
            if _is_git_in(process, (root, folder)) or _has_lock_open(process, folder):
                yield pid


def _is_git_in(process: Path, folders: tuple[Path, Path]) -> bool:
    """Whether a process is a git that works below one of the folders; one that cannot be asked may do so."""
    name = (process / "comm").read_text().rstrip()
    if name != "git" and not name.startswith("git-"):
        return False
    if (process / "stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X"):
        return False
    try:
        works_in = (process / "cwd").readlink()
    except PermissionError:
        return True
    return any(works_in.is_relative_to(folder) for folder in folders)


def _has_lock_open(process: Path, folder: Path) -> bool:
    for handle in (process / "fd").iterdir():
        with suppress(OSError):
            file = handle.readlink()
            if file.suffix == ".lock" and file.is_relative_to(folder):
                return True
    return False

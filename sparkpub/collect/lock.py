"""One collector per machine: two at once would measure each other.

Not filelock's: the lock's file also says who holds it, is read while it is held, must not be opened with O_CREAT where
it belongs to somebody else, and must never turn into a soft lock, which outlives a killed collector.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sparkpub.collect import invoker, state
from sparkpub.record.errors import CollectError

_PLACES = ("/run/lock", "/var/tmp")  # noqa: S108 - a lock must lie where every user of the machine finds it
NAME = "sparkpub-collector.lock"
_REMEDY = "wait for it, or stop it with Ctrl-C"


def place() -> Path:
    """The lock's file: one for the machine, or in the chosen state folder where `SPARKPUB_STATE` is set."""
    if os.environ.get(state.VARIABLE):
        return state.folder() / NAME
    for folder in _PLACES:
        if os.access(folder, os.W_OK):
            return Path(folder) / NAME
    return Path("/tmp") / NAME  # noqa: S108


@contextmanager
def locked(campaign: str, folder: Path) -> Iterator[None]:
    """Held while collecting; the kernel frees it when the collector dies, however it dies."""
    path = place()
    owner = {"pid": os.getpid(), "campaign": campaign, "folder": str(folder.resolve())}
    with _held(path) as handle:
        if handle is None:
            other = holder() or {}
            raise CollectError(
                f"another collector runs on this machine: process {other.get('pid', 'unknown')}, "
                f"campaign {other.get('campaign', 'unknown')}",
                where=str(path),
                remedy=_REMEDY,
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(owner).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(handle, 0)


@contextmanager
def folder_locked(folder: Path) -> Iterator[None]:
    """Held while a campaign's folder is written to: by a collector on this machine, or by one that has several machines
    measure and does not measure itself.

    The folder itself is locked, so that no collector takes another's run for one that was killed, whoever started it
    and with whatever state folder. Where a folder cannot be locked (NFS), a file beside the machine's lock stands for
    it. A folder that was made for this and is empty afterwards goes again.
    """
    with _made(folder), ExitStack() as stack:
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, handle)
            held = _lock(handle)
        except OSError:
            name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
            path = place().with_name(f"sparkpub-folder-{name}.lock")
            held = stack.enter_context(_held(path)) is not None
        if not held:
            what = "another collector writes to this campaign"
            raise CollectError(what, where=str(folder), remedy=_REMEDY)
        yield


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """A folder that is there; one that was not goes again if it stays empty. What cannot be made is told later."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with suppress(OSError):
        invoker.make_folder(folder)
    try:
        yield
    finally:
        with suppress(OSError):
            for path in missing:
                path.rmdir()


@contextmanager
def _held(path: Path) -> Iterator[int | None]:
    """The file of a lock, locked meanwhile; None where somebody else has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _open(path)
    try:
        held = _lock(handle)
        yield handle if held else None
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Whether an open file or folder could be locked; the lock goes when it is closed, or its process ends."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(path: Path) -> int:
    """Without O_CREAT first: in sticky folders the kernel refuses it on files of others, to root too."""
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        os.fchmod(handle, 0o666)
        return handle
    except PermissionError:
        remedy = "remove the file, or run as its owner"
        raise CollectError(
            "the machine's lock cannot be opened", where=str(path), remedy=remedy
        ) from None


def holder() -> dict[str, object] | None:
    """Who collects on this machine now: pid, campaign and folder; None where nobody does."""
    try:
        handle = os.open(place(), os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(ValueError, TypeError):
            return dict(json.loads(os.pread(handle, 4096, 0)))
        return {}
    finally:
        os.close(handle)
    return None

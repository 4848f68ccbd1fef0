"""One collector per machine: two at once would measure each other. And one that writes to a campaign.

The machine's lock is a name in the kernel's own namespace of sockets (`abstract`, unix(7)) and not a file: root and all
users meet there, nobody can lay anything in its way, and the kernel takes it back when the collector dies, however it
dies. Who shares the machine's network shares the lock: a container with a network of its own has one of its own.
"""

import errno
import fcntl
import hashlib
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sparkpub.collect import invoker, state
from sparkpub.record.errors import CollectError

NAME = "sparkpub-collector"
_REMEDY = "wait for it, or stop it with Ctrl-C"


def name() -> str:
    """The name of the lock: one for the machine, or one for the chosen state folder where `SPARKPUB_STATE` is set."""
    if not os.environ.get(state.VARIABLE):
        return NAME
    folder = str(state.folder().resolve())
    return f"{NAME}-{hashlib.sha256(folder.encode()).hexdigest()[:16]}"


@contextmanager
def locked(patience: float = 0.0) -> Iterator[None]:
    """Held while collecting. Raises CollectError where somebody else has it after so many seconds."""
    end = time.monotonic() + patience
    with socket.socket(socket.AF_UNIX) as taken:
        while not _bound(taken):
            if time.monotonic() > end:
                what = "another collector runs on this machine"
                if (other := state.current()) is not None:
                    what += f": process {other['pid']}, campaign {other['campaign']}"
                where = f"socket @{name()}"
                raise CollectError(what, where=where, remedy=_REMEDY)
            time.sleep(0.1)
        yield


def _bound(taken: socket.socket) -> bool:
    """Whether the name was free, and is now this socket's."""
    try:
        taken.bind(f"\0{name()}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


@contextmanager
def folder_locked(folder: Path) -> Iterator[None]:
    """Held while a campaign's folder is written to, so that no collector takes another's run for one that was killed,
    whatever its state folder. The folder goes again where it is empty afterwards."""
    try:
        invoker.make_folder(folder)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        what = f"the campaign's folder cannot be locked: {error.strerror}"
        remedy = "correct its permissions, or choose another --data"
        raise CollectError(what, where=str(folder), remedy=remedy) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        what = "another collector writes to this campaign"
        raise CollectError(what, where=str(folder), remedy=_REMEDY) from None
    except OSError:
        pass  # NFS locks no folders; the machine's lock holds there, too
    try:
        yield
    finally:
        os.close(handle)
        with suppress(OSError):
            folder.rmdir()

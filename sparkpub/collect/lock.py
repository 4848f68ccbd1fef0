"""One collector per machine: two at once would measure each other.

The lock is a name in the kernel's own namespace of sockets (`abstract`, unix(7)) and not a file. Root and all users
have to meet at one place. A folder in which all of them may write is one where somebody else can put a link or a device
first, and in a folder of root's own a user's collector cannot lock. No file is opened here: there is nothing to follow,
to empty or to leave behind. The kernel gives the name to one socket at a time and takes it back when the collector
dies, however it dies. It also tells everybody which process has it, and of which user.

Who shares the machine's network shares the lock: a container with a network of its own has one of its own, as it has a
`/run/lock` of its own.
"""

import errno
import fcntl
import hashlib
import json
import os
import pwd
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sparkpub.collect import invoker, state
from sparkpub.record import outside
from sparkpub.record.errors import CollectError

NAME = "sparkpub-collector"
FILE = ".collecting"
"""The file of a campaign's folder that is locked; it is there while somebody collects."""
KIND = socket.SOCK_SEQPACKET
"""Whose answer is one packet: of a stream anybody could send a byte now and then."""
ANSWER_SECONDS = 2.0
"""How long whoever holds the lock may take to say what it does. One that was paused says nothing."""
_LONGEST_ANSWER = 4096
_PEER = struct.Struct("3i")
"""What the kernel says of the other end of a socket: process, user and group id."""
_REMEDY = "wait for it, or stop it with Ctrl-C"


def name() -> str:
    """The name of the lock: one for the machine, or one for the chosen state folder where `SPARKPUB_STATE` is set."""
    if os.environ.get(state.VARIABLE):
        return f"{NAME}-{_digest(state.folder())}"
    return NAME


@contextmanager
def locked(campaign: str, folder: Path) -> Iterator[None]:
    """Held while collecting. Raises CollectError where somebody else has it."""
    owner: dict[str, object] = {"campaign": campaign, "folder": str(folder.resolve())}
    with socket.socket(socket.AF_UNIX, KIND) as taken:
        try:
            taken.bind(f"\0{name()}")
        except OSError as error:
            raise _refusal(error) from None
        taken.listen()
        answering = threading.Thread(target=_answer, args=(taken, owner), daemon=True)
        answering.start()
        try:
            yield
        finally:
            taken.shutdown(socket.SHUT_RDWR)  # wakes the thread
            answering.join()


def _refusal(error: OSError) -> CollectError:
    """Why there is no lock to have, with whoever has it."""
    if error.errno == errno.EADDRINUSE:
        other, unknown = holder() or {}, "unknown"
        who = f"process {other.get('pid', unknown)} of {other.get('user', unknown)}"
        what = f"another collector runs on this machine: {who}, campaign {other.get('campaign', unknown)}"
        remedy = _REMEDY
    else:
        what = f"the machine's lock cannot be taken: {error.strerror}"
        remedy = "allow the collector sockets of the family AF_UNIX"
    return CollectError(what, where=f"socket @{name()}", remedy=remedy)


def _answer(listener: socket.socket, owner: dict[str, object]) -> None:
    """Tell everybody who asks what is collected, and what it does just now, until the lock is given back."""
    while True:
        try:
            asking, _ = listener.accept()
        except OSError:
            return
        note: dict[str, object] = {}
        with suppress(ValueError, TypeError):
            note = dict(json.loads(state.read(state.NOTE) or "{}"))
        # So few bytes never wait for the one who asked.
        with asking, suppress(OSError):
            asking.sendall(json.dumps(note | owner).encode())


def holder() -> dict[str, object] | None:
    """Who collects on this machine now: pid and user as the kernel knows them, campaign, folder and note as the
    collector tells; None where nobody does."""
    with socket.socket(socket.AF_UNIX, KIND) as asking:
        asking.settimeout(ANSWER_SECONDS)
        try:
            asking.connect(f"\0{name()}")
        except ConnectionRefusedError:
            return None
        except OSError:
            return {}
        peer = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        pid, user, _ = _PEER.unpack(peer)
        told: dict[str, object] = {}
        with suppress(OSError, ValueError, TypeError):
            told = dict(outside.json_document(asking.recv(_LONGEST_ANSWER)))
        return told | {"pid": pid, "user": _user(user)}


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _digest(folder: Path) -> str:
    return hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]


@contextmanager
def folder_locked(folder: Path) -> Iterator[None]:
    """Held while a campaign's folder is written to: by a collector on this machine, or by one that has several machines
    measure and does not measure itself.

    A file in it is locked, so that no collector takes another's run for one that was killed, whoever started it and
    with whatever state folder. Only the folder's owner and root may open that file: the folder itself may be locked by
    everybody who may read it. A folder that was made for this and is empty afterwards goes again.
    """
    with _gone_if_empty(folder), ExitStack() as stack:
        try:
            invoker.make_folder(folder)
            held = _flocked(folder, stack)
        except NotADirectoryError:
            what = "something else is where the campaign's folder belongs"
            remedy = "move it away, or choose another --data"
            raise CollectError(what, where=str(folder), remedy=remedy) from None
        except OSError as error:
            what = f"the campaign's folder cannot be locked: {error.strerror}"
            remedy = "correct its rights, or choose another --data"
            raise CollectError(what, where=str(folder), remedy=remedy) from None
        if not held:
            what = "another collector writes to this campaign"
            raise CollectError(what, where=str(folder), remedy=_REMEDY)
        yield


def _flocked(folder: Path, stack: ExitStack) -> bool:
    """Whether a folder's file could be locked: until the stack is closed, which removes it, or its process ends."""
    place = folder / FILE
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    handle = os.open(place, flags, 0o600)
    stack.callback(os.close, handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # None where a collector that ended has just removed it, two where it is another file's second name.
    if os.fstat(handle).st_nlink != 1:
        return False
    if os.geteuid() == 0:
        # A killed collector leaves it behind, and the folder's owner has to open it again.
        os.fchown(handle, folder.stat().st_uid, -1)
    stack.callback(place.unlink, missing_ok=True)
    return True


@contextmanager
def _gone_if_empty(folder: Path) -> Iterator[None]:
    """A folder that is not there yet goes again, where it was made and stays empty."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    finally:
        with suppress(OSError):
            for path in missing:
                path.rmdir()

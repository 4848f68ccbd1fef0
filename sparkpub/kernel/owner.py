"""Who started a process or container, spelled so that a later collector can tell whether they still live."""

import hashlib
import os

from sparkpub import state
from sparkpub.kernel.tree import boot_id, start_ticks


def me() -> str:
    """This process, as `boot:pid:start:state`; the last names the folder of its notes, and with it its machine lock."""
    return spelled(os.getpid(), start_ticks(os.getpid()))


def spelled(pid: int, start: str | None) -> str:
    """A process of this machine with this collector's notes, as `boot:pid:start:state`."""
    notes = hashlib.sha256(str(state.folder()).encode()).hexdigest()[:12]
    return f"{boot_id()}:{pid}:{start}:{notes}"


def lives(owner: str) -> bool:
    """Whether the process that `owner` names still runs."""
    boot, pid, start, *_ = (*owner.split(":"), "", "", "")
    return boot == boot_id() and pid.isdigit() and start_ticks(int(pid)) == start


def abandoned(owner: str) -> bool:
    """Whether what `owner` started is ours to clean up: a collector with our notes started it, and is dead."""
    return owner.rpartition(":")[2] == me().rpartition(":")[2] and not lives(owner)

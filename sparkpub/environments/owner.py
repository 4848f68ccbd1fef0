"""Who started a process or container, spelled so that a later collector can tell whether they still live."""

import hashlib
import os
from pathlib import Path

from sparkpub import state


def boot_id() -> str:
    """The kernel's id of this boot; empty where there is no /proc."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_ticks(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None where it is gone or a zombie. With the process id it
    names a process uniquely within a boot."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[19]


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

"""Who started a process or container, spelled so that a later collector can tell whether they still live."""

import os
from pathlib import Path


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
    """This process, as `boot:pid:start`."""
    return spelled(os.getpid())


def spelled(pid: int) -> str:
    """A process of this machine, as `boot:pid:start`."""
    return f"{boot_id()}:{pid}:{start_ticks(pid)}"


def lives(owner: str) -> bool:
    """Whether the process that `owner` names still runs."""
    boot, _, rest = owner.partition(":")
    pid, _, start = rest.partition(":")
    return boot == boot_id() and pid.isdigit() and start_ticks(int(pid)) == start

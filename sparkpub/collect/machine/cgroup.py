"""Control groups, version 1, 2 and hybrid: where a process is charged, and a group of its own for a run.

A run's group is made below the collector's, so that every limit of the collector's holds for its runs as well: an
operator's `MemoryMax=`, a batch system's, a container's. Version 2 charges memory to the groups below a group only
where no process is in that group itself (cgroups(7), "no internal processes"). There the collector moves into a leaf of
its own, beside which the groups of runs are made, and moves back in the end.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

from sparkpub.collect.machine.processes import descendants

ROOT = Path("/sys/fs/cgroup")
PROC = Path("/proc")
PREFIX = "sparkpub-"
BELOW = "below the collector's"
BESIDE = "beside the collector's, which has no limit and holds processes of others"
"""How a record says where the group of a run was made."""
_LIMITS = (
    *("memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max"),
    *("cpuset.cpus", "cpuset.mems", "io.max"),
)
"""The limits of a group: `max` or nothing where there is none."""
Version = Literal["v1", "v2", "hybrid", "none"]


def version() -> Version:
    """Which hierarchy the machine uses. `hybrid`: memory is charged by version 1 beside an empty version 2."""
    if (ROOT / "cgroup.controllers").is_file():
        return "v2"
    if (ROOT / "unified").is_dir():
        return "hybrid"
    return "v1" if (ROOT / "memory").is_dir() else "none"


def memory_folder(pid: int) -> Path | None:
    """The folder whose files say what the process's group is charged; None where nothing charges memory."""
    folder = _folder(pid)
    return folder if folder is not None and _charges(folder) else None


def _folder(pid: int) -> Path | None:
    """The group of a process in the hierarchy that charges memory; None where there is no such hierarchy."""
    try:
        lines = (PROC / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    places = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            places[controller] = path.lstrip("/")
    if "memory" in places:
        return ROOT / "memory" / places["memory"]
    if "" in places and version() == "v2":
        return ROOT / places[""]
    return None


def _charges(folder: Path) -> bool:
    names = ("memory.current", "memory.usage_in_bytes")
    return any((folder / name).is_file() for name in names)


def members(folder: Path) -> set[int]:
    """Process ids in a group and the groups below it."""
    pids: set[int] = set()
    for place in (folder, *folder.glob("**/")):
        with suppress(OSError):
            pids |= _processes(place)
    return pids


def _processes(folder: Path) -> set[int]:
    return set(map(int, (folder / "cgroup.procs").read_text().split()))


def create(owner: str, name: str) -> tuple[Path | None, str]:
    """A group for one run of the collector `owner`, and where it is; or None, and why there is none."""
    own = _folder(os.getpid())
    if own is None:
        return None, "none: this machine has no memory control group"
    name = f"{PREFIX}{owner}-{name}"
    if version() != "v2":
        group, why_not = _made(own / name)
        return group, BELOW if group is not None else f"none: {why_not}"
    home = own.parent if _is_leaf(own) else own
    why_not = _controlled(home, owner)
    if not why_not:
        group, why_not = _made(home / name)
        if group is not None:
            return group, BELOW
    elif home != ROOT and not _limited(home):
        group, _ = _made(home.parent / name)
        if group is not None:
            return group, BESIDE
    return None, f"none: {why_not}"


def _made(folder: Path) -> tuple[Path | None, str]:
    """A new group whose memory is charged, or why there is none."""
    try:
        folder.mkdir()
    except OSError as error:
        return None, f"the collector may not make control groups: {error.strerror}"
    if _charges(folder):
        return folder, ""
    remove(folder)
    return None, "memory is not charged to the groups below the collector's"


def _leaf(group: Path, owner: str) -> Path:
    """The leaf below a group that this process makes for itself."""
    return group / f"{PREFIX}{owner}-collector-{os.getpid()}"


def _is_leaf(group: Path) -> bool:
    """Whether a group is the leaf of a collector: of this process, or of one that started it."""
    return group.name.startswith(PREFIX) and "-collector-" in group.name


def _controlled(group: Path, owner: str) -> str:
    """Have memory charged to the groups below a group of version 2; empty, or why that cannot be."""
    try:
        if "memory" in (group / "cgroup.subtree_control").read_text().split():
            return ""
        if "memory" not in (group / "cgroup.controllers").read_text().split():
            return "memory is not delegated to the collector's control group"
        if not (group / "cgroup.type").exists():  # the root of all, which may hold any
            _write(group / "cgroup.subtree_control", "+memory")
            return ""
        ours = descendants(os.getpid())
        if _processes(group) - ours:
            return "the collector shares its control group with processes of others"
        _settle(group, _leaf(group, owner))
    except OSError as error:
        return f"the collector's control group is not delegated to it: {error.strerror}"
    return ""


def _settle(group: Path, leaf: Path) -> None:
    """Move this process and all that it started into a leaf, and have memory charged to what is beside the leaf. Raises
    OSError where that is not permitted, with everything as it was."""
    leaf.mkdir(exist_ok=True)
    try:
        _move(group, leaf)
        _write(group / "cgroup.subtree_control", "+memory")
    except OSError:
        with suppress(OSError):
            _move(leaf, group)
        remove(leaf)
        raise


def leave(owner: str) -> None:
    """Move this process back to where it was before it made groups, so that nothing of ours stays there."""
    own = _folder(os.getpid())
    if own is None or own != _leaf(own.parent, owner):
        return
    with suppress(OSError):
        _write(own.parent / "cgroup.subtree_control", "-memory")
        _move(own, own.parent)
    remove(own)


def _move(source: Path, target: Path) -> None:
    for pid in _processes(source):
        with suppress(ProcessLookupError):
            _write(target / "cgroup.procs", str(pid))


def _write(file: Path, text: str) -> None:
    """Write to a file of the kernel's. It answers to the call that writes, and has to be there already."""
    handle = os.open(file, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _limited(group: Path) -> bool:
    """Whether a group has a limit of its own that a group beside it would escape."""
    for name in _LIMITS:
        with suppress(OSError):
            if (group / name).read_text().split()[:1] not in ([], ["max"]):
                return True
    return False


def of_run(folder: Path) -> Path:
    """The group that was made for a run, of a group that systemd-nspawn made below it for itself or its container."""
    own = folder.name.startswith(PREFIX)
    if not own and folder.parent.name.startswith(PREFIX):
        return folder.parent
    return folder


def remove(folder: Path) -> bool:
    """Remove an empty group with the groups below it. False where processes are still in it."""
    for place in (*sorted(folder.glob("*/"), reverse=True), folder):
        with suppress(OSError):
            place.rmdir()
    return not folder.exists()


def leftovers(owner: str) -> list[Path]:
    """Groups of a killed collector with these notes that hold no process any more. Those of another collector are none
    of ours: one that it just made is empty, too."""
    top = ROOT if version() == "v2" else ROOT / "memory"
    own = _folder(os.getpid()) or top
    places = {top, own, own.parent}
    return [
        folder
        for place in places
        for folder in place.glob(f"{PREFIX}{owner}-*")
        if not members(folder)
    ]

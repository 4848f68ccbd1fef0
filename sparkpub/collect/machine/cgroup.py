"""Control groups, version 1, 2 and hybrid: where a process is charged, and a group of its own for a run."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

ROOT = Path("/sys/fs/cgroup")
PREFIX = "sparkpub-"
Version = Literal["v1", "v2", "hybrid", "none"]


def version(root: Path = ROOT) -> Version:
    """Which hierarchy the machine uses. `hybrid`: memory is charged by version 1 beside an empty version 2."""
    if (root / "cgroup.controllers").is_file():
        return "v2"
    if (root / "unified").is_dir():
        return "hybrid"
    return "v1" if (root / "memory").is_dir() else "none"


def memory_folder(
    pid: int, root: Path = ROOT, proc: Path = Path("/proc")
) -> Path | None:
    """The folder whose files say what the process's group is charged; None where nothing charges memory."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    places = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            places[controller] = path.lstrip("/")
    if "memory" in places:
        folder, probe = root / "memory" / places["memory"], "memory.usage_in_bytes"
    elif "" in places and version(root) == "v2":
        folder, probe = root / places[""], "memory.current"
    else:
        return None
    return folder if (folder / probe).is_file() else None


def members(folder: Path) -> set[int]:
    """Process ids in a group and the groups below it."""
    pids: set[int] = set()
    for place in (folder, *folder.glob("**/")):
        with suppress(OSError):
            pids.update(
                int(line) for line in (place / "cgroup.procs").read_text().split()
            )
    return pids


def create(name: str, root: Path = ROOT) -> Path | None:
    """A group beside the collector's own, for one run; None where the machine does not allow it.

    Beside and not below: version 2 forbids processes in a group whose children carry controllers.
    """
    mine = memory_folder(os.getpid(), root)
    base = root if mine is None and version(root) == "v2" else mine
    if base is None:
        return None
    top = root if version(root) == "v2" else root / "memory"
    folder = (base if base == top else base.parent) / f"{PREFIX}{name}"
    try:
        folder.mkdir()
    except OSError:
        return None
    if (folder / "memory.current").exists() or (
        folder / "memory.usage_in_bytes"
    ).exists():
        return folder
    remove(folder)
    return None


def remove(folder: Path) -> bool:
    """Remove an empty group. False where processes are still in it."""
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def leftovers(start: str, root: Path = ROOT) -> list[Path]:
    """Groups whose names begin so and that hold no process any more. Those of another collector are none of ours: one
    that it just made is empty, too."""
    top = root if version(root) == "v2" else root / "memory"
    mine = memory_folder(os.getpid(), root)
    places = {top, mine.parent if mine is not None else top}
    return [
        folder
        for place in places
        for folder in place.glob(f"{PREFIX}{start}*")
        if not members(folder)
    ]

"""The processes of a run or of a server, by their root process: its descendants, its control group, its mark."""

import os
from pathlib import Path

from sparkpub.collect.machine import cgroup
from sparkpub.collect.machine.processes import RUN_VARIABLE, descendants, mark


class ProcessTree:
    """Everything that was started with a root process. `reason` says why it has no control group of its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.folder: Path | None = None
        self.reason = ""
        self._mark = mark(pid, RUN_VARIABLE)
        self._known: set[int] = set()
        self.find_folder()

    def find_folder(self) -> None:
        """Look for the control group until there is one: a command enters its group just after it starts."""
        if self.folder is None:
            self.folder, self.reason = own_folder(self.pid)

    def pids(self) -> set[int]:
        """The processes that are there now."""
        if self.folder is not None:
            return cgroup.members(self.folder)
        return descendants(self.pid)

    def owns(self, pid: int) -> bool:
        """Whether a process belongs here. One once known as ours stays so: while it exits, its mark and its group are
        gone before the driver forgets it."""
        if pid in self._known:
            return True
        marked = self._mark is not None and mark(pid, RUN_VARIABLE) == self._mark
        if marked or pid in self.pids():
            self._known.add(pid)
            return True
        return False


def own_folder(pid: int) -> tuple[Path | None, str]:
    """The control group that charges only this process tree, or None and why there is none."""
    folder = cgroup.memory_folder(pid)
    ours = cgroup.memory_folder(os.getpid())
    if folder is None:
        return (
            None,
            "no memory control group on this machine, or the run ended before it could be read",
        )
    folder = cgroup.of_run(folder)
    if folder == ours:
        return None, "the run shares its control group with the collector"
    return folder, ""

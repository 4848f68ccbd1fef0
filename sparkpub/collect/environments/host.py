"""Directly on the machine: processes in a session of their own, found again, and ended as a whole tree."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from sparkpub.collect.environments.base import (
    Environment,
    Launch,
    Obstacle,
    Running,
    missing_models,
)
from sparkpub.collect.machine import cgroup, processes
from sparkpub.collect.machine.processes import (
    OWNER_VARIABLE,
    RUN_VARIABLE,
    descendants,
    end,
    ends_within,
    mark,
    marked,
)
from sparkpub.collect.workdir import OWN
from sparkpub.plan.address import LOOPBACK
from sparkpub.plan.environments import HostOptions
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Isolation

CHUNK = 1 << 16


def reap() -> list[str]:
    """End processes whose collector is dead, and remove their control groups; says what was done.

    Looked for again until there are none: one that the kernel gives another program, or that its parent starts right
    now, shows no environment for a moment."""
    said: dict[int, str] = {}
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        owners = marked(OWNER_VARIABLE).items()
        orphans = {pid for pid, who in owners if processes.abandoned(who)}
        for pid in sorted(orphans - said.keys()):
            run = mark(pid, RUN_VARIABLE) or "unknown"
            said[pid] = f"ended process {pid} of run {run}"
        end(orphans, signal.SIGKILL)
        if not orphans and not any(processes.start_ticks(pid) for pid in said):
            break
        time.sleep(0.02)
    for folder in cgroup.leftovers(processes.notes()):
        cgroup.remove(folder)
    return [*said.values()]


class HostProcess(Running):
    """A command on this machine in a session of its own, with its output pumped to the run's log.

    `meanings` says what exit codes of the words around the command stand for; `undo` is called when it is closed.
    """

    def __init__(
        self,
        argv: Sequence[str],
        launch: Launch,
        variables: Mapping[str, str],
        *,
        recorded: Sequence[str],
        folder: Path | None = None,
        meanings: Mapping[int, str] = {},
        undo: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self.address = LOOPBACK
        self._meanings, self._undo = meanings, undo
        self.argv = tuple(recorded)
        self._run, self._owner = launch.run, launch.owner
        self._group, where = cgroup.create(processes.notes(), launch.run[-100:])
        self.isolation = Isolation(control_group=where, work_folder=OWN)
        try:
            if shutil.which(argv[0], path=variables.get("PATH")) is None:
                raise FileNotFoundError(errno.ENOENT, "not found, or not executable")
            self._process = subprocess.Popen(
                [*self._entering(), *argv],
                cwd=folder or launch.workdir,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            self.undo()
            remedy = "check that the program is installed there and executable"
            raise CollectError(
                f"the command cannot be started: {error.strerror}",
                where=str(argv[0]),
                remedy=remedy,
            ) from None
        self.pid = self._process.pid
        self._pump = threading.Thread(
            target=_pump, args=(self._process, launch.log), daemon=True
        )
        self._pump.start()

    def _entering(self) -> tuple[str, ...]:
        """Words before the command that put it into its group first, so that nothing of it is charged elsewhere."""
        if self._group is None:
            return ()
        return (
            "/bin/sh",
            "-c",
            'echo $$ > "$0" && exec "$@"',
            str(self._group / "cgroup.procs"),
        )

    def _end(self, timeout: float) -> None:
        """Children that outlive the command are ended with it."""
        if not ends_within(self.pid, timeout):
            return
        code = self._process.wait()
        self._end_rest()
        self._pump.join(10)
        self.code, self.error = code, self._meanings.get(code)
        if code < 0:
            self.error = f"ended by {_signal_name(-code)}"

    def _stop(self, grace: float) -> str:
        """SIGTERM, and SIGKILL after `grace` seconds."""
        end(self._tree(), signal.SIGTERM)
        if not self.wait(grace):
            end(self._tree(), signal.SIGKILL)
        return "did not end after SIGKILL: it hangs in the kernel"

    def undo(self) -> None:
        """Remove the run's control group, and undo what was prepared for it."""
        if self._group is not None and cgroup.remove(self._group):
            self._group = None
        self._undo()

    def _tree(self) -> set[int]:
        """Every process of the run: descendants, members of its group, and those that carry its mark."""
        pids = descendants(self.pid)
        if self._group is not None:
            pids |= cgroup.members(self._group)
        mine = {
            pid for pid, who in marked(OWNER_VARIABLE).items() if who == self._owner
        }
        pids |= {pid for pid in mine if mark(pid, RUN_VARIABLE) == self._run}
        return pids - {os.getpid()}

    def _end_rest(self) -> None:
        """What outlives the command would go on using the machine during the next run."""
        deadline = time.monotonic() + 5
        while (rest := self._tree()) and time.monotonic() < deadline:
            end(rest, signal.SIGKILL)
            time.sleep(0.01)


class Host(Environment[HostOptions]):
    """Commands run as the collector's children; `{python}` is the collector's interpreter unless the matrix says."""

    def obstacles(self, models: Sequence[str] = ()) -> Sequence[Obstacle]:
        """A Python interpreter or a model that is not there."""
        found, python = missing_models(models), self.options.python
        if python is not None and shutil.which(python) is None:
            what = f"no Python interpreter {python}"
            found.append(Obstacle(what, "correct python: or install it"))
        return found

    def has_program(self, name: str) -> bool | None:
        """On the command's PATH, or beside its interpreter, where a client of an environment of its own lies."""
        beside = str(Path(self.options.python or sys.executable).parent)
        paths = (self.options.env.get("PATH"), beside)
        return any(shutil.which(name, path=path) is not None for path in paths)

    def has_module(self, name: str) -> bool | None:
        """In the collector's own Python; of another one it shows only inside."""
        if self.options.python is not None or "PYTHONPATH" in self.options.env:
            return None
        return find_spec(name) is not None

    def inherited(self) -> Mapping[str, str]:
        """The collector's own."""
        return os.environ

    def launch(self, launch: Launch) -> HostProcess:
        """Start the command in the run's folder."""
        workdir = str(launch.workdir.resolve())
        argv, variables = self.resolved(launch, workdir, sys.executable)
        return HostProcess(
            argv, launch, os.environ | variables, recorded=argv, folder=Path(workdir)
        )

    @staticmethod
    def reap() -> Sequence[str]:
        """End processes of dead collectors."""
        return reap()


def _pump(process: "subprocess.Popen[bytes]", log: Callable[[bytes], object]) -> None:
    assert process.stdout is not None
    with process.stdout as stream:
        while chunk := os.read(stream.fileno(), CHUNK):
            log(chunk)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

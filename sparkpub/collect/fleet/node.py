"""What runs on a machine of a fleet: it measures what the books on the head give it.

Runs are measured by the loop of one machine, into a folder of the machine's own. What lies there stays until the head
has written it: a machine that was cut off hands it over when it comes back.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sparkpub.collect import lock, state, station
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.job import Job
from sparkpub.collect.machine import inventory, processes
from sparkpub.collect.machine.inventory import NAME_VARIABLE
from sparkpub.collect.obstacles import refuse_obstacles
from sparkpub.collect.progress import Progress
from sparkpub.collect.session import work
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record import store
from sparkpub.record.errors import CollectError, SparkpubError, said_by_system
from sparkpub.record.store import Stored

FOLDER = "fleet"
"""Where a machine keeps runs that the head has not written yet, below the folder of its notes."""
PACE = 1.0
"""Seconds between questions what the operator wishes, and whether there is something to do again."""
PATIENCE = 60.0
"""Seconds to wait for another collector of this machine to end."""
OF_THE_NODE = ("LD_PRELOAD", "MALLOC_CONF")
"""Variables that Ray sets for its own node process: its memory allocator, which nothing else is to have."""
Ask = Callable[..., Any]
"""Calls one of the books' functions on the head, and waits for the answer."""


def fit(matrix: Matrix) -> str:
    """The id of this machine. Raises CollectError with what stands in the way of its runs."""
    machine = inventory.machine_id()
    if machine is None:
        raise CollectError(
            "nothing names this machine: no /etc/machine-id and no GPU",
            remedy=f"set {NAME_VARIABLE} to a name of its own before ray start",
        )
    niceness = os.nice(0) - os.getpriority(os.PRIO_PROCESS, os.getppid())
    if niceness > 0:
        raise CollectError(
            f"work runs {niceness} steps nicer than its node: whatever else there is comes first",
            remedy="start its node with RAY_worker_niceness=0",
        )
    refuse_obstacles(matrix, plan(matrix))
    return machine


def as_started() -> None:
    """Give this process, and what it starts, the surroundings that the node was started in.

    Ray sets variables for its workers (OMP_NUM_THREADS among them) and has the kernel end them first where
    memory runs out; runs would be measured otherwise than without it. The worker's parent is the node.
    """
    parent = os.getppid()
    meant = processes.variables(parent)
    if meant:
        for name in OF_THE_NODE:
            meant.pop(name, None)
        os.environ.clear()
        os.environ.update(meant)
    with suppress(OSError):
        chosen = Path(f"/proc/{parent}/oom_score_adj").read_text()
        Path("/proc/self/oom_score_adj").write_text(chosen)


@dataclass(frozen=True)
class Delivery:
    """A run on its way to the head: the record as it is written, and its files by name."""

    record: str
    files: Mapping[str, bytes]


@dataclass
class RemoteLedger:
    """The books, which the head has."""

    ask: Ask
    machine: str
    interruption: Interruption

    def next(self, _machine: str | None) -> Job | None:
        """See `Bookkeeper.next`: waits while other machines are at what this one may have to do after them."""
        while True:
            answer: Job | bool = self.ask("next", self.machine)
            if isinstance(answer, Job):
                return answer
            if not answer or self.interruption.wait(PACE):
                return None

    def keep(self, _machine: str | None, stored: Stored) -> None:
        """Hand a run over, and forget it once the head has it, or wants none of it.

        Raises CollectError where it did not arrive as it is; it then stays.
        """
        files = {
            item.path: stored.evidence_path(item).read_bytes()
            for item in stored.record.evidence
        }
        delivery = Delivery(stored.path.read_text(encoding="utf-8"), files)
        problem = self.ask("keep", self.machine, delivery)
        if problem is not None:
            raise CollectError(problem)
        for file in stored.files:
            file.unlink(missing_ok=True)

    def skip(self, _machine: str | None) -> None:
        """See `Bookkeeper.skip`."""
        self.ask("skip", self.machine)


def measure(document: Mapping[str, Any], node: str, ask: Ask) -> tuple[str, ...]:
    """Take this machine for a campaign: hand over what lies here from before, and measure until nothing is to do.

    Returns why nothing can be measured here, or not any more, in lines."""
    as_started()
    matrix = Matrix.model_validate(document)
    interruption = Interruption()
    threading.Thread(target=_obey, args=(interruption, ask), daemon=True).start()
    try:
        machine = fit(matrix)
        _measure(matrix, machine, node, interruption, ask)
    except SparkpubError as error:
        return tuple(error.lines())
    except OSError as error:
        return (said_by_system(error),)
    return ()


def _measure(
    matrix: Matrix, machine: str, node: str, interruption: Interruption, ask: Ask
) -> None:
    ledger = RemoteLedger(ask, machine, interruption)
    folder = state.folder() / FOLDER / matrix.campaign
    with ExitStack() as stack:
        _take(stack, interruption)  # another node of this machine waits for the first
        ask("join", machine, node)
        folder.mkdir(parents=True, exist_ok=True)
        for line in station.tidied(matrix, folder):
            ask("tell", machine, line)
        for stored in store.read_folder(folder):
            ledger.keep(machine, stored)
        progress = Progress(matrix.campaign, partial(ask, "tell", machine))
        stack.callback(progress.close)
        here = stack.enter_context(
            station.opened(matrix, folder, interruption, progress)
        )
        work(here, ledger, interruption)


def _take(stack: ExitStack, interruption: Interruption) -> None:
    """Lock the machine. Whoever worked for a node that was lost may still be about to end."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            stack.enter_context(lock.locked())
        except CollectError:
            if time.monotonic() > end or interruption.wait(PACE):
                raise
        else:
            return


def _obey(interruption: Interruption, ask: Ask) -> None:
    """Start nothing any more, and end the current run, when the operator wishes it or the head is gone."""
    while not interruption.stop:
        try:
            wish = ask("wish")
        except Exception as error:  # Ray raises whatever its transport raises
            wish = f"stop the loss of the head: {type(error).__name__}"
        how, _, reason = wish.partition(" ")
        if how:
            interruption.reason = reason
            interruption.finish, interruption.stop = True, how == "stop"
        time.sleep(PACE)

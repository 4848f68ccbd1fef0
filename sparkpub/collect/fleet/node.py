"""What runs on a machine of a fleet: it measures what the books on the head give it.

Runs are measured by the loop of one machine, into a folder of the machine's own. What lies there stays until the head
has written it: a machine that was cut off hands it over when it comes back.
"""

import os
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sparkpub.collect import state, station
from sparkpub.collect.fleet import cluster
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.job import Job
from sparkpub.collect.lock import locked
from sparkpub.collect.machine import inventory, processes
from sparkpub.collect.obstacles import refuse_obstacles
from sparkpub.collect.progress import Progress
from sparkpub.collect.session import work
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record import store
from sparkpub.record.errors import CollectError, said_by_system
from sparkpub.record.store import Stored

FOLDER = "fleet"
"""Where a machine keeps runs that the head has not written yet, below the folder of its notes."""
PACE = 1.0
"""Seconds between questions what the operator wishes, and whether there is something to do again."""
PATIENCE = 60.0
"""Seconds to wait for another collector of this machine to end: it may have worked for a node that was lost."""
OF_THE_NODE = ("LD_PRELOAD", "MALLOC_CONF")
"""Variables that Ray sets for its own node process: its memory allocator, which nothing else is to have."""


def measure(matrix: Matrix, node: str, ledger: Any) -> None:
    """Take this machine for a campaign: hand over what lies here from before, and measure until nothing is to do.

    Raises a SparkpubError where nothing can be measured here, or not any more.
    """
    as_started()
    interruption = Interruption()
    there = RemoteLedger(ledger, interruption)
    threading.Thread(target=there.obey, daemon=True).start()
    folder = state.folder() / FOLDER / matrix.campaign
    try:
        with ExitStack() as stack:
            machine = fit(matrix)
            stack.enter_context(locked(PATIENCE))
            there.ask("join", machine, node)
            folder.mkdir(parents=True, exist_ok=True)
            for line in station.tidied(matrix, folder):
                there.ask("tell", machine, line)
            for stored in store.read_folder(folder):
                there.keep(machine, stored)
            progress = Progress(matrix.campaign, partial(there.ask, "tell", machine))
            stack.callback(progress.close)
            here = stack.enter_context(
                station.opened(matrix, folder, interruption, progress)
            )
            work(here, there, interruption)
    except OSError as error:
        raise CollectError(said_by_system(error)) from None


def fit(matrix: Matrix) -> str:
    """The id of this machine. Raises CollectError with what stands in the way of its runs."""
    machine = inventory.machine_id()
    if machine is None:
        raise CollectError(
            "nothing names this machine: no /etc/machine-id and no GPU",
            remedy=f"set {inventory.NAME_VARIABLE} to a name of its own before ray start",
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


@dataclass
class RemoteLedger:
    """The books, which the head has."""

    ledger: Any
    interruption: Interruption

    def ask(self, what: str, *given: Any) -> Any:
        """Call one of the books' functions on the head, and wait for the answer."""
        return cluster.ask(self.ledger, what, *given)

    def next(self, machine: str | None) -> Job | None:
        """See `Bookkeeper.next`: waits while other machines are at what this one may have to do after them."""
        while True:
            job: Job | None = self.ask("next", machine)
            if job or self.ask("over") or self.interruption.wait(PACE):
                return job

    def keep(self, machine: str | None, stored: Stored) -> None:
        """Hand a run over, and forget it once the head has it, or wants none of it."""
        files = {
            item.path: stored.evidence_path(item).read_bytes()
            for item in stored.record.evidence
        }
        self.ask("keep", machine, stored, files)
        for file in stored.files:
            file.unlink(missing_ok=True)

    def skip(self, machine: str | None) -> None:
        """See `Bookkeeper.skip`."""
        self.ask("skip", machine)

    def obey(self) -> None:
        """Start nothing any more, and end the current run, when the operator wishes it or the head is gone."""
        heard = self.interruption
        while not heard.stop:
            try:
                heard.finish, heard.stop, heard.reason = self.ask("wish")
            except Exception as error:  # Ray raises whatever its transport raises
                heard.reason = f"the loss of the head: {type(error).__name__}"
                heard.finish = heard.stop = True
            time.sleep(PACE)

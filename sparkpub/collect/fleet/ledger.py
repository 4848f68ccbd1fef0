"""The books of a fleet: a lease by machine, and the first delivery of a run.

They are an actor on the head, whose calls Ray runs one at a time. It writes and commits with the environment of the
operator's command, and says what there is to say when that asks.
"""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress

from sparkpub.collect import journal, state
from sparkpub.collect.books import Books, Outcome, attempted
from sparkpub.collect.choice import Choice
from sparkpub.collect.fleet import cluster
from sparkpub.collect.fleet.cluster import Node
from sparkpub.collect.job import Job
from sparkpub.collect.lock import folder_locked
from sparkpub.collect.progress import Progress
from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.secrets import is_secret_name
from sparkpub.record.store import Stored, write_atomic

_FOR_GIT = re.compile(
    r"(?:GIT|GPG|GNUPG|SSH|SUDO|XDG|SPARKPUB|LC)\w*|HOME|PATH|USER|LOGNAME|LANG|TZ"
)
Wish = tuple[bool, bool, str]
"""What the operator wishes of machines, as `Interruption` has it: to finish, to stop, and why."""


class Ledger(Books):
    """What each machine measures, by the id that its records have, and what came of it."""

    def __init__(
        self, matrix: Matrix, choice: Choice, variables: Mapping[str, str]
    ) -> None:
        """`variables` are what git and ssh need of the operator's; see `for_git`. Nothing is read before `open`: what
        fails here, Ray would say in its own words."""
        os.environ.update(variables)
        self._given = matrix, choice
        self._said: list[str] = []
        self._stack = ExitStack()
        self._wish: Wish = (False, False, "")
        self.machines: dict[str, str] = {}
        """Those that are there, with their nodes: the rest of a model that another one began is for anybody."""
        self._lost: dict[str, str] = {}
        """What machines were at that are gone."""

    def open(self, user: int) -> None:
        """Read and declare the campaign for a user, by id. Raises CollectError where that cannot be."""
        if user != os.geteuid():
            raise CollectError(
                "the Ray node of this machine runs as another user",
                remedy="start it as yours",
            )
        matrix, choice = self._given
        folder = choice.data / matrix.campaign
        self._stack.enter_context(folder_locked(folder))
        # What a collector without a fleet left.
        journal.recover(folder, Redactor(matrix.words))
        progress = Progress(matrix.campaign, self._said.append)
        super().__init__(matrix, choice, progress)
        self.schedule(coverage.machines_of(self.records))
        self.begin()

    def nodes(self) -> list[Node]:
        """Those that may be set to work."""
        return cluster.nodes()

    def join(self, machine: str, node: str) -> None:
        """A machine is there, which its lock keeps any other node of it from using, and repeats the campaign where each
        does, now or once it is back. A lease that it had before is over."""
        self.leases.pop(machine, None)
        self._lost.pop(machine, None)
        self.machines[machine] = node
        self.schedule(sorted({*self.machines_planned, machine}))

    def leave(self, node: str) -> None:
        """The machine of a node has ended its work, or is gone: its lease ends, and the run is to do again."""
        for machine in [name for name, there in self.machines.items() if there == node]:
            del self.machines[machine]
            if (job := self.leases.pop(machine, None)) is not None:
                self._lost[machine] = job.label
                self.tell(machine, f"{job.label} is to do again")
        self._note()

    def next(self, machine: str | None) -> Job | None:
        """See `Books.next`."""
        if self._wish[0] or machine not in self.machines:
            return None
        job = super().next(machine)
        if job is not None and machine is not None:
            self.progress.live(job.label, f"on {name(machine)}")
            self._note()
        return job

    def over(self) -> bool:
        """Whether no machine that is there has anything to do, or will have."""
        waits = self.leases or any(map(self.pending, self.machines))
        return self._wish[0] or not waits

    def open_for(self, machine: str | None) -> Iterable[PlannedRun]:
        """See `Books.open_for`: first models that the machine began, then those that no other machine holds."""
        holders = {model: self._holder(model) for model in self.matrix.models}
        runs = [
            run
            for run in super().open_for(machine)
            if run.machine is not None or holders[run.model] in (None, machine)
        ]
        return sorted(runs, key=lambda run: holders[run.model] is None)

    def _holder(self, model: str) -> str | None:
        """The machine that measures a model, so that no comparison mixes machines; None where any may."""
        for machine, job in self.leases.items():
            if job.run.model == model:
                return machine
        of_model = [record for record in self.records if record.model == model]
        latest = max(of_model, key=lambda record: record.started.value, default=None)
        begun_on = None if latest is None else latest.machine.id
        return begun_on if begun_on in self.machines else None

    def keep(
        self,
        machine: str | None,
        stored: Stored,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """Write a run that a machine delivers with its files, and end its lease. The first of a run is kept; a later
        one is refused in a line."""
        record = stored.record
        lease = self.leases.get(machine)
        if lease is not None and attempted(record, lease.run):
            del self.leases[machine]
        good = record.status == "ok" and record.repeat_of is None
        for known in self.records:
            again = good and self._slot(known) == self._slot(record)
            if again or known.stem == record.stem:
                here = f"{known.run_id} is here in its place"
                self.tell(str(machine), f"{record.run_id} came late: {here}; not kept")
                return
        for path, content in (files or {}).items():
            write_atomic(self.folder / path, content)
        super().keep(None, journal.finish(self.folder, record))

    def _slot(self, record: Record) -> tuple[object, ...]:
        """What a record is of, and its status: of a machine where each repeats the campaign."""
        machine = record.machine.id if self.matrix.machines == "replicate" else None
        slot = (*record.cell, record.iteration, machine)
        return (*slot, record.repeat_of, record.status)

    def tell(self, machine: str, line: str) -> None:
        """What a machine has to say."""
        self.progress.line(f"{name(machine)}: {line}")

    def wish(self) -> Wish:
        """What the operator wishes, for machines."""
        return self._wish

    def hear(self, wish: Wish) -> tuple[list[str], bool, bool]:
        """Take in what the operator wishes; returns what there is to say since the last call, whether runs are left to
        do, and whether a machine is at work."""
        self._wish = wish
        lines = list(self._said)
        self._said.clear()
        left = bool(self.todo) and not self.full()
        return lines, left, bool(self.machines)

    def outcome(self, stopped: str | None) -> Outcome:
        """See `Books.outcome`."""
        state.write(state.leases_of(self.matrix.campaign), None)
        return super().outcome(stopped)

    def _note(self) -> None:
        """For `sparkpub status`: which run each machine has on lease, and of which machines nothing came."""
        found = {machine: job.label for machine, job in self.leases.items()}
        notes = [
            {"machine": machine, "run": run, "state": fate}
            for fate, runs in (("under way", found), ("failed", self._lost))
            for machine, run in runs.items()
        ]
        with suppress(OSError):
            state.write(state.leases_of(self.matrix.campaign), notes)


def name(machine: str) -> str:
    """A machine for people: the beginning of its id, as its records have it."""
    return f"machine {machine[:8]}"


def for_git() -> dict[str, str]:
    """The variables of this process that its git and ssh need, and no secret: they may cross the network."""
    return {
        name: value
        for name, value in os.environ.items()
        if _FOR_GIT.fullmatch(name) and not is_secret_name(name)
    }

"""The books of a fleet: a lease by machine, and the first delivery of a run.

They are an actor on the head, whose calls Ray runs one at a time. It writes and commits with the environment of the
operator's command, and says what there is to say when that asks.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from sparkpub.collect import journal, state
from sparkpub.collect.books import Books, Outcome, attempted
from sparkpub.collect.choice import Choice
from sparkpub.collect.fleet import cluster
from sparkpub.collect.fleet.cluster import Node
from sparkpub.collect.fleet.node import Delivery
from sparkpub.collect.job import Job
from sparkpub.collect.lock import folder_locked
from sparkpub.collect.progress import Progress
from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun
from sparkpub.record.errors import SparkpubError
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from sparkpub.record.secrets import is_secret_name
from sparkpub.record.store import write_atomic

_FOR_GIT = re.compile(
    r"(?:GIT|GPG|GNUPG|SSH|SUDO|XDG|SPARKPUB|LC)\w*|HOME|PATH|USER|LOGNAME|LANG|TZ"
)


class FleetBooks(Books):
    """What each machine measures, by the id that its records have, and what came of it."""

    def __init__(self, matrix: Matrix, choice: Choice, progress: Progress) -> None:
        super().__init__(matrix, choice, progress)
        self.machines: dict[str, str] = {}
        """Those that are there, with their nodes: the rest of a model that another one began is for anybody."""
        self.schedule(coverage.machines_of(self.records))

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

    def join(self, machine: str, node: str) -> None:
        """A machine is there, and repeats the campaign where each does. A lease that it had before is over."""
        self.leases.pop(machine, None)
        self.machines[machine] = node
        self.schedule(sorted({*self.machines, *coverage.machines_of(self.records)}))

    def lose(self, machine: str) -> Job | None:
        """A machine is gone: its lease ends, and the run is to do again. Returns what it was at."""
        self.machines.pop(machine, None)
        return self.leases.pop(machine, None)

    def receive(self, machine: str, delivery: Delivery) -> str | None:
        """Write a run that a machine delivers, and end its lease. Only the first of a run is kept; a later one is
        refused in a line. Returns why the machine still has it: a file that did not arrive as it was sent."""
        record = Record.model_validate_json(delivery.record)
        for item in record.evidence:
            content = delivery.files.get(item.path, b"")
            is_whole = hashlib.sha256(content).hexdigest() == item.sha256
            if not is_whole or not item.path.startswith(f"{record.stem}."):
                return f"{item.path} of {record.run_id} arrived damaged"
        run = next((run for run in self.planned if attempted(record, run)), None)
        if machine in self.leases and self.leases[machine].run == run:
            del self.leases[machine]
        why = self._refusal(record, run)
        if why is not None:
            self.progress.line(f"{name(machine)}: {record.run_id} {why}; not kept")
            return None
        for item in record.evidence:
            write_atomic(self.folder / item.path, delivery.files[item.path])
        self.keep(None, journal.finish(self.folder, record))
        return None

    def _refusal(self, record: Record, run: PlannedRun | None) -> str | None:
        """Why a run is not kept, in words: it is here already, or was measured again meanwhile."""
        for known in self.records:
            if known.stem == record.stem:
                return "came twice"
            same = run is not None and attempted(known, run)
            first = known.repeat_of is None and record.repeat_of is None
            if same and first and known.status == record.status == "ok":
                return f"came late: {known.run_id} was measured in its place"
        return None

    @property
    def over(self) -> bool:
        """Whether no machine that is there has anything to do, or will have."""
        return not self.leases and not any(map(self.pending, self.machines))


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


class Ledger:
    """The actor: what machines ask of the books, and what the operator's command hears of them."""

    def __init__(
        self,
        document: Mapping[str, Any],
        choice: Choice,
        environment: Mapping[str, str],
    ) -> None:
        """`environment` has what git and ssh need of the operator's; see `for_git`."""
        os.environ.update(environment)
        self._matrix, self._choice = Matrix.model_validate(document), choice
        self._said: list[str] = []
        self._stack = ExitStack()
        self._wish = ""
        self._lost: dict[str, str] = {}
        """What machines were at that are gone."""
        self.books: FleetBooks

    def begin(self, user: int) -> list[str]:
        """Read and declare the campaign for a user, by id; returns why that cannot be, in lines."""
        if user != os.geteuid():
            return [
                "the Ray node of this machine runs as another user; start it as yours"
            ]
        folder = self._choice.data / self._matrix.campaign
        try:
            self._stack.enter_context(folder_locked(folder))
            words = self._matrix.words
            journal.recover(folder, Redactor(words))  # of a collector without a fleet
            progress = Progress(self._matrix.campaign, self._said.append)
            self.books = FleetBooks(self._matrix, self._choice, progress)
            self.books.begin()
        except SparkpubError as error:
            return error.lines()
        return []

    def nodes(self) -> list[Node]:
        """Those that may be set to work."""
        return cluster.nodes()

    def join(self, machine: str, node: str) -> None:
        """Take a machine in, which its lock keeps any other node of it from using."""
        self.books.join(machine, node)
        self._lost.pop(machine, None)

    def next(self, machine: str) -> Job | bool:
        """The next run of a machine, on lease; else whether it is to ask again, since there may be one later."""
        if self._wish or machine not in self.books.machines:
            return False
        job = self.books.next(machine)
        if job is None:
            return not self.books.over
        self.books.progress.live(job.label, f"on {name(machine)}")
        self._note()
        return job

    def keep(self, machine: str, delivery: Delivery) -> str | None:
        """Take in a run; returns why not, in words: its machine still has it."""
        return self.books.receive(machine, delivery)

    def skip(self, machine: str) -> None:
        """End the lease of a run that a gate kept from starting."""
        self.books.skip(machine)

    def leave(self, node: str) -> None:
        """The machine of a node has ended its work, or is gone."""
        for machine, there in list(self.books.machines.items()):
            job = self.books.lose(machine) if there == node else None
            if job is not None:
                self._lost[machine] = job.label
                self.tell(machine, f"{job.label} is to do again")
        self._note()

    def _note(self) -> None:
        """For `sparkpub status`: which run each machine has on lease, and of which machines nothing came."""
        found = {machine: job.label for machine, job in self.books.leases.items()}
        notes = [
            {"machine": machine, "run": run, "state": fate}
            for fate, runs in (("under way", found), ("failed", self._lost))
            for machine, run in runs.items()
        ]
        with suppress(OSError):
            state.write(state.leases_of(self._matrix.campaign), notes)

    def tell(self, machine: str, line: str) -> None:
        """What a machine has to say."""
        self._said.append(f"{name(machine)}: {line}")

    def wishes(self, wish: str) -> None:
        """What the operator wishes: `finish` or `stop`, and why."""
        self._wish = wish

    def wish(self) -> str:
        """The same for machines; empty while there is none."""
        return self._wish

    def said(self) -> tuple[list[str], bool, bool]:
        """What there is to say since the last call, whether runs are left to do, and whether a machine is at work."""
        lines = list(self._said)
        self._said.clear()
        left = bool(self.books.todo) and not self.books.full()
        return lines, left, bool(self.books.machines)

    def outcome(self, stopped: str | None) -> Outcome:
        """What it came to."""
        state.write(state.leases_of(self._matrix.campaign), None)
        return self.books.outcome(stopped)

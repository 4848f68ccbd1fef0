"""The books of a fleet: a lease by machine, and the first delivery of a run, checked before it is written."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from sparkpub.collect import invoker, journal
from sparkpub.collect.bench import Order
from sparkpub.collect.books import Books, attempted
from sparkpub.plan.plan import PlannedRun
from sparkpub.record.errors import RecordError, field_problems
from sparkpub.record.record import Record
from sparkpub.record.store import Stored, write_atomic


@dataclass(frozen=True)
class Delivery:
    """A run on its way to the head: the record as it is written, and its files by name."""

    record: str
    files: Mapping[str, bytes]


@dataclass
class FleetBooks(Books):
    """What each machine measures, by the id that its records have, and what came of it."""

    machines: set[str] = field(default_factory=set)
    """Those that are there: the rest of a model that another one began is for anybody."""
    blocks: dict[str | None, str] = field(default_factory=dict)
    """Machine to the model that it is at."""

    def next(self, machine: str | None) -> Order | None:
        """See `Books.next`; the machine is at the model of this run from now on."""
        order = super().next(machine)
        if order is not None:
            self.blocks[machine] = order.run.model
        return order

    def open_for(self, machine: str | None) -> Iterable[PlannedRun]:
        """See `Books.open_for`: first the model that the machine is at, then those that no other machine holds."""
        holders = {model: self._holder(model) for model in self.shown.models}
        runs = [
            run
            for run in super().open_for(machine)
            if run.machine is not None or holders[run.model] in (None, machine)
        ]
        return sorted(runs, key=lambda run: run.model != self.blocks.get(machine))

    def _holder(self, model: str) -> str | None:
        """The machine that measures a model, so that no comparison mixes machines; None where any may."""
        for machine in self.machines:
            if self.blocks.get(machine) == model:
                return machine
        of_model = [record for record in self.records if record.model == model]
        latest = max(of_model, key=lambda record: record.started.value, default=None)
        begun_on = None if latest is None else latest.machine.id
        return begun_on if begun_on in self.machines else None

    def lose(self, machine: str) -> Order | None:
        """A machine is gone: its lease ends, and the run is to do again. Returns what it was at."""
        self.machines.discard(machine)
        self.blocks.pop(machine, None)
        return self.leases.pop(machine, None)

    def receive(self, machine: str, delivery: Delivery) -> None:
        """Write a run that a machine delivers, and end its lease. Only the first of a run is kept; a later one is
        refused in a line.

        Raises RecordError where it is not what it says it is: its machine still has it.
        """
        record = received(delivery, self.shown.campaign, machine)
        run = next((run for run in self.planned if attempted(record, run)), None)
        if machine in self.leases and self.leases[machine].run == run:
            del self.leases[machine]
        why = self._refusal(record, run)
        if why is not None:
            self.progress.line(f"{name(machine)}: {record.run_id} {why}")
            return
        stored = written(self, record, delivery)
        if run is not None:
            self.enter(Order(run, repeat_of=record.repeat_of), stored)
            return
        self.records.append(record)  # of another state of the matrix
        self.committer.add_run(stored)

    def _refusal(self, record: Record, run: PlannedRun | None) -> str | None:
        """Why a run is not kept, in words: it is here already, or was measured again meanwhile."""
        for known in self.records:
            if known.stem == record.stem:
                return "came twice and is kept once"
            same = run is not None and attempted(known, run)
            first = known.repeat_of is None and record.repeat_of is None
            if same and first and known.status == record.status == "ok":
                return f"came late: {known.run_id} was measured in its place; not kept"
        return None


def name(machine: str | None) -> str:
    """A machine for people: the beginning of its id, as its records have it."""
    return f"machine {(machine or 'unknown')[:8]}"


def received(delivery: Delivery, campaign: str, machine: str) -> Record:
    """The record of a run that arrived whole. Raises RecordError where anything in it is not as it should be."""
    remedy = "install the same sparkpub on every machine, and look at that machine's disk and network"
    try:
        record = Record.model_validate_json(delivery.record)
    except ValidationError as error:
        raise RecordError(
            f"a record that cannot be read: {field_problems(error)[0]}", remedy=remedy
        ) from None
    problem = _problem(record, delivery, campaign, machine)
    if problem is not None:
        raise RecordError(problem, where=f"run {record.run_id}", remedy=remedy)
    return record


def _problem(
    record: Record, delivery: Delivery, campaign: str, machine: str
) -> str | None:
    """What is wrong with a run; None where nothing is."""
    if record.campaign != campaign:
        return f"it is of campaign {record.campaign}"
    if record.machine.id not in (None, machine):  # None: a server elsewhere is measured
        return f"it is of {name(record.machine.id)}, and {name(machine)} sent it"
    for item in record.evidence:
        content = delivery.files.get(item.path)
        if not item.path.startswith(f"{record.stem}."):
            return f"{item.path} is the name of another run's file"
        if content is None:
            return f"{item.path} did not arrive"
        if hashlib.sha256(content).hexdigest() != item.sha256:
            return f"{item.path} arrived damaged"
    return None


def written(books: Books, record: Record, delivery: Delivery) -> Stored:
    """Write the evidence, then the record: whoever sees a record finds its files."""
    for item in record.evidence:
        path = books.folder / item.path
        write_atomic(path, delivery.files[item.path])
        invoker.give(path)
    return journal.finish(books.folder, record)

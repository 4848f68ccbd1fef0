"""The head of a fleet: gives each machine the next run of its block, and alone writes and commits what comes back.

Ray places the calls, moves the runs and finds out which machines are dead. What is decided here is what belongs to the
experiment: which machine measures which model, and that no planned run is lost or counted twice.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from sparkpub.collect import journal
from sparkpub.collect.bench import Order, unprepared
from sparkpub.collect.books import (
    Books,
    Outcome,
    attempted,
    failed_before,
    known_records,
    missing,
    without,
)
from sparkpub.collect.choice import Choice
from sparkpub.collect.declaring import declare, refuse_another_campaign
from sparkpub.collect.fleet.accept import (
    MOST_LOSSES,
    Accepted,
    admit,
    apart,
    asked,
    refuse_nobody,
    survey,
)
from sparkpub.collect.fleet.cluster import (
    Call,
    Cluster,
    HeadLostError,
    LostError,
    Node,
    PostOnNode,
    connected,
)
from sparkpub.collect.fleet.node import Delivery, NodeAnswer
from sparkpub.collect.fleet.receiving import received, written
from sparkpub.collect.gates import Say
from sparkpub.collect.git import Committer
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.lock import folder_locked
from sparkpub.collect.progress import Progress
from sparkpub.collect.public import public
from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.record.errors import CollectError, RecordError
from sparkpub.record.record import Record
from sparkpub.record.store import Stored

GRACE = 120.0
"""Seconds that a machine may answer late before it is taken for hung."""


@dataclass(frozen=True)
class Patience:
    """How long the head waits, in seconds."""

    survey: float = 60.0
    """For machines to say what they are."""
    newcomer: float = 20.0
    """For a node that joins later to say what it is: the others wait meanwhile."""
    look: float = 2.0
    """Between looks for new nodes."""
    absent: float = 600.0
    """For a machine to come back, where nothing else is left to do."""


@dataclass
class Member:
    """A machine that measures for us."""

    id: str
    node: Node
    post: PostOnNode
    call: Call[NodeAnswer] | None = None
    order: Order | None = None
    due: float = 0.0
    """When its answer is overdue, on the monotonic clock."""
    model: str | None = None
    """The block that it is at."""

    @property
    def name(self) -> str:
        """For people: the beginning of its id, as its records have it."""
        return f"machine {self.id[:8]}"


def collect(
    matrix: Matrix,
    choice: Choice,
    address: str,
    say: Say | None = None,
    patience: Patience = Patience(),
) -> Outcome:
    """Measure what is missing on the machines of the Ray cluster at `address`.

    Raises CollectError where the cluster cannot be reached or none of its machines may measure.
    """
    folder = choice.data / matrix.campaign
    shown, redactor = public(matrix)
    with ExitStack() as stack:
        stack.enter_context(folder_locked(folder))
        records = known_records(folder)
        refuse_another_campaign(shown, records, folder)
        problems = unprepared(matrix, plan(matrix))
        if problems:
            raise CollectError(problems[0], others=problems[1:])
        cluster = stack.enter_context(connected(address))
        interruption = stack.enter_context(Interruption())

        accepted = survey(cluster, matrix, patience.survey)
        refuse_nobody(accepted, address)

        if folder.is_dir():
            journal.recover(folder, redactor)  # of a collector without a fleet
            records = known_records(folder)
        wanted = [
            run for run in plan_of(matrix, accepted, records) if choice.wants(run)
        ]
        given_up: frozenset[str] = frozenset()
        if choice.retry_failed:
            given_up = failed_before(shown, records, wanted)
        to_do = missing(shown, without(records, given_up), wanted)

        progress = Progress(matrix.campaign, len(wanted), len(wanted) - len(to_do), say)
        stack.callback(progress.close)
        told = (*accepted.lines(), *apart(matrix, accepted))
        for line in (*told, *declare(folder, shown)):
            progress.line(line)
        committer = Committer(folder, choice.commit, choice.push, progress)
        committer.catch_up()
        books = Books(shown, folder, choice, records, committer, progress, given_up)
        fleet = Fleet(matrix, cluster, books, interruption, patience, accepted)
        outcome = fleet.run()
        progress.line(outcome.summary)
        return outcome


def plan_of(
    matrix: Matrix, accepted: Accepted, records: Sequence[Record]
) -> tuple[PlannedRun, ...]:
    """The plan for every machine that was here, or has measured before."""
    machines = accepted.seen | {*coverage.machines_of(records)}
    return plan(matrix, sorted(machines))


@dataclass
class Fleet:
    """The machines of one collection, and what each of them is at."""

    matrix: Matrix
    cluster: Cluster
    books: Books
    interruption: Interruption
    patience: Patience
    accepted: Accepted
    members: dict[str, Member] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    """Node to how often something was lost on it."""
    looked: float = 0.0
    seen: float = 0.0
    """When something was last under way, on the monotonic clock."""
    head_lost: str | None = None
    """Why nothing can be asked of the cluster any more."""
    told: str = ""
    """What the machines were told of the operator's wish: finish, or stop."""
    todo: list[PlannedRun] = field(default_factory=list)
    """Runs that are open, in the order of the plan."""

    def run(self) -> Outcome:
        """Until nothing is left to do, or nobody is left to do it."""
        self.seen = time.monotonic()
        self._list_runs()
        try:
            self._measure()
            self._dismiss()
        except HeadLostError as error:
            # What is under way ends with the cluster; its machines bring it along when they are started again.
            self.head_lost = error.lines()[0]
            self._hear()
        return self.books.outcome(self.wanted(), self._why_stopped())

    def _measure(self) -> None:
        """Give out runs and take in what comes back. Raises HeadLostError."""
        for machine, there in self.accepted.machines.items():
            self._enlist(machine, there)
        while self._goes_on():
            for member in list(self.members.values()):
                if member.call is None:
                    self._assign(member)
            self._hear()
            self._look_around()

    def planned(self) -> tuple[PlannedRun, ...]:
        """The plan for every machine that measures, or has measured."""
        return plan_of(self.matrix, self.accepted, self.books.records)

    def wanted(self) -> list[PlannedRun]:
        """Those of the plan that were chosen."""
        return [run for run in self.planned() if self.books.choice.wants(run)]

    def _list_runs(self) -> None:
        """List the open runs anew: a machine more repeats the campaign."""
        self.todo = self.books.missing(self.wanted())

    # -- who is there ----------------------------------------------------------------------------------

    def _enlist(self, machine: str, there: Node) -> None:
        """Have a machine set up; its answer brings the runs that it still keeps."""
        post = self.cluster.post(there, self.matrix.document())
        member = Member(machine, there, post, post.open())
        member.due = time.monotonic() + GRACE
        self.members[machine] = member

    def _look_around(self) -> None:
        """Take in nodes that are new, or came back."""
        now = time.monotonic()
        if now - self.looked < self.patience.look or self.interruption.finish:
            return
        self.looked = now
        present = self.cluster.nodes()
        for machine, there in list(self.accepted.machines.items()):
            if there not in present:
                self.accepted.gone(machine)
                if machine in self.members:
                    self._lose(self.members[machine], "its node is gone")
        decided = self.accepted.decided()
        new = [there for there in present if there not in decided]
        for there, found in asked(
            self.cluster, new, self.matrix, self.patience.newcomer
        ):
            joined = admit(self.accepted, there, found)
            if joined is None:
                for line in self.accepted.refused[there]:
                    self._say(f"node {there.address} ({there.id[:8]}) {line}")
            else:
                self._enlist(joined, there)
                self._list_runs()
                self._say(f"{self.members[joined].name} joins")
        for machine, there in self.accepted.machines.items():
            if machine not in self.members and there in present:
                self._enlist(machine, there)

    def _lose(self, member: Member, why: str) -> None:
        """A machine is gone, or of no use: what it was at is to do again."""
        del self.members[member.id]
        member.post.kill()
        losses = self.losses.get(member.node.id, 0) + 1
        self.losses[member.node.id] = losses
        if losses >= MOST_LOSSES:
            self._exclude(member)
        at = f"; {member.order.label} is to do again" if member.order else ""
        self._say(f"{member.name} is lost: {why}{at}")

    def _exclude(self, member: Member) -> None:
        """A machine gets no more work on this node."""
        if member.id in self.accepted.machines:
            self.accepted.gone(member.id)
        self.accepted.refused[member.node] = ["gets no more work"]

    # -- what is to do ---------------------------------------------------------------------------------

    def _assign(self, member: Member) -> None:
        """Give an idle machine its next run, if there is one for it."""
        under_way = sum(1 for other in self.members.values() if other.order)
        if self.interruption.finish or self.books.full(under_way):
            return
        order = self._next_run(member) or self._next_repeat(member)
        if order is None:
            return
        member.order = order
        member.call = member.post.measure(order)
        member.due = time.monotonic() + self._longest(order)
        self.books.progress.live(order.label, f"on {member.name}", "")

    def _next_run(self, member: Member) -> Order | None:
        """The next run of the machine's block; of the next block where that is done."""
        todo = list(self._open_for(member))
        if not todo:
            return None
        of_block = [run for run in todo if run.model == member.model]
        run = (of_block or todo)[0]
        member.model = run.model
        return self.books.order(run, member.id)

    def _open_for(self, member: Member) -> Iterator[PlannedRun]:
        """Runs that a machine may take, in the order of the plan."""
        taken = {other.order.run for other in self.members.values() if other.order}
        for run in self.todo:
            if run in taken or self.books.is_tried(run):
                continue
            if self._holder(run) in (None, member.id):
                yield run

    def _holder(self, run: PlannedRun) -> str | None:
        """The machine whose block a run is of; None where any may take it.

        A block that is begun stays where it is, as long as its machine is there.
        """
        if run.machine is not None:
            return run.machine
        for member in self.members.values():
            if member.model == run.model:
                return member.id
        of_model = [
            record for record in self.books.records if record.model == run.model
        ]
        latest = max(of_model, key=lambda record: record.started.value, default=None)
        begun_on = None if latest is None else latest.machine.id
        return begun_on if begun_on in self.members else None

    def _next_repeat(self, member: Member) -> Order | None:
        """The next repeat of a run that stood out on this machine."""
        for run, odd in self.books.repeats(self.planned(), self.wanted()):
            if odd.machine.id == member.id:
                return self.books.order(run, member.id, odd.run_id)
        return None

    def _longest(self, order: Order) -> float:
        """Seconds after which a machine that has not answered is taken for hung."""
        gates = self.matrix.gates
        waits = gates.cooldown + gates.max_wait
        server = self.matrix.environments[order.run.environment].server
        if server is not None:
            waits += gates.max_wait + server.ready_timeout
        return waits + self.matrix.timeout + GRACE

    # -- what came back --------------------------------------------------------------------------------

    def _hear(self) -> None:
        """Take what has come back, waiting a moment for it."""
        called = [member for member in self.members.values() if member.call]
        if not called:
            self.interruption.wait(min(1.0, self.patience.look))
            return
        there = self.cluster.answered([m.call for m in called if m.call], timeout=1.0)
        for member in called:
            if member.call in there:
                self._take(member)
            elif time.monotonic() > member.due:
                self._exclude(member)
                why = "other work of the cluster has it, or it hangs"
                self._lose(member, why if member.order is None else "it hangs")
        self.seen = time.monotonic()
        self._pass_on()

    def _pass_on(self) -> None:
        """Tell the machines what the operator wishes."""
        wish = "stop" if self.interruption.stop else "finish"
        if not self.interruption.finish or self.told == wish:
            return
        self.told = wish
        for member in self.members.values():
            member.post.stop(self.interruption.reason, now=self.interruption.stop)
            if self.interruption.stop:
                member.due = time.monotonic() + GRACE

    def _take(self, member: Member) -> None:
        """One answer of a machine."""
        assert member.call is not None
        try:
            answer = self.cluster.answer(member.call)
        except LostError as error:
            self._lose(member, str(error))
            return
        order = member.order
        member.call = member.order = None
        for line in answer.said:
            self._say(f"{member.name}: {line}")
        damaged = []
        for delivery in answer.deliveries:
            try:
                self._keep(member, delivery)
            except RecordError as error:
                damaged.append(error.lines()[0])
        if answer.why == "skipped" and order is not None:
            self.books.refused.add(order.run)
        if answer.problem and order is not None:
            self._exclude(member)
        problem = [*answer.problem, *damaged]
        if problem:
            self._put_back(member)
            self._lose(member, "; ".join(problem))

    def _keep(self, member: Member, delivery: Delivery) -> None:
        """Write a run that arrived, once. One that was measured elsewhere meanwhile is refused.

        Raises RecordError where it did not arrive whole; its machine still has it.
        """
        record = received(delivery, self.matrix.campaign)
        run = self._run_of(record)
        if any(record.run_id == known.run_id for known in self.books.records):
            self._say(f"{member.name}: {record.run_id} came twice and is kept once")
            member.post.forget(record.stem)
            return
        counted = self._measured_meanwhile(record, run)
        if counted is None:
            self._enter(record, written(self.books.folder, record, delivery), run)
        else:
            why = f"came late: {counted.run_id} was measured in its place"
            self._say(f"{member.name}: {record.run_id} {why}; not kept")
        member.post.forget(record.stem)

    def _enter(self, record: Record, stored: Stored, run: PlannedRun | None) -> None:
        """A run that is written, into the books."""
        if run is None:  # of another state of the matrix: kept, and counted by nobody
            self.books.records.append(record)
            self.books.committer.add_run(stored)
            return
        self.books.keep(Order(run, repeat_of=record.repeat_of), stored)
        if run in self.todo and not self.books.is_open(run):
            self.todo.remove(run)
            self.books.progress.finished()

    def _run_of(self, record: Record) -> PlannedRun | None:
        """The planned run that a record is of; None where the matrix plans it no more."""
        for run in self.planned():
            if attempted(record, run):
                return run
        return None

    def _measured_meanwhile(
        self, record: Record, run: PlannedRun | None
    ) -> Record | None:
        """The good run that counts in place of a good one; None where there is none."""
        if record.repeat_of is not None or run is None or record.status != "ok":
            return None
        for known in self.books.records:
            same = attempted(known, run) and known.repeat_of is None
            if same and known.status == "ok":
                return known
        return None

    # -- the end ---------------------------------------------------------------------------------------

    def _goes_on(self) -> bool:
        """Whether something is under way, or may still be."""
        if any(member.call for member in self.members.values()):
            return True
        if self.interruption.finish or self.books.full():
            return False
        if any(
            self._next_run(member) or self._next_repeat(member)
            for member in self.members.values()
        ):
            return True
        left = any(not self.books.is_tried(run) for run in self.todo)
        waited = time.monotonic() - self.seen
        return left and waited < self.patience.absent

    def _dismiss(self) -> None:
        """Have every machine put back as it was."""
        for member in self.members.values():
            self._put_back(member)

    def _put_back(self, member: Member) -> None:
        """Have a machine as it was before."""
        try:
            self.cluster.answer(member.post.close(), timeout=30.0)
        except LostError as error:
            self._say(f"{member.name} was not put back: {error}")

    def _why_stopped(self) -> str | None:
        if self.head_lost is not None:
            return self.head_lost
        if self.interruption.finish:
            return f"stopped by {self.interruption.reason}"
        return None

    def _say(self, line: str) -> None:
        self.books.progress.line(line)

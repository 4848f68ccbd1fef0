"""The head of a fleet: it keeps the books, which each machine asks for its next run, and alone writes and commits."""

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from sparkpub.collect import journal
from sparkpub.collect.bench import Order, unprepared
from sparkpub.collect.books import (
    Outcome,
    failed_before,
    known_records,
    missing,
    without,
)
from sparkpub.collect.choice import Choice
from sparkpub.collect.declaring import declare, refuse_another_campaign
from sparkpub.collect.fleet.cluster import (
    Cluster,
    HeadLostError,
    LostError,
    Node,
    connected,
)
from sparkpub.collect.fleet.ledger import FleetBooks, name
from sparkpub.collect.fleet.roster import SURVEY_SECONDS, Roster, apart
from sparkpub.collect.gates import Say
from sparkpub.collect.git import Committer
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.lock import folder_locked
from sparkpub.collect.progress import Progress
from sparkpub.collect.public import public
from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError, RecordError

GRACE = 120.0
"""Seconds that a machine may be late before it is taken for hung."""
LOOK_SECONDS = 5.0
"""Between looks for new nodes, and before a machine that failed gets another chance."""
ABSENT_SECONDS = 600.0
"""How long the head waits for a machine to come back, where nothing else is left to do."""
MOST_LOSSES = 3
"""How often a node may fail before it gets no more work."""


def collect(
    matrix: Matrix, choice: Choice, address: str, say: Say | None = None
) -> Outcome:
    """Measure what is missing on the machines of the Ray cluster at `address`.

    Raises CollectError where the cluster cannot be reached or none of its machines may measure.
    """
    folder = choice.data / matrix.campaign
    shown, redactor = public(matrix)
    with ExitStack() as stack:
        stack.enter_context(folder_locked(folder))
        refuse_another_campaign(shown, known_records(folder), folder)
        problems = unprepared(matrix, plan(matrix))
        if problems:
            raise CollectError(problems[0], others=problems[1:])
        cluster = stack.enter_context(connected(address))
        interruption = stack.enter_context(Interruption())
        roster = Roster(cluster, matrix.document())
        roster.look(SURVEY_SECONDS)
        roster.refuse_nobody(address)
        questions = cluster.questions(matrix.campaign)

        if folder.is_dir():
            journal.recover(folder, redactor)  # of a collector without a fleet
        records = known_records(folder)
        machines = {*roster.machines, *coverage.machines_of(records)}
        planned = plan(matrix, sorted(machines))
        wanted = [run for run in planned if choice.wants(run)]
        given_up: frozenset[str] = frozenset()
        if choice.retry_failed:
            given_up = failed_before(shown, records, wanted)
        to_do = missing(shown, without(records, given_up), wanted)

        done = len(wanted) - len(to_do)
        progress = Progress(matrix.campaign, len(wanted), done, say)
        stack.callback(progress.close)
        for line in (*apart(matrix, [*roster.machines]), *declare(folder, shown)):
            progress.line(line)
        committer = Committer(folder, choice.commit, choice.push, progress)
        committer.catch_up()
        ledger = FleetBooks(
            shown, folder, choice, records, committer, progress, given_up
        )
        head = Head(matrix, cluster, questions, roster, ledger, interruption)
        outcome = head.run()
        progress.line(outcome.summary)
        return outcome


@dataclass
class MachineAtWork:
    """A machine at work. `number` tells its questions from those of a process that it had before."""

    machine: str
    node: Node
    number: int
    work: Any
    due: float
    """When the next word of it is overdue, on the monotonic clock."""


@dataclass
class Head:
    """Sets machines to work, answers what they ask of the books, and hears what became of them."""

    matrix: Matrix
    cluster: Cluster
    questions: Any
    """The actor that machines ask."""
    roster: Roster
    ledger: FleetBooks
    interruption: Interruption
    posts: dict[str, MachineAtWork] = field(default_factory=dict)
    """Machine to what it does."""
    losses: Counter[Node] = field(default_factory=Counter)
    begun: int = 0
    question: Any = None
    """The next question, once there is one."""
    known: set[Node] = field(default_factory=set)
    """Nodes that were set to work before."""
    told: set[str] = field(default_factory=set)
    """Refusals that were said."""
    wish: str = ""

    def run(self) -> Outcome:
        """Until nothing is left to do, or nobody is left to do it."""
        stopped = None
        try:
            self._measure()
        except HeadLostError as error:
            # What is under way ends with the cluster; its machines bring it along when they are started again.
            stopped = error.lines()[0]
        if stopped is None and self.interruption.finish:
            stopped = f"stopped by {self.interruption.reason}"
        return self.ledger.outcome(self.ledger.wanted, stopped)

    def _measure(self) -> None:
        """Give out runs and take in what comes back. Raises HeadLostError."""
        self.question = self.questions.take.remote()
        self._enlist()
        looked = seen = time.monotonic()
        while self.posts or self._waits(seen):
            if self.posts:
                seen = time.monotonic()
            self._hear()
            self._pass_on()
            if time.monotonic() - looked > LOOK_SECONDS:
                self.roster.look()
                self._enlist()
                looked = time.monotonic()
        while self.cluster.done([self.question], timeout=0.2):
            self._hear()  # last words

    def _waits(self, seen: float) -> bool:
        """Whether machines may still come that have something to do."""
        if self.interruption.finish or self.ledger.full():
            return False
        late = time.monotonic() - seen > ABSENT_SECONDS
        return bool(self.ledger.todo) and not late

    def _enlist(self) -> None:
        """Set every machine to work that may measure and for which there is something to do."""
        for line in self.roster.lines():
            if line not in self.told:
                self.told.add(line)
                self.ledger.progress.line(line)
        ledger, machines = self.ledger, self.roster.machines
        ledger.machines = {*machines, *self.posts}
        everyone = ledger.machines | {*coverage.machines_of(ledger.records)}
        planned = plan(self.matrix, sorted(everyone))
        ledger.schedule(planned, [run for run in planned if ledger.choice.wants(run)])
        for machine, there in machines.items():
            # Its first task hands over what lies there; later ones need something to do.
            wanted = there not in self.known or ledger.pending(machine) is not None
            if wanted and machine not in self.posts and not self.interruption.finish:
                self.known.add(there)
                self.begun += 1
                work = self.cluster.measure(
                    there, self.matrix.document(), self.questions, machine, self.begun
                )
                due = time.monotonic() + GRACE
                self.posts[machine] = MachineAtWork(
                    machine, there, self.begun, work, due
                )

    def _hear(self) -> None:
        """Take what is asked or has ended, waiting a moment for it."""
        works = {post.work: post for post in self.posts.values()}
        done = self.cluster.done([self.question, *works], timeout=1.0)
        for ref in done:
            if ref == self.question:
                self._answer(*self._asked())
            else:
                self._ended(works[ref])

        for post in list(self.posts.values()):
            # Who has asked already, and waits while a commit takes its time, is not late.
            if not done and time.monotonic() > post.due:
                self.roster.excluded.add(post.node)
                self.cluster.cancel(post.work)
                self._lose(post, "other work of the cluster has it, or it hangs")

    def _asked(self) -> Any:
        """The question that is there. Raises HeadLostError where the actor that has it is gone."""
        try:
            return self.cluster.answer(self.question)
        except LostError as error:
            raise HeadLostError(str(error)) from None

    def _answer(self, machine: str, number: int, what: str, *given: Any) -> None:
        """Answer one question of a machine; one that was taken for lost is told that there is nothing to do."""
        post = self.posts.get(machine)
        value: Any = None
        if what == "tell":
            self.ledger.progress.line(f"{name(machine)}: {given[0]}")
        elif what == "keep":
            try:
                self.ledger.receive(machine, *given)
            except RecordError as error:
                value = error.lines()[0]
        elif post is not None and post.number == number:
            value = self._from_books(post, what)
        if post is not None and post.number == number:
            order = self.ledger.leases.get(machine)
            post.due = time.monotonic() + GRACE
            post.due += 0.0 if order is None else self._longest(order)
        self.question = self.questions.take.remote(value)

    def _from_books(self, post: MachineAtWork, what: str) -> Order | None:
        """The next run of a machine, or the end of a lease that came to nothing."""
        if what == "skip":
            self.ledger.skip(post.machine)
            return None
        if self.interruption.finish:
            return None
        order = self.ledger.next(post.machine)
        if order is not None:
            self.ledger.progress.live(order.label, f"on {name(post.machine)}", "")
        return order

    def _longest(self, order: Order) -> float:
        """Seconds that a run may take, from its gates to its end."""
        gates = self.matrix.gates
        waits = gates.cooldown + gates.max_wait
        server = self.matrix.environments[order.run.environment].server
        if server is not None:
            waits += gates.max_wait + server.ready_timeout
        return waits + self.matrix.timeout

    def _ended(self, post: MachineAtWork) -> None:
        """A machine has nothing to do any more, cannot go on, or is gone."""
        try:
            why = "; ".join(self.cluster.answer(post.work))
        except LostError as error:
            why = str(error)
        if why:
            self._lose(post, why)
            return
        del self.posts[post.machine]
        self.ledger.leases.pop(post.machine, None)  # of a run that was not begun

    def _lose(self, post: MachineAtWork, why: str) -> None:
        """A machine is gone, or of no use: what it was at is to do again."""
        del self.posts[post.machine]
        self.losses[post.node] += 1
        if self.losses[post.node] >= MOST_LOSSES:
            self.roster.excluded.add(post.node)
        order = self.ledger.lose(post.machine)
        at = f"; {order.label} is to do again" if order else ""
        self.ledger.progress.line(f"{name(post.machine)} is lost: {why}{at}")

    def _pass_on(self) -> None:
        """Tell the machines what the operator wishes."""
        how = "stop" if self.interruption.stop else "finish"
        wish = f"{how} {self.interruption.reason}"
        if not self.interruption.finish or self.wish == wish:
            return
        self.wish = wish
        self.questions.wishes.remote(wish)
        for post in self.posts.values():
            if self.interruption.stop:
                post.due = time.monotonic() + GRACE

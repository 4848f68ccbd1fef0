"""The command that has a fleet measure: it sets machines to work, and hears what became of them. The books are an actor
beside it, which each machine asks for its next run, and which alone writes and commits."""

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from sparkpub.collect.books import Outcome
from sparkpub.collect.choice import Choice
from sparkpub.collect.fleet import cluster
from sparkpub.collect.fleet.cluster import OFFER, LostError, Node
from sparkpub.collect.fleet.ledger import Ledger, for_git
from sparkpub.collect.fleet.node import measure
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.obstacles import unprepared
from sparkpub.collect.progress import Progress, Say
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError, SparkpubError

LOOK_SECONDS = 10.0
"""Between looks for new nodes, and before one that was lost is set to work again."""
ABSENT_SECONDS = 600.0
"""How long the head waits for a machine to come back, where nothing else is left to do."""


def collect(
    matrix: Matrix, choice: Choice, address: str, say: Say | None = None
) -> Outcome:
    """Measure what is missing on the machines of the Ray cluster at `address`.

    Raises CollectError where the cluster cannot be reached, or is lost, or none of its nodes offers to measure.
    """
    problems = unprepared(matrix, plan(matrix))
    if problems:
        raise CollectError(problems[0], others=problems[1:])
    with ExitStack() as stack:
        stack.enter_context(cluster.connected(address))
        interruption = stack.enter_context(Interruption())
        if not cluster.nodes():
            raise CollectError(
                f"no node of the cluster offers {OFFER}",
                where=f"cluster {address}",
                remedy="start Ray with it on the machines that measure",
            )
        here = replace(choice, data=choice.data.resolve())
        ledger = cluster.actor(Ledger, matrix.campaign, matrix, here, for_git())
        progress = Progress(matrix.campaign, say)
        stack.callback(progress.close)
        head = Head(matrix, ledger, progress, interruption)
        head.ask("open", os.geteuid())
        return head.run()


@dataclass
class Head:
    """Sets each node to work, and again where it is lost."""

    matrix: Matrix
    ledger: Any
    progress: Progress
    interruption: Interruption
    works: dict[Any, Node] = field(default_factory=dict)
    """What is on, and where."""
    over: set[Node] = field(default_factory=set)
    """Nodes that have nothing to do any more, or on which something stands in the way."""
    missing: int = 0
    """How many were lost and are not back."""

    def ask(self, what: str, *given: Any) -> Any:
        """Ask the books. Raises CollectError where they are gone."""
        try:
            timeout = cluster.ANSWER_SECONDS
            return cluster.ask(self.ledger, what, *given, timeout=timeout)
        except LostError as error:
            raise CollectError(
                f"the Ray cluster does not answer any more: {error}",
                remedy="start it and the same command again: finished runs wait on their machines",
            ) from None

    def run(self) -> Outcome:
        """Until nothing is left to do, or nobody is left to do it."""
        seen = time.monotonic()
        looked = float("-inf")
        while True:
            finish, now = self.interruption.finish, time.monotonic()
            if not finish and now - looked > LOOK_SECONDS:
                self._set_to_work()
                looked = now
            left, at_work = self._hear_books()
            # A machine that was set to work may bring runs, and other work of the cluster may keep it from joining.
            if at_work or (left and self.works):
                seen = now
            waits = self.works or (left and self.missing)
            late = now - seen > ABSENT_SECONDS
            if not at_work and (finish or late or not waits):
                break
            for ref in cluster.done([*self.works], 1.0):
                self._hear(ref)
        outcome: Outcome = self.ask("outcome", self.interruption.stopped)
        self._hear_books()
        self.progress.line(outcome.summary)
        return outcome

    def _hear_books(self) -> tuple[bool, bool]:
        """Pass on what the operator wishes, and print what there is to say; returns whether runs are left to do, and
        whether a machine is at work."""
        wish = self.interruption
        lines, left, at_work = self.ask("hear", (wish.finish, wish.stop, wish.reason))
        for line in lines:
            self.progress.line(line)
        return left, at_work

    def _set_to_work(self) -> None:
        """Nodes that are new, and those that were lost and are there again."""
        for there in {*self.ask("nodes")} - {*self.works.values()} - self.over:
            work = cluster.start(there, measure, self.matrix, there.id, self.ledger)
            self.works[work] = there
            self.missing = max(0, self.missing - 1)

    def _hear(self, ref: Any) -> None:
        """A machine has ended its work, cannot go on, or is gone."""
        there = self.works.pop(ref)
        try:
            cluster.answer(ref)
        except LostError as error:
            self.missing += 1
            self.progress.line(f"{there} is lost: {error}")
        except SparkpubError as error:
            self.over.add(there)
            for line in error.lines():
                self.progress.line(f"{there} {line}")
        else:
            self.over.add(there)
        self.ask("leave", there.id)

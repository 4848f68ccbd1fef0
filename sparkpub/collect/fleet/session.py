"""The command that has a fleet measure: it sets machines to work, and hears what became of them. The books are an actor
beside it, which each machine asks for its next run, and which alone writes and commits."""

import importlib
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from sparkpub.collect.books import Outcome
from sparkpub.collect.choice import Choice
from sparkpub.collect.fleet import cluster as clusters
from sparkpub.collect.fleet import node as machines
from sparkpub.collect.fleet.cluster import OFFER, Cluster, LostError, Node, connected
from sparkpub.collect.fleet.ledger import Ledger, for_git
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.obstacles import unprepared
from sparkpub.collect.progress import Progress, Say
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError

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
        cluster = stack.enter_context(connected(address))
        interruption = stack.enter_context(Interruption())
        if not clusters.nodes():
            raise CollectError(
                f"no node of the cluster offers {OFFER}",
                where=f"cluster {address}",
                remedy="start Ray with it on the machines that measure",
            )
        document = matrix.document()
        here = replace(choice, data=choice.data.resolve())
        ledger = cluster.actor(Ledger, matrix.campaign, document, here, for_git())
        progress = Progress(matrix.campaign, say)
        stack.callback(progress.close)
        head = Head(document, cluster, ledger, progress, interruption)
        problems = head.ask("begin", os.geteuid())
        if problems:
            raise CollectError(problems[0], others=problems[1:])
        return head.run()


@dataclass
class Head:
    """Sets each node to work, and again where it is lost."""

    document: Mapping[str, Any]
    """The matrix."""
    cluster: Cluster
    ledger: Any
    progress: Progress
    interruption: Interruption
    works: dict[Any, Node] = field(default_factory=dict)
    """What is on, and where."""
    ended: set[Node] = field(default_factory=set)
    """Nodes that have nothing to do any more."""
    unfit: set[Node] = field(default_factory=set)
    """Nodes on which something stands in the way."""
    none_left: bool = False
    """Whether each node that is there is unfit."""

    def ask(self, what: str, *given: Any) -> Any:
        """Ask the books. Raises CollectError where they are gone."""
        try:
            return clusters.answer(getattr(self.ledger, what).remote(*given))
        except LostError as error:
            raise CollectError(
                f"the Ray cluster does not answer any more: {error}",
                remedy="start it and the same command again: finished runs wait on their machines",
            ) from None

    def run(self) -> Outcome:
        """Until nothing is left to do, or nobody is left to do it."""
        seen = time.monotonic()
        looked = -LOOK_SECONDS
        while True:
            left, at_work = self._hear_books()
            finish, now = self.interruption.finish, time.monotonic()
            if not finish and now - looked > LOOK_SECONDS:
                self._set_to_work()
                looked = now
            # A machine that was set to work may bring runs, and other work of the cluster may keep it from joining.
            over = not self.works and (self.none_left or not left)
            if not at_work and (finish or over):
                break
            if at_work or (left and self.works):
                seen = now
            elif now - seen > ABSENT_SECONDS:
                break
            for ref in self.cluster.done([*self.works], 1.0):
                self._hear(ref)
        outcome: Outcome = self.ask("outcome", self.interruption.stopped)
        self._hear_books()
        self.progress.line(outcome.summary)
        return outcome

    def _hear_books(self) -> tuple[bool, bool]:
        """Pass on what the operator wishes, and print what there is to say; returns whether runs are left to do, and
        whether a machine is at work."""
        if self.interruption.finish:
            how = "stop" if self.interruption.stop else "finish"
            self.ask("wishes", f"{how} {self.interruption.reason}")
        lines, left, at_work = self.ask("said")
        for line in lines:
            self.progress.line(line)
        return left, at_work

    def _set_to_work(self) -> None:
        """Nodes that are new, and those that were lost and are there again."""
        busy = {*self.works.values(), *self.ended, *self.unfit}
        nodes = self.ask("nodes")
        self.none_left = bool(nodes) and self.unfit.issuperset(nodes)
        for there in nodes:
            if there not in busy:
                given = self.document, there.id, self.ledger
                self.works[self.cluster.measure(there, _measure, *given)] = there

    def _hear(self, ref: Any) -> None:
        """A machine has ended its work, cannot go on, or is gone."""
        there = self.works.pop(ref)
        try:
            lines = clusters.answer(ref)
        except LostError as error:
            self.progress.line(f"{there} is lost: {error}")
        else:
            for line in lines:
                self.progress.line(f"{there} {line}")
            (self.unfit if lines else self.ended).add(there)
        self.ask("leave", there.id)


def _measure(document: Mapping[str, Any], node: str, ledger: Any) -> tuple[str, ...]:
    """On a node: see `sparkpub.collect.fleet.node.measure`."""
    ray = importlib.import_module("ray")

    def ask(what: str, *given: Any) -> Any:
        return ray.get(getattr(ledger, what).remote(*given))

    return machines.measure(document, node, ask)

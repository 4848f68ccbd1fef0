"""The command that has a fleet measure: it sets machines to work, and hears what became of them. The books are an actor
beside it, which each machine asks for its next run, and which alone writes and commits."""

import importlib
import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from sparkpub.collect.books import Outcome
from sparkpub.collect.choice import Choice
from sparkpub.collect.fleet import node as nodes
from sparkpub.collect.fleet.cluster import (
    OFFER,
    Cluster,
    HeadLostError,
    LostError,
    Node,
    connected,
)
from sparkpub.collect.fleet.ledger import Ledger, for_git
from sparkpub.collect.fleet.node import NodeState
from sparkpub.collect.fleet.roster import (
    answered,
    apart,
    most_frequent,
    refusals,
    survey,
)
from sparkpub.collect.gates import Say
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.obstacles import unprepared
from sparkpub.collect.progress import Progress
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError

LOOK_SECONDS = 5.0
"""Between looks for new nodes, and before a machine that failed gets another chance."""
BEGIN_SECONDS = 120.0
"""How long other work of the cluster may keep a machine from its first run, once nothing is left to do."""
ABSENT_SECONDS = 600.0
"""How long the head waits for a machine to come back, where nothing else is left to do."""
ANSWER_SECONDS = 300.0
"""How long the books may take: a commit with its hooks, and a push."""
MOST_LOSSES = 3
"""How often a node may fail before it gets no more work."""


def collect(
    matrix: Matrix, choice: Choice, address: str, say: Say | None = None
) -> Outcome:
    """Measure what is missing on the machines of the Ray cluster at `address`.

    Raises CollectError where the cluster cannot be reached, or is lost, or none of its machines may measure.
    """
    problems = unprepared(matrix, plan(matrix))
    if problems:
        raise CollectError(problems[0], others=problems[1:])
    with ExitStack() as stack:
        cluster = stack.enter_context(connected(address))
        interruption = stack.enter_context(Interruption())
        document = matrix.document()
        found = survey(cluster, document)
        wanted = most_frequent(found.values())
        refuse_nobody(found, wanted, address)
        here = replace(choice, data=choice.data.resolve())
        given = document, here, for_git()
        ledger = cluster.actor(Ledger, matrix.campaign, *given)
        progress = Progress(matrix.campaign, say)
        stack.callback(progress.close)
        head = Head(document, cluster, ledger, wanted, progress, interruption)
        problems = head.ask("begin", os.geteuid())
        if problems:
            raise CollectError(problems[0], others=problems[1:])
        for line in apart(matrix, head.enlist(found)):
            progress.line(line)
        return head.run()


def refuse_nobody(
    found: Mapping[Node, NodeState | str], wanted: Mapping[str, str], address: str
) -> None:
    """Raise CollectError where no machine may measure, with the reason of each node."""
    lines = []
    for there, state in found.items():
        refused = refusals(state, wanted)
        if not refused:
            return
        lines += [f"{there} {line}" for line in refused]
    lines = lines or [f"no node of the cluster offers {OFFER}"]
    remedy = "see sparkpub doctor --on"
    where = f"cluster {address}"
    raise CollectError(lines[0], where=where, remedy=remedy, others=lines[1:])


@dataclass
class Head:
    """Sets each machine to work once, and again where it is lost."""

    document: Mapping[str, Any]
    """The matrix."""
    cluster: Cluster
    ledger: Any
    wanted: Mapping[str, str]
    """What has to be alike."""
    progress: Progress
    interruption: Interruption
    works: dict[Any, tuple[Node, str, float]] = field(default_factory=dict)
    """What is on: which node, the id of its machine, and since when on the monotonic clock."""
    asked: dict[Any, Node] = field(default_factory=dict)
    """Questions to nodes that are new."""
    known: set[Node] = field(default_factory=set)
    losses: Counter[Node] = field(default_factory=Counter)
    wish: str = ""

    def ask(self, what: str, *given: Any) -> Any:
        """Ask the books. Raises HeadLostError where they are gone."""
        try:
            ref = getattr(self.ledger, what).remote(*given)
            return self.cluster.answer(ref, ANSWER_SECONDS)
        except LostError as error:
            raise HeadLostError(str(error)) from None

    def enlist(self, found: Mapping[Node, NodeState | str]) -> list[str]:
        """Set those to work that may measure, and say why others may not. Returns the ids of the machines."""
        machines = []
        for there, state in found.items():
            self.known.add(there)
            lines = refusals(state, self.wanted)
            for line in lines:
                self.progress.line(f"{there} {line}")
            if not lines and isinstance(state, NodeState) and state.machine:
                given = self.document, state.machine, self.ledger
                work = self.cluster.measure(there, _measure, *given)
                self.works[work] = there, state.machine, time.monotonic()
                machines.append(state.machine)
        return machines

    def run(self) -> Outcome:
        """Until nothing is left to do, or nobody is left to do it. Raises HeadLostError."""
        seen = looked = time.monotonic()
        while True:
            left = self._say()
            self._pass_on()
            now = time.monotonic()
            if now - looked > LOOK_SECONDS:
                self._look()
                looked = now
            if self.works or self.asked:
                seen = now
            elif self.interruption.finish or not left or now - seen > ABSENT_SECONDS:
                break
            for ref in self.cluster.done([*self.works, *self.asked], 1.0):
                self._hear(ref)
            if not self.works:
                time.sleep(0.2)
        stopped = None
        if self.interruption.finish:
            stopped = f"stopped by {self.interruption.reason}"
        outcome: Outcome = self.ask("outcome", stopped)
        self._say()
        self.progress.line(outcome.summary)
        return outcome

    def _say(self) -> bool:
        """Print what there is to say; returns whether runs are left that a machine could measure."""
        lines, left, joined, late = self.ask("said")
        for line in lines:
            self.progress.line(line)
        begun = time.monotonic() - BEGIN_SECONDS
        for ref, (there, machine, since) in list(self.works.items()):
            if machine in late:
                self.losses[there] = MOST_LOSSES
                self.cluster.cancel(ref)  # it is heard of as lost
            elif not left and machine not in joined and since < begun:
                self.cluster.cancel(ref)
                del self.works[ref]
                self.progress.line(f"{there} is taken by other work of the cluster")
        return bool(left)

    def _look(self) -> None:
        """Ask nodes that are new what they are."""
        for there in self.cluster.nodes():
            if there not in self.known and not self.interruption.finish:
                self.known.add(there)
                question = nodes.standing, self.document
                self.asked[self.cluster.ask(there, *question)] = there

    def _hear(self, ref: Any) -> None:
        """A node has said what it is, or its machine has ended its work, cannot go on, or is gone."""
        there = self.asked.pop(ref, None)
        if there is not None:
            self.enlist({there: answered(self.cluster, ref)})
            return
        there, machine, _ = self.works.pop(ref)
        try:
            why = "; ".join(self.cluster.answer(ref))
        except LostError as error:
            why = str(error)
        self.ask("leave", machine, why)
        self.losses[there] += bool(why)
        if why and self.losses[there] < MOST_LOSSES:
            self.known.discard(there)  # it gets another chance, where it is there

    def _pass_on(self) -> None:
        """Tell the machines what the operator wishes."""
        how = "stop" if self.interruption.stop else "finish"
        wish = f"{how} {self.interruption.reason}"
        if self.interruption.finish and self.wish != wish:
            self.wish = wish
            self.ask("wishes", wish)


def _measure(document: Mapping[str, Any], machine: str, ledger: Any) -> tuple[str, ...]:
    """On a node: see `sparkpub.collect.fleet.node.measure`."""
    ray = importlib.import_module("ray")

    def ask(what: str, *given: Any) -> Any:
        return ray.get(getattr(ledger, what).remote(*given))

    return nodes.measure(document, machine, ask)

"""The command that has a fleet measure: it sets machines to work, and hears what became of them. The books are an actor
beside it, which each machine asks for its next run, and which alone writes and commits."""

import importlib
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
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
from sparkpub.collect.fleet.node import NodeState, most_frequent, refusals, unknown
from sparkpub.collect.gates import Say
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.obstacles import unprepared
from sparkpub.collect.progress import Progress
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError

SURVEY_SECONDS = 60.0
"""How long machines may take to say what they are, before they are left out."""
LOOK_SECONDS = 10.0
"""Between looks for new nodes, and before a machine that failed gets another chance."""
ABSENT_SECONDS = 600.0
"""How long the head waits for a machine to come back, where nothing else is left to do."""
ANSWER_SECONDS = 300.0
"""How long the books may take: a commit with its hooks, and a push."""
MOST_LOSSES = 3
"""How often a node may fail before it gets no more work."""


SILENT = unknown("no answer")


def survey(
    cluster: Cluster, there: Iterable[Node], document: Mapping[str, Any] | None
) -> dict[Node, NodeState]:
    """What each of these nodes is, or that it does not say it. Raises HeadLostError."""
    asked = {cluster.ask(node, nodes.standing, document): node for node in there}
    found: dict[Node, NodeState] = {}
    end = time.monotonic() + SURVEY_SECONDS
    while done := cluster.done([*asked], max(0.0, end - time.monotonic())):
        for ref in done:
            found[asked.pop(ref)] = stated(cluster, ref)
    return found | dict.fromkeys(asked.values(), SILENT)


def stated(cluster: Cluster, ref: Any) -> NodeState:
    """What a node answered that was asked what it is."""
    try:
        state: NodeState = cluster.answer(ref)
    except LostError as error:
        return unknown(str(error))
    return state


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
        found = survey(cluster, cluster.nodes(), document)
        wanted = most_frequent(found.values())
        here = replace(choice, data=choice.data.resolve())
        refuse_nobody(found, wanted, address)
        given = document, here, for_git()
        ledger = cluster.actor(Ledger, matrix.campaign, *given)
        progress = Progress(matrix.campaign, say)
        stack.callback(progress.close)
        head = Head(document, cluster, ledger, wanted, progress, interruption)
        problems = head.ask("begin", os.geteuid())
        if problems:
            raise CollectError(problems[0], others=problems[1:])
        head.enlist(found)
        return head.run()


def refuse_nobody(
    found: Mapping[Node, NodeState], wanted: Mapping[str, str], address: str
) -> None:
    """Raise CollectError where no machine may measure, with the reasons of each node."""
    refused = {there: refusals(state, wanted) for there, state in found.items()}
    if all(refused.values()):
        raise CollectError(
            f"no node of the cluster may measure, of those that offer {OFFER}",
            where=f"cluster {address}",
            remedy="see sparkpub doctor --on",
            others=[
                f"{there} {line}" for there, why in refused.items() for line in why
            ],
        )


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
    works: dict[Any, tuple[Node, str]] = field(default_factory=dict)
    """What is on: which node, and the id of its machine."""
    known: set[Node] = field(default_factory=set)
    """Nodes that need not be asked what they are."""
    asked: dict[Any, tuple[Node, float]] = field(default_factory=dict)
    """New nodes that are asked it, and until when."""
    told: set[str] = field(default_factory=set)
    """Refusals that were said."""
    losses: Counter[Node] = field(default_factory=Counter)
    wish: str = ""

    def ask(self, what: str, *given: Any) -> Any:
        """Ask the books. Raises HeadLostError where they are gone."""
        try:
            ref = getattr(self.ledger, what).remote(*given)
            return self.cluster.answer(ref, ANSWER_SECONDS)
        except LostError as error:
            raise HeadLostError(str(error)) from None

    def enlist(self, found: Mapping[Node, NodeState]) -> None:
        """Set those to work that may measure, and say why others may not."""
        for there, state in found.items():
            self.known.add(there)
            lines = refusals(state, self.wanted)
            twin = self._at_work(state.machine)
            if twin is not None:
                self.known.discard(there)  # it is asked again: the other may be gone
                what = "two runs at once would measure each other"
                lines = [f"is the same machine as {twin}: {what}"]
            elif not lines and state.machine is not None:
                given = self.document, state.machine, self.ledger
                work = self.cluster.measure(there, _measure, *given)
                self.works[work] = there, state.machine
            for line in (f"{there} {line}" for line in lines):
                if line not in self.told:
                    self.told.add(line)
                    self.progress.line(line)

    def _at_work(self, machine: str | None) -> Node | None:
        """The node of a machine that was set to work."""
        nodes = [there for there, known in self.works.values() if known == machine]
        return nodes[0] if nodes else None

    def run(self) -> Outcome:
        """Until nothing is left to do, or nobody is left to do it. Raises HeadLostError."""
        seen = looked = time.monotonic()
        while True:
            left, at_work = self._say()
            self._pass_on()
            # A machine that was set to work may bring runs, and other work of the cluster may keep it from joining.
            finish = self.interruption.finish
            if not at_work and (finish or not (left or self.works)):
                break
            now = time.monotonic()
            if now - looked > LOOK_SECONDS:
                self._look()
                looked = now
            if at_work or (left and self.works):
                seen = now
            elif now - seen > ABSENT_SECONDS:
                break
            for ref in self.cluster.done([*self.works, *self.asked], 1.0):
                if ref in self.works:
                    self._hear(ref)
                else:
                    self.enlist({self.asked.pop(ref)[0]: stated(self.cluster, ref)})
        stopped = None
        if self.interruption.finish:
            stopped = f"stopped by {self.interruption.reason}"
        outcome: Outcome = self.ask("outcome", stopped)
        self._say()
        self.progress.line(outcome.summary)
        return outcome

    def _say(self) -> tuple[bool, bool]:
        """Print what there is to say; returns whether runs are left to do, and whether a machine is at work."""
        lines, left, at_work = self.ask("said")
        for line in lines:
            self.progress.line(line)
        return left, at_work

    def _look(self) -> None:
        """Ask nodes what they are that are new, and those that get another chance: once, and for so long."""
        if self.interruption.finish:
            return
        now = time.monotonic()
        for there in set(self.cluster.nodes()) - self.known:
            self.known.add(there)
            ref = self.cluster.ask(there, nodes.standing, self.document)
            self.asked[ref] = there, now + SURVEY_SECONDS
        for ref, (there, end) in list(self.asked.items()):
            if now > end:
                del self.asked[ref]
                self.enlist({there: SILENT})

    def _hear(self, ref: Any) -> None:
        """A machine has ended its work, cannot go on, or is gone."""
        there, machine = self.works.pop(ref)
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

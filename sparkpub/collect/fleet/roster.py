"""Which machines may measure: those that are alike in everything but themselves."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkpub.collect.fleet import node as nodes
from sparkpub.collect.fleet.cluster import RESOURCE, Cluster, LostError, Node
from sparkpub.collect.fleet.node import NodeState, own_sparkpub
from sparkpub.plan.matrix import Matrix
from sparkpub.record.errors import CollectError

OFFER = f"--resources='{{\"{RESOURCE}\": 1}}'"
"""What a node has to offer, as it is written for `ray start`."""
SURVEY_SECONDS = 60.0
"""How long machines may take to say what they are, before those that have said it begin."""


@dataclass
class Roster:
    """The nodes that offer to measure: those that may, and why others may not."""

    cluster: Cluster
    document: Mapping[str, Any] | None
    """The matrix; None where only the machines themselves are looked at."""
    machines: dict[str, Node] = field(default_factory=dict)
    """Id of a machine that may measure to its node."""
    refused: dict[Node, list[str]] = field(default_factory=dict)
    excluded: set[Node] = field(default_factory=set)
    """Nodes that were of no use."""
    _wanted: Mapping[str, str] = field(default_factory=dict)
    _asked: dict[Node, Any] = field(default_factory=dict)
    _found: dict[Node, NodeState | str] = field(default_factory=dict)
    """What a node is, or why it does not say that."""

    def look(self, timeout: float = 0.0) -> None:
        """Ask nodes that are new what they are, and decide anew who may measure. Raises HeadLostError."""
        present = self.cluster.nodes()
        self._asked = {one: ref for one, ref in self._asked.items() if one in present}
        self._found = {one: it for one, it in self._found.items() if one in present}
        for there in present:
            known = isinstance(self._found.get(there), NodeState)
            if not known and there not in self._asked:
                question = nodes.standing, self.document
                self._asked[there] = self.cluster.ask(there, *question)
        end = time.monotonic() + timeout
        while done := self.cluster.done(
            list(self._asked.values()), max(0.0, end - time.monotonic())
        ):
            for there in [one for one, ref in self._asked.items() if ref in done]:
                try:
                    self._found[there] = self.cluster.answer(self._asked.pop(there))
                except LostError as error:
                    self._found[there] = f"does not say what it is: {error}"
        self._decide()

    def _decide(self) -> None:
        if not self._wanted:
            states = [it for it in self._found.values() if isinstance(it, NodeState)]
            self._wanted = most_frequent(state.facts for state in states)
            self._wanted |= {"sparkpub": own_sparkpub()}
        self.machines, self.refused = {}, {}
        for there, found in self._found.items():
            if isinstance(found, str):
                self.refused[there] = [found]
                continue
            lines = refusals(found, self._wanted)
            twin = self.machines.get(found.machine or "")
            if twin is not None:
                lines.append(
                    f"is the same machine as node {twin.address} ({twin.id[:8]}): "
                    "two runs at once would measure each other"
                )
            if there in self.excluded:
                lines.append("gets no more work")
            if lines or found.machine is None:
                self.refused[there] = lines
            else:
                self.machines[found.machine] = there

    def lines(self) -> list[str]:
        """Each refusal in a line."""
        return [
            f"node {there.address} ({there.id[:8]}) {line}"
            for there, lines in self.refused.items()
            for line in lines
        ]

    def refuse_nobody(self, address: str) -> None:
        """Raise CollectError where no machine may measure, with the reason of each node."""
        if self.machines:
            return
        lines = self.lines() or [f"no node of the cluster offers {OFFER}"]
        remedy = "see sparkpub doctor --on"
        where = f"cluster {address}"
        raise CollectError(lines[0], where=where, remedy=remedy, others=lines[1:])


def most_frequent(machines: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Each key with the value that most machines have for it; of what is equally frequent, the first."""
    counts: dict[str, Counter[str]] = {}
    for machine in machines:
        for key, value in machine.items():
            counts.setdefault(key, Counter())[value] += 1
    return {key: values.most_common(1)[0][0] for key, values in counts.items()}


def refusals(found: NodeState, wanted: Mapping[str, str]) -> list[str]:
    """Why a machine may not measure, one line each: what differs, and what to do."""
    differing = [
        f"has {what} {value}, and the others have {wanted[what]}; install or copy the same there, "
        "and start its node again"
        for what, value in found.facts.items()
        if value != wanted.get(what, value)
    ]
    return [*differing, *found.obstacles]


def apart(matrix: Matrix, machines: Sequence[str]) -> list[str]:
    """What a reader of the results would have to know of the way in which machines share the work, in lines."""
    ranks = len(matrix.models) > 1 and len(matrix.environments) == 1
    if matrix.machines == "replicate" or not ranks or len(machines) < 2:
        return []
    return [
        "models are measured on different machines: a ranking of them includes the difference between machines; "
        "machines: replicate measures each model on every machine"
    ]

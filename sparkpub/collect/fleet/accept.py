"""Which machines may measure: those that are alike in everything but themselves."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sparkpub
from sparkpub.collect.fleet import node
from sparkpub.collect.fleet.cluster import RESOURCE, Cluster, LostError, Node
from sparkpub.collect.fleet.node import NodeState, source_digest
from sparkpub.collect.machine.inventory import NAME_VARIABLE
from sparkpub.plan.matrix import Matrix
from sparkpub.record.errors import CollectError

OFFER = f"--resources='{{\"{RESOURCE}\": 1}}'"
"""What a node has to offer, as it is written for `ray start`."""
MOST_LOSSES = 3
"""How often a node may lose its process or its run before it gets no more work."""


@dataclass(frozen=True)
class RequiredState:
    """What every machine of a collection has to have: sparkpub as it is here, and driver, models and images as most
    have."""

    version: str
    source: str
    driver: str | None
    models: Mapping[str, str]
    images: Mapping[str, str]


def common(standings: Sequence[NodeState]) -> RequiredState:
    """What these machines are held to. Of what is equally frequent, the first counts."""
    drivers = Counter(standing.driver for standing in standings)
    return RequiredState(
        sparkpub.__version__,
        source_digest(),
        drivers.most_common(1)[0][0] if drivers else None,
        most_frequent(standing.models for standing in standings),
        most_frequent(standing.images for standing in standings),
    )


def most_frequent(machines: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Each key with the value that most machines have for it."""
    counts: dict[str, Counter[str]] = {}
    for machine in machines:
        for key, value in machine.items():
            counts.setdefault(key, Counter())[value] += 1
    return {key: values.most_common(1)[0][0] for key, values in counts.items()}


def refusals(standing: NodeState, wanted: RequiredState) -> Iterator[str]:
    """Why a machine may not measure, one line each: what differs, and what to do."""
    if (standing.version, standing.source) != (wanted.version, wanted.source):
        yield (
            f"has sparkpub {standing.version} (source {standing.source}) and not {wanted.version} "
            f"(source {wanted.source}) as here; install the same there and start its node again"
        )
    if standing.machine is None:
        yield (
            "has nothing that names it: no /etc/machine-id and no GPU; "
            f"set {NAME_VARIABLE} to a name of its own before ray start"
        )
    if standing.driver != wanted.driver:
        there, most = standing.driver or "none", wanted.driver or "none"
        yield f"has GPU driver {there}, most machines {most}; install the same driver"
    for key, digest in standing.models.items():
        if digest != wanted.models.get(key, digest):
            yield f"has other files of model {key} than most machines; copy the model there again"
    for name, image in standing.images.items():
        most = wanted.images.get(name, image)
        if image != most:
            yield (
                f"has another image for environment {name} ({_short(image)}) than most machines ({_short(most)}); "
                "pull it by its digest there, or docker save and docker load it"
            )
    if standing.niceness > 0:
        yield (
            f"runs its work {standing.niceness} steps nicer than its node, so that whatever else there is comes first; "
            "start its node with RAY_worker_niceness=0"
        )
    yield from standing.obstacles


def _short(image: str) -> str:
    """`sha256:0123456789ab`."""
    return image[: len("sha256:") + 12]


@dataclass
class Accepted:
    """Nodes that were asked what they are: those that may measure, and why others may not."""

    wanted: RequiredState
    machines: dict[str, Node] = field(default_factory=dict)
    """Id of a machine to the node that it is now."""
    seen: set[str] = field(default_factory=set)
    """Machines that may measure and were here, whether or not they still are."""
    refused: dict[Node, list[str]] = field(default_factory=dict)
    doubles: dict[Node, str] = field(default_factory=dict)
    """Refused nodes of machines that measure through another node already."""
    silent: Counter[Node] = field(default_factory=Counter)
    """How often a node did not say what it is."""

    def decided(self) -> set[Node]:
        """Nodes that need not be asked again."""
        waiting = {there for there, times in self.silent.items() if times < MOST_LOSSES}
        return {*self.machines.values(), *self.refused} - waiting

    def gone(self, machine: str) -> None:
        """The node of a machine is no more: another node of it may measure now."""
        del self.machines[machine]
        twins = [one for one, twin in self.doubles.items() if twin == machine]
        for there in twins:
            del self.doubles[there]
            del self.refused[there]

    def lines(self) -> list[str]:
        """Each refusal in a line."""
        return [
            f"node {there.address} ({there.id[:8]}) {line}"
            for there, lines in self.refused.items()
            for line in lines
        ]


def survey(cluster: Cluster, matrix: Matrix | None, timeout: float) -> Accepted:
    """Ask every node what it is, and decide who may measure."""
    offering = cluster.nodes()
    standings = asked(cluster, offering, matrix, timeout)
    known = {there: found for there, found in standings if isinstance(found, NodeState)}
    accepted = Accepted(common(list(known.values())))
    for there, found in standings:
        admit(accepted, there, found)
    return accepted


def admit(accepted: Accepted, there: Node, found: NodeState | str) -> str | None:
    """Let a node measure, or note why it may not. Returns the id of its machine where it may."""
    if isinstance(found, str):
        accepted.refused[there] = [found]
        accepted.silent[there] += 1
        return None
    accepted.silent.pop(there, None)
    accepted.refused.pop(there, None)
    lines = list(refusals(found, accepted.wanted))
    if found.machine in accepted.machines:
        other = accepted.machines[found.machine]
        lines.append(
            f"is the same machine as node {other.address} ({other.id[:8]}): two runs at once would measure each other"
        )
        accepted.doubles[there] = str(found.machine)
    if lines or found.machine is None:
        accepted.refused[there] = lines
        return None
    accepted.machines[found.machine] = there
    accepted.seen.add(found.machine)
    return found.machine


def asked(
    cluster: Cluster, offering: Sequence[Node], matrix: Matrix | None, timeout: float
) -> list[tuple[Node, NodeState | str]]:
    """Each node with what it is, or with why it does not say."""
    document = None if matrix is None else matrix.document()
    calls = {there: cluster.ask(there, node.standing, document) for there in offering}
    end = time.monotonic() + timeout
    found: list[tuple[Node, NodeState | str]] = []
    for there, call in calls.items():
        try:
            left = max(1.0, end - time.monotonic())
            found.append((there, cluster.answer(call, left)))
        except LostError as error:
            found.append((there, f"does not say what it is: {error}"))
    return found


def apart(matrix: Matrix, accepted: Accepted) -> list[str]:
    """What a reader of the results would have to know of the way in which machines share the work, in lines."""
    ranks = len(matrix.models) > 1 and len(matrix.environments) == 1
    if matrix.machines == "replicate" or not ranks or len(accepted.machines) < 2:
        return []
    return [
        "models are measured on different machines: a ranking of them includes the difference between machines; "
        "machines: replicate measures each model on every machine"
    ]


def refuse_nobody(accepted: Accepted, address: str) -> None:
    """Raise CollectError where no machine may measure, with the reason of each node."""
    if accepted.machines:
        return
    lines = accepted.lines() or [f"no node of the cluster offers {OFFER}"]
    raise CollectError(
        lines[0],
        where=f"cluster {address}",
        remedy="see sparkpub doctor --on",
        others=lines[1:],
    )

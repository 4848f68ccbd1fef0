"""What each machine of a cluster can measure, before a long run: `sparkpub doctor --on`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sparkpub.collect.doctor import Diagnosis
from sparkpub.collect.fleet import node
from sparkpub.collect.fleet.accept import (
    OFFER,
    Accepted,
    apart,
    survey,
)
from sparkpub.collect.fleet.cluster import Cluster, LostError, Node, connected
from sparkpub.plan.matrix import Matrix


@dataclass(frozen=True)
class ExaminedNode:
    """One node: the machine that it is, and what was looked at there."""

    node: Node
    machine: str | None
    checks: tuple[Diagnosis, ...]


@dataclass(frozen=True)
class Examination:
    """The nodes of a cluster, and what is to be said of all of them together."""

    nodes: tuple[ExaminedNode, ...]
    together: tuple[Diagnosis, ...] = ()


def examine(matrix: Matrix | None, address: str, timeout: float = 60.0) -> Examination:
    """Every node that offers to measure. Raises CollectError where the cluster cannot be reached."""
    with connected(address) as cluster:
        accepted = survey(cluster, matrix, timeout)
        machines = {there: machine for machine, there in accepted.machines.items()}
        document = None if matrix is None else matrix.document()
        together: tuple[Diagnosis, ...] = ()
        if matrix is not None:
            lines = apart(matrix, accepted)
            together = tuple(Diagnosis("matrix", "warning", line) for line in lines)
        found = []
        for there in cluster.nodes():
            checks = (
                *_standing(accepted, there),
                *_checks(cluster, there, document),
            )
            found.append(ExaminedNode(there, machines.get(there), checks))
        return Examination(tuple(found), together)


def _standing(accepted: Accepted, there: Node) -> Iterator[Diagnosis]:
    """Whether a node gets runs, and why not."""
    lines = accepted.refused.get(there, [])
    if not lines:
        yield Diagnosis("fleet", "ok", "gets runs")
    for line in lines:
        yield Diagnosis("fleet", "missing", line)


def _checks(cluster: Cluster, there: Node, document: Any) -> Sequence[Diagnosis]:
    try:
        return cluster.answer(cluster.ask(there, node.examined, document))
    except LostError:
        return []  # its standing has the reason


def document(found: Examination) -> dict[str, Any]:
    """`{"nodes": [{node, address, machine, checks: [{name, state, detail, remedy}]}], "checks": [...]}`."""
    nodes = []
    for item in found.nodes:
        nodes.append(
            {
                "node": item.node.id,
                "address": item.node.address,
                "machine": item.machine,
                "checks": [asdict(check) for check in item.checks],
            }
        )
    return {"nodes": nodes, "checks": [asdict(check) for check in found.together]}


def lines(found: Examination) -> list[str]:
    """The same for people."""
    if not found.nodes:
        return [f"missing no node of the cluster offers {OFFER}"]
    said = []
    for item in found.nodes:
        machine = f", machine {item.machine}" if item.machine else ""
        said.append(f"node {item.node.address} ({item.node.id[:8]}){machine}")
        said += [check.line for check in item.checks]
    if found.together:
        said += ["all machines", *(check.line for check in found.together)]
    return said


def fails(found: Examination) -> bool:
    """Whether a node cannot measure, or there is none."""
    checks = [check for item in found.nodes for check in item.checks]
    return not found.nodes or any(check.state == "missing" for check in checks)

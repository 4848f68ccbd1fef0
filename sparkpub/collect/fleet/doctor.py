"""What each machine of a cluster can measure, before a long run: `sparkpub doctor --on`."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from sparkpub.collect.doctor import Diagnosis
from sparkpub.collect.fleet import node
from sparkpub.collect.fleet.cluster import LostError, Node, connected
from sparkpub.collect.fleet.roster import OFFER, SURVEY_SECONDS, Roster, apart
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


def examine(matrix: Matrix | None, address: str) -> Examination:
    """Every node that offers to measure. Raises CollectError where the cluster cannot be reached."""
    with connected(address) as cluster:
        matrix_document = None if matrix is None else matrix.document()
        roster = Roster(cluster, matrix_document)
        roster.look(SURVEY_SECONDS)
        together: tuple[Diagnosis, ...] = ()
        if matrix is not None:
            lines = apart(matrix, [*roster.machines])
            together = tuple(Diagnosis("matrix", "warning", line) for line in lines)
        machines = {there: machine for machine, there in roster.machines.items()}
        found = []
        for there in cluster.nodes():
            checks = [Diagnosis("fleet", "ok", "gets runs")]
            if there not in machines:
                lines = roster.refused.get(there, ["does not say what it is"])
                checks = [Diagnosis("fleet", "missing", line) for line in lines]
            with suppress(LostError):  # the reason is among the refusals
                question = cluster.ask(there, node.examined, matrix_document)
                checks += cluster.answer(question)
            found.append(ExaminedNode(there, machines.get(there), tuple(checks)))
        return Examination(tuple(found), together)


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

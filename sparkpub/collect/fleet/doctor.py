"""What each machine of a cluster can measure, before a long run: `sparkpub doctor --on`."""

from dataclasses import asdict
from typing import Any

from sparkpub.collect.doctor import Diagnosis
from sparkpub.collect.fleet.cluster import OFFER, Node, connected
from sparkpub.collect.fleet.node import most_frequent
from sparkpub.collect.fleet.session import survey
from sparkpub.plan.matrix import Matrix


def examine(matrix: Matrix | None, address: str) -> dict[str, Any]:
    """Every node that offers to measure: `{"nodes": [{node, address, machine, checks: [{name, state, detail,
    remedy}]}]}`. Raises CollectError where the cluster cannot be reached."""
    with connected(address) as cluster:
        states = survey(cluster, None if matrix is None else matrix.document())
    wanted = most_frequent(states.values())
    machines: dict[str | None, Node] = {}
    nodes = []
    for there, state in states.items():
        checks = state.compared(wanted)
        twin = machines.setdefault(state.machine, there)
        if state.machine is not None and twin != there:
            detail = f"is the same machine as {twin}"
            checks.append(Diagnosis("fleet", "missing", detail))
        about = {"node": there.id, "address": there.address, "machine": state.machine}
        nodes.append(about | {"checks": [asdict(check) for check in checks]})
    return {"nodes": nodes}


def lines(found: dict[str, Any]) -> list[str]:
    """The same for people."""
    if not found["nodes"]:
        return [f"missing no node of the cluster offers {OFFER}"]
    said = []
    for item in found["nodes"]:
        line = f"node {item['address']} ({item['node'][:8]})"
        if item["machine"]:
            line += f", machine {item['machine']}"
        said.append(line)
        said += [Diagnosis(**check).line for check in item["checks"]]
    return said


def fails(found: dict[str, Any]) -> bool:
    """Whether a node cannot measure, or there is none."""
    checks = [check for item in found["nodes"] for check in item["checks"]]
    return not checks or any(check["state"] == "missing" for check in checks)

"""What each machine of a cluster can measure, before a long run: `sparkpub doctor --on`."""

from contextlib import suppress
from dataclasses import asdict
from typing import Any

from sparkpub.collect.doctor import Diagnosis
from sparkpub.collect.fleet import node
from sparkpub.collect.fleet.cluster import OFFER, LostError, connected
from sparkpub.collect.fleet.roster import apart, most_frequent, refusals, survey
from sparkpub.plan.matrix import Matrix


def examine(matrix: Matrix | None, address: str) -> dict[str, Any]:
    """Every node that offers to measure: `{"nodes": [{node, address, machine, checks: [{name, state, detail,
    remedy}]}], "checks": [...]}`. Raises CollectError where the cluster cannot be reached."""
    with connected(address) as cluster:
        asked = None if matrix is None else matrix.document()
        states = survey(cluster, asked)
        wanted = most_frequent(states.values())
        machines: dict[str, str] = {}
        nodes = []
        for there, state in states.items():
            lines = refusals(state, wanted)
            machine = None if isinstance(state, str) else state.machine
            twin = machines.setdefault(machine, str(there)) if machine else str(there)
            if twin != str(there):
                lines.append(f"is the same machine as {twin}")
            checks = [Diagnosis("fleet", "missing", line) for line in lines]
            checks = checks or [Diagnosis("fleet", "ok", "gets runs")]
            with suppress(LostError):  # the reason is among the refusals
                checks += cluster.answer(cluster.ask(there, node.examined, asked))
            place = {"node": there.id, "address": there.address, "machine": machine}
            nodes.append(place | {"checks": [asdict(check) for check in checks]})
        told = [] if matrix is None else apart(matrix, [*machines])
        together = [asdict(Diagnosis("matrix", "warning", line)) for line in told]
        return {"nodes": nodes, "checks": together}


def lines(found: dict[str, Any]) -> list[str]:
    """The same for people."""
    if not found["nodes"]:
        return [f"missing no node of the cluster offers {OFFER}"]
    said = []
    for item in found["nodes"]:
        machine = f", machine {item['machine']}" if item["machine"] else ""
        said.append(f"node {item['address']} ({item['node'][:8]}){machine}")
        said += [Diagnosis(**check).line for check in item["checks"]]
    together = [Diagnosis(**check).line for check in found["checks"]]
    return [*said, "all machines", *together] if together else said


def fails(found: dict[str, Any]) -> bool:
    """Whether a node cannot measure, or there is none."""
    checks = [check for item in found["nodes"] for check in item["checks"]]
    return not checks or any(check["state"] == "missing" for check in checks)

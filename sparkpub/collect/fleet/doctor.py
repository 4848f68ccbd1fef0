"""What each machine of a cluster can measure, before a long run: `sparkpub doctor --on`."""

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sparkpub.collect.doctor import Diagnosis
from sparkpub.collect.fleet import cluster as clusters
from sparkpub.collect.fleet.cluster import OFFER, Cluster, LostError, Node, connected
from sparkpub.collect.fleet.node import NodeState, differences, missing, standing
from sparkpub.plan.matrix import Matrix

SURVEY_SECONDS = 60.0
"""How long machines may take to say what they are."""


def survey(
    cluster: Cluster, document: Mapping[str, Any] | None
) -> dict[Node, NodeState]:
    """What each node is, or that it does not say it."""
    nodes = clusters.nodes()
    asked = {cluster.ask(node, standing, document): node for node in nodes}
    found = dict.fromkeys(nodes, _unknown("no answer"))
    end = time.monotonic() + SURVEY_SECONDS
    while asked and (left := end - time.monotonic()) > 0:
        for ref in cluster.done([*asked], left):
            node = asked.pop(ref)
            try:
                found[node] = clusters.answer(ref)
            except LostError as error:
                found[node] = _unknown(str(error))
    return found


def _unknown(why: str) -> NodeState:
    return NodeState(None, checks=(missing(f"does not say what it is: {why}"),))


def examine(matrix: Matrix | None, address: str) -> dict[str, Any]:
    """Every node that offers to measure: `{"nodes": [{node, address, machine, checks: [{name, state, detail,
    remedy}]}]}`. Raises CollectError where the cluster cannot be reached."""
    with connected(address) as cluster:
        states = survey(cluster, None if matrix is None else matrix.document())
    alike: dict[str, str] = {}
    machines: dict[str | None, Node] = {}
    nodes = []
    for there, state in states.items():
        checks = [*differences(state.facts, alike), *state.checks]
        if not any(check.state == "missing" for check in checks):
            alike = {**state.facts, **alike}
        twin = machines.setdefault(state.machine, there)
        if state.machine is not None and twin != there:
            checks.append(missing(f"is the same machine as {twin}"))
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

"""Which machines may measure: those that are alike in everything but themselves."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparkpub.collect.fleet import node as nodes
from sparkpub.collect.fleet.cluster import Cluster, LostError, Node
from sparkpub.collect.fleet.node import NodeState, own_sparkpub
from sparkpub.plan.matrix import Matrix

SURVEY_SECONDS = 60.0
"""How long machines may take to say what they are, before those that have said it begin."""


def survey(
    cluster: Cluster, document: Mapping[str, Any] | None
) -> dict[Node, NodeState | str]:
    """What each node is that offers to measure, or why it does not say that. Raises HeadLostError."""
    asked = {cluster.ask(it, nodes.standing, document): it for it in cluster.nodes()}
    found: dict[Node, NodeState | str] = {}
    end = time.monotonic() + SURVEY_SECONDS
    while done := cluster.done([*asked], max(0.0, end - time.monotonic())):
        for ref in done:
            found[asked.pop(ref)] = answered(cluster, ref)
    return found | dict.fromkeys(asked.values(), "does not say what it is")


def answered(cluster: Cluster, ref: Any) -> NodeState | str:
    """What a node says that it is, or why it does not say that."""
    try:
        state: NodeState = cluster.answer(ref)
    except LostError as error:
        return f"does not say what it is: {error}"
    return state


def most_frequent(found: Iterable[NodeState | str]) -> dict[str, str]:
    """What has to be alike, as most machines have it, and this sparkpub; of what is equally frequent, the first."""
    counts: dict[str, Counter[str]] = {}
    for state in found:
        for key, value in {} if isinstance(state, str) else state.facts.items():
            counts.setdefault(key, Counter())[value] += 1
    known = {key: values.most_common(1)[0][0] for key, values in counts.items()}
    return known | {"sparkpub": own_sparkpub()}


def refusals(found: NodeState | str, wanted: Mapping[str, str]) -> list[str]:
    """Why a machine may not measure, one line each: what differs, and what to do."""
    if isinstance(found, str):
        return [found]
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

"""Who may measure: machines that are alike in everything but themselves."""

from typing import Any

import pytest

from sparkpub.collect.fleet.cluster import LostError, Node
from sparkpub.collect.fleet.node import NodeState, own_sparkpub
from sparkpub.collect.fleet.roster import Roster, apart
from sparkpub.record.errors import CollectError
from tests.collect.collecting import a_matrix

FACTS = {"sparkpub": own_sparkpub(), "GPU driver": "580.1", "model a with files": "1"}


class PlayedCluster:
    """Nodes by name, and what each says that it is, or why it does not."""

    def __init__(self, **states: NodeState | str) -> None:
        self.states = states

    def nodes(self) -> list[Node]:
        return [Node(name, "127.0.0.1", 1, 0) for name in self.states]

    def ask(self, there: Node, *_: object) -> str:
        return there.id

    def done(self, refs: list[str], timeout: float) -> list[str]:
        return refs[:1]

    def answer(self, ref: str) -> NodeState:
        found = self.states[ref]
        if isinstance(found, str):
            raise LostError(found)
        return found


def a_state(machine: str | None, *obstacles: str, **facts: str) -> NodeState:
    named = {name.replace("_", " "): value for name, value in facts.items()}
    return NodeState(machine, FACTS | named, obstacles)


def looked_at(**states: NodeState | str) -> Roster:
    cluster: Any = PlayedCluster(**states)
    roster = Roster(cluster, None)
    roster.look()
    return roster


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (a_state("o", sparkpub="0.0.1 (source f)"), "has sparkpub 0.0.1 (source f)"),
        (a_state("o", GPU_driver="570"), "GPU driver 570, and the others have 580.1"),
        (a_state("o", model_a_with_files="2"), "model a with files 2, and the others"),
        (a_state("o", "no model at /x"), "no model at /x"),
        (a_state(None, "has nothing that names it"), "has nothing that names it"),
        (a_state("m"), "is the same machine as node 127.0.0.1 (m)"),
        ("it was killed", "does not say what it is: it was killed"),
    ],
)
def test_a_machine_that_differs_is_refused_in_one_line(
    odd: NodeState | str, words: str
) -> None:
    roster = looked_at(m=a_state("m"), n=a_state("n"), odd=odd)
    assert roster.machines.keys() == {"m", "n"}
    (line,) = roster.lines()
    assert line.startswith("node 127.0.0.1 (odd) ")
    assert words in line


def test_what_a_machine_lacks_is_no_difference() -> None:
    """A model that is not there has its own line: an obstacle."""
    without = NodeState("n", {"sparkpub": own_sparkpub(), "GPU driver": "580.1"})
    assert looked_at(m=a_state("m"), n=without).lines() == []


def test_a_node_takes_the_place_of_one_of_the_same_machine_that_is_gone() -> None:
    roster = looked_at(old=a_state("m"), new=a_state("m"))
    assert [there.id for there in roster.machines.values()] == ["old"]
    cluster: Any = roster.cluster
    del cluster.states["old"]
    roster.look()
    assert [there.id for there in roster.machines.values()] == ["new"]


def test_where_nobody_may_measure_each_reason_is_said() -> None:
    with pytest.raises(CollectError) as caught:
        looked_at(odd=a_state("o", "no GPU", "no model")).refuse_nobody("h:1")
    assert [line.split(") ")[1][:8] for line in caught.value.lines()[:1]] == [
        "no GPU, "
    ]
    assert len(caught.value.lines()) == 2


@pytest.mark.parametrize(
    ("models", "environments", "there", "machines", "told"),
    [
        (2, 1, 2, "split", 1),
        (2, 1, 2, "replicate", 0),
        (2, 2, 2, "split", 0),
        (1, 1, 2, "split", 0),
        (2, 1, 1, "split", 0),
    ],
)
def test_a_ranking_over_machines_is_told_before_it_is_measured(
    models: int, environments: int, there: int, machines: str, told: int
) -> None:
    matrix = a_matrix(
        models={f"m{number}": {"id": "x/m"} for number in range(models)},
        environments={f"e{number}": {"type": "host"} for number in range(environments)},
        baseline="e0",
        machines=machines,
    )
    lines = apart(matrix, [str(number) for number in range(there)])
    assert len(lines) == told
    assert all("machines: replicate" in line for line in lines)

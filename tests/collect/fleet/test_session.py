"""Who may measure: machines that are alike in everything but themselves. And how long the head waits for whom."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.collect.books import Outcome
from sparkpub.collect.doctor import Diagnosis
from sparkpub.collect.fleet import session
from sparkpub.collect.fleet.cluster import Node
from sparkpub.collect.fleet.node import (
    NodeState,
    most_frequent,
    own_sparkpub,
    refusals,
    unknown,
)
from sparkpub.collect.fleet.session import Head, refuse_nobody
from sparkpub.collect.interruption import Interruption
from sparkpub.record.errors import CollectError

FACTS = {"sparkpub": own_sparkpub(), "GPU driver": "580.1", "model a with files": "1"}


def a_state(machine: str | None, *missing: str, **facts: str) -> NodeState:
    named = {name.replace("_", " "): value for name, value in facts.items()}
    checks = tuple(Diagnosis("workload", "missing", item) for item in missing)
    return NodeState(machine, FACTS | named, checks)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (a_state("o", sparkpub="0.0.1 (source f)"), "has sparkpub 0.0.1 (source f)"),
        (a_state("o", GPU_driver="570"), "GPU driver 570, and the others have 580.1"),
        (a_state("o", "no model at /x"), "no model at /x"),
        (unknown("it was killed"), "does not say what it is: it was killed"),
        # A model that is not there has its own line: an obstacle.
        (NodeState("n", {"GPU driver": "580.1"}), None),
    ],
)
def test_a_machine_that_differs_from_most_is_refused_in_one_line(
    odd: NodeState, words: str | None
) -> None:
    wanted = most_frequent([odd, a_state("m"), a_state("n")])
    assert wanted == FACTS
    lines = refusals(odd, wanted)
    assert [words in line for line in lines if words] == [True] * (words is not None)


def test_a_machine_is_set_to_work_once_and_its_twin_when_it_is_gone() -> None:
    """A second node of a machine, or the one that is started again before the first is known to be dead."""
    said: list[str] = []
    cluster: Any = SimpleNamespace(measure=lambda there, *_: f"work on {there.id}")
    progress: Any = SimpleNamespace(line=said.append)
    head = Head({}, cluster, None, FACTS, progress, Interruption())
    first, twin = (Node(name, "h", 1, 0) for name in ("first", "twin"))
    head.enlist({first: a_state("m"), twin: a_state("m")})
    assert [*head.works] == ["work on first"]
    assert head.known == {first}  # the twin is asked again, and told once
    head.enlist({twin: a_state("m")})
    (line,) = said
    assert line.startswith("node h (twin) is the same machine as node h (first): two")
    head.works.clear()
    head.enlist({twin: a_state("m")})
    assert [*head.works] == ["work on twin"]


def a_head(said: list[str], asked: list[str], **of_cluster: Any) -> Head:
    """With books that have nothing to do left, and note what they are asked."""
    answers = {
        "said": ([], False, False),
        "outcome": Outcome(0, 0, 0, None),
        "work": (),
    }

    class Ledger:
        def __getattr__(self, what: str) -> Any:
            return SimpleNamespace(remote=lambda *_: asked.append(what) or what)

    cluster: Any = SimpleNamespace(
        measure=lambda *_: "work",
        answer=lambda ref, *_: answers.get(ref),
        **of_cluster,
    )
    progress: Any = SimpleNamespace(line=said.append)
    return Head({}, cluster, Ledger(), FACTS, progress, Interruption())


def test_a_machine_that_was_set_to_work_is_waited_for() -> None:
    """It may bring runs from before, or be the first that a replicated campaign is planned for."""
    asked: list[str] = []
    done = iter([[], [], ["work"]])
    head = a_head([], asked, done=lambda *_: next(done))
    head.enlist({Node("n", "h", 1, 0): a_state("m")})
    head.run()
    assert asked[-4:] == ["leave", "said", "outcome", "said"]


def test_a_new_node_that_says_nothing_is_asked_once_and_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "LOOK_SECONDS", -1.0)
    monkeypatch.setattr(session, "SURVEY_SECONDS", -1.0)
    said: list[str] = []
    asked: list[str] = []
    done = iter([*[[]] * 5, ["work"]])
    there = Node("silent", "h", 1, 0)
    head = a_head(
        said,
        [],
        done=lambda *_: next(done),
        nodes=lambda: [there],
        ask=lambda node, *_: asked.append(node.id),
    )
    head.enlist({Node("n", "h", 1, 0): a_state("m")})
    head.run()
    assert asked == ["silent"]
    assert said[:-1] == ["node h (silent) fleet: does not say what it is: no answer"]


def test_where_nobody_may_measure_each_reason_is_said() -> None:
    there = Node("0123456789", "10.0.0.1", 1, 0)
    with pytest.raises(CollectError) as caught:
        refuse_nobody({there: a_state("o", "no GPU", "no model")}, FACTS, "h:1")
    nobody, first, second = caught.value.lines()
    assert nobody.startswith("no node of the cluster may measure, of those that offer")
    assert nobody.endswith("cluster h:1; see sparkpub doctor --on")
    assert first == "node 10.0.0.1 (01234567) workload: no GPU"
    assert "no model" in second
    refuse_nobody({there: a_state("o")}, FACTS, "h:1")
    with pytest.raises(CollectError, match="no node of the cluster"):
        refuse_nobody({}, FACTS, "h:1")

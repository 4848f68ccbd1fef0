"""Who may measure: machines that are alike in everything but themselves. And how long the head waits for whom."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.collect.books import Outcome
from sparkpub.collect.doctor import Diagnosis
from sparkpub.collect.fleet import session
from sparkpub.collect.fleet.cluster import LostError, Node
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


def a_head(ends: list[Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Head, list[str]]:
    """With books that have nothing to do left, one node, and these ends of its work; and what happens."""
    monkeypatch.setattr(session, "LOOK_SECONDS", -1.0)
    there = Node("n", "h", 1, 0)
    books = {"said": ([], False, False), "nodes": [there], "leave": None}
    books["outcome"] = Outcome(0, 0, 0, None)
    seen: list[str] = []

    def answer(ref: str) -> Any:
        if ref != "work":
            return books[ref]
        end = ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    class Ledger:
        def __getattr__(self, what: str) -> Any:
            return SimpleNamespace(remote=lambda *_: what)

    monkeypatch.setattr(session.clusters, "answer", answer)
    cluster: Any = SimpleNamespace(
        measure=lambda node, *_: seen.append(f"work on {node.id}") or "work",
        done=lambda refs, _: list(refs),
    )
    progress: Any = SimpleNamespace(line=seen.append)
    return Head(({}, {}), cluster, Ledger(), progress, Interruption()), seen


@pytest.mark.parametrize(
    ("ends", "seen"),
    [
        # What it has from before may come, although nothing is left to do.
        ([()], ["work on n"]),
        (
            [("no GPU",)] * 3,
            ["work on n", "node h (n) no GPU", "work on n", "work on n"],
        ),
        (
            [LostError("killed"), ()],
            ["work on n", "node h (n) is lost: killed", "work on n"],
        ),
    ],
)
def test_a_node_is_set_to_work_and_heard(
    ends: list[Any], seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    head, happened = a_head(ends, monkeypatch)
    assert head.run().left == 0
    assert happened[:-1] == seen  # the last line is the summary


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

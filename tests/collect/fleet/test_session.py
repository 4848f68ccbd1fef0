"""How the head sets nodes to work, and when it gives one up."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkpub.collect.books import Outcome
from sparkpub.collect.fleet import session
from sparkpub.collect.fleet.cluster import LostError, Node
from sparkpub.collect.fleet.session import Head
from sparkpub.collect.interruption import Interruption
from sparkpub.record.errors import CollectError
from tests.collect.collecting import a_matrix


def a_head(
    ends: list[Any], monkeypatch: pytest.MonkeyPatch, *, left: bool = False
) -> tuple[Head, list[str]]:
    """With one node, these ends of its work, and books that have something left to do or not; and what happens."""
    monkeypatch.setattr(session, "LOOK_SECONDS", -1.0)
    there = Node("n", "h", 1, 0)
    books = {"hear": ([], left, False), "nodes": [there], "leave": None}
    books["outcome"] = Outcome(0, 0, 0, None)
    seen: list[str] = []

    def answer(_: str) -> None:
        end = ends.pop(0)
        if end is not None:
            raise end

    def start(node: Node, *_: object) -> str:
        seen.append(f"work on {node.id}")
        return "work"

    def ask(_: None, what: str, *__: object, timeout: float) -> Any:
        return books[what]

    for function in (answer, start, ask):
        monkeypatch.setattr(session.cluster, function.__name__, function)
    monkeypatch.setattr(session.cluster, "done", lambda refs, _: refs)
    progress: Any = SimpleNamespace(line=seen.append)
    return Head(a_matrix(), None, progress, Interruption()), seen


@pytest.mark.parametrize(
    ("ends", "seen"),
    [
        # What it has from before may come, although nothing is left to do.
        ([None], ["work on n"]),
        ([CollectError("no GPU")], ["work on n", "node h (n) no GPU"]),
        (
            [LostError("killed"), None],
            ["work on n", "node h (n) is lost: killed", "work on n"],
        ),
    ],
)
def test_a_node_is_set_to_work_and_heard(
    ends: list[Any], seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = any(isinstance(end, LostError) for end in ends)
    head, happened = a_head(ends, monkeypatch, left=left)
    assert head.run().left == 0
    assert happened[:-1] == seen  # the last line is the summary


def test_where_no_node_can_measure_nothing_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head, happened = a_head([CollectError("no GPU")], monkeypatch, left=True)
    head.run()
    assert happened.count("work on n") == 1

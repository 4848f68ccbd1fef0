"""What runs on a machine, without a cluster: the loop whose books are elsewhere, and what a machine says of itself."""

import os
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import journal, lock
from sparkpub.collect.fleet import cluster, node
from sparkpub.collect.fleet.cluster import LostError
from sparkpub.collect.job import Job
from sparkpub.collect.station import Station
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Record
from sparkpub.record.redaction import Redactor
from tests.building import a_record
from tests.collect.collecting import a_matrix


@pytest.fixture(autouse=True)
def _surroundings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "as_started", lambda: None)
    monkeypatch.setattr(node, "PACE", 0.1)
    monkeypatch.setattr(node, "PATIENCE", 0.1)
    monkeypatch.setattr(node.os, "getpriority", lambda *_: os.nice(0))


class PlayedHead:
    """Books that give out these runs, and take what is delivered. `wish` is what the operator wishes."""

    def __init__(self, *jobs: Job, wish: str = "") -> None:
        self.jobs: list[Job | None] = list(jobs)
        self.asked: list[str] = []
        self.taken: list[tuple[Record, dict[str, bytes]]] = []
        self.said: list[str] = []
        self.is_cut_off = False
        self.wish = wish

    def ask(self, what: str, *given: Any) -> Any:
        if what == "wish":
            if self.wish == "lost":
                raise LostError
            return bool(self.wish), bool(self.wish), self.wish
        if what == "tell":
            self.said.append(given[1])
            return None
        if what == "over":
            return not self.jobs
        self.asked.append(what)
        if what == "keep":
            self.taken.append((given[1].record, given[2]))
            if self.is_cut_off:
                raise LostError
        return self.jobs.pop(0) if what == "next" and self.jobs else None


def measured(matrix: Matrix, head: PlayedHead) -> list[str]:
    """Why nothing can be measured any more, in lines."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(cluster, "ask", PlayedHead.ask)
        try:
            node.measure(matrix, "n", head)
        except CollectError as error:
            return error.lines()
    return []


def test_a_run_stays_on_the_machine_until_the_head_has_it(own_state: Path) -> None:
    matrix = a_matrix()
    folder = own_state / "fleet" / "small"
    cut_off = PlayedHead(Job(matrix, plan(matrix)[0]))
    cut_off.is_cut_off = True
    with pytest.raises(LostError):
        measured(matrix, cut_off)
    (record,) = [record for record, _ in cut_off.taken]
    assert {path.name for path in folder.iterdir()} == {
        f"{record.stem}.json",
        *(item.path for item in record.evidence),
    }
    head = PlayedHead()
    assert measured(matrix, head) == []
    assert head.taken == cut_off.taken
    assert head.asked == ["join", "keep", "next"]
    assert list(folder.iterdir()) == []


def test_a_run_that_was_on_when_its_machine_died_is_handed_over_as_interrupted(
    own_state: Path,
) -> None:
    folder = own_state / "fleet" / "small"
    folder.mkdir(parents=True)
    draft = a_record(
        run_id="small-native_m_w_iter01_20261120T100000Z",
        campaign="small",
        status="interrupted",
        status_reason=journal.KILLED,
        metrics={"output_throughput_tok_s": 1.0},
    )
    place = journal.begin(folder, draft, {}, Redactor())
    (place / "log").write_text("half a\n")
    head = PlayedHead()
    assert measured(a_matrix(), head) == []
    ((record, files),) = head.taken
    assert (record.run_id, record.status) == (draft.run_id, "interrupted")
    assert files == {f"{draft.stem}.log": b"half a\n"}
    assert any("as interrupted" in line for line in head.said)


def test_a_machine_that_may_not_measure_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = PlayedHead()
    absent = a_matrix(models={"m": {"id": "x/m", "path": "/nowhere"}})
    assert measured(absent, head)[0].startswith(
        "no model at /nowhere, environment native"
    )
    monkeypatch.setattr(node.os, "getpriority", lambda *_: os.nice(0) - 15)
    (line,) = measured(a_matrix(), head)
    assert line.startswith("work runs 15 steps nicer than its node")
    monkeypatch.setattr(node.inventory, "machine_id", lambda: None)
    (line,) = measured(a_matrix(), head)
    assert line.startswith("nothing names this machine")
    assert head.asked == []


def test_a_machine_that_collects_already_is_not_taken(own_state: Path) -> None:
    head = PlayedHead()
    with lock.locked():
        (problem,) = measured(a_matrix(), head)
    assert problem.startswith("another collector runs on this machine")
    assert head.asked == []


def test_a_machine_waits_while_others_are_at_what_it_may_have_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then a gate keeps its run from starting, which the books hear; and nothing can start there any more."""

    def stopped(*_: object) -> None:
        raise CollectError("the gates are not met", where="gates", remedy="wait")

    matrix = a_matrix()
    head = PlayedHead(Job(matrix, plan(matrix)[0]))
    head.jobs.insert(0, None)
    monkeypatch.setattr(Station, "measure", lambda *_: None)
    assert measured(matrix, head) == []
    assert head.asked == ["join", "next", "next", "skip", "next"]
    head.jobs.append(Job(matrix, plan(matrix)[0]))
    monkeypatch.setattr(Station, "measure", stopped)
    assert measured(matrix, head) == ["the gates are not met, gates; wait"]


@pytest.mark.parametrize("wish", ["Ctrl-C, twice", "lost"])
def test_a_run_ends_when_the_operator_stops_or_the_head_is_lost(wish: str) -> None:
    matrix = a_matrix("sleep 600", gates={"cooldown": 60})
    head = PlayedHead(Job(matrix, plan(matrix)[0]), wish=wish)
    assert measured(matrix, head) == []
    assert "keep" not in head.asked  # it had not begun


def test_records_of_several_machines_have_several_addresses() -> None:
    """Each machine repeats the same iteration, perhaps within the same second."""
    matrix = a_matrix(machines="replicate")
    head = PlayedHead(Job(matrix, plan(matrix, ["0123456789abcdef"])[0]))
    measured(matrix, head)
    record = head.taken[0][0]
    assert record.stem.endswith("_01234567")
    assert record.run_id == f"small-{record.stem}"


def test_the_name_of_a_machine_is_in_its_id_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sparkpub.collect.machine.inventory import NAME_VARIABLE, facts

    without = facts(None)
    monkeypatch.setenv(NAME_VARIABLE, "kitchen")
    named = facts(None)
    monkeypatch.setenv(NAME_VARIABLE, "cellar")
    assert len({without.id, named.id, facts(None).id}) == 3
    assert "kitchen" not in named.model_dump_json()

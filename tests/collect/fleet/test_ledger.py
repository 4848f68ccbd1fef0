"""The books of a fleet, without a cluster: who gets which run, and which deliveries are kept."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.books import known_records
from sparkpub.collect.choice import Choice
from sparkpub.collect.fleet.ledger import Delivery, FleetBooks
from sparkpub.collect.git import Committer
from sparkpub.collect.progress import Progress
from sparkpub.collect.public import public
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import RecordError
from sparkpub.record.record import Evidence, Machine
from sparkpub.record.store import file_sha256, to_json
from tests.building import a_record
from tests.collect.collecting import a_matrix

ONE, TWO = "1" * 16, "2" * 16


def a_ledger(tmp_path: Path, said: list[str], **changes: Any) -> FleetBooks:
    """Books of two machines and a campaign of two models with two iterations, which nothing is known of."""
    models = {name: {"id": f"x/{name}"} for name in ("a", "b")}
    matrix: Matrix = a_matrix(**({"models": models, "retries": 1} | changes))
    shown, _ = public(matrix)
    folder = tmp_path / "small"
    folder.mkdir()
    progress = Progress("small", 4, 0, said.append)
    committer = Committer(folder, False, False, progress)
    choice = Choice(tmp_path, commit=False)
    ledger = FleetBooks(shown, folder, choice, [], committer, progress)
    ledger.machines = {ONE, TWO}
    runs = plan(matrix, [ONE, TWO])
    ledger.schedule(runs, runs)
    return ledger


def a_delivery(
    ledger: FleetBooks, machine: str, tmp_path: Path, second: int = 0, **fields: Any
) -> Delivery:
    """What a machine delivers of its lease; `second` tells one measurement from the next."""
    order = ledger.leases[machine]
    stem = f"{'_'.join(order.run.cell)}_{order.run.iteration}_{machine[0]}{second}"
    log = tmp_path / f"{stem}.log"
    log.write_text(f"log of {stem}\n")
    evidence = Evidence(
        role="log", path=log.name, sha256=file_sha256(log), bytes=log.stat().st_size
    )
    known: dict[str, Any] = {
        "run_id": f"small-{stem}",
        "campaign": "small",
        "model": order.run.model,
        "environment": order.run.environment,
        "workload": order.run.workload,
        "iteration": order.run.iteration,
        "repeat_of": order.repeat_of,
        "specification": ledger.shown.fingerprint(*order.run.cell),
        "machine": Machine(id=machine),
        "evidence": (evidence,),
    }
    record = a_record({"output_throughput_tok_s": 5.0}, **(known | fields))
    return Delivery(to_json(record), {log.name: log.read_bytes()})


def leased(ledger: FleetBooks, machine: str) -> tuple[str, int]:
    order = ledger.next(machine)
    assert order is not None
    return order.run.model, order.run.iteration


def test_a_model_is_measured_on_one_machine_in_the_order_of_the_plan(
    tmp_path: Path,
) -> None:
    ledger = a_ledger(tmp_path, [])
    given = []
    for machine in (ONE, TWO, TWO, ONE):
        given.append((machine[0], *leased(ledger, machine)))
        ledger.receive(machine, a_delivery(ledger, machine, tmp_path))
    assert given == [("1", "a", 1), ("2", "b", 1), ("2", "b", 2), ("1", "a", 2)]
    assert ledger.next(ONE) is ledger.next(TWO) is None
    assert len(known_records(ledger.folder)) == 4


def test_a_model_moves_where_its_machine_is_gone(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path, [])
    leased(ledger, ONE)
    ledger.receive(ONE, a_delivery(ledger, ONE, tmp_path))
    leased(ledger, ONE)
    ledger.machines = {ONE, TWO}
    leased(ledger, TWO)
    ledger.receive(TWO, a_delivery(ledger, TWO, tmp_path))
    leased(ledger, TWO)
    ledger.receive(TWO, a_delivery(ledger, TWO, tmp_path))
    assert ledger.next(TWO) is None
    lost = ledger.lose(ONE)
    assert lost is not None
    assert (lost.run.model, lost.run.iteration) == ("a", 2)
    assert leased(ledger, TWO) == ("a", 2)


def test_a_replicated_campaign_is_measured_by_each_machine(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path, [], machines="replicate")
    for machine in (ONE, TWO):
        for _ in range(4):
            leased(ledger, machine)
            ledger.receive(machine, a_delivery(ledger, machine, tmp_path))
        assert ledger.next(machine) is None
    assert len(known_records(ledger.folder)) == 8


def test_what_arrives_lies_beside_its_record_unchanged(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path, [])
    leased(ledger, ONE)
    delivery = a_delivery(ledger, ONE, tmp_path)
    ledger.receive(ONE, delivery)
    (record,) = known_records(ledger.folder)
    assert (ledger.folder / f"{record.stem}.json").read_text() == delivery.record
    for name, content in delivery.files.items():
        assert (ledger.folder / name).read_bytes() == content


def test_a_second_delivery_is_refused_and_said(tmp_path: Path) -> None:
    """The answer to the first was lost with the network: the machine delivers again."""
    said: list[str] = []
    ledger = a_ledger(tmp_path, said)
    leased(ledger, ONE)
    delivery = a_delivery(ledger, ONE, tmp_path)
    ledger.receive(ONE, delivery)
    ledger.receive(ONE, delivery)
    assert len(known_records(ledger.folder)) == len(ledger.records) == 1
    assert said[-1].endswith("came twice and is kept once")


def test_a_late_delivery_is_refused_where_the_run_was_measured_again(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    ledger = a_ledger(tmp_path, said)
    leased(ledger, ONE)
    late = a_delivery(ledger, ONE, tmp_path)
    ledger.lose(ONE)
    assert leased(ledger, TWO) == ("a", 1)
    ledger.receive(TWO, a_delivery(ledger, TWO, tmp_path))
    ledger.receive(ONE, late)
    (record,) = known_records(ledger.folder)
    assert record.machine.id == TWO
    assert f"came late: {record.run_id} was measured in its place" in said[-1]


def test_a_late_delivery_is_kept_where_nobody_measured_the_run_again(
    tmp_path: Path,
) -> None:
    """Then whoever is at it comes late, and its lease ends all the same."""
    ledger = a_ledger(tmp_path, [])
    leased(ledger, ONE)
    late = a_delivery(ledger, ONE, tmp_path)
    ledger.lose(ONE)
    leased(ledger, TWO)
    ledger.receive(ONE, late)
    ledger.receive(TWO, a_delivery(ledger, TWO, tmp_path))
    (record,) = known_records(ledger.folder)
    assert record.machine.id == ONE
    assert ledger.leases == {}
    assert leased(ledger, TWO) == ("a", 2)


def test_a_late_failure_is_an_attempt_that_counts(tmp_path: Path) -> None:
    failed = {"status": "failed", "status_reason": "exit status 7", "exit_code": 7}
    ledger = a_ledger(tmp_path, [])
    for second in (1, 2):
        leased(ledger, ONE)
        delivery = a_delivery(ledger, ONE, tmp_path, second, **failed)
        ledger.lose(ONE)
        ledger.receive(ONE, delivery)
    assert ("a", 1) not in {(run.model, run.iteration) for run in ledger.todo}
    assert len(ledger.todo) == 3


HOSTILE: dict[str, tuple[str, Callable[[Delivery], Delivery]]] = {
    "evidence that was changed": (
        "arrived damaged",
        lambda sent: Delivery(sent.record, dict.fromkeys(sent.files, b"rate 6\n")),
    ),
    "evidence that is not there": (
        "did not arrive",
        lambda sent: Delivery(sent.record, {}),
    ),
    "evidence under another run's name": (
        "is the name of another run's file",
        lambda sent: Delivery(
            sent.record.replace(next(iter(sent.files)), "other.log"),
            {"other.log": next(iter(sent.files.values()))},
        ),
    ),
    "a file outside of the folder": (
        "a record that cannot be read",
        lambda sent: Delivery(
            sent.record.replace(next(iter(sent.files)), "../../other.log"),
            {"../../other.log": next(iter(sent.files.values()))},
        ),
    ),
    "a torn record": (
        "a record that cannot be read",
        lambda sent: Delivery(sent.record[:-10], sent.files),
    ),
    "a run of another campaign": (
        "it is of campaign other",
        lambda sent: Delivery(
            sent.record.replace('"campaign": "small"', '"campaign": "other"'),
            sent.files,
        ),
    ),
    "a run of another machine": (
        "it is of machine 22222222, and machine 11111111 sent it",
        lambda sent: Delivery(sent.record.replace(ONE, TWO), sent.files),
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_not_what_it_says_it_is_is_refused_and_not_written(
    what: str, tmp_path: Path
) -> None:
    words, change = HOSTILE[what]
    ledger = a_ledger(tmp_path, [])
    leased(ledger, ONE)
    whole = a_delivery(ledger, ONE, tmp_path)
    with pytest.raises(RecordError, match=words):
        ledger.receive(ONE, change(whole))
    assert list(ledger.folder.iterdir()) == []
    ledger.receive(ONE, whole)
    assert len(known_records(ledger.folder)) == 1


def test_no_run_replaces_another_ones_record(tmp_path: Path) -> None:
    """Two ids can name one file: of a campaign's run, and of an import without the campaign in its id."""
    said: list[str] = []
    ledger = a_ledger(tmp_path, said)
    leased(ledger, ONE)
    first = a_delivery(ledger, ONE, tmp_path)
    ledger.receive(ONE, first)
    (record,) = known_records(ledger.folder)
    leased(ledger, ONE)
    again = a_delivery(ledger, ONE, tmp_path, run_id=record.run_id, evidence=())
    ledger.receive(ONE, again)
    assert (ledger.folder / f"{record.stem}.json").read_text() == first.record
    assert "is kept once" in said[-1]


def test_no_more_runs_than_asked_for_are_under_way(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path, [])
    ledger.choice = Choice(tmp_path, commit=False, max_runs=1)
    leased(ledger, ONE)
    assert ledger.next(TWO) is None

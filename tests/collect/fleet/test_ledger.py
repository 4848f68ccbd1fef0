"""The books of a fleet, without a cluster: who gets which run, and which deliveries are kept."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.books import known_records
from sparkpub.collect.choice import Choice
from sparkpub.collect.fleet.ledger import Ledger, for_git
from sparkpub.collect.job import Job
from sparkpub.collect.overview import status_document, status_lines
from sparkpub.plan.matrix import Matrix
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Evidence, Machine
from sparkpub.record.store import Stored, file_sha256, to_json
from tests.building import a_record
from tests.collect.collecting import a_matrix

ONE, TWO = "1" * 16, "2" * 16
NOTHING = (False, False, "")


def a_ledger(tmp_path: Path, said: list[str], **changes: Any) -> Ledger:
    """Books of two machines and a campaign of two models with two iterations, which nothing is known of."""
    models = {name: {"id": f"x/{name}"} for name in ("a", "b")}
    matrix: Matrix = a_matrix(**({"models": models, "retries": 1} | changes))
    ledger = Ledger(matrix, Choice(tmp_path, commit=False), {})
    ledger._said = said
    ledger.open(os.geteuid())
    for machine in (ONE, TWO):
        ledger.join(machine, f"node of {machine}")
    return ledger


def folder(tmp_path: Path) -> Path:
    return tmp_path / "small"


def a_delivery(
    ledger: Ledger, machine: str, second: int = 0, **fields: Any
) -> tuple[Stored, dict[str, bytes]]:
    """What a machine delivers of its lease; `second` tells one measurement from the next."""
    job = ledger.leases[machine]
    stem = f"{'_'.join(job.run.cell)}_{job.run.iteration}_{machine[0]}{second}"
    log = ledger.choice.data / f"{stem}.log"
    log.write_text(f"log of {stem}\n")
    evidence = Evidence(
        role="log", path=log.name, sha256=file_sha256(log), bytes=log.stat().st_size
    )
    known: dict[str, Any] = {
        "run_id": f"small-{stem}",
        "campaign": "small",
        "model": job.run.model,
        "environment": job.run.environment,
        "workload": job.run.workload,
        "iteration": job.run.iteration,
        "repeat_of": job.repeat_of,
        "specification": ledger.matrix.fingerprint(*job.run.cell),
        "machine": Machine(id=machine),
        "evidence": (evidence,),
    }
    record = a_record({"output_throughput_tok_s": 5.0}, **(known | fields))
    return Stored(record, log), {log.name: log.read_bytes()}


def leased(ledger: Ledger, machine: str) -> tuple[str, int]:
    job = ledger.next(machine)
    assert job is not None
    return job.run.model, job.run.iteration


def done(ledger: Ledger, machine: str, **fields: Any) -> tuple[str, int]:
    """The next run of a machine, which it delivers."""
    found = leased(ledger, machine)
    ledger.keep(machine, *a_delivery(ledger, machine, **fields))
    return found


def test_a_model_is_measured_on_one_machine_in_the_order_of_the_plan(
    tmp_path: Path,
) -> None:
    ledger = a_ledger(tmp_path, [])
    given = []
    for machine in (ONE, TWO, TWO, ONE):
        given.append((machine[0], *done(ledger, machine)))
    assert given == [("1", "a", 1), ("2", "b", 1), ("2", "b", 2), ("1", "a", 2)]
    assert ledger.next(ONE) is ledger.next(TWO) is None
    assert len(known_records(folder(tmp_path))) == 4
    assert ledger.over()


def test_a_model_moves_where_its_machine_is_gone(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path, [])
    done(ledger, ONE)
    leased(ledger, ONE)
    for _ in range(2):
        done(ledger, TWO)
    assert ledger.next(TWO) is None
    assert not ledger.over()  # it is to ask again
    ledger.leave(f"node of {ONE}")
    assert (
        ledger.hear(NOTHING)[0][-1] == "machine 11111111: a/native/w 2 is to do again"
    )
    assert leased(ledger, TWO) == ("a", 2)


def test_a_machine_that_comes_back_before_it_was_missed_has_no_lease(
    tmp_path: Path,
) -> None:
    """Else the run that it died with would be nobody's to do again."""
    ledger = a_ledger(tmp_path, [])
    first = leased(ledger, ONE)
    ledger.join(ONE, "node after a power cut")
    assert ledger.leases == {}
    assert leased(ledger, ONE) == first


def test_each_machine_repeats_a_campaign_even_one_that_was_lost_before_another_came(
    tmp_path: Path,
) -> None:
    """Two machines, two models, two iterations: eight runs, whoever was there first. ONE has no record yet when it is
    lost, and TWO comes only then."""
    ledger = a_ledger(tmp_path, [], machines="replicate")
    leased(ledger, ONE)
    for machine in (ONE, TWO):
        ledger.leave(f"node of {machine}")
    ledger.join(TWO, "node that came late")
    for _ in range(4):
        done(ledger, TWO)
    assert ledger.next(TWO) is None
    assert ledger.hear(NOTHING)[1]  # runs are left, which the command waits with
    ledger.join(ONE, "node after a power cut")
    for _ in range(4):
        done(ledger, ONE)
    assert len(known_records(folder(tmp_path))) == 8
    assert not ledger.hear(NOTHING)[1]


def test_a_second_delivery_is_refused_and_said(tmp_path: Path) -> None:
    """The answer to the first was lost with the network: the machine delivers again."""
    said: list[str] = []
    ledger = a_ledger(tmp_path, said)
    leased(ledger, ONE)
    delivery = a_delivery(ledger, ONE)
    ledger.keep(ONE, *delivery)
    (record,) = known_records(folder(tmp_path))
    written = {path.name: path.read_bytes() for path in folder(tmp_path).iterdir()}
    sent, files = delivery
    del written["campaign.json"]
    assert written == files | {f"{record.stem}.json": to_json(sent.record).encode()}
    ledger.keep(ONE, *delivery)
    assert len(known_records(folder(tmp_path))) == len(ledger.records) == 1
    assert f"{record.run_id} is here in its place; not kept" in said[-1]


@pytest.mark.parametrize("first", [ONE, TWO])
def test_of_a_late_delivery_and_another_one_the_first_is_kept(
    tmp_path: Path, first: str
) -> None:
    """Whoever is at the run meanwhile comes late, too, and its lease ends all the same."""
    said: list[str] = []
    ledger = a_ledger(tmp_path, said)
    leased(ledger, ONE)
    deliveries = {ONE: a_delivery(ledger, ONE)}
    ledger.leave(f"node of {ONE}")
    assert leased(ledger, TWO) == ("a", 1)
    deliveries[TWO] = a_delivery(ledger, TWO)
    for machine in sorted(deliveries, key=lambda machine: machine != first):
        ledger.keep(machine, *deliveries[machine])
    (record,) = known_records(folder(tmp_path))
    assert record.machine.id == first
    assert f"came late: {record.run_id} is here in its place; not kept" in said[-1]
    assert ledger.leases == {}
    # The other model is ONE's where that measured the run: it may come back.
    assert leased(ledger, TWO) == ("b" if first == ONE else "a", 1 + (first == TWO))


def test_as_many_runs_as_were_asked_for_are_given_to_all_machines_together(
    tmp_path: Path,
) -> None:
    ledger = a_ledger(tmp_path, [])
    ledger.choice = replace(ledger.choice, max_runs=3)
    leased(ledger, ONE)
    leased(ledger, TWO)
    ledger.keep(ONE, *a_delivery(ledger, ONE))
    leased(ledger, ONE)
    ledger.keep(TWO, *a_delivery(ledger, TWO))
    assert ledger.next(TWO) is None
    ledger.keep(ONE, *a_delivery(ledger, ONE))
    assert ledger.over()
    assert ledger.outcome(None).limited


def test_the_books_answer_machines_and_the_operators_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ray calls them: one machine is let in once, loses its run, and is told nothing more once the end is wished."""
    monkeypatch.setenv("GIT_TOKEN", "4711")
    monkeypatch.setenv("OF_MINE", "4711")
    assert "4711" not in for_git().values()  # it may cross the network
    matrix = a_matrix()
    choice = Choice(tmp_path, commit=False)
    ledger, again = (Ledger(matrix, choice, for_git()) for _ in range(2))
    with pytest.raises(CollectError, match="runs as another user"):
        ledger.open(os.geteuid() + 1)
    ledger.open(os.geteuid())
    with pytest.raises(CollectError, match="another collector writes to this campaign"):
        again.open(os.geteuid())
    ledger.join(ONE, "first")
    assert isinstance(ledger.next(ONE), Job)
    (under_way,) = status_document(matrix, tmp_path)["leases"]
    assert under_way == {"machine": ONE, "run": "m/native/w 1", "state": "under way"}
    ledger.leave("first")
    assert "machine 11111111: m/native/w 1: failed" in status_lines(matrix, tmp_path)
    lines, left, at_work = ledger.hear(NOTHING)
    assert lines[-1] == "machine 11111111: m/native/w 1 is to do again"
    assert (left, at_work, ledger.hear(NOTHING)[0]) == (True, False, [])
    ledger.join(TWO, "second")
    wish = (True, False, "Ctrl-C")
    ledger.hear(wish)
    assert (ledger.next(TWO), ledger.over(), ledger.wish()) == (None, True, wish)
    assert ledger.outcome("stopped by Ctrl-C").left == 2
    assert "leases" not in status_document(matrix, tmp_path)

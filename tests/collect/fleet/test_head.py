"""The head, with machines that are pretended: what it gives to whom, and that no run is lost or counted twice."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.fleet.accept import MOST_LOSSES
from sparkpub.collect.fleet.cluster import HeadLostError, Node
from sparkpub.collect.overview import status_document, status_lines
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.record import Record
from sparkpub.record.store import file_sha256
from tests.collect.collecting import a_matrix
from tests.collect.fleet.pretending import Pretended, collected

THREE = ["one", "two", "three"]
FATES = (
    "measured",
    "measured",
    "measured",
    "failed",
    "lost before",
    "lost after",
    "twice",
)


def campaign(**changes: Any) -> Matrix:
    """Three models in two environments, twice: 12 runs."""
    return a_matrix(
        models={name: {"id": f"x/{name}"} for name in ("a", "b", "c")},
        environments={"native": {"type": "host"}, "other": {"type": "host"}},
        retries=10,
        **changes,
    )


def good(
    records: list[Record], *, machines: bool = False
) -> Counter[tuple[object, ...]]:
    """How often each slot has a good run, on request by machine."""
    return Counter(
        (*record.cell, record.iteration, *([record.machine.id] if machines else []))
        for record in records
        if record.status == "ok" and record.repeat_of is None
    )


@pytest.mark.parametrize("seed", range(12))
def test_every_planned_run_is_there_exactly_once_whatever_dies(
    seed: int, tmp_path: Path
) -> None:
    matrix = campaign()
    outcome, records, _ = collected(Pretended(matrix, THREE, seed, FATES), tmp_path)
    assert good(records) == Counter(run.slot for run in plan(matrix))
    assert (outcome.left, outcome.lacking) == (0, 0)
    assert len({record.run_id for record in records}) == len(records)


@pytest.mark.parametrize("seed", range(6))
def test_a_replicated_run_is_there_once_for_each_machine_whatever_dies(
    seed: int, tmp_path: Path
) -> None:
    matrix = campaign(machines="replicate")
    outcome, records, _ = collected(Pretended(matrix, THREE, seed, FATES), tmp_path)
    wanted = plan(matrix, THREE)
    assert len(wanted) == 36
    assert good(records, machines=True) == Counter(
        (*run.slot, run.machine) for run in wanted
    )
    assert outcome.lacking == 0


def test_a_model_is_measured_on_one_machine_in_the_order_of_the_plan(
    tmp_path: Path,
) -> None:
    matrix = campaign()
    cluster = Pretended(matrix, THREE)
    collected(cluster, tmp_path)
    for model in ("a", "b", "c"):
        given = [
            (name, order.run)
            for name, order in cluster.given
            if order.run.model == model
        ]
        assert len({name for name, _ in given}) == 1
        assert [run for _, run in given] == [
            run for run in plan(matrix) if run.model == model
        ]
    assert {name for name, _ in cluster.given} == set(THREE)


def test_a_block_that_was_begun_goes_on_where_it_was(tmp_path: Path) -> None:
    matrix = campaign()
    first = Pretended(matrix, ["two"])
    collected(first, tmp_path, max_runs=3)
    assert {order.run.model for _, order in first.given} == {"a"}
    again = Pretended(matrix, THREE)
    collected(again, tmp_path)
    assert {name for name, order in again.given if order.run.model == "a"} == {"two"}
    assert len(again.given) == 12 - 3


def test_a_block_moves_where_its_machine_is_gone(tmp_path: Path) -> None:
    matrix = campaign()
    collected(Pretended(matrix, ["gone"]), tmp_path, max_runs=3)
    outcome, records, _ = collected(Pretended(matrix, ["two"]), tmp_path)
    assert outcome.lacking == 0
    assert {record.machine.id for record in records if record.model == "a"} == {
        "gone",
        "two",
    }


def test_a_run_that_was_lost_is_given_out_again_and_said(tmp_path: Path) -> None:
    cluster = Pretended(campaign(), ["one"], script=["lost before"])
    _, records, said = collected(cluster, tmp_path)
    first, second = (order.run for _, order in cluster.given[:2])
    assert first == second
    assert "machine one is lost: the node died; a/native/w 1 is to do again" in said
    assert len(records) == 12


def test_a_run_that_comes_late_is_kept_where_nobody_measured_it_again(
    tmp_path: Path,
) -> None:
    cluster = Pretended(campaign(), ["one"], script=["lost after"])
    _, records, _ = collected(cluster, tmp_path)
    assert len(cluster.given) == 12
    assert len(records) == 12


def test_a_run_that_comes_late_is_refused_where_it_was_measured_again(
    tmp_path: Path,
) -> None:
    cluster = Pretended(campaign(), ["one"])
    _, (first, *_), _ = collected(cluster, tmp_path)
    order = next(each for _, each in cluster.given if each.run.slot == slot(first))
    late = cluster.measured("one", order)
    run = Record.model_validate_json(late.record)
    cluster.kept["one"] = [late]
    outcome, records, said = collected(cluster, tmp_path)
    assert outcome.measured == 0
    assert len(records) == 12
    reason = f"came late: {first.run_id} was measured in its place; not kept"
    assert f"machine one: {run.run_id} {reason}" in said
    assert not (tmp_path / "small" / f"{run.stem}.log").exists()
    assert cluster.kept["one"] == []
    assert good(records) == Counter(run.slot for run in plan(campaign()))


def slot(record: Record) -> tuple[object, ...]:
    return (*record.cell, record.iteration)


def test_a_cluster_whose_head_is_lost_ends_the_collection_in_one_line(
    tmp_path: Path,
) -> None:
    """What was measured is kept and said; what was under way waits on its machines, and is no lost run yet."""
    cluster = Pretended(campaign(), THREE)
    there = cluster.nodes
    asked = iter(range(1000))

    def then_gone() -> list[Node]:
        if next(asked) >= 4:
            raise HeadLostError("no answer in 30 s")
        return there()

    cluster.nodes = then_gone  # type: ignore[method-assign]
    outcome, records, _ = collected(cluster, tmp_path)
    assert outcome.exit_code == 1
    assert 0 < outcome.measured == len(records) == 12 - outcome.left
    assert {record.status for record in records} == {"ok"}
    assert outcome.stopped is not None
    assert outcome.stopped.startswith(
        "the Ray cluster does not answer any more: no answer in 30 s; start it"
    )
    again, records, _ = collected(Pretended(campaign(), THREE), tmp_path)
    assert again.lacking == 0
    assert good(records) == Counter(run.slot for run in plan(campaign()))


def test_a_late_failure_is_an_attempt_that_counts(tmp_path: Path) -> None:
    cluster = Pretended(campaign(), ["one"])
    collected(cluster, tmp_path, max_runs=1)
    order = cluster.given[0][1]
    failed = {"status": "failed", "status_reason": "exit status 7"}
    cluster.kept["one"] = [cluster.measured("one", order, **failed)]
    _, records, _ = collected(cluster, tmp_path, max_runs=1)
    assert sorted(record.status for record in records) == ["failed", "ok"]


def test_what_arrives_lies_beside_its_record_unchanged(tmp_path: Path) -> None:
    _, records, _ = collected(Pretended(campaign(), ["one"]), tmp_path)
    for record in records:
        (log,) = record.evidence
        assert file_sha256(tmp_path / "small" / log.path) == log.sha256


def test_a_run_that_arrives_damaged_is_asked_for_again(tmp_path: Path) -> None:
    cluster = Pretended(campaign(), ["one"], script=["damaged"])
    outcome, records, said = collected(cluster, tmp_path)
    assert (len(cluster.given), len(records), outcome.lacking) == (12, 12, 0)
    assert any("arrived damaged" in line for line in said)


def test_a_machine_whose_runs_never_arrive_whole_is_given_up(tmp_path: Path) -> None:
    cluster = Pretended(campaign(), ["one"], fates=("damaged",))
    cluster.kept = {"one": []}
    cluster.keeps = False
    outcome, records, _ = collected(cluster, tmp_path)
    assert records == []
    assert (outcome.measured, outcome.left) == (0, 12)
    assert len(cluster.given) == MOST_LOSSES


def test_a_skipped_run_is_not_tried_again(tmp_path: Path) -> None:
    cluster = Pretended(campaign(), ["one"], script=["skipped"])
    outcome, records, _ = collected(cluster, tmp_path)
    assert len(cluster.given) == 12
    assert len(records) == 11
    assert outcome.stopped == "1 run skipped because a gate was not met"


def test_a_machine_that_cannot_measure_any_more_gets_no_more_work(
    tmp_path: Path,
) -> None:
    cluster = Pretended(campaign(), ["one", "two"], script=["cannot"])
    outcome, records, said = collected(cluster, tmp_path)
    broken = cluster.given[0][0]
    assert [name for name, _ in cluster.given].count(broken) == 1
    assert len(records) == 12
    assert outcome.lacking == 0
    assert any(f"machine {broken} is lost: the disk is full" in line for line in said)


def test_a_machine_that_is_lost_again_and_again_on_one_node_is_given_up(
    tmp_path: Path,
) -> None:
    cluster = Pretended(campaign(), ["one"], fates=("lost before",))
    cluster.die = lambda machine: None  # type: ignore[method-assign] # the process dies, the node stays
    outcome, records, _ = collected(cluster, tmp_path)
    assert len(cluster.given) == MOST_LOSSES
    assert records == []
    assert (outcome.measured, outcome.left, outcome.exit_code) == (0, 12, 1)


def test_a_node_that_is_slow_to_say_what_it_is_is_asked_again(tmp_path: Path) -> None:
    cluster = Pretended(campaign(), ["one", "two"])
    cluster.silent["two"] = 2
    outcome, _, said = collected(cluster, tmp_path)
    assert outcome.lacking == 0
    assert {name for name, _ in cluster.given} == {"one", "two"}
    assert any("does not say what it is: no answer" in line for line in said)


def test_the_status_counts_each_machine_that_repeats_the_campaign(
    tmp_path: Path,
) -> None:
    matrix = campaign(machines="replicate")
    collected(Pretended(matrix, ["one"]), tmp_path)
    collected(Pretended(matrix, ["two"]), tmp_path, max_runs=5)
    document = status_document(matrix, tmp_path)
    assert [
        (entry["machine"], entry["done"], entry["missing"])
        for entry in document["machines"]
    ] == [
        ("one", 12, 0),
        ("two", 5, 7),
    ]
    assert "machine two: 5 of 12 done, 7 to do" in status_lines(matrix, tmp_path)
    assert "machines" not in status_document(campaign(), tmp_path)


def test_no_more_runs_than_asked_for(tmp_path: Path) -> None:
    cluster = Pretended(campaign(), THREE)
    outcome, records, _ = collected(cluster, tmp_path, max_runs=4)
    assert (outcome.measured, len(records), len(cluster.given)) == (4, 4, 4)


def test_what_stands_out_is_repeated_on_the_machine_that_measured_it(
    tmp_path: Path,
) -> None:
    matrix = campaign(
        iterations=8, repeat_outliers={"repeat": 1, "metric": "output_throughput_tok_s"}
    )
    cluster = Pretended(matrix, THREE)
    measured = cluster.measured

    def with_an_outlier(machine: str, order: Any, **fields: Any) -> Any:
        odd = (
            order.run.model == "b"
            and order.run.iteration == 3
            and order.repeat_of is None
        )
        value = 50.0 if odd else 100.0 + order.run.iteration / 10
        metric = {"output_throughput_tok_s": value}
        return measured(machine, order, metrics=metric, **fields)

    cluster.measured = with_an_outlier  # type: ignore[method-assign]
    _, records, _ = collected(cluster, tmp_path)
    repeats = [record for record in records if record.repeat_of]
    machines = {record.machine.id for record in records if record.model == "b"}
    assert sorted(record.cell for record in repeats) == [
        ("b", "native", "w"),
        ("b", "other", "w"),
    ]
    assert {record.machine.id for record in repeats} == machines
    assert len(machines) == 1

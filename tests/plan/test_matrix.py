"""The matrix: every mistake at once, with its line; orders that do not confound."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sparkpub.plan import matrix as matrices
from sparkpub.plan.coverage import by_cell, by_machine, states
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.plan.workloads.matmul import MatmulOptions
from sparkpub.record.errors import CollectError, MatrixError
from sparkpub.record.record import Machine, Record
from tests.building import a_record


def a_matrix(**changes: object) -> Matrix:
    document: dict[str, object] = {
        "campaign": "c",
        "title": "A campaign",
        "models": {"a": {"id": "x/a"}, "b": {"id": "x/b"}},
        "environments": {"native": {"type": "host"}, "container": {"type": "host"}},
        "workloads": {"w": {"type": "matmul"}},
        "iterations": 4,
    }
    return Matrix.model_validate(document | changes)


def order(matrix: Matrix) -> str:
    return " ".join(
        f"{run.iteration}{run.model}{run.environment[0]}" for run in plan(matrix)
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # The environments are reversed in every second iteration.
        ("interleaved", "1an 1ac 1bn 1bc 2ac 2an 2bc 2bn"),
        ("blocked", "1an 2an 1ac 2ac 1bn 2bn 1bc 2bc"),
    ],
)
def test_the_order_of_runs(kind: str, expected: str) -> None:
    assert order(a_matrix(order=kind, iterations=2)) == expected


SERVED = {
    "native": {"type": "host", "server": {"argv": ["serve"]}},
    "container": {"type": "docker", "image": "i", "server": {"argv": ["serve"]}},
}


def served(**changes: object) -> list[str]:
    """Iteration, model, first letter of the environment, and workload of each run of a matrix with two servers."""
    workloads = {name: {"type": "vllm-bench", "mode": "serve"} for name in ("c1", "c8")}
    matrix = a_matrix(
        environments=SERVED,
        workloads=workloads,
        models={"a": {"id": "x/a"}},
        iterations=2,
        **changes,
    )
    return [
        f"{run.iteration}{run.environment[0]} {run.workload}" for run in plan(matrix)
    ]


def test_runs_of_one_server_follow_each_other_up_and_then_down() -> None:
    said = "1n c1, 1n c8, 1c c1, 1c c8, 2c c8, 2c c1, 2n c8, 2n c1"
    assert ", ".join(served()) == said


def test_a_random_order_keeps_the_runs_of_one_server_together() -> None:
    orders = [served(order="random", seed=seed) for seed in range(20)]
    assert all(
        first[:2] == second[:2]
        for order in orders
        for first, second in zip(order[::2], order[1::2], strict=False)
    )
    assert len({tuple(order) for order in orders}) > 5
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(served()))}
    assert served(order="random", seed=3) == served(order="random", seed=3)


def test_exclude_removes_cells_and_nothing_else() -> None:
    matrix = a_matrix(exclude=[{"model": "a", "environment": "container"}])
    counted = Counter((run.model, run.environment) for run in plan(matrix))
    assert counted == {("a", "native"): 4, ("b", "native"): 4, ("b", "container"): 4}


TWO = {
    "w": {
        "type": "command",
        "argv": ["a"],
        "metrics": {"output_throughput_tok_s": {"regex": "(.)"}},
    }
}
TWO["few"] = TWO["w"] | {"runs": 2}


@pytest.mark.parametrize("kind", ["interleaved", "blocked", "random"])
def test_a_workload_may_have_a_number_of_runs_of_its_own(kind: str) -> None:
    matrix = a_matrix(workloads=TWO, order=kind)
    runs = plan(matrix)
    assert Counter((run.model, run.environment, run.workload) for run in runs) == {
        (model, environment, workload): {"w": 4, "few": 2}[workload]
        for model, environment, workload in matrix.cells()
    }
    assert {run.iteration for run in runs if run.workload == "few"} == {1, 2}
    for (_, _, workload), found in by_cell(matrix, []).items():
        assert found.planned == {"w": 4, "few": 2}[workload]


MISTAKES = json.loads((Path(__file__).parents[1] / "data/mistakes.json").read_text())


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row["said"][0][:60])
def test_mistakes_are_told_at_once_with_lines_and_suggestions(
    row: dict[str, Any],
) -> None:
    """`tests/data/mistakes.json`: a matrix, and the lines that its mistakes are told in."""
    with pytest.raises(MatrixError) as caught:
        matrices.parse(row["matrix"], "m.yaml")
    assert caught.value.lines() == row["said"]


def test_options_have_the_type_that_is_declared_and_are_written_as_declared() -> None:
    environments = {"native": {"type": "host", "env": {"A": "b"}}}
    workloads = {"w": {"type": "matmul", "size": 512, "runs": 3}}
    matrix = a_matrix(environments=environments, workloads=workloads)
    options = matrix.workloads["w"]
    assert isinstance(options, MatmulOptions)
    assert (options.size, options.iterations) == (512, 10)
    document = matrix.document()
    assert (document["environments"], document["workloads"]) == (
        environments,
        workloads,
    )
    assert Matrix.model_validate(document) == matrix
    assert matrix.declared_workload("w") == {"type": "matmul", "size": 512}
    assert matrix.declared_environment("native") == environments["native"]


def test_an_option_that_was_withdrawn_is_data_in_a_campaign() -> None:
    workloads = {
        "w": {"type": "matmul", "tf32": True},
        "v": {"type": "vllm-bench", "batch_size": 8},
    }
    document = a_matrix().document()
    document |= {"workloads": workloads, "gates": {"power_mode": "MAXN"}}
    old = {"type": "docker", "image": "i", "gpus": 2}
    document["environments"]["old"] = old
    matrix = matrices.from_document(document, "c")
    assert matrix.document()["workloads"] == workloads
    assert matrix.environments["old"].gpu_indices == (0, 1)
    with pytest.raises(MatrixError, match=r"unknown key workloads\.w\.tf32"):
        matrices.parse(json.dumps(document), "m.yaml")
    for number in (0, 10**5):
        old["gpus"] = number
        with pytest.raises(MatrixError, match=r"environments\.old\.docker\.gpus"):
            matrices.from_document(document, "c")


CELL = ("a", "native", "w")


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "Other"},
        {"primary": ["ttft_p50_ms"], "margin_reason": "A pilot."},
        {"equivalence_margin_percent": 2},
        {"workloads": {"w": {"type": "matmul", "runs": 2}}},
    ],
)
def test_a_specification_is_what_is_measured_not_what_it_is_called(
    changes: dict[str, object],
) -> None:
    plain = a_matrix().fingerprint(*CELL)
    assert a_matrix(**changes).fingerprint(*CELL) == plain
    assert a_matrix(seed=43).fingerprint(*CELL) != plain


def test_coverage_counts_slots_not_records() -> None:
    matrix = a_matrix(iterations=3, retries=1)
    fingerprint = matrix.fingerprint("a", "native", "w")

    failed = {"status": "failed", "status_reason": "x"}
    runs: list[tuple[int, dict[str, Any]]] = [
        *((1, {}), (1, {})),
        *((2, failed), (2, failed)),
        (3, failed),
    ]
    records = [
        a_record(
            run_id=f"r{number}",
            model="a",
            iteration=iteration,
            specification=fingerprint,
            **fields,
        )
        for number, (iteration, fields) in enumerate(runs)
    ]
    (cell, *_) = by_cell(matrix, records).values()
    assert (cell.planned, cell.done, cell.failed, cell.missing) == (3, 1, 1, 1)


def test_replication_plans_the_whole_campaign_on_each_machine() -> None:
    matrix = a_matrix(iterations=1, machines="replicate")
    runs = plan(matrix, ["one", "two"])
    assert [(run.machine, run.position) for run in runs] == [
        *(("one", position) for position in range(4)),
        *(("two", position) for position in range(4)),
    ]
    assert [run.slot for run in runs[:4]] == [run.slot for run in runs[4:]]
    assert {run.machine for run in plan(matrix)} == {None}


def measured_on(matrix: Matrix, machine: str | None, **fields: Any) -> Record:
    cell = ("a", "native", "w")
    return a_record(
        model="a",
        specification=matrix.fingerprint(*cell),
        machine=Machine(id=machine),
        **fields,
    )


def test_replication_asks_for_a_run_of_every_machine() -> None:
    matrix = a_matrix(machines="replicate", iterations=1)
    records = [measured_on(matrix, "one")]
    found = {
        run.machine: state
        for run, state in states(matrix, records, machines=["one", "two"]).items()
        if run.cell == ("a", "native", "w")
    }
    assert found == {"one": "done", "two": "missing"}
    ((machine, one),) = by_machine(matrix, records).items()
    assert (machine, one.planned, one.done, one.missing) == ("one", 4, 1, 3)
    assert by_machine(a_matrix(iterations=1), records) == {}
    cell = by_cell(matrix, [*records, measured_on(matrix, "two")])["a", "native", "w"]
    assert (cell.planned, cell.done) == (2, 2)


def test_an_interruption_uses_up_no_retry() -> None:
    matrix = a_matrix(iterations=1, retries=0, models={"a": {"id": "x/a"}})
    record = a_record(model="a", status="interrupted", status_reason="Ctrl-C")
    assert list(states(matrix, [record]).values()) == ["retry", "missing"]


def test_records_of_another_specification_are_refused() -> None:
    with pytest.raises(CollectError, match="another specification"):
        states(a_matrix(), [a_record(model="a", specification="0" * 64)])

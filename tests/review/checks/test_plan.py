"""What was run against what the matrix declares: what differs would be taken for a property of the machine."""

from typing import Any

import pytest

from sparkpub.plan.matrix import from_document
from sparkpub.record.record import (
    Analysis,
    Container,
    Moment,
    Observed,
    Plan,
    Reproducibility,
    Requested,
)
from sparkpub.record.store import Stored
from sparkpub.review.checks.plan import (
    duplicate_iteration,
    missing_cell,
    not_as_requested,
    time_consistency,
    unbalanced,
)
from tests.review.checks.in_memory import a_run, a_view, answered, told

SERVED: dict[str, Any] = {
    "type": "trtllm-bench",
    "requests": 128,
    "input_tokens": 512,
    "output_tokens": 128,
    "max_batch_size": 8,
    "concurrency": 8,
}
MATRIX: dict[str, Any] = {
    "campaign": "c",
    "title": "c",
    "models": {"m": {"id": "x/m"}},
    "environments": {
        "native": {"type": "host", "env": {"MODE": "fast", "HOME": "/root"}},
        "container": {"type": "docker", "image": "i:1"},
    },
    "workloads": {"w": SERVED},
    "iterations": 2,
    "seed": 7,
    "equivalence_margin_percent": 2,
}
DECLARED = Analysis(primary=(), margin_percent=2.0)
PLACES = {("native", 1): 0, ("container", 1): 1, ("container", 2): 2, ("native", 2): 3}
"""Environments take turns, and their order is reversed in every second round."""
PUBLISHED = Plan(position=5, order="as-published")


def planned(environment: str = "native", iteration: int = 1, **fields: Any) -> Stored:
    """A run as the matrix declares it, but for `fields`."""
    position = PLACES.get((environment, iteration), 9)
    usual: dict[str, Any] = {
        "plan": placed(position=position),
        "requested": requested({}, MATRIX["environments"][environment]),
        "specification": from_document(MATRIX, "c").fingerprint("m", environment, "w"),
    }
    if environment == "container":
        usual["container"] = Container(engine="docker", image="i:1", image_id="d")
    given = {"environment": environment, "iteration": iteration, "minute": position}
    return a_run(**(given | usual | fields))


def placed(**fields: Any) -> Plan:
    usual = {"position": 0, "order": "interleaved", "seed": 7, "analysis": DECLARED}
    return Plan(**(usual | fields))


def requested(
    asked: dict[str, Any], environment: dict[str, Any] | None = None, **fields: Any
) -> Requested:
    where = MATRIX["environments"]["native"] if environment is None else environment
    usual = {"model_id": "x/m", "model_path": "/m", "environment": where}
    return Requested(**(usual | {"workload": SERVED | asked} | fields))


def known(**fields: Any) -> dict[str, Any]:
    return {"reproducibility": Reproducibility(sparkpub_version="1", **fields)}


def seen(**facts: Any) -> dict[str, Any]:
    return {"observed": Observed(**facts)}


def departures(run: Stored) -> list[str]:
    """In what a run departs from the matrix."""
    found = not_as_requested(a_view(run, matrix=MATRIX))
    return [str(finding.evidence["what"]) for finding in found]


ANALYSIS = "the analysis that was declared when they began"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"model": "other"}, "its cell"),
        ({"requested": requested({"requests": 64})}, "the workload"),
        ({"requested": requested({}, model_id="x/z")}, "the model"),
        (known(seeds={"workload": 8}), "the seed"),
        ({"plan": placed(order="random")}, "the order"),
        ({"plan": placed(position=1)}, "the place in the plan"),
        ({"plan": placed(analysis=Analysis(primary=(), margin_percent=1.0))}, ANALYSIS),
        ({"iteration": 3}, "the number of iterations"),
        (known(variables={"MODE": "slow"}), "an environment variable"),
        (known(variables={"CUDA_LAUNCH_BLOCKING": "1"}), "an environment variable"),
        (known(variables={"CUDA_LAUNCH_BLOCKING": "False"}), None),
        ({"argv": ("trtllm-bench", "--max_batch_size", "8")}, "the command line"),
        (seen(batch_size=4), "the batch size"),
        (seen(input_tokens_mean=514.0, output_tokens_mean=126.0), None),
        (seen(input_tokens_mean=523.0), "the input tokens"),
        (seen(output_tokens_mean=131.0), "the output tokens"),
        (
            seen(requests=64)
            | {"requested": requested({}, disputed={"requests": "x"})},
            None,
        ),
        # 96 of 128 requests succeeded, and 32 or 31 failed.
        (seen(requests=96) | {"metrics": {"failed_requests_percent": 25.0}}, None),
        (
            seen(requests=96) | {"metrics": {"failed_requests_percent": 24.4}},
            "the requests",
        ),
        # An import is asked for its work alone.
        ({"plan": PUBLISHED, "specification": "0" * 64}, None),
    ],
)
def test_a_run_departs_from_its_matrix(
    fields: dict[str, Any], what: str | None
) -> None:
    assert departures(planned(**fields)) == ([] if what is None else [what])


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({}, []),
        (
            {"container": Container(engine="d", image="i:2", image_id="d")},
            ["the container image"],
        ),
        ({"container": None}, ["the container"]),
        ({"container": None, "unavailable": {"container": "the engine was gone"}}, []),
    ],
)
def test_a_container_is_of_the_image_that_was_asked_for(
    fields: dict[str, Any], what: list[str]
) -> None:
    assert departures(planned("container", **fields)) == what


@pytest.mark.parametrize(
    ("asked", "observed", "plan", "what"),
    [
        # Two rounds of four requests are eight; 10 % of 512 tokens are 51.
        (
            {"type": "llama-benchy", "concurrency": 4, "repetitions": 2},
            {"requests": 4},
            None,
            "the requests",
        ),
        ({"type": "llama-benchy"}, {"input_tokens_mean": 562.0}, None, None),
        (
            {"type": "llama-benchy"},
            {"input_tokens_mean": 570.0},
            None,
            "the input tokens",
        ),
        (
            {"type": "llama-benchy", "exact_output": False},
            {"output_tokens_mean": 20.0},
            None,
            None,
        ),
        (
            {"type": "generate", "dtype": "float16"},
            {"dtype": "float32"},
            PUBLISHED,
            "the number format",
        ),
        # A chat template may add 10 %, and 64 tokens to a short prompt; answers may end early.
        (
            {"input_tokens": 4000},
            {"input_tokens_mean": 4400.0, "output_tokens_mean": 90.0},
            PUBLISHED,
            None,
        ),
        (
            {"input_tokens": 32},
            {"input_tokens_mean": 97.0},
            PUBLISHED,
            "the input tokens",
        ),
        (
            {"type": "vllm-bench", "input_tokens": 4000, "range_ratio": 0.9},
            {"requests": 100, "input_tokens_mean": 2765.0},
            PUBLISHED,
            "the input tokens",
        ),
    ],
)
def test_each_tool_has_lengths_of_its_own(
    asked: dict[str, Any], observed: dict[str, Any], plan: Plan | None, what: str | None
) -> None:
    usual = {"type": "vllm-bench", "input_tokens": 512, "output_tokens": 128}
    wanted = Requested(model_id="x/m", workload=usual | asked, environment={})
    fields: dict[str, Any] = {"plan": plan} if plan else {}
    run = a_run(requested=wanted, observed=Observed(**observed), **fields)
    found = not_as_requested(a_view(run))
    assert [item.evidence["what"] for item in found] == ([what] if what else [])


def test_a_server_answers_the_runs_of_one_cell() -> None:
    settings = seen(settings={"server": "s1"})
    one, again = planned(**settings), planned(iteration=2, **settings)
    assert list(not_as_requested(a_view(one, again, matrix=MATRIX))) == []
    other = planned("container", **settings)
    (found,) = not_as_requested(a_view(one, other, matrix=MATRIX))
    assert "that of m/native in place of its own" in found.message


# -- as many runs as declared ----------------------------------------------------------------------------------


def test_an_iteration_counts_once() -> None:
    again = a_run(minute=5)
    (found,) = duplicate_iteration(a_view(a_run(), a_run(iteration=2), again))
    assert (found.cell, found.evidence["excluded"]) == ("m/native/w", [again.run_id])
    assert found.message.startswith("Iteration 1 of m/native/w was recorded 2 times.")
    repeat = a_run(minute=5, repeat_of=a_run().run_id)
    assert list(duplicate_iteration(a_view(a_run(), repeat))) == []


def test_declared_cells_without_a_good_run_are_missing() -> None:
    failed = planned("container", status="failed", status_reason="killed")
    (found,) = missing_cell(a_view(planned(), failed, matrix=MATRIX))
    assert found.message == (
        "No good run of m/container/w, which the matrix declares; 1 recorded run ended without a result."
    )


def test_cells_have_as_many_runs_as_declared() -> None:
    native = [planned(iteration=number) for number in (1, 2)]
    assert list(unbalanced(a_view(*native, matrix=MATRIX))) == []
    short = planned("container")
    repeat = planned("container", iteration=2, repeat_of=short.run_id)
    failed = planned("container", iteration=2, status="failed", status_reason="x")
    for more in ([], [repeat], [failed]):
        (found,) = unbalanced(a_view(*native, short, *more, matrix=MATRIX))
        assert (
            found.message
            == "m/container/w has 1 of the 2 good runs that the matrix declares."
        )


# -- times -----------------------------------------------------------------------------------------------------


def at(second: str) -> Moment:
    return Moment(value=f"2026-11-20T10:{second}Z", zone="utc")


EPOCH = 1_795_168_800.0 + 60
"""2026-11-20T10:01:00Z."""


@pytest.mark.parametrize(
    ("fields", "answer", "words"),
    [
        ({"ended": at("01:00")}, {}, None),
        # 100 s by the monotonic clock: 3 s and 1 % may lie between.
        ({"ended": at("02:44"), "duration_seconds": 100.0}, {}, None),
        (
            {"ended": at("02:45"), "duration_seconds": 100.0},
            {},
            "but 105 s from start to end",
        ),
        (
            {"run_id": "c_20261120T100101Z"},
            {},
            "started at 20261120T100101Z according to its id",
        ),
        (
            {"duration_seconds": 10.0},
            {"phases_epoch": EPOCH + 14},
            "10:01:14Z, 14 s off its start",
        ),
        ({"duration_seconds": 10.0}, {"phases_epoch": EPOCH - 4}, "4 s off its start"),
    ],
)
def test_the_times_of_a_run_agree(
    fields: dict[str, Any], answer: dict[str, Any], words: str | None
) -> None:
    run = a_run(minute=0, **({"started": at("01:00")} | fields))
    found = told(time_consistency, a_view(run, answer=answered(**answer)))
    assert len(found) == (words is not None)
    assert all((words or "") in line for line in found)


def test_a_zone_that_is_unknown_for_some_runs_leaves_their_order_open() -> None:
    unknown = Moment(value="2026-11-20T10:01:00", zone="unknown")
    one, other = a_run(minute=0), a_run(iteration=2, minute=1, started=unknown)
    (line,) = told(time_consistency, a_view(one, other))
    assert line.startswith("warning: The time zone of iteration 2")


def test_an_attempt_follows_the_ones_before_it() -> None:
    def attempt(number: int) -> Stored:
        return a_run(minute=number, plan=placed(attempt=number))

    assert told(time_consistency, a_view(attempt(1), attempt(2))) == []
    (line,) = told(time_consistency, a_view(attempt(1), attempt(3)))
    assert "attempt 2 is missing" in line

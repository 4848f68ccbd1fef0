"""What was run against what the matrix declares: what differs would be taken for a property of the machine."""

from typing import Any

import pytest

from sparkpub.plan.matrix import from_document
from sparkpub.record.record import (
    Analysis,
    Moment,
    Observed,
    Plan,
    Requested,
)
from sparkpub.record.store import Stored
from tests.review.checks.in_memory import a_run, a_view, said, told

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
        "native": {"type": "host"},
        "container": {"type": "docker", "image": "i:1"},
    },
    "workloads": {"w": SERVED},
    "iterations": 2,
    "seed": 7,
    "equivalence_margin_percent": 2,
}
PLACES = {("native", 1): 0, ("container", 1): 1, ("container", 2): 2, ("native", 2): 3}
"""Environments take turns, and their order is reversed in every second round."""
PUBLISHED = {"plan": Plan(position=5, order="as-published")}


def planned(environment: str = "native", iteration: int = 1, **fields: Any) -> Stored:
    """A run as the matrix declares it, but for `fields`."""
    position = PLACES.get((environment, iteration), 9)
    usual: dict[str, Any] = {
        "plan": placed(position=position),
        "requested": asked(environment=MATRIX["environments"][environment]),
        "specification": from_document(MATRIX, "c").fingerprint("m", environment, "w"),
    }
    given = {"environment": environment, "iteration": iteration, "minute": position}
    return a_run(**(given | usual | fields))


def placed(margin_percent: float = 2.0, **fields: Any) -> Plan:
    declared = Analysis(primary=(), margin_percent=margin_percent)
    usual = {"position": 0, "order": "interleaved", "seed": 7, "analysis": declared}
    return Plan(**(usual | fields))


def asked(workload: Any = SERVED, **fields: Any) -> Requested:
    usual = {"model_id": "x/m", "environment": MATRIX["environments"]["native"]}
    return Requested(**(usual | {"workload": workload} | fields))


def seen(**facts: Any) -> dict[str, Any]:
    return {"observed": Observed(**facts)}


def found(name: str, *runs: Stored, matrix: Any = MATRIX, **view: Any) -> list[str]:
    """What a check finds, without the run."""
    return [
        line.partition(": ")[2].removesuffix(".")
        for line in told(name, a_view(*runs, matrix=matrix, **view))
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, None),
        ({"model": "other"}, "the matrix has no such cell"),
        (
            {
                "requested": asked(SERVED | {"requests": 64}),
                "specification": "0" * 64,
            },
            "model, seed or options were others",
        ),
        ({"plan": placed(margin_percent=1.0)}, "margin in %: 1 in place of 2"),
        (seen(input_tokens_mean=514.0, output_tokens_mean=126.0), None),
        (seen(input_tokens_mean=523.0), "input tokens: 523 in place of 512"),
        (seen(output_tokens_mean=131.0), "output tokens: 131 in place of 128"),
        (seen(requests=64) | {"requested": asked(disputed={"requests": "x"})}, None),
        # 96 of 128 requests succeeded, and 32 or 31 failed.
        (seen(requests=96) | {"metrics": {"failed_requests_percent": 25.0}}, None),
        (
            seen(requests=96) | {"metrics": {"failed_requests_percent": 24.4}},
            "requests: 127 in place of 128",
        ),
        # An import is asked for its work alone.
        (PUBLISHED | {"specification": "0" * 64}, None),
    ],
)
def test_a_run_departs_from_its_matrix(
    fields: dict[str, Any], words: str | None
) -> None:
    said("not-as-requested", a_view(planned(**fields), matrix=MATRIX), words)


@pytest.mark.parametrize(
    ("options", "observed", "fields", "words"),
    [
        # Two rounds of four requests are eight; 10 % of 512 tokens are 51.
        (
            {"type": "llama-benchy", "concurrency": 4, "repetitions": 2},
            {"requests": 4},
            {},
            "requests: 4 in place of 8",
        ),
        ({"type": "llama-benchy"}, {"input_tokens_mean": 562.0}, {}, None),
        ({"type": "llama-benchy"}, {"input_tokens_mean": 570.0}, {}, "input tokens"),
        (
            {"type": "llama-benchy", "exact_output": False},
            {"output_tokens_mean": 20.0},
            {},
            None,
        ),
        # A client that tells the server to go on counts exactly.
        ({}, {"output_tokens_mean": 128.5}, {}, None),
        (
            {},
            {"output_tokens_mean": 128.5},
            {"argv": ("vllm", "--ignore-eos")},
            "output",
        ),
        (
            {"type": "generate", "dtype": "float16"},
            {"dtype": "float32"},
            PUBLISHED,
            "number format: float32 in place of float16",
        ),
        # A chat template may add 10 %, and 64 tokens to a short prompt; answers may end early.
        (
            {"input_tokens": 4000},
            {"input_tokens_mean": 4400.0, "output_tokens_mean": 90.0},
            PUBLISHED,
            None,
        ),
        ({"input_tokens": 32}, {"input_tokens_mean": 97.0}, PUBLISHED, "input tokens"),
        # Lengths that are drawn at random may have any mean.
        (
            {"input_tokens": 4000, "range_ratio": 0.9},
            {"requests": 100, "input_tokens_mean": 2765.0},
            PUBLISHED,
            None,
        ),
    ],
)
def test_each_tool_has_lengths_of_its_own(
    options: dict[str, Any],
    observed: dict[str, Any],
    fields: dict[str, Any],
    words: str | None,
) -> None:
    usual = {"type": "vllm-bench", "input_tokens": 512, "output_tokens": 128}
    requested = asked(usual | options, environment={})
    run = a_run(requested=requested, observed=Observed(**observed), **fields)
    said("not-as-requested", a_view(run), words)


def test_a_server_answers_the_runs_of_one_cell() -> None:
    settings = seen(settings={"server": "s1"})
    one, again = planned(**settings), planned(iteration=2, **settings)
    assert found("not-as-requested", one, again) == []
    other = planned("container", **settings)
    (line,) = found("not-as-requested", one, other)
    assert "server: m/container in place of m/native" in line


# -- as many runs as declared ----------------------------------------------------------------------------------


def test_an_iteration_counts_once() -> None:
    again = a_run(minute=5)
    (line,) = found("duplicate-iteration", a_run(), a_run(iteration=2), again)
    assert line.startswith("2 runs of m/native/w repeat an iteration")
    repeat = a_run(minute=5, repeat_of=a_run().run_id)
    assert found("duplicate-iteration", a_run(), repeat) == []


def test_cells_have_as_many_runs_as_declared() -> None:
    native = [planned(iteration=number) for number in (1, 2)]
    short = planned("container")
    failed = {"status": "failed", "status_reason": "killed"}
    few = "Of the good runs that the matrix declares there are 1 of 2: m/container/w"
    none = "No good run of m/container/w, which the matrix declares"
    for more, name, lines in (
        ([], "unbalanced", []),
        ([], "missing-cell", [none]),
        ([planned("container", **failed)], "missing-cell", [none]),
        ([short], "missing-cell", []),
        ([short], "unbalanced", [few]),
        ([short, planned("container", 2, repeat_of=short.run_id)], "unbalanced", [few]),
        ([short, planned("container", 2, **failed)], "unbalanced", [few]),
        ([short, planned("container", 2)], "unbalanced", []),
    ):
        assert found(name, *native, *more) == lines


# -- times and records that are gone ---------------------------------------------------------------------------


def at(second: str) -> Moment:
    return Moment(value=f"2026-11-20T10:{second}Z", zone="utc")


@pytest.mark.parametrize(
    ("ended", "words"),
    # 100 s by the monotonic clock: 3 s and 1 % may lie between.
    [("02:44", None), ("02:45", "but 105 s from start to end")],
)
def test_the_times_of_a_run_agree(ended: str, words: str | None) -> None:
    run = a_run(started=at("01:00"), ended=at(ended), duration_seconds=100.0)
    said("time-consistency", a_view(run), words)

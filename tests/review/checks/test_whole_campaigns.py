"""Checks of cells and campaigns at their limits, and how findings are worded."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from sparkpub.plan.matrix import from_document
from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.record import (
    Analysis,
    Architecture,
    Container,
    Evidence,
    Gate,
    Gpu,
    Machine,
    MetricValue,
    Moment,
    Observed,
    Plan,
    Reproducibility,
    Requested,
)
from sparkpub.record.store import Stored
from sparkpub.review.checks.acknowledging import covers
from sparkpub.review.checks.completeness import (
    duplicate_iteration,
    missing_cell,
    unbalanced,
)
from sparkpub.review.checks.copies import copied_evidence
from sparkpub.review.checks.equality import unequal_environments
from sparkpub.review.checks.evidence import Warned
from sparkpub.review.checks.integrity import (
    metric_mismatch,
    missing_log,
    missing_report,
    mistaken_facts,
)
from sparkpub.review.checks.proofs import does_not_fit, identity, same_numbers
from sparkpub.review.checks.requested import flag_values, is_path, not_as_requested
from sparkpub.review.checks.roofline import roofline
from sparkpub.review.checks.spread import (
    drifts,
    high_variation,
    order_confound,
    outlier,
    small_sample,
)
from sparkpub.review.checks.view import View, listed
from sparkpub.review.physics import batch_of
from tests.review.checks.in_memory import (
    a_run,
    a_view,
    answered,
    quiet,
    sampled,
    told,
    with_metrics,
)

TPUT = "output_throughput_tok_s"
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


def planned(environment: str = "native", iteration: int = 1, **fields: Any) -> Stored:
    """A run as the matrix declares it, but for `fields`."""
    position = PLACES.get((environment, iteration), 9)
    usual: dict[str, Any] = {
        "plan": Plan(position=position, order="interleaved", seed=7, analysis=DECLARED),
        "requested": Requested(
            model_id="x/m",
            model_path="/m",
            workload=SERVED,
            environment=MATRIX["environments"][environment],
        ),
        "specification": from_document(MATRIX, "c").fingerprint("m", environment, "w"),
    }
    if environment == "container":
        usual["container"] = Container(engine="docker", image="i:1", image_id="d")
    given = {"environment": environment, "iteration": iteration, "minute": position}
    return a_run(**(given | usual | fields))


def requested(
    asked: dict[str, Any], environment: dict[str, Any] | None = None, **fields: Any
) -> Requested:
    where = MATRIX["environments"]["native"] | (environment or {})
    return Requested(
        model_id="x/m", workload=SERVED | asked, environment=where, **fields
    )


def departures(run: Stored) -> list[str]:
    """In what a run departs from the matrix."""
    found = not_as_requested(a_view(run, matrix=MATRIX))
    return [str(finding.evidence.get("what", finding.check)) for finding in found]


@pytest.mark.parametrize(("failed", "departs"), [(32, []), (31, ["the requests"])])
def test_requests_that_failed_were_sent_all_the_same(
    failed: int, departs: list[str]
) -> None:
    """128 were asked for, and 96 succeeded."""
    metrics = {"failed_requests_percent": 100 * failed / (96 + failed)}
    run = planned(observed=Observed(requests=96), metrics=metrics)
    assert departures(run) == departs


@pytest.mark.parametrize("place", list(PLACES))
def test_runs_as_the_matrix_declares_them_pass(place: tuple[str, int]) -> None:
    assert departures(planned(*place)) == []


def seeds(**own: int) -> Reproducibility:
    return Reproducibility(sparkpub_version="1", seeds=own)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"model": "other"}, "its cell"),
        ({"requested": requested({"requests": 64})}, "the workload"),
        ({"requested": requested({}, {"env": {}})}, "the environment"),
        (
            {"requested": requested({}).model_copy(update={"model_id": "x/z"})},
            "the model",
        ),
        ({"specification": "0" * 64}, "the specification"),
        ({"reproducibility": seeds(workload=8)}, "the seed"),
        (
            {"plan": Plan(position=0, order="random", seed=7, analysis=DECLARED)},
            "the order",
        ),
        (
            {"plan": Plan(position=0, order="interleaved", seed=8, analysis=DECLARED)},
            "the seed of the order",
        ),
        (
            {"plan": Plan(position=1, order="interleaved", seed=7, analysis=DECLARED)},
            "the place in the plan",
        ),
        (
            {
                "plan": Plan(
                    position=0,
                    order="interleaved",
                    analysis=Analysis(primary=(), margin_percent=1.0),
                )
            },
            "the analysis that was declared when they began",
        ),
        (
            {
                "plan": Plan(
                    position=0,
                    order="interleaved",
                    analysis=Analysis(primary=(TPUT,), margin_percent=2.0),
                )
            },
            "the analysis that was declared when they began",
        ),
        ({"iteration": 3}, "the number of iterations"),
        ({"observed": Observed(requests=64)}, "the requests"),
        ({"observed": Observed(batch_size=4)}, "the batch size"),
        ({"observed": Observed(input_tokens_mean=523.0)}, "the input tokens"),
        ({"observed": Observed(output_tokens_mean=131.0)}, "the output tokens"),
        (
            {
                "reproducibility": Reproducibility(
                    sparkpub_version="1", variables={"MODE": "slow"}
                )
            },
            "an environment variable",
        ),
        ({"argv": ("trtllm-bench", "--max_batch_size", "8")}, "the command line"),
    ],
)
def test_a_run_departs_from_its_matrix(fields: dict[str, Any], what: str) -> None:
    assert departures(planned(**fields)) == [what]


@pytest.mark.parametrize(
    "fields",
    [
        {"reproducibility": seeds(workload=7)},
        {"specification": None},
        {"plan": Plan(position=0, order="interleaved", analysis=DECLARED)},
        {"observed": Observed(requests=128, batch_size=8)},
        {"observed": Observed(input_tokens_mean=514.0, output_tokens_mean=126.0)},
        {
            "observed": Observed(requests=64),
            "requested": requested({}, disputed={"requests": "said twice"}),
        },
        {
            "observed": Observed(batch_size=4),
            "requested": requested({}, disputed={"max_batch_size": "said twice"}),
        },
        {
            "observed": Observed(output_tokens_mean=1.0),
            "requested": requested({}, disputed={"output_tokens": "said twice"}),
        },
        {"observed": Observed(dtype="float32"), "requested": requested({})},
        {
            "reproducibility": Reproducibility(
                sparkpub_version="1", variables={"MODE": "fast", "HOME": "/home/me"}
            )
        },
        {"repeat_of": "another", "iteration": 3},
        {
            "repeat_of": "another",
            "plan": Plan(position=5, order="interleaved", seed=7, analysis=DECLARED),
        },
    ],
)
def test_a_run_does_not_depart_from_its_matrix(fields: dict[str, Any]) -> None:
    assert departures(planned(**fields)) == []


def test_a_container_is_of_the_image_that_was_asked_for() -> None:
    other = Container(engine="docker", image="i:2", image_id="d")
    assert departures(planned("container", container=other)) == ["the container image"]
    assert departures(planned("container", container=None)) == ["the container"]
    explained = {"container": "the engine was gone"}
    assert departures(planned("container", container=None, unavailable=explained)) == []


@pytest.mark.parametrize(
    ("asked", "seen", "found"),
    [
        ({"batches": 4, "batch_size": 8}, 32, []),
        ({"batches": 4, "batch_size": 8}, 12, ["the requests"]),
        ({"batches": 4}, 12, []),
        ({"repetitions": 5}, 5, []),
        ({"repetitions": 5}, 4, ["the requests"]),
    ],
)
def test_requests_are_asked_for_as_a_number_or_as_batches(
    asked: dict[str, Any], seen: int, found: list[str]
) -> None:
    workload = {"type": "generate"} | asked
    wanted = Requested(model_id="x/m", workload=workload, environment={"type": "host"})
    published = Plan(position=5, order="as-published")
    run = planned(requested=wanted, plan=published, observed=Observed(requests=seen))
    assert departures(run) == found


def test_a_server_answers_the_runs_of_one_cell() -> None:
    settings = Observed(settings={"server": "s1"})
    one, again = planned(observed=settings), planned(iteration=2, observed=settings)
    other = planned("container", observed=settings)
    assert list(not_as_requested(a_view(one, again, matrix=MATRIX))) == []
    (found,) = not_as_requested(a_view(one, other, matrix=MATRIX))
    assert found.evidence["what"] == "the server"
    assert "that of m/native in place of its own" in found.message


def test_words_of_a_command_line_follow_their_flags() -> None:
    argv = ["tool", "--a", "1", "--b", "--c", "x", "y"]
    assert flag_values(argv) == {"--a": "1", "--b": "", "--c": "x"}
    assert [is_path(word) for word in ("/a", "{model}", "<home>", "a/b")] == [
        True,
        True,
        True,
        False,
    ]


# -- what a matrix declares to be there ------------------------------------------------------------------------


def test_an_iteration_counts_once() -> None:
    again = a_run(minute=5)
    (found,) = duplicate_iteration(a_view(a_run(), a_run(iteration=2), again))
    assert found.cell == "m/native/w"
    assert found.evidence["excluded"] == [again.run_id]
    assert found.message.startswith(
        "Iteration 1 of m/native/w was recorded 2 times. Only the first"
    )
    other = [a_run(environment="container", minute=minute) for minute in (6, 7)]
    (found,) = duplicate_iteration(a_view(a_run(), again, *other))
    assert found.cells == ("m/native/w", "m/container/w")
    assert "1 more iteration was recorded repeatedly too" in found.message
    third = [a_run(model="other", minute=minute) for minute in (8, 9)]
    (found,) = duplicate_iteration(a_view(a_run(), again, *other, *third))
    assert "2 more iterations were recorded repeatedly too" in found.message
    repeat = a_run(minute=5, repeat_of=a_run().run_id)
    assert list(duplicate_iteration(a_view(a_run(), repeat))) == []


def test_declared_cells_without_a_good_run_are_missing() -> None:
    good = planned()
    failed = planned("container", status="failed", status_reason="killed")
    (found,) = missing_cell(a_view(good, failed, matrix=MATRIX))
    assert found.message == (
        "No good run of m/container/w, which the matrix declares; "
        "1 recorded run ended without a result."
    )
    (found,) = missing_cell(a_view(good, matrix=MATRIX))
    assert found.message == "No good run of m/container/w, which the matrix declares."
    assert found.cell == "m/container/w"
    (found,) = missing_cell(a_view(failed, matrix=MATRIX))
    assert found.message.startswith("No good run of m/native/w and m/container/w, ")
    assert found.evidence["recorded"] == {"m/native/w": 0, "m/container/w": 1}
    assert list(missing_cell(a_view(good, planned("container"), matrix=MATRIX))) == []


def test_cells_have_as_many_runs_as_declared() -> None:
    native = [planned(iteration=number) for number in (1, 2)]
    assert list(unbalanced(a_view(*native, matrix=MATRIX))) == []
    short = planned("container")
    (found,) = unbalanced(a_view(*native, short, matrix=MATRIX))
    assert found.message == "m/container/w has 1 good run and the matrix declares 2."
    assert (found.cell, found.evidence["good"]) == ("m/container/w", {found.cell: 1})
    repeat = planned("container", iteration=2, repeat_of=short.run_id)
    failed = planned("container", iteration=2, status="failed", status_reason="x")
    for more in (repeat, failed):
        assert len(list(unbalanced(a_view(*native, short, more, matrix=MATRIX)))) == 1
    (found,) = unbalanced(a_view(native[0], short, matrix=MATRIX))
    assert found.message.endswith("have 1 good run each and the matrix declares 2.")


# -- evidence --------------------------------------------------------------------------------------------------


def filed(role: Any, sha256: str, size: int = 4096) -> Evidence:
    return Evidence(
        role=role, path=f"{role}-{sha256[:4]}.txt", sha256=sha256 * 64, bytes=size
    )


@pytest.mark.parametrize(
    ("role", "size", "is_found"),
    [
        ("log", 2048, True),
        ("log", 2047, False),
        ("report", 1, True),
        ("output", 9999, False),
    ],
)
def test_runs_do_not_share_a_file(role: str, size: int, is_found: bool) -> None:
    runs = [
        a_run(iteration=number, evidence=(filed(role, "a", size),)) for number in (1, 2)
    ]
    assert len(list(copied_evidence(a_view(*runs)))) == is_found
    published = {"plan": Plan(position=0, order="as-published")}
    imports = [
        a_run(iteration=number, evidence=(filed(role, "a", size),), **published)
        for number in (1, 2)
    ]
    assert list(copied_evidence(a_view(*imports))) == []


@pytest.mark.parametrize(
    ("one", "other", "is_found"),
    [
        # Behind their third digit these have 3 + 2 and 3 + 1.
        ((123.456, 23.456), (123.456, 23.456), True),
        ((123.456, 23.45), (123.456, 23.45), False),
        ((123.456, 23.456), (123.456, 23.457), False),
        ((0.00123456789, 1.0), (0.00123456789, 1.0), True),
    ],
)
def test_runs_do_not_share_all_their_figures(
    one: tuple[float, float], other: tuple[float, float], is_found: bool
) -> None:
    runs = [
        a_run({TPUT: rate, "ttft_p50_ms": first}, iteration=place)
        for place, (rate, first) in enumerate((one, other), 1)
    ]
    assert len(list(copied_evidence(a_view(*runs)))) == is_found


@pytest.mark.parametrize(
    ("second", "is_found"), [("10:00:07", True), ("00:00:00", False)]
)
def test_rounded_figures_are_a_copy_where_the_start_is_known_to_the_second(
    second: str, is_found: bool
) -> None:
    """Midnight is what is written where only the day is known."""
    started = Moment(value=f"2026-11-20T{second}Z", zone="utc")
    runs = [a_run({TPUT: 36.2}, iteration=number, started=started) for number in (1, 2)]
    assert len(list(copied_evidence(a_view(*runs)))) == is_found


def test_a_log_is_missing_more_or_less() -> None:
    def severities(run: Stored) -> list[str]:
        return [found.severity for found in missing_log(a_view(run))]

    assert severities(a_run()) == ["error"]
    assert severities(a_run(evidence=(filed("log", "a"),))) == []
    published = a_run().record.model_copy(
        update={
            "metrics": {TPUT: MetricValue(value=1.0, unit="tok/s", source="published")}
        }
    )
    assert severities(Stored(published, a_run().path)) == ["warning"]
    plan = Plan(position=0, order="as-published")
    assert severities(a_run(plan=plan, evidence=(filed("report", "a"),))) == ["warning"]
    assert severities(a_run(plan=plan)) == ["error"]
    assert severities(a_run(status="failed", status_reason="x")) == []


def test_a_result_is_missing() -> None:
    def words(run: Stored, **answer: Any) -> list[str]:
        given = answered(**answer) if answer else None
        return told(missing_report, a_view(run, answer=given))

    absent = MetricValue(value=None, unit="tok/s", source="log", reason="x")
    reported = MetricValue(value=1.0, unit="tok/s", source="report")
    bare = a_run()
    assert words(bare) == []
    nothing = Stored(
        bare.record.model_copy(update={"metrics": {TPUT: absent}}), bare.path
    )
    assert "exit code 0 but has no figures" in words(nothing)[0]
    gone = Stored(
        bare.record.model_copy(update={"metrics": {TPUT: reported}}), bare.path
    )
    assert "coming from a report, but there is none" in words(gone)[0]
    assert "the report is incomplete" in words(bare, complete=False)[0]
    assert "half a table" in words(bare, complete=False, problems=("half a table",))[0]
    assert words(bare, complete=False, truncated=True) == []
    failed = nothing.record.model_copy(update={"status": "failed"})
    assert words(Stored(failed, bare.path)) == []


@pytest.mark.parametrize(
    ("answer", "is_found"),
    [
        ({"values": {TPUT: 100.0}}, False),
        ({"values": {TPUT: 100.0 * (1 + 0.9e-6)}}, False),
        ({"values": {TPUT: 100.0 * (1 + 1.2e-6)}}, True),
        ({"values": {}}, True),
        ({"values": {}, "truncated": True}, False),
        ({"values": {TPUT: 101.0}, "truncated": True}, True),
        ({"values": {TPUT: 101.0}, "complete": False}, False),
        ({"values": {TPUT: 101.0}, "complete": False, "truncated": True}, True),
        ({"values": {TPUT: 100.0}, "printed": {TPUT: (100.5, 0.5)}}, False),
        ({"values": {TPUT: 100.0}, "printed": {TPUT: (100.6, 0.5)}}, True),
    ],
)
def test_a_figure_is_that_of_its_log(answer: dict[str, Any], is_found: bool) -> None:
    view = a_view(a_run(), answer=answered(**answer))
    assert len(list(metric_mismatch(view))) == is_found


@pytest.mark.parametrize(
    ("said", "found", "what"),
    [
        ({"engine": "a"}, {"engine": "a"}, None),
        ({"engine": "a"}, {"engine": "b"}, "engine"),
        ({"engine": "a"}, {}, None),
        ({}, {"engine": "b"}, None),
        ({"batch_size": 8}, {"batch_size": 9}, "batch size"),
        ({"settings": {"x": "1"}}, {"settings": {"x": "2"}}, "x"),
        ({"settings": {"x": "1"}}, {"settings": {"x": "1"}}, None),
        ({}, {"device": "NVIDIA GB10"}, None),
        ({}, {"device": "NVIDIA H100"}, "GPU"),
        ({}, {"device": "cpu"}, None),
    ],
)
def test_facts_are_those_of_the_log(
    said: dict[str, Any], found: dict[str, Any], what: str | None
) -> None:
    machine = Machine(gpus=(Gpu(name="NVIDIA GB10"),))
    run = a_run(observed=Observed(**said), machine=machine)
    answer = answered(observed=Observed(**found))
    findings = list(mistaken_facts(a_view(run, answer=answer)))
    assert [item.evidence["what"] for item in findings] == (
        [] if what is None else [what]
    )
    cut = answered(observed=Observed(**found), truncated=True)
    assert list(mistaken_facts(a_view(run, answer=cut))) == []


# -- what the machine can do -----------------------------------------------------------------------------------

SPARK = Machine(kind="dgx-spark", memory_total_gib=100.0, unified_memory=True)
"""273 GB/s of memory bandwidth by the catalogue."""
GIB = 2**30


def modelled(
    tput: float,
    step: int = 1_000_000_000,
    weights: int = 2_000_000_000,
    model: str = "m",
    asked: dict[str, Any] | None = None,
    **fields: Any,
) -> Stored:
    """A run of a dense model that reads `step` bytes of weights with every token of its one sequence."""
    facts = Architecture(
        source="matrix",
        weight_bytes=weights,
        dense_bytes_per_step=step,
        expert_bytes=0,
        kv_bytes_per_token=1,
    )
    wanted = Requested(
        model_id=f"x/{model}",
        architecture=facts,
        workload={"type": "command", "batch_size": 1} | (asked or {}),
        environment={"type": "host"},
    )
    given: dict[str, Any] = {
        "machine": SPARK,
        "requested": wanted,
        "model": model,
    } | fields
    return a_run({TPUT: tput, **given.pop("metrics", {})}, **given)


@pytest.mark.parametrize(
    ("asked", "seen", "batch"),
    [
        ({"batch_size": 8}, None, 8),
        ({"batch_size": 8, "concurrency": 4}, None, 4),
        ({"max_batch_size": 16, "batch_size": None}, None, 16),
        ({"batch_size": 8}, 2, 2),
        ({"batch_size": None}, None, None),
        ({"batch_size": None, "concurrency": 3}, None, 3),
    ],
)
def test_a_batch_is_the_least_of_its_bounds(
    asked: dict[str, Any], seen: int | None, batch: int | None
) -> None:
    run = modelled(1.0, asked=asked, observed=Observed(batch_size=seen))
    assert batch_of(run.record) == batch


@pytest.mark.parametrize(
    ("tput", "severity"),
    [
        (232.0, None),
        (232.05, "warning"),
        (273.0, "warning"),
        (273.5, "error"),
    ],
)
def test_a_rate_needs_no_more_than_the_bandwidth(
    tput: float, severity: str | None
) -> None:
    """1 GB a step: 232.05 steps a second are 85 % of 273 GB/s."""
    found = list(roofline(a_view(modelled(tput))))
    assert [item.severity for item in found] == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    ("fields", "fact"),
    [
        ({"machine": Machine()}, "the memory bandwidth of the machine"),
        (
            {"observed": Observed(speculative_decoding=True)},
            "the number of decode steps",
        ),
        ({"asked": {"batch_size": None}}, "the batch size"),
        ({"step": None}, "the bytes that the model reads per step"),
    ],
)
def test_a_rate_is_not_judged_without_the_facts(
    fields: dict[str, Any], fact: str
) -> None:
    assert list(roofline(a_view(modelled(1e6, **fields)))) == [], fact


@pytest.mark.parametrize(
    ("tput", "asked", "severity"),
    [
        (5.2, {}, None),
        (5.3, {}, "warning"),
        (18.0, {"concurrency": 4}, None),
    ],
)
def test_a_rate_that_the_stated_weights_do_not_allow_is_told(
    tput: float, asked: dict[str, Any], severity: str | None
) -> None:
    """31 billion parameters of 2 bytes are 62 GB a token: 5.28 tok/s are 120 % of 273 GB/s. NVFP4 under that name would
    be three times as fast. Of several requests at once one reading serves all."""
    name = {"concurrency": 1, "batch_size": None} | asked
    wanted = Requested(
        model_id="x/m-31B-it", workload={"type": "command"} | name, environment={}
    )
    run = modelled(tput, requested=wanted, observed=Observed(dtype="bfloat16"))
    found = [item for item in roofline(a_view(run)) if item.check == "roofline"]
    assert [item.severity for item in found] == ([] if severity is None else [severity])
    assert all("other weights than BF16" in item.message for item in found)


def computing(
    metrics: dict[str, float],
    asked: dict[str, Any] | None = None,
    model_id: str = "x/m-31B-it",
    **fields: Any,
) -> Stored:
    """A run on a DGX Spark of a model that its name alone describes."""
    wanted = Requested(
        model_id=model_id, workload={"type": "command"} | (asked or {}), environment={}
    )
    given: dict[str, Any] = {
        "machine": SPARK,
        "requested": wanted,
        "observed": Observed(dtype="bfloat16"),
    }
    return a_run(metrics, **(given | fields))


GGUF = Observed(
    engine="llama.cpp",
    parameters=10_000_000_000,
    dtype="float16",
    settings={"model_type": "llama 10B F16"},
)


@pytest.mark.parametrize(
    ("rate", "fields", "severity"),
    [
        # 31 billion parameters take 62 GFLOP a token; 4,838.7 tokens are 120 % of 250 TFLOP, and of 500 twice as many.
        (4838.0, {}, None),
        (4839.0, {}, "warning"),
        (1e9, {}, "warning"),
        (9677.0, {"observed": Observed(quantization="nvfp4")}, None),
        (9678.0, {"observed": Observed(quantization="nvfp4")}, "warning"),
        (4839.0, {"observed": Observed(quantization="fp8")}, "warning"),
        # 3 billion of 30 take part.
        (4839.0, {"model_id": "x/m-30B-A3B"}, None),
        # 10 billion, by what ran: 85 % of 250 TFLOP are 10,625 tokens. Two thirds of them take 13.3 GFLOP: 37,500
        # tokens are 500 TFLOP, more than any format allows.
        (10_624.0, {"observed": GGUF}, None),
        (10_625.0, {"observed": GGUF}, "warning"),
        (37_499.0, {"observed": GGUF}, "warning"),
        (37_501.0, {"observed": GGUF}, "error"),
        # Of four Sparks, 1,000 TFLOP: 42,500 tokens are 85 %.
        (
            42_499.0,
            {"observed": GGUF, "machine": Machine(kind="dgx-spark", count=4)},
            None,
        ),
        (1e9, {"machine": Machine()}, None),
        (1e9, {"model_id": "x/m"}, None),
        (1e9, {"asked": {"prefix_caching": True}}, None),
    ],
)
def test_a_rate_of_prompts_needs_no_more_than_the_arithmetic(
    rate: float, fields: dict[str, Any], severity: str | None
) -> None:
    run = computing({"prompt_throughput_tok_s": rate}, **fields)
    found = [item for item in roofline(a_view(run)) if item.check == "roofline"]
    assert [item.severity for item in found] == ([] if severity is None else [severity])
    assert all(item.message.startswith("The prompt throughput") for item in found)


@pytest.mark.parametrize(
    ("metrics", "asked", "words"),
    [
        # 4,839 tokens a second, as above, of which 4,000 are computed.
        ({TPUT: 39.0, "total_throughput_tok_s": 4839.0}, {}, "The output throughput"),
        ({TPUT: 4839.0}, {"concurrency": 512}, "The output throughput"),
        (
            {
                TPUT: 39.0,
                "total_throughput_tok_s": 4839.0,
                "prefix_cache_hit_percent": 90.0,
            },
            {},
            None,
        ),
        ({"ttft_mean_ms": 1000.0}, {"input_tokens": 4839}, "The mean time to first"),
        ({"ttft_mean_ms": 1000.0}, {"input_tokens": 4838}, None),
        ({"ttft_p50_ms": 1000.0}, {"input_tokens": 4839}, "The median time to first"),
        # The prompts of others come before or after.
        ({"ttft_mean_ms": 1000.0}, {"input_tokens": 605, "concurrency": 8}, None),
        # Those of a batch are computed before any of its first tokens.
        (
            {"ttft_mean_ms": 1000.0},
            {"type": "generate", "input_tokens": 605, "batch_size": 8},
            "The mean time to first",
        ),
    ],
)
def test_tokens_of_all_kinds_are_computed(
    metrics: dict[str, float], asked: dict[str, Any], words: str | None
) -> None:
    found = [
        item.message
        for item in roofline(a_view(computing(metrics, asked)))
        if item.check == "roofline" and "TFLOP/s" in item.message
    ]
    assert len(found) == (words is not None)
    assert all(message.startswith(words or "") for message in found)


def test_what_is_impossible_goes_before_what_is_suspicious() -> None:
    """Of 10 billion parameters in 16 bits, 37,501 tokens a second are impossible: 100 % of 500 TFLOP by two thirds. The
    20,000 of the other figure are 160 % of 250 TFLOP, which another format allows."""
    rates = {"prompt_throughput_tok_s": 37_501.0, TPUT: 20_000.0}
    found = roofline(a_view(computing(rates, observed=GGUF)))
    (item,) = (each for each in found if "TFLOP/s" in each.message)
    assert item.severity == "error"
    assert item.evidence["metric"] == "prompt_throughput_tok_s"


def test_the_last_wave_of_requests_counts_whole() -> None:
    """9 requests in batches of 8 take two waves: 2 steps give 9 tokens, so 1,000 tok/s are 222.2 steps a second."""
    waves = modelled(
        1000.0, asked={"batch_size": 8, "requests": 9, "output_tokens": 10}
    )
    assert list(roofline(a_view(waves))) == []
    more = modelled(1100.0, asked={"batch_size": 8, "requests": 9, "output_tokens": 10})
    (found,) = roofline(a_view(more))
    assert found.severity == "warning"  # 244.4 GB/s of 273
    unknown = modelled(1100.0, asked={"batch_size": 8, "requests": 9})
    assert list(roofline(a_view(unknown))) == []  # at least 137.5 GB/s


@pytest.mark.parametrize(
    ("weights", "cache", "words"),
    [
        (100 * GIB, 0.0, None),
        (
            100 * GIB + 1,
            0.0,
            "its weights take 100.0 GiB, and the machine has 100.0 GiB",
        ),
        (90 * GIB, 10.0, None),
        (90 * GIB, 11.0, "its weights take 90.0 GiB with a KV cache of 11.0 GiB, and"),
    ],
)
def test_weights_and_cache_fit_into_memory(
    weights: int, cache: float, words: str | None
) -> None:
    metrics = {"kv_cache_gib": cache} if cache else {}
    found = told(does_not_fit, a_view(modelled(1.0, weights=weights, metrics=metrics)))
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_a_language_model_shows_itself() -> None:
    (silent,) = identity(a_view(modelled(1.0)))
    assert silent.severity == "warning"
    shown = Observed(weight_bytes=2_000_000_000)
    assert list(identity(a_view(modelled(1.0, observed=shown)))) == []
    other = Observed(weight_bytes=3_000_000_000)
    (found,) = identity(a_view(modelled(1.0, observed=other)))
    assert found.severity == "error"
    assert " was requested with x/m, but" in found.message
    two = [modelled(1.0, observed=other, iteration=number) for number in (1, 2)]
    (found,) = identity(a_view(*two))
    assert " were requested with x/m, but" in found.message
    assert list(identity(a_view(a_run({"startup_seconds": 1.0})))) == []


def sized(small: int, large: int, rates: tuple[float, float] = (80.0, 80.0)) -> View:
    """Two models of these bytes per step, with three runs each at these rates."""
    runs = []
    for place, noise in enumerate((0.0, 0.1, -0.1), 1):
        runs.append(modelled(rates[0] + noise, small, model="small", iteration=place))
        runs.append(modelled(rates[1] - noise, large, model="large", iteration=place))
    return a_view(*runs)


GB = 10**9
SPECULATIVE = Observed(speculative_decoding=True)


@pytest.mark.parametrize(("runs", "alike"), [(1, False), (2, True)])
def test_two_runs_of_each_model_can_show_one_throughput(runs: int, alike: bool) -> None:
    every = sized(GB, 2 * GB).runs
    few = [run for run in every if run.record.iteration <= runs]
    assert len(list(same_numbers(a_view(*few)))) == alike


def test_models_of_unlike_size_do_not_run_alike() -> None:
    assert list(same_numbers(sized(2 * GB, 3 * GB))) == []
    (found,) = same_numbers(sized(GB, 1_501_000_000))
    assert found.severity == "warning"  # 120 GB/s of 273: something else may limit both
    assert found.evidence["mean_tok_s"] == pytest.approx({"large": 80.0, "small": 80.0})
    (found,) = same_numbers(sized(GB, 2 * GB))
    assert found.severity == "error"  # 160 GB/s are more than half of 273
    assert list(same_numbers(sized(GB, 2 * GB, (80.0, 84.0)))) == []


def test_models_that_run_alike_in_two_environments_are_told_once() -> None:
    one = sized(GB, 2 * GB).runs
    elsewhere = []
    for run in one:
        minute = run.record.iteration + 10
        made = modelled(80.0, GB, model=run.record.model, minute=minute)
        record = run.record.model_copy(
            update={
                "environment": "container",
                "run_id": f"{run.run_id}-elsewhere",
                "started": made.record.started,
            }
        )
        elsewhere.append(Stored(record, run.path))
    (found,) = same_numbers(a_view(*one, *elsewhere))
    assert found.message.count("in native/w") == 1
    assert " In all, this holds in 4 cells." in found.message
    (alone,) = same_numbers(a_view(*one))
    assert "In all" not in alone.message


def test_a_finding_says_where_it_belongs() -> None:
    run = a_run()
    view = a_view(run)
    (of_run,) = view.together("drift", "info", [run], str)
    assert of_run.where == f"c m/native/w {run.run_id}"
    assert view.finding("drift", "info", "x.", cell=("a", "b", "w")).where == "c a/b/w"
    assert view.finding("drift", "info", "x.").where == "c"
    on_page = view.finding("claim", "info", "x.", file="a.md", line=3)
    assert on_page.where == "a.md:3"


# -- spread, order and differences -----------------------------------------------------------------------------


def sides(
    native: list[float],
    container: list[float] | None = None,
    metric: str = TPUT,
    **fields: Any,
) -> View:
    """Runs of two environments that take turns."""
    runs = []
    for place, values in enumerate(zip(native, container or native, strict=True)):
        for side, value in enumerate(values[: 1 + (container is not None)]):
            name = ("native", "container")[side]
            given = {
                "environment": name,
                "iteration": place + 1,
                "minute": 2 * place + side,
            }
            runs.append(a_run({metric: value}, **(given | fields)))
    return a_view(*runs)


@pytest.mark.parametrize(
    ("values", "is_found"),
    [
        # sd of 100 ± d, twice each, is d · √(4/3): 4.99 and 5.01 % of the mean
        ([104.32, 95.68, 104.32, 95.68], False),
        ([104.34, 95.66, 104.34, 95.66], True),
    ],
)
def test_runs_vary_by_at_most_five_percent(values: list[float], is_found: bool) -> None:
    assert len(list(high_variation(sides(values)))) == is_found


@pytest.mark.parametrize(("asked", "is_found"), [({}, True), ({"url": "x"}, False)])
def test_the_memory_of_a_server_that_was_there_before_is_no_result_of_a_run(
    asked: dict[str, Any], is_found: bool
) -> None:
    """It takes a gibibyte more with its first requests, and keeps it."""
    runs = [
        with_metrics(
            sampled("gpu_memory_peak_gib", 40.0 + 0.01 * (n % 3) + (n > 1), "GiB"),
            iteration=n,
            workload=asked,
        )
        for n in range(1, 11)
    ]
    beside = [
        with_metrics(
            sampled("gpu_memory_peak_gib", 30.0, "GiB"),
            iteration=n,
            minute=20 + n,
            environment="beside",
            workload={"url": "x"},
        )
        for n in range(1, 11)
    ]
    # What another server of the campaign is says nothing of this one.
    for view in (a_view(*runs), a_view(*runs, *beside)):
        found = [line for check in (outlier, drifts) for line in told(check, view)]
        assert bool(found) is is_found


def test_many_outliers_of_a_cell_are_told_together_under_either_name() -> None:
    """Two of 24 runs lie beyond three standard deviations: 8 %, of which the methodology allows 5."""
    (found,) = outlier(sides([99.5, 100.5] * 11 + [106.0, 106.0]))
    assert found.message.startswith("2 of 24 runs of m/native/w are outliers. ")
    assert covers(Acknowledgement(check="too-many-outliers", reason="known"), found)


def test_variation_is_told_once_for_all_that_vary() -> None:
    (found,) = high_variation(
        sides([110.0, 90.0, 100.0, 100.0], [115.0, 85.0, 100.0, 100.0])
    )
    assert found.evidence["cells"] == ["m/native/w", "m/container/w"]
    assert "of m/container/w varies by 12.2 %" in found.message
    assert found.message.endswith("in m/native/w and m/container/w.")


@pytest.mark.parametrize(("n", "is_found"), [(3, True), (4, False)])
def test_four_runs_are_enough(n: int, is_found: bool) -> None:
    values = [100.0, 101.0, 99.0, 100.5][:n]
    found = list(small_sample(sides(values)))
    assert len(found) == is_found
    if is_found:
        assert found[0].message.startswith("m/native/w has 3 runs: ")


def test_first_runs_that_stand_out_in_every_cell_are_a_cold_start() -> None:
    draw = np.random.default_rng(5)
    runs = []
    for iteration in range(1, 11):
        for place, (model, side) in enumerate(product("ab", ("native", "container"))):
            warm = 50 + draw.normal(0, 0.05)
            value = warm + (5 if iteration == 1 else 0)
            given = {"model": model, "environment": side, "iteration": iteration}
            minute = 4 * iteration + place
            runs.append(a_run({"peak_memory_gib": value}, minute=minute, **given))
    view = a_view(*runs)
    assert list(outlier(view)) == [], "one cause is told once"
    found = [item for item in drifts(view) if "first run" in item.message]
    (everywhere,) = found
    assert "The first run of 4 cells of all environments has" in everywhere.message
    assert everywhere.evidence["runs"] == [run.run_id for run in runs[:4]]
    # All four first runs are the largest of ten, or all are the smallest: 2 of 10^4, once over all cells; each
    # environment's alone have 2 of 10^2.
    assert everywhere.evidence["p_adjusted"] == pytest.approx(3 * 2e-4)
    assert "GiB more peak memory" in everywhere.message


def test_runs_begin_in_the_order_of_the_plan() -> None:
    def placed(position: int, minute: int, attempt: int = 1, **fields: Any) -> Stored:
        plan = Plan(position=position, order="interleaved", attempt=attempt)
        return a_run(iteration=position + 1, minute=minute, plan=plan, **fields)

    assert list(order_confound(a_view(placed(0, 0), placed(1, 1)))) == []
    (found,) = order_confound(a_view(placed(2, 0), placed(0, 1), placed(1, 2)))
    assert found.message.startswith("Iteration 3 of m/native/w began before runs that")
    retried = placed(0, 2, attempt=2)
    assert list(order_confound(a_view(placed(1, 1), retried))) == []
    repeat = placed(0, 2, repeat_of="another")
    assert list(order_confound(a_view(placed(1, 1), repeat))) == []
    assert list(order_confound(a_view(placed(1, 1), placed(0, 1)))) == []


# -- like for like ---------------------------------------------------------------------------------------------


def conditioned(
    name: str,
    native: list[float],
    container: list[float],
    asked_of: Mapping[str, dict[str, Any]] | None = None,
) -> list[str]:
    """What is found of environments whose samples differ in one thing, and in what is asked of them."""
    runs = {
        side: [
            a_run(
                environment=side,
                iteration=n + 1,
                minute=2 * n + (side == "container"),
                asked_of=(asked_of or {}).get(side),
            )
            for n in range(len(values))
        ]
        for side, values in (("native", native), ("container", container))
    }
    view = a_view(*runs["native"], *runs["container"])
    for side, values in (("native", native), ("container", container)):
        for run, value in zip(runs[side], values, strict=True):
            view.evidence.samples[run.run_id] = quiet(**{name: value})  # type: ignore[attr-defined]
    return told(unequal_environments, view)


@pytest.mark.parametrize(
    ("name", "level", "passes", "fails", "what"),
    [
        ("gpu_clock_sm_mhz", 1000.0, 19.0, 21.0, "SM clock under load"),
        ("cpu_percent", 20.0, 24.0, 26.0, "processor load"),
        ("swap_used_gib", 1.0, 0.4, 0.6, "swap in use"),
    ],
)
def test_environments_ran_under_like_conditions(
    name: str, level: float, passes: float, fails: float, what: str
) -> None:
    base = [level, level + 0.01, level - 0.01]
    assert conditioned(name, base, [value + passes for value in base]) == []
    (found,) = conditioned(name, base, [value + fails for value in base])
    assert what in found
    assert conditioned(name, base[:2], [value + fails for value in base[:2]]) == []
    wide = [level - fails, level, level + fails]
    assert conditioned(name, wide, [value + fails for value in wide]) == []


@pytest.mark.parametrize(
    ("processors", "percent", "is_found"),
    # On four processors, two are half of the load.
    [(20, (45.0, 71.0), True), (20, (45.0, 69.0), False), (4, (45.0, 71.0), False)],
)
def test_runs_of_a_cell_load_the_processors_alike(
    processors: int, percent: tuple[float, float], is_found: bool
) -> None:
    machine = Machine(id="m1", cpu_count=processors)
    runs = [a_run(iteration=number, machine=machine) for number in (1, 2)]
    view = a_view(*runs)
    for run, load in zip(runs, percent, strict=True):
        view.evidence.samples[run.run_id] = quiet(cpu_percent=load)  # type: ignore[attr-defined]
    assert len(told("mixed-machines", view)) == is_found


@pytest.mark.parametrize(
    ("name", "level", "found"),
    [("cpu_percent", 20.0, 0), ("swap_used_gib", 1.0, 1)],
)
def test_environments_of_other_processors_load_them_otherwise(
    name: str, level: float, found: int
) -> None:
    """What they are given explains their processors' load, and nothing else."""
    base = [level, level + 0.01, level - 0.01]
    given = {"container": {"env": {"OMP_NUM_THREADS": "2"}}}
    said = conditioned(name, base, [value + 30 for value in base], given)
    assert len([line for line in said if " on average in " in line]) == found
    same = {side: {"env": {"OMP_NUM_THREADS": "2"}} for side in ("native", "container")}
    said = conditioned(name, base, [value + 30 for value in base], same)
    assert len(said) == 1


def on_machine(name: str, **fields: Any) -> dict[str, Any]:
    return {"machine": Machine(id=name, **fields)}


def started_below(celsius: float) -> Gate:
    return Gate(
        name="max_start_temp_celsius", wanted=celsius, met=True, waited_seconds=0.0
    )


@pytest.mark.parametrize(
    ("native", "container", "severity"),
    [
        ({"machine": Machine(driver="1")}, {"machine": Machine(driver="2")}, "warning"),
        ({"machine": Machine(driver="1")}, {"machine": Machine()}, None),
        ({"observed": Observed(dtype="a")}, {"observed": Observed(dtype="b")}, "error"),
        (
            {"observed": Observed(engine="e")},
            {"observed": Observed(engine="e", quantization="q")},
            "error",
        ),
        (
            {"observed": Observed()},
            {"observed": Observed(engine="e", quantization="q")},
            None,
        ),
        ({"machine": Machine(power_mode="a")}, {"machine": Machine()}, "warning"),
        (
            {"machine": Machine(clocks_locked_mhz=1.0)},
            {"machine": Machine()},
            "warning",
        ),
        (on_machine("m", driver="1"), on_machine("m", driver="2"), "warning"),
        (on_machine("m", driver="1"), on_machine("n", driver="2"), None),
        ({"gates": (started_below(45),)}, {"gates": (started_below(95),)}, "warning"),
        ({"gates": (started_below(45),)}, {}, None),
        ({"asked_of": {"memory": "4g"}}, {}, "warning"),
        ({"asked_of": {"memory": "unlimited"}}, {}, None),
        ({"argv": ("t", "--x", "1")}, {"argv": ("t", "--x", "2")}, "warning"),
        ({"argv": ("t", "--x", "1")}, {"argv": ("t",)}, "warning"),
        ({"argv": ("t", "--x", "/a")}, {"argv": ("t", "--x", "/b")}, None),
        (
            {"observed": Observed(settings={"s": "1"})},
            {"observed": Observed(settings={"s": "2"})},
            "warning",
        ),
        ({"observed": Observed(settings={"s": "1"})}, {"observed": Observed()}, None),
        (
            {"observed": Observed(settings={"a_sha256": "1"})},
            {"observed": Observed(settings={"a_sha256": "2"})},
            None,
        ),
    ],
)
def test_environments_differ_in_nothing_else(
    native: dict[str, Any], container: dict[str, Any], severity: str | None
) -> None:
    view = a_view(
        a_run(**native), a_run(environment="container", minute=2, **container)
    )
    found = list(unequal_environments(view))
    assert [item.severity for item in found] == ([] if severity is None else [severity])


def test_an_engine_that_warns_in_one_environment_only_is_not_the_same() -> None:
    """A kernel that fell back shows in no setting; a log that is the client's alone tells nothing of the engine."""

    def found(version: str | None, *environments: str) -> list[str]:
        runs = [
            a_run(iteration=number, environment=environment, minute=10 * at + number)
            for at, environment in enumerate(("native", "container"))
            for number in (1, 2)
        ]
        view = a_view(*runs)
        for run in runs:
            said = [Warned("autotuning failed", measured=False)]
            view.evidence.answers[run.run_id] = answered(  # type: ignore[attr-defined]
                observed=Observed(engine_version=version),
                warnings=tuple(said * (run.record.environment in environments)),
            )
        return told(unequal_environments, view)

    (line,) = found("1.0", "container")
    assert "autotuning failed absent (native) and given (container)" in line
    assert found("1.0", "native", "container") == []
    assert found(None, "container") == []


# -- words -----------------------------------------------------------------------------------------------------


def test_names_are_listed_up_to_three() -> None:
    assert listed([], "cells") == ""
    assert listed(["a"], "cells") == "a"
    assert listed(["a", "b", "c"], "cells") == "a, b and c"
    assert listed(["a", "b", "c", "d"], "cells") == "4 cells"


def test_runs_are_told_by_what_they_have_in_common() -> None:
    native = [a_run(iteration=number) for number in (1, 2, 3)]
    other = a_run(environment="container", minute=9)
    view = a_view(*native, other)
    assert view.where(native[:1])[0] == "iteration 1 of m/native/w"
    assert view.where(native[:2])[0] == "2 of 3 runs of m/native/w"
    assert view.where(native)[0] == "all 3 runs of m/native/w"
    assert view.where([native[0], other])[0] == "2 runs of m/native/w and m/container/w"
    assert view.where([*native, other])[0] == "all 4 runs of the campaign"


def test_a_finding_on_several_runs_names_the_smallest_thing_that_holds_them() -> None:
    native = [a_run(iteration=number) for number in (1, 2, 3)]
    other = a_run(environment="container", minute=9)
    view = a_view(*native, other)

    def about(runs: list[Stored]) -> tuple[Any, ...]:
        (found,) = view.together("drift", "info", runs, lambda words: f"{words}.")
        return (
            found.run,
            found.cell,
            found.evidence.get("cells"),
            found.evidence.get("runs"),
        )

    assert about(native[:1]) == (native[0].run_id, "m/native/w", None, None)
    ids = [run.run_id for run in native]
    assert about(native[:2]) == (None, "m/native/w", None, ids[:2])
    places = ["m/native/w", "m/container/w"]
    assert about([native[0], other]) == (None, None, places, [ids[0], other.run_id])
    assert about([*native, other]) == (None, None, None, [*ids, other.run_id])
    assert list(view.together("drift", "info", [], str)) == []

"""Which model ran, and whether its machine can do that: by bytes and operations, worked out beside each case."""

from typing import Any

import pytest

from sparkpub.record.record import Architecture, Machine, Observed, Requested
from sparkpub.record.store import Stored
from sparkpub.review.checks.spread import same_numbers
from sparkpub.review.checks.view import View
from tests.review.checks.in_memory import a_run, a_view, said, told

TPUT = "output_throughput_tok_s"
PROMPTS = "prompt_throughput_tok_s"
SPARK = Machine(kind="dgx-spark", memory_total_gib=100.0, unified_memory=True)
"""273 GB/s of memory bandwidth, 250 TFLOP/s in 16 bits and 500 in 8, by the catalogue."""
GIB = 2**30
GB = 10**9


def modelled(
    tput: float,
    step: int | None = GB,
    weights: int = 2 * GB,
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
    given: dict[str, Any] = {"machine": SPARK, "requested": wanted, "model": model}
    return a_run({TPUT: tput, **fields.pop("metrics", {})}, **(given | fields))


WAVES = {"batch_size": 8, "requests": 9, "output_tokens": 10}


@pytest.mark.parametrize(
    ("tput", "fields", "severity"),
    [
        # 1 GB a step: 232.05 steps a second are 85 % of 273 GB/s.
        (232.0, {}, None),
        (232.1, {}, "warning"),
        (273.5, {}, "error"),
        # 9 requests in batches of 8 take two waves: 2 steps give 9 tokens, so 1,100 tok/s are 244.4 steps a second.
        (1000.0, {"asked": WAVES}, None),
        (1100.0, {"asked": WAVES}, "warning"),
        (1e6, {"observed": Observed(speculative_decoding=True)}, None),
    ],
)
def test_a_rate_needs_no_more_than_the_bandwidth(
    tput: float, fields: dict[str, Any], severity: str | None
) -> None:
    found = told("roofline", a_view(modelled(tput, **fields)))
    assert [line.split(":")[0] for line in found] == ([severity] if severity else [])


GGUF = Observed(
    engine="llama.cpp",
    parameters=10 * GB,
    dtype="float16",
    settings={"model_type": "llama 10B F16"},
)


@pytest.mark.parametrize(
    ("metrics", "asked", "fields", "severity"),
    [
        # 31 billion parameters by name take 62 GFLOP a token; 4,838.7 tokens are 120 % of 250 TFLOP.
        ({PROMPTS: 4838.0}, {}, {}, None),
        ({PROMPTS: 4839.0}, {}, {}, "warning"),
        # 10 billion, by what ran: 85 % of 250 TFLOP are 10,625 tokens.
        ({PROMPTS: 10_626.0}, {}, {"observed": GGUF}, "warning"),
        ({"ttft_mean_ms": 1000.0}, {"input_tokens": 4839}, {}, "warning"),
        ({"ttft_p50_ms": 1000.0}, {"input_tokens": 4838}, {}, None),
        ({TPUT: 5.3}, {"concurrency": 1}, {}, "warning"),
    ],
)
def test_a_rate_needs_no_more_than_the_arithmetic(
    metrics: dict[str, float],
    asked: dict[str, Any],
    fields: dict[str, Any],
    severity: str | None,
) -> None:
    workload = {"type": "command"} | asked
    wanted = Requested(model_id="x/m-31B-it", workload=workload, environment={})
    given = {"machine": SPARK, "observed": Observed(dtype="bfloat16")} | fields
    found = told("roofline", a_view(a_run(metrics, requested=wanted, **given)))
    assert [line.split(":")[0] for line in found] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("weights", "cache", "machine", "words"),
    [
        (100 * GIB, 0.0, SPARK, None),
        (90 * GIB, 11.0, SPARK, "weights take 90.0 GiB, with the KV cache 101.0 GiB"),
        # A DGX Spark has 119.7 GiB for programs, by the catalogue.
        (130 * GIB, 0.0, Machine(kind="dgx-spark"), "weights take 130.0 GiB"),
        (130 * GIB, 0.0, Machine(), None),
    ],
)
def test_weights_and_cache_fit_into_memory(
    weights: int, cache: float, machine: Machine, words: str | None
) -> None:
    metrics = {"kv_cache_gib": cache} if cache else {}
    run = modelled(1.0, weights=weights, metrics=metrics, machine=machine)
    said("does-not-fit", a_view(run), words)


def test_a_language_model_shows_itself() -> None:
    def found(run: Stored) -> list[str]:
        return told("identity", a_view(run))

    (silent,) = found(modelled(1.0))
    assert silent.startswith(
        "warning: Iteration 1 of m/native/w showed nothing of which model ran"
    )
    other = Observed(weight_bytes=3 * GB)
    (line,) = found(modelled(1.0, observed=other))
    assert line.startswith("error: Iteration 1 of m/native/w showed another model")
    assert found(modelled(1.0, observed=Observed(weight_bytes=2 * GB))) == []
    assert found(a_run({"startup_seconds": 1.0})) == []
    # Of a server that ran before there is only the name that it gives itself.
    served = {"type": "llama-benchy", "url": "http://x"}
    named = Observed(model_path="/models/m")
    assert found(a_run({TPUT: 100.0}, workload=served, observed=named)) == []


def sized(
    small: int, large: int, rates: tuple[float, float] = (80.0, 80.0), **fields: Any
) -> View:
    """Two models of these bytes per step, with three runs each at these rates."""
    sides = zip(("small", "large"), (small, large), rates, (1, -1), strict=True)
    return a_view(
        *(
            modelled(rate + sign * noise, size, model=model, iteration=place, **fields)
            for model, size, rate, sign in sides
            for place, noise in enumerate((0.0, 0.1, -0.1), 1)
        )
    )


@pytest.mark.parametrize(
    ("view", "is_found"),
    [
        (sized(2 * GB, 3 * GB), False),
        # 120 GB/s of 273: something else may limit both.
        (sized(GB, 1_501_000_000), False),
        (sized(GB, 2 * GB), True),
        (sized(GB, 2 * GB, (80.0, 84.0)), False),
    ],
)
def test_models_of_unlike_size_do_not_run_alike(view: View, is_found: bool) -> None:
    assert len(list(same_numbers(view))) == is_found

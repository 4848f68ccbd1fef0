"""What a run was made with, and under which load, in one vocabulary for all tools."""

from collections.abc import Mapping
from typing import Any

import pytest

from sparkpub.record.record import (
    Architecture,
    Gpu,
    Machine,
    Observed,
    Origin,
    Record,
    Reproducibility,
    Requested,
)
from sparkpub.review.setup import load_of, setup_of
from tests.building import a_record


def run(
    workload: Mapping[str, Any] | None = None,
    *,
    model: str = "Qwen/Qwen2.5-7B",
    environment: Mapping[str, Any] | None = None,
    requested: Mapping[str, Any] | None = None,
    observed: Mapping[str, Any] | None = None,
    workload_key: str = "w",
    **fields: Any,
) -> Record:
    """A run with the options of its workload and what it showed of itself."""
    return a_record(
        requested=Requested(
            model_id=model,
            workload={"type": "vllm-bench", "mode": "serve"} | dict(workload or {}),
            environment={"type": "host"} | dict(environment or {}),
            **(requested or {}),
        ),
        observed=Observed(**(observed or {})),
        workload=workload_key,
        **fields,
    )


@pytest.mark.parametrize(
    ("model_id", "name"),
    [
        ("Qwen/Qwen2.5-7B", "Qwen2.5-7B"),
        ("/data/models/Qwen2.5-7B/", "Qwen2.5-7B"),
        ("Meta-Llama-3-8B-Q4_K_M.gguf", "Meta-Llama-3-8B"),
        ("C:\\models\\Meta-Llama-3-8B.IQ2_XS.gguf", "Meta-Llama-3-8B"),
        ("gpt-oss-120b-mxfp4-00001-of-00003.gguf", "gpt-oss-120b"),
        ("llama-f16.gguf", "llama"),
        # Only the name of a file of weights ends in their format.
        ("TheBloke/Llama-2-7B-Q4_0", "Llama-2-7B-Q4_0"),
    ],
)
def test_a_model_has_its_own_name(model_id: str, name: str) -> None:
    assert setup_of(run(model=model_id)).model == name


@pytest.mark.parametrize(
    ("observed", "architecture", "path", "words"),
    [
        (
            {"quantization": "Q4_K - Medium"},
            {"dtype": "bfloat16"},
            None,
            "Q4_K - Medium",
        ),
        ({"quantization": "mxfp4", "dtype": "bfloat16"}, {}, None, "MXFP4"),
        ({"dtype": "bfloat16"}, {"quantization": "awq"}, "/m-Q8_0.gguf", "BF16"),
        ({}, {"quantization": "awq"}, "/m-q8_0.gguf", "Q8_0"),
        ({}, {"quantization": "awq", "dtype": "float16"}, "/m", "AWQ"),
        ({}, {"dtype": "float32"}, None, "FP32"),
        ({}, {}, None, None),
    ],
)
def test_the_format_of_the_weights_is_what_the_best_authority_says(
    observed: dict[str, Any],
    architecture: dict[str, Any],
    path: str | None,
    words: str | None,
) -> None:
    facts = Architecture(source="matrix", **architecture)
    requested = {"architecture": facts, "model_path": path}
    assert setup_of(run(observed=observed, requested=requested)).quantization == words


def test_without_any_fact_about_the_model_its_format_is_unknown() -> None:
    assert setup_of(run()).quantization is None
    assert setup_of(run()).parameters is None


def test_parameters_are_those_observed_before_those_requested() -> None:
    requested = {"architecture": Architecture(source="matrix", parameters=8)}
    assert setup_of(run(requested=requested)).parameters == 8
    assert (
        setup_of(run(requested=requested, observed={"parameters": 7})).parameters == 7
    )


@pytest.mark.parametrize(
    ("workload", "engine"),
    [
        ({"type": "llama-bench", "mode": None}, "llama.cpp"),
        ({"type": "trtllm-bench", "mode": "throughput"}, "TensorRT-LLM"),
        ({"type": "vllm-bench", "mode": "latency"}, "vLLM"),
        # A client can talk to any server.
        ({"type": "vllm-bench", "mode": "serve"}, None),
        ({"type": "openai-endpoint", "mode": None}, None),
    ],
)
def test_a_tool_names_its_engine_only_where_it_has_one(
    workload: dict[str, Any], engine: str | None
) -> None:
    assert setup_of(run(workload)).engine == engine
    assert setup_of(run(workload, observed={"engine": "SGLang"})).engine == "SGLang"


def test_the_version_comes_from_the_run_then_its_packages_then_its_image() -> None:
    packages = {"vllm": "0.23.0", "tensorrt_llm": "1.0"}
    made = Reproducibility(sparkpub_version="0", packages=packages)
    image = {
        "environment": {"type": "docker", "image": "host:5000/a/vllm:v0.22@sha256:0"}
    }
    seen = {"engine": "vLLM", "engine_version": "0.24.0"}
    assert (
        setup_of(run(observed=seen, reproducibility=made, **image)).engine_version
        == "0.24.0"
    )
    named = {"engine": "vLLM"}
    assert (
        setup_of(run(observed=named, reproducibility=made, **image)).engine_version
        == "0.23.0"
    )
    other = {"engine": "TensorRT-LLM"}
    assert setup_of(run(observed=other, reproducibility=made)).engine_version == "1.0"
    assert setup_of(run(observed=named, **image)).engine_version == "image v0.22"
    assert setup_of(run(observed=named)).engine_version is None


@pytest.mark.parametrize("image", ["a/vllm:latest", "a/vllm", "host:5000/vllm"])
def test_a_tag_that_says_nothing_is_no_version(image: str) -> None:
    record = run(environment={"type": "docker", "image": image})
    assert setup_of(record).engine_version is None


def test_a_machine_has_the_name_of_the_catalogue_else_of_its_gpus_else_of_its_cpu() -> (
    None
):
    gpu = Gpu(name="NVIDIA RTX 6000")
    spark = Machine(kind="dgx-spark", gpus=(gpu,))
    assert setup_of(run(machine=spark)).machine == "NVIDIA DGX Spark (GB10)"
    assert setup_of(run(machine=Machine(gpus=(gpu,)))).machine == "NVIDIA RTX 6000"
    pair = Machine(gpus=(gpu, gpu), cpu="EPYC")
    assert setup_of(run(machine=pair)).machine == "2 × NVIDIA RTX 6000"
    assert setup_of(run(machine=Machine(cpu="EPYC"))).machine == "EPYC"
    seen = {"device": "Apple M4"}
    assert setup_of(run(observed=seen)).machine == "Apple M4"
    assert setup_of(run()).machine is None


def test_random_weights_are_what_the_run_showed_before_what_was_asked() -> None:
    asked = {"random_weights": True}
    assert setup_of(run(requested=asked)).random_weights
    assert not setup_of(
        run(requested=asked, observed={"random_weights": False})
    ).random_weights


# -- load --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "at_once"),
    [
        ({"concurrency": 8}, 8),
        ({"max_concurrency": 4}, 4),
        # The server's largest batch is a setting, not the load that a client makes.
        ({"max_batch_size": 64}, None),
        ({"mode": "latency", "batch_size": 2}, 2),
        ({"type": "llama-bench", "mode": None, "n_batch": 2048}, 1),
        ({"type": "trtllm-bench", "mode": "latency", "max_batch_size": 8}, 1),
        ({"type": "trtllm-bench", "mode": "throughput", "max_batch_size": 8}, 8),
        (
            {
                "type": "trtllm-bench",
                "mode": "throughput",
                "max_batch_size": 8,
                "concurrency": 4,
            },
            4,
        ),
        ({"type": "generate", "mode": None, "batch_size": 16}, 16),
        ({}, None),
    ],
)
def test_how_many_requests_are_in_flight(
    workload: dict[str, Any], at_once: int | None
) -> None:
    assert load_of(run(workload)).at_once == at_once


def test_the_load_is_what_was_asked_else_the_observed_means() -> None:
    asked = {"input_tokens": 512, "output_tokens": 128, "concurrency": 8, "depth": 4096}
    seen = {"input_tokens_mean": 511.6, "output_tokens_mean": 100.2}
    load = load_of(run(asked, observed=seen))
    assert (load.input_tokens, load.output_tokens, load.depth) == (512, 128, 4096)
    assert load.label == "512 tokens in, 128 tokens out, 8 at once, 4,096 in context"
    assert load.lengths == "512 → 128"
    assert load.is_known
    load = load_of(run(observed=seen))
    assert (load.input_tokens, load.output_tokens, load.depth) == (512, 100, 0)


def test_a_load_that_nothing_says_is_not_known() -> None:
    load = load_of(run({"output_tokens": 128, "concurrency": 8}))
    assert not load.is_known
    assert load.label == "an unknown number of tokens in, 128 tokens out, 8 at once"
    assert load.lengths == "? → 128"
    load = load_of(run({"input_tokens": 1, "output_tokens": 128}))
    assert not load.is_known
    assert load.flow == "not recorded"
    assert load.label == "1 token in, 128 tokens out, an unknown number at once"


def test_a_prompt_alone_and_a_generation_alone_say_so() -> None:
    tool = {"type": "llama-bench", "mode": None}
    prompt = load_of(run(tool | {"input_tokens": 512, "output_tokens": 0}))
    assert prompt.label == "512 tokens in, 1 at once"
    generation = load_of(run(tool | {"input_tokens": 0, "output_tokens": 128}))
    assert generation.label == "128 tokens out, 1 at once"
    assert prompt.is_known
    assert generation.is_known


def test_requests_at_a_rate_and_all_at_once_are_loads_of_their_own() -> None:
    lengths = {"input_tokens": 512, "output_tokens": 128}
    rate = load_of(run(lengths | {"request_rate": 4, "requests": 100}))
    assert (rate.flow, rate.requests) == ("4.0 a second", None)
    burst = load_of(run(lengths | {"requests": 100}))
    assert (burst.flow, burst.is_known) == ("all 100 at once", True)
    seen = load_of(run(lengths, observed={"requests": 50}))
    assert seen.flow == "all 50 at once"
    assert load_of(run(lengths | {"concurrency": 8, "requests": 100})).requests is None


def test_a_tool_is_named_with_its_mode() -> None:
    assert load_of(run()).tool == "vllm-bench serve"
    assert load_of(run({"type": "llama-bench", "mode": None})).tool == "llama-bench"


def test_the_key_of_an_import_tells_loads_apart_that_its_options_do_not() -> None:
    imported = {"origin": Origin(title="elsewhere")}
    cached = run({"concurrency": 1}, workload_key="pp64-c1-cached-n10", **imported)
    assert load_of(cached).named == "pp64-c1-cached"
    own = run({"concurrency": 1}, workload_key="pp64-c1-cached-n10")
    assert load_of(own).named == ""
    declared = run(workload_key="serve-n8", specification="0" * 64, **imported)
    assert load_of(declared).named == ""
    # The key of llama-bench adds settings of the engine, which are what is ranked.
    tool = {"type": "llama-bench", "mode": None}
    assert load_of(run(tool, workload_key="pp512-k-q8-0", **imported)).named == ""

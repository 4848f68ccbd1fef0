"""What a run was made with, in one vocabulary for all tools."""

from collections.abc import Mapping
from typing import Any

import pytest

from sparkpub.record.record import (
    Architecture,
    Gpu,
    Machine,
    Observed,
    Record,
    Reproducibility,
    Requested,
)
from sparkpub.review.setup import setup_of
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


def test_the_version_comes_from_the_run_then_its_packages_then_its_image() -> None:
    packages = {"vllm": "0.23.0", "tensorrt_llm": "1.0"}
    made = {"reproducibility": Reproducibility(sparkpub_version="0", packages=packages)}
    image = {
        "environment": {"type": "docker", "image": "host:5000/a/vllm:v0.22@sha256:0"}
    }
    latest = {"environment": {"type": "docker", "image": "host:5000/vllm:latest"}}
    told: list[tuple[str, str | None, dict[str, Any], str | None]] = [
        ("vLLM", "0.24.0", made | image, "0.24.0"),
        ("vLLM", None, made | image, "0.23.0"),
        ("TensorRT-LLM", None, made, "1.0"),
        ("vLLM", None, image, "image v0.22"),
        ("vLLM", None, {}, None),
        ("vLLM", None, latest, None),
    ]
    for engine, said, fields, version in told:
        seen = {"engine": engine, "engine_version": said}
        assert setup_of(run(observed=seen, **fields)).engine_version == version


def test_a_machine_has_the_name_of_the_catalogue_else_of_its_gpus_else_of_its_cpu() -> (
    None
):
    gpu = Gpu(name="NVIDIA RTX 6000")
    spark = Machine(kind="dgx-spark", gpus=(gpu,))
    assert setup_of(run(machine=spark)).machine == "NVIDIA DGX Spark (GB10)"
    assert setup_of(run(machine=spark)).machine_in_short == "DGX Spark"
    assert setup_of(run(machine=Machine(gpus=(gpu,)))).machine == "NVIDIA RTX 6000"
    pair = Machine(gpus=(gpu, gpu), cpu="EPYC")
    assert setup_of(run(machine=pair)).machine == "2 × NVIDIA RTX 6000"
    assert setup_of(run(machine=Machine(cpu="EPYC"))).machine == "EPYC"
    seen = {"device": "Apple M4"}
    assert setup_of(run(observed=seen)).machine == "Apple M4"
    assert setup_of(run()).machine is None

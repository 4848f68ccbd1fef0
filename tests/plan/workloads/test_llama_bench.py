"""`llama-bench` from its JSON, old and new, alone or between other lines."""

import json
from typing import Any

import pytest

from sparkpub.plan.workloads import llama_bench
from sparkpub.plan.workloads.base import Case
from sparkpub.plan.workloads.llama_bench import LlamaBenchOptions
from sparkpub.record.errors import WorkloadError

COMMON = {
    "build_commit": "8e6f8bc8", "build_number": 6710, "cpu_info": "Cortex-X925", "gpu_info": "NVIDIA GB10",
    "backends": "CUDA", "model_filename": "/models/qwen.gguf", "model_type": "qwen2 7B BF16",
    "model_size": 15_231_233_024, "model_n_params": 7_615_616_512, "n_gpu_layers": 99, "flash_attn": True,
    "type_k": "f16", "load_mode": "mmap",
}  # fmt: skip
PROMPT = COMMON | {"n_prompt": 512, "n_gen": 0, "avg_ts": 2000.0, "samples_ns": [256_000_000], "samples_ts": [2000.0]}
GENERATION = COMMON | {
    "n_prompt": 0, "n_gen": 100, "avg_ts": 16.0, "samples_ns": [6_000_000_000, 6_500_000_000],
    "samples_ts": [16.7, 15.4],
}  # fmt: skip
LINES = f"ggml_cuda_init: found 1 CUDA devices\n{json.dumps(PROMPT)}\n{json.dumps(GENERATION)}\n"
ARRAY = f"ggml_cuda_init: found 1 CUDA devices\n{json.dumps([PROMPT, GENERATION], indent=2)}\nllama_perf: done\n"


@pytest.mark.parametrize("log", [LINES, ARRAY, json.dumps([PROMPT, GENERATION])], ids=["lines", "array", "file"])
def test_the_tests_are_found_wherever_they_stand(log: str) -> None:
    answer = llama_bench.parse(log.encode(), {}, None)
    assert answer.complete
    assert not answer.problems
    value = {name: metric.value for name, metric in answer.metrics.items()}
    assert value["prompt_throughput_tok_s"] == 2000.0
    assert value["output_throughput_tok_s"] == 16.0
    # 6.0 s and 6.5 s for 100 tokens: 60 and 65 ms each.
    assert value["tpot_min_ms"] == pytest.approx(60.0)
    assert value["tpot_mean_ms"] == pytest.approx(62.5)
    observed = answer.observed
    assert (observed.parameters, observed.weight_bytes) == (7_615_616_512, 15_231_233_024)
    assert (observed.engine_version, observed.device) == ("b6710 (8e6f8bc8)", "NVIDIA GB10")
    assert observed.measured_seconds == 12.5


def test_several_tests_of_a_kind_are_said() -> None:
    answer = llama_bench.parse(json.dumps([GENERATION, GENERATION | {"avg_ts": 17.0}]).encode(), {}, None)
    assert answer.metrics["output_throughput_tok_s"].value == 17.0
    assert answer.problems == ("2 tests in one run; the last of each kind counts",)


def test_the_command() -> None:
    def case(**changes: Any) -> Case:
        facts: dict[str, Any] = {"model_path": "/models/qwen.gguf", "random_weights": False} | changes
        return Case("qwen", "qwen", model_config=None, iteration=1, seed=1, **facts)

    argv = llama_bench.command(case(), LlamaBenchOptions(repetitions=3, extra_args=("--n-gpu-layers", "99"))).argv
    assert argv[:3] == ("llama-bench", "--model", "/models/qwen.gguf")
    assert argv[argv.index("--repetitions") + 1] == "3"
    assert argv[-2:] == ("--n-gpu-layers", "99")
    with pytest.raises(WorkloadError, match="GGUF"):
        llama_bench.command(case(random_weights=True), LlamaBenchOptions())

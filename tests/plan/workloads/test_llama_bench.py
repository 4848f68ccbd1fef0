"""`llama-bench` from its JSON, old and new, alone or between other lines.

The logs under `tests/data/logs/llama-bench` are of the real tool, build 11434: `b11434-h200.log` on an NVIDIA H200,
`b11434-cpu-depth.log` on two processor cores, with the options of `DEEP`.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sparkpub.plan.workloads import llama_bench
from sparkpub.plan.workloads.base import RunCase
from sparkpub.plan.workloads.llama_bench import LlamaBenchOptions
from sparkpub.record.errors import WorkloadError

COMMON = {
    "build_commit": "8e6f8bc8",
    "build_number": 6710,
    "cpu_info": "Cortex-X925",
    "gpu_info": "NVIDIA GB10",
    "backends": "CUDA",
    "model_filename": "/models/qwen.gguf",
    "model_type": "qwen2 7B BF16",
    "model_size": 15_231_233_024,
    "model_n_params": 7_615_616_512,
    "n_gpu_layers": 99,
    "flash_attn": True,
    "type_k": "f16",
    "load_mode": "mmap",
}
PROMPT = COMMON | {
    "n_prompt": 512,
    "n_gen": 0,
    "avg_ts": 2000.0,
    "samples_ns": [256_000_000, 256_000_000],
    "samples_ts": [2000.0, 2000.0],
}
GENERATION = COMMON | {
    "n_prompt": 0,
    "n_gen": 100,
    "avg_ts": 16.02565,
    "samples_ns": [6_000_000_003, 6_499_999_997],
    "samples_ts": [16.6667, 15.3846],
}
LINES = f"ggml_cuda_init: found 1 CUDA devices\n{json.dumps(PROMPT)}\n{json.dumps(GENERATION)}\n"
ARRAY = f"ggml_cuda_init: found 1 CUDA devices\n{json.dumps([PROMPT, GENERATION], indent=2)}\nllama_perf: done\n"


@pytest.mark.parametrize(
    "log",
    [LINES, ARRAY, json.dumps([PROMPT, GENERATION])],
    ids=["lines", "array", "file"],
)
def test_the_tests_are_found_wherever_they_stand(log: str) -> None:
    answer = llama_bench.parse(log.encode(), {}, None)
    assert answer.complete
    assert not answer.problems
    value = {name: metric.value for name, metric in answer.metrics.items()}
    assert value["prompt_throughput_tok_s"] == 2000.0
    assert value["output_throughput_tok_s"] == 16.02565
    # 6.0 s and 6.5 s for 100 tokens: 60 and 65 ms each.
    assert value["tpot_min_ms"] == pytest.approx(60.0)
    assert value["tpot_mean_ms"] == pytest.approx(62.5)
    observed = answer.observed
    assert (observed.parameters, observed.weight_bytes) == (
        7_615_616_512,
        15_231_233_024,
    )
    assert (observed.engine_version, observed.device) == (
        "b6710 (8e6f8bc8)",
        "NVIDIA GB10",
    )
    assert observed.measured_seconds == 12.5 + 2 * 0.256
    assert {metric.source for metric in answer.metrics.values()} == {"log"}
    assert (
        llama_bench.parse(b"", {"report": log.encode()}, None)
        .metrics["tpot_p50_ms"]
        .source
        == "report"
    )


LOGS = Path(__file__).parents[2] / "data/logs/llama-bench"
H200 = (LOGS / "b11434-h200.log").read_bytes()
DEEP = LlamaBenchOptions(
    input_tokens=64,
    output_tokens=16,
    depth=128,
    repetitions=3,
    warmup=1,
    n_batch=64,
    n_ubatch=32,
    flash_attention=True,
    cache_type_k="q8_0",
    cache_type_v="q8_0",
    threads=2,
)


def test_a_repetition_of_warm_up_does_not_count() -> None:
    options = LlamaBenchOptions(repetitions=4, warmup=1)
    answer = llama_bench.parse(H200, {}, options)
    value = {name: metric.value for name, metric in answer.metrics.items()}
    assert value["prompt_throughput_tok_s"] == pytest.approx(
        (25876.6 + 25738.8 + 25799.2 + 25828.3) / 4
    )
    assert value["output_throughput_tok_s"] == pytest.approx(
        (209.237 + 209.147 + 209.261 + 209.201) / 4
    )
    assert value["tpot_max_ms"] == pytest.approx(612.008721 / 128)
    assert answer.samples["prompt_throughput_tok_s"] == (
        25876.6,
        25738.8,
        25799.2,
        25828.3,
    )
    # Without the first repetition of each: 79.347219 ms of the prompts, 2,447.284281 ms of generation.
    assert answer.observed.measured_seconds == pytest.approx(0.079347219 + 2.447284281)
    assert answer.observed.requests == 4
    assert not answer.problems


def test_what_a_real_run_says_of_its_engine_and_model() -> None:
    observed = llama_bench.parse(H200, {}, None).observed
    assert (observed.engine, observed.engine_version, observed.device) == (
        "llama.cpp",
        "b11434",
        "NVIDIA H200",
    )
    assert (observed.parameters, observed.weight_bytes) == (
        8_030_261_248,
        16_061_054_976,
    )
    assert (observed.dtype, observed.quantization, observed.kv_cache_dtype) == (
        "float16",
        None,
        "f16",
    )
    assert (observed.input_tokens_mean, observed.output_tokens_mean) == (512, 128)
    # Nothing that the tool prints tells random weights from trained ones.
    assert observed.random_weights is None


def test_the_lines_that_begin_and_end_the_measurement_are_in_a_real_log() -> None:
    command = llama_bench.command(a_case(), DEEP)
    assert command.measured_from is not None
    assert command.measured_until is not None
    printed = (LOGS / "b11434-cpu-depth.log").read_text().splitlines()
    begins = [line for line in printed if re.search(command.measured_from, line)]
    assert begins == ["llama-bench: benchmark 1/2: prompt run 2/4"]
    ends = [
        index
        for index, line in enumerate(printed)
        if re.search(command.measured_until, line)
    ]
    assert ends[-1] == len(printed) - 1
    only_generation = llama_bench.command(
        a_case(), LlamaBenchOptions(input_tokens=0, warmup=0)
    ).measured_from
    assert only_generation is not None
    assert re.search(only_generation, "llama-bench: benchmark 1/1: generation run 1/5")


def test_tests_and_repetitions_that_are_missing_are_said() -> None:
    lines = H200.splitlines(keepends=True)
    options = LlamaBenchOptions(repetitions=4)
    assert llama_bench.parse(b"".join(lines[:3]), {}, options).problems == (
        "the test of generation is missing",
    )
    assert llama_bench.parse(lines[3], {}, options).problems == (
        "the test of the prompt is missing",
    )
    assert not llama_bench.parse(
        lines[3], {}, LlamaBenchOptions(repetitions=4, input_tokens=0)
    ).problems
    more = llama_bench.parse(
        lines[3], {}, LlamaBenchOptions(repetitions=5, input_tokens=0)
    )
    assert more.problems == ("5 of 6 repetitions in a test",)
    mixed = json.dumps(COMMON | {"n_prompt": 8, "n_gen": 8, "avg_ts": 1.0}).encode()
    answer = llama_bench.parse(mixed, {}, None)
    assert not answer.complete
    assert answer.problems == (
        "only tests that mix prompt and generation: no rate of either alone",
    )


def a_case(**changes: Any) -> RunCase:
    facts: dict[str, Any] = {
        "model_path": "/models/qwen.gguf",
        "random_weights": False,
    } | changes
    return RunCase("qwen", "qwen", model_config=None, iteration=1, seed=1, **facts)


def test_the_command() -> None:
    argv = llama_bench.command(
        a_case(), LlamaBenchOptions(repetitions=3, extra_args=("--split-mode", "none"))
    ).argv
    assert argv[:3] == ("llama-bench", "--model", "/models/qwen.gguf")
    assert (
        argv[argv.index("--repetitions") + 1] == "4"
    )  # three that count, and one of warm-up
    assert argv[-2:] == ("--split-mode", "none")
    assert "--flash-attn" not in argv
    assert "--batch-size" not in argv
    with pytest.raises(WorkloadError, match="GGUF"):
        llama_bench.command(a_case(model_path=None), LlamaBenchOptions())
    with pytest.raises(ValidationError, match="nothing would be measured"):
        LlamaBenchOptions(input_tokens=0, output_tokens=0)


def test_every_option_is_on_the_command_line() -> None:
    text = " ".join(llama_bench.command(a_case(random_weights=True), DEEP).argv)
    for words in (
        "--n-prompt 64",
        "--n-gen 16",
        "--n-depth 128",
        "--batch-size 64",
        "--ubatch-size 32",
        "--flash-attn 1",
        "--cache-type-k q8_0",
        "--cache-type-v q8_0",
        "--threads 2",
        "--output jsonl --progress",
    ):
        assert words in text
    off = " ".join(
        llama_bench.command(
            a_case(), LlamaBenchOptions(flash_attention=False, gpu_layers=0)
        ).argv
    )
    assert "--flash-attn 0" in off
    assert "--n-gpu-layers 0" in off

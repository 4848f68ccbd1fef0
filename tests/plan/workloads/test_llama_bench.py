"""`llama-bench` from its JSON, old and new, alone or between other lines.

The logs under `tests/data/logs/llama-bench` are of the real tool, build 11434: `b11434-h200.log` on an NVIDIA H200,
`b11434-cpu-depth.log` on two processor cores, with the options of `DEEP`.
"""

import json

from sparkpub.plan.workloads import llama_bench
from sparkpub.plan.workloads.llama_bench import LlamaBenchOptions

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


def test_tests_that_are_missing_are_said() -> None:
    options = LlamaBenchOptions(repetitions=1)
    for test, said in (
        (PROMPT, "the test of generation is missing"),
        (GENERATION, "the test of the prompt is missing"),
    ):
        answer = llama_bench.parse(json.dumps(test).encode(), {}, options)
        assert answer.problems == (said,)
    mixed = json.dumps(COMMON | {"n_prompt": 8, "n_gen": 8, "avg_ts": 1.0}).encode()
    answer = llama_bench.parse(mixed, {}, None)
    assert not answer.complete
    assert answer.problems == (
        "only tests that mix prompt and generation: no rate of either alone",
    )

"""What engines print of themselves.

`b11434-*.log` is llama-server's of that build on a CPU: once with its defaults, and once with

    llama-server -lv 4 -fa on -ctk q8_0 -ctv q8_0 -np 8 -b 512 -ub 256 -c 4096 --threads 2

Each answered one prompt of 13 tokens twice, with 12 tokens: the second time 12 of the 13 lay in the slot.
"""

from pathlib import Path
from typing import Any

import pytest

from sparkpub.plan.workloads import llama_server
from sparkpub.tools import engine

LOGS = Path(__file__).parents[1] / "data/logs/llama-server"
LV4 = (LOGS / "b11434-lv4.log").read_text().splitlines()
DEFAULT = (LOGS / "b11434-default.log").read_text().splitlines()
# src/llama-model.cpp:1926, and common.cpp of builds that print everything.
OLDER = [
    "build: 6710 (8e6f8bc8) with cc (GCC) 14 for aarch64-linux-gnu",
    "srv    load_model: loading model 'm.gguf'",
    "load_tensors: offloaded 33/33 layers to GPU",
    "print_info: file type   = Q4_K - Medium",
    "print_info: file size   = 4.58 GiB (4.89 BPW)",
    "srv          init: initializing slots, n_slots = 1",
]
# As vLLM 0.24 prints it, shortened.
VLLM = [
    "INFO 11-21 16:00:28 [vllm.py:1006] Asynchronous scheduling is disabled.",
    "INFO 11-21 16:00:29 [core.py:114] Initializing a V1 LLM engine (v0.24.0) with config: model='/m', "
    "speculative_config=None, dtype=torch.bfloat16, load_format=dummy, quantization=None, revision=None, "
    "tokenizer_revision=None, compilation_config={'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>}",
    "INFO 11-21 16:00:39 [gpu_model_runner.py:2653] Model loading took 14.2488 GiB and 2.1 seconds",
    "INFO 11-21 16:00:49 [gpu_worker.py:298] Available KV cache memory: 53.41 GiB",
    "INFO 11-21 16:00:49 [kv_cache_utils.py:1087] GPU KV cache size: 1,000,000 tokens",
]
SAID: list[tuple[list[str], dict[str, Any], dict[str, str]]] = [
    (
        LV4,
        {
            "engine": "llama.cpp",
            "engine_version": "b11434",
            "model_path": "models/tiny-walk-f16.gguf",
            "batch_size": 8,
            "weight_bytes": round(13.51 * 2**20),
            "kv_cache_dtype": "q8_0",
            "dtype": "float16",
        },
        {
            "n_slots": "8",
            "n_ctx_slot": str(4096 // 8),
            "kv_unified": "false",
            "n_batch": "512",
            "n_ubatch": "256",
            "flash_attn": "enabled",
            "type_k": "q8_0",
            "type_v": "q8_0",
            "n_threads": "2",
            "load_mode": "mmap",
            "graph_reuse": "on",
        },
    ),
    (
        OLDER,
        {
            "engine": "llama.cpp",
            "engine_version": "b6710 (8e6f8bc8)",
            "model_path": "m.gguf",
            "batch_size": 1,
            "weight_bytes": round(4.58 * 2**30),
            "quantization": "Q4_K - Medium",
        },
        {"gpu_layers": "33/33", "n_slots": "1"},
    ),
    (
        VLLM,
        {
            "engine": "vLLM",
            "engine_version": "0.24.0",
            "model_path": "/m",
            "dtype": "bfloat16",
            "random_weights": True,
            "speculative_decoding": False,
            "weight_bytes": round(14.2488 * 2**30),
            # 53.41 x 2^30 / 1,000,000 = 57348.6 bytes a token.
            "kv_bytes_per_token": 57_349,
        },
        {
            "load_format": "dummy",
            "revision": "None",
            "cudagraph_mode": "FULL_AND_PIECEWISE",
            "async_scheduling": "disabled",
            "speculative_config": "none",
        },
    ),
    (["a program says model='/models/tiny'"], {}, {}),
]


@pytest.mark.parametrize(("log", "facts", "settings"), SAID)
def test_an_engine_says_what_decides_its_speed(
    log: list[str], facts: dict[str, Any], settings: dict[str, str]
) -> None:
    said = dict(engine.printed(log).identity)
    assert said.pop("settings", {}) == settings
    assert said == facts


def test_what_a_server_says_by_default_and_twice() -> None:
    said = engine.printed(DEFAULT).identity
    assert (said["batch_size"], said["settings"]["n_slots"]) == (4, "4")
    assert "flash_attn" not in said["settings"]
    again = [*VLLM, VLLM[2].replace("14.2488", "15.5")]
    assert engine.printed(again).metrics["weights_gib"].value == 15.5


@pytest.mark.parametrize("log", [DEFAULT, LV4])
def test_prompts_that_lay_in_a_slot_are_counted(log: list[str]) -> None:
    hits = llama_server.cache_hits(log)["prefix_cache_hit_percent"].value
    assert hits == pytest.approx(100 * 12 / 26)
    assert llama_server.cache_hits(["INFO Prefix cache hit rate: 12.1%"]) == {}

"""What llama-server printed, build 11434 on a CPU: once with its defaults, and once with

    llama-server -lv 4 -fa on -ctk q8_0 -ctv q8_0 -np 8 -b 512 -ub 256 -c 4096 --threads 2

Each answered one prompt of 13 tokens twice, with 12 tokens: the second time 12 of the 13 lay in the slot.
"""

from pathlib import Path

import pytest

from sparkpub.plan.workloads import llama_server, vllm_bench

LOGS = Path(__file__).parents[2] / "data/logs/llama-server"


def lines(name: str) -> list[str]:
    return (LOGS / name).read_text().splitlines()


def test_all_that_the_server_was_told_is_read() -> None:
    said = llama_server.identity(lines("b11434-lv4.log"))
    settings = said.pop("settings")
    assert said == {
        "engine": "llama.cpp",
        "engine_version": "b11434",
        "model_path": "models/tiny-walk-f16.gguf",
        "batch_size": 8,
        "weight_bytes": round(13.51 * 2**20),
        "kv_cache_dtype": "q8_0",
        "dtype": "float16",
    }
    assert settings == {
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
    }


def test_by_default_it_says_its_slots() -> None:
    said = llama_server.identity(lines("b11434-default.log"))
    assert said["batch_size"] == 4
    assert said["settings"]["n_slots"] == "4"
    assert "flash_attn" not in said["settings"]


def test_layers_on_the_gpu_and_older_lines_are_read() -> None:
    # src/llama-model.cpp:1926, and common.cpp of builds that print everything.
    said = llama_server.identity(
        [
            "build: 6710 (8e6f8bc8) with cc (GCC) 14 for aarch64-linux-gnu",
            "srv    load_model: loading model 'm.gguf'",
            "load_tensors: offloaded 33/33 layers to GPU",
            "print_info: file type   = Q4_K - Medium",
            "print_info: file size   = 4.58 GiB (4.89 BPW)",
            "srv          init: initializing slots, n_slots = 1",
        ]
    )
    assert said["settings"] == {"gpu_layers": "33/33", "n_slots": "1"}
    assert said["engine_version"] == "b6710 (8e6f8bc8)"
    assert said["quantization"] == "Q4_K - Medium"
    assert said["weight_bytes"] == round(4.58 * 2**30)


@pytest.mark.parametrize("name", ["b11434-default.log", "b11434-lv4.log"])
def test_prompts_that_lay_in_a_slot_are_counted(name: str) -> None:
    hits = llama_server.cache_hits(lines(name))["prefix_cache_hit_percent"].value
    assert hits == pytest.approx(100 * 12 / 26)


def test_another_servers_log_says_nothing() -> None:
    assert llama_server.identity(["INFO model='/models/tiny'"]) == {}
    assert llama_server.cache_hits(["INFO Prefix cache hit rate: 12.1%"]) == {}


def test_a_client_of_vllm_reads_what_llama_server_printed() -> None:
    log = (LOGS / "b11434-lv4.log").read_bytes()
    observed = vllm_bench.parse(log, {}, None).observed
    assert observed.engine == "llama.cpp"
    assert observed.batch_size == 8
    assert observed.settings["flash_attn"] == "enabled"

"""Engines as stand-ins through the whole collector: what they load, what they print, how they end."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from tests.collect.collecting import OPEN_GATES, a_matrix, records, run

STANDIN = str(Path(__file__).parents[1] / "data/standins/trtllm-bench")
SHAPE = {
    "model_type": "qwen2",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "vocab_size": 500,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def a_model(folder: Path, layers: int, weight_bytes: int) -> str:
    """A model folder with one tensor; the number of layers decides the bytes of KV cache per token."""
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps(SHAPE | {"num_hidden_layers": layers})
    )
    header = json.dumps(
        {
            "w": {
                "dtype": "U8",
                "shape": [weight_bytes],
                "data_offsets": [0, weight_bytes],
            }
        }
    ).encode()
    with (folder / "model.safetensors").open("wb") as handle:
        handle.write(struct.pack("<Q", len(header)) + header)
        handle.truncate(
            8 + len(header) + weight_bytes
        )  # a sparse file: the size is what counts
    return str(folder)


def collected(tmp_path: Path, variables: dict[str, str], **workload: Any) -> Path:
    small, large = (
        a_model(tmp_path / "small", 4, 2**30),
        a_model(tmp_path / "large", 12, 3 * 2**30),
    )
    options = {
        "type": "trtllm-bench",
        "executable": STANDIN,
        "requests": 8,
        "input_tokens": 16,
        "output_tokens": 8,
    }
    matrix = a_matrix(
        models={
            "small": {"id": "x/small", "path": small},
            "large": {"id": "x/large", "path": large},
        },
        environments={
            "native": {
                "type": "host",
                "env": {name: text.format(small) for name, text in variables.items()},
            }
        },
        workloads={"throughput": options | workload},
        gates=OPEN_GATES,
        iterations=1,
    )
    run(matrix, tmp_path / "data")
    return tmp_path / "data"


def of_model(data: Path, model: str) -> set[str]:
    return {record.run_id for record in records(data) if record.model == model}


def suspects(data: Path) -> set[str]:
    """Run ids that the check `identity` finds, as errors."""
    findings = [
        item
        for item in review(load(data)).findings
        if item.check == "identity" and item.severity == "error"
    ]
    return {
        run
        for item in findings
        for run in [item.run, *item.evidence.get("runs", ())]
        if run
    }


def test_an_engine_that_ignores_the_model_path_is_found_out(tmp_path: Path) -> None:
    """The published study's runner scripts did this: whatever model was asked for, the first one ran."""
    data = collected(tmp_path, {"STANDIN_MODEL": "{}", "STANDIN_FORMAT": "0.17"})
    assert {record.status for record in records(data)} == {"ok"}
    assert {record.observed.settings["model"] for record in records(data)} == {
        "x/small",
        "x/large",
    }
    assert suspects(data) == of_model(data, "large")
    assert len(of_model(data, "large")) == 1
    for record in records(data):
        noted = any(
            "observed identity is not the requested one" in event.text
            for event in record.events
        )
        assert noted is (record.model == "large")


def test_an_engine_that_loads_what_was_asked_for_is_not_accused(tmp_path: Path) -> None:
    data = collected(tmp_path, {"STANDIN_FORMAT": "1.3"}, kv_cache_tokens=4096)
    assert {record.status for record in records(data)} == {"ok"}
    assert suspects(data) == set()
    # 8 requests in one batch: a first step of 10 ms and 7 of 1 ms make 17 ms for 64 tokens.
    assert {
        round(record.value("output_throughput_tok_s") or 0) for record in records(data)
    } == {round(64 / 0.017)}
    for record in records(data):
        assert {item.role for item in record.evidence} == {
            "log",
            "telemetry",
            "report",
            "requests",
        }
        assert record.value("request_latency_p99_ms") == pytest.approx(17.0)

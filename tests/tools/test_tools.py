"""What tools of late 2026 write, in the forms that their sources give, and the figures in it; each as arithmetic."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.errors import ImportFormatError
from sparkpub.tools.reader import read
from tests.collect.imports.importing import imported

LLAMA_SERVER = {
    "model": "Qwen3.6-27B-Q4_K_M.gguf",
    "created": 1795275365,
    "timings": {
        "prompt_n": 512,
        "prompt_per_second": 1024.0,
        "predicted_n": 128,
        "predicted_per_second": 32.0,
        "draft_n": 80,
        "draft_n_accepted": 60,
    },
}
# 128 tokens in 4 s, and 512 in half a second, after 2 s of loading.
OLLAMA = {
    "model": "qwen3.8:27b",
    "created_at": "2026-08-18T10:00:00.123456789Z",
    "total_duration": 6_500_000_000,
    "load_duration": 2_000_000_000,
    "prompt_eval_count": 512,
    "prompt_eval_duration": 500_000_000,
    "eval_count": 128,
    "eval_duration": 4_000_000_000,
}
SERVEBENCH = {
    "schema_version": 1,
    "label": "first",
    "config": {
        "model": "qwen",
        "endpoint": "chat",
        "input_len": 256,
        "output_len": 128,
        "trace": None,
    },
    "environment": {
        "servebench_version": "1.1.3",
        "timestamp": "2026-11-20T10:00:00+00:00",
        "engine": "LM Studio",
    },
    "levels": [
        {
            "mode": "concurrency",
            "value": users,
            "summary": {
                "completed": 15,
                "failed": 5,
                "duration": 8.0,
                "request_throughput": 2.0,
                "output_throughput": 240.0,
                "goodput": 1.5,
                "ttft": {"mean": 0.25, "p50": 0.2},
            },
        }
        for users in (1.0, 8.0)
    ],
}
TOOL_EVAL = {
    "schema_version": "1",
    "tool_eval_bench_version": "3.0.0",
    "final_score": 87,
    "config": {"model": "qwen"},
    "scores": {"final_score": 87, "completion_rate": 98.6},
}
VLLM = {
    "date": "20261120-100000",
    "backend": "openai-chat",
    "model_id": "qwen",
    "num_prompts": 10,
    "completed": 10,
    "output_throughput": 100.0,
    "request_goodput": 0.5,
    "spec_decode_acceptance_rate": 50.0,
    "spec_decode_acceptance_length": 2.5,
    "spec_decode_per_position_acceptance_rates": [0.9, 0.6],
}


@pytest.mark.parametrize(
    ("tool", "document", "workloads", "figures"),
    [
        (
            "llama-server",
            LLAMA_SERVER,
            {"answer-in512"},
            {
                "output_throughput_tok_s": 32.0,
                "prompt_throughput_tok_s": 1024.0,
                "draft_acceptance_percent": 75.0,
            },
        ),
        (
            "ollama",
            OLLAMA,
            {"answer-in512"},
            {
                "output_throughput_tok_s": 32.0,
                "prompt_throughput_tok_s": 1024.0,
                "model_load_seconds": 2.0,
            },
        ),
        (
            "servebench",
            SERVEBENCH,
            {"chat-in256-out128-c1", "chat-in256-out128-c8"},
            {
                "output_throughput_tok_s": 240.0,
                "request_throughput_req_s": 2.0,
                "request_goodput_req_s": 1.5,
                "ttft_mean_ms": 250.0,
                "ttft_p50_ms": 200.0,
                "failed_requests_percent": 25.0,
            },
        ),
        (
            "tool-eval-bench",
            TOOL_EVAL,
            {"tool-calls"},
            {"tool_calls_score_percent": 87.0, "completed_scenarios_percent": 98.6},
        ),
        (
            "vllm-bench",
            VLLM,
            {"serve-openai-chat-n10"},
            {
                "output_throughput_tok_s": 100.0,
                "request_goodput_req_s": 0.5,
                "draft_acceptance_percent": 50.0,
                "acceptance_length_tokens": 2.5,
                "draft_acceptance_position_1_percent": 90.0,
                "draft_acceptance_position_2_percent": 60.0,
            },
        ),
    ],
)
def test_a_tools_own_file_is_read_for_what_it_is(
    tool: str,
    document: dict[str, Any],
    workloads: set[str],
    figures: dict[str, float],
    tmp_path: Path,
) -> None:
    source = tmp_path / "in/run.json"
    source.parent.mkdir()
    source.write_text(json.dumps(document))
    outcome, records = imported(source.parent, tmp_path / "data")
    assert (outcome.refused, outcome.skipped) == ([], [])
    assert {record.workload for record in records} == workloads
    assert {record.requested.workload["type"] for record in records} == {tool}
    for record in records:
        found = {name: record.value(name) for name in record.metrics}
        known = {name: value for name, value in found.items() if value is not None}
        assert known == pytest.approx(figures), known
        report = record.file("report")
        assert report is not None
        kept = json.loads((tmp_path / "data/c" / report.path).read_text())
        assert read(kept, [tool]) is not None


def test_the_turns_of_a_conversation_are_kept_with_its_summary(tmp_path: Path) -> None:
    """`profile_export.jsonl` was called a file of no known tool, and so was the summary of the warm-up."""
    fixture = Path(__file__).parents[1] / "data/imports/aiperf/turns-c2"
    outcome, (record,) = imported(fixture, tmp_path / "data")
    assert outcome.unread == []
    (left,) = outcome.skipped
    assert "other files" in left.reason
    kept = record.file("requests")
    assert kept is not None
    lines = (tmp_path / "data/c" / kept.path).read_text().splitlines()
    measured = [json.loads(line)["metadata"]["benchmark_phase"] for line in lines]
    assert measured.count("profiling") == 2 * 3  # of two conversations
    alone = tmp_path / "in/profile_export.jsonl"
    alone.parent.mkdir()
    alone.write_text("\n".join(lines))
    with pytest.raises(ImportFormatError, match="--preview"):
        imported(alone.parent, tmp_path / "alone")

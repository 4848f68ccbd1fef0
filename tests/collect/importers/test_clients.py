"""Results of clients that measure a server: AIPerf, SGLang's bench_serving, llama-benchy."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.importers import import_results
from sparkpub.collect.importers.base import Given
from sparkpub.collect.importers.writing import Outcome
from sparkpub.record.errors import UsageError
from sparkpub.record.record import Record
from sparkpub.record.store import read_folder

RESULTS = Path(__file__).parents[2] / "data/imports"


def imported(
    kind: str, source: Path, data: Path, **given: Any
) -> tuple[Outcome, dict[str, Record]]:
    """What became of a file or folder, and its records by workload."""
    outcome = import_results(
        kind, source, data, Given("c", **({"environment": "native"} | given))
    )
    stored = read_folder(data / "c") if (data / "c").is_dir() else []
    return outcome, {item.record.workload: item.record for item in stored}


@pytest.mark.parametrize("kind", ["aiperf", "sglang", "llama-benchy"])
def test_no_client_says_where_it_ran(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--environment"):
        imported(kind, RESULTS / kind, tmp_path, environment=None)


def test_aiperf(tmp_path: Path) -> None:
    outcome, records = imported("aiperf", RESULTS / "aiperf", tmp_path)
    folders = {
        "chat-in48-out12-c2-n10": "vllm-chat-stream-c2",
        "completions-in64-sd8-out16-rate5-n12": "vllm-completions-rate",  # without the summary of its warm-up
        "chat-whole-in32-out8-c4-n8": "vllm-nostream-c4",
    }
    assert set(records) == set(folders)
    assert outcome.lines() == ["3 imported, 0 skipped, 0 refused"]
    for workload, folder in folders.items():
        written = json.loads(
            (RESULTS / "aiperf" / folder / "profile_export_aiperf.json").read_text()
        )
        record = records[workload]
        assert record.model == "tiny-llama"
        assert (
            record.value("request_throughput_req_s")
            == written["request_throughput"]["avg"]
        )
        assert (
            record.value("output_throughput_tok_s")
            == written["output_token_throughput"]["avg"]
        )
        assert (
            record.value("request_latency_p99_ms") == written["request_latency"]["p99"]
        )
        assert record.observed.requests == written["request_count"]["avg"]
        assert record.started.value == written["start_time"][:19]
        assert record.started.zone == "unknown"
    streamed = json.loads(
        (RESULTS / "aiperf/vllm-chat-stream-c2/profile_export_aiperf.json").read_text()
    )
    assert (
        records["chat-in48-out12-c2-n10"].value("ttft_p50_ms")
        == streamed["time_to_first_token"]["p50"]
    )
    assert (
        "ttft_p50_ms" not in records["chat-whole-in32-out8-c4-n8"].metrics
    )  # an answer in one piece has none
    asked = records["completions-in64-sd8-out16-rate5-n12"].requested.workload
    assert asked == {
        "type": "openai-endpoint",
        "client": "aiperf",
        "requests": 12,
        "request_rate": 5.0,
        "input_tokens": 64,
        "output_tokens": 16,
    }


def test_aiperf_of_a_run_without_a_successful_request_or_a_known_load(
    tmp_path: Path,
) -> None:
    source = RESULTS / "aiperf/vllm-chat-stream-c2/profile_export_aiperf.json"
    document = json.loads(source.read_text())
    for name in (
        "request_count",
        "output_token_throughput",
        "request_latency",
        "time_to_first_token",
    ):
        del document[name]
    failed = tmp_path / "failed_aiperf.json"
    failed.write_text(json.dumps(document))
    _, records = imported("aiperf", failed, tmp_path / "failed")
    assert records["chat-in48-out12-c2-n10"].status == "failed"
    document = json.loads(source.read_text())
    del document["input_config"]
    failed.write_text(json.dumps(document))
    outcome, _ = imported("aiperf", failed, tmp_path / "unknown")
    assert [left.reason for left in outcome.refused] == [
        "it does not name the model; give --model"
    ]
    outcome, _ = imported("aiperf", failed, tmp_path / "unknown", model="m")
    assert [left.reason for left in outcome.refused] == [
        "it does not say what was asked for; name it with --workload"
    ]


SGLANG = {
    # Ours -> theirs.
    "output_throughput_tok_s": "output_throughput",
    "total_throughput_tok_s": "total_throughput",
    "request_throughput_req_s": "request_throughput",
    "ttft_mean_ms": "mean_ttft_ms",
    "ttft_p50_ms": "median_ttft_ms",
    "tpot_p99_ms": "p99_tpot_ms",
    "itl_p95_ms": "p95_itl_ms",
    "request_latency_p90_ms": "p90_e2e_latency_ms",
}


def test_sglang(tmp_path: Path) -> None:
    outcome, _ = imported(
        "sglang", RESULTS / "sglang/vllm-c2.jsonl", tmp_path / "nameless"
    )
    assert [left.reason for left in outcome.refused] == [
        "it does not name the model; give --model"
    ]
    _, records = imported("sglang", RESULTS / "sglang", tmp_path, model="tiny")
    lines = [
        json.loads(line)
        for name in ("vllm-c2", "vllm-sweep", "vllm-rate-details")
        for line in (RESULTS / f"sglang/{name}.jsonl").read_text().splitlines()
    ]
    loads = ["c2", "c1", "c4", "c8", "rate5"]
    assert set(records) == {f"serve-vllm-in64-out12-{load}" for load in loads}
    for load, written in zip(loads, lines, strict=True):
        record = records[f"serve-vllm-in64-out12-{load}"]
        for ours, theirs in SGLANG.items():
            assert record.value(ours) == written[theirs], ours
        assert record.value("measured_time_ms") == pytest.approx(
            1000 * written["duration"]
        )
        assert record.observed.requests == written["completed"]
        assert (
            record.observed.output_tokens_mean == 12
        )  # as asked for, not as encoded again
        assert record.requested.workload.get("request_rate") == (
            5.0 if load == "rate5" else None
        )
        assert (
            record.observed.engine is None
        )  # a client for vLLM says nothing of the server
        assert "last modification" in record.unavailable["started"]


def test_sglang_without_a_successful_request(tmp_path: Path) -> None:
    text = (
        (RESULTS / "sglang/vllm-c2.jsonl")
        .read_text()
        .replace('"completed": 8', '"completed": 0')
    )
    (tmp_path / "a.jsonl").write_text(text)
    _, records = imported("sglang", tmp_path / "a.jsonl", tmp_path / "data", model="m")
    (record,) = records.values()
    assert (record.status, record.metrics) == ("failed", {})


@pytest.mark.parametrize("name", ["depth-conc", "prefix-caching", "vllm"])
def test_llama_benchy(name: str, tmp_path: Path) -> None:
    source = RESULTS / f"llama-benchy/{name}.json"
    written = json.loads(source.read_text())
    _, records = imported("llama-benchy", source, tmp_path)
    assert len(records) == len(written["benchmarks"])
    for load in written["benchmarks"]:
        depth = f"-d{load['context_size']}" if load["context_size"] else ""
        cached = "-cached" if written["prefix_caching_enabled"] else ""
        phase = "-prefill" if load["is_context_prefill_phase"] else ""
        shape = f"pp{load['prompt_size']}-tg{load['response_size']}{depth}-c{load['concurrency']}"
        record = records[shape + cached + phase]
        assert record.value("output_throughput_tok_s") == load["tg_throughput"]["mean"]
        assert record.value("prompt_throughput_tok_s") == load["pp_throughput"]["mean"]
        assert record.value("ttft_mean_ms") == pytest.approx(load["e2e_ttft"]["mean"])
        assert (
            list(record.samples["output_throughput_tok_s"])
            == load["tg_throughput"]["values"]
        )
        assert record.started.value == written["timestamp"].replace(" ", "T")
        lost = len(load["tg_throughput"]["values"]) != len(
            load["pp_throughput"]["values"]
        )
        assert (
            any("leaves out what failed" in event.text for event in record.events)
            == lost
        )


def test_llama_benchy_says_nulls_where_all_requests_failed(tmp_path: Path) -> None:
    _, records = imported(
        "llama-benchy", RESULTS / "llama-benchy/failing.json", tmp_path
    )
    record = records["pp4096-tg16-c1"]
    assert (record.status, record.status_reason, record.metrics) == (
        "failed",
        "no request succeeded",
        {},
    )


def test_a_summary_of_sparkrun_does_not_say_enough(tmp_path: Path) -> None:
    outcome, records = imported(
        "llama-benchy", RESULTS / "llama-benchy/sparkrun-tiny.json", tmp_path
    )
    assert records == {}
    assert len(outcome.refused) == 1
    assert "whether prefixes were cached" in outcome.refused[0].reason

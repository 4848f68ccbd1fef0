"""Results of clients that measure a server: AIPerf, SGLang's bench_serving, llama-benchy, GuideLLM."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.importers import import_results
from sparkpub.collect.importers.base import (
    Given,
)
from sparkpub.collect.importers.writing import ImportOutcome
from sparkpub.plan.requested import load_of
from sparkpub.record.errors import UsageError
from sparkpub.record.record import Record
from sparkpub.record.store import read_folder
from sparkpub.review.checks import review
from sparkpub.review.dataset import load as load_data
from sparkpub.tools.asked import as_key

RESULTS = Path(__file__).parents[2] / "data/imports"


def imported(
    kind: str, source: Path, data: Path, **given: Any
) -> tuple[ImportOutcome, dict[str, Record]]:
    """What became of a file or folder, and its records by workload."""
    outcome = import_results(
        kind, source, data, Given("c", **({"environment": "native"} | given))
    )
    stored = read_folder(data / "c") if (data / "c").is_dir() else []
    return outcome, {item.record.workload: item.record for item in stored}


@pytest.mark.parametrize("kind", ["aiperf", "guidellm", "sglang", "llama-benchy"])
def test_no_client_says_where_it_ran(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--environment"):
        imported(kind, RESULTS / kind, tmp_path, environment=None)


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
    _, records = imported("aiperf", failed, tmp_path / "unknown", model="m")
    (record,) = records.values()  # named after its folder and itself
    assert record.workload.startswith(as_key(f"{tmp_path.name}-failed-aiperf"))
    assert "named after the file" in record.events[0].text


def test_sglang_says_in_its_details_which_requests_failed(tmp_path: Path) -> None:
    document = json.loads((RESULTS / "sglang/vllm-rate-details.jsonl").read_text())
    document["errors"][3] = "Internal Server Error"
    document["completed"] = 9
    (tmp_path / "a.jsonl").write_text(json.dumps(document))
    _, records = imported("sglang", tmp_path / "a.jsonl", tmp_path / "data", model="m")
    (record,) = records.values()
    assert record.value("failed_requests_percent") == 10  # 1 of 10


def test_a_summary_of_sparkrun_does_not_say_whether_prefixes_were_cached(
    tmp_path: Path,
) -> None:
    """Only where there is a context does it matter; a load of which it is unknown is one of its own."""
    shutil.copy(RESULTS / "llama-benchy/sparkrun-tiny.json", tmp_path / "a.json")
    outcome, records = imported("llama-benchy", tmp_path / "a.json", tmp_path / "data")
    assert outcome.refused == []
    assert set(records) == {
        *(f"pp64-tg16-c{clients}" for clients in (1, 2)),
        *(f"pp64-tg16-d64-c{clients}-caching-unknown" for clients in (1, 2)),
        *(f"pp64-tg16-d64-c{clients}-caching-unknown-prefill" for clients in (1, 2)),
    }
    for workload, record in records.items():
        said = [event.text for event in record.events]
        assert any("prefixes were cached" in text for text in said) == (
            "d64" in workload
        )


@pytest.mark.parametrize("cut", ["model,test_name\ntiny,pp64\ntiny", "a,b\n1,2\n", ""])
def test_a_table_that_is_cut_short_or_another_one_is_no_result(
    cut: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(cut)
    shutil.copy(RESULTS / "llama-benchy/vllm.json", tmp_path / "b.json")
    outcome, records = imported("llama-benchy", tmp_path, tmp_path / "data")
    assert len(records) == 1
    said = {left.source: left.reason for left in (*outcome.refused, *outcome.skipped)}
    assert "cut short" in said["a.csv"] or "not a result" in said["a.csv"]


@pytest.mark.parametrize("text", ["a: [", "sparkrun_benchmark: 3", "[]"])
def test_yaml_that_is_not_of_sparkrun(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    shutil.copy(RESULTS / "llama-benchy/vllm.json", tmp_path / "b.json")
    outcome, records = imported("llama-benchy", tmp_path, tmp_path / "data")
    assert len(records) == 1
    left = [*outcome.refused, *outcome.skipped]
    assert [item.source for item in left] == ["a.yaml"]


def test_guidellm_says_what_it_warns_of_and_what_failed(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    document = json.loads((RESULTS / "guidellm/c2.json").read_text())
    (benchmark,) = document["benchmarks"]
    assert "generation delay" in benchmark["warnings"][0]["message"]
    benchmark["metrics"]["request_totals"] |= {"errored": 2, "incomplete": 1}
    benchmark["config"]["constraints"]["max_requests"]["args"]["count"] = 6
    source.write_text(json.dumps(document))
    _, records = imported("guidellm", source, tmp_path / "some")
    (record,) = records.values()
    texts = [event.text for event in record.events]
    assert any("generation delay" in text for text in texts)
    # 2 failed and 4 succeeded; one that is cut off at the end did neither.
    assert record.value("failed_requests_percent") == pytest.approx(100 / 3)
    assert "1 requests were cut off at the end" in texts
    findings = review(load_data(tmp_path / "some")).findings
    assert [item.check for item in findings if item.severity == "error"] == []
    benchmark["metrics"]["request_totals"]["successful"] = 0
    source.write_text(json.dumps(document))
    _, records = imported("guidellm", source, tmp_path / "none")
    (record,) = records.values()
    assert (record.status, record.metrics) == ("failed", {})


def test_guidellm_synchronous_is_one_request_at_a_time(tmp_path: Path) -> None:
    """The strategy has no streams, which does not mean that all requests came at once."""
    document = json.loads((RESULTS / "guidellm/c2.json").read_text())
    for benchmark in document["benchmarks"]:
        benchmark["config"]["strategy"] = {"type_": "synchronous"}
    source = tmp_path / "one.json"
    source.write_text(json.dumps(document))
    _, records = imported("guidellm", source, tmp_path / "one")
    (record,) = records.values()
    assert record.workload.startswith("chat-completions-at-synchronous-in32-out8")
    assert load_of(record).in_flight == 1


INFERENCE_PERF: dict[str, Any] = {
    # Rates and times are those of the README of inference-perf (kubernetes-sigs, Apache 2.0); a report has more.
    "load_summary": {
        "count": 480,
        "send_duration": 59.98128472798271,
        "requested_rate": 8.0,
        "achieved_rate": 8.00249614820385,
    },
    "successes": {
        "count": 480,
        "latency": {
            "request_latency": {"mean": 3.31325431142327, "median": 2.11507539497688},
            "time_per_output_token": {"mean": 0.0836929455635872},
            "time_to_first_token": {"p90": 2.26959549135063, "max": 4.46773961000145},
            "inter_token_latency": {"median": 0.0591336835059337},
        },
        "throughput": {"output_tokens_per_sec": 185.0, "requests_per_sec": 7.5},
    },
    "failures": {"count": 0},
}


def test_a_mapping_of_ours_reads_inference_perf(tmp_path: Path) -> None:
    """Its times are seconds."""
    (tmp_path / "stage_0.json").write_text(json.dumps(INFERENCE_PERF))
    given = Given("c", environment="native")
    outcome = import_results(None, tmp_path, tmp_path / "d", given)
    assert [left.reason for left in outcome.refused] == [
        "it does not name the model; give --model"
    ]
    _, records = imported("inference-perf", tmp_path, tmp_path / "d", model="m")
    (record,) = records.values()
    assert record.requested.workload == {
        "type": "inference-perf",
        "requests": 480,
        "request_rate": 8,
    }
    values = {name: metric.value for name, metric in record.metrics.items()}
    assert values == pytest.approx(
        {
            "output_throughput_tok_s": 185.0,
            "request_throughput_req_s": 7.5,
            "request_latency_mean_ms": 3313.25431142327,
            "request_latency_p50_ms": 2115.07539497688,
            "tpot_mean_ms": 83.6929455635872,
            "ttft_p90_ms": 2269.59549135063,
            "ttft_max_ms": 4467.73961000145,
            "itl_p50_ms": 59.1336835059337,
        }
    )


def test_a_mapping_of_ours_reads_lm_eval(tmp_path: Path) -> None:
    """A run for each task, of the time when the tool began; accuracy stands beside speed in a cell of its own."""
    document = {
        "results": {
            "arc_easy": {"alias": "arc_easy", "acc,none": 0.71, "acc_norm,none": 0.68},
            "gsm8k": {"exact_match,strict-match": 0.3},
        },
        "n-samples": {"arc_easy": {"original": 2376, "effective": 2376}},
        "config": {"model": "local-completions", "limit": None},
        "date": 1772355600.5,
        "model_name": "owner/Model",
    }
    (tmp_path / "results_2026-03-01.json").write_text(json.dumps(document))
    given = Given("c", environment="native")
    for _ in range(2):
        outcome = import_results(None, tmp_path, tmp_path / "d", given)
        assert outcome.refused == []
    stored = [item.record for item in read_folder(tmp_path / "d/c")]
    records = {record.workload: record for record in stored}
    assert len(stored) == 2
    assert records["arc-easy"].value("accuracy_percent") == pytest.approx(71)
    assert records["arc-easy"].value("accuracy_normalized_percent") == pytest.approx(68)
    assert records["gsm8k"].value("exact_match_strict_percent") == pytest.approx(30)
    assert records["gsm8k"].started.value == "2026-03-01T09:00:00Z"
    assert {record.model for record in stored} == {"model"}

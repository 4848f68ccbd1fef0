"""Results of clients that measure a server: AIPerf, SGLang's bench_serving, llama-benchy, GuideLLM."""

import csv
import gzip
import itertools
import json
import shutil
import statistics
from datetime import UTC, datetime
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
        assert (
            record.value("failed_requests_percent")
            == written["request_error_rate"]["avg"]
        )
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
        "type": "aiperf",
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
    _, records = imported("aiperf", failed, tmp_path / "unknown", model="m")
    (record,) = records.values()  # named after its folder and itself
    assert record.workload.startswith(as_key(f"{tmp_path.name}-failed-aiperf"))
    assert "named after the file" in record.events[0].text


def test_genai_perf(tmp_path: Path) -> None:
    folder = RESULTS / "genai-perf"
    outcome, records = imported("genai-perf", folder, tmp_path)
    assert outcome.refused == []
    for workload, name in (
        ("kserve-in200-sd20-out500-c100", "streaming"),
        ("kserve-whole-in200-sd20-out500-c100", "whole"),
    ):
        written = json.loads((folder / f"{name}_genai_perf.json").read_text())
        record = records[workload]
        assert (record.model, record.requested.workload["concurrency"]) == (
            "ensemble",
            100,
        )
        for ours, theirs in (
            ("output_throughput_tok_s", "output_token_throughput.avg"),
            ("request_latency_p99_ms", "request_latency.p99"),
        ):
            metric, statistic = theirs.split(".")
            assert record.value(ours) == written[metric][statistic]
        # Without streaming the tool gives the latency as the time to the first token.
        first = record.value("ttft_p50_ms")
        assert first == (172.8093975 if name == "streaming" else None)


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
        # Only `--output-details` says which requests failed, and here none did.
        assert record.value("failed_requests_percent") == (
            0 if "errors" in written else None
        )
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


def test_sglang_says_in_its_details_which_requests_failed(tmp_path: Path) -> None:
    document = json.loads((RESULTS / "sglang/vllm-rate-details.jsonl").read_text())
    document["errors"][3] = "Internal Server Error"
    document["completed"] = 9
    (tmp_path / "a.jsonl").write_text(json.dumps(document))
    _, records = imported("sglang", tmp_path / "a.jsonl", tmp_path / "data", model="m")
    (record,) = records.values()
    assert record.value("failed_requests_percent") == 10  # 1 of 10


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


@pytest.mark.parametrize(
    "name",
    ["prefix-caching.json", "tables/depth-conc.csv", "tables/basic.md"],
)
def test_what_llama_benchy_wrote_is_read_again_as_it_was(
    name: str, tmp_path: Path
) -> None:
    """A phase of its own, means without repetitions, and a file with a single load."""
    imported("llama-benchy", RESULTS / "llama-benchy" / name, tmp_path)
    findings = review(load_data(tmp_path)).findings
    assert [item.message for item in findings if item.severity == "error"] == []


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


def test_llama_benchy_as_a_table_gives_the_means_of_each_load(tmp_path: Path) -> None:
    """The CSV has the same columns as the JSON's means, at full precision; no context has a phase of its own here."""
    source = RESULTS / "llama-benchy/tables/depth-conc.csv"
    with source.open(newline="") as file:
        rows = {row["test_name"]: row for row in csv.DictReader(file)}
    outcome, records = imported("llama-benchy", source, tmp_path)
    assert outcome.refused == []
    assert len(records) == len(rows) / 2 == 4
    for depth, clients in itertools.product((0, 64), (1, 2)):
        at = f" @ d{depth}" if depth else ""
        prompt = rows[f"pp64{at} (c{clients})"]
        answer = rows[f"tg16{at} (c{clients})"]
        behind = f"-d{depth}" if depth else ""
        record = records[f"pp64-tg16{behind}-c{clients}"]
        assert record.model == "tiny-llama-q8-0"
        assert record.value("prompt_throughput_tok_s") == float(prompt["t_s_mean"])
        assert record.value("output_throughput_tok_s") == float(answer["t_s_mean"])
        assert record.value("ttft_mean_ms") == float(prompt["e2e_ttft_mean"])
        assert record.value("ttft_p50_ms") is None
        assert record.samples == {}


def test_llama_benchy_in_markdown(tmp_path: Path) -> None:
    _, records = imported(
        "llama-benchy", RESULTS / "llama-benchy/tables/depth-conc-2.md", tmp_path
    )
    # | pp64 (c1) | 502.43 ± 121.00 | ... 97.95 ± 23.41 |, | tg16 (c1) | 717.30 ± 226.42 |
    record = records["pp64-tg16-c1"]
    assert record.value("prompt_throughput_tok_s") == 502.43
    assert record.value("output_throughput_tok_s") == 717.30
    assert record.value("ttft_mean_ms") == 97.95
    assert records["pp64-tg16-d64-c2"].value("output_throughput_tok_s") == 336.99
    assert "last modification" in record.unavailable["started"]


def test_a_table_without_a_context_and_a_concurrency(tmp_path: Path) -> None:
    """| pp64 | 824.06 ± 178.72 | and | tg16 | 304.19 ± 13.32 |: nothing says over how many runs."""
    source = RESULTS / "llama-benchy/tables/basic.md"
    _, records = imported("llama-benchy", source, tmp_path)
    record = records["pp64-tg16-c1"]
    assert record.value("output_throughput_tok_s") == 304.19
    spread = record.spreads["output_throughput_tok_s"]
    assert (spread.repetitions, spread.deviation, spread.divisor) == (None, 13.32, "n")


def test_the_phase_of_the_context_in_a_table_shows_that_prefixes_were_cached(
    tmp_path: Path,
) -> None:
    """The row `ctx_pp @ d64` has no lengths of its own and becomes no run."""
    source = RESULTS / "llama-benchy/tables/sparkrun-tiny.csv"
    _, records = imported("llama-benchy", source, tmp_path)
    assert set(records) == {
        f"pp64-tg16{depth}-c{clients}-cached"
        for depth in ("", "-d64")
        for clients in (1, 2)
    }


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


def test_the_yaml_of_sparkrun_is_read_in_place_of_its_other_files(
    tmp_path: Path,
) -> None:
    """YAML, JSON and CSV of one call: three files, the same four loads and two phases of a context."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in (
        "sparkrun-tiny.yaml",
        "sparkrun-tiny.json",
        "tables/sparkrun-tiny.csv",
    ):
        shutil.copy(RESULTS / "llama-benchy" / name, folder)
    written = json.loads((RESULTS / "llama-benchy/sparkrun-tiny.json").read_text())
    outcome, records = imported("llama-benchy", folder, tmp_path / "data")
    assert [(left.source, left.reason) for left in outcome.skipped] == [
        ("sparkrun-tiny.csv", "the same results as sparkrun-tiny.yaml"),
        ("sparkrun-tiny.json", "the same results as sparkrun-tiny.yaml"),
    ]
    assert outcome.refused == []
    assert len(records) == len(written["benchmarks"]) == 6
    for load in written["benchmarks"]:
        depth = f"-d{load['context_size']}" if load["context_size"] else ""
        phase = "-prefill" if load["is_context_prefill_phase"] else ""
        record = records[f"pp64-tg16{depth}-c{load['concurrency']}-cached{phase}"]
        assert record.value("output_throughput_tok_s") == load["tg_throughput"]["mean"]
        assert record.started.value.startswith("2026-11-21T15:27:08")
        assert record.started.zone == "utc"


@pytest.mark.parametrize("text", ["a: [", "sparkrun_benchmark: 3", "[]"])
def test_yaml_that_is_not_of_sparkrun(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    shutil.copy(RESULTS / "llama-benchy/vllm.json", tmp_path / "b.json")
    outcome, records = imported("llama-benchy", tmp_path, tmp_path / "data")
    assert len(records) == 1
    left = [*outcome.refused, *outcome.skipped]
    assert [item.source for item in left] == ["a.yaml"]


def test_guidellm_makes_a_run_of_each_strategy(tmp_path: Path) -> None:
    source = RESULTS / "guidellm/two-strategies.json.gz"
    written = json.loads(gzip.decompress(source.read_bytes()))["benchmarks"]
    outcome, records = imported("guidellm", source, tmp_path)
    assert outcome.refused == []
    # 6 requests of 32 and 8 tokens, 1 and 2 streams, to the interface for chats.
    assert set(records) == {
        f"chat-completions-in32-out8-c{streams}-n6" for streams in (1, 2)
    }
    for benchmark in written:
        streams = benchmark["config"]["strategy"]["streams"]
        record = records[f"chat-completions-in32-out8-c{streams}-n6"]
        given = benchmark["metrics"]
        requests = benchmark["requests"]["successful"]
        assert (record.model, record.status) == ("tiny-llama-q8-0", "ok")
        assert record.observed.requests == len(requests) == 6
        # Rates are sums over the duration, which the requests themselves show.
        seconds = benchmark["duration"]
        tokens = sum(request["output_tokens"] for request in requests)
        assert record.value("output_throughput_tok_s") == pytest.approx(
            tokens / seconds
        )
        assert record.value("request_throughput_req_s") == pytest.approx(6 / seconds)
        latencies = [1e3 * request["request_latency"] for request in requests]
        assert record.value("request_latency_mean_ms") == pytest.approx(
            statistics.fmean(latencies)
        )
        assert record.value("request_latency_max_ms") == pytest.approx(max(latencies))
        for request in requests:
            # What is called inter-token latency is the time after the first token over the other tokens.
            timings = request["info"]["timings"]
            after = timings["last_token_iteration"] - timings["first_token_iteration"]
            each = 1e3 * after / (request["output_tokens"] - 1)
            assert request["inter_token_latency_ms"] == pytest.approx(each, rel=1e-6)
        assert record.value("tpot_p99_ms") == pytest.approx(
            given["inter_token_latency_ms"]["successful"]["percentiles"]["p99"]
        )
        assert record.value("ttft_p50_ms") == pytest.approx(
            given["time_to_first_token_ms"]["successful"]["percentiles"]["p50"]
        )
        assert record.started.zone == "utc"
        began = datetime.fromtimestamp(benchmark["start_time"], UTC)
        assert record.started.value.startswith(began.strftime("%Y-%m-%dT%H:%M:%S"))
    findings = review(load_data(tmp_path)).findings
    # The figures are read again from the report, which is all the evidence there is.
    assert [item.check for item in findings if item.severity == "error"] == []


def test_figures_that_differ_from_their_report_are_found_without_a_log(
    tmp_path: Path,
) -> None:
    imported("guidellm", RESULTS / "guidellm/c2.json", tmp_path)
    (stored,) = read_folder(tmp_path / "c")
    path = tmp_path / "c" / f"{stored.record.stem}.json"
    record = json.loads(path.read_text())
    record["metrics"]["output_throughput_tok_s"]["value"] *= 1.2
    path.write_text(json.dumps(record))
    found = [
        item.check
        for item in review(load_data(tmp_path)).findings
        if item.severity == "error"
    ]
    assert found == ["metric-mismatch"]


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


def test_guidellm_in_one_piece_at_a_rate_without_known_lengths(tmp_path: Path) -> None:
    document = json.loads((RESULTS / "guidellm/c2.json").read_text())
    (benchmark,) = document["benchmarks"]
    benchmark["config"]["backend"] |= {
        "stream": False,
        "request_format": "/v1/completions",
    }
    benchmark["config"]["strategy"] = {"type_": "constant", "rate": 2.5}
    benchmark["metrics"]["time_to_first_token_ms"]["successful"]["count"] = 0
    benchmark["start_time"] = None
    source = tmp_path / "a.json"
    source.write_text(json.dumps(document))
    _, records = imported("guidellm", source, tmp_path / "rate")
    (workload,) = records
    assert workload == "completions-whole-at-constant-in32-out8-rate2.5-n4"
    assert records[workload].value("ttft_mean_ms") is None
    assert "last modification" in records[workload].unavailable["started"]
    document["config"]["spec"]["data"] = [{"kind": "huggingface"}]
    source.write_text(json.dumps(document))
    _, records = imported("guidellm", source, tmp_path / "data")
    assert set(records) == {"a-completions-whole-at-constant-rate2.5-n4"}


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

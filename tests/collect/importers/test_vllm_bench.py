"""Results of vllm bench: what the tool wrote is what the records hold."""

import gzip
import json
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.importers import import_results
from sparkpub.collect.importers.base import (
    Given,
)
from sparkpub.collect.importers.writing import ImportOutcome
from sparkpub.record.errors import ImportFormatError, UsageError
from sparkpub.record.record import Record
from sparkpub.record.store import file_sha256, read_folder
from sparkpub.review.checks import review
from sparkpub.review.dataset import load

RESULTS = Path(__file__).parents[2] / "data/imports/vllm-bench"
SERVE = {
    # Ours -> theirs.
    "output_throughput_tok_s": "output_throughput",
    "total_throughput_tok_s": "total_token_throughput",
    "request_throughput_req_s": "request_throughput",
    "ttft_mean_ms": "mean_ttft_ms",
    "ttft_p50_ms": "median_ttft_ms",
    "ttft_p99_ms": "p99_ttft_ms",
    "tpot_mean_ms": "mean_tpot_ms",
    "itl_p50_ms": "median_itl_ms",
}


def imported(
    source: Path, data: Path, **given: Any
) -> tuple[ImportOutcome, list[Record]]:
    """What became of a file or folder, and its records in order of time."""
    outcome = import_results(
        "vllm-bench", source, data, Given("c", **({"environment": "native"} | given))
    )
    stored = read_folder(data / "c") if (data / "c").is_dir() else []
    return outcome, sorted(
        (item.record for item in stored), key=lambda record: record.plan.position
    )


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        ("serve-c4", "serve-in64-out16-c4-n12"),  # the lengths stand in its log
        ("detailed", "serve-c2-n8"),
        ("rate8", "serve-rate8-burst0.5-n16"),
        ("rampup", "serve-ramp-linear-2-10-n20"),
        ("chat", "serve-openai-chat-c2-n8"),
    ],
)
def test_serve(name: str, workload: str, tmp_path: Path) -> None:
    source = RESULTS / f"{name}.json"
    written = json.loads(source.read_text())
    _, (record,) = imported(source, tmp_path)
    assert (record.model, record.workload, record.status) == (
        "tiny-llama",
        workload,
        "ok",
    )
    for ours, theirs in SERVE.items():
        if theirs in written:
            assert record.value(ours) == written[theirs], ours
    assert record.value("measured_time_ms") == pytest.approx(1000 * written["duration"])
    assert record.observed.requests == written["completed"]
    # 20261121-144933 is a local clock, read when the measurement was over.
    ended = datetime.strptime(written["date"], "%Y%m%d-%H%M%S")  # noqa: DTZ007
    took = ended - datetime.fromisoformat(record.started.value)
    assert took.total_seconds() == pytest.approx(written["duration"], abs=0.5)
    assert record.started.zone == "unknown"
    report = record.file("report")
    assert report is not None
    assert report.sha256 == file_sha256(source)
    assert record.requested.workload["requests"] == written["num_prompts"]
    assert record.requested.workload.get("concurrency") == written["max_concurrency"]


def test_the_log_beside_a_report_is_evidence_and_says_the_lengths(
    tmp_path: Path,
) -> None:
    _, (record,) = imported(RESULTS / "serve-c4.json", tmp_path)
    log = record.file("log")
    assert log is not None
    printed = (RESULTS / "serve-c4.log").read_text()
    rate = re.search(r"Output token throughput \(tok/s\): +([\d.]+)", printed)
    assert rate is not None
    assert record.value("output_throughput_tok_s") == pytest.approx(
        float(rate[1]), abs=0.005
    )
    assert (
        record.requested.workload["input_tokens"],
        record.requested.workload["output_tokens"],
    ) == (64, 16)
    findings = review(load(tmp_path)).findings
    assert [finding.check for finding in findings if finding.severity == "error"] == []


@pytest.mark.parametrize("whole", [True, False])
def test_a_compressed_report_has_its_compressed_log_where_that_can_be_read(
    whole: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    report, log = (
        (RESULTS / f"serve-c4.{suffix}").read_bytes() for suffix in ("json", "log")
    )
    (folder / "a.json.gz").write_bytes(gzip.compress(report))
    (folder / "a.log.gz").write_bytes(gzip.compress(log)[: None if whole else -20])
    _, (record,) = imported(folder, tmp_path / "data")
    assert (record.file("log") is not None) == whole
    assert ("log" in record.unavailable) != whole
    assert record.workload == ("serve-in64-out16-c4-n12" if whole else "serve-c4-n12")


def test_json_lines_of_a_sweep_are_a_run_each(tmp_path: Path) -> None:
    source = RESULTS / "append-sweep.json"
    written = [json.loads(line) for line in source.read_text().splitlines()]
    _, records = imported(source, tmp_path)
    assert [record.workload for record in records] == [
        f"serve-c{c}-n{4 * c}" for c in (1, 2, 4, 8, 16)
    ]
    for record, line in zip(records, written, strict=True):
        assert record.value("output_throughput_tok_s") == line["output_throughput"]
        original = record.file("original")
        assert original is not None
        assert original.sha256 == file_sha256(source)
        report = record.file("report")
        assert report is not None
        assert json.loads((tmp_path / "c" / report.path).read_text()) == line


def test_a_run_whose_requests_failed_is_a_failed_run_without_figures(
    tmp_path: Path,
) -> None:
    _, (record,) = imported(RESULTS / "noserver.json", tmp_path)
    assert (record.status, record.status_reason, record.metrics) == (
        "failed",
        "no request succeeded",
        {},
    )
    _, (record,) = imported(RESULTS / "failures.json", tmp_path / "some")
    assert record.status == "ok"
    assert record.observed.requests == 2
    assert record.value("failed_requests_percent") == 80  # 8 of 10


def test_throughput_and_latency(tmp_path: Path) -> None:
    _, (record,) = imported(RESULTS / "throughput.json", tmp_path / "throughput")
    written = json.loads((RESULTS / "throughput.json").read_text())
    assert (record.model, record.workload) == ("tiny-llama", "throughput-n16")
    assert record.value("total_throughput_tok_s") == written["tokens_per_second"]
    assert record.value("request_throughput_req_s") == written["requests_per_second"]
    # Printed: Throughput: 0.71 requests/s, 56.87 total tokens/s, 11.35 output tokens/s
    assert record.value("output_throughput_tok_s") == 11.35
    assert "last modification" in record.unavailable["started"]
    _, (record,) = imported(RESULTS / "latency.json", tmp_path / "unsaid")
    # The file's name and its batches: it says neither their size nor lengths.
    assert record.workload == "latency-latency-n6"
    assert "named after the file" in record.events[0].text
    _, (record,) = imported(
        RESULTS / "latency.json", tmp_path / "latency", workload="b4"
    )
    written = json.loads((RESULTS / "latency.json").read_text())
    assert record.workload == "b4"
    assert record.value("request_latency_mean_ms") == pytest.approx(
        1000 * written["avg_latency"]
    )
    assert record.value("request_latency_p50_ms") == pytest.approx(
        1000 * written["percentiles"]["50"]
    )
    assert list(record.samples["request_latency_mean_ms"]) == pytest.approx(
        [1e3 * s for s in written["latencies"]]
    )
    assert record.value("output_throughput_tok_s") is None


def test_a_printed_table_is_not_of_a_report_whose_name_only_begins_alike(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    granite = RESULTS.parent / "bench-spark/results/granite-4.1/granite-4.1-8b/bf16"
    shutil.copy(granite / "08-sharegpt.md", folder / "c1.md")
    shutil.copy(RESULTS / "rate8.json", folder / "c16.json")
    outcome, records = imported(folder, tmp_path)
    assert (len(records), outcome.skipped) == (2, [])
    shutil.copy(granite / "08-sharegpt.json", folder / "c1-0.json")
    outcome, records = imported(folder, tmp_path / "both")
    assert (len(records), outcome.skipped) == (2, [])


def test_a_summary_that_repeats_runs_adds_none(tmp_path: Path) -> None:
    outcome, records = imported(RESULTS / "sweep", tmp_path)
    assert len(records) == 2
    assert [record.iteration for record in records] == [1, 2]
    assert [left.source for left in outcome.skipped] == [
        "summary.json, run 1",
        "summary.json, run 2",
    ]


def test_loads_of_another_size_are_not_put_in_one_cell(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(RESULTS / "detailed.json", folder / "a.json")  # 32 tokens per prompt
    sweep = (RESULTS / "append-sweep.json").read_text().splitlines()
    (folder / "b.json").write_text(sweep[1])  # 64, also 8 requests at concurrency 2
    outcome, records = imported(folder, tmp_path / "data")
    assert outcome.refused == []
    # The 8 requests had 513 and 128 tokens together.
    assert {record.workload for record in records} == {
        "serve-c2-n8",
        "serve-c2-n8-about64-16",
    }
    told = [event.text for record in records for event in record.events]
    assert any("64 tokens per request in place of 32" in text for text in told)
    outcome, _ = imported(
        RESULTS / "append-sweep.json", tmp_path / "named", workload="w"
    )
    assert [left.source for left in outcome.refused] == [
        f"append-sweep.json, run {n}" for n in (2, 3, 4, 5)
    ]


def test_the_size_of_a_load_is_that_of_the_first_run_that_has_one(
    tmp_path: Path,
) -> None:
    """A run whose requests all failed says nothing of the load; the next one does."""
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(RESULTS / "noserver.json", folder / "a.json")
    sweep = (RESULTS / "append-sweep.json").read_text().splitlines()
    asked = ("num_prompts", "max_concurrency", "request_rate", "backend", "model_id")
    wanted = {key: json.loads(sweep[0])[key] for key in asked}
    for name, source in (
        ("a.json", RESULTS / "noserver.json"),
        ("c.json", RESULTS / "detailed.json"),
    ):
        document = json.loads(source.read_text()) | wanted
        (folder / name).write_text(json.dumps(document))
    (folder / "b.json").write_text(sweep[0])
    _, records = imported(folder, tmp_path / "data")
    assert sorted(record.workload for record in records) == [
        "serve-c1-n4",
        "serve-c1-n4",
        "serve-c1-n4-about32-12",
    ]


def test_a_damaged_file_is_one_line_and_the_others_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    text = (RESULTS / "serve-c4.json").read_text()
    (folder / "cut.json").write_text(text[:-10])
    (folder / "cut-lines.json").write_text(
        (RESULTS / "append-sweep.json").read_text()[:-10]
    )
    (folder / "deep.json").write_text("[" * 200_000)
    (folder / "nameless.json").write_text(
        text.replace('"model_id": "tiny-llama"', '"model_id": null')
    )
    (folder / "twice.json").write_text('{"completed": 1, ' + text.lstrip()[1:])
    (folder / "other.json").write_text("[1, 2]")
    (folder / "whole.json").write_text(text)
    outcome, records = imported(folder, tmp_path / "data")
    assert [(left.source, left.reason) for left in outcome.refused] == [
        ("cut-lines.json", "not JSON, or cut short"),
        ("cut.json", "not JSON, or cut short"),
        ("deep.json", "nested deeper than 50 levels"),
        ("nameless.json", "it does not name the model; give --model"),
        ("twice.json", "key 'completed' stands twice"),
    ]
    assert [left.source for left in outcome.skipped] == ["other.json"]
    assert len(records) == 1
    again, _ = imported(folder, tmp_path / "data", model="m")
    assert [run.split("_")[1] for run in again.imported] == [
        "m"
    ]  # only where the file names none
    with pytest.raises(UsageError, match="--environment"):
        imported(folder, tmp_path, environment=None)


def test_what_the_client_printed_is_read_where_there_is_no_report(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(RESULTS / "serve-c4.log", folder)
    _, (record,) = imported(folder, tmp_path)
    written = json.loads((RESULTS / "serve-c4.json").read_text())
    assert (record.model, record.workload) == ("tiny-llama", "serve-in64-out16-c4-n12")
    for ours, theirs in SERVE.items():
        assert record.value(ours) == pytest.approx(written[theirs], abs=0.005), ours
    assert record.file("original") is None  # it is the log
    shutil.copy(RESULTS / "serve-c4.json", folder)
    outcome, (record,) = imported(folder, tmp_path / "both")
    assert record.value("ttft_mean_ms") == written["mean_ttft_ms"]
    assert outcome.skipped == []


def test_each_table_of_a_page_is_a_run_with_the_options_of_its_command(
    tmp_path: Path,
) -> None:
    table = (RESULTS / "serve-c4.log").read_text().partition("=" * 12)[2]
    told = "vllm bench serve --model a/{0} \\\n  --dataset-name sharegpt --max-concurrency {1}"
    page = "".join(
        f"# {name}\n```\n{told.format(name, clients)}\n==={table}```\n"
        for name, clients in (("b", 1), ("c", 8))
    )
    source = tmp_path / "README.md"
    source.write_text(page.replace("Maximum request concurrency", "Maximum"))
    _, records = imported(source, tmp_path)
    assert {(record.model, record.workload) for record in records} == {
        ("b", "serve-data-sharegpt-c1-n12"),
        ("c", "serve-data-sharegpt-c8-n12"),
    }
    assert all(record.observed.engine is None for record in records)


def test_a_printed_table_with_anything_in_it_is_no_fault(tmp_path: Path) -> None:
    rows = ("Successful requests: x", "Backend: 1", "Mean TTFT (ms): nan", "Failed: -")
    source = tmp_path / "a.log"
    source.write_text("\n".join(("== Serving Benchmark Result ==", *rows)))
    with pytest.raises(ImportFormatError, match="no results of vllm-bench"):
        imported(source, tmp_path / "d")

"""Logs and reports of trtllm-bench as they lie in a folder."""

import os
import shutil
from pathlib import Path

import pytest

from sparkpub.collect.importers import import_results
from sparkpub.collect.importers.base import (
    Given,
)
from sparkpub.record.store import file_sha256, read_folder
from sparkpub.review.checks import review
from sparkpub.review.dataset import load

LOGS = Path(__file__).parents[2] / "data/logs/trtllm-bench"
TWO_COLUMNS = Path(__file__).parents[2] / "data/imports/trtllm-bench/two-columns.log"


def test_files_are_told_apart_by_what_they_hold(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(LOGS / "1.1-streaming.log", folder / "gpt_iter7.log")
    shutil.copy(LOGS / "report-and-requests.report.json", folder / "tiny_report.json")
    shutil.copy(
        LOGS / "report-and-requests.requests.json", folder / "tiny_requests.json"
    )
    shutil.copy(LOGS / "report-truncated.report.json", folder / "cut.json")
    (folder / "notes.txt").write_text("bring milk")
    outcome = import_results(
        "trtllm-bench", folder, tmp_path / "data", Given("c", environment="native")
    )
    assert [(left.source, left.refused) for left in outcome.skipped] == [
        ("notes.txt", False),
        ("tiny_requests.json", False),
    ]
    assert [(left.source, left.reason) for left in outcome.refused] == [
        ("cut.json", "it does not name the model; give --model")
    ]
    records = {
        stored.record.model: stored.record
        for stored in read_folder(tmp_path / "data/c")
    }
    assert set(records) == {"gpt-oss-120b", "model"}
    gpt = records["gpt-oss-120b"]
    assert (gpt.iteration, gpt.status) == (7, "ok")
    assert (gpt.started.value, gpt.started.zone) == ("2025-12-20T04:20:21", "unknown")
    assert gpt.requested.model_id == "openai/gpt-oss-120b"
    tiny = records["model"]
    assert tiny.value("request_latency_p95_ms") == pytest.approx(1925.0)
    assert {item.role for item in tiny.evidence} == {"report", "requests"}
    assert "last modification" in tiny.unavailable["started"]
    for item in tiny.evidence:
        assert file_sha256(tmp_path / "data/c" / item.path) == item.sha256
    for file in folder.iterdir():
        os.utime(file, (0, 0))  # as after a fresh checkout
    again = import_results(
        "trtllm-bench", folder, tmp_path / "data", Given("c", environment="native")
    )
    assert not again.imported
    assert len(again.skipped) == 2 + 2


@pytest.mark.parametrize(
    "echoed",
    [
        "+ trtllm-bench --model meta-llama/Llama-3.1-8B --model_path /models/llama throughput --dataset d.jsonl",
        "root@spark:/# /usr/bin/trtllm-bench -m 'meta-llama/Llama-3.1-8B' latency",
    ],
)
def test_a_log_that_lost_its_label_is_named_by_the_command_in_it(
    echoed: str, tmp_path: Path
) -> None:
    text = (LOGS / "1.1-offline.log").read_text()
    lost = "\n".join(line for line in text.splitlines() if "Model:" not in line)
    (tmp_path / "a.log").write_text(lost)
    given = Given("c", environment="native", model="given")
    import_results("trtllm-bench", tmp_path / "a.log", tmp_path / "nothing", given)
    (record,) = (stored.record for stored in read_folder(tmp_path / "nothing/c"))
    assert record.model == "given"
    (tmp_path / "a.log").write_text(f"{echoed}\n{lost}")
    import_results("trtllm-bench", tmp_path / "a.log", tmp_path / "echoed", given)
    (record,) = (stored.record for stored in read_folder(tmp_path / "echoed/c"))
    assert (record.model, record.requested.model_id) == (
        "llama-3.1-8b",
        "meta-llama/Llama-3.1-8B",
    )


def test_a_table_of_two_results_is_a_run_of_each_in_cells_of_their_own(
    tmp_path: Path,
) -> None:
    """In the form in which such tables are published: headings without `=`, labels broken by spaces, a bar between
    the columns. 2.0 req/s x 128 tokens = 256 tok/s, 64 requests / 2.0 = 32 s; 2.5, 320 and 25.6 s in the second."""
    source = TWO_COLUMNS
    import_results("trtllm-bench", source, tmp_path, Given("c", environment="native"))
    records = {
        stored.record.workload: stored.record for stored in read_folder(tmp_path / "c")
    }
    assert set(records) == {"throughput-column-1", "throughput-column-2"}
    expected = {
        "request_throughput_req_s": (2.0, 2.5),
        "output_throughput_tok_s": (256.0, 320.0),
        "total_throughput_tok_s": (1280.0, 1600.0),
        "measured_time_ms": (32000.0, 25600.0),
        "request_latency_mean_ms": (4000.0, 3200.0),
    }
    for name, values in expected.items():
        assert tuple(records[key].value(name) for key in sorted(records)) == values
    for number, key in enumerate(sorted(records), 1):
        record = records[key]
        assert (record.model, record.status) == ("gpt-oss-120b", "ok")
        assert record.observed.quantization == "FP8"
        assert any(
            f"column {number} of a table" in event.text for event in record.events
        )
        original = record.file("original")
        assert original is not None
        assert (tmp_path / "c" / original.path).read_bytes() == source.read_bytes()
    # The evidence of each record says what the record holds, and nothing of the other column.
    findings = review(load(tmp_path)).findings
    assert "metric-mismatch" not in {finding.check for finding in findings}


@pytest.mark.parametrize(
    "excerpt",
    [
        "Request Throughput (req/sec):  2.0\nTotal Output Throughput (tokens/sec):  256.0\n",
        "| Request Throughput (req/sec) | 2.0 |\n|--|--|\n| Total Output Throughput (tokens/sec) | 256.0 |\n",
    ],
    ids=["no banner", "a table of one result"],
)
def test_an_excerpt_is_read_without_its_banner_and_claims_no_more_than_it_says(
    excerpt: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text(excerpt)
    import_results(
        "trtllm-bench",
        tmp_path / "a.txt",
        tmp_path / "data",
        Given("c", environment="native", model="some"),
    )
    (record,) = (stored.record for stored in read_folder(tmp_path / "data/c"))
    assert (record.status, record.observed.engine) == ("ok", "TensorRT-LLM")
    assert record.value("output_throughput_tok_s") == 256.0
    assert record.value("request_throughput_req_s") == 2.0
    assert record.observed.speculative_decoding is None
    assert record.observed.settings == {}


def test_the_echoed_command_says_what_was_asked_for(tmp_path: Path) -> None:
    """Over two lines, as a shell script writes it."""
    echoed = (
        "+ trtllm-bench --model=meta-llama/Llama-3.1-8B --model_path /models/llama throughput \\\n"
        "    --num_requests 50 --concurrency 8 --max_batch_size 8 --dataset 'my set.jsonl'\n"
    )
    text = (LOGS / "1.1-offline.log").read_text()
    (tmp_path / "a.log").write_text(echoed + text)
    import_results(
        "trtllm-bench", tmp_path / "a.log", tmp_path, Given("c", environment="native")
    )
    (record,) = (stored.record for stored in read_folder(tmp_path / "c"))
    asked = record.requested.workload
    assert asked["mode"] == "throughput"
    assert (asked["requests"], asked["concurrency"], asked["max_batch_size"]) == (
        50,
        8,
        8,
    )
    assert record.requested.model_path == "/models/llama"
    # The report's label counts before the command: this log is of another run than the command above it.
    assert record.model == "gpt-oss-120b"

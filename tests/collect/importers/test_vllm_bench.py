"""Results of vllm bench: what the tool wrote is what the records hold."""

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.importers import import_results
from sparkpub.collect.importers.base import (
    Given,
)
from sparkpub.collect.importers.writing import ImportOutcome
from sparkpub.record.record import Record
from sparkpub.record.store import read_folder
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

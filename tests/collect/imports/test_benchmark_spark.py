"""The study's own layouts: one aggregated file in two shapes, and a folder of runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given
from sparkpub.collect.imports.outcome import ImportOutcome
from sparkpub.plan.matrix import read as read_matrix
from sparkpub.record.errors import UsageError
from sparkpub.record.record import Record
from sparkpub.record.store import read_folder
from tests import published

LOGS = Path(__file__).parents[2] / "data/logs/trtllm-bench"


def imported(
    document: Any, folder: Path, given: Given | None = None
) -> tuple[ImportOutcome, list[Record]]:
    """What becomes of a file with the figures of many runs."""
    source = folder / "all.json"
    source.write_text(json.dumps(document))
    told = given or Given("c")
    outcome = import_results(source, folder, told)
    there = folder / told.campaign
    stored = read_folder(there) if there.is_dir() else ()
    return outcome, [item.record for item in stored]


def folder_of_runs(folder: Path) -> Path:
    """Four runs, one of them with damaged metadata, and a log without any."""
    folder.mkdir()
    facts = {
        "environment": "native",
        "model_name": "gpt120b",
        "model_id": "openai/gpt-oss-120b",
        "exit_code": 0,
        "model_path": "/home/khan/models/gpt",
        "start_temp_celsius": 38,
    }
    logs = ("1.1-streaming", "1.3-noisy", "measured-no-report", "out-of-memory")
    for number, log in enumerate(logs, 1):
        said = {"iteration": number, "timestamp": f"20251108_19515{number}"}
        metadata = json.dumps(facts | said | {"exit_code": -9 * (number == 4)})
        stem = f"native_gpt120b_iter{number}_20251108_2{number}0000"
        cut = 30 if number == 2 else len(metadata)
        (folder / f"{stem}_metadata.json").write_text(metadata[:cut])
        printed = (LOGS / f"{log}.log").read_bytes()
        secret = b"token=hf_abcdefghijklmnopqrst\n"
        (folder / f"{stem}.log").write_bytes(printed + secret)
    (folder / "native_gpt120b_iter9_20251108_290000.log").write_text("alone")
    return folder


def test_a_folder_of_runs(tmp_path: Path) -> None:
    """Its logs are of TensorRT-LLM, and are not read a second time as such."""
    folder = folder_of_runs(tmp_path / "in")
    outcome = import_results(folder, tmp_path, Given("c"))
    assert (len(outcome.imported), outcome.refused) == (4, [])
    # Each log is read with its metadata, but for one alone.
    alone = [item for item in outcome.skipped if "no metadata" in item.reason]
    assert (len(outcome.skipped), len(alone)) == (5, 1)
    records = {
        item.record.iteration: item.record for item in read_folder(tmp_path / "c")
    }
    states = [records[number].status for number in (1, 2, 3, 4)]
    assert states == ["ok", "ok", "invalid", "failed"]
    first = records[1]
    assert first.value("output_throughput_tok_s") == 120.0
    assert first.metrics["output_throughput_tok_s"].source == "log"
    assert first.value("gpu_temp_start_celsius") == 38
    assert first.observed.kv_bytes_per_token == 73728
    assert first.requested.model_path == "<home>/models/gpt"
    assert first.started.value == "2025-11-08T19:51:51"
    # Damaged metadata: the name says which run it was, and the record says so.
    assert records[2].started.value == "2025-11-08T22:00:00"
    assert any("damaged" in event.text for event in records[2].events)
    assert "measured but no report" in (records[3].status_reason or "")
    assert (records[4].exit_code, records[4].status_reason) == (-9, "exit status -9")
    log = first.file("log")
    assert log is not None
    kept = (tmp_path / "c" / log.path).read_bytes()
    assert b"hf_abcdefghijklmnopqrst" not in kept
    assert any("SHA-256" in event.text for event in first.events)
    again = import_results(folder, tmp_path, Given("c"))
    assert not again.imported


def test_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    other = published.entries()[0] | {"model_name": "other", "model_id": "o/other"}
    matrix = read_matrix(published.PUBLISHED / "matrix.yaml")
    outcome, records = imported([other], tmp_path, Given("phase1", matrix))
    reasons = [left.reason for left in outcome.refused]
    assert (reasons, records) == (["the matrix has no model other"], [])
    with pytest.raises(UsageError, match="declares campaign"):
        imported([other], tmp_path, Given("c", matrix))
    with pytest.raises(UsageError, match="no name of a campaign"):
        imported([other], tmp_path, Given("../c"))

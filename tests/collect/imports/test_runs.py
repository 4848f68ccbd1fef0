"""Results of tools where a file says less than it should, or more: what the table of fixtures does not show."""

import json
import shutil
from pathlib import Path

import pytest

from sparkpub.record.redaction import Redactor
from sparkpub.record.store import file_sha256
from tests.collect.imports.importing import RESULTS, imported

VLLM, LLAMA, BENCHY = (
    RESULTS / name for name in ("vllm-bench", "llama-bench", "llama-benchy")
)
GRANITE = RESULTS / "bench-spark/results/granite-4.1/granite-4.1-8b/bf16"
TRTLLM = RESULTS.parent / "logs/trtllm-bench"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for results."""
    made = tmp_path / "in"
    made.mkdir()
    return made


# -- vllm bench ------------------------------------------------------------------------------------------------


def test_what_the_client_printed_is_read_where_there_is_no_report(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copy(VLLM / "serve-c4.log", folder)
    _, (record,) = imported(folder, tmp_path)
    written = json.loads((VLLM / "serve-c4.json").read_text())
    assert (record.model, record.workload) == ("tiny-llama", "serve-in64-out16-c4-n12")
    for ours, theirs in (
        ("output_throughput_tok_s", "output_throughput"),
        ("ttft_p50_ms", "median_ttft_ms"),
        ("tpot_mean_ms", "mean_tpot_ms"),
        ("itl_p50_ms", "median_itl_ms"),
    ):
        assert record.value(ours) == pytest.approx(written[theirs], abs=0.005), ours
    assert record.file("original") is None  # it is the log
    shutil.copy(VLLM / "serve-c4.json", folder)
    outcome, (record,) = imported(folder, tmp_path / "both")
    assert record.value("ttft_mean_ms") == written["mean_ttft_ms"]
    assert outcome.skipped == []


# -- llama-bench -----------------------------------------------------------------------------------------------


def test_a_file_of_many_runs_is_redacted_and_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each run, half a megabyte with thousands of rows took more than ten minutes."""
    redacted: list[bytes] = []
    content = Redactor.content

    def seen(self: Redactor, part: bytes) -> bytes:
        redacted.append(part)
        return content(self, part)

    monkeypatch.setattr(Redactor, "content", seen)
    source = LLAMA / "multi.json"
    _, records = imported(source, tmp_path)
    assert len(records) > 2
    assert redacted.count(source.read_bytes()) == 1
    for record in records:
        (item,) = [item for item in record.evidence if item.role == "original"]
        assert file_sha256(tmp_path / "c" / item.path) == item.sha256


# -- clients of servers ----------------------------------------------------------------------------------------


# -- trtllm-bench ----------------------------------------------------------------------------------------------

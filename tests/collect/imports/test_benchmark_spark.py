"""The study's own layouts: one aggregated file in two shapes, and a folder of runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sparkpub.cli import cli
from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given
from sparkpub.plan.matrix import read as read_matrix
from sparkpub.record.errors import UsageError
from sparkpub.record.store import read_folder
from tests import published

ROOT = Path(__file__).parents[3]
LOGS = ROOT / "tests/data/logs/trtllm-bench"


def nested(entries: list[dict[str, Any]]) -> dict[str, Any]:
    models: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for entry in entries:
        rest = {
            name: value
            for name, value in entry.items()
            if name not in ("model_name", "environment")
        }
        models.setdefault(entry["model_name"], {}).setdefault(
            entry["environment"], []
        ).append(rest)
    return {"models": models}


def import_command(path: Path, data: Path, *more: str) -> Any:
    arguments = [
        "import",
        str(path),
        "--format",
        "benchmark-spark",
        "--campaign",
        "phase1",
        "--data",
        str(data),
        *more,
    ]
    return CliRunner().invoke(
        cli, arguments, catch_exceptions=False, standalone_mode=False
    )


DECLARED = (
    "--matrix",
    str(published.PUBLISHED / "matrix.yaml"),
    "--about",
    str(published.PUBLISHED / "about.yaml"),
)


def test_the_nested_shape_holds_the_same_runs(tmp_path: Path) -> None:
    entries = published.entries()[::9]
    for name, document in (("list", entries), ("nested", nested(entries))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "all.json").write_text(json.dumps(document))
        import_command(
            tmp_path / name / "all.json", tmp_path / name, "--no-originals", *DECLARED
        )
    one, other = (
        [stored.record for stored in read_folder(tmp_path / name / "phase1")]
        for name in ("list", "nested")
    )
    assert len(one) == 7
    assert one == other


def test_what_the_monitor_did_not_read_is_null(tmp_path: Path) -> None:
    entry = published.entries()[0]
    entry |= {"peak_memory": float("nan"), "start_temp_celsius": -1}
    source = tmp_path / "all.json"
    source.write_text(json.dumps([entry]))
    import_results("benchmark-spark", source, tmp_path, Given("c"))
    record = read_folder(tmp_path / "c")[0].record
    assert record.metrics["peak_memory_gib"].value is None
    assert (
        record.metrics["gpu_temp_start_celsius"].reason == "published as '-1, not read'"
    )
    assert record.machine.kind is None


def test_the_format_of_the_weights_is_the_published_files(tmp_path: Path) -> None:
    """Mistral's Ministral 3 8B is published in FP8, which its name does not say."""
    source = tmp_path / "all.json"
    named = {"model_id": "mistralai/Ministral-3-8B-Instruct-2512"}
    source.write_text(json.dumps([published.entries()[0] | named]))
    import_results("benchmark-spark", source, tmp_path, Given("c"))
    assert read_folder(tmp_path / "c")[0].record.observed.quantization == "fp8"


@pytest.mark.parametrize("field", ["peak_memory", "latency"])
@pytest.mark.parametrize("said", ["x" * 70_000, "12,26", 1e308])
def test_a_figure_that_is_none_is_null_with_what_stood_there(
    field: str, said: str | float, tmp_path: Path
) -> None:
    """12,26 is not 1,226, and a text of any length becomes a reason that a record can hold."""
    source = tmp_path / "all.json"
    source.write_text(json.dumps([published.entries()[0] | {field: said}]))
    outcome = import_results("benchmark-spark", source, tmp_path, Given("c"))
    assert (len(outcome.imported), outcome.refused) == (1, [])
    name = {"peak_memory": "peak_memory_gib", "latency": "request_latency_mean_ms"}
    figure = read_folder(tmp_path / "c")[0].record.metrics[name[field]]
    assert figure.value is None
    assert str(said)[:190] in (figure.reason or "")


def folder_of_runs(folder: Path) -> Path:
    folder.mkdir()
    facts = {
        "environment": "native",
        "model_name": "gpt120b",
        "model_id": "openai/gpt-oss-120b",
        "exit_code": 0,
        "model_path": "/home/khan/models/gpt",
        "start_temp_celsius": 38,
        "end_temp_celsius": 60,
    }
    for iteration, (log, meta) in enumerate(
        [
            (
                "1.1-streaming",
                json.dumps(facts | {"iteration": 1, "timestamp": "20251108_195154"}),
            ),
            ("1.3-noisy", '{"environment": "native", "model_na'),
            (
                "measured-no-report",
                json.dumps(facts | {"iteration": 3, "timestamp": "20251108_203930"}),
            ),
            (
                "out-of-memory",
                json.dumps(
                    facts
                    | {"iteration": 4, "timestamp": "20251108_204930", "exit_code": 1}
                ),
            ),
        ],
        start=1,
    ):
        stem = f"native_gpt120b_iter{iteration}_20251108_2{iteration}0000"
        (folder / f"{stem}_metadata.json").write_text(meta)
        (folder / f"{stem}.log").write_bytes(
            (LOGS / f"{log}.log").read_bytes() + b"token=hf_abcdefghijklmnopqrst\n"
        )
    (folder / "native_gpt120b_iter9_20251108_290000.log").write_text("alone")
    (folder / "README.txt").write_text("not a run")
    return folder


@pytest.mark.parametrize("kind", ["benchmark-spark", None])
def test_a_folder_of_runs(kind: str | None, tmp_path: Path) -> None:
    """Its logs are of TensorRT-LLM, and are not read a second time as such."""
    outcome = import_results(
        kind, folder_of_runs(tmp_path / "in"), tmp_path, Given("c")
    )
    assert len(outcome.imported) == 4
    assert outcome.refused == []
    told = {left.reason.partition(":")[0] for left in outcome.skipped}
    assert {"no metadata beside it"} < told
    assert (
        len(outcome.skipped) == 4 + 1 + 1
    )  # each log that is read with its metadata, one alone, README.txt
    records = {
        stored.record.iteration: stored.record for stored in read_folder(tmp_path / "c")
    }
    assert {iteration: record.status for iteration, record in records.items()} == {
        1: "ok",
        2: "ok",
        3: "invalid",
        4: "failed",
    }
    first = records[1]
    assert first.value("output_throughput_tok_s") == 120.0
    assert first.metrics["output_throughput_tok_s"].source == "log"
    assert first.value("kv_cache_gib") == 5.95
    assert first.observed.kv_bytes_per_token == 73728
    assert first.requested.model_path == "<home>/models/gpt"
    assert (first.started.value, first.started.zone) == (
        "2025-11-08T19:51:54",
        "unknown",
    )
    # Damaged metadata: the name says which run it was, and the record says so.
    assert records[2].started.value == "2025-11-08T22:00:00"
    assert any("damaged" in event.text for event in records[2].events)
    assert "measured but no report" in (records[3].status_reason or "")
    log = first.file("log")
    assert log is not None
    kept = (tmp_path / "c" / log.path).read_bytes()
    assert b"hf_abcdefghijklmnopqrst" not in kept
    assert any("SHA-256" in event.text for event in first.events)
    again = import_results("benchmark-spark", tmp_path / "in", tmp_path, Given("c"))
    assert not again.imported


def test_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "all.json"
    other = {"model_name": "other", "model_id": "o/other"}
    source.write_text(json.dumps([published.entries()[0] | other]))
    matrix = read_matrix(published.PUBLISHED / "matrix.yaml")
    outcome = import_results(
        "benchmark-spark", source, tmp_path, Given("phase1", matrix)
    )
    assert [left.reason for left in outcome.refused] == [
        "the matrix has no model other"
    ]
    assert not (tmp_path / "phase1").exists()
    with pytest.raises(UsageError, match="declares campaign"):
        import_results("benchmark-spark", source, tmp_path, Given("c", matrix))
    with pytest.raises(UsageError, match="no name of a campaign"):
        import_results("benchmark-spark", source, tmp_path, Given("../c"))

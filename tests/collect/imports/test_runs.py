"""Results of tools where a file says less than it should, or more: what the table of fixtures does not show."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from sparkpub.record.errors import UsageError
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import file_sha256
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from sparkpub.tools.asked import as_key
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


@pytest.mark.parametrize("whole", [True, False])
def test_a_compressed_report_has_its_compressed_log_where_that_can_be_read(
    whole: bool, folder: Path, tmp_path: Path
) -> None:
    report, log = (
        (VLLM / f"serve-c4.{suffix}").read_bytes() for suffix in ("json", "log")
    )
    (folder / "a.json.gz").write_bytes(gzip.compress(report))
    (folder / "a.log.gz").write_bytes(gzip.compress(log)[: None if whole else -20])
    _, (record,) = imported(folder, tmp_path / "data")
    assert (record.file("log") is not None) == whole
    assert ("log" in record.unavailable) != whole
    assert record.workload == ("serve-in64-out16-c4-n12" if whole else "serve-c4-n12")


def test_loads_of_another_size_are_not_put_in_one_cell(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copy(VLLM / "detailed.json", folder / "a.json")  # 32 tokens per prompt
    sweep = (VLLM / "append-sweep.json").read_text().splitlines()
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


def test_each_table_of_a_page_is_a_run_with_the_options_of_its_command(
    tmp_path: Path,
) -> None:
    table = (VLLM / "serve-c4.log").read_text().partition("=" * 12)[2]
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


# -- llama-bench -----------------------------------------------------------------------------------------------


def test_what_the_table_of_llama_bench_does_not_say_is_not_guessed(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match="--environment"):
        imported(LLAMA / "multi.json", tmp_path, environment=None)
    _, records = imported(LLAMA / "multi.md", tmp_path / "type")
    assert {record.model for record in records} == {"llama-b-f16"}  # llama ?B F16
    table = tmp_path / "printed.txt"
    table.write_text(
        "$ ./llama-bench -m models/Tiny-F16.gguf --rpc 10.0.0.2:1,10.0.0.2:2,localhost:1\n"
        "  Device 0: NVIDIA GB10, compute capability 12.1, VMM: yes\n"
        + (LLAMA / "multi.md").read_text()
    )
    _, records = imported(table, tmp_path / "command")
    # Its own machine, and one with two servers.
    machines = {(run.model, run.machine.kind, run.machine.count) for run in records}
    assert machines == {("tiny-f16", "dgx-spark", 2)}
    # A build that can use others need not have done so: whoever ran it is asked.
    rpc = tmp_path / "rpc"
    rpc.mkdir()
    text = (LLAMA / "multi.md").read_text().replace("CPU  ", "CPU,RPC")
    (rpc / "printed.txt").write_text(text)
    outcome, records = imported(rpc, tmp_path / "asked")
    assert {run.machine.count for run in records} == {None}
    assert f"{len(records)} runs with RPC" in outcome.lines()[-1]
    (rpc / "meta.json").write_text('{"nodes": 2}')
    outcome, records = imported(rpc, tmp_path / "said")
    assert {run.machine.count for run in records} == {2}
    assert "RPC" not in outcome.lines()[-1]
    outcome, records = imported(LLAMA / "models.md", tmp_path / "m", model="tiny")
    assert outcome.refused == []  # one name does not fit all three
    assert {record.model for record in records} == {
        "llama-b-f16",
        "llama-b-q4-k-medium",
        "llama-1b-q4-k-medium",
    }
    named = LLAMA / "warmup-r5.json"  # what it names is not overridden
    _, records = imported(named, tmp_path, model="tiny")
    assert {record.model for record in records} == {"small-llama-q4-k-m"}


CUT = {
    "a.json": ("multi.json", 40),
    "a.jsonl": ("multi.jsonl", 40),
    "no-end.json": ("second-model-missing.json", 0),
}


@pytest.mark.parametrize("name", CUT)
def test_a_file_that_was_cut_is_refused_whole_and_the_others_go_on(
    name: str, folder: Path, tmp_path: Path
) -> None:
    source, characters = CUT[name]
    text = (LLAMA / source).read_text()
    (folder / name).write_text(text[: len(text) - characters])
    shutil.copy(LLAMA / "warmup-r5.json", folder / "z.json")
    outcome, records = imported(folder, tmp_path / "data", model="m")
    assert [left.source for left in outcome.refused] == [name]
    assert len(outcome.lines()) == 2
    assert len(records) == 1


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
    _, (record,) = imported(failed, tmp_path / "failed")
    assert (record.workload, record.status) == ("chat-in48-out12-c2-n10", "failed")
    document = json.loads(source.read_text())
    del document["input_config"]
    failed.write_text(json.dumps(document))
    outcome, _ = imported(failed, tmp_path / "unknown")
    assert [left.reason for left in outcome.refused] == [
        "it does not name the model; give --model"
    ]
    _, (record,) = imported(failed, tmp_path / "unknown", model="m")
    # Named after its folder and itself.
    assert record.workload.startswith(as_key(f"{tmp_path.name}-failed-aiperf"))
    assert "named after the file" in record.events[0].text


def test_a_summary_of_sparkrun_does_not_say_whether_prefixes_were_cached(
    tmp_path: Path,
) -> None:
    """Only where there is a context does it matter; a load of which it is unknown is one of its own."""
    shutil.copy(BENCHY / "sparkrun-tiny.json", tmp_path / "a.json")
    _, records = imported(tmp_path / "a.json", tmp_path / "data")
    assert {record.workload for record in records} == {
        *(f"pp64-tg16-c{clients}" for clients in (1, 2)),
        *(f"pp64-tg16-d64-c{clients}-caching-unknown" for clients in (1, 2)),
        *(f"pp64-tg16-d64-c{clients}-caching-unknown-prefill" for clients in (1, 2)),
    }


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "model,test_name\ntiny,pp64\ntiny"),
        ("a.yaml", "a: ["),
        ("a.yaml", "[]"),
    ],
)
def test_what_is_cut_short_or_of_another_tool_is_no_result(
    name: str, content: str, folder: Path, tmp_path: Path
) -> None:
    (folder / name).write_text(content)
    shutil.copy(BENCHY / "vllm.json", folder / "b.json")
    outcome, records = imported(folder, tmp_path / "data")
    assert len(records) == 1
    assert [left.source for left in (*outcome.refused, *outcome.skipped)] == [name]


def test_guidellm_says_what_it_warns_of_and_what_failed(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    document = json.loads((RESULTS / "guidellm/c2.json").read_text())
    (benchmark,) = document["benchmarks"]
    benchmark["metrics"]["request_totals"] |= {"errored": 2, "incomplete": 1}
    benchmark["config"]["constraints"]["max_requests"]["args"]["count"] = 6
    source.write_text(json.dumps(document))
    _, (record,) = imported(source, tmp_path / "some")
    texts = [event.text for event in record.events]
    assert any("generation delay" in text for text in texts)
    # 2 failed and 4 succeeded; one that is cut off at the end did neither.
    assert record.value("failed_requests_percent") == pytest.approx(100 / 3)
    assert "1 requests were cut off at the end" in texts
    findings = review(load(tmp_path / "some")).findings
    assert [item.check for item in findings if item.severity == "error"] == []
    benchmark["metrics"]["request_totals"]["successful"] = 0
    source.write_text(json.dumps(document))
    _, (record,) = imported(source, tmp_path / "none")
    assert (record.status, record.metrics) == ("failed", {})


# -- trtllm-bench ----------------------------------------------------------------------------------------------


def test_files_of_trtllm_bench_are_told_apart_by_what_they_hold(
    folder: Path, tmp_path: Path
) -> None:
    for name, source in (
        ("gpt_iter7.log", "1.1-streaming.log"),
        ("tiny_report.json", "report-and-requests.report.json"),
        ("tiny_requests.json", "report-and-requests.requests.json"),
        ("cut.json", "report-truncated.report.json"),
    ):
        shutil.copy(TRTLLM / source, folder / name)
    (folder / "notes.txt").write_text("bring milk")
    outcome, records = imported(folder, tmp_path / "data")
    assert {left.source for left in outcome.skipped} == {
        "notes.txt",
        "tiny_requests.json",
    }
    assert [(left.source, left.reason) for left in outcome.refused] == [
        ("cut.json", "not JSON, or cut short")
    ]
    gpt, tiny = sorted(records, key=lambda record: record.model)
    assert (gpt.model, gpt.iteration, gpt.status) == ("gpt-oss-120b", 7, "ok")
    assert (gpt.started.value, gpt.started.zone) == ("2025-12-20T04:20:21", "unknown")
    assert gpt.requested.model_id == "openai/gpt-oss-120b"
    assert tiny.value("request_latency_p95_ms") == pytest.approx(1925.0)
    assert {item.role for item in tiny.evidence} == {"report", "requests"}
    assert "last modification" in tiny.unavailable["started"]
    again, _ = imported(folder, tmp_path / "data")
    assert (again.imported, len(again.skipped)) == ([], 2 + 2)

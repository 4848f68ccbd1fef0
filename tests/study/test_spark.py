"""The public results of a DGX Spark are in the tree as one import command writes them."""

import json
import re
from pathlib import Path

import pytest

from sparkpub.collect import importers
from sparkpub.collect.importers.base import Given
from sparkpub.record.record import Record
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import read_campaign, read_folder
from sparkpub.review.results import load
from sparkpub.review.tables.column import rows
from tests.study.conftest import ROOT

ABOUT = ROOT / "matrix/imports/dgx-spark-benchmarks.yaml"
PART = ROOT / "tests/data/imports/bench-spark"
CAMPAIGNS = ("spark-closed-loop", "spark-open-loop")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three builds of the collection, imported by the command of the guide."""
    data = tmp_path_factory.mktemp("data")
    given = Given("rest", about=importers.about(ABOUT, PART))
    importers.import_results(None, PART, data, given)
    return data


def records(folder: Path) -> dict[str, Record]:
    return {item.record.run_id: item.record for item in read_folder(folder)}


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_the_records_are_those_that_the_import_writes(
    campaign: str, imported: Path
) -> None:
    """The part lacks some logs, with the tokenizer that they name, answers and telemetry, and its runs are counted by
    themselves."""
    written, committed = (
        records(data / campaign) for data in (imported, ROOT / DEFAULT_DATA)
    )
    assert len(written) == {"spark-closed-loop": 13, "spark-open-loop": 8}[campaign]
    other = {"plan", "events", "evidence", "unavailable", "phases", "metrics"}
    for name, record in written.items():
        whole = committed[name]
        if record.file("log") is None:
            whole.observed.settings.pop("tokenizer", None)
        assert record.model_dump(exclude=other) == whole.model_dump(exclude=other)
        assert record.metrics.items() <= whole.metrics.items()


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_a_campaign_names_author_licence_and_footnotes(
    campaign: str, imported: Path
) -> None:
    """Each footnote is about cells that are there."""
    info = read_campaign(ROOT / DEFAULT_DATA / campaign)
    assert info == read_campaign(imported / campaign)
    origin = info.origin
    assert origin is not None
    assert (origin.author, origin.licence) == ("Django de Vreng", "CC BY 4.0")
    builds = {
        record.cell[:2] for record in records(ROOT / DEFAULT_DATA / campaign).values()
    }
    assert len(builds) == 38
    assert len(info.footnotes) == 13
    for footnote in info.footnotes:
        for cell in footnote.cells:
            model, environment, _ = cell.split("/")
            assert any(
                model == build[0] and environment in ("*", build[1]) for build in builds
            )


def test_every_build_says_what_ran_and_where() -> None:
    for campaign in CAMPAIGNS:
        for record in records(ROOT / DEFAULT_DATA / campaign).values():
            seen, machine = record.observed, record.machine
            assert (machine.kind, machine.count) == ("dgx-spark", 1)
            assert machine.gpus[0].name == "NVIDIA GB10"
            assert machine.driver is not None
            assert "image" in record.requested.environment
            assert record.requested.model_id is not None
            assert seen.quantization in ("bf16", "fp8", "nvfp4", "mxfp4")
            assert seen.engine == "vLLM"
            assert seen.engine_version is not None
            assert "max_model_len" in seen.settings


def test_every_closed_loop_has_the_log_of_its_call_and_the_tokenizer_that_it_names() -> (
    None
):
    """228 calls of llama-benchy: six tests of 38 builds. None had the model's own tokenizer."""
    folder = ROOT / DEFAULT_DATA / "spark-closed-loop"
    logs = set()
    for record in records(folder).values():
        log = record.file("log")
        assert log is not None
        logs.add(log.path)
        assert record.observed.settings["tokenizer"].startswith("gpt2, ")
    assert len(logs) == 6 * 38
    for log in logs:
        assert "Falling back to 'gpt2' tokenizer" in (folder / log).read_text()


def test_the_evidence_is_small_enough_for_a_clone() -> None:
    """13 MB is what the project gives to these results; a log keeps no state of a progress bar but the last."""
    files = [
        path
        for campaign in CAMPAIGNS
        for path in (ROOT / DEFAULT_DATA / campaign).iterdir()
    ]
    assert sum(path.stat().st_size for path in files) < 13.1e6
    logs = [path.read_bytes() for path in files if path.suffix == ".log"]
    assert logs
    assert not any(b"\r" in log for log in logs)


# -- every figure against the author's own tables -------------------------------------------------------------


TABLE = re.compile(
    r"^\| \S+ +\| +(?P<test>(?:pp|tg)\d+)(?: @ d(?P<depth>\d+))? \(c(?P<clients>\d+)\) \|(?P<cells>.*)\|$",
    re.MULTILINE,
)
"""A row of llama-benchy's table: rate, rate of a request, two peaks, and three times, of which the last is TTFT."""
PRINTED = {
    "request_throughput_req_s": "Request throughput (req/s)",
    "output_throughput_tok_s": "Output token throughput (tok/s)",
    "total_throughput_tok_s": "Total token throughput (tok/s)",
    "ttft_mean_ms": "Mean TTFT (ms)",
    "ttft_p50_ms": "Median TTFT (ms)",
    "ttft_p90_ms": "P90 TTFT (ms)",
    "ttft_p95_ms": "P95 TTFT (ms)",
    "ttft_p99_ms": "P99 TTFT (ms)",
    "tpot_mean_ms": "Mean TPOT (ms)",
    "tpot_p50_ms": "Median TPOT (ms)",
    "tpot_p95_ms": "P95 TPOT (ms)",
    "tpot_p99_ms": "P99 TPOT (ms)",
    "itl_mean_ms": "Mean ITL (ms)",
    "itl_p50_ms": "Median ITL (ms)",
    "itl_p95_ms": "P95 ITL (ms)",
    "itl_p99_ms": "P99 ITL (ms)",
    "request_latency_mean_ms": "Mean E2EL (ms)",
    "request_latency_p50_ms": "Median E2EL (ms)",
    "request_latency_p95_ms": "P95 E2EL (ms)",
    "request_latency_p99_ms": "P99 E2EL (ms)",
}
"""Metrics, and what `vllm bench serve` prints before their values."""


def test_each_closed_loop_is_a_row_of_the_tables_that_came_with_it() -> None:
    """950 pairs of rows: rates with their deviations, and the time to the first token."""
    folder = ROOT / DEFAULT_DATA / "spark-closed-loop"
    tables = {
        path.name: list(TABLE.finditer(path.read_text()))
        for path in folder.glob("original-*.md")
    }
    found = records(folder)
    assert len(found) == 950
    assert sum(map(len, tables.values())) == 2 * len(found)
    pairs = {
        (name, prompt["test"], answer["test"], answer["depth"], answer["clients"]): (
            _cells(prompt),
            _cells(answer),
        )
        for name, rows in tables.items()
        for prompt, answer in zip(rows[::2], rows[1::2], strict=True)
    }
    for record in found.values():
        asked = record.requested.workload
        (name,) = (item.path for item in record.evidence if item.path in tables)
        depth = str(asked["depth"]) if "depth" in asked else None
        lengths = (f"pp{asked['input_tokens']}", f"tg{asked['output_tokens']}")
        prompt, answer = pairs.pop((name, *lengths, depth, str(asked["concurrency"])))
        expected = {
            "prompt_throughput_tok_s": prompt[0],
            "output_throughput_tok_s": answer[0],
            "ttft_mean_ms": prompt[-1],
        }
        for metric, text in expected.items():
            mean, deviation = map(float, text.split(" ± "))
            assert record.value(metric) == mean
            assert record.spreads[metric].deviation == deviation


def _cells(row: re.Match[str]) -> list[str]:
    return [cell.strip() for cell in row["cells"].split("|")]


def test_each_open_loop_is_what_the_client_printed() -> None:
    """364 reports, rounded to the two decimals of the client's own table."""
    folder = ROOT / DEFAULT_DATA / "spark-open-loop"
    found = records(folder)
    assert len(found) == 364
    for record in found.values():
        log = record.file("log")
        assert log is not None
        text = (folder / log.path).read_text()
        for metric, name in PRINTED.items():
            value = record.value(metric)
            assert value is not None
            printed = re.search(
                rf"^{re.escape(name)}: +([\d.]+) *$", text, re.MULTILINE
            )
            assert printed is not None
            assert float(printed[1]) == pytest.approx(value, abs=0.0051)


def test_capacity_is_the_authors() -> None:
    """At all three limits for 36 builds; the other two have their reasons."""
    document = json.loads(
        (ROOT / "tests/data/published/spark-capacity.json").read_text()
    )
    theirs = {
        (build["model"], build["profile"], float(limit) / 1000): rate
        for build in document["builds"]
        for limit, rate in build["capacity_by_slo_ms"].items()
    }
    assert len(theirs) == 3 * 38
    profiles = {
        record.cell[:2]: (record.requested.model_id, _profile(record))
        for record in records(ROOT / DEFAULT_DATA / "spark-open-loop").values()
    }
    ours = {
        (*profiles[row.model, row.environment], row.limit_seconds): row.rate
        for row in rows(load(ROOT / DEFAULT_DATA).capacities)
    }
    differing = {key for key in theirs if key not in ours or ours[key] != theirs[key]}
    omni = "nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-FP8"
    ministral = "mistralai/Ministral-3-8B-Instruct-2512"
    # The server of Omni FP8 had stopped before the sweep, which has no rates: the author's “none” is no measurement.
    # That of Ministral 8B stopped at 0.2 a second; 200 requests at 0.3 a second, his test 07, held within 5 s.
    assert differing == {
        *((omni, "fp8", limit) for limit in (2, 5, 10)),
        *((ministral, "bf16", limit) for limit in (5, 10)),
    }
    assert ours[ministral, "bf16", 5] == 0.3


def _profile(record: Record) -> str:
    """What the author calls the build, in the notes beside its results."""
    (note,) = (event.text for event in record.events if "profile=" in event.text)
    found = re.search(r"profile=([^,]+)", note)
    assert found is not None
    return found[1]

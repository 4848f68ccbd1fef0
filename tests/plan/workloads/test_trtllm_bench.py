"""Every format that trtllm-bench has had, as files: a log, perhaps a report and requests, and what they say."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from sparkpub.plan.workloads import trtllm_bench
from sparkpub.plan.workloads.base import RunCase
from sparkpub.plan.workloads.trtllm_bench import TrtllmBenchOptions
from sparkpub.record.errors import WorkloadError

LOGS = Path(__file__).parents[2] / "data/logs/trtllm-bench"
CASES = sorted(
    path.name.removesuffix(".expected.json") for path in LOGS.glob("*.expected.json")
)


@pytest.mark.parametrize("name", CASES)
def test_what_the_evidence_says(name: str) -> None:
    expected = json.loads((LOGS / f"{name}.expected.json").read_text())
    paths = {role: LOGS / f"{name}.{role}.json" for role in ("report", "requests")}
    files = {role: path.read_bytes() for role, path in paths.items() if path.exists()}
    answer = trtllm_bench.parse((LOGS / f"{name}.log").read_bytes(), files, None)
    assert {
        key: answer.metrics[key].value for key in expected["metrics"]
    } == pytest.approx(expected["metrics"])
    assert not set(expected.get("absent", ())) & set(answer.metrics)
    observed = answer.observed.model_dump()
    assert {key: observed[key] for key in expected["observed"]} == pytest.approx(
        expected["observed"]
    )
    assert answer.complete is expected["complete"]
    assert list(answer.problems) == expected["problems"]


def test_averages_count_where_no_percentiles_are_printed() -> None:
    """Excerpts and old versions end with the averages: `Average request latency (ms): 8500.0000`."""
    log = (LOGS / "1.1-streaming.log").read_text()
    kept = [
        line
        for line in log.splitlines()
        if not re.match(r"\[(?:Latency|TTFT|TPOT)\]", line)
    ]
    assert len(kept) < len(log.splitlines())
    metrics = trtllm_bench.parse("\n".join(kept).encode(), {}, None).metrics
    assert metrics["request_latency_mean_ms"].value == 8500.0
    assert metrics["ttft_mean_ms"].value == 210.5
    assert "request_latency_p50_ms" not in metrics


def test_requests_that_did_not_return_are_missed() -> None:
    report = (LOGS / "report-only.report.json").read_bytes()
    answer = trtllm_bench.parse(b"", {"report": report}, TrtllmBenchOptions(requests=6))
    assert answer.problems == ("4 of 6 requests returned",)


def case(**changes: Any) -> RunCase:
    facts: dict[str, Any] = {
        "model_key": "tiny",
        "model_id": "tiny/model",
        "model_path": "/models/tiny",
        "model_config": None,
        "random_weights": False,
        "iteration": 1,
        "seed": 42,
    }
    return RunCase(**facts | changes)


def flags(argv: tuple[str, ...]) -> dict[str, str]:
    return {one: two for one, two in itertools.pairwise(argv) if one.startswith("--")}


def test_the_command_names_model_and_limits() -> None:
    command = trtllm_bench.command(
        case(), TrtllmBenchOptions(input_tokens=16, requests=5, output_tokens=7)
    )
    argv = command.argv
    assert argv[:6] == (
        "trtllm-bench",
        "--model",
        "tiny/model",
        "--model_path",
        "/models/tiny",
        "throughput",
    )
    given = flags(argv)
    assert given["--max_batch_size"] == "8"
    assert given["--max_num_tokens"] == "8192"
    assert "--streaming" in argv
    lines = [json.loads(line) for line in command.files()["dataset.jsonl"].splitlines()]
    assert [line["task_id"] for line in lines] == [0, 1, 2, 3, 4]
    assert {(len(line["input_ids"]), line["output_tokens"]) for line in lines} == {
        (16, 7)
    }
    assert command.outputs == {"report": "report.json", "requests": "requests.json"}


def test_the_dataset_depends_on_the_seed_and_not_on_the_iteration() -> None:
    options = TrtllmBenchOptions(input_tokens=16)
    one, again, other = (
        trtllm_bench.command(case(iteration=iteration, seed=seed), options).files()
        for iteration, seed in ((1, 42), (2, 42), (1, 43))
    )
    assert one == again
    assert one != other


def test_pinned_cache_and_random_weights_go_into_the_yaml() -> None:
    options = TrtllmBenchOptions(
        input_tokens=16,
        kv_cache_tokens=400_000,
        llm_api_options={"attn_backend": "TRTLLM"},
        config_flag="--config",
    )
    command = trtllm_bench.command(case(random_weights=True), options)
    (name,) = (name for name in command.files() if name.endswith(".yaml"))
    assert flags(command.argv)["--config"] == "{workdir}/" + str(name)
    assert yaml.safe_load(command.files()[name]) == {
        "kv_cache_config": {
            "max_tokens": 400_000,
            "free_gpu_memory_fraction": 0.9,
            "enable_block_reuse": False,
        },
        "load_format": "dummy",
        "attn_backend": "TRTLLM",
    }


def test_latency_has_neither_batch_size_nor_request_file() -> None:
    command = trtllm_bench.command(
        case(), TrtllmBenchOptions(mode="latency", input_tokens=16)
    )
    assert {"--max_batch_size", "--request_json", "--streaming"}.isdisjoint(
        command.argv
    )
    assert "--report_json" in command.argv


def test_what_cannot_be_run_is_refused() -> None:
    with pytest.raises(WorkloadError, match="input_tokens"):
        trtllm_bench.command(case(), TrtllmBenchOptions())
    with pytest.raises(WorkloadError, match=r"models\.tiny"):
        trtllm_bench.command(case(model_path=None), TrtllmBenchOptions(input_tokens=1))
    with pytest.raises(ValidationError, match="engine_dir"):
        TrtllmBenchOptions(backend="tensorrt")
    with pytest.raises(ValidationError, match="batch 1"):
        TrtllmBenchOptions(mode="latency", max_batch_size=4)


@pytest.mark.parametrize(
    ("warmup", "begins"),
    [
        (2, "[TRT-LLM] [I] Benchmark complete."),
        (0, "[TRT-LLM] [I] Request submission complete."),
    ],
)
def test_the_measurement_begins_after_the_warm_up(warmup: int, begins: str) -> None:
    """A published log holds both lines twice; what the first one matches is the end of the warm-up."""
    options = TrtllmBenchOptions(input_tokens=8, warmup=warmup)
    pattern = trtllm_bench.command(case(), options).measured_from
    assert pattern is not None
    lines = (LOGS / "1.1-streaming.log").read_text().splitlines()
    found = [number for number, line in enumerate(lines) if re.search(pattern, line)]
    assert begins in lines[found[0]]
    measured = next(
        number
        for number, line in enumerate(lines)
        if "Request submission complete." in line
    )
    assert found[0] <= measured

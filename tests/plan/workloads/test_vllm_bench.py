"""`vllm bench`: what the real tool left, and what it documents.

Logs and reports under `tests/data/logs/vllm-bench` are of vLLM 0.24.0 on an NVIDIA H200. The other reports here have
numbers that are chosen, with the arithmetic beside them.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sparkpub.plan.environments import Server
from sparkpub.plan.workloads import vllm_bench
from sparkpub.plan.workloads.base import Answer, RunCase
from sparkpub.plan.workloads.vllm_bench import VllmBenchOptions
from sparkpub.record.errors import WorkloadError


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


def values(
    log: bytes, report: Any, options: VllmBenchOptions | None = None
) -> dict[str, float | None]:
    answer = vllm_bench.parse(log, {"report": json.dumps(report).encode()}, options)
    return {name: metric.value for name, metric in answer.metrics.items()}


def test_the_total_rate_is_never_taken_for_the_output_rate() -> None:
    report = {
        "elapsed_time": 10.0,
        "num_requests": 100,
        "total_num_tokens": 64_000,
        "tokens_per_second": 6400.0,
    }
    answer = vllm_bench.parse(b"", {"report": json.dumps(report).encode()}, None)
    assert "output_throughput_tok_s" not in answer.metrics
    assert not answer.complete


def test_latency_is_per_batch_and_the_rate_needs_its_size() -> None:
    report = {
        "avg_latency": 2.0,
        "latencies": [1.0, 2.0, 3.0],
        "percentiles": {"50": 2.0},
    }
    assert "output_throughput_tok_s" not in values(b"", report)
    found = values(
        b"",
        report,
        VllmBenchOptions(mode="latency", batch_size=4, output_tokens=10, requests=3),
    )
    assert found["request_latency_mean_ms"] == 2000.0
    # Type 7 quantile of 1, 2, 3 at 0.95: position 1.9, so 2 + 0.9 = 2.9 s.
    assert found["request_latency_p95_ms"] == pytest.approx(2900.0)
    # 3 batches x 4 requests x 10 tokens in 6 s.
    assert found["output_throughput_tok_s"] == pytest.approx(20.0)


LOGS = Path(__file__).parents[2] / "data/logs/vllm-bench"


def real(mode: str, options: VllmBenchOptions | None = None) -> Answer:
    report = (LOGS / f"0.24-{mode}.report.json").read_bytes()
    return vllm_bench.parse(
        (LOGS / f"0.24-{mode}.log").read_bytes(), {"report": report}, options
    )


def test_a_real_run_in_mode_throughput() -> None:
    """It asked for 512 tokens with `--input-len`, and got `--random-input-len`'s default of 1024."""
    answer = real("throughput", VllmBenchOptions(requests=50))
    value = {name: metric.value for name, metric in answer.metrics.items()}
    assert next(iter(value)) == "output_throughput_tok_s"
    # Printed: 8.52 requests/s, 9816.66 total tokens/s, 1090.61 output tokens/s.
    assert value["output_throughput_tok_s"] == 1090.61
    assert answer.metrics["output_throughput_tok_s"].source == "log"
    assert value["total_throughput_tok_s"] == 9816.655838762492
    assert value["request_throughput_req_s"] == 8.52036717652585
    assert value["measured_time_ms"] == pytest.approx(5868.291702)
    # Printed: Total num prompt tokens: 51207, Total num output tokens: 6400, of 50 requests.
    assert answer.observed.input_tokens_mean == pytest.approx(51207 / 50)
    assert answer.observed.output_tokens_mean == 128
    assert answer.problems == ("prompts had 1024.14 tokens on average instead of 512",)
    assert (answer.observed.engine, answer.observed.engine_version) == (
        "vLLM",
        "0.24.0",
    )
    assert answer.observed.batch_size == 8
    assert answer.observed.random_weights is True


def test_a_real_run_in_mode_latency() -> None:
    answer = real("latency", VllmBenchOptions(mode="latency", requests=5))
    value = {name: metric.value for name, metric in answer.metrics.items()}
    assert value["request_latency_mean_ms"] == pytest.approx(
        726.4679242
    )  # printed: Avg latency: 0.7264679242000056
    assert value["request_latency_p50_ms"] == pytest.approx(727.887174999978)
    assert value["request_latency_p99_ms"] == pytest.approx(730.6692010800202)
    # 8 sequences x 128 tokens in the mean time of a batch.
    assert value["output_throughput_tok_s"] == pytest.approx(8 * 128 / 0.7264679242)
    first, *rest = answer.samples["request_latency_mean_ms"]
    assert (first, len(rest)) == (pytest.approx(725.564286), 4)
    # Five batches, one after the other, at the mean printed above: the measured phase.
    assert answer.observed.measured_seconds == pytest.approx(5 * 0.7264679242)
    assert value["weights_gib"] == 14.29


def test_a_real_run_in_mode_serve() -> None:
    answer = real("serve", VllmBenchOptions(mode="serve", concurrency=8))
    value = {name: metric.value for name, metric in answer.metrics.items()}
    assert next(iter(value)) == "output_throughput_tok_s"
    printed = {
        "output_throughput_tok_s": 1191.75,
        "total_throughput_tok_s": 5960.60,
        "request_throughput_req_s": 9.31,
        "ttft_mean_ms": 135.54,
        "ttft_p50_ms": 88.96,
        "ttft_p90_ms": 451.63,
        "ttft_p95_ms": 452.32,
        "ttft_p99_ms": 452.74,
        "tpot_mean_ms": 5.09,
        "tpot_p50_ms": 5.02,
        "tpot_p99_ms": 5.54,
        "itl_p95_ms": 5.63,
        "request_latency_mean_ms": 781.49,
        "request_latency_p50_ms": 724.04,
        "request_latency_p99_ms": 1092.73,
        "measured_time_ms": 5370.0,
        "weights_gib": 14.29,
        "kv_cache_gib": 112.89,
        "kv_cache_tokens": 2_113_888.0,
    }
    assert {name: value[name] for name in printed} == pytest.approx(printed, rel=1e-3)
    observed = answer.observed
    # Printed: Total input tokens: 25610, Total generated tokens: 6400, of 50 requests.
    assert (
        observed.requests,
        observed.input_tokens_mean,
        observed.output_tokens_mean,
    ) == (50, 25610 / 50, 128)
    assert (
        observed.batch_size,
        observed.random_weights,
        observed.measured_seconds,
    ) == (8, True, 5.370263500999954)
    assert not answer.problems
    shorter = real("serve", VllmBenchOptions(mode="serve", output_tokens=256))
    assert shorter.problems == ("outputs had 128 tokens on average instead of 256",)


def test_the_report_of_a_client_alone_names_no_engine() -> None:
    report = json.loads((LOGS / "0.24-serve.report.json").read_text())
    assert (
        vllm_bench.parse(
            b"", {"report": json.dumps(report).encode()}, None
        ).observed.engine
        is None
    )
    # lhl/strix-halo-testing has results of llama.cpp with `backend='vllm'`, which is the client's own default.
    own = json.dumps(report | {"backend": "vllm"}).encode()
    assert vllm_bench.parse(b"", {"report": own}, None).observed.engine is None


def test_latencies_of_requests_are_not_taken_for_those_of_batches() -> None:
    """Since 0.32 the report of mode serve lists the latency of each request, too."""
    report = json.loads((LOGS / "0.24-serve.report.json").read_text()) | {
        "latencies": [0.7, 0.8]
    }
    found = values(b"", report)
    assert found["output_throughput_tok_s"] == 1191.7478534914176
    assert found["request_latency_mean_ms"] == 781.4857745000029


def test_a_report_of_nothing_is_no_result() -> None:
    """vLLM 0.32 against a server that had gone, and one that broke off: exit code 0 both times."""
    report = (LOGS / "0.32-noserver.report.json").read_bytes()
    answer = vllm_bench.parse(b"", {"report": report}, None)
    assert not answer.complete
    assert (answer.metrics, answer.problems) == ({}, ("no request succeeded",))
    broken_off = vllm_bench.parse(
        b"", {"report": (LOGS / "0.32-failures.report.json").read_bytes()}, None
    )
    # "completed": 2, "failed": 8
    assert broken_off.metrics["failed_requests_percent"].value == 80
    assert broken_off.observed.requests == 2


def test_a_real_run_on_a_processor() -> None:
    """vLLM 0.32 on two cores, on which it has a cache of keys and values, and says no size of the weights."""
    log, report = (
        (LOGS / "0.32-throughput.log").read_bytes(),
        (LOGS / "0.32-throughput.report.json").read_bytes(),
    )
    answer = vllm_bench.parse(log, {"report": report}, None)
    value = {name: metric.value for name, metric in answer.metrics.items()}
    # Printed: 0.71 requests/s, 56.87 total tokens/s, 11.35 output tokens/s; 1027 + 256 tokens of 16 requests.
    assert (value["output_throughput_tok_s"], value["total_throughput_tok_s"]) == (
        11.35,
        pytest.approx(56.87, abs=5e-3),
    )
    assert (value["kv_cache_tokens"], "weights_gib" in value) == (131_072, False)
    seen = answer.observed
    assert (seen.input_tokens_mean, seen.output_tokens_mean) == (1027 / 16, 16)
    assert (seen.engine_version, seen.model_path) == ("0.32.0", "models/tiny-llama")
    log, report = (
        (LOGS / "0.32-latency.log").read_bytes(),
        (LOGS / "0.32-latency.report.json").read_bytes(),
    )
    latency = vllm_bench.parse(log, {"report": report}, None).metrics
    # Printed: Avg latency: 2.9672320689999956 seconds; 90% percentile latency: 5.105978035000135 seconds.
    assert latency["request_latency_mean_ms"].value == pytest.approx(2967.232069)
    assert latency["request_latency_p90_ms"].value == pytest.approx(5105.978035)


def test_the_engine_is_asked_for_the_lengths_that_are_declared() -> None:
    throughput = vllm_bench.command(
        case(random_weights=True), VllmBenchOptions(extra_args=("--x", "0.5"))
    ).argv
    assert throughput[:5] == ("vllm", "bench", "throughput", "--model", "/models/tiny")
    assert throughput[throughput.index("--load-format") + 1] == "dummy"
    assert throughput[throughput.index("--random-input-len") + 1] == "512"
    assert "--input-len" not in throughput  # it would be ignored
    assert throughput[-2:] == ("--x", "0.5")
    latency = vllm_bench.command(
        case(), VllmBenchOptions(mode="latency", requests=30, warmup=10)
    ).argv
    assert latency[latency.index("--input-len") + 1] == "512"
    assert latency[latency.index("--num-iters") + 1] == "30"
    assert latency[latency.index("--num-iters-warmup") + 1] == "10"
    with pytest.raises(WorkloadError):
        vllm_bench.command(case(model_path=None), VllmBenchOptions())


def test_the_server_of_the_environment() -> None:
    served = case(server=Server(argv=("vllm", "serve"), port=8200), workload_key="c4")
    options = VllmBenchOptions(
        mode="serve",
        concurrency=4,
        request_rate=2.5,
        warmup=16,
        extra_args=("--burstiness", "2"),
    )
    client = vllm_bench.command(served, options)
    assert client.argv[:7] == (
        "vllm",
        "bench",
        "serve",
        "--model",
        "/models/tiny",
        "--base-url",
        "http://127.0.0.1:8200",
    )
    assert (
        client.argv[client.argv.index("--seed") + 1] == str(served.prompt_seed) != "42"
    )
    for words in (
        "--random-input-len 512 --random-output-len 128",
        "--max-concurrency 4",
        "--request-rate 2.5",
        "--num-warmups 16",
        "--temperature 0.0",
        "--ignore-eos",
    ):
        assert words in " ".join(client.argv)
    assert client.argv[-2:] == ("--burstiness", "2")
    assert client.files() == {}
    with pytest.raises(WorkloadError, match="batch_size is said by the arguments"):
        vllm_bench.command(served, VllmBenchOptions(mode="serve", batch_size=4))
    with pytest.raises(WorkloadError, match="needs the server's address"):
        vllm_bench.command(case(), options)


@pytest.mark.parametrize(
    "option",
    [{"concurrency": 4}, {"request_rate": 1.0}, {"temperature": 1}, {"warmup": 1}],
)
def test_options_of_another_mode_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=f"{next(iter(option))} is for mode"):
        VllmBenchOptions(**option)


@pytest.mark.parametrize(
    ("mode", "begins", "before"),
    [
        ("throughput", "Processed prompts:   0%|", "Adding requests: 100%|"),
        ("latency", "Profiling iterations:   0%|", "Warmup iterations: 100%|"),
        ("latency", "Bench iterations:   0%|", "Warmup iterations: 100%|"),
        (
            "serve",
            "Initial test run completed. Starting main benchmark run...",
            "Starting initial single prompt test",
        ),
    ],
)
def test_the_measurement_begins_with_a_line_that_comes_at_once(
    mode: str, begins: str, before: str
) -> None:
    command = vllm_bench.command(
        case(server=Server(argv=("vllm", "serve"))),
        VllmBenchOptions.model_validate({"mode": mode}),
    )
    assert command.variables["PYTHONUNBUFFERED"] == "1"
    assert command.measured_from is not None
    assert re.search(command.measured_from, begins)
    assert not re.search(command.measured_from, before)

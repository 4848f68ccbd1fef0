"""`vllm bench`: what the real tool left, and what it documents.

Logs and reports under `tests/data/logs/vllm-bench` are of vLLM 0.24.0 on an NVIDIA H200. The other reports here have
numbers that are chosen, with the arithmetic beside them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.plan.workloads import vllm_bench
from sparkpub.plan.workloads.vllm_bench import VllmBenchOptions


def values(
    log: bytes, report: Any, options: VllmBenchOptions | None = None
) -> dict[str, float | None]:
    answer = vllm_bench.parse(log, {"report": json.dumps(report).encode()}, options)
    return {name: metric.value for name, metric in answer.metrics.items()}


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

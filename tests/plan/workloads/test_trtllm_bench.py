"""Every format that trtllm-bench has had, as files: a log, perhaps a report and requests, and what they say."""

import re
from pathlib import Path

from sparkpub.plan.workloads import trtllm_bench

LOGS = Path(__file__).parents[2] / "data/logs/trtllm-bench"


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

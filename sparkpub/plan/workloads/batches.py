"""Text generated batch after batch: the load, and the reader of the reports.

Every batch holds `batch_size` requests of `input_tokens` random tokens, submitted together; each emits exactly
`output_tokens` tokens, greedily, with the end-of-sequence token ignored. All requests of a batch therefore share
their time to first token and their latency, and a run measures `batches` of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sparkpub.plan.workloads.base import (
    Answer,
    Options,
    no_answer,
    own_answer,
)
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import MetricValue
from sparkpub.tools import reading


def parse(log: bytes, files: Mapping[str, bytes], options: Options | None) -> Answer:
    """Metrics and identity from the report, times from the requests."""
    report = reading.json_object(files.get("report"))
    if report is None:
        return no_answer("no report: the generation did not finish")
    document = reading.json_object(files.get("requests")) or {}
    requests = reading.objects(document.get("requests"))
    given = report.get("metrics")
    told = given if isinstance(given, dict) else {}
    unavailable = report.get("unavailable")
    reasons = unavailable if isinstance(unavailable, dict) else {}
    metrics = {
        name: reading.metric(
            name, told.get(name), "report", reason=str(reasons.get(name, ""))
        )
        for name in (*told, *reasons)
        if name in METRICS
    } | _times(requests, document.get("itl_ms"))
    said = report.get("problems")
    problems = [str(problem) for problem in said] if isinstance(said, list) else []
    if not reading.known(metrics, "output_throughput_tok_s"):
        problems.append("the report holds no throughput")
    series = tuple(_by_batch(requests).values())
    return own_answer(report, metrics, report.get("observed"), problems, series)


def printed(log: bytes) -> dict[str, tuple[float, float]]:
    """What the payload's last line says."""
    return reading.printed(
        log, {"output_throughput_tok_s": r"batch \d+: ([\d.]+) output tokens/s"}
    )


def _by_batch(requests: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """Batch to the latency of its slowest request, in milliseconds."""
    slowest: dict[int, float] = {}
    for request in requests:
        batch, latency = request.get("batch"), request.get("latency_ms")
        if isinstance(batch, int) and isinstance(latency, int | float):
            slowest[batch] = max(slowest.get(batch, 0.0), float(latency))
    return slowest


def _times(
    requests: Sequence[Mapping[str, Any]], batches: Any
) -> dict[str, MetricValue]:
    """Distributions over requests; between tokens, over all steps of all `batches`."""
    latencies, firsts, per_token = [], [], []
    for request in requests:
        first = reading.number(request.get("ttft_ms"))
        latency = reading.number(request.get("latency_ms"))
        tokens = reading.positive_int(request.get("output_tokens")) or 0
        if first is not None and latency is not None and tokens > 1:
            latencies.append(latency)
            firsts.append(first)
            per_token.append((latency - first) / (tokens - 1))
    listed = batches if isinstance(batches, list) else []
    series = {
        "request_latency": latencies,
        "ttft": firsts,
        "tpot": per_token,
        "itl": [step for batch in listed for step in reading.numbers(batch)],
    }
    found: dict[str, MetricValue] = {}
    for stem, values in series.items():
        found |= reading.distribution(stem, values, "report")
    return found

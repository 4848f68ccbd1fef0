"""One benchmark of GuideLLM's JSON report: a strategy (streams, or requests per second) with its metrics.

Format: vllm-project/guidellm, `src/guidellm/schemas` (report version 2). Every metric has statistics over the requests
that succeeded. What GuideLLM calls inter-token latency is the time after the first token divided by the remaining
tokens of a request, which is our time per output token; its own time per output token has the first token in it.
"""

from collections.abc import Mapping
from typing import Any

from sparkpub.record.record import MetricValue
from sparkpub.tools import agreement, reading

_RATES = {
    "output_throughput_tok_s": "output_tokens_per_second",
    "total_throughput_tok_s": "tokens_per_second",
    "request_throughput_req_s": "requests_per_second",
}
_MILLISECONDS = {
    "ttft": "time_to_first_token_ms",
    "tpot": "inter_token_latency_ms",
}
_STATISTICS = {
    "mean": "mean",
    "min": "min",
    "p50": "percentiles.p50",
    "p90": "percentiles.p90",
    "p95": "percentiles.p95",
    "p99": "percentiles.p99",
    "max": "max",
}


def is_report(report: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a benchmark of GuideLLM."""
    return report.get("type_") == "generative_benchmark" and "metrics" in report


def metrics(report: Mapping[str, Any]) -> dict[str, MetricValue]:
    """The metrics of a benchmark; none where no request succeeded, since the tool gives zeros then."""
    if not _succeeded(report):
        return {}
    rates = {
        name: f"metrics.{theirs}.successful.mean" for name, theirs in _RATES.items()
    }
    found = reading.metrics_at(report, rates, "report")
    found |= _distribution(report, "request_latency", "request_latency", scale=1e3)
    for stem, theirs in _MILLISECONDS.items():
        found |= _distribution(report, stem, theirs)
    failed = reading.number(reading.at(report, "metrics.request_totals.errored"))
    found |= reading.failed_requests(failed, _succeeded(report))
    return found | reading.measured_time(report, "duration")


def _distribution(
    report: Mapping[str, Any], stem: str, theirs: str, scale: float = 1.0
) -> dict[str, MetricValue]:
    if not reading.number(reading.at(report, f"metrics.{theirs}.successful.count")):
        return {}  # an answer in one piece has no first token, and zeros in its place
    paths = {
        f"{stem}_{key}_ms": f"metrics.{theirs}.successful.{statistic}"
        for key, statistic in _STATISTICS.items()
    }
    return reading.metrics_at(report, paths, "report", scale=scale)


def _succeeded(report: Mapping[str, Any]) -> int | None:
    return reading.positive_int(reading.at(report, "metrics.request_totals.successful"))


def load(report: Mapping[str, Any]) -> dict[str, Any]:
    """Requests and mean lengths that were really processed, as fields of `Observed`."""
    lengths = "metrics.{}_token_count.successful.mean"
    return {
        "requests": _succeeded(report),
        "input_tokens_mean": reading.number(
            reading.at(report, lengths.format("prompt"))
        ),
        "output_tokens_mean": reading.number(
            reading.at(report, lengths.format("output"))
        ),
        "concurrency_mean": reading.number(
            reading.at(report, "metrics.request_concurrency.successful.mean")
        ),
        "measured_seconds": reading.number(report.get("duration")),
    }


_SUMS: tuple[agreement.Sum, ...] = (
    (
        "metrics.time_per_output_token_ms.successful.total_sum",
        (
            "metrics.time_to_first_token_ms.successful.total_sum",
            "metrics.inter_token_latency_ms.successful.total_sum",
        ),
    ),
)
"""All tokens together: what requests waited for the first ones, and for the others."""
_SUMMARIES = tuple(
    f"metrics.{name}.successful"
    for name in (
        "request_latency",
        *_MILLISECONDS.values(),
        "output_token_count",
        "prompt_token_count",
    )
)


def problems(report: Mapping[str, Any]) -> list[str]:
    """Figures that contradict each other."""
    if not _succeeded(report):
        return []
    found = agreement.sums(report, _SUMS)
    found += agreement.means(report, _SUMMARIES, ("mean", "total_sum", "count"))
    began, ended, duration = (
        reading.number(report.get(name))
        for name in ("start_time", "end_time", "duration")
    )
    if began is not None and ended is not None:
        found += agreement.equal(
            "duration",
            duration,
            "end_time less start_time",
            ended - began,
            _CLOCK_TOLERANCE,
        )
    return found


_CLOCK_TOLERANCE = 1e-4
"""UNIX times in floats hold a quarter of a microsecond, and runs may be short."""

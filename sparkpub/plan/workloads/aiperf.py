"""AIPerf's summary, `profile_export_aiperf.json` (schema 1.x): a mapping of metric to its unit and statistics.

Formats: ai-dynamo/aiperf, `aiperf/common/models/export_models.py`. What AIPerf calls inter-token latency is the time
after the first token divided by the remaining tokens of a request, which is our time per output token.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from sparkpub.record.metrics import METRICS
from sparkpub.record.record import MetricValue
from sparkpub.tools import agreement, reading

_RATES = {
    "output_throughput_tok_s": ("output_token_throughput", "tokens/sec"),
    "total_throughput_tok_s": ("total_token_throughput", "tokens/sec"),
    "request_throughput_req_s": ("request_throughput", "requests/sec"),
    # Not `output_token_throughput_per_user`, which leaves out the time to the first token.
    "output_throughput_per_user_tok_s": (
        "e2e_output_token_throughput",
        "tokens/sec/user",
    ),
}
_LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "request_latency": "request_latency",
}
_STATISTICS = {
    "mean": "avg",
    "min": "min",
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "max": "max",
}
_PER_SECOND = {"sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def is_report(report: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a summary of AIPerf."""
    return "aiperf_version" in report or isinstance(
        report.get("time_to_first_token"), dict
    )


def metrics(report: Mapping[str, Any]) -> dict[str, MetricValue]:
    """The metrics of a summary; one in a unit that is not the documented one is left out."""
    found: dict[str, MetricValue] = {}
    for name, (theirs, unit) in _RATES.items():
        if reading.at(report, f"{theirs}.unit") == unit:
            found |= reading.metrics_at(report, {name: f"{theirs}.avg"}, "report")
    is_whole = report.get("time_to_first_token") == report.get("request_latency")
    for stem, theirs in _LATENCIES.items():
        if stem == "ttft" and is_whole:
            continue  # an answer in one piece, of which GenAI-Perf gives the latency once more
        seconds = _PER_SECOND.get(str(reading.at(report, f"{theirs}.unit")))
        if seconds is not None:
            paths = {
                f"{stem}_{key}_ms": f"{theirs}.{statistic}"
                for key, statistic in _STATISTICS.items()
            }
            known = {name: path for name, path in paths.items() if name in METRICS}
            found |= reading.metrics_at(report, known, "report", scale=1e3 * seconds)
    found |= reading.failed_requests(
        _failed(report), reading.number(reading.at(report, "request_count.avg"))
    )
    duration = measured_seconds(report)
    if duration is not None:
        found["measured_time_ms"] = reading.metric(
            "measured_time_ms", duration, "report", scale=1e3
        )
    return found


def _failed(report: Mapping[str, Any]) -> float | None:
    """Requests that failed: AIPerf counts them only where there are any, and else gives an empty list of errors."""
    counted = reading.number(reading.at(report, "error_request_count.avg"))
    if counted is None and report.get("error_summary") == []:
        return 0.0
    return counted


def measured_seconds(report: Mapping[str, Any]) -> float | None:
    """Length of the measured phase, in seconds."""
    scale = _PER_SECOND.get(str(reading.at(report, "benchmark_duration.unit")))
    duration = reading.number(reading.at(report, "benchmark_duration.avg"))
    return None if scale is None or duration is None else duration * scale


def load(report: Mapping[str, Any]) -> dict[str, Any]:
    """Requests and mean lengths that were really processed, as fields of `Observed`."""
    return {
        "requests": reading.positive_int(reading.at(report, "request_count.avg")),
        "input_tokens_mean": reading.number(
            reading.at(report, "input_sequence_length.avg")
        ),
        "output_tokens_mean": reading.number(
            reading.at(report, "output_sequence_length.avg")
        ),
        "measured_seconds": measured_seconds(report),
    }


def deviations(report: Mapping[str, Any]) -> dict[str, float]:
    """Standard deviations over requests: of the time per output token in ms, and of the tokens of an answer."""
    seconds = _PER_SECOND.get(str(reading.at(report, "inter_token_latency.unit")))
    per_token = reading.number(reading.at(report, "inter_token_latency.std"))
    tokens = reading.number(reading.at(report, "output_sequence_length.std"))
    if seconds is None or per_token is None or tokens is None:
        return {}
    return {"tpot": 1e3 * seconds * per_token, "output_tokens": tokens}


_SUMS: tuple[agreement.Sum, ...] = (
    (
        "request_latency.sum",
        ("time_to_first_token.sum", "inter_chunk_latency.sum"),
    ),
    ("total_osl.avg", ("output_sequence_length.sum",)),
    ("total_isl.avg", ("input_sequence_length.sum",)),
)
"""All requests together: what they waited for their first tokens and between the chunks, and their tokens."""


def problems(report: Mapping[str, Any]) -> list[str]:
    """A run that did not finish, and figures that contradict each other."""
    found = agreement.sums(report, _SUMS)
    summaries = (*_LATENCIES.values(), "output_sequence_length")
    found += agreement.means(report, summaries, ("avg", "sum", "count"))
    counted = reading.number(reading.at(report, "usage_completion_tokens.avg"))
    encoded = reading.number(reading.at(report, "output_sequence_length.avg"))
    found += agreement.of_text(encoded, counted) + agreement.of_text(counted, encoded)
    found += _another_span(report)
    if report.get("was_cancelled") is True:
        found.append("AIPerf was cancelled")
    if report.get("is_complete") is False:
        found.append(f"AIPerf did not finish: {report.get('incomplete_reason')}")
    return found


def _another_span(report: Mapping[str, Any]) -> list[str]:
    """Where rates are not over the time from the begin of the run to its end, which is what AIPerf divides by."""
    began, ended = (
        reading.word(report.get(name)) for name in ("start_time", "end_time")
    )
    rate = reading.number(reading.at(report, "request_throughput.avg"))
    count = reading.number(reading.at(report, "request_count.avg"))
    if began is None or ended is None or not rate or count is None:
        return []
    with suppress(ValueError, TypeError):
        span = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
        return agreement.equal(
            "request_count by request_throughput",
            count / rate,
            "end_time less start_time",
            span.total_seconds(),
            _CLOCK_TOLERANCE,
        )
    return []


_CLOCK_TOLERANCE = 1e-4
"""Times are written in microseconds, and those of a short run differ by a few."""

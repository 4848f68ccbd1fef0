"""The report of SGLang's `bench_serving`: an object of flat figures, with times in ms.

Format: sgl-project/sglang, `python/sglang/benchmark/serving.py`. `total_output_tokens` and the rates of output count
what was asked for; `total_output_tokens_retokenized` counts the text that came back, and is not used.
"""

from collections.abc import Mapping
from typing import Any

from sparkpub.record.record import MetricValue
from sparkpub.tools import agreement, reading

_RATES = {
    "output_throughput_tok_s": "output_throughput",
    "total_throughput_tok_s": "total_throughput",
    "request_throughput_req_s": "request_throughput",
}
_LATENCIES = {
    "ttft": "ttft",
    "tpot": "tpot",
    "itl": "itl",
    "request_latency": "e2e_latency",
}
_STATISTICS = {
    "mean": "mean",
    "p50": "median",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
}


def is_report(report: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a report of `bench_serving`."""
    return "completed" in report and "mean_e2e_latency_ms" in report


def metrics(report: Mapping[str, Any]) -> dict[str, MetricValue]:
    """The metrics of a report; none where no request succeeded, since the tool gives zeros then."""
    if not reading.number(report.get("completed")):
        return {}
    paths = dict(_RATES)
    for stem, theirs in _LATENCIES.items():
        paths |= {
            f"{stem}_{key}_ms": f"{statistic}_{theirs}_ms"
            for key, statistic in _STATISTICS.items()
        }
    found = reading.metrics_at(report, paths, "report")
    found |= reading.failed_requests(
        _failed(report), reading.number(report.get("completed"))
    )
    return found | reading.measured_time(report, "duration")


def _failed(report: Mapping[str, Any]) -> int | None:
    """Requests that failed: `--output-details` gives an error for each request, empty where there was none."""
    errors = report.get("errors")
    if not isinstance(errors, list):
        return None
    return sum(1 for error in errors if error)


def load(report: Mapping[str, Any]) -> dict[str, Any]:
    """Requests and mean lengths that were really processed, as fields of `Observed`."""
    requests = reading.positive_int(report.get("completed"))
    found: dict[str, Any] = {
        "requests": requests,
        "concurrency_mean": reading.number(report.get("concurrency")),
        "measured_seconds": reading.number(report.get("duration")),
    }
    for kind in ("input", "output"):
        total = reading.number(report.get(f"total_{kind}_tokens"))
        if requests is not None and total is not None:
            found[f"{kind}_tokens_mean"] = total / requests
    return found


def problems(report: Mapping[str, Any]) -> list[str]:
    """Where a summary is not of the requests that `--output-details` lists, and where the tokens are not those of the
    text. A request's latency may end after its last token: it is in no list."""
    if _failed(report):
        return []
    listed = report.get("itls")
    chunks = (
        [reading.numbers(times) for times in listed] if isinstance(listed, list) else []
    )
    each: Mapping[str, list[float]] = {
        "ttft": reading.numbers(report.get("ttfts")),
        "itl": [time for times in chunks for time in times],
    }
    found = []
    for kind, seconds in each.items():
        said = {
            key: report.get(f"{statistic}_{kind}_ms")
            for key, statistic in _STATISTICS.items()
        }
        found += agreement.of_values(kind, said, [1e3 * time for time in seconds])
    total = reading.number(report.get("total_output_tokens"))
    lengths = reading.numbers(report.get("output_lens"))
    if lengths:
        found += agreement.equal(
            "total_output_tokens", total, "the sum of output_lens", sum(lengths)
        )
    encoded = reading.number(report.get("total_output_tokens_retokenized"))
    return found + agreement.of_text(total, encoded)

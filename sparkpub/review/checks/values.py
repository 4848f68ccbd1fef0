"""Whether the figures can be: units and ranges, absent metrics, reports that contradict themselves."""

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from sparkpub.record.metrics import METRICS, Metric
from sparkpub.record.record import Record, metric_of
from sparkpub.review.checks import thresholds
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.integrity import damaged
from sparkpub.review.checks.view import View, ids

_NEVER_ZERO = frozenset({"tok/s", "req/s", "GFLOP/s", "B/token"})
_OF_THE_MACHINE = ("system_peak_gib", "cgroup_peak_gib")
"""Metrics of main memory; all others in GiB are of the memory that the GPU uses."""
_STEMS = ("request_latency", "ttft", "tpot", "itl")
_RISING = ("min", "p50", "p90", "p95", "p99", "max")


def unit(view: View) -> Iterator[Finding]:
    """Figures outside what is physically possible, whatever their unit says."""
    yield from damaged(view.campaign.name, view.damage, units=True)
    for stored in view.happened:
        record = stored.record
        for name, value in record.metrics.items():
            metric = metric_of(name, value)
            problem = None if value.value is None else _impossible(metric, value.value, record)
            if problem is not None:
                yield view.finding("unit", "error", f"{metric.label} is {metric.format(value.value)}: {problem}.",
                                   run=stored, metric=name, value=value.value, unit=metric.unit)  # fmt: skip


def _impossible(metric: Metric, value: float, record: Record) -> str | None:
    total = record.machine.memory_total_gib if metric.name in _OF_THE_MACHINE else memory_gib(record)
    if value <= 0 and metric.unit in _NEVER_ZERO:
        return "a good run has more than nothing, and what is not available is null"
    if metric.name in METRICS and metric.unit == "GiB" and total is not None and value > total:
        return f"the machine has {total:.2f} GiB; GB and GiB may have been mixed"
    return None


def memory_gib(record: Record) -> float | None:
    """The memory that the GPU can use, in GiB, as the run or its machine said it; None where nothing did."""
    if record.observed.device_total_gib is not None:
        return record.observed.device_total_gib
    machine = record.machine
    known = [gpu.memory_total_gib for gpu in machine.gpus if gpu.memory_total_gib is not None]
    if machine.unified_memory or record.observed.device == "cpu":
        return machine.memory_total_gib
    return sum(known) if known else None


def null_metric(view: View) -> Iterator[Finding]:
    """Metrics that no run of the campaign has. A sensor that the machine lacks is worth knowing, not a fault."""
    absent: dict[tuple[Severity, tuple[str, ...]], list[str]] = defaultdict(list)
    for name in view.metrics:
        values = [run.record.metrics[name] for run in view.runs if name in run.record.metrics]
        if all(value.value is None for value in values):
            severity: Severity = "info" if all(value.source == "sampler" for value in values) else "warning"
            absent[severity, tuple(sorted({value.reason or "" for value in values}))].append(name)
    for (severity, reasons), names in absent.items():
        labels = ", ".join(view.metrics[name].label for name in names)
        runs = [run for run in view.runs if any(name in run.record.metrics for name in names)]
        text = f"Not available in any of {len(runs)} runs: {labels}. The reason given: {'; '.join(reasons)}."
        yield view.finding("null-metric", severity, text, metrics=names, reasons=list(reasons), runs=ids(runs))


def inconsistent_report(view: View) -> Iterator[Finding]:
    """Reports whose figures cannot all be true; and, as a note, P99 that is only the maximum."""
    few = []
    for stored in view.happened:
        record = stored.record
        problems = [*_identities(record), *_percentiles(record)]
        if problems:
            text = f"The figures of this run contradict each other: {'; '.join(problems)}."
            yield view.finding("inconsistent-report", "error", text, run=stored, problems=problems)
        ends = [(record.value(f"{stem}_p99_ms"), record.value(f"{stem}_max_ms")) for stem in _STEMS]
        asked = record.requested.workload.get("requests")
        requests = record.observed.requests or (asked if isinstance(asked, int) else 0)
        if requests <= 100 and any(p99 is not None and p99 == largest for p99, largest in ends):
            few.append(stored)
    yield from view.together(
        "inconsistent-report", "info", few,
        lambda runs: f"P99 is the maximum in {runs}: with 100 requests or fewer no other is left above it.",
    )  # fmt: skip


def _identities(record: Record) -> Iterator[str]:
    """Products that must agree, where all their factors are known."""
    value, seen = record.value, record.observed
    output, rate, time = (
        value(name) for name in ("output_throughput_tok_s", "request_throughput_req_s", "measured_time_ms")
    )
    length = seen.output_tokens_mean or record.requested.workload.get("output_tokens")
    seconds = None if time is None else time / 1e3
    total = value("total_throughput_tok_s")
    ties = [
        ("output throughput", output, "request throughput × output tokens", rate, length),
        ("requests", seen.requests, "request throughput × measured time", rate, seconds),
        ("mean concurrency", seen.concurrency_mean, "request throughput × mean latency", rate,
         None if (latency := value("request_latency_mean_ms")) is None else latency / 1e3),
    ]  # fmt: skip
    for name, left, product, one, other in ties:
        if left is not None and one is not None and other is not None and not math.isclose(
            left, one * other, rel_tol=thresholds.REPORT_TOLERANCE
        ):  # fmt: skip
            yield f"{name} is {left:.6g}, and {product} is {one * other:.6g}"
    if output is not None and total is not None and total < output:
        yield f"total throughput {total:.6g} tok/s is less than the output throughput {output:.6g} tok/s in it"


def _percentiles(record: Record) -> Iterator[str]:
    """Percentiles in order, and the mean between minimum and maximum."""
    for stem in _STEMS:
        known = [(key, found) for key in _RISING if (found := record.value(f"{stem}_{key}_ms")) is not None]
        label = METRICS[f"{stem}_mean_ms"].label.removesuffix(", mean")
        for (one, low), (other, high) in pairwise(known):
            if low > high:
                yield f"{label}: {one} {low:.6g} ms is above {other} {high:.6g} ms"
        mean, bounds = record.value(f"{stem}_mean_ms"), dict(known)
        if mean is not None and not bounds.get("min", mean) <= mean <= bounds.get("max", mean):
            yield f"{label}: the mean {mean:.6g} ms lies outside minimum and maximum"

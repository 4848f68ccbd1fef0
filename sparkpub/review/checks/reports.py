"""Whether the figures of one report can all be true."""

import math
from collections.abc import Iterator
from itertools import pairwise

from sparkpub.plan.workloads import load_of
from sparkpub.record.metrics import DISTRIBUTIONS, METRICS
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

REPORT_TOLERANCE = Threshold(
    "report tolerance",
    0.01,
    "Allowed relative difference between figures of one report, because they are rounded.",
)


_RISING = ("min", "p50", "p90", "p95", "p99", "max")


def inconsistent_report(view: View) -> Iterator[Finding]:
    """Reports whose figures cannot all be true; and, as a note, P99 that is only the maximum."""
    yield from view.faulty(
        "inconsistent-report",
        "error",
        lambda stored: _contradictions(view, stored),
        "has figures that contradict each other",
        "have figures that contradict each other",
    )
    yield from view.together(
        "inconsistent-report",
        "info",
        [run for run in view.happened if _has_few_requests(run.record)],
        lambda runs: (
            f"P99 is the maximum in {runs}, because they have 100 requests or fewer."
        ),
    )


def _contradictions(view: View, stored: Stored) -> Iterator[str]:
    """What cannot be true in the figures of a run, and what its parser noticed."""
    yield from _identities(stored.record)
    yield from _percentiles(stored.record)
    answer = view.evidence.of(stored).answer
    if answer is not None and answer.complete:
        yield from answer.problems


def _has_few_requests(record: Record) -> bool:
    """Whether a P99 of the run is the maximum of so few requests that it has to be."""
    requests = record.observed.requests or load_of(record).requests or 0
    for stem in DISTRIBUTIONS:
        p99 = record.value(f"{stem}_p99_ms")
        if p99 is not None and p99 == record.value(f"{stem}_max_ms"):
            return requests <= 100
    return False


def _identities(record: Record) -> Iterator[str]:
    """Products that must agree, where all their factors are known."""
    value, seen = record.value, record.observed
    output, rate, time = (
        value(name)
        for name in (
            "output_throughput_tok_s",
            "request_throughput_req_s",
            "measured_time_ms",
        )
    )
    length = seen.output_tokens_mean or load_of(record).output_tokens
    seconds = None if time is None else time / 1e3
    total = value("total_throughput_tok_s")
    ties = [
        (
            "output throughput",
            output,
            "request throughput × output tokens",
            rate,
            length,
        ),
        (
            "requests",
            seen.requests,
            "request throughput × measured time",
            rate,
            seconds,
        ),
        (
            "mean concurrency",
            seen.concurrency_mean,
            "request throughput × mean latency",
            rate,
            None
            if (latency := value("request_latency_mean_ms")) is None
            else latency / 1e3,
        ),
    ]
    for name, left, product, one, other in ties:
        if (
            left is not None
            and one is not None
            and other is not None
            and not math.isclose(left, one * other, rel_tol=REPORT_TOLERANCE)
        ):
            yield f"{name} is {left:.6g}, and {product} is {one * other:.6g}"
    if output is not None and total is not None and total < output:
        yield f"total throughput {total:.6g} tok/s is less than the output throughput {output:.6g} tok/s in it"


def _percentiles(record: Record) -> Iterator[str]:
    """Percentiles in order, and the mean between minimum and maximum."""
    for stem in DISTRIBUTIONS:
        known = [
            (key, found)
            for key in _RISING
            if (found := record.value(f"{stem}_{key}_ms")) is not None
        ]
        label = METRICS[f"{stem}_mean_ms"].label.removesuffix(", mean")
        for (one, low), (other, high) in pairwise(known):
            if low > high:
                yield f"{label}: {one} {low:.6g} ms is above {other} {high:.6g} ms"
        mean, bounds = record.value(f"{stem}_mean_ms"), dict(known)
        if mean is not None and not bounds.get("min", mean) <= mean <= bounds.get(
            "max", mean
        ):
            yield f"{label}: the mean {mean:.6g} ms lies outside minimum and maximum"


CHECKS = (
    Check(
        "inconsistent-report",
        "meaning",
        ("error", "info"),
        "Is every report consistent?",
        inconsistent_report,
        thresholds=(REPORT_TOLERANCE,),
    ),
)

"""Whether the figures of one report can all be true."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

from sparkpub.plan.requested import load_of
from sparkpub.record.metrics import DISTRIBUTIONS, METRICS
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

REPORT_TOLERANCE = Threshold(
    "report tolerance",
    0.01,
    "Allowed relative difference between figures of one report, because they are rounded.",
)

FAILED_PERCENT = Threshold(
    "failed requests percent",
    1.0,
    "Failed requests of a run, in percent, from which its figures are of a lighter load than was asked for.",
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


def failed_requests(view: View) -> Iterator[Finding]:
    """Runs of which requests failed: their figures are of the requests that succeeded."""
    many, few = dict[str, float](), dict[str, float]()
    for stored in view.happened:
        percent = _failed_percent(view, stored)
        if percent:
            found = many if percent >= FAILED_PERCENT else few
            found[stored.record.run_id] = percent
    yield from _failures(view, "warning", many, _WHAT_TO_DO)
    yield from _failures(view, "info", few, "")


_FAILED = "failed_requests_percent"
_WHAT_TO_DO = " Look for errors in the logs of server and client, and re-run with a longer timeout or a lighter load."


def _failures(
    view: View, severity: Severity, percents: Mapping[str, float], remedy: str
) -> Iterator[Finding]:
    """One finding for runs that lost a share of their requests, by id, in percent."""
    if not percents:
        return
    highest = max(percents.values())
    share = f"{highest:.3g} %" if len(percents) == 1 else f"up to {highest:.3g} %"
    yield from view.together(
        "failed-requests",
        severity,
        [run for run in view.happened if run.record.run_id in percents],
        lambda runs: (
            f"{runs}: {share} of the requests failed, and the figures are of the others.{remedy}"
        ),
        percents=percents,
    )


def _failed_percent(view: View, stored: Stored) -> float | None:
    """The share of failed requests that a record holds, else the one in its report: a record may be older than the
    metric."""
    if _FAILED in stored.record.metrics:
        return stored.record.value(_FAILED)
    answer = view.evidence.of(stored).answer
    return None if answer is None else answer.values.get(_FAILED)


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
    """Products that must agree, where all their factors are known: rates, times and lengths are of the requests that
    succeeded, and so is their number."""
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
            # Those that failed were in flight too, for a time that no report gives.
            None if value(_FAILED) else seen.concurrency_mean,
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
    Check(
        "failed-requests",
        "meaning",
        ("warning", "info"),
        "Did requests fail?",
        failed_requests,
        thresholds=(FAILED_PERCENT,),
    ),
)

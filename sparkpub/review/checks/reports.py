"""Whether requests of a run failed, so that its figures are of the others."""

from collections.abc import Iterator, Mapping

from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

FAILED_PERCENT = Threshold(
    "failed requests percent",
    1.0,
    "Failed requests of a run, in percent, from which its figures are of a lighter load than was asked for.",
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


CHECKS = (
    Check(
        "failed-requests",
        "meaning",
        ("warning", "info"),
        "Did requests fail?",
        failed_requests,
        thresholds=(FAILED_PERCENT,),
    ),
)

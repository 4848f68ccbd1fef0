"""Metrics that no run has."""

from collections import defaultdict
from collections.abc import Iterator

from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.view import View, ids


def null_metric(view: View) -> Iterator[Finding]:
    """Metrics that no run of the campaign has. A sensor that the machine lacks is worth knowing, not a fault."""
    absent: dict[tuple[Severity, tuple[str, ...]], list[str]] = defaultdict(list)
    for name in view.metrics:
        values = [
            run.record.metrics[name] for run in view.runs if name in run.record.metrics
        ]
        if values and all(value.value is None for value in values):
            severity: Severity = (
                "info"
                if all(value.source == "sampler" for value in values)
                else "warning"
            )
            absent[
                severity, tuple(sorted({value.reason or "" for value in values}))
            ].append(name)
    for (severity, reasons), names in absent.items():
        labels = ", ".join(view.metrics[name].label for name in names)
        runs = [
            run
            for run in view.runs
            if any(name in run.record.metrics for name in names)
        ]
        text = f"None of {len(runs)} runs has this figure: {labels}. Recorded reason: {'; '.join(reasons)}."
        yield view.finding(
            "null-metric",
            severity,
            text,
            metrics=names,
            reasons=list(reasons),
            runs=ids(runs),
        )


CHECKS = (
    Check(
        "null-metric",
        "evidence",
        ("warning", "info"),
        "Is every metric available in at least one run?",
        null_metric,
        remedy="Measure with a tool that reports it, or leave it out of the primary metrics.",
    ),
)

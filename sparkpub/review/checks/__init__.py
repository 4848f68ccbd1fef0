"""The hostile review: named checks over campaigns, one registry, findings with evidence."""

from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.registry import CHECKS
from sparkpub.review.checks.reviewing import Review, review, what_counts

__all__ = [
    "CHECKS",
    "Check",
    "Finding",
    "Review",
    "Severity",
    "review",
    "what_counts",
]

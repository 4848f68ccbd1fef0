"""The hostile review: named checks over campaigns, one registry, findings with evidence."""

from sparkpub.checks.finding import Check, Finding, Severity
from sparkpub.checks.registry import CHECKS
from sparkpub.checks.reviewing import Review, review

__all__ = ["CHECKS", "Check", "Finding", "Review", "Severity", "review"]

"""Every check by name, and every number that they decide by. A new check is a line in `CHECKS` of its module."""

from sparkpub.review.checks import (
    acknowledging,
    alike,
    conditions,
    copies,
    happened,
    model,
    plan,
    rules,
    spread,
)
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Severity, Threshold

_MODULES = (
    happened,
    plan,
    model,
    spread,
    rules,
    copies,
    alike,
    conditions,
    acknowledging,
)
"""In the order in which a reader would ask."""
_OF_PAGES: dict[str, tuple[str, tuple[Severity, ...]]] = {
    "unreadable-page": ("Can every page be read?", ("error",)),
    "unbound-number": (
        "Does every number in the text come from the data or from facts.yaml, with the direction that it has?",
        ("error",),
    ),
    "claim": ("Is every verdict the one that the text was written for?", ("error",)),
    "dead-evidence": (
        "Does every link to evidence work, and is the source of every fact quoted?",
        ("error", "info"),
    ),
}
"""What `sparkpub.site.proofreading` asks of the pages."""
CHECKS: dict[str, Check] = {
    check.name: check for module in _MODULES for check in module.CHECKS
} | {name: Check(name, *about, kind="prose") for name, about in _OF_PAGES.items()}
THRESHOLDS: dict[str, Threshold] = {
    each.name: each
    for module in _MODULES
    for each in vars(module).values()
    if isinstance(each, Threshold)
}

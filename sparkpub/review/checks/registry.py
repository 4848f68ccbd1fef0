"""Every check by name, and every number that they decide by. A new check is a line in `CHECKS` of its module."""

from sparkpub.review.checks import (
    acknowledging,
    alike,
    conditions,
    copies,
    happened,
    plan,
    rules,
    spread,
)
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Threshold

_MODULES = (
    happened,
    plan,
    spread,
    rules,
    copies,
    alike,
    conditions,
    acknowledging,
)
"""In the order in which a reader would ask."""
_OF_PAGES = (
    Check("unreadable-page", "Can every page be read?", ("error",), kind="prose"),
    Check(
        "unbound-number",
        "Does every number in the text come from the data or from facts.yaml, with the direction that it has?",
        ("error",),
        kind="prose",
    ),
    Check(
        "claim",
        "Is every verdict the one that the text was written for?",
        ("error",),
        kind="prose",
    ),
    Check(
        "dead-evidence",
        "Does every link to evidence work?",
        ("error",),
        kind="prose",
    ),
)
"""What `sparkpub.site.proofreading` asks of the pages."""
CHECKS: dict[str, Check] = {
    check.name: check
    for checks in (*(module.CHECKS for module in _MODULES), _OF_PAGES)
    for check in checks
}
THRESHOLDS: dict[str, Threshold] = {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if isinstance(value, Threshold)
}
"""By the names of the variables that hold them."""

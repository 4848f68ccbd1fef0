"""Every check by name. A new check is a line in `CHECKS` of its module."""

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

OF_PAGES = (
    Check("unreadable-page", "prose", ("error",), "Can every page be read?"),
    Check(
        "unbound-number",
        "prose",
        ("error",),
        "Does every number in the text come from the data or from facts.yaml, with the direction that it has?",
    ),
    Check(
        "claim",
        "prose",
        ("error",),
        "Is every verdict the one that the text was written for?",
    ),
    Check(
        "dead-evidence",
        "prose",
        ("error", "info"),
        "Does every link to evidence work, and is the source of every fact quoted?",
    ),
)
"""`sparkpub.site.proofreading` reads the pages."""
_IN_ORDER = (
    *happened.CHECKS,
    *plan.CHECKS,
    *model.CHECKS,
    *spread.CHECKS,
    *rules.CHECKS,
    *copies.CHECKS,
    *alike.CHECKS,
    *conditions.CHECKS,
    *acknowledging.CHECKS,
    *OF_PAGES,
)
"""In which a reader would ask."""
CHECKS: dict[str, Check] = {check.name: check for check in _IN_ORDER}

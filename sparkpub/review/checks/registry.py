"""Every check by name. A new check is a module with `CHECKS`, and its line here."""

from sparkpub.review.checks import (
    acknowledging,
    alike,
    conditions,
    copies,
    dependence,
    foreign,
    happened,
    model,
    pages,
    plan,
    reports,
    rules,
    spread,
)
from sparkpub.review.checks.check import Check

_MODULES = (
    happened,
    plan,
    model,
    dependence,
    spread,
    rules,
    reports,
    copies,
    alike,
    conditions,
    foreign,
    acknowledging,
    pages,
)
"""In the order in which a reader would ask."""

CHECKS: dict[str, Check] = {
    check.name: check for module in _MODULES for check in module.CHECKS
}

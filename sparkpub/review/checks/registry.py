"""Every check by name. A new check is a module with `CHECKS`, and its line here."""

from sparkpub.review.checks import (
    acknowledging,
    completeness,
    conditions,
    copies,
    dependence,
    equality,
    foreign,
    integrity,
    machines,
    pages,
    proofs,
    reports,
    requested,
    roofline,
    rules,
    spread,
    timing,
)
from sparkpub.review.checks.check import Check

_MODULES = (
    integrity,
    completeness,
    proofs,
    roofline,
    dependence,
    spread,
    rules,
    reports,
    copies,
    timing,
    requested,
    machines,
    equality,
    conditions,
    foreign,
    acknowledging,
    pages,
)
"""In the order in which a reader would ask."""

CHECKS: dict[str, Check] = {
    check.name: check for module in _MODULES for check in module.CHECKS
}

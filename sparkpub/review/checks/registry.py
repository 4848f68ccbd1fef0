"""Every check by name. A new check is a module with `CHECKS`, and its line here."""

from sparkpub.review.checks import (
    completeness,
    conditions,
    dependence,
    integrity,
    machines,
    order,
    pages,
    proofs,
    reports,
    spread,
    values,
)
from sparkpub.review.checks.check import Check

_MODULES = (
    integrity,
    completeness,
    values,
    proofs,
    dependence,
    order,
    spread,
    reports,
    conditions,
    machines,
    pages,
)
"""In the order in which a reader would ask."""

CHECKS: dict[str, Check] = {check.name: check for module in _MODULES for check in module.CHECKS}

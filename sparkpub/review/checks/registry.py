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
    levels,
    machines,
    offered,
    order,
    pages,
    prefix_cache,
    proofs,
    repetitions,
    reports,
    requested,
    roofline,
    rules,
    samples,
    sanity,
    spread,
    timing,
    warmup,
)
from sparkpub.review.checks.check import Check

_MODULES = (
    integrity,
    completeness,
    proofs,
    roofline,
    dependence,
    levels,
    order,
    spread,
    repetitions,
    rules,
    reports,
    copies,
    timing,
    requested,
    offered,
    machines,
    equality,
    conditions,
    warmup,
    prefix_cache,
    sanity,
    samples,
    foreign,
    acknowledging,
    pages,
)
"""In the order in which a reader would ask."""

CHECKS: dict[str, Check] = {
    check.name: check for module in _MODULES for check in module.CHECKS
}

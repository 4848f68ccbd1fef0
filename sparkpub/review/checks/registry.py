"""Every check by name. A new check is a module with `CHECKS`, and its line here."""

from sparkpub.review.checks import (
    acknowledging,
    bookkeeping,
    completeness,
    conditions,
    copies,
    dependence,
    equality,
    foreign,
    identities,
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
    samples,
    sanity,
    spread,
    timing,
    values,
    warmup,
)
from sparkpub.review.checks.check import Check

_MODULES = (
    integrity,
    completeness,
    values,
    proofs,
    roofline,
    dependence,
    levels,
    order,
    spread,
    repetitions,
    identities,
    reports,
    copies,
    timing,
    requested,
    offered,
    bookkeeping,
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

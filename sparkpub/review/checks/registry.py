"""Every check by name. A new check is a module with `CHECKS`, and its line here."""

from sparkpub.review.checks import (
    acknowledging,
    bookkeeping,
    completeness,
    conditions,
    copies,
    dependence,
    equality,
    identities,
    integrity,
    machines,
    order,
    pages,
    prefix_cache,
    proofs,
    queue,
    ratios,
    reports,
    requested,
    samples,
    sanity,
    spread,
    steps,
    tenants,
    timing,
    unjudged,
    values,
    warmup,
)
from sparkpub.review.checks.check import Check

_MODULES = (
    integrity,
    completeness,
    values,
    proofs,
    dependence,
    order,
    steps,
    spread,
    identities,
    reports,
    copies,
    timing,
    requested,
    bookkeeping,
    ratios,
    machines,
    equality,
    conditions,
    tenants,
    warmup,
    prefix_cache,
    queue,
    sanity,
    samples,
    unjudged,
    acknowledging,
    pages,
)
"""In the order in which a reader would ask."""

CHECKS: dict[str, Check] = {
    check.name: check for module in _MODULES for check in module.CHECKS
}

"""Every check by name. A new check is a module with `CHECKS`, and its line here."""

from sparkpub.review.checks import (
    acknowledging,
    alike,
    conditions,
    copies,
    dependence,
    foreign,
    happened,
    levels,
    model,
    offered,
    order,
    pages,
    plan,
    prefix_cache,
    repetitions,
    reports,
    rules,
    samples,
    sanity,
    spread,
    warmup,
)
from sparkpub.review.checks.check import Check

_MODULES = (
    happened,
    plan,
    model,
    dependence,
    levels,
    order,
    spread,
    repetitions,
    rules,
    reports,
    copies,
    offered,
    alike,
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

"""Whether environments differ by more than environments do."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean, variance
from typing import NamedTuple

from sparkpub.record.metrics import GIB, Metric
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import cause
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, floor, label
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import describe

IMPLAUSIBLE_RATIO = Threshold(
    "implausible ratio",
    1.25,
    "Ratio between environments of one machine from which a figure is suspicious: containers cost at most a few "
    "percent of compute and memory throughput (Felter et al. 2015, An Updated Performance Comparison of Virtual "
    "Machines and Linux Containers, doi 10.1109/ISPASS.2015.7095802).",
)
UNIT_RATIO_TOLERANCE = Threshold(
    "unit ratio tolerance",
    0.001,
    "Allowed relative difference between the ratio of two means and the ratio of two units, such as GiB and GB.",
)
RATIO_STANDARD_ERRORS = Threshold(
    "ratio standard errors",
    4.0,
    "Minimum distance of two means in standard errors.",
)
NEAR_ZERO_FLOORS = Threshold(
    "near zero floors",
    10,
    "Below this multiple of the least relevant change, a metric is near zero and its ratios are meaningless.",
)

_RESOURCE = re.compile("THREADS|VISIBLE_DEVICES")
_UNITS = {"GB and GiB": GIB / 1e9, "seconds and milliseconds": 1e3}


class Odds(NamedTuple):
    """Two means of a metric whose ratio needs explaining; `units` names the units that it is the ratio of."""

    metric: Metric
    base: Cell
    cell: Cell
    ratio: float
    units: str | None


def implausible_ratio(view: View) -> Iterator[Finding]:
    """Metrics in which environments lie further apart than physics or any published effect allows, by cause."""
    by_cause: dict[str, list[Odds]] = defaultdict(list)
    for name in view.results:
        metric = view.metrics[name]
        for cell in view.counted:
            base = view.baseline_of(cell)
            found = (
                _odds(view, base, cell, metric)
                if base in view.counted and cell != base
                else None
            )
            if found is not None:
                by_cause[cause(view, metric)].append(found)
    for odd in by_cause.values():
        yield _finding(view, odd)


def _odds(view: View, base: Cell, cell: Cell, metric: Metric) -> Odds | None:
    """Two cells of a metric whose ratio needs explaining; None where it does not, or the metric is near zero."""
    samples = [view.figures(place, metric.name) for place in (base, cell)]
    if not all(samples) or not _beyond_chance(*samples):
        return None
    small, large = sorted(fmean(sample) for sample in samples)
    least = floor(metric)
    if small <= 0 or large - small < least or large < NEAR_ZERO_FLOORS * least:
        return None
    ratio = large / small
    units = _units(ratio, samples)
    by_design = resources(view, base) != resources(view, cell)
    if units is None and (ratio < IMPLAUSIBLE_RATIO or by_design):
        return None
    return Odds(metric, base, cell, ratio, units)


def _beyond_chance(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two means lie apart by more than the spread of their runs explains; True where it is not known."""
    if min(len(one), len(other)) < 2:
        return True
    error = math.sqrt(variance(one) / len(one) + variance(other) / len(other))
    return abs(fmean(one) - fmean(other)) > RATIO_STANDARD_ERRORS * error


def resources(view: View, cell: Cell) -> dict[str, object]:
    """What an environment sets that gives its runs more or fewer processors, GPUs or memory: two that differ in it may
    well differ in speed."""
    declared = view.counted[cell][0].record.requested.environment
    variables = declared.get("env") or {}
    given = {name: value for name, value in variables.items() if _RESOURCE.search(name)}
    return given | {
        name: declared[name] for name in ("cpuset", "memory") if name in declared
    }


def _units(ratio: float, samples: Sequence[Sequence[float]]) -> str | None:
    """The units that a ratio is the ratio of, where the runs repeat well enough to tell."""
    spreads = [
        describe.describe(sample).cv_percent or 0.0
        for sample in samples
        if len(sample) > 1
    ]
    if max(spreads, default=0.0) > 100 * UNIT_RATIO_TOLERANCE:
        return None
    for words, known in _UNITS.items():
        if math.isclose(ratio, known, rel_tol=UNIT_RATIO_TOLERANCE):
            return words
    return None


def _finding(view: View, odd: Sequence[Odds]) -> Finding:
    worst = max(odd, key=lambda found: found.ratio)
    metric = worst.metric
    one, other = (
        fmean(view.figures(cell, metric.name)) for cell in (worst.base, worst.cell)
    )
    text = (
        f"{metric.label} is {metric.format(one)} in {label(worst.base)} and {metric.format(other)} in "
        f"{label(worst.cell)}, a factor of {worst.ratio:.2f}. No environment is known to change it so much."
    )
    remedy = ""
    if worst.units:
        text += f" It is the ratio of {worst.units}."
        remedy = "Check the units."
    return view.concerning(
        "implausible-ratio",
        "warning",
        text,
        [cell for found in odd for cell in (found.base, found.cell)],
        [found.metric.name for found in odd],
        cases=len(odd),
        ratio=worst.ratio,
        ratios={label(found.cell): found.ratio for found in odd},
        remedy=remedy,
    )


CHECKS = (
    Check(
        "implausible-ratio",
        "meaning",
        ("warning",),
        "Are the differences between environments plausible?",
        implausible_ratio,
        thresholds=(
            IMPLAUSIBLE_RATIO,
            UNIT_RATIO_TOLERANCE,
            NEAR_ZERO_FLOORS,
            RATIO_STANDARD_ERRORS,
        ),
        remedy="Look in their logs for what else differed.",
    ),
)

"""Whether environments differ by more than environments do."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from sparkpub.record.metrics import GIB
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, floor, label
from sparkpub.review.frame import Cell
from sparkpub.review.statistics import describe

IMPLAUSIBLE_RATIO = Threshold(
    "implausible ratio",
    1.25,
    "Ratio between environments of one machine from which a figure needs explaining: containers cost at most a few "
    "percent of computing and memory throughput (Felter et al. 2015, An Updated Performance Comparison of Virtual "
    "Machines and Linux Containers, doi 10.1109/ISPASS.2015.7095802).",
)
UNIT_RATIO_TOLERANCE = Threshold(
    "unit ratio tolerance",
    0.001,
    "How near the ratio of two means must lie to that of two units, GiB and GB, before they are taken to be mixed up.",
)
NEAR_ZERO_FLOORS = Threshold(
    "near zero floors",
    10,
    "Multiple of the least change that matters below which a metric is near zero, and every ratio of it means nothing.",
)

_UNITS = {"GB and GiB": GIB / 1e9, "seconds and milliseconds": 1e3}


class Odds(NamedTuple):
    """Two means whose ratio needs explaining; `units` names the units that it is the ratio of."""

    base: Cell
    cell: Cell
    ratio: float
    units: str | None


def implausible_ratio(view: View) -> Iterator[Finding]:
    """Metrics in which environments lie further apart than physics or any published effect allows, one finding each."""
    for name in view.results:
        odd = {}
        for cell in view.counted:
            base = (cell[0], view.campaign.baseline, cell[2])
            found = _odds(view, base, cell, name) if base in view.counted and cell != base else None
            if found is not None:
                odd[cell] = found
        if odd:
            yield _finding(view, name, odd)


def _odds(view: View, base: Cell, cell: Cell, name: str) -> Odds | None:
    """Two cells of a metric whose ratio needs explaining; None where it does not, or the metric is near zero."""
    samples = [view.figures(place, name) for place in (base, cell)]
    if not all(samples):
        return None
    small, large = sorted(fmean(sample) for sample in samples)
    least = floor(view.metrics[name])
    if small <= 0 or large - small < least or large < NEAR_ZERO_FLOORS * least:
        return None
    ratio = large / small
    units = _units(ratio, samples)
    if ratio < IMPLAUSIBLE_RATIO and units is None:
        return None
    return Odds(base, cell, ratio, units)


def _units(ratio: float, samples: Sequence[Sequence[float]]) -> str | None:
    """The units that a ratio is the ratio of, where the runs repeat well enough to tell."""
    spreads = [describe.describe(sample).cv_percent or 0.0 for sample in samples if len(sample) > 1]
    if max(spreads, default=0.0) > 100 * UNIT_RATIO_TOLERANCE:
        return None
    for words, known in _UNITS.items():
        if math.isclose(ratio, known, rel_tol=UNIT_RATIO_TOLERANCE):
            return words
    return None


def _finding(view: View, name: str, odd: Mapping[Cell, Odds]) -> Finding:
    metric = view.metrics[name]
    worst = max(odd.values(), key=lambda found: found.ratio)
    one, other = (fmean(view.figures(cell, name)) for cell in (worst.base, worst.cell))
    cells = list(dict.fromkeys(label(cell) for found in odd.values() for cell in (found.base, found.cell)))
    why = f"That is the ratio of {worst.units}: look at the units" if worst.units else "Look before you publish"
    also = "" if len(odd) == 1 else f" {len(odd)} comparisons lie as far apart."
    text = (
        f"{metric.label} is {metric.format(one)} in {label(worst.base)} and {metric.format(other)} in "
        f"{label(worst.cell)}, a factor of {worst.ratio:.2f}. No environment is known to change it so much.{also} "
        f"{why}."
    )
    return view.finding("implausible-ratio", "warning", text, cells=cells, metric=name, ratio=worst.ratio,
                        ratios={label(cell): found.ratio for cell, found in odd.items()})  # fmt: skip


CHECKS = (
    Check(
        "implausible-ratio",
        "meaning",
        ("warning",),
        "Do environments differ by no more than environments do?",
        implausible_ratio,
        thresholds=(IMPLAUSIBLE_RATIO, UNIT_RATIO_TOLERANCE, NEAR_ZERO_FLOORS),
    ),
)

"""Whether a cell changes its level at one point of the campaign."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import independent
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    MATERIAL_SHARE_OF_MARGIN,
    View,
    about_cells,
    ids,
    label,
    listed,
)
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import compare, drift

STEP_ALPHA = Threshold(
    "step alpha",
    0.005,
    "Probability of a false change of level in a clean campaign (largest t, Holm).",
)
RANK_ALPHA = Threshold(
    "rank alpha",
    0.02,
    "Probability of such a change of level in a random order of one sample (Pettitt).",
)
SHORTEST_SIDE = 3
"""Runs on either side of a step; fewer are outliers."""
DISTINCT_VALUES = 6
"""Distinct values from which a sample is taken as continuous."""


class Step(NamedTuple):
    """A metric of a cell that changes its level after the first `at` runs."""

    cell: Cell
    values: Sequence[float]
    at: int
    p_value: float

    @property
    def change(self) -> float:
        """The mean afterwards minus the mean before."""
        return fmean(self.values[self.at :]) - fmean(self.values[: self.at])


def step(view: View) -> Iterator[Finding]:
    """Cells whose level changes at one point of time, one finding per metric."""
    tests = []
    for cell in view.ran:
        for name in view.once(independent):
            values = view.figures(cell, name, ran=True)
            if len(set(values)) > 1:
                tests.append((name, Step(cell, values, *_largest(values))))
    adjusted = compare.holm([found.p_value for _, found in tests])
    changed: dict[str, list[Step]] = defaultdict(list)
    for (name, found), p_value in zip(tests, adjusted, strict=True):
        beyond_chance = p_value is not None and p_value < STEP_ALPHA
        if (
            beyond_chance
            and view.matters(view.metrics[name], found.values, found.change)
            and _holds_in_ranks(found, len(tests))
        ):
            changed[name].append(found)
    for name, steps in changed.items():
        yield _finding(view, name, steps)


def _finding(view: View, name: str, steps: Sequence[Step]) -> Finding:
    clearest = min(steps, key=lambda found: found.p_value)
    metric = view.metrics[name]
    cells = [label(found.cell) for found in steps]
    also = "" if len(cells) == 1 else f" The level changes in {listed(cells, 'cells')}."
    before = fmean(clearest.values[: clearest.at])
    after = fmean(clearest.values[clearest.at :])
    text = (
        f"{metric.label} of {label(clearest.cell)} changes its level: {metric.format(before)} on average in the first "
        f"{clearest.at} runs, {metric.format(after)} in the {len(clearest.values) - clearest.at} after them (corrected "
        f"p = {clearest.p_value:.2g}).{also} Something changed in between, and the mean mixes both levels."
    )
    runs = [run for found in steps for run in ids(view.ran[found.cell])]
    return view.finding(
        "step",
        "warning",
        text,
        **about_cells(found.cell for found in steps),
        metric=name,
        runs=runs,
        p_value=clearest.p_value,
        at={label(found.cell): found.at for found in steps},
    )


def _largest(values: Sequence[float]) -> tuple[int, float]:
    """The most likely point of change (runs before it) and its p; (0, 1.0) where there are too few runs to tell.

    Student's t is largest there (Worsley 1979); its p is corrected by Bonferroni for every point that was tried. A
    rank test alone could not fire at ten runs and dozens of metrics.
    """
    array = np.array(values, dtype=float)
    n = len(array)
    found = [
        (_t(array[:at], array[at:]), at)
        for at in range(SHORTEST_SIDE, n - SHORTEST_SIDE + 1)
    ]
    if not found:
        return 0, 1.0
    largest, at = max(found)
    return at, min(1.0, len(found) * 2 * float(scipy.special.stdtr(n - 2, -largest)))


def _holds_in_ranks(found: Step, tests: int) -> bool:
    """Whether the ranks show a change too: Student's t trusts in a normal distribution. Where runs take a few values
    only it means nothing, and the ranks decide alone."""
    change = drift.change_point(found.values)
    if change is None:
        return False
    few = len(set(found.values)) < DISTINCT_VALUES
    return change.p_value < (STEP_ALPHA / tests if few else RANK_ALPHA)


def _t(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """Student's t of the two sides, pooled; infinite where both are constant and differ."""
    n = len(before) + len(after)
    difference = abs(float(before.mean() - after.mean()))
    pooled = (before.var() * len(before) + after.var() * len(after)) / (n - 2)
    error = math.sqrt(float(pooled) * (1 / len(before) + 1 / len(after)))
    if error == 0:
        return math.inf if difference else 0.0
    return difference / error


CHECKS = (
    Check(
        "step",
        "meaning",
        ("warning",),
        "Does the level change within a cell?",
        step,
        implies=frozenset({"drift", "small-sample", "high-variation"}),
        thresholds=(STEP_ALPHA, RANK_ALPHA, MATERIAL_SHARE_OF_MARGIN),
        remedy="Look for what changed on the machine between these runs, and re-run the smaller part.",
    ),
)

"""Whether the level of a cell moves in the course of its campaign: a trend, or a step at one point.

A step looks like a trend, and a trend like a step: a cell is told once, as what describes its runs better."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.record.metrics import Metric
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import independent
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.order import TRANSIENT_ALPHA, corrected, first_runs
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    MATERIAL_SHARE_OF_MARGIN,
    View,
    ids,
    label,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import compare, describe, drift

DRIFT_ALPHA = Threshold(
    "drift alpha",
    0.02,
    "Probability of a false drift finding in a clean campaign (Mann-Kendall, Holm).",
)
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


class Drifting(NamedTuple):
    """A metric of a cell that drifts with run order; `p_adjusted` is Holm's over the `tests` of the campaign."""

    cell: Cell
    metric: Metric
    values: tuple[float, ...]
    tests: int
    p_adjusted: float
    trend: drift.Trend

    @property
    def change(self) -> float:
        """From the first run to the last."""
        return (self.trend.slope or 0) * (len(self.values) - 1)


class Step(NamedTuple):
    """A metric of a cell that changes its level after the first `at` runs, the same way."""

    cell: Cell
    metric: Metric
    values: tuple[float, ...]
    tests: int
    p_adjusted: float
    at: int

    @property
    def levels(self) -> tuple[float, float]:
        """The mean before, and the mean afterwards."""
        return fmean(self.values[: self.at]), fmean(self.values[self.at :])

    @property
    def change(self) -> float:
        """From the mean before to the mean afterwards."""
        before, after = self.levels
        return after - before


Moved = TypeVar("Moved", Drifting, Step)
Moves = Mapping[tuple[Cell, str], Drifting | Step]
"""(cell, metric) to how it moves."""


def moved(view: View) -> Moves:
    """What moves in a campaign, beyond chance and by enough to matter: each by a trend or by a step."""
    series = {
        (cell, name): values
        for cell in view.ran
        for name in view.once(independent)
        if len(set(values := view.figures(cell, name, ran=True))) > 1
    }
    trends = drift.trends(list(series.values()))
    points = [_largest(values) for values in series.values()]
    p_trends = compare.holm([trend.p_value for trend in trends])
    p_steps = compare.holm([p for _, p in points])
    found: dict[tuple[Cell, str], Drifting | Step] = {}
    for (key, values), trend, p_trend, (at, _), p_step in zip(
        series.items(), trends, p_trends, points, p_steps, strict=True
    ):
        about = key[0], view.metrics[key[1]], values, len(series)
        drifts = steps = None
        if p_trend is not None and p_trend < DRIFT_ALPHA:
            drifts = _material(view, Drifting(*about, p_trend, trend))
        if p_step is not None and p_step < STEP_ALPHA:
            steps = _material(view, Step(*about, p_step, at))
        if steps and _holds_in_ranks(steps) and (not drifts or _is_step(steps)):
            found[key] = steps
        elif drifts:
            found[key] = drifts
    return found


def _material(view: View, found: Moved) -> Moved | None:
    return found if view.matters(found.metric, found.values, found.change) else None


def _is_step(step: Step) -> bool:
    """Whether two levels leave less of the variation than a straight line does."""
    values = np.array(step.values)
    places = np.arange(len(values))
    line = np.polynomial.Polynomial.fit(places, values, 1)(places)
    levels = np.where(places < step.at, *step.levels)
    return bool(((values - levels) ** 2).sum() < ((values - line) ** 2).sum())


def drifts(view: View) -> Iterator[Finding]:
    """Trends within cells, one finding per metric; then first runs that stand out."""
    trends = [
        found for found in view.once(moved).values() if isinstance(found, Drifting)
    ]
    for items in grouped(trends, lambda item: item.metric.name).values():
        yield _drift(view, items)
    yield from first_runs(view)


def _drift(view: View, items: Sequence[Drifting]) -> Finding:
    """One metric that trends with run order in one cell or several; the figures are those of the clearest."""
    worst = min(items, key=lambda item: item.p_adjusted)
    metric, number = worst.metric, len(worst.values)
    worth = float(describe.effective_n(worst.values))
    direction = "rises" if worst.change > 0 else "falls"
    text = (
        f"{metric.label} of {label(worst.cell)} {direction} by about {metric.format(abs(worst.change))} from the first "
        f"of {number} runs to the last (Mann-Kendall, {corrected(worst)}), so its mean depends on how long one "
        "measures."
    )
    if worth < describe.MINIMUM_RUNS:
        text += f" Each run resembles the one before: {number} are worth {worth:.0f} independent ones."
    return view.concerning(
        "drift",
        "warning",
        text,
        [item.cell for item in items],
        [metric],
        cases=len(items),
        runs=[run for item in items for run in ids(view.ran[item.cell])],
        values=list(worst.values),
        slope_per_run=worst.trend.slope,
        p_value=worst.trend.p_value,
        p_adjusted=worst.p_adjusted,
        spearman=worst.trend.spearman,
        lag1=worst.trend.lag1,
        n_effective=worth,
    )


def step(view: View) -> Iterator[Finding]:
    """Cells whose level changes at one point of time, one finding per metric."""
    steps = [found for found in view.once(moved).values() if isinstance(found, Step)]
    for items in grouped(steps, lambda item: item.metric.name).values():
        clearest = min(items, key=lambda found: found.p_adjusted)
        metric, number = clearest.metric, len(clearest.values)
        before, after = map(metric.format, clearest.levels)
        text = (
            f"{metric.label} of {label(clearest.cell)} changes its level after {clearest.at} of {number} runs, from "
            f"{before} to {after} on average ({corrected(clearest)}), and the mean mixes both."
        )
        yield view.concerning(
            "step",
            "warning",
            text,
            [item.cell for item in items],
            [metric],
            cases=len(items),
            runs=[run for item in items for run in ids(view.ran[item.cell])],
            p_value=clearest.p_adjusted,
            at={label(found.cell): found.at for found in items},
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


def _holds_in_ranks(found: Step) -> bool:
    """Whether the ranks show a change too: Student's t trusts in a normal distribution. Where runs take a few values
    only it means nothing, and the ranks decide alone."""
    change = drift.change_point(found.values)
    if change is None:
        return False
    few = len(set(found.values)) < DISTINCT_VALUES
    return change.p_value < (STEP_ALPHA / found.tests if few else RANK_ALPHA)


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
        "drift",
        "meaning",
        ("warning",),
        "Do results drift with the order of the runs?",
        drifts,
        thresholds=(DRIFT_ALPHA, TRANSIENT_ALPHA, MATERIAL_SHARE_OF_MARGIN),
        remedy="Warm up longer, or pause until the machine is as before (gates:), and re-run.",
    ),
    Check(
        "step",
        "meaning",
        ("warning",),
        "Does the level change within a cell?",
        step,
        implies=frozenset({"drift"}),
        thresholds=(STEP_ALPHA, RANK_ALPHA, MATERIAL_SHARE_OF_MARGIN),
        remedy="Look for what changed on the machine between these runs, and re-run the smaller part.",
    ),
)

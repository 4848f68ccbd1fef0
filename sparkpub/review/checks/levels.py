"""Whether the level of a cell moves in the course of its campaign: a trend, or a step at one point.

A step looks like a trend, and a trend like a step: a cell is told once, as what describes its runs better."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.dependence import independent
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.order import TRANSIENT_ALPHA, first_runs
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import (
    MATERIAL_SHARE_OF_MARGIN,
    View,
    about_cells,
    ids,
    label,
    listed,
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
    """A metric of a cell that trends with run order; `p_adjusted` is Holm's over the `tests` of the campaign."""

    cell: Cell
    metric: Metric
    values: tuple[float, ...]
    trend: drift.Trend
    p_adjusted: float
    tests: int

    @property
    def change(self) -> float:
        """From the first run to the last."""
        return (self.trend.slope or 0) * (len(self.values) - 1)


class Step(NamedTuple):
    """A metric of a cell that changes its level after the first `at` runs; `p_adjusted` is Holm's over `tests` of the
    campaign."""

    cell: Cell
    metric: Metric
    values: tuple[float, ...]
    at: int
    p_adjusted: float
    tests: int

    @property
    def levels(self) -> tuple[float, float]:
        """The mean before, and the mean afterwards."""
        return fmean(self.values[: self.at]), fmean(self.values[self.at :])

    @property
    def change(self) -> float:
        """From the mean before to the mean afterwards."""
        before, after = self.levels
        return after - before


class Moved(NamedTuple):
    """What moves in a campaign beyond chance, by cell and metric: each by a trend or by a step."""

    trends: Mapping[tuple[Cell, str], Drifting]
    steps: Mapping[tuple[Cell, str], Step]


def moved(view: View) -> Moved:
    """The trends and steps of a campaign that are beyond chance, and large enough to matter."""
    series = {
        (cell, name): values
        for cell in view.ran
        for name in view.once(independent)
        if len(set(values := view.figures(cell, name, ran=True))) > 1
    }
    trends, steps = _trends(view, series), _steps(view, series)
    both = trends.keys() & steps.keys()
    stepped = {key for key in both if _is_step(steps[key])}
    return Moved(
        {key: trend for key, trend in trends.items() if key not in stepped},
        {key: step for key, step in steps.items() if key not in both - stepped},
    )


ValuesInOrder = Mapping[tuple[Cell, str], tuple[float, ...]]
"""The values of a metric of a cell in order of time, where they are not all alike."""


def _trends(view: View, series: ValuesInOrder) -> dict[tuple[Cell, str], Drifting]:
    trends = drift.trends(list(series.values()))
    adjusted = compare.holm([trend.p_value for trend in trends])
    found = {
        (cell, name): Drifting(cell, view.metrics[name], values, trend, p, len(series))
        for ((cell, name), values), trend, p in zip(
            series.items(), trends, adjusted, strict=True
        )
        if p is not None and p < DRIFT_ALPHA
    }
    return {key: one for key, one in found.items() if _matters(view, one)}


def _steps(view: View, series: ValuesInOrder) -> dict[tuple[Cell, str], Step]:
    points = [_largest(values) for values in series.values()]
    adjusted = compare.holm([p for _, p in points])
    found = {
        (cell, name): Step(cell, view.metrics[name], values, at, p, len(series))
        for ((cell, name), values), (at, _), p in zip(
            series.items(), points, adjusted, strict=True
        )
        if p is not None and p < STEP_ALPHA
    }
    return {
        key: one
        for key, one in found.items()
        if _matters(view, one) and _holds_in_ranks(one, len(series))
    }


def _matters(view: View, found: Drifting | Step) -> bool:
    return view.matters(found.metric, found.values, found.change)


def _is_step(step: Step) -> bool:
    """Whether two levels leave less of the variation than a straight line does."""
    values = np.array(step.values)
    places = np.arange(len(values))
    line = np.polynomial.Polynomial.fit(places, values, 1)(places)
    levels = np.where(places < step.at, *step.levels)
    return bool(((values - levels) ** 2).sum() < ((values - line) ** 2).sum())


def drifts(view: View) -> Iterator[Finding]:
    """Trends within cells, one finding per metric; then first runs that stand out."""
    trends = view.once(moved).trends.values()
    for items in grouped(trends, lambda item: item.metric.name).values():
        yield _drift(view, items)
    yield from first_runs(view)


def _drift(view: View, items: Sequence[Drifting]) -> Finding:
    """One metric that trends with run order in one cell or several; the figures are those of the clearest."""
    worst = min(items, key=lambda item: item.p_adjusted)
    metric, number = worst.metric, len(worst.values)
    worth = float(describe.effective_n(worst.values))
    direction = "rises" if worst.change > 0 else "falls"
    alike = ""
    if worth < describe.MINIMUM_RUNS:
        alike = f" Each run resembles the one before: {number} are worth {worth:.0f} independent ones."
    text = (
        f"{metric.label} of {label(worst.cell)} {direction} by about {metric.format(abs(worst.change))} from the first "
        f"of {number} runs to the last (Mann-Kendall, {_corrected(worst)}), so its mean depends on "
        f"how long one measures.{alike}{_also(items)}"
    )
    return view.finding(
        "drift",
        "warning",
        text,
        **_about(view, items),
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
    steps = view.once(moved).steps.values()
    for items in grouped(steps, lambda item: item.metric.name).values():
        yield _step(view, items)


def _step(view: View, items: Sequence[Step]) -> Finding:
    clearest = min(items, key=lambda found: found.p_adjusted)
    metric, at, number = clearest.metric, clearest.at, len(clearest.values)
    before, after = map(metric.format, clearest.levels)
    text = (
        f"{metric.label} of {label(clearest.cell)} changes its level after {at} of {number} runs, from {before} to "
        f"{after} on average ({_corrected(clearest)}), and the mean mixes both.{_also(items)}"
    )
    return view.finding(
        "step",
        "warning",
        text,
        **_about(view, items),
        p_value=clearest.p_adjusted,
        at={label(found.cell): found.at for found in items},
    )


def _corrected(found: Drifting | Step) -> str:
    return f"p = {found.p_adjusted:.2g} corrected for {counted(found.tests, 'test')}"


def _also(items: Sequence[Drifting | Step]) -> str:
    if len(items) == 1:
        return ""
    return (
        f" In all, it is so in {listed([label(item.cell) for item in items], 'cells')}."
    )


def _about(view: View, items: Sequence[Drifting | Step]) -> dict[str, Any]:
    """Where a finding on one metric belongs: cells and runs."""
    return {
        **about_cells(item.cell for item in items),
        "metric": items[0].metric.name,
        "runs": [run for item in items for run in ids(view.ran[item.cell])],
    }


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

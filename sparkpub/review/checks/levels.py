"""Whether the level of a cell moves in the course of its campaign: a trend, or a step at one point.

A step looks like a trend, and a trend like a step: a cell is told once, as what describes its runs better."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

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
    CellMetric,
    View,
    ids,
    label,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import describe, drift
from sparkpub.review.statistics.compare import holm
from sparkpub.review.statistics.describe import or_none
from sparkpub.review.tables.cells import trends

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


class Move(NamedTuple):
    """How a metric of a cell moves in the course of its campaign: in a trend, or in one step after the first `at` runs,
    which is 0 for a trend. `change` is that from the first run to the last, or from the mean before to the mean
    afterwards; `p_adjusted` is Holm's over all cells and metrics that were tested."""

    cell: Cell
    metric: Metric
    values: Sequence[float]
    tests: int
    change: float
    p_adjusted: float
    at: int = 0


def moved(view: View) -> Mapping[CellMetric, Move]:
    """What moves in a campaign, beyond chance and by enough to matter: each by a trend or by a step."""
    series = {
        (cell, name): values
        for cell in view.ran
        for name in view.once(independent)
        if len(set(values := view.figures(cell, name, ran=True))) > 1
    }
    slopes, p_trends = _trends(view, list(series))
    points = [_largest(values) for values in series.values()]
    p_steps = holm([p for _, p in points])
    found: dict[CellMetric, Move] = {}
    for (key, values), slope, p_trend, (at, _), p_step in zip(
        series.items(), slopes, p_trends, points, p_steps, strict=True
    ):
        about = key[0], view.metrics[key[1]], values, len(series)
        move = None
        if p_trend is not None and p_trend < DRIFT_ALPHA:
            move = _material(view, Move(*about, slope * (len(values) - 1), p_trend))
        if p_step is not None and p_step < STEP_ALPHA:
            change = fmean(values[at:]) - fmean(values[:at])
            step = _material(view, Move(*about, change, p_step, at))
            if step and _holds_in_ranks(step) and (not move or _is_step(step)):
                move = step
        if move:
            found[key] = move
    return found


def _trends(
    view: View, keys: Sequence[CellMetric]
) -> tuple[list[float], list[float | None]]:
    """The slope of each of these cells and metrics, and the corrected p of no trend; None where there are too few runs
    to tell."""
    values = view.values_of_all_that_ran
    numbers = [values.number_of[key] for key in keys]
    found = trends(values, np.isin(np.arange(len(values.sizes)), numbers))
    slopes, p_values = found["slope"][numbers], found["p_value"][numbers]
    return slopes.tolist(), holm([*map(or_none, p_values)])


def _material(view: View, move: Move) -> Move | None:
    return move if view.matters(move.metric, move.values, move.change) else None


def _is_step(step: Move) -> bool:
    """Whether two levels leave less of the variation than a straight line does."""
    values, at = np.array(step.values), step.at
    places = np.arange(len(values))
    line = np.polynomial.Polynomial.fit(places, values, 1)(places)
    levels = np.where(places < at, values[:at].mean(), values[at:].mean())
    return bool(((values - levels) ** 2).sum() < ((values - line) ** 2).sum())


def drifts(view: View) -> Iterator[Finding]:
    """Trends within cells, one finding per metric; then first runs that stand out."""
    for items in _by_metric(view, in_steps=False):
        yield _drift(view, items)
    yield from first_runs(view)


def step(view: View) -> Iterator[Finding]:
    """Cells whose level changes at one point of time, one finding per metric."""
    for items in _by_metric(view, in_steps=True):
        yield _step(view, items)


def _by_metric(view: View, *, in_steps: bool) -> Iterable[Sequence[Move]]:
    """What moves in one way, metric by metric."""
    moves = [move for move in view.once(moved).values() if (move.at > 0) is in_steps]
    return grouped(moves, lambda move: move.metric.name).values()


def _drift(view: View, items: Sequence[Move]) -> Finding:
    """One metric that trends with run order in one cell or several; the figures are those of the clearest."""
    worst = min(items, key=lambda move: move.p_adjusted)
    metric, number = worst.metric, len(worst.values)
    worth = float(describe.effective_n(worst.values))
    direction = "rises" if worst.change > 0 else "falls"
    text = (
        f"{metric.label} of {label(worst.cell)} {direction} by about {metric.format(abs(worst.change))} from the first "
        f"of {number} runs to the last (Mann-Kendall, {corrected(worst.p_adjusted, worst.tests)}), so its mean depends "
        "on how long one measures."
    )
    if worth < describe.MINIMUM_RUNS:
        text += f" Each run resembles the one before: {number} are worth {worth:.0f} independent ones."
    trend = drift.trend(worst.values)
    return _moves(
        view,
        "drift",
        text,
        items,
        values=list(worst.values),
        slope_per_run=trend.slope,
        p_value=trend.p_value,
        p_adjusted=worst.p_adjusted,
        spearman=trend.spearman,
        lag1=trend.lag1,
        n_effective=worth,
    )


def _step(view: View, items: Sequence[Move]) -> Finding:
    """The same of a metric that changes its level."""
    worst = min(items, key=lambda move: move.p_adjusted)
    metric, values, at = worst.metric, worst.values, worst.at
    text = (
        f"{metric.label} of {label(worst.cell)} changes its level after {at} of {len(values)} runs, from "
        f"{metric.format(fmean(values[:at]))} to {metric.format(fmean(values[at:]))} on average "
        f"({corrected(worst.p_adjusted, worst.tests)}), and the mean mixes both."
    )
    at_by_cell = {label(move.cell): move.at for move in items}
    return _moves(view, "step", text, items, p_value=worst.p_adjusted, at=at_by_cell)


def _moves(
    view: View, check: str, text: str, items: Sequence[Move], **evidence: Any
) -> Finding:
    cells = [move.cell for move in items]
    runs = [run for cell in cells for run in ids(view.ran[cell])]
    return view.concerning(
        check,
        "warning",
        text,
        cells,
        [items[0].metric.name],
        cases=len(items),
        runs=runs,
        **evidence,
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


def _holds_in_ranks(found: Move) -> bool:
    """Whether the ranks show a change too: Student's t trusts in a normal distribution. Where runs take a few values
    only it means nothing, and the ranks decide alone."""
    p_value = drift.change_point_p(found.values)
    if len(set(found.values)) < DISTINCT_VALUES:
        return p_value < STEP_ALPHA / found.tests
    return p_value < RANK_ALPHA


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

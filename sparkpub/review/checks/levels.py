"""Whether the level of a cell drifts in the course of its campaign."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

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
from sparkpub.review.statistics.estimate import MINIMUM_RUNS, effective_n, holm
from sparkpub.review.statistics.series import trends
from sparkpub.review.tables.column import by_size

DRIFT_ALPHA = Threshold(
    "drift alpha",
    0.02,
    "Probability of a false drift finding in a clean campaign (Mann-Kendall, Holm).",
)


class Move(NamedTuple):
    """A trend of a metric in a cell: `change` is that from the first run to the last, `p_adjusted` is Holm's over all
    cells and metrics that were tested."""

    cell: Cell
    metric: Metric
    values: Sequence[float]
    tests: int
    change: float
    p_value: float
    p_adjusted: float


def moved(view: View) -> Mapping[CellMetric, Move]:
    """What drifts in a campaign, beyond chance and by enough to matter."""
    series = {
        (cell, name): figures
        for cell in view.ran
        for name in view.once(independent)
        if len(set(figures := view.figures(cell, name, ran=True))) > 1
    }
    if not series:
        return {}
    found = by_size([np.array(figures) for figures in series.values()], trends)
    moves = {}
    for (key, figures), slope, p_value, p_adjusted in zip(
        series.items(),
        found["slope"].tolist(),
        found["p_value"].tolist(),
        holm(found["p_value"]),
        strict=True,
    ):
        metric, change = view.metrics[key[1]], slope * (len(figures) - 1)
        if (
            p_adjusted is not None
            and p_adjusted < DRIFT_ALPHA
            and view.matters(metric, figures, change)
        ):
            about = key[0], metric, figures, len(series)
            moves[key] = Move(*about, change, p_value, p_adjusted)
    return moves


def drifts(view: View) -> Iterator[Finding]:
    """Trends within cells, one finding per metric; then first runs that stand out."""
    moves = view.once(moved).values()
    for items in grouped(moves, lambda move: move.metric.name).values():
        yield _drift(view, items)
    yield from first_runs(view)


def _drift(view: View, items: Sequence[Move]) -> Finding:
    """One metric that trends with run order in one cell or several; the figures are those of the clearest."""
    worst = min(items, key=lambda move: move.p_adjusted)
    metric, number = worst.metric, len(worst.values)
    worth = float(effective_n(worst.values))
    direction = "rises" if worst.change > 0 else "falls"
    text = (
        f"{metric.label} of {label(worst.cell)} {direction} by about {metric.format(abs(worst.change))} from the first "
        f"of {number} runs to the last (Mann-Kendall, {corrected(worst.p_adjusted, worst.tests)}), so its mean depends "
        "on how long one measures."
    )
    if worth < MINIMUM_RUNS:
        text += f" Each run resembles the one before: {number} are worth {worth:.0f} independent ones."
    cells = [move.cell for move in items]
    return view.concerning(
        "drift",
        "warning",
        text,
        cells,
        [metric.name],
        cases=len(items),
        runs=[run for cell in cells for run in ids(view.ran[cell])],
        values=list(worst.values),
        slope_per_run=worst.change / (number - 1),
        p_value=worst.p_value,
        p_adjusted=worst.p_adjusted,
        n_effective=worth,
    )


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
)

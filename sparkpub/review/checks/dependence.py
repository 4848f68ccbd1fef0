"""Metrics that are one measurement under two names: exact functions of each other, undeclared."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import TIMED_UNITS, View, label
from sparkpub.review.grouping import grouped
from sparkpub.review.statistics.estimate import Floats, resolution_of
from sparkpub.review.statistics.series import FittedLine, least_squares

DEPENDENCE_R_SQUARED = Threshold(
    "dependence r squared",
    0.99999,
    "From this share of explained variation over all runs of a workload, two metrics count as one measurement.",
)
DEPENDENCE_R_SQUARED_WITHIN = Threshold(
    "dependence r squared within",
    0.999,
    "The same from run to run of a cell: two metrics that both grow with the model are not one measurement.",
)
DEPENDENCE_ROUNDING = Threshold(
    "dependence rounding",
    1.5,
    "Alternatively, no run lies further from the line than this many times the rounding of both figures.",
)
DEPENDENCE_RUNS = Threshold(
    "dependence runs",
    8,
    "Minimum number of runs for the fit.",
)


class Restated(NamedTuple):
    """Two results of a workload that are one measurement: `y` is a line of `x`, or with `power` a power of it, and then
    `line` and `furthest`, the largest distance from it, are of their logarithms."""

    workload: str
    x: str
    y: str
    power: bool
    runs: int
    line: FittedLine
    furthest: float


def restated(view: View) -> list[Restated]:
    """Every pair of results that are one measurement."""
    found: dict[tuple[str, str, str], Restated] = {}
    for workload, cells in grouped(view.ran, itemgetter(2)).items():
        runs = [run.record for cell in cells for run in view.ran[cell]]
        if len(runs) < DEPENDENCE_RUNS:
            continue
        columns = {
            name: [view.figure(run, name) for run in runs] for name in view.results
        }
        values = pd.DataFrame(columns, range(len(runs)), dtype=np.float64)
        logarithms = values.loc[:, values.min() > 0].apply(np.log)
        of_one_cell = [one.cell == other.cell for one, other in pairwise(runs)]
        for power, figures in ((False, values), (True, logarithms)):
            for x, y in _alike(figures, of_one_cell):
                both = figures[[x, y]].dropna().to_numpy()
                fit = _exact(both[:, 0], both[:, 1], rounded=not power)
                if fit is not None:
                    pair = Restated(workload, x, y, power, len(both), *fit)
                    found.setdefault((workload, x, y), pair)
    return list(found.values())


def _alike(
    figures: pd.DataFrame, of_one_cell: Sequence[bool]
) -> Iterator[tuple[str, str]]:
    """The pairs that change alike from each run of a cell to the next."""
    changes = figures.diff().iloc[1:][of_one_cell]
    correlation = changes.corr(min_periods=int(DEPENDENCE_RUNS) - 1).to_numpy()
    alike = np.triu(correlation**2 >= DEPENDENCE_R_SQUARED_WITHIN, 1)
    for one, other in np.argwhere(alike):
        yield figures.columns[one], figures.columns[other]


def _exact(x: Floats, y: Floats, *, rounded: bool) -> tuple[FittedLine, float] | None:
    """The line of y on x, and how far from it a run lies at most; None where that is more than next to nothing, or than
    the rounding of both."""
    line = least_squares(x.tolist(), y.tolist())
    furthest = float(np.abs(y - line.slope * x - line.intercept).max())
    if line.r_squared >= DEPENDENCE_R_SQUARED:
        return line, furthest
    if not rounded or line.r_squared < DEPENDENCE_R_SQUARED_WITHIN:
        return None
    rounding = (resolution_of(y) + abs(line.slope) * resolution_of(x)) / 2
    return (line, furthest) if furthest <= DEPENDENCE_ROUNDING * rounding else None


def independent(view: View) -> tuple[str, ...]:
    """The results of a campaign without those that restate another, so that no fault is counted twice."""
    again = {pair.y for pair in view.once(restated)}
    return tuple(name for name in view.results if name not in again)


def root_of(view: View, name: str) -> str:
    """The metric that a metric restates; itself where it restates none."""
    roots = {pair.y: pair.x for pair in view.once(restated)}
    while name in roots:
        name = roots[name]
    return name


def cause(view: View, metric: Metric) -> str:
    """What a metric hangs on, so that one fault is not told once per metric: all rates and times tell of speed, what
    restates another metric of that one, and any other metric of itself."""
    root = view.metrics[root_of(view, metric.name)]
    return "speed" if root.unit in TIMED_UNITS else root.name


def dependent_metrics(view: View) -> Iterator[Finding]:
    """Two headline metrics that are one."""
    for pair in view.once(restated):
        x, y, line = view.metrics[pair.x], view.metrics[pair.y], pair.line
        evidence: dict[str, Any] = {
            "x": pair.x,
            "y": pair.y,
            "form": "power" if pair.power else "linear",
            "slope": line.slope,
            "intercept": line.intercept,
            "r_squared": line.r_squared,
            "n": pair.runs,
        }
        if pair.power:
            formula = f"{math.exp(line.intercept):.6g} × {x.label}^{line.slope:.4f}"
            furthest = f"{100 * pair.furthest:.2g} %"
        else:
            sign = "" if line.slope >= 0 else "−"
            plus = "+" if line.intercept >= 0 else "−"
            formula = f"{sign}{abs(line.slope):.4f} × {x.label} {plus} {abs(line.intercept):.3f} {y.unit}"
            furthest = f"{pair.furthest:.3g} {y.unit}"
            evidence["largest_residual"] = pair.furthest
            # Where both are cut from one quantity, this is that quantity.
            evidence["x_where_y_is_zero"] = -line.intercept / line.slope
        text = (
            f"{y.label} and {x.label} are one measurement, not two: over {pair.runs} runs of {pair.workload}, "
            f"{y.label} = {formula}, and no run is further than {furthest} from it. A statement about one only "
            "restates the other."
        )
        cells = [label(cell) for cell in view.ran if cell[2] == pair.workload]
        yield view.finding(
            "dependent-metrics", "warning", text, cells=cells, **evidence
        )


CHECKS = (
    Check(
        "dependent-metrics",
        "meaning",
        ("warning",),
        "Is each metric an independent measurement?",
        dependent_metrics,
        thresholds=(
            DEPENDENCE_R_SQUARED,
            DEPENDENCE_R_SQUARED_WITHIN,
            DEPENDENCE_ROUNDING,
            DEPENDENCE_RUNS,
        ),
        remedy="Report one of them.",
    ),
)

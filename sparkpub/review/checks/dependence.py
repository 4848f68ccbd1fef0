"""Metrics that are one measurement under two names: exact functions of each other, undeclared."""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pandas as pd

from sparkpub.record.metrics import TIMED_UNITS
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, label
from sparkpub.review.grouping import grouped
from sparkpub.review.statistics.estimate import resolution_of
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
    `line` is of their logarithms."""

    workload: str
    x: str
    y: str
    power: bool
    runs: int
    line: FittedLine


def restated(view: View) -> list[Restated]:
    """Every pair of results that are one measurement, each once."""
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
            changes = figures.diff().iloc[1:][of_one_cell]
            alike = changes.corr(min_periods=int(DEPENDENCE_RUNS) - 1).to_numpy() ** 2
            pairs = np.argwhere(np.triu(alike >= DEPENDENCE_R_SQUARED_WITHIN, 1))
            for x, y in figures.columns.to_numpy()[pairs]:
                both = figures[[x, y]].dropna()
                line = least_squares(both[x].tolist(), both[y].tolist())
                if line.r_squared >= DEPENDENCE_R_SQUARED or (
                    not power and _is_rounded(line, both[x], both[y])
                ):
                    pair = Restated(workload, x, y, power, len(both), line)
                    found.setdefault((workload, x, y), pair)
    return list(found.values())


def _is_rounded(line: FittedLine, x: "pd.Series[float]", y: "pd.Series[float]") -> bool:
    """Whether no run lies further from a line than the rounding of both figures explains."""
    off = float((y - line.slope * x - line.intercept).abs().max())
    steps = resolution_of(y.tolist()) + abs(line.slope) * resolution_of(x.tolist())
    return off <= DEPENDENCE_ROUNDING * steps / 2


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


def cause(view: View, name: str) -> str:
    """What a metric hangs on, so that one fault is not told once per metric: all rates and times tell of speed, what
    restates another metric of that one, and any other metric of itself."""
    root = view.metrics[root_of(view, name)]
    return "speed" if root.unit in TIMED_UNITS else root.name


def causes(view: View, names: Iterable[str]) -> frozenset[str]:
    """What some metrics hang on."""
    return frozenset(cause(view, name) for name in names)


def dependent_metrics(view: View) -> Iterator[Finding]:
    """Two headline metrics that are one."""
    for pair in view.once(restated):
        x, y, line = view.metrics[pair.x], view.metrics[pair.y], pair.line
        if pair.power:
            formula = f"{math.exp(line.intercept):.6g} × {x.label}^{line.slope:.4f}"
        else:
            plus = "+" if line.intercept >= 0 else "−"
            formula = f"{line.slope:.4f} × {x.label} {plus} {abs(line.intercept):.3f} {y.unit}"
        text = (
            f"{y.label} and {x.label} are one measurement, not two: over {pair.runs} runs of {pair.workload}, "
            f"{y.label} = {formula}. A statement about one only restates the other."
        )
        cells = [label(cell) for cell in view.ran if cell[2] == pair.workload]
        yield view.finding(
            "dependent-metrics",
            "warning",
            text,
            cells=cells,
            x=pair.x,
            y=pair.y,
            form="power" if pair.power else "linear",
            slope=line.slope,
            intercept=line.intercept,
            r_squared=line.r_squared,
            n=pair.runs,
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

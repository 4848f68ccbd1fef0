"""Metrics that are one measurement under two names: exact functions of each other, undeclared."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparkpub.record.metrics import Metric
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import TIMED_UNITS, View, label
from sparkpub.review.statistics import describe
from sparkpub.review.statistics.describe import Floats

DEPENDENCE_R_SQUARED = Threshold(
    "dependence r squared",
    0.99999,
    "From this share of explained variation over all runs of a workload, two metrics count as one measurement.",
)
DEPENDENCE_R_SQUARED_WITHIN = Threshold(
    "dependence r squared within",
    0.999,
    "The same within cells: two metrics that both grow with the model are not one measurement.",
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

_APART = 0.99
"""Share of the variation within cells below which no fit comes near the thresholds, whatever arithmetic rounds."""


@dataclass(frozen=True)
class Fit:
    """Least squares of y on x, or of their logarithms for a power law, over all cells of a workload."""

    form: Literal["linear", "power"]
    x: Floats
    y: Floats
    cells: NDArray[np.int64]
    models: NDArray[np.str_]

    @cached_property
    def line(self) -> tuple[float, float]:
        """Slope and intercept."""
        slope = float(np.cov(self.x, self.y)[0, 1] / self.x.var(ddof=1))
        return slope, float(self.y.mean() - slope * self.x.mean())

    @cached_property
    def residuals(self) -> Floats:
        """y minus the line."""
        slope, intercept = self.line
        return self.y - slope * self.x - intercept

    @property
    def r_squared(self) -> float:
        """Share of the variation of y explained, over all runs."""
        return 1 - float(self.residuals.var() / self.y.var())

    @property
    def r_squared_within(self) -> float:
        """The same for the variation around each cell's mean."""
        centred = self.y - _cell_means(self.y, self.cells)
        spread = float(centred @ centred)
        rest = self.residuals - _cell_means(self.residuals, self.cells)
        return (
            1 - float(rest @ rest) / spread
            if spread > 1e-18 * float(self.y @ self.y)
            else -math.inf
        )

    @property
    def rounding(self) -> float:
        """The distance from the line that rounding of x and y can make; 0 for logarithms, which hide it."""
        if self.form == "power":
            return 0.0
        return (
            describe.resolution_of(self.y)
            + abs(self.line[0]) * describe.resolution_of(self.x)
        ) / 2

    @property
    def exact(self) -> bool:
        """Whether y is a function of x, for all that these runs can tell: what is left is next to nothing, or
        rounding."""
        if self.r_squared_within < DEPENDENCE_R_SQUARED_WITHIN:
            return False
        if self.r_squared >= DEPENDENCE_R_SQUARED:
            return True
        largest = float(np.abs(self.residuals).max())
        rounded = largest <= DEPENDENCE_ROUNDING * self.rounding
        return rounded and self.r_squared >= DEPENDENCE_R_SQUARED_WITHIN


def _cell_means(values: Floats, cells: NDArray[np.int64]) -> Floats:
    return (np.bincount(cells, values) / np.bincount(cells))[cells]


def restated(view: View) -> list[tuple[str, str, str, Fit]]:
    """Every pair of results that are one measurement: workload, the two names, and the fit."""
    found = []
    for workload in dict.fromkeys(cell[2] for cell in view.ran):
        records = [
            run.record
            for cell, runs in view.ran.items()
            if cell[2] == workload
            for run in runs
        ]
        read = {
            name: np.array(
                [view.figure(record, name) for record in records], dtype=float
            )
            for name in view.results
        }
        columns = {name: column for name, column in read.items() if _varies(column)}
        cells = np.unique(
            ["/".join(record.cell) for record in records], return_inverse=True
        )[1]
        models = np.array([record.model for record in records])
        for one, other in _alike(columns, cells):
            fit = _exact(columns[one], columns[other], cells, models)
            if fit is not None:
                found.append((workload, one, other, fit))
    return found


def _alike(
    columns: Mapping[str, Floats], cells: NDArray[np.int64]
) -> Iterator[tuple[str, str]]:
    """The pairs that may be one measurement: correlated within cells, as they are or as logarithms.

    No line explains more of the variation within cells than the square of that correlation. It is had for all pairs at
    once, where each fit costs as much; pairs of which a run lacks a value are left to the fit.
    """
    if len(columns) < 2:
        return
    values = np.array(list(columns.values()))
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = _explained(values, cells) < _APART
        apart &= ~(_explained(np.log(values), cells) >= _APART)
    for (row, one), (column, other) in combinations(enumerate(columns), 2):
        if not apart[row, column]:
            yield one, other


def _explained(values: Floats, cells: NDArray[np.int64]) -> Floats:
    """The squared correlation within cells of each row of values with each other one."""
    centred = [row - _cell_means(row, cells) for row in values]
    explained: Floats = np.corrcoef(centred) ** 2
    return explained


def independent(view: View) -> tuple[str, ...]:
    """The results of a campaign without those that restate another, so that no fault is counted twice."""
    again = {other for _, _, other, _ in view.once(restated)}
    return tuple(name for name in view.results if name not in again)


def root_of(view: View, name: str) -> str:
    """The metric that a metric restates; itself where it restates none."""
    roots = {other: one for _, one, other, _ in view.once(restated)}
    while name in roots:
        name = roots[name]
    return name


def cause(view: View, metric: Metric) -> str:
    """What a metric hangs on, so that one fault is not told once per metric: all rates and times tell of speed, what
    restates another metric of that one, and any other metric of itself."""
    root = view.metrics[root_of(view, metric.name)]
    return "speed" if root.unit in TIMED_UNITS else root.name


def _varies(column: Floats) -> bool:
    known = column[~np.isnan(column)]
    return len(known) >= DEPENDENCE_RUNS and bool(known.max() > known.min())


def _exact(
    x: Floats, y: Floats, cells: NDArray[np.int64], models: NDArray[np.str_]
) -> Fit | None:
    both = ~(np.isnan(x) | np.isnan(y))
    if not (_varies(np.where(both, x, np.nan)) and _varies(np.where(both, y, np.nan))):
        return None
    x, y, models, cells = (
        x[both],
        y[both],
        models[both],
        np.unique(cells[both], return_inverse=True)[1],
    )
    linear = Fit("linear", x, y, cells, models)
    if linear.exact:
        return linear
    if x.min() <= 0 or y.min() <= 0:
        return None
    power = Fit("power", np.log(x), np.log(y), cells, models)
    return power if power.exact else None


def dependent_metrics(view: View) -> Iterator[Finding]:
    """Two headline metrics that are one."""
    for workload, one, other, fit in view.once(restated):
        x, y = view.metrics[one], view.metrics[other]
        slope, intercept = fit.line
        evidence: dict[str, Any] = {
            "x": one,
            "y": other,
            "form": fit.form,
            "slope": slope,
            "intercept": intercept,
            "r_squared": fit.r_squared,
            "n": len(fit.x),
        }
        if fit.form == "linear":
            worst = float(np.abs(fit.residuals).max())
            sign = "" if slope >= 0 else "−"
            plus = "+" if intercept >= 0 else "−"
            formula = f"{sign}{abs(slope):.4f} × {x.label} {plus} {abs(intercept):.3f} {y.unit}"
            note = f"no run is further than {worst:.3g} {y.unit} from it"
            evidence |= {
                "largest_residual": worst,
                "x_where_y_is_zero": -intercept / slope,
                "x_where_y_is_zero_by_model": _zeros(fit),
            }
        else:
            formula = f"{math.exp(intercept):.6g} × {x.label}^{slope:.4f}"
            note = f"no run is further than {100 * float(np.abs(fit.residuals).max()):.2g} % from it"
        text = (
            f"{y.label} and {x.label} are one measurement, not two: over {len(fit.x)} runs of {workload}, "
            f"{y.label} = {formula}, and {note}. A statement about one only restates the other."
        )
        cells = [label(cell) for cell in view.ran if cell[2] == workload]
        yield view.finding(
            "dependent-metrics", "warning", text, cells=cells, **evidence
        )


def _zeros(fit: Fit) -> dict[str, float]:
    """Where each model's runs meet y = 0 along the common slope: the quantity that both metrics are cut from."""
    return {
        name: float(fit.x[own].mean() - fit.y[own].mean() / fit.line[0])
        for name in dict.fromkeys(fit.models.tolist())
        if (own := fit.models == name).any()
    }


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

"""How a metric grows along a sweep, and where it bends.

The slope between two neighbouring points is taken on logarithmic axes (the elasticity of y in x): 1 is growth in
proportion, 0 none, and a law y = c·x^a has the slope a everywhere. The knee is the inner point at which the slope
changes most.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Shape = Literal["level", "grows", "falls"]
SweptPoint = tuple[float, float]
"""What is swept, and the metric there."""

LEVEL_PERCENT = 5.0
"""A metric that changes by less from the first point to the last is called level."""
BEND = 0.4
"""A change of slope by so much makes a knee: more than a third of the way from proportional to none."""


@dataclass(frozen=True)
class Growth:
    """A metric along a sweep, by rising x. `knee` is the place of a point, None where the line does not bend."""

    points: tuple[SweptPoint, ...]
    knee: int | None

    @property
    def shape(self) -> Shape:
        """Which way the metric goes from the first point to the last."""
        first, last = self.points[0][1], self.points[-1][1]
        if abs(last - first) < LEVEL_PERCENT / 100 * abs(first):
            return "level"
        return "grows" if last > first else "falls"


def growth(points: Sequence[SweptPoint], *, repeated: bool = True) -> Growth:
    """The growth along two points or more, each at an x of its own.

    Where points are single runs, not `repeated`, there is no knee: how much of a bend is a run's own cannot be told.
    """
    ordered = tuple(sorted(points))
    return Growth(ordered, _knee(ordered) if repeated else None)


def _knee(points: Sequence[SweptPoint]) -> int | None:
    """The inner point with the largest change of slope, if that is at least `BEND`. Where a value is not positive,
    there is no slope to either side."""
    values = np.array(points, dtype=np.float64)
    x, y = np.log(np.where(values > 0, values, np.nan)).T
    bends = np.nan_to_num(np.abs(np.diff(np.diff(y) / np.diff(x))))
    if bends.max(initial=0.0) < BEND:
        return None
    return int(bends.argmax()) + 1

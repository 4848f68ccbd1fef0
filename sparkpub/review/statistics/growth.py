"""How a metric grows along a sweep, and where it bends.

The slope between two neighbouring points is taken on logarithmic axes (the elasticity of y in x): 1 is growth in
proportion, 0 none, and a law y = c·x^a has the slope a everywhere. The knee is the inner point at which the slope
changes most.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

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
        return _shape(self.points)

    @property
    def shape_before_knee(self) -> Shape:
        """Which way it goes up to the knee, or to the end where there is none."""
        end = len(self.points) if self.knee is None else self.knee + 1
        return _shape(self.points[:end])

    @property
    def slope(self) -> float | None:
        """The slope from the first point to the last; None where a logarithm is missing."""
        return slope(self.points[0], self.points[-1])

    @property
    def factor(self) -> float | None:
        """The last value in units of the first; None where that is zero."""
        first, last = self.points[0][1], self.points[-1][1]
        return last / first if first else None


def growth(points: Sequence[SweptPoint], *, repeated: bool = True) -> Growth:
    """The growth along points of different x, at least two of them. Raises ValueError for fewer.

    Where points are single runs, not `repeated`, there is no knee: how much of a bend is a run's own cannot be told.
    """
    ordered = tuple(sorted(points))
    if len({x for x, _ in ordered}) < 2 or len({x for x, _ in ordered}) < len(ordered):
        raise ValueError("growth needs two points or more, each at an x of its own")
    return Growth(ordered, _knee(ordered) if repeated else None)


def slope(first: SweptPoint, last: SweptPoint) -> float | None:
    """d ln y / d ln x between two points; None where one of the four values is not positive."""
    (x1, y1), (x2, y2) = first, last
    if min(x1, x2, y1, y2) <= 0:
        return None
    return math.log(y2 / y1) / math.log(x2 / x1)


def _shape(points: Sequence[SweptPoint]) -> Shape:
    first, last = points[0][1], points[-1][1]
    if abs(last - first) < LEVEL_PERCENT / 100 * abs(first):
        return "level"
    return "grows" if last > first else "falls"


def _knee(points: Sequence[SweptPoint]) -> int | None:
    """The inner point with the largest change of slope, if that is at least `BEND`."""
    slopes = [slope(first, last) for first, last in pairwise(points)]
    bends: dict[int, float] = {}
    for place, (before, after) in enumerate(pairwise(slopes), 1):
        if before is not None and after is not None:
            bends[place] = abs(after - before)
    if not bends:
        return None
    place = max(bends, key=bends.__getitem__)
    return place if bends[place] >= BEND else None

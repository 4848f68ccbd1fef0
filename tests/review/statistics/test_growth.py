"""Slopes, shapes and knees of curves whose law is known. A failure here puts the bend of a sweep in the wrong place."""

import pytest

from sparkpub.review.statistics.growth import BEND, Shape, growth

DOUBLED = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


@pytest.mark.parametrize(
    ("values", "knee", "shape"),
    [
        # A power law bends nowhere.
        ([x**-1.5 for x in DOUBLED], None, "falls"),
        # In proportion up to 8 and level from there on, and the other way round.
        ([min(x, 8.0) for x in DOUBLED], 3, "grows"),
        ([max(x, 8.0) for x in DOUBLED], 3, "grows"),
        # Slope 1 from 1 to 2, then 1 - change: a knee from the threshold on.
        ([1, 2, 2 * 2 ** (1 - BEND - 0.01)], 1, "grows"),
        ([1, 2, 2 * 2 ** (1 - BEND + 0.01)], None, "grows"),
        # Slopes 1, 0.5 and -1: changes of 0.5 at 2 and of 1.5 at 4, of which the larger is the knee.
        ([1, 2, 2 * 2**0.5, 2**0.5], 2, "grows"),
        # Beside a point without a logarithm there is none.
        ([0, 1, 2, 4], None, "grows"),
        # A change below 5 % is level.
        ([100, 104.99], None, "level"),
        ([100, 95], None, "falls"),
    ],
)
def test_shape_and_knee(values: list[float], knee: int | None, shape: Shape) -> None:
    found = growth(list(zip(DOUBLED, values, strict=False)))
    assert (found.knee, found.shape) == (knee, shape)

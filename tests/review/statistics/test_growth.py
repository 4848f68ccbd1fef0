"""Slopes, shapes and knees of curves whose law is known."""

import pytest

from sparkpub.review.statistics.growth import BEND, growth, slope


@pytest.mark.parametrize("power", [-1.0, 0.5, 1.0, 2.0])
def test_the_slope_of_a_power_law_is_its_power(power: float) -> None:
    points = [(x, 3 * x**power) for x in (1.0, 2.0, 4.0, 8.0)]
    found = growth(points)
    assert found.slope == pytest.approx(power)
    assert found.knee is None
    assert found.factor == pytest.approx(8**power)


def test_the_slope_of_a_bent_line_is_that_between_its_ends() -> None:
    """From (1, 1) by (2, 2) to (4, 2): ln 2 / ln 4, where the first half has 1 and the second 0."""
    assert growth([(1, 1), (2, 2), (4, 2)]).slope == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("first", "last"),
    [((0, 1), (2, 2)), ((1, 0), (2, 2)), ((1, 1), (2, 0)), ((1, 1), (2, -1))],
)
def test_there_is_no_slope_where_a_logarithm_is_missing(
    first: tuple[float, float], last: tuple[float, float]
) -> None:
    assert slope(first, last) is None


def test_the_knee_is_where_growth_in_proportion_ends() -> None:
    """min(x, 8): the slope is 1 up to 8 and 0 from there on."""
    found = growth([(x, min(x, 8.0)) for x in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)])
    assert found.knee == 3
    assert found.points[3] == (8.0, 8.0)
    assert found.shape_before_knee == "grows"


def test_a_time_that_begins_to_grow_has_its_knee_there() -> None:
    """max(x, 8): level up to 8, in proportion from there on."""
    found = growth([(x, max(x, 8.0)) for x in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)])
    assert found.knee == 3
    assert (found.shape_before_knee, found.shape) == ("level", "grows")


@pytest.mark.parametrize(("change", "knee"), [(BEND + 0.01, 1), (BEND - 0.01, None)])
def test_a_change_of_slope_is_a_knee_from_the_threshold_on(
    change: float, knee: int | None
) -> None:
    """Slope 1 from 1 to 2, then 1 − change from 2 to 4."""
    found = growth([(1, 1), (2, 2), (4, 2 * 2 ** (1 - change))])
    assert found.knee == knee


def test_without_a_knee_what_comes_before_it_is_the_whole_line() -> None:
    found = growth([(1, 100), (2, 102), (4, 200)])
    assert found.knee is not None
    assert found.shape_before_knee == "level"
    straight = growth([(1, 100), (2, 104), (4, 108)])
    assert straight.knee is None
    assert straight.shape_before_knee == straight.shape == "grows"


@pytest.mark.parametrize(
    "values", [(0, 1, 2, 4), (1, 2, 4, 0)], ids=["at the start", "at the end"]
)
def test_beside_a_point_without_a_logarithm_there_is_no_knee(
    values: tuple[float, ...],
) -> None:
    """What is left is in proportion."""
    found = growth(list(zip((1.0, 2.0, 4.0, 8.0), values, strict=True)))
    assert found.knee is None


def test_of_two_bends_the_larger_one_is_the_knee() -> None:
    """Slopes 1, 0.5 and −1 between 1, 2, 4 and 8: changes of 0.5 at 2 and of 1.5 at 4."""
    found = growth([(1, 1), (2, 2), (4, 2 * 2**0.5), (8, 2**0.5)])
    assert found.knee == 2


def test_points_are_taken_in_order_of_x() -> None:
    assert growth([(4, 1), (1, 3)]).points == ((1, 3), (4, 1))


@pytest.mark.parametrize(
    ("last", "shape"),
    [
        (104.99, "level"),
        (95.01, "level"),
        (105, "grows"),
        (95, "falls"),
    ],
)
def test_a_change_below_five_percent_is_level(last: float, shape: str) -> None:
    assert growth([(1, 100), (2, last)]).shape == shape


def test_a_first_value_of_zero_has_no_factor() -> None:
    found = growth([(1, 0), (2, 5)])
    assert found.factor is None
    assert found.shape == "grows"


@pytest.mark.parametrize(
    "points", [[], [(1, 1)], [(1, 1), (1, 2)], [(1, 1), (2, 1), (2, 3)]]
)
def test_growth_needs_two_points_at_an_x_of_their_own(
    points: list[tuple[float, float]],
) -> None:
    with pytest.raises(ValueError, match="two points or more"):
        growth(points)

"""Outlier tests against NIST's worked examples, and what rounding must not make of clean data."""

import numpy as np
import pytest
from scipy import stats

from sparkpub.review.statistics.outliers import (
    beyond_three_sigma,
    critical_value,
    grubbs,
)
from tests.study.published import TIETJEN_MOORE


def test_grubbs_finds_nists_outlier() -> None:
    """NIST/SEMATECH e-Handbook 1.3.5.17.1: G = 2.4687 above the critical 2.032 (its one-sided value at n = 8, whose
    two-sided level is 10 %); the outlier is 245.57."""
    assert critical_value(8, 0.10) == pytest.approx(2.032, abs=5e-4)
    assert grubbs(TIETJEN_MOORE) == (7,)


def test_three_sigma_cannot_fire_at_ten_runs_but_grubbs_can() -> None:
    values = [100.0, 100.1, 99.9, 100.2, 99.8, 100.0, 100.1, 99.9, 100.0, 130.0]
    assert np.abs(stats.zscore(values, ddof=1)).max() < 3
    assert grubbs(values) == (9,)


@pytest.mark.parametrize(
    "values",
    [[], [1.0], [1.0, 9.0], [5.0] * 10, [60.0] * 9 + [61.0], [60.0] * 9 + [62.0]],
)
def test_few_constant_or_rounded_values_have_no_outliers(values: list[float]) -> None:
    assert grubbs(values) == ()


def test_of_three_runs_one_can_be_an_outlier() -> None:
    """G is at most (n - 1)/√n = 1.1547 there, and the critical value 1.1543."""
    assert grubbs([1.0, 1.0, 100.0]) == (2,)


@pytest.mark.parametrize(("share", "is_outlier"), [(0.998, False), (1.002, True)])
def test_the_test_turns_exactly_at_its_critical_value(
    share: float, is_outlier: bool
) -> None:
    """G = |x - mean| / s for seven values and one that is moved until G is a little below or above the critical one."""
    rest = np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0])

    def statistic(moved: float) -> float:
        values = np.append(rest, moved)
        return float((moved - values.mean()) / values.std(ddof=1))

    low, high = 3.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if statistic(middle) < share * critical_value(8)
            else (low, middle)
        )
    assert grubbs([*rest, high]) == ((7,) if is_outlier else ())


@pytest.mark.parametrize(("distance", "outlying"), [(2, False), (3, True)])
def test_two_steps_of_rounding_are_no_outlier_and_three_are(
    distance: int, outlying: bool
) -> None:
    """Fifty readings of 60 and one `distance` steps above."""
    found = grubbs([60.0] * 50 + [60.0 + distance])
    assert (found == (50,)) is outlying


def test_two_that_hide_each_other_from_grubbs_lie_beyond_three_sigma() -> None:
    """Of 24 values two are 6 higher: each lies 3.12 s from the mean, and G must be 3.45 at 0.1 %."""
    values = [99.5, 100.5] * 11 + [106.0, 106.0]
    assert stats.zscore(values, ddof=1)[-2:] == pytest.approx(3.12, abs=5e-3)
    assert critical_value(24, 0.001) == pytest.approx(3.45, abs=5e-3)
    assert grubbs(values, 0.001) == ()
    assert beyond_three_sigma(values) == (22, 23)


def test_rounding_is_not_beyond_three_sigma() -> None:
    assert beyond_three_sigma([60.0] * 50 + [62.0]) == ()
    assert beyond_three_sigma([60.0] * 50 + [63.0]) == (50,)

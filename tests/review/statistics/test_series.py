"""Trends, transients and outliers against SciPy, pymannkendall, NIST and enumeration. A failure here hides a drift or
blames a clean run."""

import math

import numpy as np
import pytest
from scipy import stats

from sparkpub.review.statistics.series import (
    beyond_three_sigma,
    first_run_p,
    grubbs,
    trends,
)
from tests.study.published import TIETJEN_MOORE


def trend(values: object) -> tuple[float, float, float]:
    """Slope, p and inflation of one sample."""
    found = trends(np.array([values], dtype=np.float64))
    return tuple(found[name][0] for name in ("slope", "p_value", "inflation"))  # type: ignore[return-value]


def in_some_order(kind: str, n: int) -> list[float]:
    """Values that are at random, rounded, in order, but for two neighbours, or the other way round."""
    values = np.random.default_rng(n).normal(size=n)
    if kind == "rounded":
        values = values.round(1)
    elif kind != "random":
        values.sort()
    if kind == "but for two":
        values[:2] = values[1::-1]
    return list(values[::-1] if kind == "reversed" else values)


@pytest.mark.parametrize("n", [3, 10, 33])
@pytest.mark.parametrize(
    "kind", ["random", "rounded", "in order", "but for two", "reversed"]
)
def test_slope_and_p_are_scipys(kind: str, n: int) -> None:
    """Exact to 33 values without ties; with ties, and beyond, the normal limit."""
    values = in_some_order(kind, n)
    slope, p_value, inflation = trend(values)
    expected = stats.kendalltau(np.arange(n), values)
    assert slope == pytest.approx(stats.theilslopes(values).slope)
    if inflation == 1:
        assert p_value == pytest.approx(expected.pvalue, rel=1e-12)


def test_runs_that_swing_are_not_taken_as_extra_evidence() -> None:
    """A wave around a line: pymannkendall's factor is 0.67 here, and its p four hundred times smaller."""
    values = [1.3, 1.3, 2.1, 2.7, 4.9, 5.3, 5.3, 5.1, 4.4, 4.1, 3.2, 3.9]
    values += [6.2, 7.7, 8.9, 9.1, 8.8, 7.3, 6.9, 7.4, 9.6, 11.3, 12.1, 11.9]
    _, p_value, inflation = trend(values)
    expected = stats.kendalltau(np.arange(24), values).pvalue
    assert (p_value, inflation) == pytest.approx((expected, 1.0))


def dependent(seed: int, n: int = 30, phi: float = 0.7) -> list[float]:
    """A first-order process on a slope of 0.05 a run."""
    drawn = np.random.default_rng(seed).normal(size=n)
    values = [drawn[0]]
    for shock in drawn[1:]:
        values.append(phi * values[-1] + shock)
    return list(np.array(values) + 0.05 * np.arange(n))


def test_the_factor_on_the_variance_is_that_of_its_definition() -> None:
    """Hamed and Rao's factor, sum by sum (1998, equations 8 and 9), with the 5 % limits of their section 4."""
    values, n = dependent(5, 40), 40
    slope, _, inflation = trend(values)
    around = [round(value - slope * place, 9) for place, value in enumerate(values)]
    ranks = stats.rankdata(around) - (n + 1) / 2
    total = 0.0
    for lag in range(1, n):
        correlation = sum(ranks[:-lag] * ranks[lag:]) / sum(ranks**2)
        if abs(correlation) > stats.norm.ppf(0.975) / math.sqrt(n):
            total += (n - lag) * (n - lag - 1) * (n - lag - 2) * correlation
    assert inflation == pytest.approx(1 + 2 / (n * (n - 1) * (n - 2)) * total)


@pytest.mark.parametrize(
    ("blocks", "p_value"),
    [
        # Three blocks of ten that begin with their maximum: all highest or all lowest, 2 of 10³ draws.
        ([[9.0, *map(float, range(9))]] * 3, 2e-3),
        ([[-1.0, *map(float, range(9))]] * 3, 2e-3),
        # Two of two, of lengths three and five: the mean probability is 4/15.
        ([[9.0, 1.0, 2.0], [9.0, 1.0, 2.0, 3.0, 4.0]], 2 * (4 / 15) ** 2),
        ([[2.0, 2.0, 2.0]] * 5, 1.0),
        ([[2.0, 1.0], [1.0]], 1.0),
    ],
)
def test_first_runs_that_are_the_highest_of_their_blocks(
    blocks: list[list[float]], p_value: float
) -> None:
    assert first_run_p(blocks) == pytest.approx(p_value)


def test_grubbs_finds_nists_outlier() -> None:
    """NIST/SEMATECH e-Handbook 1.3.5.17.1: G = 2.4687 above the critical 2.032 (its one-sided value at n = 8, whose
    two-sided level is 10 %); the outlier is 245.57. Seven values with mean 0 and squares of 6 in all have a G beside an
    eighth, x, of which x² = G² 6/7 / (49/64 - G²/8)."""
    assert grubbs(TIETJEN_MOORE) == (7,)
    for g, found in ((2.033, (7,)), (2.031, ())):
        x = g * math.sqrt(6 / 7 / (49 / 64 - g * g / 8))
        assert grubbs([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 0.0, x], 0.10) == found


@pytest.mark.parametrize(
    ("values", "alpha", "by_grubbs", "by_three_sigma"),
    [
        # No value lies further than (n - 1)/√n standard deviations from the mean: 2.85 at n = 10.
        ([*[100.0, 100.1, 99.9, 100.2, 99.8] * 2, 130.0][2:], 0.05, (8,), ()),
        ([1.0, 9.0], 0.05, (), ()),
        ([5.0] * 10, 0.05, (), ()),
        # Two steps of rounding are no outlier, and three are.
        ([60.0] * 50 + [62.0], 0.05, (), ()),
        ([60.0] * 50 + [63.0], 0.05, (50,), (50,)),
        # Two hide each other from Grubbs: each lies 3.12 s from the mean, and G must be 3.45 at 0.1 %.
        ([99.5, 100.5] * 11 + [106.0, 106.0], 0.001, (), (22, 23)),
    ],
)
def test_outliers(
    values: list[float],
    alpha: float,
    by_grubbs: tuple[int, ...],
    by_three_sigma: tuple[int, ...],
) -> None:
    assert grubbs(values, alpha) == by_grubbs
    assert beyond_three_sigma(values) == by_three_sigma

"""Trends and transients against SciPy, full enumeration, and simulated campaigns without any."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from sparkpub.review.statistics import drift
from sparkpub.review.statistics.drift import (
    first_runs,
    least_squares,
    trend,
    variance_inflation,
)


@pytest.mark.parametrize("n", [5, 10, 40])
def test_slope_and_p_are_scipys(n: int) -> None:
    values = np.random.default_rng(n).normal(0, 1, n) + 0.05 * np.arange(n)
    found = trend(list(values))
    assert found.slope == pytest.approx(stats.theilslopes(values).slope)
    kendall = stats.kendalltau(np.arange(n), values)
    assert found.p_value == pytest.approx(kendall.pvalue)


def in_some_order(kind: str, n: int) -> list[float]:
    """Values that are at random, rounded, in order, but for two neighbours, or the other way round."""
    values = np.random.default_rng(n).normal(size=n)
    if kind == "rounded":
        return list(values.round(1).tolist())
    if kind == "random":
        return list(values.tolist())
    values.sort()
    if kind == "but for two":
        values[:2] = values[1::-1]
    if kind == "reversed":
        values = values[::-1]
    return list(values.tolist())


@pytest.mark.parametrize("n", [3, 4, 10, 32, 33, 34, 60, 170, 400])
@pytest.mark.parametrize(
    "kind", ["random", "rounded", "in order", "but for two", "reversed"]
)
def test_the_score_and_its_p_are_those_of_scipy(kind: str, n: int) -> None:
    """Exact to 33 values without ties, and beyond for the two most extreme scores; else the normal limit."""
    values = in_some_order(kind, n)
    found, expected = trend(values), stats.kendalltau(np.arange(n), values)
    if found.inflation == 1:
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    array = np.array([values])
    (score,), (ranks, ties) = drift._score(array), drift._ranks(array)
    # Tau-b of values against their order, which has no ties: S / sqrt(pairs * pairs without ties).
    pairs, untied = drift._pairs(n), drift._pairs(n) - (ties - 1).sum() / 2
    assert score / np.sqrt(pairs * untied) == pytest.approx(
        expected.statistic, rel=1e-12
    )
    (p_value,) = drift._score_p(np.array([score]), ties, np.ones(1))
    assert p_value == pytest.approx(expected.pvalue, rel=1e-12, abs=1e-300)
    assert ranks[0].tolist() == stats.rankdata(values).tolist()


def test_the_mann_kendall_p_is_exact_for_few_runs() -> None:
    """All 120 orders of five values: the share with |S| at least that of the sample, S = concordant - discordant."""
    values = (3.0, 1.0, 2.0, 4.0, 5.0)

    def score(order: tuple[float, ...]) -> float:
        return abs(sum(np.sign(b - a) for a, b in itertools.combinations(order, 2)))

    share = np.mean(
        [score(order) >= score(values) for order in itertools.permutations(values)]
    )
    assert trend(values).p_value == pytest.approx(share)


def test_three_runs_have_a_trend_and_a_fall_is_as_good_as_a_rise() -> None:
    rising, falling = trend([1.0, 2.0, 3.0]), trend([4.0, 3.0, 2.0, 1.0])
    assert (rising.slope, falling.slope) == (1, -1)
    assert rising.p_value == pytest.approx(2 / math.factorial(3))
    assert falling.p_value == pytest.approx(2 / math.factorial(4))


def test_no_spread_has_no_trend_and_too_few_runs_say_nothing() -> None:
    constant, pair = trend([60.0] * 8), trend([1.0, 2.0])
    assert (constant.slope, constant.p_value) == (0, 1)
    assert (pair.slope, pair.p_value) == (None, None)


def test_a_long_trend_costs_no_square_and_keeps_its_slope() -> None:
    values = 0.01 * np.arange(20_000) + np.random.default_rng(0).normal(0, 1, 20_000)
    assert trend(values).slope == pytest.approx(0.01, rel=0.02)


def test_one_wild_run_does_not_turn_the_slope() -> None:
    values = [float(i) for i in range(10)]
    assert trend([*values[:9], 900.0]).slope == pytest.approx(1)


@pytest.mark.parametrize(
    ("blocks", "p_value"),
    [
        # Three blocks of ten that begin with their maximum: all highest or all lowest, 2 of 10³ draws.
        ([[9.0, *map(float, range(9))]] * 3, 2e-3),
        ([[-1.0, *map(float, range(9))]] * 3, 2e-3),
        # One of three blocks of four: 1 - (3/4)³ = 0.578, twice of which is certain.
        ([[4.0, 1.0, 2.0, 3.0], *[[1.5, 1.0, 2.0, 3.0]] * 2], 1.0),
        # Two of two, of lengths three and five: the mean probability is 4/15.
        ([[9.0, 1.0, 2.0], [9.0, 1.0, 2.0, 3.0, 4.0]], 2 * (4 / 15) ** 2),
        ([[2.0, 2.0, 2.0]] * 5, 1.0),
        ([[2.0, 1.0], [1.0]], 1.0),
    ],
)
def test_first_runs_that_are_the_highest_of_their_blocks(
    blocks: list[list[float]], p_value: float
) -> None:
    assert first_runs(blocks) == pytest.approx(p_value)


def dependent(seed: int, n: int = 30, phi: float = 0.7) -> list[float]:
    """A first-order process on a slope of 0.05 a run."""
    drawn = np.random.default_rng(seed).normal(size=n)
    values = [drawn[0]]
    for shock in drawn[1:]:
        values.append(phi * values[-1] + shock)
    return list(np.array(values) + 0.05 * np.arange(n))


@pytest.mark.parametrize(
    ("seed", "p_value", "inflation", "slope"),
    [
        (0, 0.3574045123166618, 1.7377132290234818, 0.038303424074105884),
        (2, 0.08793032265747391, 1.3226792221241992, 0.04499414602209947),
        (3, 0.0020987133730101526, 1.718357810413885, 0.1379795861754188),
        (5, 0.6081899673374798, 1.5695962432668842, 0.019068065751643326),
    ],
)
def test_dependent_runs_widen_the_variance_as_in_pymannkendall(
    seed: int, p_value: float, inflation: float, slope: float
) -> None:
    """pymannkendall 1.4.3, hamed_rao_modification_test: p, var_s over that of original_test, slope.

    To 2 %, since two values lie equally far from the trend, and there arithmetic in the last digit ranks them.
    """
    found = trend(dependent(seed))
    assert (found.p_value, found.inflation) == pytest.approx(
        (p_value, inflation), rel=0.02
    )
    assert found.slope == pytest.approx(slope, rel=1e-12)


def by_definition(values: list[float]) -> float:
    """Hamed and Rao's factor, sum by sum (1998, equations 8 and 9), with the 5 % limits of their section 4."""
    n = len(values)
    slope = stats.theilslopes(values).slope
    around = [round(value - slope * place, 9) for place, value in enumerate(values)]
    ranks = stats.rankdata(around)
    apart = ranks - ranks.mean()
    total = 0.0
    for lag in range(1, n):
        products = [apart[place] * apart[place + lag] for place in range(n - lag)]
        correlation = sum(products) / sum(apart**2)
        if abs(correlation) > stats.norm.ppf(0.975) / math.sqrt(n):
            total += (n - lag) * (n - lag - 1) * (n - lag - 2) * correlation
    return 1 + 2 / (n * (n - 1) * (n - 2)) * total


@pytest.mark.parametrize(("seed", "n"), [(0, 31), (3, 25), (5, 40)])
def test_the_factor_on_the_variance_is_that_of_its_definition(
    seed: int, n: int
) -> None:
    values = dependent(seed, n)
    assert trend(values).inflation == pytest.approx(max(1.0, by_definition(values)))


@pytest.mark.parametrize(("beyond", "is_equal"), [(4e-10, True), (4e-9, False)])
def test_digits_beyond_the_ninth_order_no_values(beyond: float, is_equal: bool) -> None:
    """Ten values of -1 before ten of 1: half of each are moved by `beyond`, which nine digits hold or do not."""
    equal = np.repeat([-1.0, 1.0], 10)
    moved = equal + beyond * np.tile([0.0, -1.0], 10) * equal
    found = variance_inflation(moved) == variance_inflation(equal)
    assert bool(found) is is_equal


@pytest.mark.parametrize("seed", [1, 4])
def test_runs_that_are_not_alike_keep_the_plain_test(seed: int) -> None:
    """pymannkendall finds a factor of 1 for both."""
    values = dependent(seed)
    found = trend(values)
    assert found.inflation == 1
    assert found.p_value == pytest.approx(
        stats.kendalltau(np.arange(30), values).pvalue
    )


def test_runs_that_swing_are_not_taken_as_extra_evidence() -> None:
    """A wave around a line: pymannkendall's factor is 0.67 here, and its p four hundred times smaller."""
    values = [1.3, 1.3, 2.1, 2.7, 4.9, 5.3, 5.3, 5.1, 4.4, 4.1, 3.2, 3.9]
    values += [6.2, 7.7, 8.9, 9.1, 8.8, 7.3, 6.9, 7.4, 9.6, 11.3, 12.1, 11.9]
    found = trend(values)
    assert found.inflation == 1
    assert found.p_value == pytest.approx(
        stats.kendalltau(np.arange(24), values).pvalue
    )
    assert trend([60.0] * 8).inflation == 1
    assert variance_inflation(np.array([2.0, 2.0, 2.0, 2.0])) == 1


def test_the_corrected_p_counts_ties_and_continuity() -> None:
    """1, 1, 2, 3, 3, 3: S = 11 and, with groups of two and three, var S = (6·5·17 - 2·1·9 - 3·2·11) / 18 = 23.667."""
    values = np.array([1.0, 1.0, 2.0, 3.0, 3.0, 3.0])
    z = (11 - 1) / math.sqrt(426 / 18 * 1.5)
    assert drift._score(values) == 11
    scores, ties = np.array([11, -11, 0]), np.tile(drift._ranks(values)[1], (3, 1))
    p_values = drift._score_p(scores, ties, np.full(3, 1.5))
    within_the_continuity_correction = 1
    assert p_values == pytest.approx(
        [2 * stats.norm.sf(z), 2 * stats.norm.sf(z), within_the_continuity_correction]
    )


def test_many_samples_have_the_trends_that_each_has_by_itself() -> None:
    """Dependent, constant and rounded samples side by side."""
    samples = [dependent(0), dependent(1), [2.0] * 30, list(np.round(dependent(3)))]
    together = drift.trend_many(np.array(samples))
    for place, sample in enumerate(samples):
        alone = trend(sample)
        for name, column in together.items():
            expected = getattr(alone, name)
            # Without spread neighbours have no autocorrelation.
            expected = np.nan if expected is None else expected
            np.testing.assert_equal(float(column[place]), float(expected))


def test_lines_are_scipys() -> None:
    x, y = [1.0, 2.0, 3.0, 5.0], [2.0, 4.1, 5.9, 10.2]
    found, expected = least_squares(x, y), stats.linregress(x, y)
    assert (found.slope, found.intercept) == pytest.approx(
        (expected.slope, expected.intercept)
    )
    assert found.r_squared == pytest.approx(expected.rvalue**2)


def test_a_long_sample_has_the_slope_of_a_thousand_of_its_values() -> None:
    """Theil and Sen's slope of 1,000 evenly spaced places, and of every place up to 1,000 values."""
    values = np.random.default_rng(4).normal(0, 1, 1501) + 1e-3 * np.arange(1501)
    places = np.round(np.linspace(0, 1500, 1000)).astype(int)
    expected = stats.theilslopes(values[places], places).slope
    assert trend(list(values)).slope == pytest.approx(expected, rel=1e-12)
    assert expected != pytest.approx(stats.theilslopes(values).slope, rel=1e-6)
    shorter = values[:1000]
    slope = stats.theilslopes(shorter).slope
    assert trend(list(shorter)).slope == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize(("n", "tests"), [(10, 12), (40, 40)])
def test_the_change_that_a_trend_test_would_have_found(n: int, tests: int) -> None:
    """Of normal runs with that slope, Mann-Kendall finds four of five or more, whatever its p is corrected for. The
    standard error of 1,000 is 1.3 %."""
    alpha = 0.05 / tests
    slope = np.arange(n) * drift.detectable_change(n, 1.0, alpha) / (n - 1)
    noise = np.random.default_rng(8).normal(size=(1000, n))
    found = drift.trend_many(slope + noise)["p_value"] < alpha
    assert 0.75 < found.mean() < 0.92


def test_a_trend_that_no_order_could_show_is_called_so() -> None:
    """Six runs in perfect order: S = 15 of a variance of 28.3, p = 0.0085, and forty tests ask for 0.00125."""
    assert drift.detectable_change(6, 1.0, 0.05 / 40) == math.inf

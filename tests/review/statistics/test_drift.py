"""Trends and transients against SciPy, full enumeration, and simulated campaigns without any."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from sparkpub.review.statistics.drift import first_runs, order_effect, trend


@pytest.mark.parametrize("n", [5, 10, 40])
def test_slope_and_rank_correlations_are_scipys(n: int) -> None:
    values = np.random.default_rng(n).normal(0, 1, n) + 0.05 * np.arange(n)
    found = trend(list(values))
    assert found.slope == pytest.approx(stats.theilslopes(values).slope)
    kendall, spearman = stats.kendalltau(np.arange(n), values), stats.spearmanr(np.arange(n), values)
    assert (found.tau, found.p_value) == pytest.approx((kendall.statistic, kendall.pvalue))
    assert (found.spearman, found.spearman_p) == pytest.approx((spearman.statistic, spearman.pvalue))


def test_the_mann_kendall_p_is_exact_for_few_runs() -> None:
    """All 120 orders of five values: the share with |S| at least that of the sample, S = concordant - discordant."""
    values = (3.0, 1.0, 2.0, 4.0, 5.0)

    def score(order: tuple[float, ...]) -> float:
        return abs(sum(np.sign(b - a) for a, b in itertools.combinations(order, 2)))

    share = np.mean([score(order) >= score(values) for order in itertools.permutations(values)])
    assert trend(values).p_value == pytest.approx(share)


def test_a_perfect_order_of_few_runs_is_not_certainty() -> None:
    """Two of n! orders are perfect: 2/24 at n = 4, which is no evidence at 5 %."""
    found = trend([1.0, 2.0, 3.0, 4.0])
    assert found.p_value == pytest.approx(2 / math.factorial(4))
    assert found.spearman_p == pytest.approx(2 / math.factorial(4))


def test_no_spread_has_no_trend_and_too_few_runs_say_nothing() -> None:
    constant, pair = trend([60.0] * 8), trend([1.0, 2.0])
    assert (constant.slope, constant.p_value, constant.spearman, constant.lag1) == (0, 1, 0, None)
    assert (pair.slope, pair.p_value, pair.spearman, pair.lag1) == (None, None, None, None)


def test_a_long_trend_costs_no_square_and_keeps_its_slope() -> None:
    values = 0.01 * np.arange(20_000) + np.random.default_rng(0).normal(0, 1, 20_000)
    assert trend(values).slope == pytest.approx(0.01, rel=0.02)


def test_one_wild_run_does_not_turn_the_slope() -> None:
    values = [float(i) for i in range(10)]
    assert trend([*values[:9], 900.0]).slope == pytest.approx(1)


def _enumerated(blocks: list[list[float]]) -> float:
    """Share of all choices of a first rank in every block that stand out as far as the observed ones."""

    def place(rank: float, n: int) -> float:
        return (2 * rank - n - 1) / (n - 1)

    observed = abs(sum(place(stats.rankdata(block)[0], len(block)) for block in blocks))
    choices = itertools.product(*(range(1, len(block) + 1) for block in blocks))
    sums = [abs(sum(place(r, len(b)) for r, b in zip(ranks, blocks, strict=True))) for ranks in choices]
    return float(np.mean([value >= observed - 1e-9 for value in sums]))


@pytest.mark.parametrize(
    "blocks",
    [
        [[9.0, 1.0, 2.0, 3.0], [7.0, 5.0, 6.0, 4.0, 3.0], [8.0, 1.0, 2.0]],
        [[1.0, 5.0, 2.0, 3.0], [7.0, 5.0, 6.0, 8.0, 3.0]],
        [[1.0, 1.0, 2.0, 3.0], [7.0, 5.0, 6.0, 8.0, 3.0]],
    ],
)
def test_the_p_of_first_runs_is_the_enumerated_one(blocks: list[list[float]]) -> None:
    assert first_runs(blocks).p_value == pytest.approx(_enumerated(blocks))


def test_three_blocks_of_ten_that_begin_with_their_maximum() -> None:
    """Two of 10³ combinations of first ranks are as far out: all highest, all lowest."""
    found = first_runs([[10.0, *map(float, range(9))]] * 3)
    assert found.p_value == pytest.approx(2 / 10**3)
    assert found.ranks == (10, 10, 10)


def test_blocks_too_short_to_say_anything_are_left_out() -> None:
    assert first_runs([[2.0, 1.0], [1.0]]).p_value == 1
    assert first_runs([]).ranks == ()


def test_first_runs_raise_no_more_alarms_than_allowed() -> None:
    generator = np.random.default_rng(2)
    alarms = np.mean([first_runs(generator.normal(size=(3, 6)).tolist()).p_value < 0.05 for _ in range(400)])
    assert alarms <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)


def test_the_order_effect_is_welchs_on_places() -> None:
    values, places = [10.0, 12.0, 10.2, 12.3, 9.9, 12.1], [0, 1, 0, 1, 0, 2]
    found = order_effect(values, places)
    assert found is not None
    expected = stats.ttest_ind(values[1::2], values[::2], equal_var=False)
    # Readings to 0.1 add 2 × 0.1²/12 to the variance of the difference.
    error = found.difference / expected.statistic
    t = found.difference / math.sqrt(error**2 + 0.01 / 6)
    assert found.p_value == pytest.approx(2 * stats.t.sf(t, expected.df), rel=0.05)
    assert found.difference == pytest.approx(np.mean(values[1::2]) - np.mean(values[::2]))
    assert (found.n_first, found.n_later) == (3, 3)


def test_an_environment_that_is_always_first_has_no_order_effect() -> None:
    assert order_effect([1.0, 2.0, 3.0], [0, 0, 0]) is None

"""One effect over several cells, against statsmodels, and what cells that disagree do to it."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.oneway import anova_oneway

from sparkpub.review.statistics.describe import Estimate
from sparkpub.review.statistics.pooling import pooled

DIFFERENCES = [0.0048, 0.0152, 0.0091, 0.0153, 0.0183]
ERRORS = [0.0081, 0.0076, 0.0041, 0.0055, 0.0027]


def test_cells_that_agree_are_pooled_by_their_precision() -> None:
    found = pooled([*map(Estimate, DIFFERENCES, ERRORS)])
    assert found is not None
    model = combine_effects(np.array(DIFFERENCES), np.array(ERRORS) ** 2)
    assert found.difference == pytest.approx(model.mean_effect_fe)
    assert found.q == pytest.approx(model.q)
    # q = 4.9 for 4 degrees of freedom is more than they explain by a factor of 1.2: Birge's ratio.
    plain = model.sd_eff_w_fe
    assert found.error == pytest.approx(plain * math.sqrt(max(1, model.q / 4)))
    assert found.t == pytest.approx(found.difference / found.error)
    assert found.df == math.inf
    assert found.heterogeneity_p == pytest.approx(model.test_homogeneity().pvalue)
    assert found.cells == 5
    assert found.heterogeneity_p > 0.05
    half = 1.959964 * found.error
    ends = found.difference - half, found.difference + half
    assert found.ci95 == pytest.approx(ends)


def test_cells_that_scatter_less_than_their_errors_claim_no_more_than_these() -> None:
    """Equal differences: q = 0, and the error is 0.2 / sqrt(4)."""
    found = pooled([Estimate(1.0, 0.2)] * 4)
    assert found is not None
    assert (found.q, found.heterogeneity_p) == (0.0, 1.0)
    assert found.error == pytest.approx(0.1)
    assert found.p_value == pytest.approx(math.erfc(10 / math.sqrt(2)))


def test_cells_that_disagree_are_called_heterogeneous_and_widen_the_interval() -> None:
    """Mean 0, q = 2 × (1 / 0.1)² = 200 with 1 degree of freedom: the error 0.1 / √2 grows by √200, to 1."""
    found = pooled([Estimate(-1.0, 0.1), Estimate(1.0, 0.1)])
    assert found is not None
    assert found.heterogeneity_p < 1e-40  # χ² of 200 with 1 degree of freedom
    assert (found.difference, found.q) == pytest.approx((0.0, 200.0))
    assert found.error == pytest.approx(1.0)
    assert found.p_value == 1.0


def test_an_effect_below_the_noise_of_each_cell_shows_in_all() -> None:
    """Each z is 1.5; together √16 times as much."""
    found = pooled([Estimate(1.5, 1.0)] * 16)
    assert found is not None
    assert found.t == pytest.approx(6.0)
    assert found.p_value == pytest.approx(math.erfc(6 / math.sqrt(2)))


def test_errors_that_are_estimates_widen_the_interval() -> None:
    """Shares of the weight 4/5 and 1/5, with 9 and 3 degrees of freedom, and differences that agree.

    Meier: 1 + 4 (0.8 · 0.2 / 9 + 0.2 · 0.8 / 3) = 1.28444; Satterthwaite: 1 / (0.64 / 9 + 0.04 / 3) = 11.8421.
    """
    found = pooled([Estimate(3.0, 1.0, 9), Estimate(3.0, 2.0, 3)])
    assert found is not None
    assert found.error == pytest.approx(math.sqrt(1.284444 / 1.25), rel=1e-6)
    assert found.df == pytest.approx(11.842105)
    assert found.p_value == pytest.approx(2 * stats.t.sf(found.t, 11.842105))
    half = stats.t.ppf(0.975, 11.842105) * found.error
    assert found.ci95 == pytest.approx((3 - half, 3 + half))


@pytest.mark.parametrize("cells", [2, 5])
def test_heterogeneity_is_judged_by_welchs_test(cells: int) -> None:
    generator = np.random.default_rng(cells)
    samples = [
        generator.normal(0.4 * number, 1 + number, 6 + number)
        for number in range(cells)
    ]
    effects = [
        Estimate(float(sample.mean()), float(stats.sem(sample)), len(sample) - 1)
        for sample in samples
    ]
    found = pooled(effects)
    assert found is not None
    expected = anova_oneway(samples, use_var="unequal", welch_correction=True)
    assert found.heterogeneity_p == pytest.approx(expected.pvalue)


def test_a_cell_worth_fewer_than_four_runs_is_left_out() -> None:
    sound = [Estimate(1.0, 0.2, 3), Estimate(2.0, 0.2, 3)]
    found = pooled([*sound, Estimate(50.0, 0.01, 2.9)])
    assert found is not None
    assert found.cells == 2
    assert found.difference == pytest.approx(1.5)
    assert pooled([sound[0], Estimate(50.0, 0.01, 2.9)]) is None


@pytest.mark.parametrize(
    "effects",
    [[], [Estimate(1.0, 0.1)], [Estimate(1.0, 0.1), Estimate(1.0, 0.0)]],
)
def test_one_cell_or_one_without_spread_is_not_pooled(effects: list[Estimate]) -> None:
    assert pooled(effects) is None


def test_the_interval_covers_as_often_as_it_says() -> None:
    """Five cells of ten rounds with unequal spread. By the normal distribution and without Meier's correction it covers
    0.928 (20,000 campaigns)."""
    generator = np.random.default_rng(4)
    hits = 0
    for _ in range(2000):
        spreads = np.array([25.0, 26.0, 18.0, 9.0, 13.0])[:, np.newaxis]
        rounds = 1.0 + spreads * generator.normal(size=(5, 10))
        found = pooled(
            [
                Estimate(float(cell.mean()), float(cell.std(ddof=1)) / math.sqrt(10), 9)
                for cell in rounds
            ]
        )
        assert found is not None
        hits += found.ci95[0] <= 1.0 <= found.ci95[1]
    assert hits / 2000 >= 0.95 - math.sqrt(0.95 * 0.05 / 2000)

"""One effect over several cells, against statsmodels, and what cells that disagree do to it."""

import math

import numpy as np
import pytest
from statsmodels.stats.meta_analysis import combine_effects

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
    assert found.z == pytest.approx(found.difference / found.error)
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
    assert found.z == pytest.approx(6.0)


@pytest.mark.parametrize(
    "effects",
    [[], [Estimate(1.0, 0.1)], [Estimate(1.0, 0.1), Estimate(1.0, 0.0)]],
)
def test_one_cell_or_one_without_spread_is_not_pooled(effects: list[Estimate]) -> None:
    assert pooled(effects) is None


def test_the_interval_covers_as_often_as_it_says() -> None:
    generator = np.random.default_rng(4)
    hits = 0
    for _ in range(1000):
        errors = generator.uniform(0.5, 2.0, 5)
        effects = generator.normal(1.0, errors)
        found = pooled([*map(Estimate, effects.tolist(), errors.tolist())])
        assert found is not None
        hits += found.ci95[0] <= 1.0 <= found.ci95[1]
    # Birge's ratio only ever widens: at least 95 % within four standard errors of 1,000 trials.
    assert hits / 1000 >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 1000)

"""Tests, intervals and power of two means against SciPy, statsmodels, definitions and simulation."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower
from statsmodels.stats.weightstats import (
    CompareMeans,
    DescrStatsW,
    ttost_ind,
    ttost_paired,
)

from sparkpub.review.statistics.describe import effective_n
from sparkpub.review.statistics.estimate import Estimate
from sparkpub.review.statistics.means import (
    TwoMeans,
    of_independent,
    of_rounds,
    of_servers,
)
from tests.review.statistics.samples import Floats, apart, two_samples

FINE = 1e-12
"""A resolution that adds nothing."""


def ratio_interval(means: TwoMeans, level: float = 0.95) -> tuple[float, float] | None:
    """The interval of one ratio; None where the baseline is not clear of zero."""
    low, high = means.ratio_ends(level)
    return None if math.isnan(low) else (float(low), float(high))


def rounds(seed: int, n: int = 10) -> tuple[Floats, Floats]:
    """Baseline and candidate of rounds that share a drift; neighbouring differences are not alike."""
    generator = np.random.default_rng(seed)
    baseline = 120 + np.linspace(0, 3, n) + generator.normal(0, 0.5, n)
    return baseline, baseline + apart(generator.normal(0.3, 0.4, n))


@pytest.mark.parametrize("seed", range(4))
def test_welch_is_scipys(seed: int) -> None:
    a, b = two_samples(seed)
    found, expected = of_independent(a, b, FINE), stats.ttest_ind(b, a, equal_var=False)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.df == pytest.approx(expected.df)
    assert found.value == pytest.approx(b.mean() - a.mean())
    assert found.n_effective == 10


@pytest.mark.parametrize("seed", range(4))
def test_tost_between_samples_is_statsmodels(seed: int) -> None:
    a, b = two_samples(seed)
    expected = ttost_ind(b, a, -1.2, 1.2, usevar="unequal")[0]
    assert of_independent(a, b, FINE).equivalence_p(1.2) == pytest.approx(
        expected, rel=1e-9
    )


def test_the_error_between_samples_is_statsmodels() -> None:
    a, b = two_samples(9)
    found = of_independent(a, b, FINE)
    low, high = CompareMeans(DescrStatsW(b), DescrStatsW(a)).tconfint_diff(
        usevar="unequal"
    )
    assert found.error * stats.t.ppf(0.975, found.df) == pytest.approx((high - low) / 2)


@pytest.mark.parametrize("seed", range(4))
def test_the_paired_tests_are_scipys_and_statsmodels(seed: int) -> None:
    a, b = rounds(seed)
    found = of_rounds(a, b, FINE)
    assert found.p_value == pytest.approx(stats.ttest_rel(b, a).pvalue, rel=1e-9)
    assert found.equivalence_p(0.8) == pytest.approx(
        ttost_paired(b, a, -0.8, 0.8)[0], rel=1e-9
    )
    assert found.df == 9
    assert (found.df_baseline, found.df_candidate) == (9, 9)
    assert found.error == pytest.approx(stats.sem(b - a))


@pytest.mark.parametrize("sign", [1, -1])
def test_tost_is_as_strict_on_either_side(sign: int) -> None:
    a, b = rounds(1)
    found = of_rounds(a, a + sign * (b - a), FINE)
    assert found.equivalence_p(0.8) == pytest.approx(
        of_rounds(a, b, FINE).equivalence_p(0.8), rel=1e-6
    )


def test_many_samples_at_once_are_each_judged_alone() -> None:
    generator = np.random.default_rng(5)
    a, b = generator.normal(100, 1, (2, 7, 9))
    for make in (of_independent, of_rounds):
        together = make(a, b, 0.01)
        alone = [make(a[row], b[row], 0.01) for row in range(7)]
        assert together.p_value == pytest.approx([float(one.p_value) for one in alone])
        assert together.equivalence_p(1.0) == pytest.approx(
            [float(one.equivalence_p(1.0)) for one in alone]
        )
        for part in (
            "n_effective",
            "baseline",
            "candidate",
            "variance_baseline",
            "variance_candidate",
            "covariance",
            "error",
        ):
            expected = [float(getattr(one, part)) for one in alone]
            assert getattr(together, part) == pytest.approx(expected), part


def test_runs_that_are_alike_widen_the_error_and_take_degrees_of_freedom() -> None:
    a = 100 + np.sin(np.arange(12) / 2)
    b = apart(np.random.default_rng(0).normal(100, 1, 12))
    worth = float(effective_n(a))
    found = of_independent(a, b, FINE)
    va, vb = a.var(ddof=1) / worth, b.var(ddof=1) / 12
    assert worth < 6
    assert found.error == pytest.approx(math.sqrt(va + vb))
    assert found.df == pytest.approx(
        (va + vb) ** 2 / (va**2 / (worth - 1) + vb**2 / 11)
    )
    assert found.n_effective == worth
    assert of_independent(b, a, FINE).n_effective == worth
    plain = of_independent(a, b, FINE, serial=False)
    assert plain.p_value == pytest.approx(stats.ttest_ind(b, a, equal_var=False).pvalue)


def test_differences_that_are_alike_widen_the_error_within_rounds() -> None:
    a, wave = np.zeros(12) + 100.0, np.sin(np.arange(12) / 2)
    found = of_rounds(a, a + wave, FINE)
    worth = float(effective_n(wave))
    assert found.error == pytest.approx(wave.std(ddof=1) / math.sqrt(worth))
    assert (found.df, found.n_effective) == pytest.approx((worth - 1, worth))


def test_rounding_enters_smoothly() -> None:
    """se² = s²/n + r²/12 on each side, so twice r²/12 for the difference, whatever the spread."""
    a, b = two_samples(3)
    plain, rounded = of_independent(a, b, FINE), of_independent(a, b, 0.6)
    assert rounded.error**2 == pytest.approx(plain.error**2 + 2 * 0.6**2 / 12)
    one, other = rounds(3)
    plain, rounded = of_rounds(one, other, FINE), of_rounds(one, other, 0.6)
    assert rounded.error**2 == pytest.approx(plain.error**2 + 2 * 0.6**2 / 12)
    assert rounded.variance_baseline == pytest.approx(
        plain.variance_baseline + 0.6**2 / 12
    )
    assert rounded.variance_candidate == pytest.approx(
        plain.variance_candidate + 0.6**2 / 12
    )


@pytest.mark.parametrize("make", [of_independent, of_rounds])
@pytest.mark.parametrize("seed", range(3))
def test_the_ratios_interval_is_fiellers(make: object, seed: int) -> None:
    """Fieller's ends are the ratios θ at which mean_b - θ mean_a lies exactly t of its own errors from zero."""
    a, b = (40 * side / 120 for side in rounds(seed))
    found = of_rounds(a, b, FINE) if make is of_rounds else of_independent(a, b, FINE)
    interval = ratio_interval(found)
    assert interval is not None
    ratio = b.mean() / a.mean()
    n = len(a)
    if make is of_rounds:
        t = stats.t.ppf(0.975, found.n_effective - 1)
    else:
        va, vb = ratio**2 * found.variance_baseline, found.variance_candidate
        t = stats.t.ppf(
            0.975,
            (va + vb) ** 2 / (va**2 / found.df_baseline + vb**2 / found.df_candidate),
        )
    assert interval[0] < ratio < interval[1]
    for end in interval:
        if make is of_rounds:
            variance = (b - end * a).var(ddof=1) / n
        else:
            variance = found.variance_candidate + end**2 * found.variance_baseline
        assert (b.mean() - end * a.mean()) ** 2 == pytest.approx(
            t**2 * variance, rel=1e-6
        )


def test_the_level_of_the_ratios_interval_is_the_one_asked_for() -> None:
    a, b = rounds(0)
    wide, narrow = (
        ratio_interval(of_rounds(a, b, FINE), 0.95),
        ratio_interval(of_rounds(a, b, FINE), 0.90),
    )
    assert wide is not None
    assert narrow is not None
    # Far from zero Fieller's interval is the difference's in units of the baseline, to first order.
    shares = stats.t.ppf(0.975, 9) / stats.t.ppf(0.95, 9)
    assert (wide[1] - wide[0]) / (narrow[1] - narrow[0]) == pytest.approx(
        shares, rel=1e-3
    )


def test_a_baseline_not_clear_of_zero_has_no_interval_of_its_ratio() -> None:
    a, b = np.array([-3.0, 5.0, -2.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])
    assert ratio_interval(of_independent(a, b, FINE)) is None
    shifted = ratio_interval(of_independent(a + 12, b, FINE))
    assert shifted is not None


def standard(sd: float, n: int = 8) -> Floats:
    shape = apart(np.linspace(-1, 1, n))
    return 100 + sd * shape / shape.std(ddof=1)


@pytest.mark.parametrize("sd", [6.0, 12.0, 24.0])
def test_the_power_to_detect_is_statsmodels(sd: float) -> None:
    """With equal n and equal spread Welch's df is 2n - 2, and the power that of the classical test."""
    a = standard(sd)
    expected = TTestIndPower().power(10 / sd, len(a), 0.05)
    assert of_independent(a, a, FINE).detection_power(10) == pytest.approx(
        expected, abs=1e-6
    )
    assert of_independent(a, a, FINE).detection_power(-10) == pytest.approx(
        expected, abs=1e-6
    )
    differences = standard(sd) - 100
    flat = np.full(8, 100.0)
    expected = TTestPower().power(10 / sd, 8, 0.05)
    assert of_rounds(flat, flat + differences, FINE).detection_power(
        10
    ) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("shift", [4.9, 5.1, 6.0, 8.0])
def test_the_power_to_detect_in_few_runs_is_that_of_the_noncentral_t(
    shift: float,
) -> None:
    """Three degrees of freedom: a difference of six errors is found in 95 of 100 campaigns only."""
    critical = stats.t.ppf(0.975, 3)
    expected = stats.nct.sf(critical, 3, shift) + stats.nct.cdf(-critical, 3, shift)
    assert 0.8 < expected < 0.999
    assert Estimate(0.0, 1.0, 3).detection_power(shift) == pytest.approx(
        expected, abs=1e-6
    )


def test_a_tail_that_scipy_cannot_evaluate_is_none() -> None:
    """At 41.67 standard errors and 9 degrees of freedom SciPy 1.17's noncentral t is NaN, and 1.18's 3e-199: nothing
    is missed."""
    assert Estimate(0.0, 1.0, 9.0).detection_power(41.67244207541006) == 1


@pytest.mark.parametrize("seed", range(3))
def test_errors_by_server_are_statsmodels_clustered_ones(seed: int) -> None:
    """Clusters of unequal size; its correction (N - 1) / (N - 1) is none for a mean."""
    generator = np.random.default_rng(seed)
    a, b = generator.normal(120, 1, 9), generator.normal(121, 2, 9)
    blocks = [(0,), (1, 2), (3, 4, 5), (6, 7), (8,)]
    names = np.repeat(range(5), [len(block) for block in blocks])

    def clustered(values: Floats) -> float:
        fit = sm.OLS(values, np.ones(9)).fit(
            cov_type="cluster", cov_kwds={"groups": names}
        )
        return float(fit.bse[0])

    paired = of_servers(a, b, blocks, blocks, FINE, of_rounds)
    assert paired.value == pytest.approx((b - a).mean())
    worth = paired.n_effective / 5
    assert paired.error == pytest.approx(clustered(b - a) / math.sqrt(worth))
    independent = of_servers(a, b, blocks, blocks, FINE, of_independent)
    assert independent.baseline == pytest.approx(a.mean())
    worth = (independent.df_baseline + 1) / 5
    assert math.sqrt(independent.variance_baseline) == pytest.approx(
        clustered(a) / math.sqrt(worth)
    )


def test_servers_of_two_runs_each_count_as_their_means() -> None:
    a, b = [100.0, 102.0, 99.0, 101.0, 98.0, 100.0], [103.0, 101.0] * 3
    blocks = [(0, 1), (2, 3), (4, 5)]
    found = of_servers(np.array(a), np.array(b), blocks, blocks, FINE, of_independent)
    plain = of_independent(
        np.array([101.0, 100.0, 99.0]), np.array([102.0, 102.0, 102.0]), FINE
    )
    assert found.value == plain.value
    assert found.error == pytest.approx(plain.error)
    assert found.df == pytest.approx(plain.df)


@pytest.mark.parametrize("n", [4, 8, 30])
def test_the_detectable_difference_is_statsmodels(n: int) -> None:
    """The effect size at which statsmodels' t test has a power of 0.8, times the spread of 6."""
    a = standard(6.0, n)
    expected = 6 * TTestIndPower().solve_power(nobs1=n, alpha=0.05, power=0.8)
    found = of_independent(a, a, FINE).detectable(0.8)
    assert found == pytest.approx(expected, rel=1e-4)

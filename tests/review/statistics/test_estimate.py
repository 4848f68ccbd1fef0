"""Estimates against NIST, SciPy, statsmodels and published examples. A failure here is a wrong figure on the site."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower, TTestPower
from statsmodels.stats.weightstats import ttost_ind, ttost_paired
from statsmodels.tsa.stattools import acf

from sparkpub.review.statistics.bootstrap import bootstrap
from sparkpub.review.statistics.estimate import (
    Estimate,
    effective_n,
    holm,
    mean_of,
    over,
    resolution_of,
    spread,
    two_means,
    verdict_of,
)
from sparkpub.review.statistics.estimate import described as values_described
from tests.review.statistics.samples import FINE, Floats, apart, rounds, two_samples
from tests.study.published import MICHELSON


def described(values: Sequence[float] | Floats) -> dict[str, Any]:
    """One sample described."""
    sample = np.array([values], dtype=np.float64)
    columns = values_described(sample) | mean_of(sample)
    return {name: column[0].item() for name, column in columns.items()}


def paired(a: Floats, b: Floats, resolution: float = FINE) -> Estimate:
    return two_means(a, b, resolution, paired=True)[0]


def independent(a: Floats, b: Floats, resolution: float = FINE) -> Estimate:
    return two_means(a, b, resolution, paired=False)[0]


# -- one sample ----------------------------------------------------------------------------------------------------


def test_mean_spread_and_autocorrelation_are_nists_certified_values() -> None:
    """NIST StRD, Michelso: mean 299.852400000000, s 0.0790105478190518, r1 0.535199668621283."""
    found = described(list(MICHELSON))
    figures = found["mean"], found["sd"], found["autocorrelation"]
    certified = 299.852400000000, 0.0790105478190518, 0.535199668621283
    assert figures == pytest.approx(certified, rel=1e-12)


def test_percentiles_interval_and_variation_are_scipys() -> None:
    values = apart(np.random.default_rng(1).normal(120, 3, 137))
    found = described(values)
    interval = stats.t.interval(0.95, 136, values.mean(), stats.sem(values))
    assert (found["ci95_low"], found["ci95_high"]) == pytest.approx(interval)
    expected = np.percentile(values, (50, 95, 99))
    assert [found[name] for name in ("p50", "p95", "p99")] == pytest.approx(expected)
    assert found["sd"] == pytest.approx(values.std(ddof=1))
    assert found["sd_population"] == pytest.approx(np.std(values))
    assert found["error"] == pytest.approx(stats.sem(values))
    extremes = found["min"], found["max"], found["n"], found["n_effective"]
    assert extremes == (values.min(), values.max(), 137, 137)


def zwiers_and_von_storch(n: int, rho: float) -> float:
    """Their equation for the effective n of a first-order process, term by term."""
    return n / (1 + 2 * sum((1 - lag / n) * rho**lag for lag in range(1, n)))


@pytest.mark.parametrize("n", [8, 25])
def test_alike_neighbours_shrink_n_and_widen_the_interval(n: int) -> None:
    values = 100 + np.cumsum(np.random.default_rng(n).normal(0, 1, n))
    found = described(values)
    worth = zwiers_and_von_storch(n, acf(values, nlags=1)[1] + 1 / n)
    error = values.std(ddof=1) / math.sqrt(worth)
    assert found["n_effective"] == pytest.approx(worth)
    assert found["error"] == pytest.approx(error, rel=1e-6)
    high = values.mean() + stats.t.ppf(0.975, worth - 1) * error
    assert found["ci95_high"] == pytest.approx(high)
    assert found["ci95_low"] >= 0  # as are all values


def test_effective_n_is_corrected_for_the_bias_of_r1_and_counts_no_more_than_n() -> (
    None
):
    assert effective_n(apart(np.arange(10))) == 10
    # r1 of 1, 2, …, n is Σ (i - m)(i + 1 - m) / Σ (i - m)²: 57.75 / 82.5 = 0.7 at n = 10.
    assert effective_n(range(1, 11)) == pytest.approx(zwiers_and_von_storch(10, 0.8))
    # r1 of a line of 1,000 is 0.997, and 0.998 after correction: held at 0.99.
    assert effective_n(range(1000)) == pytest.approx(zwiers_and_von_storch(1000, 0.99))
    assert [effective_n(values) for values in ([60.0] * 10, [1.0, 2.0])] == [10, 2]
    # A line of ten has squares of 82.5 × 0.05² = 0.2 around its mean: below (1e-9 × 1e9)² = 1 they are arithmetic's.
    assert effective_n(1e9 + 0.05 * np.arange(10)) == 10


def test_too_few_values_have_no_interval() -> None:
    """Three against three can't be told apart (2 of 20 orders), and half a degree of freedom has no usable quantile."""
    for values, is_none in (([1.0, 2.0, 4.0], True), ([1.0, 2.0, 4.0, 3.0], False)):
        assert math.isnan(described(values)["ci95_low"]) is is_none
    for df, is_none in ((0.49, True), (0.5, False)):
        assert (Estimate(1.0, 0.1, df).interval() is None) is is_none


def test_readings_are_no_surer_than_their_rounding() -> None:
    """Ten readings of 60 °C: standard uncertainty 1/√12 °C (JCGM 100:2008, F.2.2.1), which averaging leaves alone."""
    found, half = described([60.0] * 10), 2.2622 / math.sqrt(12)
    assert (found["ci95_low"], found["ci95_high"]) == pytest.approx(
        (60 - half, 60 + half), abs=1e-4
    )
    turns = [60.0, 61.0, 60.0, 61.0]
    error = math.sqrt(stats.sem(turns) ** 2 + 1 / 12)
    assert described(turns)["error"] == pytest.approx(error)
    one, other = two_samples(3)
    for make, sides in ((independent, (one, other)), (paired, rounds(3))):
        rounded, plain = make(*sides, 0.6).error ** 2, make(*sides).error ** 2
        assert rounded == pytest.approx(plain + 2 * 0.6**2 / 12)


def test_the_step_of_rounding_is_read_off_the_decimals() -> None:
    for values, step in (
        ([104.41, 13.7], 0.01),
        ([100.0, 200.0], 1.0),
        ([1000 / 3], 1000 / 3 * 1e-9),  # no more than nine digits
        ([1000.0, 0.001, 1e-7], 1e-6),
    ):
        assert resolution_of(values) == pytest.approx(step)
    assert resolution_of(np.array([[1.5, 2.25], [3, 4]])).tolist() == [0.01, 1.0]


def test_the_bootstrap_is_students_t_of_resamples() -> None:
    """Each is studentised, and the quantiles turned around the mean. Resamples of equal values have no t, and equal
    samples their rounding."""
    samples = np.array([[1.0, 2.0, 2.0, 5.0], [3.0] * 4, [0.5, 1.5, 1.25, 9.0]])
    low, high = bootstrap(samples).values()
    places = np.random.default_rng((42, 4)).integers(0, 4, (2000, 4))
    for row, sample in enumerate(samples[::2]):
        drawn = sample[places]
        drawn = drawn[drawn.std(axis=1) > 0]
        t = (drawn.mean(axis=1) - sample.mean()) / stats.sem(drawn, axis=1)
        ends = sample.mean() - np.quantile(t, (0.975, 0.025)) * stats.sem(sample)
        assert (low[2 * row], high[2 * row]) == pytest.approx(tuple(ends))
    assert (low[1], high[1]) == (2.5, 3.5)


# -- two means -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_samples_and_rounds_are_judged_as_in_scipy_and_statsmodels(seed: int) -> None:
    a, b = two_samples(seed)
    found, expected = independent(a, b), stats.ttest_ind(b, a, equal_var=False)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.df == pytest.approx(expected.df)
    assert found.ends() == pytest.approx(tuple(expected.confidence_interval()))
    tost = ttost_ind(b, a, -1.2, 1.2, usevar="unequal")[0]
    assert found.equivalence_p(1.2) == pytest.approx(tost, rel=1e-9)
    a, b = rounds(seed)
    found = paired(a, b)
    assert found.p_value == pytest.approx(stats.ttest_rel(b, a).pvalue, rel=1e-9)
    tost = ttost_paired(b, a, -0.8, 0.8)[0]
    assert found.equivalence_p(0.8) == pytest.approx(tost, rel=1e-9)
    assert (found.df, found.error) == pytest.approx((9, stats.sem(b - a)))


@pytest.mark.parametrize("is_paired", [True, False])
def test_the_ratios_interval_is_fiellers(is_paired: bool) -> None:
    """Fieller's ends are the ratios θ at which mean_b - θ mean_a lies exactly t of its own errors from zero."""
    a, b = (40 * side / 120 for side in rounds(1))
    found, beside = two_means(a, b, FINE, paired=is_paired)
    low, high = beside["ci95_ratio_low"], beside["ci95_ratio_high"]
    ratio, n = b.mean() / a.mean(), len(a)
    assert low < ratio < high
    each = [side.var(ddof=1) / effective_n(side) for side in (a, b)]
    for end in (low, high):
        variance, df = (b - end * a).var(ddof=1) / n, found.df
        if not is_paired:
            variance = each[1] + end**2 * each[0]
            parts = ratio**2 * each[0], each[1]
            dfs = effective_n(a) - 1, effective_n(b) - 1
            df = sum(parts) ** 2 / sum(
                v**2 / d for v, d in zip(parts, dfs, strict=True)
            )
        t = stats.t.ppf(0.975, df)
        apart_by = (b.mean() - end * a.mean()) ** 2
        assert apart_by == pytest.approx(t**2 * variance, rel=1e-6)


def standard(sd: float, n: int = 8) -> Floats:
    shape = apart(np.linspace(-1, 1, n))
    return 100 + sd * shape / shape.std(ddof=1)


@pytest.mark.parametrize("sd", [6.0, 24.0])
def test_power_and_detectable_difference_are_statsmodels(sd: float) -> None:
    """With equal n and equal spread Welch's df is 2n - 2, and the power that of the classical test."""
    a = standard(sd)
    power = TTestIndPower().power(10 / sd, 8, 0.05)
    assert independent(a, a).detection_power(-10) == pytest.approx(power, abs=1e-6)
    effect = TTestIndPower().solve_power(nobs1=8, alpha=0.05, power=0.8)
    assert independent(a, a).detectable() == pytest.approx(sd * effect, rel=1e-4)
    # SciPy 1.17's tail is NaN here, and 1.18's 3e-199: nothing is missed.
    assert Estimate(0.0, 1.0, 9).detection_power(41.67244207541006) == 1
    within = paired(np.full(8, 100.0), a).detection_power(10)
    assert within == pytest.approx(TTestPower().power(10 / sd, 8, 0.05), abs=1e-6)


# -- several estimates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ([0.1, -0.7, 0.4, 0.2], [0.2, 0.3, 0.1, 0.4]),
        ([-0.93, 0.06], [0.05, 0.20]),
        ([0.5, 0.6, 0.4], [0.3, 0.5, 0.2]),
    ],
    ids=["four machines", "two machines", "no more apart than their errors"],
)
def test_machines_are_combined_as_in_statsmodels(
    values: list[float], errors: list[float]
) -> None:
    """Of two, DerSimonian and Laird's variance is Paule and Mandel's, which statsmodels does not find."""
    each = Estimate(np.array(values), np.array(errors))
    model = combine_effects(
        each.value,
        each.error**2,
        method_re="dl" if len(values) == 2 else "iterated",
        atol=1e-12,
    )
    found, apart_by = over(each), spread(each)
    tau2 = max(0.0, model.tau2)
    assert apart_by["between_sd"] ** 2 == pytest.approx(tau2, rel=1e-6, abs=1e-9)
    assert apart_by["q"] == pytest.approx(model.q)
    p_value = model.test_homogeneity().pvalue
    assert apart_by["heterogeneity_p"] == pytest.approx(p_value)
    assert apart_by["i2_percent"] == pytest.approx(100 * max(0.0, model.i2))
    if model.tau2 > 0:
        expected = model.mean_effect_re, model.sd_eff_w_re
        # Hartung and Knapp's, whose factor is 1 at Paule and Mandel's variance.
        *_, hartung_knapp = model.conf_int(use_t=True)
        assert found.interval() == pytest.approx(hartung_knapp, rel=1e-6)
    else:
        expected = model.mean_effect_fe, model.sd_eff_w_fe
    assert (found.value, found.error) == pytest.approx(expected, rel=1e-6)


def test_three_machines_predict_the_fourth_and_two_do_not_the_third() -> None:
    """Higgins et al. (2009): the mean ± t on k - 2 degrees of freedom × √(τ² + error²)."""
    found = spread(Estimate(np.array([1.0, 2.0, 3.0]), np.full(3, 0.1)))
    tau2 = 1.0 - 0.01  # the variance of 1, 2 and 3, less that of a machine
    half = stats.t.ppf(0.975, 1) * math.sqrt(tau2 + 1.0 / 3)
    ends = found["prediction95_low"], found["prediction95_high"]
    assert ends == pytest.approx((2 - half, 2 + half))
    pair = spread(Estimate(np.array([-1.0, 0.0]), np.full(2, 0.05)))
    assert math.isnan(pair["prediction95_low"])


# -- the rule ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "p_values", [[0.01, 0.04, 0.03, 0.005], [0.6, 0.7], [0.2, 0.2, 0.001]]
)
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    expected = list(multipletests(p_values, method="holm")[1])
    assert holm(p_values) == pytest.approx(expected)
    # What has no p is no test.
    assert holm([*p_values, None])[:-1] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("n_effective", "difference", "p", "q", "confounded", "verdict"),
    [
        (10, 1, 0.001, 0.001, True, "confounded"),
        (3.99, 1, 0.001, 0.001, False, "undecided"),
        (4, 1, 0.001, 0.049, False, "equivalent"),
        (4, 1, 0.049, 0.05, False, "higher"),
        (4, -1, 0.049, math.nan, False, "lower"),
        (4, 1, 0.05, 0.05, False, "undecided"),
        (4, 1, math.nan, math.nan, False, "undecided"),
    ],
)
def test_the_rule(
    n_effective: float,
    difference: float,
    p: float,
    q: float,
    confounded: bool,
    verdict: str,
) -> None:
    assert verdict_of(n_effective, difference, p, q, confounded=confounded) == verdict

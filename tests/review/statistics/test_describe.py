"""Descriptions against NIST's certified values, SciPy, and what small or rounded samples must not claim."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.tsa.stattools import acf

from sparkpub.review.statistics import describe as module
from sparkpub.review.statistics.describe import (
    MINIMUM_RUNS,
    autocorrelation,
    bootstrap_many,
    describe,
    effective_n,
    percentile_supported,
    resolution_of,
    rounding_variance,
)
from tests.review.statistics.samples import apart, bootstrap
from tests.study.published import MICHELSON


def test_mean_spread_and_autocorrelation_are_nists_certified_values() -> None:
    """NIST StRD, Michelso: mean 299.852400000000, s 0.0790105478190518, r1 0.535199668621283."""
    found = describe(list(MICHELSON))
    assert found.mean == pytest.approx(299.852400000000, rel=1e-14)
    assert found.sd == pytest.approx(0.0790105478190518, rel=1e-12)
    assert found.autocorrelation == pytest.approx(0.535199668621283, rel=1e-12)


def test_percentiles_interval_and_variation_are_scipys() -> None:
    values = apart(np.random.default_rng(1).normal(120, 3, 137))
    found = describe(list(values))
    assert found.ci95 == pytest.approx(
        stats.t.interval(0.95, 136, values.mean(), stats.sem(values))
    )
    expected = [
        stats.scoreatpercentile(values, q, interpolation_method="fraction")
        for q in (50, 95, 99)
    ]
    assert (found.p50, found.p95, found.p99) == pytest.approx(expected)
    assert found.cv_percent == pytest.approx(100 * stats.variation(values, ddof=1))
    assert found.sd_population == pytest.approx(np.std(values))
    assert (found.min, found.max, found.n, found.n_effective) == (
        values.min(),
        values.max(),
        137,
        137,
    )


def zwiers_and_von_storch(n: int, rho: float) -> float:
    """Their equation for the effective n of a first-order process, term by term."""
    return n / (1 + 2 * sum((1 - lag / n) * rho**lag for lag in range(1, n)))


@pytest.mark.parametrize("n", [8, 25])
def test_alike_neighbours_shrink_n_and_widen_the_interval(n: int) -> None:
    values = 100 + np.cumsum(np.random.default_rng(n).normal(0, 1, n))
    found = describe(list(values))
    rho = acf(values, nlags=1)[1] + 1 / n
    worth = zwiers_and_von_storch(n, rho)
    half = stats.t.ppf(0.975, worth - 1) * values.std(ddof=1) / math.sqrt(worth)
    assert 0 < rho < 0.99
    assert found.n_effective == pytest.approx(worth)
    # What is always positive has no interval below zero.
    low = max(values.mean() - half, 0.0)
    assert found.ci95 == pytest.approx((low, values.mean() + half))
    assert found.estimate is not None
    error = values.std(ddof=1) / math.sqrt(worth)
    assert found.estimate.error == pytest.approx(error, rel=1e-6)


def test_effective_n_is_corrected_for_the_bias_of_r1_and_counts_no_more_than_n() -> (
    None
):
    assert effective_n(apart(np.arange(10))) == 10
    # r1 of 1, 2, …, n is known: Σ (i - m)(i + 1 - m) / Σ (i - m)²; 0.7 at n = 10 (57.75 / 82.5).
    assert autocorrelation(list(range(1, 11))) == pytest.approx(57.75 / 82.5)
    assert effective_n(range(1, 11)) == pytest.approx(zwiers_and_von_storch(10, 0.8))
    # r1 of a line of 1,000 is 0.997, and 0.998 after correction: held at 0.99.
    assert effective_n(range(1000)) == pytest.approx(zwiers_and_von_storch(1000, 0.99))


def test_values_without_spread_or_too_few_count_in_full() -> None:
    assert effective_n([60.0] * 10) == 10
    assert effective_n([1.0, 2.0]) == 2
    assert effective_n([1.0]) == 1
    assert np.isnan(autocorrelation([1.0, 2.0]))
    assert autocorrelation([1.0, 2.0, 3.0]) == 0
    assert np.isnan(autocorrelation([5.0] * 4))
    assert np.isnan(autocorrelation([0.0] * 4))
    # Trusted is a spread above (1e-9 × 2e9)² = 4: 2 × 1.6² is, 2 × 1.2² is not.
    assert np.isfinite(autocorrelation([2e9, 2e9 + 1.6, 2e9, 2e9 - 1.6]))
    assert np.isnan(autocorrelation([2e9, 2e9 + 1.2, 2e9, 2e9 - 1.2]))
    # Small values have small spreads.
    assert np.isfinite(autocorrelation([1e-3, 1.0001e-3, 1e-3, 0.9999e-3]))
    # A spread in the sixteenth digit is arithmetic, not measurement.
    assert np.isnan(autocorrelation([1e9, 1e9 + 1e-6, 1e9, 1e9 - 1e-6]))


def test_many_samples_at_once_are_each_described_alone() -> None:
    values = np.random.default_rng(2).normal(size=(3, 2, 12)).cumsum(axis=-1)
    together = effective_n(values)
    assert together.shape == (3, 2)
    assert together[2, 1] == pytest.approx(float(effective_n(values[2, 1])))


@pytest.mark.parametrize("n", [8, 12, 200])
def test_the_bootstrap_is_students_t_of_resamples(n: int) -> None:
    """Against 20,000 resamples drawn here: it studentises each and turns the quantiles around the mean."""
    values = np.random.default_rng(n).gamma(2, 1, n)
    drawn = np.random.default_rng(7).choice(values, (20_000, n))
    t = (drawn.mean(axis=1) - values.mean()) / stats.sem(drawn, axis=1)
    high, low = np.quantile(t, (0.025, 0.975))
    found = bootstrap(values)
    assert found is not None
    width = stats.sem(values)
    assert found == pytest.approx(
        (values.mean() - low * width, values.mean() - high * width), abs=0.35 * width
    )
    assert bootstrap(values) == found, "the same at every call"


def test_the_bootstrap_leans_to_the_side_of_the_long_tail() -> None:
    values = np.random.default_rng(3).lognormal(0, 1, 20)
    found = bootstrap(values)
    assert found is not None
    assert found[1] - values.mean() > 1.3 * (values.mean() - found[0])


def test_samples_of_one_size_are_resampled_in_parts_and_judged_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(1).gamma(2, 1, (5, 6))
    whole = bootstrap_many(values)
    monkeypatch.setattr(module, "_TOGETHER", 2)
    parts = bootstrap_many(values)
    assert np.array_equal(whole, parts)
    for place, sample in enumerate(values):
        low, high = bootstrap(sample) or (0.0, 0.0)
        assert (low, high) == pytest.approx((whole[0][place], whole[1][place]))


def test_resamples_of_equal_values_have_no_t() -> None:
    """With ties a resample may hold one value from several places. The same draws, studentised one by one by SciPy."""
    tied = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 3.0])
    places = np.random.default_rng((42, 6)).integers(0, 6, (2000, 6))
    drawn = [row for row in tied[places] if row.min() < row.max()]
    assert len(drawn) < 2000
    t = [(row.mean() - tied.mean()) / stats.sem(row) for row in drawn]
    high, low = np.quantile(t, (0.025, 0.975))
    width = stats.sem(tied)
    expected = tied.mean() - low * width, tied.mean() - high * width
    assert bootstrap(tied) == pytest.approx(expected)


def test_no_bootstrap_below_the_fewest_runs_that_carry_a_statement() -> None:
    assert MINIMUM_RUNS == 4
    assert bootstrap(np.array([1.0, 2.0, 4.0])) is None
    assert bootstrap(np.array([1.0, 2.0, 4.0, 8.0])) is not None


def test_values_that_are_worth_one_and_a_half_have_no_interval_at_all() -> None:
    """Ten runs in fives of one level each: Student's t with half a degree of freedom has no quantile to go by, and an
    interval from zero to nothing broke the mean over machines."""
    values = [
        100.01,
        99.74,
        99.74,
        99.55,
        99.94,
        100.11,
        100.55,
        100.58,
        100.68,
        100.58,
    ]
    found = describe(values)
    assert found.n_effective < 1.5
    assert (found.ci95, found.estimate) == (None, None)


def test_one_value_has_no_spread_and_two_no_bootstrap() -> None:
    one, two = describe([3.25]), describe([3.25, 3.75])
    assert (
        one.sd,
        one.ci95,
        one.cv_percent,
        bootstrap([3.25]),
        one.autocorrelation,
    ) == (None,) * 5
    assert (one.mean, one.n_effective, one.sd_population) == (3.25, 1.0, 0.0)
    # With t(0.975, 1) = 12.7062 it would reach from 0.32 to 6.68: below four values there is none.
    assert two.ci95 is None
    assert describe([-1.0, 1.0, -2.0, 2.0]).ci95[0] < 0  # type: ignore[index]
    assert bootstrap([3.25, 3.75]) is None
    assert two.autocorrelation is None


def test_the_variation_of_a_mean_of_zero_is_undefined_and_otherwise_positive() -> None:
    assert describe([-1.0, 1.0]).cv_percent is None
    assert describe([-3.0, -1.0]).cv_percent == pytest.approx(100 * math.sqrt(2) / 2)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_nothing_and_the_infinite_cannot_be_described(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        describe(values)


def test_identical_readings_are_as_sure_as_their_rounding() -> None:
    """Ten readings of 60 °C: standard uncertainty 1/√12 °C (JCGM 100:2008, F.2.2.1), which averaging leaves alone."""
    found = describe([60.0] * 10)
    assert found.sd == 0
    assert found.ci95 == pytest.approx(
        (60 - 2.2622 / math.sqrt(12), 60 + 2.2622 / math.sqrt(12)), abs=1e-4
    )
    assert bootstrap([60.0] * 10) == (59.5, 60.5)
    assert found.autocorrelation is None
    assert found.n_effective == 10


def test_rounding_is_added_to_the_spread() -> None:
    """Readings of 60 and 61 in turn, which are worth four: the error is that of their spread and of rounding to 1."""
    values = [60.0, 61.0, 60.0, 61.0]
    found = describe(values).estimate
    assert found is not None
    assert found.error == pytest.approx(math.sqrt(stats.sem(values) ** 2 + 1 / 12))
    assert rounding_variance(0.6) == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([104.41, 13.7], 0.01),
        ([60.0, 61.0], 1.0),
        ([100.0, 200.0], 1.0),
        ([119.5678], 1e-4),
        ([0.0], 1.0),
    ],
)
def test_the_step_of_rounding_is_read_off_the_decimals(
    values: list[float], step: float
) -> None:
    assert resolution_of(values) == pytest.approx(step)


def test_no_reading_is_trusted_beyond_nine_digits() -> None:
    assert resolution_of([1 / 3 * 1000]) == pytest.approx(1000 / 3 * 1e-9)
    assert resolution_of([1000.0, 0.001, 1e-7]) == pytest.approx(1e-6)
    assert resolution_of([1000.0, 0.001, 0.1]) == pytest.approx(0.001)
    assert resolution_of([-1 / 3 * 1000, 1 / 3]) == pytest.approx(1000 / 3 * 1e-9)
    constant = describe([1 / 3] * 5).estimate
    assert constant is not None
    assert constant.error == pytest.approx(1e-9 / 3 / math.sqrt(12), rel=1e-6)


def test_percentiles_are_supported_where_a_value_lies_beyond_them() -> None:
    """With 100 values P99 interpolates between the two largest; with 101 it is the second largest."""
    assert [percentile_supported(n, 0.99) for n in (10, 100, 101, 1000)] == [
        False,
        False,
        True,
        True,
    ]
    assert [percentile_supported(n, 0.95) for n in (20, 21)] == [False, True]
    values = list(np.random.default_rng(3).normal(size=101))
    found = describe(values)
    assert found.p99 == pytest.approx(sorted(values)[-2])
    assert (found.p95_supported, found.p99_supported) == (True, True)
    assert (
        describe(values[:21]).p95_supported,
        describe(values[:100]).p99_supported,
    ) == (True, False)

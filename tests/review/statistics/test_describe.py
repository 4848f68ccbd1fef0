"""Descriptions against NIST's certified values, SciPy, and what small or rounded samples must not claim."""

import math

import numpy as np
import pytest
from scipy import stats

from sparkpub.review.statistics.describe import (
    MINIMUM_RUNS,
    bootstrap_interval,
    describe,
    effective_n,
    percentile_supported,
    resolution_of,
    standard_error,
)
from tests.study.published import MICHELSON


def test_mean_spread_and_autocorrelation_are_nists_certified_values() -> None:
    """NIST StRD, Michelso: mean 299.852400000000, s 0.0790105478190518, r1 0.535199668621283."""
    found = describe(list(MICHELSON))
    assert found.mean == pytest.approx(299.852400000000, rel=1e-14)
    assert found.sd == pytest.approx(0.0790105478190518, rel=1e-12)
    assert found.autocorrelation == pytest.approx(0.535199668621283, rel=1e-12)
    assert found.n_effective == pytest.approx(100 * (1 - 0.535199668621283) / (1 + 0.535199668621283))


def test_interval_percentiles_and_variation_are_scipys() -> None:
    values = np.random.default_rng(1).normal(120, 3, 137)
    found = describe(list(values))
    assert found.ci95 == pytest.approx(stats.t.interval(0.95, 136, values.mean(), stats.sem(values)))
    expected = [stats.scoreatpercentile(values, q, interpolation_method="fraction") for q in (50, 95, 99)]
    assert (found.p50, found.p95, found.p99) == pytest.approx(expected)
    assert found.cv_percent == pytest.approx(100 * stats.variation(values, ddof=1))
    assert found.sd_population == pytest.approx(np.std(values))
    assert (found.min, found.max, found.n) == (values.min(), values.max(), 137)


@pytest.mark.parametrize("n", [10, 64, 65, 3000])
def test_the_bootstrap_is_scipys_percentile_interval(n: int) -> None:
    """Both estimate the same quantiles; they differ by the luck of 2,000 against 9,999 resamples."""
    values = np.random.default_rng(n).gamma(2, 1, n)
    found = bootstrap_interval(values)
    expected = stats.bootstrap(
        (values,), np.mean, method="percentile", rng=np.random.default_rng(7)
    ).confidence_interval
    assert found == pytest.approx((expected.low, expected.high), abs=0.25 * stats.sem(values))
    assert bootstrap_interval(values) == found, "the same at every call"


def test_one_value_has_no_spread_and_two_no_bootstrap() -> None:
    one, two = describe([3.25]), describe([3.25, 3.75])
    assert (one.sd, one.ci95, one.cv_percent, one.ci95_bootstrap, one.autocorrelation) == (None,) * 5
    assert (one.mean, one.n_effective, one.sd_population) == (3.25, 1.0, 0.0)
    assert two.ci95 == pytest.approx((3.5 - 12.7062 * 0.25, 3.5 + 12.7062 * 0.25), abs=1e-4)  # t(0.975, 1) = 12.7062
    assert two.ci95_bootstrap is None
    assert two.autocorrelation is None


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_nothing_and_the_infinite_cannot_be_described(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        describe(values)


def test_identical_readings_are_as_sure_as_their_rounding() -> None:
    """Ten readings of 60 °C: standard uncertainty 1/√12 °C (JCGM 100:2008, F.2.2.1), which averaging leaves alone."""
    found = describe([60.0] * 10)
    assert found.sd == 0
    assert found.ci95 == pytest.approx((60 - 2.2622 / math.sqrt(12), 60 + 2.2622 / math.sqrt(12)), abs=1e-4)
    assert found.ci95_bootstrap == (59.5, 60.5)
    assert found.autocorrelation is None
    assert found.n_effective == 10


def test_a_spread_above_the_rounding_is_left_as_it_is() -> None:
    values = np.array([60.0, 61.0, 60.0, 61.0])
    assert standard_error(values) == pytest.approx(stats.sem(values))


@pytest.mark.parametrize(
    ("values", "step"),
    [([104.41, 13.7], 0.01), ([60.0, 61.0], 1.0), ([100.0, 200.0], 1.0), ([119.5678], 1e-4), ([0.0], 1.0)],
)
def test_the_step_of_rounding_is_read_off_the_decimals(values: list[float], step: float) -> None:
    assert resolution_of(values) == pytest.approx(step)


def test_no_reading_is_trusted_beyond_nine_digits() -> None:
    assert resolution_of([1 / 3 * 1000]) == pytest.approx(1000 / 3 * 1e-9)
    assert standard_error(np.array([1 / 3] * 5)) == pytest.approx(1e-9 / 3 / math.sqrt(12))


def test_percentiles_are_supported_where_a_value_lies_beyond_them() -> None:
    """With 100 values P99 interpolates between the two largest; with 101 it is the second largest."""
    assert [percentile_supported(n, 0.99) for n in (10, 100, 101, 1000)] == [False, False, True, True]
    assert [percentile_supported(n, 0.95) for n in (20, 21)] == [False, True]
    values = list(np.random.default_rng(3).normal(size=101))
    assert describe(values).p99 == pytest.approx(sorted(values)[-2])


def test_effective_n_stays_between_one_and_n() -> None:
    assert effective_n(10, 0.7) == pytest.approx(10 * 0.3 / 1.7)
    assert effective_n(10, 0.99) == 1
    assert effective_n(10, -0.5) == 10
    assert effective_n(10, None) == 10


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    """2,000 samples of 10: 95 % ± four standard errors of that share."""
    generator = np.random.default_rng(11)
    samples = generator.normal(50, 4, (2000, 10)).round(3)
    hits = [low <= 50 <= high for low, high in (describe(list(row)).ci95 or (1, 0) for row in samples)]
    assert np.mean(hits) == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 2000))


def test_intervals_move_and_stretch_with_the_values() -> None:
    values = np.random.default_rng(5).normal(10, 1, 12)
    one, other = describe(list(values)), describe(list(4 * values + 3))
    assert one.ci95 is not None
    assert one.ci95_bootstrap is not None
    assert other.ci95 == pytest.approx(tuple(4 * end + 3 for end in one.ci95))
    assert other.ci95_bootstrap == pytest.approx(tuple(4 * end + 3 for end in one.ci95_bootstrap))
    assert other.autocorrelation == pytest.approx(one.autocorrelation)


def test_no_bootstrap_below_the_fewest_runs_that_carry_a_statement() -> None:
    assert MINIMUM_RUNS == 4
    assert bootstrap_interval(np.arange(3.0)) is None
    assert bootstrap_interval(np.arange(4.0)) is not None

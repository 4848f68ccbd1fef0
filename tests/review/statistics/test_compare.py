"""Comparisons against SciPy, statsmodels and Student's own data, and what small samples must not decide."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import effectsize_smd
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW, ttost_ind, ttost_paired

from sparkpub.review.statistics.compare import Comparison, adjust, compare, equivalence, holm
from tests.study.published import SLEEP_1, SLEEP_2


def two_samples(seed: int, n: int = 10, m: int = 13, shift: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(120, 0.5, n), generator.normal(120 + shift, 1.0, m)


def test_students_sleep_data_give_the_published_answers() -> None:
    """R's ?t.test prints for `sleep`: Welch t = -1.8608, df = 17.776, p = 0.07939, interval -3.3654832 … 0.2054832;
    paired p = 0.002833, interval -2.4598858 … -0.7001142 (group 1 minus group 2)."""
    found = compare(SLEEP_1, SLEEP_2, margin_percent=1, pairs=list(zip(SLEEP_1, SLEEP_2, strict=True)))
    assert found.p_value == pytest.approx(0.07939, abs=5e-6)
    assert found.ci95_difference == pytest.approx((-0.2054832, 3.3654832), abs=5e-8)
    assert found.paired is not None
    assert found.paired.p_value == pytest.approx(0.002833, abs=5e-7)
    assert found.paired.ci95_difference == pytest.approx((0.7001142, 2.4598858), abs=5e-8)


@pytest.mark.parametrize("seed", range(5))
def test_welch_and_its_interval_are_scipys(seed: int) -> None:
    a, b = two_samples(seed)
    found, expected = compare(a, b, margin_percent=1), stats.ttest_ind(b, a, equal_var=False)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.ci95_difference == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.difference == pytest.approx(b.mean() - a.mean())
    assert found.difference_percent == pytest.approx(100 * (b.mean() / a.mean() - 1))
    assert (found.ratio, found.inverse_ratio) == pytest.approx((b.mean() / a.mean(), a.mean() / b.mean()))


@pytest.mark.parametrize("seed", range(5))
def test_tost_is_statsmodels(seed: int) -> None:
    a, b = two_samples(seed)
    margin = 0.01 * a.mean()
    expected = ttost_ind(b, a, -margin, margin, usevar="unequal")[0]
    assert compare(a, b, margin_percent=1).equivalence_p == pytest.approx(expected, rel=1e-9)
    assert equivalence(a, b, 1) == pytest.approx(expected, rel=1e-9)


def test_welch_interval_agrees_with_statsmodels_too() -> None:
    a, b = two_samples(9)
    expected = CompareMeans(DescrStatsW(b), DescrStatsW(a)).tconfint_diff(usevar="unequal")
    assert compare(a, b, margin_percent=1).ci95_difference == pytest.approx(expected)


def test_hedges_g_is_statsmodels() -> None:
    a, b = two_samples(2)
    expected, _ = effectsize_smd(b.mean(), b.std(ddof=1), len(b), a.mean(), a.std(ddof=1), len(a))
    assert compare(a, b, margin_percent=1).effect_size == pytest.approx(expected)


@pytest.mark.parametrize("sd", [6.0, 12.0, 24.0])
def test_power_is_statsmodels_where_both_sides_spread_alike(sd: float) -> None:
    """With equal n and equal spread Welch's df is 2n - 2, and the power that of the classical test."""
    shape = np.array([-1.2, -0.8, -0.4, 0.0, 0.0, 0.4, 0.8, 1.2])
    a = 100 + sd * shape / shape.std(ddof=1)
    expected = TTestIndPower().power(10 / sd, len(a), 0.05)
    assert compare(a, a, margin_percent=1).power_10_percent == pytest.approx(expected, abs=1e-6)


def test_power_beyond_all_doubt_is_one() -> None:
    assert (
        compare([100.0, 100.001, 99.999, 100.0], [50.0, 50.001, 49.999, 50.0], margin_percent=1).power_10_percent == 1
    )


def test_power_is_the_share_of_simulated_campaigns_that_see_the_difference() -> None:
    """500 campaigns whose true difference is 10 % and spread 8: the mean computed power meets the share of
    rejections within four standard errors."""
    generator = np.random.default_rng(4)
    found = [
        compare(a, b, margin_percent=1)
        for a, b in zip(generator.normal(100, 8, (500, 10)), generator.normal(110, 8, (500, 10)), strict=True)
    ]
    share = np.mean([item.p_value is not None and item.p_value < 0.05 for item in found])
    assert np.mean([item.power_10_percent or 0 for item in found]) == pytest.approx(share, abs=4 * 0.5 / math.sqrt(500))


@pytest.mark.parametrize("seed", range(4))
def test_the_ratios_interval_is_fiellers(seed: int) -> None:
    """Fieller's ends are the ratios θ at which mean_b - θ mean_a lies exactly t of its own errors from zero."""
    a, b = two_samples(seed, shift=40)
    found = compare(a, b, margin_percent=1)
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    assert found.ratio is not None
    assert found.ci95_ratio is not None
    wa = found.ratio**2 * va
    t = stats.t.ppf(0.975, (wa + vb) ** 2 / (wa**2 / (len(a) - 1) + vb**2 / (len(b) - 1)))
    for end in found.ci95_ratio:
        assert (b.mean() - end * a.mean()) ** 2 == pytest.approx(t**2 * (vb + end**2 * va), rel=1e-9)


def test_the_ratios_interval_covers_as_often_as_it_says() -> None:
    generator = np.random.default_rng(8)
    hits = []
    for _ in range(800):
        found = compare(generator.normal(40, 4, 8), generator.normal(100, 15, 8), margin_percent=1).ci95_ratio
        hits.append(found is not None and found[0] <= 2.5 <= found[1])
    assert np.mean(hits) == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 800))


def test_a_baseline_not_clear_of_zero_has_no_interval_of_its_ratio() -> None:
    assert compare([-3.0, 5.0, -2.0, 4.0], [1.0, 2.0, 3.0, 4.0], margin_percent=1).ci95_ratio is None


@pytest.mark.parametrize(("n", "m", "can"), [(3, 3, False), (3, 4, False), (3, 5, True), (4, 4, True), (2, 8, True)])
def test_mann_whitney_is_scipys_where_it_can_reject_at_all(n: int, m: int, can: bool) -> None:
    """Complete separation is one of C(n + m, n) arrangements on each side: 2/20, 2/35, 2/56, 2/70, 2/45."""
    a, b = np.arange(n, dtype=float), 10 + np.arange(m, dtype=float)
    found = compare(a, b, margin_percent=1).mann_whitney_p
    assert found == (pytest.approx(2 / math.comb(n + m, n)) if can else None)


def test_mann_whitney_with_ties_is_scipys() -> None:
    a, b = [60.0, 61.0, 61.0, 60.0, 61.0], [59.0, 58.0, 60.0, 59.0, 59.0]
    assert compare(a, b, margin_percent=1).mann_whitney_p == pytest.approx(
        stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    )


def test_the_paired_analysis_is_scipys_and_statsmodels() -> None:
    a, b = two_samples(6, m=10)
    found = compare(a, b, margin_percent=1, pairs=list(zip(a, b, strict=True))).paired
    assert found is not None
    assert found.p_value == pytest.approx(stats.ttest_rel(b, a).pvalue)
    margin = 0.01 * a.mean()
    assert found.equivalence_p == pytest.approx(ttost_paired(b, a, -margin, margin)[0])


def test_pairing_sees_through_a_drift_that_welch_must_count_as_noise() -> None:
    drift = np.linspace(0, 20, 10)
    noise = np.random.default_rng(1).normal(0, 0.1, (2, 10))
    a, b = 100 + drift + noise[0], 100.5 + drift + noise[1]
    found = compare(a, b, margin_percent=0.01, pairs=list(zip(a, b, strict=True)))
    assert found.paired is not None
    assert found.paired.p_value < 0.001
    assert found.verdict == "undecided"
    assert "the paired analysis of 10 iterations disagrees" in found.why


@pytest.mark.parametrize("p_values", [[0.01, 0.04, 0.03, 0.005], [0.5, 0.6], [0.2, 0.2, 0.001]])
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))


def test_what_has_no_p_does_not_count_as_a_test() -> None:
    assert holm([0.02, None, 0.03]) == [0.04, None, 0.04]


def test_holm_keeps_the_family_wise_error() -> None:
    """300 families of nine tests without any difference: at most 5 % raise anything, plus four standard errors."""
    generator = np.random.default_rng(12)
    alarms = 0
    for _ in range(300):
        rows = [compare(*generator.normal(100, 2, (2, 8)), margin_percent=0.01) for _ in range(9)]
        alarms += any(row.verdict in {"higher", "lower"} for row in adjust(rows))
    assert alarms / 300 <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 300)


NATIVE, FASTER, SAME = [100.0, 101.0, 99.0, 100.5], [150.0, 151.0, 149.0, 150.5], [100.2, 100.9, 99.1, 100.4]


def test_verdicts_in_words() -> None:
    assert compare(NATIVE, FASTER, margin_percent=1).verdict == "higher"
    assert compare(FASTER, NATIVE, margin_percent=1).verdict == "lower"
    assert compare(NATIVE, SAME, margin_percent=5).verdict == "equivalent"
    assert compare(NATIVE, SAME, margin_percent=0.1).verdict == "undecided"


def test_a_difference_within_the_margin_is_equivalent_and_said_to_be_detectable() -> None:
    a = [100.0, 100.1, 99.9, 100.05, 99.95]
    found = compare(a, [value + 0.5 for value in a], margin_percent=1)
    assert found.verdict == "equivalent"
    assert found.p_value is not None
    assert found.p_value < 0.05
    assert "detectable within it" in found.why


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_runs_decide_nothing_however_far_apart(n: int) -> None:
    found = compare([100.0, 100.1, 100.2][:n], [200.0, 200.1, 200.2][:n], margin_percent=1)
    assert found.verdict == "undecided"
    assert f"n too small to decide: {n} and {n} runs" in found.why
    assert (found.p_value is None) == (n == 1)
    assert found.difference == pytest.approx(100)


def test_adjusted_p_values_decide() -> None:
    rows = [
        compare(NATIVE, [v + 1.6 for v in NATIVE], margin_percent=0.01),
        *[compare(NATIVE, SAME, margin_percent=0.01)] * 9,
    ]
    assert rows[0].p_value is not None
    assert rows[0].p_value < 0.05
    assert rows[0].verdict == "higher"
    assert adjust(rows)[0].verdict == "undecided"
    assert "adjusted p" in adjust(rows)[0].why


def test_equivalence_is_corrected_too() -> None:
    """One of ten equivalences that holds with p between 0.005 and 0.05 alone does not hold in the family."""
    row = compare(NATIVE, SAME, margin_percent=1.6)
    assert row.equivalence_p is not None
    assert 0.005 < row.equivalence_p < 0.05
    assert row.verdict == "equivalent"
    assert adjust([row] * 10)[0].verdict == "undecided"


def test_readings_without_spread_neither_divide_by_zero_nor_claim_more_than_their_rounding() -> None:
    """60.0 and 60.0 rounded to 1: difference 0 ± t·√2/√12 of a step, so equivalent within 2 % but not within 0.1 %."""
    same = compare([60.0] * 10, [60.0] * 10, margin_percent=2, unit="tok/s")
    assert (same.difference, same.p_value, same.mann_whitney_p, same.effect_size) == (0, 1, 1, 0)
    assert same.ci95_difference == pytest.approx((-2.1009 * math.sqrt(2 / 12), 2.1009 * math.sqrt(2 / 12)), abs=1e-4)
    assert same.verdict == "equivalent"
    assert compare([60.0] * 10, [60.0] * 10, margin_percent=0.1).verdict == "undecided"
    assert compare([60.0] * 10, [61.0] * 10, margin_percent=0.1).verdict == "higher"


def test_one_side_without_spread_shares_the_rounding_of_the_other() -> None:
    """The instrument reads 0.01, so 100.0 four times is not a reading to the next whole number."""
    found = compare([100.0] * 4, [100.0, 100.01, 99.99, 100.02], margin_percent=1)
    assert found.ci95_difference is not None
    assert found.ci95_difference[1] - found.ci95_difference[0] < 0.1


def test_degrees_celsius_have_no_percentages() -> None:
    found = compare([60.0, 61.0, 60.5, 61.5], [58.0, 58.5, 59.0, 58.2], margin_percent=1, direction="lower", unit="°C")
    nothing = (found.difference_percent, found.ratio, found.ci95_ratio, found.equivalence_p, found.overhead_percent)
    assert nothing == (None,) * 5
    assert found.power_10_percent is None
    assert found.verdict == "lower"
    assert found.better == "candidate"


@pytest.mark.parametrize(
    ("unit", "direction", "expected"),
    [("tok/s", "higher", 25.0), ("ms", "lower", -20.0), ("GiB", "lower", -20.0), ("GiB", "higher", None)],
)
def test_overhead_is_that_of_execution_times(unit: str, direction: str, expected: float | None) -> None:
    """From 100 to 80: as a rate, time grows by 100/80 - 1 = 25 %; as a time or memory it shrinks by 20 %."""
    found = compare([100.0, 100.0], [80.0, 80.0], margin_percent=1, direction=direction, unit=unit)  # type: ignore[arg-type]
    assert found.overhead_percent == (None if expected is None else pytest.approx(expected))


def test_an_open_verdict_says_what_was_not_shown() -> None:
    degrees = compare([60.0, 61.0, 60.0, 61.0], [60.0, 61.0, 61.0, 60.0], margin_percent=1, unit="°C")
    assert degrees.why == "no difference is shown (p = 1)."
    rate = compare([60.0, 61.0, 60.0, 61.0], [60.0, 61.0, 61.0, 60.0], margin_percent=0.1, unit="tok/s")
    assert rate.why.startswith("neither a difference (p = 1) nor equivalence within ±0.1 % (p = 0.4")
    assert "; power against a 10 % difference is 1.00" in rate.why


def test_neighbours_that_are_alike_are_said_to_be_worth_less() -> None:
    drifting = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0]
    found = compare(drifting, [103.4, 103.5, 103.6, 103.3, 103.5, 103.6, 103.4, 103.5], margin_percent=5)
    assert found.n_effective_baseline < 4
    assert "the 8 of the baseline are worth" in found.why


def test_a_baseline_of_zero_has_a_difference_and_no_ratio() -> None:
    found = compare([0.0] * 5, [1.0, 2.0, 3.0, 2.0, 2.0], margin_percent=1)
    assert (found.ratio, found.equivalence_p, found.power_10_percent) == (None, None, None)
    assert found.verdict == "higher"


@pytest.mark.parametrize("samples", [([], [1.0]), ([1.0], []), ([math.nan], [1.0])])
def test_nothing_cannot_be_compared(samples: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="finite"):
        compare(*samples, margin_percent=1)


@pytest.mark.parametrize("seed", range(40))
def test_no_sample_makes_a_figure_that_is_not_a_number(seed: int) -> None:
    """Constants, ties, tiny and huge scales, one to six runs: figures are finite or None, p-values between 0 and 1."""
    generator = np.random.default_rng(seed)
    scale, decimals = 10.0 ** generator.integers(-6, 9), int(generator.integers(0, 4))
    a, b = (
        list(scale * np.round(generator.normal(5, generator.choice([0, 0.1, 3]), generator.integers(1, 7)), decimals))
        for _ in range(2)
    )
    found = compare(a, b, margin_percent=1, unit="tok/s", pairs=list(zip(a, b, strict=False)))
    for name, value in vars(found).items():
        for part in value if isinstance(value, tuple) else (value,):
            assert not isinstance(part, float) or math.isfinite(part), name
            assert not (name.endswith("_p") or name.startswith("p_")) or part is None or 0 <= part <= 1, name
    assert isinstance(found, Comparison)
    assert found.why

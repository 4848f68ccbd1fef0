"""Machines combined, against published examples, statsmodels and SciPy; what few machines must not say."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from sparkpub.review.statistics.compare import Comparison, ComparisonVerdict, compare
from sparkpub.review.statistics.describe import describe
from sparkpub.review.statistics.estimate import Combined, Estimate, over
from sparkpub.review.statistics.replication import (
    between,
    describe_machines,
    over_machines,
    replication,
    why,
)
from tests.review.statistics.samples import apart, turns

Floats = NDArray[np.float64]

CLASP = (
    *((5, 156, 8, 74), (5, 303, 17, 303), (12, 565, 9, 477)),
    *((69, 1570, 94, 1565), (9, 103, 11, 105), (313, 4659, 352, 4650)),
)
"""Aspirin in pregnancy: events and patients with it, and without (DerSimonian and Kacker 2007, table 2)."""
BCG = (
    *((4, 123, 11, 139), (6, 306, 29, 303), (3, 231, 11, 220)),
    *((62, 13598, 248, 12867), (33, 5069, 47, 5808), (180, 1541, 372, 1451)),
    *((8, 2545, 10, 629), (505, 88391, 499, 88391), (29, 7499, 45, 7277)),
    *((17, 1716, 65, 1665), (186, 50634, 141, 27338), (5, 2498, 3, 2341)),
    (27, 16913, 29, 17854),
)
"""Vaccination against tuberculosis: cases and persons with it, and without (Colditz et al. 1994; `dat.bcg` of the R
package metafor)."""


def log_odds_ratios(tables: Sequence[tuple[int, ...]]) -> list[Estimate]:
    found = []
    for a, n, c, m in tables:
        variance = 1 / a + 1 / (n - a) + 1 / c + 1 / (m - c)
        ratio = (a / (n - a)) / (c / (m - c))
        found.append(Estimate(math.log(ratio), math.sqrt(variance)))
    return found


def log_risk_ratios(tables: Sequence[tuple[int, ...]]) -> list[Estimate]:
    found = []
    for a, n, c, m in tables:
        variance = 1 / a - 1 / n + 1 / c - 1 / m
        found.append(Estimate(math.log((a / n) / (c / m)), math.sqrt(variance)))
    return found


def reference(effects: Sequence[Estimate]) -> Any:
    """The same effects in statsmodels, with Paule and Mandel's variance; of two, DerSimonian and Laird's is the same,
    and statsmodels does not find the other one."""
    method = "dl" if len(effects) == 2 else "iterated"
    values = np.array([effect.value for effect in effects])
    variances = np.array([effect.error**2 for effect in effects])
    return combine_effects(values, variances, method_re=method, atol=1e-12)


def test_the_published_example_of_the_estimator() -> None:
    """DerSimonian and Kacker (2007), tables 3 and 4: τ, mean and standard error by Paule and Mandel."""
    found = over(log_odds_ratios(CLASP))
    assert found.between_sd == pytest.approx(0.3681, abs=5e-5)
    assert found.value == pytest.approx(-0.3811, abs=5e-5)
    assert found.error == pytest.approx(0.2060, abs=5e-5)


def test_heterogeneity_of_the_vaccine_trials() -> None:
    """The R package metafor prints Q(df = 12) = 152.2330, p < .0001; I² is 100 (1 - 12 / 152.233) %."""
    found = over(log_risk_ratios(BCG))
    assert found.q == pytest.approx(152.2330, abs=5e-5)
    assert found.i2_percent == pytest.approx(92.12, abs=5e-3)
    assert found.heterogeneity_p < 1e-4
    assert (found.count, found.df) == (13, 12)


@pytest.mark.parametrize(
    "effects",
    [
        log_risk_ratios(BCG),
        log_odds_ratios(CLASP),
        [Estimate(-0.93, 0.05), Estimate(0.06, 0.20)],
        [Estimate(0.5, 0.3), Estimate(0.6, 0.5), Estimate(0.4, 0.2)],
    ],
    ids=["vaccine", "aspirin", "two machines", "no more apart than their errors"],
)
def test_machines_are_combined_as_in_statsmodels(effects: list[Estimate]) -> None:
    found, model = over(effects), reference(effects)
    tau2 = max(0.0, model.tau2)
    assert found.between_sd**2 == pytest.approx(tau2, rel=1e-6, abs=1e-9)
    assert found.q == pytest.approx(model.q)
    homogeneity = model.test_homogeneity()
    assert found.heterogeneity_p == pytest.approx(homogeneity.pvalue)
    assert found.i2_percent == pytest.approx(100 * max(0.0, model.i2))
    if model.tau2 > 0:
        assert found.value == pytest.approx(model.mean_effect_re)
        assert found.error == pytest.approx(model.sd_eff_w_re, rel=1e-6)
        # Hartung and Knapp's, whose factor is 1 at Paule and Mandel's variance.
        assert found.error == pytest.approx(model.sd_eff_w_re_hksj, rel=1e-6)
        *_, hartung_knapp = model.conf_int(use_t=True)
        assert found.interval() == pytest.approx(hartung_knapp, rel=1e-6)
    else:
        assert found.value == pytest.approx(model.mean_effect_fe)
        assert found.error == pytest.approx(model.sd_eff_w_fe)


def test_two_machines_have_one_degree_of_freedom() -> None:
    """Equal errors of 0.05 and differences 1 apart: the mean ± 12.7062 × 1 / 2, and τ² + 0.05² = 1² / 2."""
    found = over([Estimate(-1.0, 0.05), Estimate(0.0, 0.05)])
    assert found.interval() == pytest.approx((-0.5 - 6.3531, -0.5 + 6.3531), rel=1e-5)
    assert found.between_sd == pytest.approx(math.sqrt(0.5 - 0.0025))
    assert found.prediction95 is None


def test_machines_that_agree_by_luck_claim_no_more_than_their_runs_carry() -> None:
    """Weights 1 / 0.3² and 1 / 0.5²."""
    found = over([Estimate(0.5, 0.3), Estimate(0.5, 0.5)])
    error = 1 / math.sqrt(1 / 0.09 + 1 / 0.25)
    half = stats.t.ppf(0.975, 1) * error
    assert found.interval() == pytest.approx((0.5 - half, 0.5 + half))
    assert (found.between_sd, found.i2_percent) == (0, 0)


def test_three_machines_predict_the_fourth() -> None:
    """Higgins et al. (2009): the mean ± t on k - 2 degrees of freedom × √(τ² + error²)."""
    found = over([Estimate(value, 0.1) for value in (1.0, 2.0, 3.0)])
    tau2 = 1.0 - 0.01  # the variance of 1, 2 and 3, less that of a machine
    half = stats.t.ppf(0.975, 1) * math.sqrt(tau2 + 1.0 / 3)
    assert found.prediction95 == pytest.approx((2 - half, 2 + half))


def test_the_tests_of_the_mean_over_machines() -> None:
    """Equal errors that are small beside the spread: Student's tests of the values (SciPy)."""
    values = [-0.3, 0.2, 0.4, 0.1]
    found = over([Estimate(value, 0.01) for value in values])
    upper = stats.ttest_1samp(values, 1.0, alternative="less").pvalue
    lower = stats.ttest_1samp(values, -1.0, alternative="greater").pvalue
    assert found.equivalence_p(1.0) == pytest.approx(max(upper, lower))
    assert found.p_value == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    narrow = stats.t.interval(0.9, 3, np.mean(values), stats.sem(values))
    assert found.interval(0.9) == pytest.approx(narrow)


@pytest.mark.parametrize(
    ("effects", "message"),
    [
        ([], "two of them"),
        ([Estimate(1.0, 0.1)], "two of them"),
        ([Estimate(1.0, 0.1), Estimate(1.0, 0.0)], "error above zero"),
    ],
)
def test_what_cannot_be_combined(effects: list[Estimate], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        over(effects)


# -- comparisons over machines -----------------------------------------------------------------------------------


def machine(level: float, change: float, seed: int, rounds: int = 10) -> Comparison:
    """A machine at a level of its own, whose container is `change` percent faster: noise of 0.5 %."""
    generator = np.random.default_rng(seed)
    native = level * (1 + 0.005 * generator.normal(size=rounds))
    container = level * (1 + change / 100) * (1 + 0.005 * generator.normal(size=rounds))
    one, other = turns(native.round(3), container.round(3))
    return compare(
        one, other, order="interleaved", margin_percent=1, direction="higher"
    )


def test_a_common_effect_on_machines_of_different_speed() -> None:
    """One machine is 40 % faster than the other, and on both the container is 3 % faster: the estimate in percent,
    its interval and the heterogeneity are those of statsmodels for the two machines' percentages."""
    within = [machine(100, 3, 1), machine(140, 3, 2)]
    found = over_machines(within, direction="higher", unit="tok/s")
    effects = [part.estimate_percent for part in within]
    known = [effect for effect in effects if effect is not None]
    model = reference(known)
    tau2 = max(0.0, model.tau2)
    weights = [1 / (effect.error**2 + tau2) for effect in known]
    mean = np.average([effect.value for effect in known], weights=weights)
    assert found.difference_percent == pytest.approx(mean)
    assert found.difference_percent == pytest.approx(3, abs=0.6)
    half = stats.t.ppf(0.975, 1) / math.sqrt(sum(weights))
    assert found.ci95_ratio == pytest.approx(
        (1 + (mean - half) / 100, 1 + (mean + half) / 100)
    )
    together = between(within)
    assert together is not None
    assert together.q == pytest.approx(model.q)
    assert (found.machines, found.analysis, found.df) == (2, "machines", 1)
    assert (found.n_baseline, found.n_candidate, found.better) == (20, 20, "candidate")


def test_the_figures_of_a_comparison_over_machines_agree_with_each_other() -> None:
    within = [machine(100, 3, 1), machine(140, 3, 2), machine(120, 3, 3)]
    found = over_machines(within, direction="higher", unit="tok/s")
    assert found.ratio is not None
    base = np.mean([part.mean_baseline for part in within])
    assert found.mean_baseline == pytest.approx(base)
    assert found.difference == pytest.approx(base * (found.ratio - 1))
    assert found.mean_candidate == pytest.approx(base * found.ratio)
    assert found.inverse_ratio == pytest.approx(1 / found.ratio)
    assert found.overhead_percent == pytest.approx(100 * (1 / found.ratio - 1))
    together = between(within)
    assert together is not None
    p = 2 * stats.t.sf(abs(together.value) / together.error, 2)
    assert found.p_value == pytest.approx(p)
    equal = stats.t.sf((1 - abs(together.value)) / together.error, 2)
    assert found.equivalence_p == pytest.approx(equal)
    assert found.verdict == "higher"
    assert found.ci90_ratio is not None
    half = stats.t.ppf(0.95, 2) * together.error / 100
    assert found.ci90_ratio[1] - found.ratio == pytest.approx(half)
    assert found.n_effective == min(part.n_effective for part in within)
    assert (
        "in percent of its own baseline within each machine, then over 3 machines"
        in found.why
    )


def test_the_power_of_a_comparison_over_machines() -> None:
    """Of the test of a difference of 10 % by the noncentral t (SciPy), with one degree of freedom."""
    within = [machine(100, 3, 1), machine(140, 12, 2)]
    found = over_machines(within, direction="higher", unit="tok/s")
    together = between(within)
    assert together is not None
    shift, critical = 10 / together.error, stats.t.ppf(0.975, 1)
    power = stats.nct.sf(critical, 1, shift) + stats.nct.cdf(-critical, 1, shift)
    assert found.power_10_percent == pytest.approx(power)
    assert found.power_10_percent is not None
    assert 0.05 < found.power_10_percent < 0.5
    assert found.detectable_percent is not None
    shift = found.detectable_percent / together.error
    assert stats.nct.sf(critical, 1, shift) == pytest.approx(0.8, abs=1e-6)
    assert "These 2 machines would show a difference of " in found.why


def test_what_is_declared_and_left_out_is_that_of_the_machines() -> None:
    within = [
        replace(machine(100, 3, 1), left_out=2, margin_declared=False),
        replace(machine(140, 3, 2), left_out=1, margin_declared=False),
    ]
    found = over_machines(within, direction="higher", unit="tok/s")
    assert (found.left_out, found.margin_declared) == (3, False)
    assert (found.equivalence_margin_percent, found.order) == (1, "interleaved")
    drawn = replace(within[1], order="random")
    mixed = over_machines([within[0], drawn], direction="higher", unit="tok/s")
    assert (mixed.order, mixed.verdict) == ("mixed", found.verdict)


def test_one_machine_with_few_rounds_leaves_the_whole_open() -> None:
    within = [machine(100, 9, 1), machine(100, 9, 2), machine(100, 9, 3, rounds=3)]
    found = over_machines(within, direction="higher", unit="tok/s")
    assert found.verdict == "undecided"
    assert "too few runs or rounds" in found.why


def test_one_machine_in_blocks_confounds_the_whole() -> None:
    blocked = replace(machine(100, 3, 2), order="blocked", p_value=None)
    within = [machine(100, 3, 1), blocked]
    found = over_machines(within, direction="higher", unit="tok/s")
    assert between(within) is None
    assert (found.verdict, found.ci95_difference, found.p_value) == (
        "confounded",
        None,
        None,
    )
    shares = [part.difference_percent for part in within]
    assert found.difference_percent == pytest.approx(np.mean(shares))  # type: ignore[arg-type]
    two_more = [*within, machine(120, 3, 3)]
    assert between(two_more) is None


def test_a_machine_with_a_single_round_has_no_effect_to_combine() -> None:
    within = [machine(100, 3, 1), machine(100, 3, 2, rounds=1)]
    assert between(within) is None
    found = over_machines(within, direction="higher", unit="tok/s")
    assert (found.verdict, found.ci95_ratio, found.machines) == ("undecided", None, 2)


def test_temperatures_over_machines_are_combined_in_degrees() -> None:
    celsius = [60.0, 61.0, 60.0, 61.5, 60.5], [63.0, 64.0, 63.5, 64.0, 63.5]
    part = compare(*celsius, order="random", margin_percent=1, unit="°C")
    found = over_machines([part, part], direction="lower", unit="°C")
    assert found.difference == pytest.approx(3.0)
    assert (found.ratio, found.difference_percent) == (None, None)
    assert (found.equivalence_p, found.ci95_ratio) == (None, None)
    together = between([part, part])
    assert together is not None
    assert part.estimate is not None
    assert together.error == pytest.approx(part.estimate.error / math.sqrt(2))


@pytest.mark.parametrize(
    ("sides", "unit"),
    [
        ([([60.0], [63.0]), ([58.0], [63.0])], "°C"),
        ([([50.0], [53.0]), ([0.0], [5.0])], "tok/s"),
    ],
    ids=["no true zero", "one baseline of zero"],
)
def test_without_a_share_of_every_baseline_differences_are_averaged_in_the_unit(
    sides: list[tuple[list[float], list[float]]], unit: str
) -> None:
    """One run on each side carries no error: 3 and 5 are 4 on average."""
    within = [
        compare(*side, order="random", margin_percent=1, unit=unit) for side in sides
    ]
    assert between(within) is None
    found = over_machines(within, direction="neither", unit=unit)
    assert (found.difference, found.difference_percent) == (4.0, None)


def test_a_cell_over_machines_weighs_each_by_its_error() -> None:
    """Eight runs of one machine and four of another, which vary more: not the mean of all twelve."""
    one = apart(np.random.default_rng(1).normal(100, 1, 8))
    other = apart(np.random.default_rng(2).normal(110, 4, 4))
    effects = [
        Estimate(float(side.mean()), float(stats.sem(side))) for side in (one, other)
    ]
    found = describe_machines([one.tolist(), other.tolist()])
    assert found.mean == pytest.approx(reference(effects).mean_effect_re)
    assert found.mean != pytest.approx(np.mean([*one, *other]), rel=1e-3)


def test_a_cell_over_machines_around_zero_has_no_relative_spread() -> None:
    found = describe_machines([[-1.0, 1.0], [-1.0, 1.0]])
    assert (found.mean, found.sd, found.cv_percent) == (0.0, math.sqrt(2), None)


def test_a_cell_over_machines() -> None:
    """Means 100 and 110 with equal errors: 105, on one degree of freedom; the spread is that within machines."""
    one = apart(np.random.default_rng(1).normal(100, 1, 8))
    other = one + 10
    found = describe_machines([one.tolist(), other.tolist()])
    assert found.mean == pytest.approx(one.mean() + 5)
    assert found.sd == pytest.approx(one.std(ddof=1))
    assert found.cv_percent == pytest.approx(100 * one.std(ddof=1) / (one.mean() + 5))
    assert found.ci95 is not None
    assert (found.ci95[1] - found.ci95[0]) / 2 == pytest.approx(12.7062 * 5, rel=1e-4)
    assert (found.n, found.min, found.max) == (16, one.min(), other.max())
    assert found.n_effective == pytest.approx(16)


def test_a_cell_with_one_run_on_each_machine_has_no_interval() -> None:
    found = describe_machines([[100.0], [110.0]])
    assert (found.mean, found.sd, found.ci95) == (105.0, None, None)
    assert (found.cv_percent, found.estimate) == (None, None)


def test_a_cell_with_an_interval_on_one_machine_alone_has_none() -> None:
    """Three runs of one machine and one of another: the mean of all four, and the spread of the three."""
    found = describe_machines([[100.0, 101.0, 102.0], [113.0]])
    assert (found.mean, found.ci95, found.sd) == (104.0, None, 1.0)
    assert (found.n, found.autocorrelation) == (4, None)
    more = describe_machines([[100.0, 101.0, 102.0], [113.0], [120.0, 121.0, 122.0]])
    assert more.ci95 is None


# -- whether it replicates ---------------------------------------------------------------------------------------


APART = over([Estimate(0.0, 0.1), Estimate(5.0, 0.1)])
"""Two machines that differ by much more than their errors."""
ALIKE = over([Estimate(1.0, 0.1), Estimate(1.05, 0.1)])


@pytest.mark.parametrize(
    ("overall", "verdicts", "together", "expected", "reason"),
    [
        ("higher", ["higher", "higher"], ALIKE, "replicates", "none of them decides"),
        ("equivalent", ["equivalent", "undecided"], ALIKE, "replicates", "is decided"),
        ("higher", ["undecided", "undecided"], ALIKE, "replicates", "is decided"),
        (
            "undecided",
            ["higher", "lower"],
            APART,
            "does not replicate",
            "differ by more",
        ),
        ("higher", ["equivalent", "higher"], APART, "does not replicate", "Q = "),
        ("higher", ["equivalent", "higher"], ALIKE, "undecided", "by no more than"),
        ("lower", ["higher", "undecided"], ALIKE, "undecided", "decides otherwise"),
        ("undecided", ["higher", "higher"], APART, "undecided", "12.7 standard errors"),
        ("confounded", ["confounded", "higher"], None, "undecided", "blocks of time"),
        ("undecided", ["higher", "undecided"], None, "undecided", "Fewer than two"),
    ],
)
def test_whether_machines_show_one_thing(
    overall: ComparisonVerdict,
    verdicts: list[ComparisonVerdict],
    together: Combined | None,
    expected: str,
    reason: str,
) -> None:
    assert replication(overall, verdicts, together) == expected
    assert reason in why(overall, verdicts, together)


def test_sessions_of_one_machine_are_called_so() -> None:
    text = why("undecided", ["undecided", "undecided"], ALIKE, "session")
    assert text.startswith(
        "The mean over 2 sessions is not decided: 2 sessions leave 1 degree"
    )


def test_the_estimate_of_a_comparison_has_the_error_of_its_test() -> None:
    generator = np.random.default_rng(1)
    a, b = apart(generator.normal(200, 1, 9)), apart(generator.normal(203, 1, 12))
    found = compare(a, b, order="random", margin_percent=1)
    expected = stats.ttest_ind(b, a, equal_var=False)
    error = (b.mean() - a.mean()) / expected.statistic
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(b.mean() - a.mean())
    assert found.estimate.error == pytest.approx(error)
    assert found.estimate_percent is not None
    percent = 100 * (b.mean() / a.mean() - 1)
    assert found.estimate_percent.value == pytest.approx(percent)
    assert found.estimate_percent.error == pytest.approx(100 * error / a.mean())


def test_the_estimate_of_a_description_has_the_standard_error_of_the_mean() -> None:
    values = apart(np.random.default_rng(3).normal(50, 2, 12))
    found = describe(values.tolist())
    assert found.estimate is not None
    assert found.n_effective == 12  # so that the plain standard error is expected
    assert found.estimate.value == pytest.approx(values.mean())
    assert found.estimate.error == pytest.approx(stats.sem(values))
    assert describe([1.0]).estimate is None


@pytest.mark.parametrize(
    ("samples", "options"),
    [
        (([1.0], [2.0]), {"order": "random"}),
        (([1.0, 2.0, 3.0, 1.5], [2.0, 3.0, 1.0, 2.5]), {"order": "blocked"}),
    ],
)
def test_a_comparison_without_a_verdict_has_no_estimate(
    samples: tuple[list[float], list[float]], options: dict[str, str]
) -> None:
    found = compare(*samples, margin_percent=1, **options)  # type: ignore[arg-type]
    assert (found.estimate, found.estimate_percent) == (None, None)

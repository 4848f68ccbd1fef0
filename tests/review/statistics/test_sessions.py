"""Sessions combined, against SciPy and statsmodels, and what one session must not say."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from sparkpub.review.statistics.compare import Verdict, compare
from sparkpub.review.statistics.describe import Estimate, describe
from sparkpub.review.statistics.sessions import across_sessions, replication
from tests.review.statistics.samples import apart


def test_one_session_speaks_of_its_machine_and_day() -> None:
    found = across_sessions([Estimate(-0.93, 0.05)])
    assert (found.says, found.error) == ("on this machine, this day", None)
    assert (found.estimate, found.ci95, found.between_sd) == (
        -0.93,
        None,
        None,
    )
    assert (found.sessions, found.within_sd) == (1, 0.05)


def test_sessions_that_differ_by_more_than_their_errors_count_once_each() -> None:
    """The interval is Student's over the sessions' differences, and that of a random-effects model with equal errors
    (Hartung and Knapp's; statsmodels)."""
    differences = [-0.93, 0.06, -0.92, -0.1]
    found = across_sessions([Estimate(value, 0.05) for value in differences])
    assert (found.says, found.sessions) == ("over 4 sessions", 4)
    student = stats.t.interval(0.95, 3, np.mean(differences), stats.sem(differences))
    assert found.ci95 == pytest.approx(student)
    model = combine_effects(np.array(differences), np.full(4, 0.05**2), method_re="dl")
    *_, random_effects = model.conf_int(use_t=True)
    assert found.ci95 == pytest.approx(random_effects, rel=1e-6)
    assert found.between_sd == pytest.approx(math.sqrt(model.tau2), rel=1e-6)
    assert found.within_sd == pytest.approx(0.05)


def test_sessions_that_agree_by_luck_claim_no_more_than_their_runs_carry() -> None:
    found = across_sessions([Estimate(0.5, 0.3), Estimate(0.5, 0.5)])
    half = stats.t.ppf(0.975, 1) * math.sqrt((0.3**2 + 0.5**2) / 2 / 2)
    assert found.ci95 == pytest.approx((0.5 - half, 0.5 + half))
    assert found.between_sd == 0
    assert found.within_sd == pytest.approx(math.sqrt((0.3**2 + 0.5**2) / 2))


def test_the_interval_covers_the_mean_over_sessions_as_often_as_it_says() -> None:
    generator = np.random.default_rng(2)
    hits = 0
    for _ in range(1000):
        truths = generator.normal(1.0, 0.5, 3)
        found = across_sessions(
            [Estimate(truth + generator.normal(0, 0.1), 0.1) for truth in truths]
        )
        assert found.ci95 is not None
        hits += found.ci95[0] <= 1.0 <= found.ci95[1]
    assert hits / 1000 == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 1000))


def test_without_a_session_nothing_is_said() -> None:
    with pytest.raises(ValueError, match="at least one session"):
        across_sessions([])


def test_equivalence_over_sessions_is_tost_over_their_estimates() -> None:
    """Two one-sided t tests of the estimates against either end of the margin (SciPy)."""
    values = [-0.3, 0.2, 0.4, 0.1]
    found = across_sessions([Estimate(value, 0.01) for value in values])
    upper = stats.ttest_1samp(values, 1.0, alternative="less").pvalue
    lower = stats.ttest_1samp(values, -1.0, alternative="greater").pvalue
    assert found.equivalence_p(1.0) == pytest.approx(max(upper, lower))
    assert across_sessions([Estimate(0.1, 0.01)]).equivalence_p(1.0) is None


def test_sessions_equal_to_the_last_digit_are_equivalent() -> None:
    """Memory of the same program is."""
    found = across_sessions([Estimate(0.0, 0.0), Estimate(0.0, 0.0)])
    assert (found.equivalence_p(1.0), found.equivalence_p(0.0)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["equivalent", "equivalent"], "replicates"),
        (["higher", "higher", "higher"], "replicates"),
        (["higher", "lower"], "does not replicate"),
        (["equivalent", "higher"], "does not replicate"),
        (["equivalent", "undecided"], "undecided"),
        (["confounded", "confounded"], "undecided"),
        (["higher"], "undecided"),
    ],
)
def test_sessions_replicate_where_they_come_to_one_verdict(
    verdicts: list[Verdict], expected: str
) -> None:
    assert replication(verdicts) == expected


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


def test_temperatures_have_no_percentages() -> None:
    celsius = [60.0, 61.0, 60.0, 61.5], [60.0, 61.0, 60.5, 61.0]
    found = compare(*celsius, order="random", margin_percent=1, unit="°C")
    assert found.estimate is not None
    assert found.estimate_percent is None

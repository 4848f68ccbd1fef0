"""Sessions combined, against SciPy and statsmodels, and what one session must not say."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from sparkpub.review.statistics.compare import compare
from sparkpub.review.statistics.sessions import Session, across_sessions
from tests.review.statistics.samples import apart


def test_one_session_speaks_of_its_machine_and_day() -> None:
    found = across_sessions([Session(-0.93, 0.05)])
    assert (found.reach, found.says) == ("here", "on this machine, this day")
    assert (found.difference_percent, found.ci95_percent, found.between_sd) == (
        -0.93,
        None,
        None,
    )
    assert (found.sessions, found.within_sd) == (1, 0.05)


def test_sessions_that_differ_by_more_than_their_errors_count_once_each() -> None:
    """The interval is Student's over the sessions' differences, and that of a random-effects model with equal errors
    (Hartung and Knapp's; statsmodels)."""
    differences = [-0.93, 0.06, -0.92, -0.1]
    found = across_sessions([Session(value, 0.05) for value in differences])
    assert (found.reach, found.says, found.sessions) == ("world", "over 4 sessions", 4)
    student = stats.t.interval(0.95, 3, np.mean(differences), stats.sem(differences))
    assert found.ci95_percent == pytest.approx(student)
    model = combine_effects(np.array(differences), np.full(4, 0.05**2), method_re="dl")
    *_, random_effects = model.conf_int(use_t=True)
    assert found.ci95_percent == pytest.approx(random_effects, rel=1e-6)
    assert found.between_sd == pytest.approx(math.sqrt(model.tau2), rel=1e-6)
    assert found.within_sd == pytest.approx(0.05)


def test_sessions_that_agree_by_luck_claim_no_more_than_their_runs_carry() -> None:
    found = across_sessions([Session(0.5, 0.3), Session(0.5, 0.5)])
    half = stats.t.ppf(0.975, 1) * math.sqrt((0.3**2 + 0.5**2) / 2 / 2)
    assert found.ci95_percent == pytest.approx((0.5 - half, 0.5 + half))
    assert found.between_sd == 0
    assert found.within_sd == pytest.approx(math.sqrt((0.3**2 + 0.5**2) / 2))


def test_the_interval_covers_the_mean_over_sessions_as_often_as_it_says() -> None:
    generator = np.random.default_rng(2)
    hits = 0
    for _ in range(1000):
        truths = generator.normal(1.0, 0.5, 3)
        found = across_sessions(
            [Session(truth + generator.normal(0, 0.1), 0.1) for truth in truths]
        )
        assert found.ci95_percent is not None
        hits += found.ci95_percent[0] <= 1.0 <= found.ci95_percent[1]
    assert hits / 1000 == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 1000))


def test_without_a_session_nothing_is_said() -> None:
    with pytest.raises(ValueError, match="at least one session"):
        across_sessions([])


def test_a_session_is_taken_from_a_comparison() -> None:
    generator = np.random.default_rng(1)
    a, b = apart(generator.normal(200, 1, 9)), apart(generator.normal(203, 1, 12))
    found = Session.of(compare(a, b, order="random", margin_percent=1))
    assert found is not None
    expected = stats.ttest_ind(b, a, equal_var=False)
    assert found.difference_percent == pytest.approx(100 * (b.mean() / a.mean() - 1))
    error = (b.mean() - a.mean()) / expected.statistic
    assert found.error_percent == pytest.approx(100 * error / a.mean())


@pytest.mark.parametrize(
    ("samples", "options"),
    [
        (([1.0], [2.0]), {"order": "random"}),
        (([1.0, 2.0, 3.0, 1.5], [2.0, 3.0, 1.0, 2.5]), {"order": "blocked"}),
        (
            ([60.0, 61.0, 60.0, 61.0], [60.0, 61.0, 60.0, 61.0]),
            {"order": "random", "unit": "°C"},
        ),
    ],
)
def test_a_comparison_without_a_verdict_or_percentages_is_no_session(
    samples: tuple[list[float], list[float]], options: dict[str, str]
) -> None:
    assert Session.of(compare(*samples, margin_percent=1, **options)) is None  # type: ignore[arg-type]

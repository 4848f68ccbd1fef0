"""What is said of two environments: the analysis that the order allows, the verdict, and why."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower

from sparkpub.review.statistics.compare import (
    Comparison,
    adjust,
    compare,
    equivalence,
    holm,
    verdict_of,
)
from sparkpub.review.statistics.design import DeclaredOrder, Sample
from tests.review.statistics.samples import apart, turns
from tests.study.published import SLEEP_1, SLEEP_2

NATIVE, FASTER = [100.0, 101.0, 99.0, 100.5], [150.0, 151.0, 149.0, 150.5]
NEAR = [100.25, 100.875, 99.125, 100.375]
"""Close to NATIVE, and neither is alike in its neighbours."""


def drawn(a: Any, b: Any, **options: Any) -> Comparison:
    """A comparison of runs in random order with a margin of 1 %."""
    return compare(a, b, **{"order": "random", "margin_percent": 1} | options)


def in_turns(a: Any, b: Any, **options: Any) -> Comparison:
    """A comparison of complete rounds with a margin of 1 %."""
    return compare(
        *turns(a, b), **{"order": "interleaved", "margin_percent": 1} | options
    )


def test_students_sleep_data_give_the_published_answers() -> None:
    """R's ?t.test prints for `sleep`: Welch t = -1.8608, df = 17.776, p = 0.07939, interval -3.3654832 … 0.2054832;
    paired p = 0.002833, interval -2.4598858 … -0.7001142 (group 1 minus group 2). Pairs in an order in which no
    neighbours are alike, and readings of a fine instrument."""
    between = drawn(apart(SLEEP_1), apart(SLEEP_2), resolution=1e-9)
    assert between.p_value == pytest.approx(0.07939, abs=5e-6)
    assert between.df == pytest.approx(17.776, abs=5e-4)
    assert between.ci95_difference == pytest.approx((-0.2054832, 3.3654832), abs=5e-8)
    places = [
        int(place) for place in np.argsort(np.subtract(SLEEP_2, SLEEP_1), kind="stable")
    ]
    mixed = [
        place
        for pair in zip(places[:5], reversed(places[5:]), strict=True)
        for place in pair
    ]
    within = in_turns(
        [SLEEP_1[i] for i in mixed], [SLEEP_2[i] for i in mixed], resolution=1e-9
    )
    assert within.n_effective == 10
    assert within.p_value == pytest.approx(0.002833, abs=5e-7)
    assert within.ci95_difference == pytest.approx((0.7001142, 2.4598858), abs=5e-8)


def test_equivalence_of_samples_that_no_order_joins_needs_two_values_a_side() -> None:
    assert equivalence([1.0], [1.0, 2.0], 1) is None
    assert equivalence([1.0, 2.0], [1.0], 1) is None
    below, above = (
        equivalence([sign * 100.0, sign * 100.5], [sign * 100.0, sign * 100.5], 2)
        for sign in (-1, 1)
    )
    assert above is not None
    assert below == above


def test_complete_rounds_are_compared_within_and_see_through_a_drift() -> None:
    """A drift of 20 % and a difference of 0.5 %: within rounds it is certain, between samples nothing shows."""
    noise = np.random.default_rng(1).normal(0, 0.1, (2, 10))
    drift = np.linspace(0, 20, 10)
    a, b = 100 + drift + noise[0], 100.5 + drift + noise[1]
    found = in_turns(a, b, margin_percent=0.01)
    assert (found.order, found.analysis, found.n_baseline, found.left_out) == (
        "interleaved",
        "paired",
        10,
        0,
    )
    assert found.p_value is not None
    assert found.p_value < 0.001
    assert found.verdict == "higher"
    assert "paired within 10 rounds" in found.why
    assert drawn(a, b, margin_percent=0.01).p_value == pytest.approx(0.9, abs=0.1)


def test_runs_outside_of_complete_rounds_are_left_out_and_counted() -> None:
    one, other = turns([*NATIVE, 100.0], [*NEAR, 500.0])
    short = Sample(other.values[:4], other.rounds[:4], other.times[:4])
    found = compare(one, short, order="interleaved", margin_percent=5)
    assert (found.n_baseline, found.n_candidate, found.left_out) == (4, 4, 1)
    assert found.mean_candidate == pytest.approx(np.mean(NEAR))
    assert found.mean_baseline == pytest.approx(np.mean(NATIVE))
    means = f"{np.mean(NATIVE):,.6g} and {np.mean(NEAR):,.6g}"
    said = f"paired within 4 rounds, 1 run without a partner left out (means {means})"
    assert said in found.why
    # Where rounds are too few for a verdict, too.
    few = compare(
        one, replace(short, values=short.values[:3], rounds=(0, 1, 2), times=short.times[:3]),
        order="interleaved", margin_percent=5,
    )  # fmt: skip
    assert (
        "The difference is of these rounds, 2 runs without a partner left out"
        in few.why
    )


@pytest.mark.parametrize(
    "declared", ["blocked", "interleaved", "random", "as-published"]
)
def test_blocks_are_confounded_whatever_the_figures_and_still_described(
    declared: DeclaredOrder,
) -> None:
    early = Sample(tuple(NATIVE), (1, 2, 3, 4), (1, 2, 3, 4))
    late = Sample(tuple(FASTER), (1, 2, 3, 4), (5, 6, 7, 8))
    found = compare(
        early, late, order=declared, margin_percent=1, direction="higher", unit="tok/s"
    )
    assert (found.verdict, found.order, found.analysis) == (
        "confounded",
        "blocked",
        "description",
    )
    undecided = (
        found.p_value,
        found.p_adjusted,
        found.equivalence_p,
        found.power_10_percent,
        found.detectable_percent,
    )
    assert undecided == (None,) * 5
    assert (found.difference, found.ratio) == (
        pytest.approx(50),
        pytest.approx(150.125 / 100.125),
    )
    assert found.ci95_difference is not None
    assert found.ci95_ratio is not None
    assert found.why.startswith("The environments ran in separate blocks of time")
    assert found.deciding_level == 0.95
    assert adjust([found, found])[0].verdict == "confounded"


def test_an_order_that_nobody_declared_and_that_shows_no_blocks_is_judged_as_independent() -> (
    None
):
    one, other = turns(NATIVE, FASTER)
    found = compare(one, other, order="as-published", margin_percent=1)
    assert (found.order, found.analysis, found.verdict) == ("mixed", "welch", "higher")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_runs_decide_nothing_however_far_apart(n: int) -> None:
    found = drawn([100.0, 101.0, 99.0][:n], [200.0, 202.0, 199.0][:n])
    assert found.verdict == "undecided"
    assert found.why == f"Too few runs to decide: {n} and {n}, and 4 a side are needed."
    assert (found.p_value is None) == (n == 1)
    assert found.difference == pytest.approx(100, rel=0.01)


def test_four_runs_that_are_alike_are_not_called_too_few() -> None:
    found = drawn([100.0, 101.0, 102.0, 103.0], FASTER)
    assert found.why.startswith(
        "Neighbouring runs are alike: the 4 and 4 runs are worth"
    )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rounds_decide_nothing_however_far_apart(n: int) -> None:
    found = in_turns([100.0, 101.0, 99.0][:n], [200.0, 201.0, 199.0][:n])
    assert found.verdict == "undecided"
    assert found.why == f"Too few complete rounds to decide: {n}, and 4 are needed."
    assert found.n_effective == n
    assert (found.df is None) == (n == 1)


def test_without_a_complete_round_the_runs_are_only_described() -> None:
    """Each side ran, but in rounds of its own: 8 runs and nothing to compare within."""
    one = Sample(tuple(NATIVE), (1, 2, 3, 4), (1, 4, 5, 8))
    other = Sample(tuple(FASTER), (5, 6, 7, 8), (2, 3, 6, 7))
    found = compare(one, other, order="interleaved", margin_percent=1)
    assert (found.analysis, found.n_effective, found.verdict) == (
        "description",
        0,
        "undecided",
    )
    assert found.why == "Too few complete rounds to decide: 0, and 4 are needed."
    assert (found.difference, found.p_value, found.ci95_difference) == (
        pytest.approx(50),
        None,
        None,
    )
    assert (found.n_baseline, found.n_candidate, found.left_out) == (4, 4, 0)


def test_neighbours_that_are_alike_leave_the_verdict_open() -> None:
    rising = [float(value) for value in range(100, 108)]
    found = drawn(rising, apart(np.linspace(203, 205, 8)))
    assert found.n_effective < 4
    assert found.verdict == "undecided"
    expected = f"Neighbouring runs are alike: the 8 and 8 runs are worth {found.n_effective:.1f} independent ones"
    assert found.why.startswith(expected)
    within = in_turns([100.0] * 8, [200 + value for value in rising])
    assert within.verdict == "undecided"
    assert within.why.startswith("Neighbouring runs are alike: the 8 rounds are worth")


@pytest.mark.parametrize(
    ("n_effective", "difference", "p", "q", "confounded", "verdict"),
    [
        (10, 1, 0.001, 0.001, True, "confounded"),
        (3.99, 1, 0.001, 0.001, False, "undecided"),
        (4, 1, 0.001, 0.049, False, "equivalent"),
        (4, 1, 0.049, 0.05, False, "higher"),
        (4, -1, 0.049, None, False, "lower"),
        (4, 1, 0.05, 0.05, False, "undecided"),
        (4, 1, None, None, False, "undecided"),
    ],
)
def test_the_rule(
    n_effective: float,
    difference: float,
    p: float | None,
    q: float | None,
    confounded: bool,
    verdict: str,
) -> None:
    assert verdict_of(n_effective, difference, p, q, confounded=confounded) == verdict


def test_verdicts_in_words() -> None:
    assert drawn(NATIVE, FASTER).verdict == "higher"
    assert drawn(FASTER, NATIVE).verdict == "lower"
    assert drawn(NATIVE, NEAR, margin_percent=5).verdict == "equivalent"
    assert drawn(NATIVE, NEAR, margin_percent=0.1).verdict == "undecided"


def test_the_interval_that_decides_is_the_one_of_the_test() -> None:
    """90 % where TOST decides or was left open, 95 % where the test of a difference does, or where no margin is."""
    same, apart_, open_ = (
        drawn(NATIVE, NEAR, margin_percent=5),
        drawn(NATIVE, FASTER),
        drawn(NATIVE, NEAR),
    )
    assert (same.deciding_level, apart_.deciding_level, open_.deciding_level) == (
        0.9,
        0.95,
        0.9,
    )
    assert same.deciding_difference == same.ci90_difference
    assert same.deciding_ratio == same.ci90_ratio
    assert apart_.deciding_difference == apart_.ci95_difference
    assert apart_.deciding_ratio == apart_.ci95_ratio
    degrees = drawn(NATIVE, NEAR, unit="°C")
    assert (degrees.verdict, degrees.deciding_level) == ("undecided", 0.95)


@pytest.mark.parametrize("seed", range(20))
def test_the_interval_that_decides_tells_the_verdict(seed: int) -> None:
    """Equivalent exactly where the 90 % interval lies within the margin."""
    generator = np.random.default_rng(seed)
    found = drawn(
        apart(generator.normal(100, 1, 8)),
        apart(generator.normal(100, 1, 8)),
        margin_percent=1.2,
    )
    assert found.ci90_difference is not None
    limit = 0.012 * found.mean_baseline
    inside = -limit < found.ci90_difference[0] and found.ci90_difference[1] < limit
    assert (found.verdict == "equivalent") == inside


def test_a_difference_within_the_margin_is_equivalent_and_said_to_be_detectable() -> (
    None
):
    a = apart([100.0, 100.1, 99.9, 100.05, 99.95])
    found = drawn(a, a + 0.5)
    assert found.verdict == "equivalent"
    assert found.p_value is not None
    assert found.p_value < 0.05
    assert found.why.startswith(
        "The difference lies within ±1 % of the baseline (Welch, 5 and 5 runs, TOST p"
    )
    assert "It is detectable within that margin (p" in found.why
    assert "detectable" not in drawn(NATIVE, NEAR, margin_percent=5).why


@pytest.mark.parametrize(
    ("found", "runs"),
    [
        (drawn([60.0, 61.0] * 2, [60.0, 61.0, 61.0, 60.0]), "4 and 4 runs"),
        (in_turns([60.0, 61.0] * 2, [60.0, 61.0, 61.0, 60.0]), "4 rounds"),
    ],
)
def test_an_open_verdict_says_what_difference_would_have_been_shown(
    found: Comparison, runs: str
) -> None:
    assert found.verdict == "undecided"
    assert found.detectable_percent is not None
    assert found.why.endswith(
        f" These {runs} would show a difference of {found.detectable_percent:.1f} % in four of five campaigns."
    )


def test_a_margin_chosen_afterwards_is_called_so() -> None:
    shown = drawn(NATIVE, NEAR, margin_percent=5, margin_declared=False)
    assert "lies within ±5 % (a margin chosen afterwards) of the baseline" in shown.why
    assert (
        "equivalence within ±1 % (a margin chosen afterwards) (TOST"
        in drawn(NATIVE, NEAR, margin_declared=False).why
    )
    assert "afterwards" not in drawn(NATIVE, NEAR).why


def test_without_a_margin_nothing_is_said_of_equivalence() -> None:
    degrees = drawn([60.0, 61.0, 60.0, 61.0], [60.0, 61.0, 61.0, 60.0], unit="°C")
    assert degrees.why == "No difference is shown (Welch, 4 and 4 runs, p = 1)."


def test_the_power_of_the_methodology_is_that_against_a_tenth() -> None:
    """Eight and eight runs with a spread of 12 around 100."""
    shape = apart(np.linspace(-1, 1, 8))
    a = 100 + 12 * shape / shape.std(ddof=1)
    expected = TTestIndPower().power(10 / 12, 8, 0.05)
    assert drawn(a, a, resolution=1e-9).power_10_percent == pytest.approx(
        expected, abs=1e-6
    )


def test_a_single_run_is_worth_one_whatever_stands_against_it() -> None:
    assert drawn([1.0], [2.0, 3.0, 2.5, 1.5, 2.0]).n_effective == 1


@pytest.mark.parametrize(
    "p_values", [[0.01, 0.04, 0.03, 0.005], [0.6, 0.7], [0.2, 0.2, 0.001]]
)
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(
        list(multipletests(p_values, method="holm")[1])
    )


def test_what_has_no_p_does_not_count_as_a_test() -> None:
    assert holm([0.02, None, 0.03]) == [0.04, None, 0.04]


def test_adjusted_p_values_decide() -> None:
    rows = [
        drawn(NATIVE, [value + 1.75 for value in NATIVE], margin_percent=0.01),
        *[drawn(NATIVE, NEAR, margin_percent=0.01)] * 9,
    ]
    assert rows[0].p_value is not None
    assert 0.005 < rows[0].p_value < 0.05
    assert rows[0].verdict == "higher"
    corrected = adjust(rows)[0]
    assert (corrected.verdict, corrected.p_adjusted) == (
        "undecided",
        pytest.approx(10 * rows[0].p_value),
    )
    assert "adjusted p" in corrected.why


def test_equivalence_is_corrected_too() -> None:
    """One of ten equivalences that holds with p between 0.005 and 0.05 alone does not hold in the family."""
    row = drawn(NATIVE, NEAR, margin_percent=1.6)
    assert row.equivalence_p is not None
    assert 0.005 < row.equivalence_p < 0.05
    assert row.verdict == "equivalent"
    corrected = adjust([row] * 10)[0]
    assert corrected.verdict == "undecided"
    assert "TOST adjusted p" in corrected.why


def test_readings_without_spread_claim_no_more_than_their_rounding() -> None:
    """60.0 and 60.0 rounded to 1: difference 0 ± t·√2/√12 of a step, so equivalent within 2 % but not within 0.1 %."""
    same = drawn([60.0] * 10, [60.0] * 10, margin_percent=2, unit="tok/s")
    assert (same.difference, same.p_value, same.n_effective) == (0, 1, 10)
    assert same.ci95_difference == pytest.approx(
        (-2.1009 * math.sqrt(2 / 12), 2.1009 * math.sqrt(2 / 12)), abs=1e-4
    )
    assert same.verdict == "equivalent"
    assert drawn([60.0] * 10, [60.0] * 10, margin_percent=0.1).verdict == "undecided"
    assert drawn([60.0] * 10, [61.0] * 10, margin_percent=0.1).verdict == "higher"


def test_both_sides_share_one_instrument() -> None:
    """The instrument reads 0.01, so 100.0 four times is not a reading to the next whole number."""
    found = drawn([100.0] * 4, [100.0, 100.01, 99.99, 100.02])
    assert found.ci95_difference is not None
    assert found.ci95_difference[1] - found.ci95_difference[0] < 0.1


def test_degrees_celsius_have_no_percentages() -> None:
    found = drawn(
        apart([60.0, 61.0, 60.5, 61.5]),
        apart([58.0, 58.5, 59.0, 58.2]),
        direction="lower",
        unit="°C",
    )
    nothing = (
        found.difference_percent,
        found.ratio,
        found.inverse_ratio,
        found.ci95_ratio,
        found.ci90_ratio,
    )
    assert nothing == (None,) * 5
    asked = (
        found.equivalence_p,
        found.overhead_percent,
        found.detectable_percent,
        found.power_10_percent,
    )
    assert asked == (None,) * 4
    assert found.verdict == "lower"
    assert found.better == "candidate"


@pytest.mark.parametrize(
    ("direction", "candidate", "better"),
    [
        ("higher", 110.0, "candidate"),
        ("higher", 90.0, "baseline"),
        ("lower", 110.0, "baseline"),
        ("lower", 90.0, "candidate"),
        ("neither", 90.0, None),
        ("higher", 100.0, None),
    ],
)
def test_which_side_is_better(
    direction: Any, candidate: float, better: str | None
) -> None:
    assert (
        drawn([100.0, 100.0], [candidate, candidate], direction=direction).better
        == better
    )


@pytest.mark.parametrize(
    ("unit", "direction", "expected"),
    [
        ("tok/s", "higher", 25.0),
        ("ms", "lower", -20.0),
        ("GiB", "lower", -20.0),
        ("GiB", "higher", None),
    ],
)
def test_overhead_is_that_of_execution_times(
    unit: str, direction: Any, expected: float | None
) -> None:
    """From 100 to 80: as a rate, time grows by 100/80 - 1 = 25 %; as a time or memory it shrinks by 20 %."""
    found = drawn([100.0, 100.0], [80.0, 80.0], direction=direction, unit=unit)
    assert found.overhead_percent == (
        None if expected is None else pytest.approx(expected)
    )


@pytest.mark.parametrize(("unit", "direction"), [("tok/s", "higher"), ("ms", "lower")])
def test_a_candidate_of_zero_has_no_overhead(unit: str, direction: Any) -> None:
    """A rate of zero never ends, and a time of zero is none."""
    found = drawn([100.0, 100.0], [0.0, 0.0], direction=direction, unit=unit)
    assert (found.ratio, found.overhead_percent) == (0.0, None)


def test_a_baseline_of_zero_has_a_difference_and_no_ratio() -> None:
    found = drawn([0.0] * 5, [1.0, 3.0, 2.0, 3.0, 2.0])
    figures = (found.ratio, found.equivalence_p, found.power_10_percent)
    assert figures == (None,) * 3
    assert found.verdict == "higher"
    assert drawn([1.0, 2.0], [0.0, 0.0]).inverse_ratio is None


@pytest.mark.parametrize("samples", [([], [1.0]), ([1.0], []), ([math.nan], [1.0])])
def test_nothing_cannot_be_compared(samples: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="finite"):
        drawn(*samples)


@pytest.mark.parametrize("seed", range(40))
def test_no_sample_makes_a_figure_that_is_not_a_number(seed: int) -> None:
    """Constants, ties, tiny and huge scales, one to six runs: figures are finite or None, p-values between 0 and 1."""
    generator = np.random.default_rng(seed)
    scale, decimals = 10.0 ** generator.integers(-6, 9), int(generator.integers(0, 4))
    n = generator.integers(1, 7)
    a, b = (
        list(
            scale
            * np.round(generator.normal(5, generator.choice([0, 0.1, 3]), n), decimals)
        )
        for _ in range(2)
    )
    for found in (drawn(a, b, unit="tok/s"), in_turns(a, b, unit="tok/s")):
        for name, value in vars(found).items():
            for part in value if isinstance(value, tuple) else (value,):
                assert not isinstance(part, float) or math.isfinite(part), name
                assert (
                    not (name.endswith("_p") or name.startswith("p_"))
                    or part is None
                    or 0 <= part <= 1
                ), name
        assert found.why.endswith(".")


def with_servers(sample: Sample, servers: str) -> Sample:
    return replace(sample, servers=tuple(servers))


def test_runs_that_share_a_server_are_judged_by_server_and_say_so() -> None:
    """Ten rounds, each server serving two runs: five blocks, and the same means."""
    generator = np.random.default_rng(7)
    native, container = generator.normal(100, 0.2, 10), generator.normal(100, 0.2, 10)
    one, other = turns(native, container)
    options: dict[str, Any] = {"order": "interleaved", "margin_percent": 1}
    alone = compare(one, other, **options)
    shared = compare(
        with_servers(one, "accee" + "ggiik"),
        with_servers(other, "bbddf" + "fhhjj"),
        **options,
    )
    assert (alone.servers, shared.servers) == (None, 5)
    assert shared.difference == pytest.approx(alone.difference)
    assert shared.n_effective <= 5
    assert "10 rounds, which shared servers: n = 5 servers a side" in shared.why
    assert "servers" not in alone.why


def test_three_servers_a_side_are_too_few_to_decide_however_many_runs_they_served() -> (
    None
):
    one, other = turns([100.0, 100.5] * 3, [150.0, 150.5] * 3)
    found = compare(
        with_servers(one, "acceeg"),
        with_servers(other, "bbddff"),
        order="interleaved",
        margin_percent=1,
    )
    assert found.verdict == "undecided"
    assert found.why == (
        "Too few servers to decide: the 6 rounds shared 3 a side, and 4 are needed."
    )


def test_one_server_for_all_runs_of_a_side_has_no_error_to_judge_by() -> None:
    one, other = turns([100.0, 100.5] * 3, [150.0, 150.5] * 3)
    found = compare(
        with_servers(one, "aaaaaa"), other, order="interleaved", margin_percent=1
    )
    assert (found.servers, found.p_value, found.ci95_difference) == (1, None, None)
    assert found.verdict == "undecided"
    assert "shared 1 a side" in found.why

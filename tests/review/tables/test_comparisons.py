"""What is said of two environments: the analysis that the order allows, figures, verdict, and why. A failure here is a
wrong sentence on the site."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkpub.review.reviewed import ReviewedCampaign
from sparkpub.review.statistics.estimate import deciding_level
from sparkpub.review.tables.column import TableRow, rows
from sparkpub.review.tables.comparisons import (
    compare,
    deciding,
    estimates,
    judged,
)
from tests.review.statistics.campaigns import a_campaign
from tests.review.statistics.samples import apart

TPUT, HEAT = "output_throughput_tok_s", "gpu_temp_end_celsius"
NATIVE, FASTER = [100.0, 101.0, 99.0, 100.5], [150.0, 151.0, 149.0, 150.5]
NEAR = [100.25, 100.875, 99.125, 100.375]
"""Close to NATIVE, and neither is alike in its neighbours."""


def compared(
    native: Any,
    container: Any,
    *,
    order: str = "random",
    metric: str = TPUT,
    margin: float = 1.0,
    declared: bool = True,
    servers: tuple[str, str] = ("", ""),
) -> TableRow:
    """Runs of a campaign against others of it, which took turns; letters name the server of each run."""
    sides = {"native": [*map(float, native)], "container": [*map(float, container)]}
    cells = {("m", name): {metric: values} for name, values in sides.items()}
    known = {name: each for name, each in zip(sides, servers, strict=True) if each}
    campaign = a_campaign("c", cells, order=order, matrix=declared, servers=known)
    table = ReviewedCampaign(campaign).runs
    one, other = (table[table["environment"] == name] for name in sides)
    found = compare(one, other, campaign, margin)
    assert found is not None
    return found[0]


def in_turns(native: Any, container: Any, **options: Any) -> TableRow:
    return compared(native, container, order="interleaved", **options)


def test_complete_rounds_are_compared_within_and_see_through_a_drift() -> None:
    """A drift of 20 % and a difference of 0.5 %: within rounds it is certain, between samples nothing shows."""
    noise = np.random.default_rng(1).normal(0, 0.1, (2, 10))
    a, b = (
        level + np.linspace(0, 20, 10) + noise[side]
        for side, level in enumerate((100, 100.5))
    )
    fine = 0.01
    found = in_turns(a, b, margin=fine)
    assert (found.order, found.analysis, found.n_baseline) == (
        "interleaved",
        "paired",
        10,
    )
    assert found.p_value < 0.001
    assert (found.verdict, "paired within 10 rounds" in found.why) == ("higher", True)
    assert compared(a, b, margin=fine).p_value == pytest.approx(0.9, abs=0.1)


def test_runs_outside_of_complete_rounds_are_left_out_and_counted() -> None:
    found = in_turns([*NATIVE, 500.0], NEAR, margin=5.0)
    assert (found.n_baseline, found.n_candidate, found.left_out) == (4, 4, 1)
    means = np.mean(NATIVE), np.mean(NEAR)
    assert (found.mean_baseline, found.mean_candidate) == pytest.approx(means)


def test_blocks_are_confounded_whatever_the_figures_and_still_described() -> None:
    found = compared(NATIVE, FASTER, order="blocked")
    assert (found.verdict, found.analysis) == ("confounded", "description")
    tests = (
        found.p_value,
        found.equivalence_p,
        found.power_10_percent,
        found.detectable_percent,
    )
    assert tests == (None,) * 4
    assert (found.difference, found.ratio) == (
        pytest.approx(50),
        pytest.approx(150.125 / 100.125),
    )
    assert None not in (found.ci95_difference, found.ci95_ratio)
    assert found.why.startswith("The environments ran in separate blocks of time")
    assert len(estimates(pd.DataFrame([found])).value) == 0


@pytest.mark.parametrize("container", [FASTER, NEAR])
def test_a_verdict_says_what_so_many_runs_of_one_day_cannot_tell(
    container: list[float],
) -> None:
    """Four runs have no slow one of 52.7 % with a probability of 0.473⁴ = 0.05."""
    found = compared(NATIVE, container, margin=5.0)
    assert (found.days, found.unseen_percent) == (1, pytest.approx(52.7, abs=0.05))
    assert found.why.endswith(
        " It holds for the day of these runs, and slow runs, up to 53 % of all, can be missing among them."
    )


@pytest.mark.parametrize(
    ("order", "n", "why"),
    [
        ("random", 1, "the 1 and 1 runs are worth 1.0, and 4 are needed."),
        ("random", 3, "the 3 and 3 runs are worth 3.0, and 4 are needed."),
        ("interleaved", 3, "the 3 rounds are worth 3.0, and 4 are needed."),
    ],
)
def test_few_runs_decide_nothing_however_far_apart(
    order: str, n: int, why: str
) -> None:
    found = compared([100.0, 101.0, 99.0][:n], [200.0, 202.0, 199.0][:n], order=order)
    assert (found.verdict, why in found.why) == ("undecided", True)
    assert (found.p_value is None, found.df is None) == (n == 1, n == 1)
    assert found.difference == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize(
    ("found", "verdict", "level"),
    [
        (compared(NATIVE, FASTER), "higher", 0.95),
        (compared(FASTER, NATIVE), "lower", 0.95),
        (compared(NATIVE, NEAR, margin=5.0), "equivalent", 0.9),
        (compared(NATIVE, NEAR, margin=0.1), "undecided", 0.9),
        # No margin is held against a scale without a true zero.
        (compared(NATIVE, NEAR, metric=HEAT), "undecided", 0.95),
    ],
)
def test_the_interval_that_decides_is_the_one_of_the_test(
    found: TableRow, verdict: str, level: float
) -> None:
    assert (found.verdict, deciding_level(found.verdict, found.equivalence_p)) == (
        verdict,
        level,
    )
    name = "ci95" if level == 0.95 else "ci90"
    assert deciding(found) == getattr(found, f"{name}_difference")
    assert deciding(found, "ratio") == getattr(found, f"{name}_ratio")


def test_adjusted_p_values_decide() -> None:
    """A difference, and an equivalence, that hold alone with p between 0.005 and 0.05 do not in a family of ten."""
    shifted = [value + 1.75 for value in NATIVE]
    fine, wide = 0.01, 1.6
    for row, said in (
        (compared(NATIVE, shifted, margin=fine), "higher"),
        (compared(NATIVE, NEAR, margin=wide), "equivalent"),
    ):
        assert row.verdict == said
        ten = rows(judged(pd.DataFrame([row._asdict() for _ in range(10)]), ["unit"]))
        said_of_ten = {(one.verdict, "adjusted p" in one.why) for one in ten}
        assert said_of_ten == {("undecided", True)}


def test_degrees_celsius_have_no_percentages() -> None:
    found = compared(
        apart([60.0, 61.0, 60.5, 61.5]), apart([58.0, 58.5, 59.0, 58.2]), metric=HEAT
    )
    names = ("difference_percent", "ratio", "inverse_ratio", "ci95_ratio", "ci90_ratio")
    names += (
        "equivalence_p",
        "overhead_percent",
        "detectable_percent",
        "power_10_percent",
    )
    assert [getattr(found, name) for name in names] == [None] * 9
    assert (found.verdict, found.better) == ("lower", "candidate")


@pytest.mark.parametrize(
    ("metric", "candidate", "better", "overhead"),
    [
        # From 100 to 80: as a rate, time grows by 100/80 - 1 = 25 %; as a time or memory it shrinks by 20 %.
        (TPUT, 80.0, "baseline", 25.0),
        ("ttft_p50_ms", 80.0, "candidate", -20.0),
        ("peak_memory_gib", 80.0, "candidate", -20.0),
        # A rate of zero never ends, and a time of zero is none.
        (TPUT, 0.0, "baseline", None),
        (TPUT, 100.0, None, 0.0),
    ],
)
def test_which_side_is_better_and_what_it_costs(
    metric: str, candidate: float, better: str | None, overhead: float | None
) -> None:
    found = compared([100.0] * 2, [candidate] * 2, metric=metric)
    assert (found.better, found.overhead_percent) == (better, pytest.approx(overhead))
    assert found.inverse_ratio == (
        pytest.approx(100 / candidate) if candidate else None
    )


@pytest.mark.parametrize(
    ("one", "other", "servers", "why"),
    [
        # Each server serves the last run of a round and the first of the next.
        (
            "acceeggiik",
            "bbddffhhjj",
            5,
            "paired within 10 rounds on 5 servers a side",
        ),
        ("acceeg", "bbddff", 3, "the 6 rounds on 3 servers a side are worth"),
        ("aaaaaa", "", 1, "on 1 server a side"),
        ("", "", None, ""),
    ],
)
def test_runs_that_share_a_server_are_judged_by_server_and_say_so(
    one: str, other: str, servers: int | None, why: str
) -> None:
    n = len(one) or 10
    native, container = np.random.default_rng(7).normal(100, 0.2, (2, n))
    found = in_turns(native, container, servers=(one, other))
    assert (found.servers, found.n_effective <= (servers or n)) == (servers, True)
    assert found.difference == pytest.approx((container - native).mean())
    assert why in found.why
    assert (found.p_value is None) == (servers == 1)

"""The whole procedure in campaigns whose truth is known: a short form of `benchmarks/verdicts.py`."""

import math

import pytest

from benchmarks import machines
from benchmarks.verdicts import SCENARIOS, SPREADS, Shares, draw, judge, tally
from sparkpub.review.statistics.order import DeclaredOrder

CAMPAIGNS = 1200
REQUIRED = [scenario for scenario in SCENARIOS if scenario.required]


def size_and_power(
    name: str, order: DeclaredOrder, n: int, campaigns: int = CAMPAIGNS
) -> Shares:
    (scenario,) = (item for item in SCENARIOS if item.name == name)
    several = [
        case
        for spread in SPREADS
        for case in draw(scenario, order, n, spread, campaigns, seed=3)
    ]
    (found,) = tally((case, judge(case)) for case in several).values()
    return found


@pytest.mark.parametrize("order", ["interleaved", "random"])
@pytest.mark.parametrize("name", [scenario.name for scenario in REQUIRED])
def test_at_most_five_in_a_hundred_verdicts_are_wrong(
    name: str, order: DeclaredOrder
) -> None:
    """5 %, plus four standard errors of that share, with five runs a side; the method page shows other numbers."""
    # Where servers are shared each random order is a design of its own, judged alone.
    alone = order == "random" and "server" in name
    campaigns = 200 if alone else CAMPAIGNS
    found = size_and_power(name, order, 5, campaigns)
    limit = 0.05 + 4 * math.sqrt(0.05 * 0.95 / campaigns)
    assert found.false_equivalent <= limit
    assert found.false_difference <= limit


@pytest.mark.parametrize("name", ["normal", "drifting", "autocorrelated 0.8"])
def test_blocks_get_no_verdict(name: str) -> None:
    found = size_and_power(name, "blocked", 10, campaigns=50)
    assert found == Shares()


@pytest.mark.parametrize("between", machines.BETWEEN)
@pytest.mark.parametrize("number", machines.MACHINES)
def test_at_most_five_in_a_hundred_verdicts_over_machines_are_wrong(
    number: int, between: float
) -> None:
    """5 %, plus four standard errors of that share; a common effect is hardly ever said not to replicate."""
    campaigns = 200
    found = machines.case(number, 10, between, campaigns)
    limit = 0.05 + 4 * math.sqrt(0.05 * 0.95 / campaigns)
    assert found["false_equivalent"] <= limit
    assert found["false_difference"] <= limit
    if between == 0:
        assert found["does_not_replicate"] <= limit
        assert found["equivalence_replicates"] > found["does_not_replicate"]

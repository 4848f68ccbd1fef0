"""Claims on a campaign that ran on several machines. Expected values are worked out in place."""

from typing import Any

import pytest
from scipy import stats

from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import CampaignData
from tests.review.claims.campaigns import verdict_on
from tests.review.machines import TPUT, a_fleet, drawn
from tests.review.statistics.campaigns import a_dataset

ONE, OTHER = drawn(100, 5, 1), drawn(140, 5, 2)


def asked(campaign: CampaignData, **fields: Any) -> Verdict:
    usual = {
        "about": "world",
        "metric": TPUT,
        "compare": "container / native",
        "scope": "each model",
    }
    return verdict_on(a_dataset(campaign), **(usual | fields))


def test_a_claim_on_several_machines_is_about_machines_like_these() -> None:
    found = asked(a_fleet({"a": ONE, "b": OTHER}), expect={"direction": "higher"})
    assert (found.verdict, found.here) == ("supported", False)
    assert "2 machines: 8 rounds; 8 rounds" in found.text
    assert "machines and days like these" in found.text
    (unit,) = found.evidence["units"]
    assert unit["n"] == [8, 8]


def test_a_claim_on_one_machine_is_about_that_one() -> None:
    found = asked(a_fleet({"a": ONE}), expect={"direction": "higher"})
    assert (found.verdict, found.here) == ("supported", True)
    assert "on this machine, this day" in found.text


def test_models_on_a_machine_each_are_known_there_alone() -> None:
    """A campaign split over two machines: each unit rests on one of them."""
    one = a_fleet({"a": ONE}, machines="split")
    runs = list(one.runs)
    for run in a_fleet({"b": OTHER}, machines="split").runs:
        update = {"model": "k", "run_id": f"{run.record.run_id}-k"}
        runs.append(type(run)(run.record.model_copy(update=update), run.path))
    both = CampaignData(one.info, one.folder, tuple(runs))
    found = asked(both, expect={"direction": "higher"})
    assert (found.verdict, found.here) == ("supported", True)
    assert "2 machines" not in found.text


def test_a_mean_over_machines_has_an_interval_between_them() -> None:
    """Levels of 100 and 140: one degree of freedom reaches 12.7 × 20 to either side."""
    found = asked(
        a_fleet({"a": ONE, "b": OTHER}),
        compare=None,
        scope="each environment",
        environments=["native"],
        expect={"holds": "mean > 90"},
    )
    assert found.verdict == "undecided"
    (unit,) = found.evidence["units"]
    half = stats.t.ppf(0.975, 1) * 20
    assert (unit["ci95"][1] - unit["ci95"][0]) / 2 == pytest.approx(half, rel=0.02)
    assert "2 machines: n = 8; n = 8" in found.text


def test_statistics_without_an_error_are_of_all_runs() -> None:
    """The largest value is that of any machine, and needs no combining."""
    found = asked(
        a_fleet({"a": ONE, "b": OTHER}),
        about="data",
        compare=None,
        scope="each environment",
        environments=["native"],
        expect={"holds": "max > 139"},
    )
    assert found.verdict == "supported"


def test_machines_of_both_campaigns_count_once_each() -> None:
    one = a_fleet({"a": ONE, "b": OTHER})
    two = a_fleet({"d": drawn(120, 5, 3)}, name="d")
    found = verdict_on(
        a_dataset(one, two),
        about="world",
        metric=TPUT,
        compare="container / native",
        scope="each model",
        repeated_in=["d"],
        expect={"direction": "higher"},
    )
    assert found.verdict == "supported"
    assert "3 machines: 8 rounds; 8 rounds; 8 rounds" in found.text

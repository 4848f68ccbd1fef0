"""A campaign that collect has not finished: it can be published, its claims are undecided, its figures come later."""

from typing import Any

import pytest

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import Origin
from sparkpub.review.dataset import CampaignData, Dataset
from tests.review.claims.campaigns import verdict_on
from tests.review.statistics.campaigns import a_campaign, a_dataset

CLAIM: dict[str, Any] = {
    "metric": "output_throughput_tok_s",
    "scope": "each cell",
    "expect": {"holds": "n = 5"},
}


def measured(one: int, two: int, **info: Any) -> Dataset:
    """A campaign of five planned runs of each environment, with so many that were measured."""
    cells = {
        ("m", name): {"output_throughput_tok_s": [101.0, 102, 103, 104, 105][:number]}
        for name, number in (("one", one), ("two", two))
    }
    data = a_campaign("c", cells)
    document = {**(data.info.matrix or {}), "iterations": 5}
    about = Campaign(campaign="c", title="t", matrix=document, **info)
    return a_dataset(CampaignData(about, data.folder, data.runs))


def test_a_claim_about_runs_to_come_is_undecided_and_stops_nothing() -> None:
    """Two runs of each environment: n = 5 would be refuted, and that is no news of a campaign under way."""
    data = measured(2, 2)
    verdict = verdict_on(data, **CLAIM)
    assert (verdict.verdict, verdict.changed) == ("undecided", False)
    assert verdict.text == "Campaign c is not finished: 4 of 10 planned runs are done."


def test_a_claim_is_judged_by_its_own_cells() -> None:
    data = measured(5, 2)
    done = verdict_on(data, **CLAIM, environments=("one",))
    assert done.verdict == "supported", done.text
    verdict = verdict_on(data, **CLAIM, environments=("two",))
    assert verdict.verdict == "undecided"


@pytest.mark.parametrize(
    "info",
    [{"ended": "The machine was taken away."}, {"origin": Origin(title="elsewhere")}],
)
def test_a_campaign_that_was_ended_or_imported_is_finished(
    info: dict[str, Any],
) -> None:
    data = measured(2, 2, **info)
    assert not data.campaigns["c"].unfinished_cells
    verdict = verdict_on(data, **CLAIM)
    assert (verdict.verdict, verdict.changed) == ("refuted", True)

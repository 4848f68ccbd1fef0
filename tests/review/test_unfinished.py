"""A campaign that collect has not finished: it can be published, its claims are undecided, its figures come later."""

from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import Origin
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.results import Results
from sparkpub.site.content import SiteOptions
from sparkpub.site.publication import Publication
from sparkpub.site.sources import source_of
from sparkpub.site.words import Words
from tests.review.claims.campaigns import a_review, verdict_on
from tests.review.statistics.campaigns import a_campaign, a_dataset

CLAIM: dict[str, Any] = {
    "metric": "output_throughput_tok_s",
    "scope": "each cell",
    "expect": {"holds": "n = 5"},
}
VALUE = 'value("mean", "output_throughput_tok_s", environment="{}")'
COMPARED = 'compare("verdict", "output_throughput_tok_s")'
TABLE = 'table("mean", "output_throughput_tok_s")'


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


def said(dataset: Dataset, expression: str) -> str:
    found = a_review(dataset)
    publication = Publication(Results(found), found, SiteOptions(Path()))
    words = Words(publication, lambda *_, **__: "drawn")
    return words.page(source_of(f"{{{{ {expression} }}}}", "p.md")).text


def test_a_claim_about_runs_to_come_is_undecided_and_stops_nothing() -> None:
    """Two runs of each environment: n = 5 would be refuted, and that is no news of a campaign under way."""
    data = measured(2, 2)
    verdict = verdict_on(data, a_review(data), **CLAIM)
    assert (verdict.verdict, verdict.changed) == ("undecided", False)
    assert verdict.text == "Campaign c is not finished: 4 of 10 planned runs are done."


def test_a_claim_is_judged_by_its_own_cells() -> None:
    data = measured(5, 2)
    done = verdict_on(data, a_review(data), **CLAIM, environments=("one",))
    assert done.verdict == "supported", done.text
    verdict = verdict_on(data, a_review(data), **CLAIM, environments=("two",))
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
    verdict = verdict_on(data, a_review(data), **CLAIM)
    assert (verdict.verdict, verdict.changed) == ("refuted", True)


def failed(data: Dataset, attempts: int) -> Dataset:
    """Every run as so many attempts that failed."""
    campaign = data.campaigns["c"]
    fields = {"status": "failed", "status_reason": "exit status 1", "metrics": {}}
    runs = [
        Stored(
            stored.record.model_copy(update={**fields, "run_id": run_id}),
            Path(f"c/{run_id}.json"),
        )
        for stored in campaign.runs
        for attempt in range(attempts)
        if (run_id := f"{stored.run_id}-{attempt}")
    ]
    campaign = CampaignData(campaign.info, campaign.folder, tuple(runs))
    return Dataset(Path(), MappingProxyType({"c": campaign}))


@pytest.mark.parametrize("attempts", [1, 2])
def test_failed_runs_are_no_measurement(attempts: int) -> None:
    """With one retry a second failed attempt ends what was planned, and a page has as little to say as before."""
    data = failed(measured(5, 5), attempts)
    assert data.campaigns["c"].progress == "0 of 10 planned runs are done"
    for expression in (VALUE.format("two"), COMPARED, TABLE):
        assert said(data, expression) == "not measured yet"
    assert said(data, 'figure("x", campaign="c")') == "*not measured yet*"
    assert verdict_on(data, a_review(data), **CLAIM).verdict == "undecided"

"""Claims on a campaign that ran on several machines. Expected values are worked out in place."""

import pytest

from sparkpub.record.record import Observed
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import CampaignData
from tests.review.claims.campaigns import verdict_on
from tests.review.machines import TPUT, a_fleet, drawn
from tests.review.statistics.campaigns import a_dataset

ONE, OTHER = drawn(100, 5, 1), drawn(140, 5, 2)


def repeated(one: CampaignData, two: CampaignData) -> Verdict:
    return verdict_on(
        a_dataset(one, two),
        about="world",
        metric=TPUT,
        compare="container / native",
        scope="each model",
        repeated_in=["d"],
        expect={"direction": "higher"},
    )


def with_engine(campaign: CampaignData, version: str) -> CampaignData:
    """The campaign on an engine of that version."""
    runs = []
    for run in campaign.runs:
        observed = Observed(engine="e", engine_version=version)
        record = run.record.model_copy(update={"observed": observed})
        runs.append(type(run)(record, run.path))
    return CampaignData(campaign.info, campaign.folder, tuple(runs))


@pytest.mark.parametrize(("version", "differs"), [("1", False), ("2", True)])
def test_a_repetition_says_what_else_was_another(version: str, differs: bool) -> None:
    first = with_engine(a_fleet({"a": ONE, "b": OTHER}), "1")
    second = with_engine(a_fleet({"d": drawn(120, 5, 3)}, name="d"), version)
    found = repeated(first, second)
    assert found.verdict == "supported"
    assert "3 sessions: 8 rounds; 8 rounds; 8 rounds" in found.text
    assert bool(found.evidence.get("differences")) is differs
    assert (" The campaigns differ in engine" in found.text) is differs

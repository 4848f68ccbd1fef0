"""The campaigns of real engines on one NVIDIA H200: complete as far as they go, and clean under the checks."""

from pathlib import Path

import pytest

from sparkpub.plan import matrix
from sparkpub.record.store import Stored
from sparkpub.review.checks import Review

ROOT = Path(__file__).parents[2]
DATA = ROOT / "data" / "comprehensive"
CAMPAIGNS = ("h200-llama", "h200-vllm")

pytestmark = pytest.mark.skipif(
    not all((DATA / name).is_dir() for name in CAMPAIGNS),
    reason="the study's campaigns are not here",
)


def runs(committed: Review, campaign: str) -> list[Stored]:
    return [
        stored
        for stored in committed.dataset.runs
        if stored.record.campaign == campaign
    ]


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_a_clean_campaign_has_no_error_finding_and_no_stranger_on_its_gpu(
    committed: Review, campaign: str
) -> None:
    found = [item for item in committed.findings if item.campaign == campaign]
    assert [
        item
        for item in found
        if item.severity == "error" or item.check == "foreign-load"
    ] == []


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_the_campaign_was_measured_as_its_matrix_says_on_one_gpu(
    committed: Review, campaign: str
) -> None:
    declared = matrix.read(ROOT / "matrix" / f"{campaign}.yaml")
    data = committed.dataset.campaign(campaign)
    assert data.matrix is not None
    # A title is for readers, and may be worded anew.
    assert data.matrix.document() | {"title": ""} == declared.document() | {"title": ""}
    assert (
        len(
            {
                gpu.id
                for run in runs(committed, campaign)
                for gpu in run.record.machine.gpus
            }
        )
        == 1
    )


def test_cells_that_are_short_of_runs_are_told_together(committed: Review) -> None:
    (found,) = [
        item
        for item in committed.findings
        if (item.campaign, item.check) == ("h200-vllm", "unbalanced")
    ]
    assert set(found.cells) == {
        "dense7b/native/serve-c8",
        "dense7b/container/serve-c8",
    }
    assert (
        "Of the good runs that the matrix declares there are 6 of 10 and 7 of 10"
        in found.message
    )

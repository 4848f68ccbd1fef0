"""The campaign on the H200: one GPU, one specification per cell, real load, nothing lost and nothing hidden."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from sparkpub.plan import matrix as matrices
from sparkpub.plan.coverage import by_cell
from sparkpub.review.dataset import CampaignData, load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["h200", "h200-sweep"])
def campaign(request: pytest.FixtureRequest) -> CampaignData:
    return load(ROOT / "data" / "comprehensive").campaign(request.param)


def test_every_planned_run_is_there(campaign: CampaignData) -> None:
    matrix = matrices.read(ROOT / "matrix" / f"{campaign.name}.yaml")
    cells = by_cell(matrix, campaign.records, campaign.quarantined)
    assert [cell for cell, found in cells.items() if found.done != found.planned] == []


def test_one_gpu_one_machine_and_one_specification_per_cell(
    campaign: CampaignData,
) -> None:
    assert (
        len({gpu.id for record in campaign.records for gpu in record.machine.gpus}) == 1
    )
    assert len({record.machine.id for record in campaign.records}) == 1
    by = defaultdict(set)
    for record in campaign.records:
        by[record.cell].add(record.specification)
    assert all(len(specifications) == 1 for specifications in by.values())


def test_a_run_that_was_stopped_is_there_as_stopped() -> None:
    records = load(ROOT / "data" / "comprehensive").campaign("h200").records
    assert Counter(record.status for record in records) == {"ok": 100, "interrupted": 1}

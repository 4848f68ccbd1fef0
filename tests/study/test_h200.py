"""The campaign on the H200: one GPU, one specification per cell, real load, nothing lost and nothing hidden."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from sparkpub.plan import matrix as matrices
from sparkpub.plan.coverage import by_cell
from sparkpub.record.store import file_sha256
from sparkpub.record.telemetry import parse
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


def test_telemetry_shows_real_load(campaign: CampaignData) -> None:
    """A decode that reads tens of GiB in every step keeps an H200 well above its idle 120 W."""
    for stored in campaign.runs:
        item = stored.record.file("telemetry")
        if stored.record.status != "ok":
            continue
        assert item is not None
        telemetry = parse(stored.evidence_path(item).read_text())
        power = [
            watt for watt in telemetry.numbers("gpu_power_watt") if watt is not None
        ]
        busy = [
            percent
            for percent in telemetry.numbers("gpu_utilization_percent")
            if percent is not None
        ]
        used = [
            gib for gib in telemetry.numbers("gpu_memory_used_gib") if gib is not None
        ]
        assert len(power) > 10, stored.path.name
        assert max(power) > 150, stored.path.name
        assert max(busy) > 50, stored.path.name
        assert max(used) - min(used) > 1, stored.path.name


def test_evidence_is_what_the_records_say(campaign: CampaignData) -> None:
    for stored in campaign.runs:
        for item in stored.record.evidence:
            path = stored.evidence_path(item)
            assert (path.stat().st_size, file_sha256(path)) == (
                item.bytes,
                item.sha256,
            ), path.name


def test_what_ran_is_what_was_asked_for(campaign: CampaignData) -> None:
    for record in campaign.records:
        asked, seen = record.requested.architecture, record.observed
        if record.status == "ok" and asked is not None:
            assert (seen.parameters, seen.weight_bytes) == (
                asked.parameters,
                asked.weight_bytes,
            )
            assert seen.kv_bytes_per_token == asked.kv_bytes_per_token
            assert seen.random_weights is True


def test_a_run_that_was_stopped_is_there_as_stopped() -> None:
    records = load(ROOT / "data" / "comprehensive").campaign("h200").records
    assert Counter(record.status for record in records) == {"ok": 100, "interrupted": 1}

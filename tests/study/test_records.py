"""The committed records: as published, as imported, and of the cells that their matrices declare."""

import json
from pathlib import Path

import pytest

from sparkpub.plan import matrix as matrices
from sparkpub.plan.requested import with_load
from sparkpub.record.secrets import without_secrets
from sparkpub.record.store import read_campaign, read_folder, to_json
from tests import published

COMPREHENSIVE = Path(__file__).parents[2] / "data" / "comprehensive"
MEASURED = sorted(
    path.parent.name
    for path in COMPREHENSIVE.glob("*/campaign.json")
    if "matrix" in json.loads(path.read_text())
)


def test_the_committed_records_are_those_of_the_published_table(tmp_path: Path) -> None:
    """The same import as then gives the same files, but for what people decided about the campaign afterwards."""
    imported = published.write(tmp_path / "data") / "phase1"
    committed = COMPREHENSIVE / "phase1"
    stored = read_folder(committed)
    assert len(stored) == 63
    for run in stored:
        again = json.loads((imported / run.path.name).read_text())
        load = again["requested"].pop("load")  # which records did not hold then
        assert load == json.loads(to_json(with_load(run.record)))["requested"]["load"]
        assert again == json.loads(run.path.read_text())
    undecided = {"acknowledged": (), "quarantined": ()}
    assert read_campaign(imported) == read_campaign(committed).model_copy(
        update=undecided
    )


@pytest.mark.parametrize("campaign", MEASURED)
def test_the_committed_records_still_are_of_their_cells(campaign: str) -> None:
    """The fingerprints that lie on disk are older than much of what reads them."""
    folder = COMPREHENSIVE / campaign
    document = json.loads((folder / "campaign.json").read_text())["matrix"]
    matrix = matrices.from_document(document, campaign)
    assert matrix.document() == document
    found = [
        json.loads(path.read_text()) for path in sorted(folder.glob("*_iter*.json"))
    ]
    records = [record for record in found if record.get("specification")]
    for record in records:
        cell = (record["model"], record["environment"], record["workload"])
        assert record["specification"] == matrix.fingerprint(*cell)


def test_there_are_committed_records_with_a_specification() -> None:
    assert {"h200"} <= set(MEASURED)


@pytest.mark.parametrize("pattern", ["*.log", "*.json", "*.csv"])
def test_nothing_committed_is_taken_for_a_secret(pattern: str) -> None:
    """What was committed was read before: redaction has nothing to change in it."""
    changed = []
    for path in sorted(COMPREHENSIVE.rglob(pattern)):
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        if without_secrets(text) != text:
            changed.append(path.name)
    assert changed == []

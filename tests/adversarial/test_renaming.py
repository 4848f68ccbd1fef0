"""A key that is renamed in a matrix after measuring: every command goes on, and a finding says what does not fit."""

import json
import shutil
from pathlib import Path

import pytest

from sparkpub.record.store import CAMPAIGN_FILE
from sparkpub.review import told
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from sparkpub.review.results import Results
from sparkpub.review.tables.runs import of_all
from tests.published import MEASURED

AXES = ("models", "environments", "workloads")


@pytest.mark.parametrize("axis", AXES)
def test_a_renamed_key_stops_no_command(axis: str, tmp_path: Path) -> None:
    folder = tmp_path / "h200"
    shutil.copytree(MEASURED / "h200", folder)
    path = folder / CAMPAIGN_FILE
    document = json.loads(path.read_text())
    matrix = document["matrix"]
    first = next(iter(matrix[axis]))
    matrix[axis] = {
        "renamed" if name == first else name: options
        for name, options in matrix[axis].items()
    }
    if matrix.get("baseline") == first:
        matrix["baseline"] = "renamed"
    path.write_text(json.dumps(document))
    dataset = load(tmp_path)
    found = review(dataset)
    assert told.render(Results(found), "json")
    assert told.FORMATS["csv"](of_all([each.runs for each in found.campaigns.values()]))
    assert any("the matrix has no such cell" in item.message for item in found.findings)

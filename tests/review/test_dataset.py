"""Loading: every campaign of a folder, and what damage does."""

import json
from pathlib import Path

import pytest

from sparkpub.record.errors import RecordError
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from tests.review.statistics.campaigns import a_campaign, written


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two runs of campaign `c`."""
    cells = {("m", "native"): {"output_throughput_tok_s": [1.0, 2.0]}}
    written(a_campaign("c", cells), tmp_path)
    return tmp_path


def test_damage_stops_loading_unless_it_is_skipped(data: Path) -> None:
    path = load(data).campaign("c").runs[1].path
    path.write_text("{")
    with pytest.raises(RecordError, match=path.name):
        load(data)
    lines: list[str] = []
    left = load(data, skip=lines.append)
    assert [record.run_id for record in left.campaign("c").records] == [
        "c-native_m_w_01"
    ]
    assert len(lines) == len(left.damage["c"]) == 1


def changed(data: Path, where: str, value: object) -> Path:
    """The file of the second run, with another value there."""
    (path,) = data.glob("c/*02.json")
    document = json.loads(path.read_text())
    part = document
    *around, name = where.split(".")
    for key in around:
        part = part.setdefault(key, {})
    part[name] = value
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("metrics.output_throughput_tok_s.value", 1.7e308),
        ("plan.position", 10**38),
        ("requested.workload.output_tokens", 10**30),
    ],
)
def test_a_number_that_nothing_measures_is_damage_of_its_record_alone(
    data: Path, where: str, value: object
) -> None:
    """Arithmetic on such figures ends `check` in place of a finding."""
    path = changed(data, where, value)
    dataset = load(data, skip=lambda _: None)
    assert list(dataset.by_id) == ["c-native_m_w_01"]
    (finding,) = [item for item in review(dataset).findings if item.check == "schema"]
    assert where.rpartition(".")[2] in finding.message
    assert f"c/{path.name}" in finding.message


def test_a_campaign_file_that_cannot_be_read_is_damage_of_its_campaign_alone(
    data: Path,
) -> None:
    other = data / "other" / "campaign.json"
    other.parent.mkdir()
    info = {"schema_version": 1, "campaign": "other", "title": "t"}
    for text, words in (
        (json.dumps(info | {"matrix": {"models": 5}}), "matrix.campaign: Field requ"),
        ("{", "other/campaign.json"),
    ):
        other.write_text(text)
        dataset = load(data, skip=lambda _: None)
        found = [item for item in review(dataset).findings if item.campaign == "other"]
        assert [(item.check, item.severity) for item in found] == [("schema", "error")]
        assert list(dataset.campaigns) == ["c"]
        assert words in found[0].message
        assert str(data) not in found[0].message

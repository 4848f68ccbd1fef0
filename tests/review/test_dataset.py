"""Loading: again only what changed, and the same object where nothing did."""

import json
import os
from pathlib import Path

import pytest

from sparkpub.record.errors import RecordError
from sparkpub.record.record import Evidence
from sparkpub.record.store import file_sha256, to_json
from sparkpub.review.checks import review
from sparkpub.review.dataset import Loader, load
from tests.building import a_record
from tests.review.statistics.campaigns import a_campaign


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two runs of campaign `c`, one with a log."""
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "campaign.json").write_text(
        to_json(a_campaign("c", {("m", "native"): {"ttft_p50_ms": [1.0]}}).info)
    )
    log = folder / "one.log"
    log.write_text("rate 100\n")
    evidence = (
        Evidence(
            role="log", path=log.name, sha256=file_sha256(log), bytes=log.stat().st_size
        ),
    )
    first = a_record(run_id="c-one", iteration=1, evidence=evidence)
    for record in (first, a_record(run_id="c-two", iteration=2)):
        (folder / f"{record.stem}.json").write_text(to_json(record))
    return tmp_path


def later(path: Path) -> None:
    """Touch a file so that no clock is too coarse to show it."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))


def test_a_campaign_in_which_nothing_changed_is_the_same_object(data: Path) -> None:
    loader = Loader()
    assert loader.load(data).campaign("c") is loader.load(data).campaign("c")
    assert load(data).campaign("c") is not load(data).campaign("c")


def test_what_was_worked_out_holds_as_long_as_the_campaign_does(data: Path) -> None:
    loader = Loader()
    frame = review(loader.load(data)).frames["c"]
    assert review(loader.load(data)).frames["c"] is frame
    later(data / "c" / "one.log")
    assert review(loader.load(data)).frames["c"] is not frame


@pytest.mark.parametrize("name", ["one.log", "record", "campaign.json"])
def test_a_changed_file_makes_the_campaign_anew(data: Path, name: str) -> None:
    loader = Loader()
    before = loader.load(data).campaign("c")
    path = before.runs[0].path if name == "record" else data / "c" / name
    if name == "campaign.json":
        path.write_text(json.dumps(json.loads(path.read_text()) | {"title": "another"}))
    later(path)
    after = loader.load(data).campaign("c")
    assert after is not before
    assert (after.info.title == "another") is (name == "campaign.json")
    assert (after.runs[1] is before.runs[1]) is True
    assert (after.runs[0] is before.runs[0]) is (name != "record")


def test_a_record_that_is_gone_is_gone(data: Path) -> None:
    loader = Loader()
    loader.load(data).campaign("c").runs[1].path.unlink()
    assert [record.run_id for record in loader.load(data).campaign("c").records] == [
        "c-one"
    ]


def test_damage_stops_loading_unless_it_is_skipped(data: Path) -> None:
    loader = Loader()
    path = loader.load(data).campaign("c").runs[1].path
    path.write_text("{")
    with pytest.raises(RecordError, match=path.name):
        loader.load(data)
    lines: list[str] = []
    left = loader.load(data, skip=lines.append)
    assert [record.run_id for record in left.campaign("c").records] == ["c-one"]
    assert len(lines) == len(left.skipped) == 1

"""The document of `stats --json`: what Python's own writer makes of the statistics, whether kept or worked out."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.record.errors import UsageError
from sparkpub.record.store import to_json
from sparkpub.review import memory, statistics_json, summary
from sparkpub.review.cache import Cache
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from sparkpub.review.memory import Keeper
from sparkpub.review.summary import statistics
from tests.review.statistics.campaigns import Cells, a_campaign, a_dataset

NATIVE = ("m", "native")
CONTAINER = ("m", "container")
ONE: Cells = {
    NATIVE: {"ttft_p50_ms": [1.1, 1.2, 1.3, 1.25, 1.22]},
    CONTAINER: {"ttft_p50_ms": [1.4, 1.2, 1.1, 1.3, 1 / 3]},
}
OTHER: Cells = {NATIVE: {"ttft_p50_ms": [2.1, 2.2, 2.3]}}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign with a comparison, one without, and one without runs."""
    monkeypatch.setattr(memory, "SETTLED_SECONDS", -1.0)
    for name, cells in (("one", ONE), ("other", OTHER)):
        campaign = a_campaign(name, cells)
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        (folder / "campaign.json").write_text(to_json(campaign.info))
        for record in campaign.records:
            (folder / f"{record.stem}.json").write_text(to_json(record))
    empty = tmp_path / "data" / "zero"
    empty.mkdir()
    info = a_campaign("zero", OTHER).info
    (empty / "campaign.json").write_text(to_json(info))
    return tmp_path / "data"


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(Cache(tmp_path / "cache"), "this program")


def by_python(found: summary.Statistics) -> str:
    """The same by the writer of the standard library."""
    document = found.document()
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n"


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"include": "all"},
        {"include": "all", "campaign": "one"},
        {"include": "all", "campaign": "zero"},
        {"include": "all", "campaign": "one", "against": "other"},
        {"include": "all", "campaign": "other", "against": "one"},
    ],
)
def test_the_document_is_that_of_the_statistics_the_first_time_and_later(
    data: Path, keeper: Keeper, asked: dict[str, Any]
) -> None:
    plain = load(data)
    expected = by_python(statistics(plain, review(plain).frames, **asked))
    for _ in range(2):
        known = load(data, keeper=keeper)
        pieces = statistics_json.document(known, review(known).frames, **asked)
        assert "".join(pieces) == expected


def test_no_runs_make_a_document_too() -> None:
    empty = a_dataset()
    assert "".join(statistics_json.document(empty, {})) == by_python(statistics(empty))


def test_kept_text_is_not_worked_out_again(
    data: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(data, keeper=keeper)
    made = "".join(statistics_json.document(first, review(first).frames))

    def refused(*_: object) -> None:
        raise AssertionError("worked out again")

    monkeypatch.setattr(statistics_json, "statistics_of", refused)
    again = load(data, keeper=keeper)
    frames = review(again).frames
    assert "".join(statistics_json.document(again, frames)) == made
    with pytest.raises(AssertionError, match="worked out again"):
        list(statistics_json.document(again, frames, include="all"))


def test_a_part_that_was_lost_is_made_again(data: Path, keeper: Keeper) -> None:
    first = load(data, keeper=keeper)
    frames = review(first).frames
    made = "".join(statistics_json.document(first, frames, include="all"))
    entries = [path for path in keeper.cache._folder.glob("*/*") if path.is_file()]
    assert len(entries) > 20
    for entry in entries:
        entry.unlink()
        known = load(data, keeper=keeper)
        pieces = statistics_json.document(known, review(known).frames, include="all")
        assert "".join(pieces) == made


def test_runs_that_are_out_are_said_and_other_rows_are_theirs(
    data: Path, keeper: Keeper
) -> None:
    dataset = load(data, keeper=keeper)
    frames = review(dataset).frames
    counted = json.loads("".join(statistics_json.document(dataset, frames)))
    everything = json.loads(
        "".join(statistics_json.document(dataset, frames, include="all"))
    )
    out = {item["run"] for item in counted["excluded"]}
    assert out == set(review(dataset).excluded)
    assert out
    assert everything["excluded"] == []
    assert len(everything["cells"]) > len(counted["cells"])


def test_an_unknown_campaign_is_refused(data: Path) -> None:
    dataset = load(data)
    frames = review(dataset).frames
    with pytest.raises(UsageError, match="no campaign 'two'"):
        statistics_json.document(dataset, frames, campaign="two")
    with pytest.raises(UsageError, match="compares one campaign"):
        statistics_json.document(dataset, frames, against="one")

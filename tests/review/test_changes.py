"""What a change of the data does to the results, on folders of a few runs each."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sparkpub.record.campaign import Campaign
from sparkpub.record.store import CAMPAIGN_FILE
from sparkpub.review.changes import (
    as_markdown,
    as_text,
    changes,
    escaped,
)
from sparkpub.review.dataset import CampaignData
from tests.review.statistics.campaigns import a_campaign, written

TPUT = "output_throughput_tok_s"
NATIVE = [100.0, 101.0, 99.0, 100.0, 101.0, 99.0]
SLOWER = [80.0, 81.0, 79.0, 80.0, 81.0, 79.0]
VALUES = {"native": NATIVE, "container": SLOWER}
MATRIX = {
    "campaign": "c",
    "title": "T",
    "models": {"m": {"id": "x/m"}},
    "environments": {"native": {"type": "host"}},
    "workloads": {
        "w": {
            "type": "command",
            "argv": ["true"],
            "metrics": {TPUT: {"regex": "([0-9]+)"}},
        }
    },
    "iterations": 5,
}


def a_folder(
    data: Path,
    values: Mapping[str, Sequence[float]] = VALUES,
    campaign: str = "c",
    **decided: object,
) -> Path:
    """A campaign's folder; runs of both environments in turn."""
    cells = {("m", name): {TPUT: each} for name, each in values.items()}
    runs = a_campaign(campaign, cells, published=True).runs
    info = Campaign(campaign=campaign, title="T", **decided)  # type: ignore[arg-type]
    return written(CampaignData(info, data, runs), data)


def record_of(folder: Path, environment: str, iteration: int) -> Path:
    """The file of a run is named by its id without the campaign."""
    return folder / f"{environment}_m_w_{iteration:02d}.json"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    a_folder(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def head(tmp_path: Path, base: Path) -> Path:
    shutil.copytree(base, tmp_path / "head")
    return tmp_path / "head"


CLAIMS = """\
- id: slower
  source: {document: d}
  about: data
  campaign: c
  metric: output_throughput_tok_s
  compare: container / native
  expect: {direction: lower}
  recorded: supported
- id: vm
  source: {document: d}
  about: data
  campaign: c
  environments: [vm]
  expect: {holds: "runs = 1"}
  recorded: supported
"""


def changed(rows: Sequence[Mapping[str, str]]) -> list[tuple[str, ...]]:
    """The values of rows, one after the other."""
    return [tuple(row.values()) for row in rows]


def test_removed_runs_move_the_mean_the_verdict_and_a_claim(
    base: Path, head: Path
) -> None:
    for iteration in (3, 4, 5, 6):
        record_of(head / "c", "container", iteration).unlink()
    claims = head.parent / "claims.yaml"
    claims.write_text(CLAIMS)
    found = changes(base, head, claims)
    assert changed(found["campaigns"]) == [
        ("c", "12 runs, 12 counted", "8 runs, 8 counted")
    ]
    assert [(row["run"], row["after"]) for row in found["runs"]] == [
        (f"c-container_m_w_{number:02d}", None) for number in (3, 4, 5, 6)
    ]
    # 480/6 = 80 of six runs; of the first two (80 + 81)/2 = 80.5.
    before, after = "80.00 tok/s (n = 6)", "80.50 tok/s (n = 2)"
    cell = ("c", "m/container/w", TPUT, "primary", before, after)
    assert changed(found["cells"]) == [cell]
    sides = "m/w, container against native"
    verdict = ("c", sides, TPUT, "primary", "lower", "undecided")
    assert changed(found["verdicts"]) == [verdict]
    ((says, *turn),) = changed(found["claims"])
    assert says.startswith("Output throughput is lower")
    assert turn == ["supported", "undecided"]
    assert f"  {says}  supported → undecided" in list(as_text(found))
    assert f"| {escaped(says)} | supported → undecided |" in list(as_markdown(found))


def test_damage_is_a_new_finding_and_no_removal(base: Path, head: Path) -> None:
    (head / "c" / CAMPAIGN_FILE).write_text("{")
    found = changes(base, head)
    assert [row["after"] for row in found["campaigns"]] == ["cannot be read"]
    assert ("schema", None) in {
        (row["check"], row["before"]) for row in found["findings"]
    }


def test_text_of_the_data_is_no_markup() -> None:
    """Every sign of punctuation stands behind a backslash, and nothing ends the line or the cell of the table."""
    text = "a|b\r\n[c](https://d) <img> `e` *f* _g_ @h #1 \\| \x1b[31m \u202e"
    shown = escaped(text)
    assert not set(shown) & {"\n", "\r", "\x1b"}
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", shown)
    assert re.fullmatch(r"[^!-/:-@\[-`{-~]*", bare)

"""Sentences under review: each finding names file and line, and sound pages have none."""

from pathlib import Path

import pytest

from sparkpub.review.checks import CHECKS, Finding, review
from sparkpub.review.dataset import load
from sparkpub.site.proofreading import READERS, with_prose
from tests.review.checks.clean import clean_runs, write

CLAIM = """\
- id: equal
  says: Throughput is the same in both environments.
  source: {document: a post}
  about: data
  campaign: clean
  metric: output_throughput_tok_s
  compare: container / native
  scope: each model
  expect: {equivalent_within_percent: 2}
  recorded: RECORDED
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write(folder, clean_runs(seed=7))
    return folder


def findings(data: Path, sources: Path, **pages: str) -> list[Finding]:
    for name, text in pages.items():
        (sources / f"{name}.md").write_text(text)
    return list(with_prose(review(load(data)), sources).findings)


def test_sound_pages_have_no_finding(data: Path, tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_text(CLAIM.replace("RECORDED", "supported"))
    run = sorted(load(data).by_id)[0]
    log = next((data / "clean").glob("*.log")).name
    text = f"See [the run](runs/{run}.md), [its log](../evidence/clean/{log}.txt), [all](runs/index.md), [x](https://example.org/runs/no/)."
    assert findings(data, tmp_path, page=f"{text}\n\n    `in code: 70 GiB`\n\n`70 GiB`\n") == []


def test_a_typed_figure_is_found_by_file_and_line(data: Path, tmp_path: Path) -> None:
    (found,) = findings(data, tmp_path, page="# Memory\n\nIt uses 70.47 GiB.\n")
    assert (found.check, found.severity, found.run) == ("unbound-number", "error", None)
    assert (found.evidence["file"], found.evidence["line"]) == (str(tmp_path / "page.md"), 3)
    assert "70.47 GiB" in found.message


def test_a_changed_verdict_names_the_places_to_reread(data: Path, tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_text(CLAIM.replace("RECORDED", "refuted"))
    (found,) = findings(data, tmp_path, page='Nothing changed: {{ claim("equal") }}\n')
    assert (found.check, found.severity) == ("claim", "error")
    assert (found.evidence["recorded"], found.evidence["verdict"]) == ("refuted", "supported")
    assert found.evidence["places"] == ["page.md:1"]


@pytest.mark.parametrize("target", ["runs/clean-nowhere/", "../runs/clean-nowhere.md", "evidence/clean/gone.log.txt"])
def test_a_link_to_evidence_that_is_not_there_is_found(data: Path, tmp_path: Path, target: str) -> None:
    (found,) = findings(data, tmp_path, page=f"\nLook [here]({target}#figures).\n")
    assert (found.check, found.severity, found.evidence["line"]) == ("dead-evidence", "error", 2)


def test_every_check_of_prose_has_a_reader() -> None:
    assert set(READERS) == {name for name, check in CHECKS.items() if check.kind == "prose"}

"""What belongs in a data folder, what git or whoever opens it would obey, and what is only left lying there."""

import subprocess
from pathlib import Path

import pytest

from sparkpub.collect import journal
from sparkpub.record.campaign import Acknowledgement
from sparkpub.record.store import COLLECTORS_FOLDERS
from sparkpub.review import changes
from sparkpub.review.checks import Finding, review
from sparkpub.review.checks.annotations import of_review
from sparkpub.review.dataset import load
from tests.review.test_changes import a_folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    a_folder(tmp_path / "data")
    return tmp_path / "data"


def found(data: Path) -> list[Finding]:
    findings = review(load(data, skip=lambda _: None)).findings
    return [finding for finding in findings if finding.check == "foreign-file"]


def told(data: Path) -> list[tuple[str, str, list[str]]]:
    return [
        (item.severity, item.campaign, item.evidence["files"]) for item in found(data)
    ]


def test_what_a_campaign_has_belongs_there(data: Path) -> None:
    """People say where data come from, and a collector keeps what is not over, links of its engine among it."""
    for name in ("README.md", "LICENSE", "LICENSE-CC-BY-4.0.txt", "NOTICE", "c/README"):
        (data / name).write_text("x\n")
    for name in ("ATTRIBUTION.md", "c/attributions.txt", ".gitkeep", "c/LICENCE"):
        (data / name).write_text("x\n")
    for folder in COLLECTORS_FOLDERS:
        (data / "c" / folder).mkdir()
        (data / "c" / folder / ".gitignore").write_text("*\n")
        (data / "c" / folder / "link").symlink_to("/")
    assert told(data) == []
    assert COLLECTORS_FOLDERS == (journal.FOLDER,)


def test_evidence_of_a_damaged_record_and_of_a_damaged_campaign_belongs_there(
    data: Path,
) -> None:
    record = next((data / "c").glob("native-*.json"))
    record.with_suffix(".log").write_text("x\n")
    assert told(data) == [("info", "c", [f"c/{record.stem}.log"])]
    record.write_text("{")
    assert told(data) == []
    (data / "c" / "campaign.json").write_text("{")
    assert told(data) == []


def test_a_git_repository_in_the_place_of_data_is_an_error(data: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", data / "c"], check=True)
    (first,) = [item for item in found(data) if item.severity == "error"]
    assert (first.campaign, first.evidence["files"]) == ("c", ["c/HEAD"])
    assert first.remedy == "Delete it."


def test_links_and_settings_of_git_are_errors(data: Path) -> None:
    (data / "c" / "link.log").symlink_to("campaign.json")
    (data / ".gitattributes").write_text("*.json filter=x\n")
    (data / "c" / ".gitmodules").write_text("")
    assert told(data) == [
        ("error", ".gitattributes", [".gitattributes"]),
        ("error", "c", ["c/.gitmodules"]),
        ("error", "c", ["c/link.log"]),
    ]


def test_everything_else_is_one_note(data: Path) -> None:
    (data / "c" / "more").mkdir()
    names = [
        "c/more/a.json",
        "c/more/campaign.json",
        "c/notes.txt",
        "c/run.sh",
        "c/x.report.json",
    ]
    for name in names:
        (data / name).write_text("{}\n")
    (note,) = found(data)
    assert (note.severity, note.evidence["files"]) == ("info", names)
    assert note.message == (
        "No part of a campaign: c/more/a.json, c/more/campaign.json, c/notes.txt and 2 more (named by no record). "
        "Nothing here reads it."
    )


def test_no_contribution_answers_for_its_own_files(tmp_path: Path) -> None:
    """`campaign.json` comes with what it would excuse."""
    answer = Acknowledgement(check="foreign-file", reason="We need this one.")
    folder = a_folder(tmp_path / "data", acknowledged=(answer,))
    (folder / "link").symlink_to("/")
    reviewed = review(load(tmp_path / "data"))
    errors = [item.check for item in reviewed.unacknowledged("error")]
    assert errors == ["foreign-file"]
    assert any(
        line.startswith("::error") and "foreign-file" in line
        for line in of_review(reviewed)
    )


def test_a_file_that_a_contribution_adds_beside_campaigns_is_told(
    tmp_path: Path, data: Path
) -> None:
    """Though no campaign differs. Files of campaigns that are the same on both sides are nobody's change."""
    base = tmp_path / "base"
    a_folder(base)
    for folder in (base, data):
        (folder / "c" / "old.txt").write_text("x\n")
    assert changes.changes(base, data)["findings"] == []
    (data / ".gitattributes").write_text("* filter=x\n")
    found = changes.changes(base, data)
    assert [(one["check"], one["before"]) for one in found["findings"]] == [
        ("foreign-file", None)
    ]
    told = "\n".join(changes.as_markdown(found))
    assert "No campaign differs" in told
    assert "foreign\\-file" in told


def test_a_campaign_a_record_and_evidence_that_are_links_are_not_read(
    tmp_path: Path, data: Path
) -> None:
    elsewhere = a_folder(tmp_path / "elsewhere", campaign="private")
    (data / "private").symlink_to(elsewhere)
    (data / "c" / "more.json").symlink_to(next(elsewhere.glob("native-*.json")))
    dataset = load(data)
    assert [*dataset.campaigns] == ["c"]
    assert {run.record.campaign for run in dataset.runs} == {"c"}
    assert {name for _, _, names in told(data) for name in names} == {
        "private",
        "c/more.json",
    }

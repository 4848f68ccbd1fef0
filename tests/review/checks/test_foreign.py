"""What belongs in a data folder, what git or whoever opens it would obey, and what is only left lying there."""

import subprocess
from pathlib import Path

import pytest

from sparkpub.record.store import COLLECTORS_FOLDERS
from sparkpub.review.checks import Finding, review
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
    names = "README.md LICENSE-CC-BY-4.0.txt NOTICE c/README c/attributions.txt .gitkeep c/LICENCE"
    for name in names.split():
        (data / name).write_text("x\n")
    for folder in COLLECTORS_FOLDERS:
        (data / "c" / folder).mkdir()
        (data / "c" / folder / ".gitignore").write_text("*\n")
        (data / "c" / folder / "link").symlink_to("/")
    assert told(data) == []


def test_evidence_of_a_damaged_record_belongs_there(data: Path) -> None:
    record = next((data / "c").glob("native_*.json"))
    record.with_suffix(".log").write_text("x\n")
    assert told(data) == [("info", "c", [f"c/{record.stem}.log"])]
    record.write_text("{")
    assert told(data) == []


def test_links_and_what_git_obeys_are_errors_and_everything_else_is_one_note(
    tmp_path: Path, data: Path
) -> None:
    subprocess.run(["git", "init", "-q", "--bare", data / "c"], check=True)
    (data / ".gitattributes").write_text("*.json filter=x\n")
    elsewhere = a_folder(tmp_path / "elsewhere", campaign="private")
    (data / "private").symlink_to(elsewhere)
    (data / "c" / "more.json").symlink_to(next(elsewhere.glob("native_*.json")))
    files = dict.fromkeys(("a.json", "campaign.json", "notes.txt", "run.sh"), "{}\n")
    (data / "c" / "left").mkdir()
    for name, text in files.items():
        (data / "c" / "left" / name).write_text(text)
    dataset = load(data)
    assert {run.record.campaign for run in dataset.runs} == {"c"}, "links are not read"
    *errors, note = sorted(told(data), key=lambda each: each[0])
    assert sorted(errors) == [
        ("error", ".gitattributes", [".gitattributes"]),
        ("error", "c", ["c/HEAD"]),
        ("error", "c", ["c/more.json"]),
        ("error", "private", ["private"]),
    ]
    assert {f"c/left/{name}" for name in files} <= {*note[2]}

"""A campaign that copies another: the copy is what came to the branch later, whatever its names and dates say."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sparkpub.review.checks import Finding, review
from sparkpub.review.dataset import load
from tests.review.test_changes import a_folder

FIGURES = {"native": [1508.2514, 1511.9021], "container": [1499.1187, 1502.4432]}


def git(place: Path, *arguments: str, dated: str = "2026-11-20T10:00:00Z") -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    dates = {"GIT_AUTHOR_DATE": dated, "GIT_COMMITTER_DATE": dated}
    argv = ["git", *author, *arguments]
    subprocess.run(argv, cwd=place, check=True, env=dates, capture_output=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A repository that has published one campaign."""
    a_folder(tmp_path / "data", FIGURES, "published")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Publish")
    return tmp_path / "data"


def import_again(data: Path, name: str = "again") -> None:
    """The same results under another name, as if measured earlier in cells of other names."""
    shutil.copytree(data / "published", data / name)
    for path in (data / name).glob("*.json"):
        document = json.loads(path.read_text())
        document["campaign"] = name
        if "run_id" in document:
            document["run_id"] = f"{name}-{document['run_id']}"
            document["environment"] = f"{document['environment']}-of-mine"
            started = document["started"]
            started["value"] = started["value"].replace("2026", "2025", 1)
        path.write_text(json.dumps(document))


def copies(data: Path) -> list[Finding]:
    findings = review(load(data)).findings
    return [finding for finding in findings if finding.check == "copied-evidence"]


def test_what_was_not_committed_yet_is_the_copy(data: Path) -> None:
    import_again(data)
    (finding,) = copies(data)
    assert (finding.campaign, len(finding.runs)) == ("again", 4)
    assert finding.message.startswith(
        "4 runs of again are copies of runs of published, and replicate nothing."
    )


def test_what_was_merged_later_is_the_copy_whatever_date_its_commits_claim(
    data: Path,
) -> None:
    place = data.parent
    git(place, "switch", "-qc", "contribution")
    import_again(data)
    git(place, "add", ".")
    git(place, "commit", "-qm", "Contribute", dated="2020-01-01T00:00:00Z")
    (finding,) = copies(data)
    assert finding.campaign == "again"
    git(place, "switch", "-q", "main")
    git(place, "merge", "-q", "--no-ff", "--no-edit", "contribution")
    (finding,) = copies(data)
    assert finding.campaign == "again"


def test_what_came_in_one_commit_or_without_git_may_be_either(data: Path) -> None:
    import_again(data)
    shutil.rmtree(data.parent / ".git")
    (finding,) = copies(data)
    assert len(finding.runs) == 4
    assert finding.message.endswith(
        "Git does not know which of them came first: it may be the other way round."
    )

"""What git knows of a campaign's folder."""

import subprocess
from pathlib import Path

from sparkpub.review.committed import head

AUTHOR = ["-c", "user.name=n", "-c", "user.email=n@example.org"]


def commit(place: Path, name: str, text: str) -> None:
    path = place / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    for arguments in (["add", "."], [*AUTHOR, "commit", "-qm", name]):
        subprocess.run(["git", *arguments], cwd=place, check=True)


def test_what_git_says_of_a_folder_changes_with_its_own_commits_alone(
    tmp_path: Path,
) -> None:
    assert head(tmp_path) is None
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(tmp_path, "campaign/a.json", "1")
    first = head(tmp_path / "campaign")
    commit(tmp_path, "page.md", "1")
    assert head(tmp_path / "campaign") == first
    commit(tmp_path, "campaign/a.json", "2")
    assert head(tmp_path / "campaign") != first

"""Git works in the owner's repository and in no other, and runs no program of whoever contributed the data."""

import os
import subprocess
from pathlib import Path

import pytest

from sparkpub.record import repository
from sparkpub.record.repository import GitError
from sparkpub.review.checks import review
from sparkpub.review.dataset import load
from tests.collect.collecting import a_matrix, run
from tests.review.test_changes import a_folder


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=place, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(autouse=True)
def identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "gitconfig"
    config.write_text("[user]\nname = Operator\nemail = operator@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def owners(tmp_path: Path) -> Path:
    """A repository with one campaign in its first commit."""
    place = tmp_path / "owners"
    (place / "data").mkdir(parents=True)
    a_folder(place / "data")
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-qm", "Begin")
    return place


def plant(data: Path) -> Path:
    """A repository of an attacker's that is the data folder itself; returns the file that its programs leave."""
    ran = data.parent.parent / "ran"
    program = data / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    program.chmod(0o755)
    git(data, "init", "-q", "--bare", ".")
    settings = {"core.bare": "false", "core.worktree": data, "core.fsmonitor": program}
    for name, value in settings.items():
        git(data, "config", "--file", str(data / "config"), name, str(value))
    for hook in ("pre-commit", "post-index-change"):
        (data / "hooks" / hook).write_bytes(program.read_bytes())
        (data / "hooks" / hook).chmod(0o755)
    quiet = ("-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null")
    author = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    git(data, f"--git-dir={data}", *quiet, "add", "c")
    git(data, f"--git-dir={data}", *quiet, *author, "commit", "-qm", "Planted")
    ran.unlink(missing_ok=True)
    return ran


def test_what_git_would_obey_in_a_data_folder_is_not_obeyed(owners: Path) -> None:
    data = owners / "data"
    ran = plant(data)
    # What the attack rests on: git itself takes the folder for a repository, and runs its program.
    git(data / "c", "status")
    assert ran.exists()
    ran.unlink()

    review(load(data))
    assert not ran.exists()
    run(a_matrix(iterations=1), data, commit=True)
    assert not ran.exists()
    assert git(owners, "log", "-1", "--format=%s") == (
        "Measure m/native/w, iteration 1: ok\n"
    )
    assert repository.told(data / "c", "rev-parse", "--absolute-git-dir") == str(
        owners / ".git"
    )


def test_the_owners_hooks_are_called_where_the_collector_commits_alone(
    owners: Path,
) -> None:
    ran = owners / "ran"
    hook = owners / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    hook.chmod(0o755)
    message = ("commit", "--allow-empty", "--message", "one")
    assert repository.ended(owners, *message).returncode == 0
    assert not ran.exists()
    run(a_matrix(iterations=1), owners / "data", commit=True)
    assert ran.exists()


def test_a_further_work_tree_and_a_submodule_are_repositories(owners: Path) -> None:
    """There `.git` is a file that says where the repository is."""
    further = owners.parent / "further"
    git(owners, "worktree", "add", "-q", str(further))
    assert (further / ".git").is_file()
    assert repository.root(further / "data" / "c") == further
    run(a_matrix(iterations=1), further / "data", commit=True)
    assert git(further, "log", "-1", "--format=%s").startswith("Measure")
    assert git(owners, "log", "-1", "--format=%s") == "Begin\n"


def test_a_repository_of_another_user_is_refused_unless_the_user_trusts_it(
    owners: Path, tmp_path: Path
) -> None:
    """As git does where it finds one itself: what its configuration names would run as us."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a folder away")
    os.chown(owners / ".git", 65534, 65534)
    with pytest.raises(GitError, match=r"belongs to another user; if you trust it"):
        repository.root(owners / "data")
    with (tmp_path / "gitconfig").open("a") as config:
        config.write(f"[safe]\ndirectory = {owners}\n")
    assert repository.root(owners / "data") == owners


def test_a_hook_that_calls_us_does_not_name_the_repository(
    owners: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git names its own in variables to the programs that it calls."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    assert repository.told(owners, "ls-files", "data/c/campaign.json")

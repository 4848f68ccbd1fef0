"""The address of what is installed: as installers note it, and as a clone knows it. Nothing private is in it."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement

from sparkpub import __version__
from sparkpub.record import package

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what an installer noted in direct_url.json, in the forms of PEP 610."""

    def note(document: dict[str, Any] | None) -> None:
        text = None if document is None else json.dumps(document)
        found = SimpleNamespace(read_text=lambda _: text)
        monkeypatch.setattr(package, "distribution", lambda _: found)

    return note


def test_a_release_of_an_index_is_named_by_its_version(noted: Any) -> None:
    noted(None)
    assert package.requirement("site") == f"sparkpub[site]=={__version__}"
    assert package.public_source() == package.UNKNOWN


def test_a_git_address_is_named_at_its_commit_and_without_a_password(
    noted: Any,
) -> None:
    url = "https://me:ghp_secret@github.com/you/sparkpub"
    noted({"url": url, "vcs_info": {"vcs": "git", "commit_id": COMMIT}})
    address = "git+https://github.com/you/sparkpub"
    assert package.requirement() == f"sparkpub @ {address}@{COMMIT}"
    assert package.public_source() == address


def test_a_file_is_named_with_its_hash(noted: Any) -> None:
    url = "file:///tmp/sparkpub-0.1.0-py3-none-any.whl"
    noted({"url": url, "archive_info": {"hashes": {"sha256": "ab"}}})
    assert package.requirement() == f"sparkpub @ {url}#sha256=ab"
    assert package.public_source() == package.UNKNOWN


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@github.com:you/sparkpub.git", "https://github.com/you/sparkpub.git"),
        ("ssh://git@github.com/you/sparkpub", "https://github.com/you/sparkpub"),
        ("https://me:word@host.example/s", "https://host.example/s"),
        (None, None),
    ],
)
def test_a_clone_is_named_by_its_remote_as_anybody_can_fetch_it(
    remote: str | None, address: str | None, noted: Any, tmp_path: Path
) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        argv = ["git", *who, *arguments]
        ended = subprocess.run(
            argv, cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return ended.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "x")
    if remote is not None:
        git("remote", "add", "origin", remote)
    noted({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    named = address or f"file://localhost{tmp_path}"
    said = f"sparkpub @ git+{named}@{git('rev-parse', 'HEAD')}"
    assert package.requirement() == said
    assert Requirement(said).url == said.partition(" @ ")[2]  # as pip reads it
    if remote is None:
        assert package.public_source() == package.UNKNOWN

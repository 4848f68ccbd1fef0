"""The address of what is installed: as installers note it, and as a clone knows it. Nothing private is in it."""

import json
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement

from sparkpub import __version__
from sparkpub.record import package

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Sets what an installer noted in direct_url.json, in the forms of PEP 610."""

    def note(document: dict[str, Any] | None) -> None:
        text = None if document is None else json.dumps(document)
        found = SimpleNamespace(read_text=lambda _: text)
        monkeypatch.setattr(package, "distribution", lambda _: found)
        package.public_source.cache_clear()

    yield note
    package.public_source.cache_clear()


def test_a_release_of_an_index_is_named_by_its_version(noted: Any) -> None:
    noted(None)
    assert package.requirement("site") == f"sparkpub[site]=={__version__}"
    assert package.public_source() == package.UNKNOWN


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("pyvenv.cfg", "pip install 'sparkpub[quick]==V'"),
        ("uv-receipt.toml", "uv tool install --force 'sparkpub[quick,site]==V'"),
        ("pipx_metadata.json", "pipx install --force 'sparkpub[quick,site]==V'"),
        ("archive-v0/AbC/pyvenv.cfg", "uvx --from 'sparkpub[quick,site]==V' sparkpub"),
    ],
)
def test_packages_are_added_with_the_installer_that_is_here(
    file: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pipx and uv replace the extras that an installation has, so that all of them are named."""
    place = (tmp_path / file).parent
    place.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).touch()
    _an_installation_with_site(place, monkeypatch)
    assert package.install_command("quick") == command.replace("V", __version__)


def _an_installation_with_site(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release in a folder, with the packages of `site` and none of `quick`."""
    found = SimpleNamespace(read_text=lambda _: None)
    monkeypatch.setattr(package, "distribution", lambda _: found)
    there = {"pip": object(), package.EXTRAS["site"]: object()}
    monkeypatch.setattr(package, "find_spec", there.get)
    monkeypatch.setattr("sys.prefix", str(place))


def test_a_git_address_is_named_at_its_commit_and_without_a_password(
    noted: Any,
) -> None:
    url = "https://me:ghp_secret@github.com/you/sparkpub"
    noted({"url": url, "vcs_info": {"vcs": "git", "commit_id": COMMIT}})
    address = "git+https://github.com/you/sparkpub"
    assert package.requirement() == f"sparkpub @ {address}@{COMMIT}"
    assert package.public_source() == address


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@github.com:you/sparkpub.git", "https://github.com/you/sparkpub.git"),
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


def test_every_extra_for_users_has_a_module_by_which_it_is_known() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    assert extras.keys() - package.EXTRAS == {"dev"}

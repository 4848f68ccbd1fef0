"""Every environment test has notes of its own, so that it cleans up after nobody else."""

from pathlib import Path

import pytest

from tests.collect.environments.rootfs import a_rootfs


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("SPARKPUB_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root file system of the test's own."""
    return a_rootfs(tmp_path / "root")

"""A root file system for each test of environments."""

from pathlib import Path

import pytest

from tests.collect.environments.rootfs import a_rootfs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root file system of the test's own."""
    return a_rootfs(tmp_path / "root")

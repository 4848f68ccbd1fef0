"""Every collector test has a machine lock and notes of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("SPARKPUB_STATE", str(tmp_path / "state"))
    return tmp_path / "state"

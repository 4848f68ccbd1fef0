"""What is true of the committed campaigns only: skipped where they are not there, as in a fork with data of its own."""

from pathlib import Path

import pytest

from sparkpub.record.settings import DEFAULT_DATA

ROOT = Path(__file__).parents[2]
IS_HERE = (ROOT / DEFAULT_DATA / "phase1").is_dir()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if IS_HERE:
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(
                pytest.mark.skip(reason="the study's campaigns are not here")
            )

"""Where a repository keeps its data, and what it sets for sparkpub in its `pyproject.toml`."""

import tomllib
from pathlib import Path
from typing import Any

from sparkpub.record import outside
from sparkpub.record.errors import UsageError

DEFAULT_DATA = Path("data/comprehensive")


def tool_table(project: Path) -> dict[str, Any]:
    """The table `[tool.sparkpub]`; empty where there is none. Raises UsageError where the file is damaged."""
    if not project.is_file():
        return {}
    text = outside.text(project, UsageError, "fix the file")
    try:
        tools = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"not TOML: {error}", where=str(project), remedy="fix the syntax there"
        ) from None
    table = tools.get("sparkpub", {}) if isinstance(tools, dict) else None
    if not isinstance(table, dict):
        raise UsageError(
            "tool.sparkpub is no table",
            where=str(project),
            remedy="write [tool.sparkpub]",
        )
    return table


GATHERED = Path("gathered")
"""The folder, beside the configuration of the site, that holds a data folder for each owner. Git ignores it."""

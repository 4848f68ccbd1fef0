"""What git knows of a campaign: the analysis that was declared with its first record, and records that are gone."""

import json
from pathlib import Path
from typing import Any

from sparkpub.record import repository

FILE = "campaign.json"
_ADDED = "commit "


def first_matrix(folder: Path) -> dict[str, Any] | None:
    """The matrix of a campaign as it was committed with the campaign's first record; None where git does not know it:
    outside a repository, in a clone without its history, or before the first commit."""
    history = _added(folder)
    commit = ""
    for line in history:
        if line.startswith(_ADDED):
            commit = line.removeprefix(_ADDED)
        elif line not in ("", FILE):
            break
    else:
        return None
    try:
        document = json.loads(
            repository.told(folder, "show", f"{commit}:./{FILE}") or "null"
        )
    except ValueError:
        return None
    matrix = document.get("matrix") if isinstance(document, dict) else None
    return matrix if isinstance(matrix, dict) else None


def removed(folder: Path) -> list[str]:
    """The names of JSON files of a campaign that were committed once and are not there now."""
    lines = {line for line in _added(folder) if line and not line.startswith(_ADDED)}
    return sorted(
        name for name in lines if "/" not in name and not (folder / name).exists()
    )


def head(folder: Path) -> str | None:
    """What all that git says of a folder rests on: the commit at hand, and whether its whole history is there."""
    return repository.told(folder, "rev-parse", "HEAD", "--is-shallow-repository")


def _added(folder: Path) -> list[str]:
    """The commits that added JSON files to a folder, the oldest first, each followed by its files; empty where git does
    not know: outside a repository, in a clone without its history, or before the first commit."""
    if repository.told(folder, "rev-parse", "--is-shallow-repository") != "false":
        return []
    history = repository.told(
        folder,
        "log",
        "--reverse",
        "--no-renames",
        "--diff-filter=A",
        f"--format={_ADDED}%H",
        "--name-only",
        "--relative",
        "--",
        "*.json",
    )
    return (history or "").splitlines()

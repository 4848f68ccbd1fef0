"""What git knows of a campaign: the analysis that was declared with its first record, and records that are gone or
changed."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from sparkpub.record import repository

FILE = "campaign.json"
_COMMIT = "commit "


class Committed(NamedTuple):
    """A JSON file that a commit added or changed."""

    commit: str
    name: str
    is_new: bool


def first_matrix(folder: Path) -> dict[str, Any] | None:
    """The matrix of a campaign as it was committed with the campaign's first record; None where git does not know it:
    outside a repository, in a clone without its history, or before the first commit."""
    first = next((each for each in _history(folder) if each.name != FILE), None)
    if first is None:
        return None
    try:
        document = json.loads(
            repository.told(folder, "show", f"{first.commit}:./{FILE}") or "null"
        )
    except ValueError:
        return None
    matrix = document.get("matrix") if isinstance(document, dict) else None
    return matrix if isinstance(matrix, dict) else None


def removed(folder: Path) -> list[str]:
    """The names of JSON files of a campaign that were committed once and are not there now."""
    names = {each.name for each in _history(folder)}
    return sorted(
        name for name in names if "/" not in name and not (folder / name).exists()
    )


def changed(folder: Path) -> list[str]:
    """The names of JSON files of a campaign that are there and are not what was committed first."""
    history = _history(folder)
    if not history:
        return []
    names = {each.name for each in history if not each.is_new}
    # What is changed and not committed yet.
    told = repository.told(
        folder,
        "diff",
        "--name-only",
        "--diff-filter=M",
        "--relative",
        "HEAD",
        "--",
        "*.json",
    )
    names.update((told or "").splitlines())
    return sorted(name for name in names if (folder / name).exists())


def head(folder: Path) -> str | None:
    """What all that git says of a folder rests on: the commit at hand, and whether its whole history is there."""
    return repository.told(folder, "rev-parse", "HEAD", "--is-shallow-repository")


def _history(folder: Path) -> list[Committed]:
    """What commits did to the JSON files of a folder, the oldest first; empty where git does not know: outside a
    repository, in a clone without its history, or before the first commit."""
    if repository.told(folder, "rev-parse", "--is-shallow-repository") != "false":
        return []
    told = repository.told(
        folder,
        "log",
        "--reverse",
        "--no-renames",
        "--diff-filter=AM",
        f"--format={_COMMIT}%H",
        "--name-status",
        "--relative",
        "--",
        "*.json",
    )
    history = []
    commit = ""
    for line in (told or "").splitlines():
        status, _, name = line.partition("\t")
        if line.startswith(_COMMIT):
            commit = line.removeprefix(_COMMIT)
        elif name:
            history.append(Committed(commit, name, status == "A"))
    return history

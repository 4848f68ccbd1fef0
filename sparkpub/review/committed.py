"""What git knows of data: records that are gone or changed, and which of two records was committed first.

Nothing where git does not know a folder: outside a repository, and before the first commit.
"""

from collections.abc import Mapping
from pathlib import Path

from sparkpub.record import repository

_COMMIT = "commit "
_LOG = ("log", "--no-renames", "--name-only", "--relative")


def removed(folder: Path) -> list[str]:
    """The names of a campaign's JSON files that were committed once and are not there now."""
    names = _lines(folder, *_LOG, "--format=", "--diff-filter=A")
    return sorted(
        name for name in {*names} if "/" not in name and not (folder / name).exists()
    )


def changed(folder: Path) -> list[str]:
    """The names of a campaign's JSON files that are there and are not what was committed first."""
    names = _lines(folder, *_LOG, "--format=", "--diff-filter=M")
    # What is changed and not committed yet.
    options = ("--name-only", "--relative", "--diff-filter=M")
    names += _lines(folder, "diff", *options, "HEAD")
    return [name for name in sorted({*names}) if (folder / name).exists()]


def arrivals(data: Path) -> Mapping[str, int]:
    """When each JSON file below a data folder came to the branch at hand: its path in the folder to the place of the
    commit that brought it, which is that of the merge for what was merged. Dates of commits are their authors' to
    choose, and the order in which they came to this branch is not."""
    options = ("--reverse", "--first-parent", "-m", "--diff-filter=A")
    found: dict[str, int] = {}
    place = 0
    for line in _lines(data, *_LOG, *options, f"--format={_COMMIT}%H"):
        if line.startswith(_COMMIT):
            place += 1
        else:
            found.setdefault(line, place)
    return found


def head(folder: Path) -> str | None:
    """What all that git says of a folder rests on: the last commit that touched it, and whether its whole history is
    there."""
    last = repository.told(folder, "log", "-1", "--format=%H", "--", ".")
    if last is None:
        return None
    return f"{last} {repository.told(folder, 'rev-parse', '--is-shallow-repository')}"


def _lines(folder: Path, *arguments: str) -> list[str]:
    """What git says of JSON files."""
    told = repository.told(folder, *arguments, "--", "*.json") or ""
    return list(filter(None, told.splitlines()))

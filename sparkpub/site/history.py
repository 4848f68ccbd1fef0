"""Which commit last touched each file of the data: what a link to evidence in the repository names."""

from pathlib import Path

from sparkpub.record import repository


def last_commits(root: Path, folders: list[Path]) -> dict[str, str]:
    """Path of each file below the folders, relative to `root`, to the last commit that touched it.

    Empty outside a repository or without git.
    """
    arguments = ("log", "--format=%x00%H", "--name-only", "--relative", "--")
    text = repository.told(root, *arguments, *map(str, folders)) or ""
    found: dict[str, str] = {}
    for entry in text.split("\0")[1:]:
        commit, *paths = entry.split("\n")
        for path in filter(None, paths):
            found.setdefault(path, commit)
    return found

"""Which commit last touched each file of the data: what a link to evidence in the repository names."""

import subprocess
from pathlib import Path


def last_commits(repository: Path, folders: list[Path]) -> dict[str, str]:
    """Path of each file below the folders, relative to the repository, to the last commit that touched it.

    Empty outside a repository or without git.
    """
    argv = [
        "git",
        "log",
        "--format=%x00%H",
        "--name-only",
        "--relative",
        "--",
        *map(str, folders),
    ]
    try:
        text = subprocess.run(
            argv, cwd=repository, check=True, capture_output=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    found: dict[str, str] = {}
    for entry in text.split("\0")[1:]:
        commit, *paths = entry.split("\n")
        for path in filter(None, paths):
            found.setdefault(path, commit)
    return found

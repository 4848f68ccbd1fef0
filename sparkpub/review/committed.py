"""What git knows of a campaign: the analysis that was declared when its first record was committed."""

import json
import subprocess
from pathlib import Path
from typing import Any

FILE = "campaign.json"
_ADDED = "commit "
_SECONDS = 30


def first_matrix(folder: Path) -> dict[str, Any] | None:
    """The matrix of a campaign as it was committed with the campaign's first record; None where git does not know it:
    outside a repository, in a clone without its history, or before the first commit."""
    if _git(folder, "rev-parse", "--is-shallow-repository") != "false\n":
        return None
    history = _git(
        folder,
        "log",
        "--reverse",
        "--diff-filter=A",
        f"--format={_ADDED}%H",
        "--name-only",
        "--relative",
        "--",
        "*.json",
    )
    commit = ""
    for line in (history or "").splitlines():
        if line.startswith(_ADDED):
            commit = line.removeprefix(_ADDED)
        elif line not in ("", FILE):
            break
    else:
        return None
    try:
        document = json.loads(_git(folder, "show", f"{commit}:./{FILE}") or "null")
    except ValueError:
        return None
    matrix = document.get("matrix") if isinstance(document, dict) else None
    return matrix if isinstance(matrix, dict) else None


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails or is not there."""
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        ).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None

"""What git tells of a folder, for whoever only reads: the collector's commits and pushes have a git of their own."""

import subprocess
from pathlib import Path

_SECONDS = 30


def told(folder: Path, *arguments: str) -> str | None:
    """What git prints, without blank ends; None where it fails, takes too long or is not there."""
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None

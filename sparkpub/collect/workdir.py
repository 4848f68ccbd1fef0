"""The folder that a command works in: below one of its collector's alone, where nobody else on the machine gets.

What a command writes there becomes figures. A command that runs as another user, in a container or under another root,
reaches the folder through a mount, and may write there like anybody who does; by its path on the machine only the
collector reaches it.
"""

import os
import shutil
from pathlib import Path

from sparkpub.record.errors import CollectError

WORK = "work"
PRIVATE = 0o700
OWN = "0700, the collector's own"
"""How a record calls a folder that nobody else was let into."""
SHARED = "0777 below the collector's own 0700, for a command that runs as another user"
"""How it calls one into which a mount leads."""


def new(place: Path) -> Path:
    """A new folder with a private `work` in it; what lay there goes. Raises CollectError where that stays, as a link
    does."""
    remove(place)
    if os.path.lexists(place):
        # A container's root may leave files that are not ours to remove; an old report must never pass for a new one.
        raise CollectError(
            "the last run left files that cannot be removed",
            where=str(place / WORK),
            remedy="remove them as root, or give the environment user: with your own id",
        )
    place.mkdir(mode=PRIVATE)
    (place / WORK).mkdir(mode=PRIVATE)
    (place / ".gitignore").write_text("*\n")
    return place / WORK


def remove(place: Path) -> None:
    """Remove such a folder as far as it goes; a link is not followed."""
    shutil.rmtree(place, ignore_errors=True)


def share(folder: Path) -> str:
    """Let every user who reaches a folder through a mount work in it and on the files in it; returns how, for the
    record."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o777 if path.is_dir() else 0o666)
    return SHARED

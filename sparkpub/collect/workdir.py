"""The folder that a command works in: below one of its collector's alone, where nobody else on the machine gets.

What a command writes there becomes figures. A command that runs as another user, in a container or under another root,
reaches the folder through a mount, and may write there like anybody who does; by its path on the machine only the
collector reaches it.
"""

import os
import shutil
import stat
from pathlib import Path

from sparkpub.record.errors import CollectError

WORK = "work"
PRIVATE = 0o700
OWN = "0700, the collector's own"
"""How a record calls a folder that nobody else was let into."""
SHARED = "0777 below the collector's own 0700, for a command that runs as another user"
"""How it calls one into which a mount leads."""


def new(place: Path) -> Path:
    """A new folder with a private `work` in it; what lay there goes. Raises CollectError where that stays, or where
    something else than a folder is in its place."""
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
    """Remove such a folder as far as it goes. Raises CollectError where something else is in its place."""
    refuse_planted(place)
    shutil.rmtree(place, ignore_errors=True)


def refuse_planted(place: Path) -> None:
    """Raise CollectError for a link in the place of such a folder, or anything else that is none: a campaign may be
    anybody's, and what is written there would land where the link leads."""
    try:
        kind = place.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISDIR(kind):
        what = "a link" if stat.S_ISLNK(kind) else "something else than a folder"
        raise CollectError(
            f"{what} is where the collector keeps a run",
            where=str(place),
            remedy="remove it, and see who put it there",
        )


def share(folder: Path) -> str:
    """Let every user who reaches a folder through a mount work in it and on the files in it; returns how, for the
    record."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o777 if path.is_dir() else 0o666)
    return SHARED

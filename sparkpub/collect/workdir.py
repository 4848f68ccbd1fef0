"""The folder that a command works in: its collector's alone, and whoever else has to work in it is let in by name.

What a command writes there becomes figures, so that nobody else on the machine may write there. A command that runs as
another user, in a container or under another root, becomes the folder's owner where the collector is root. Any other
collector may not give folders away, and names the user in the folder's access list (POSIX ACL, acl(5)).
"""

import os
import shutil
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

from sparkpub.record.errors import CollectError

WORK = "work"
PRIVATE = 0o700
OWN = "0700, the collector's own"
"""How a record calls a folder that nobody else was let into."""
_ACL_ENTRY = struct.Struct("<HHI")
_ACL_VERSION = struct.pack("<I", 2)
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
"""Kinds of entries of an access list, as the kernel numbers them (linux/posix_acl.h)."""
_ALL, _READ_WRITE = 7, 6
_NO_ID = 0xFFFFFFFF


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
    place.mkdir(mode=0o755)  # whoever may write to it could put another `work` there
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


def admit(folder: Path, user: int | None) -> str:
    """Let a user of this machine work in a folder and on the files in it; returns how, for the record. None is a user
    that is not known here. Raises CollectError where the file system knows no access lists."""
    own = os.geteuid()
    if user in (None, 0, own):
        return OWN
    paths = [folder, *folder.rglob("*")]
    if own == 0:
        for path in paths:
            os.chown(path, user, -1, follow_symlinks=False)
        return f"0700, owned by user {user}, as whom the command runs"
    try:
        for path in paths:
            _list_user(path, user)
    except OSError as error:
        raise CollectError(
            f"user {user}, as whom the command runs, cannot be let into the run's folder: {error.strerror}",
            where=str(folder),
            remedy="collect as root, keep the data on a file system with access lists, or give the environment "
            "user: with your own id",
        ) from None
    return f"the collector's own, with user {user}, as whom the command runs, in its access list"


def _list_user(path: Path, user: int) -> None:
    """Name a user in the access list of a file or folder. What is made in a folder later is for both, too: else the
    collector could not remove what the user leaves."""
    if path.is_symlink():
        return
    if not path.is_dir():
        _set(path, "access", _acl([user], _READ_WRITE))
        return
    _set(path, "access", _acl([user], _ALL))
    _set(path, "default", _acl(sorted((user, os.geteuid())), _ALL))


def _acl(users: Sequence[int], rights: int) -> bytes:
    """The bytes of an access list: everything for the owner, `rights` for these users, nothing for anybody else."""
    entries = [(_OWNER, rights, _NO_ID)]
    entries += [(_USER, rights, user) for user in users]
    entries += [(_GROUP, 0, _NO_ID), (_MASK, rights, _NO_ID), (_OTHER, 0, _NO_ID)]
    return _ACL_VERSION + b"".join(_ACL_ENTRY.pack(*entry) for entry in entries)


def _set(path: Path, kind: str, content: bytes) -> None:
    os.setxattr(path, f"system.posix_acl_{kind}", content, follow_symlinks=False)


def user_number(spec: str | None, passwd: str) -> int | None:
    """The id behind `name`, `id` or either with a group, by the lines of an /etc/passwd; root's where nothing is said,
    None for a name that is not in it."""
    name = (spec or "0").partition(":")[0].removeprefix("+") or "0"
    if name.isdecimal():
        return int(name)
    for line in passwd.splitlines():
        fields = line.split(":")
        if fields[0] == name and len(fields) > 2 and fields[2].isdecimal():
            return int(fields[2])
    return None

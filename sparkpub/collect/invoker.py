"""Who really runs the collector: under sudo, files and commits belong to the user who called it."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class User:
    """A user of this machine."""

    uid: int
    gid: int
    name: str
    home: str


def user() -> User | None:
    """The user behind sudo; None where the collector runs as itself."""
    if os.geteuid() != 0 or not os.environ.get("SUDO_UID", "").isdigit():
        return None
    uid = int(os.environ["SUDO_UID"])
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return None
    return None if uid == 0 else User(uid, entry.pw_gid, entry.pw_name, entry.pw_dir)


def give(path: Path) -> None:
    """Make a file or folder the invoking user's."""
    owner = user()
    if owner is not None:
        os.chown(path, owner.uid, owner.gid, follow_symlinks=False)


def make_folder(path: Path) -> None:
    """Create a folder and those above it; new ones belong to the invoking user."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for place in missing:
        give(place)


def process_arguments() -> dict[str, Any]:
    """Arguments of `subprocess.run` that let a program run as the invoking user."""
    owner = user()
    if owner is None:
        return {"env": dict(os.environ)}
    env = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    env |= {"HOME": owner.home, "USER": owner.name, "LOGNAME": owner.name}
    return {"user": owner.uid, "group": owner.gid, "extra_groups": os.getgrouplist(owner.name, owner.gid), "env": env}

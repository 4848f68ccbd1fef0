"""Who really runs the collector: under sudo, files and commits belong to the user who called it."""

import os
import pwd
from pathlib import Path
from typing import Any


def user() -> pwd.struct_passwd | None:
    """The user behind sudo; None where the collector runs as itself."""
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not uid.isdigit() or int(uid) == 0:
        return None
    try:
        return pwd.getpwuid(int(uid))
    except KeyError:  # below `sudo chroot` the user has no name
        return None


def give(path: Path) -> None:
    """Make a file or folder the invoking user's."""
    owner = user()
    if owner is not None:
        os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)


def make_folder(path: Path) -> None:
    """Create a folder and those above it; new ones belong to the invoking user."""
    for place in [
        place for place in (*reversed(path.parents), path) if not place.exists()
    ]:
        place.mkdir(exist_ok=True)
        give(place)


def process_arguments() -> dict[str, Any]:
    """Arguments of `subprocess.run` that let a program run as the invoking user."""
    owner = user()
    if owner is None:
        return {"env": dict(os.environ)}
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SUDO_")
    }
    env |= {"HOME": owner.pw_dir, "USER": owner.pw_name, "LOGNAME": owner.pw_name}
    groups = os.getgrouplist(owner.pw_name, owner.pw_gid)
    return {
        "user": owner.pw_uid,
        "group": owner.pw_gid,
        "extra_groups": groups,
        "env": env,
    }

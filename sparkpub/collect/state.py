"""The collector's own notes on this machine: what must be undone after a crash, and what it does now.

They lie in `SPARKPUB_STATE`, else `/var/lib/sparkpub` for root and the state folder of the user for anybody else:
two lines that need no platformdirs.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from sparkpub.collect import invoker
from sparkpub.record import outside
from sparkpub.record.errors import CollectError

VARIABLE = "SPARKPUB_STATE"
NOTE = "status.json"
"""What the collector does now."""
_PRIVATE = 0o700


def leases_of(campaign: str) -> str:
    """The note of a fleet: `[{"machine", "run", "state"}]`."""
    return f"leases-{campaign}.json"


def folder() -> Path:
    """The folder of the notes; it need not exist."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/lib/sparkpub")
    return (
        Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        / "sparkpub"
    )


def refuse_foreign() -> None:
    """Make the folder of the notes, for its owner alone. Raises CollectError for one of another user, or in which
    others may write: what the next collector undoes, under root with its rights, stands in them."""
    place = folder()
    with suppress(
        OSError
    ):  # who has no home can keep no notes, and says so where one is needed
        place.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    try:
        found = place.stat()
    except OSError:
        return
    owners = {0, os.geteuid()}
    behind_sudo = invoker.user()
    if behind_sudo is not None:
        owners.add(behind_sudo.pw_uid)
    if found.st_uid not in owners or not stat.S_ISDIR(found.st_mode):
        what = "the collector's notes would lie with another user, or in no folder"
        remedy = f"set {VARIABLE} to a folder of your own"
        raise CollectError(what, where=str(place), remedy=remedy)
    if os.environ.get(VARIABLE):
        # It may be a folder that others need as it is, such as /tmp: its mode is not ours to change.
        _refuse_open(place, found.st_mode)
    elif found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != _PRIVATE:
        place.chmod(_PRIVATE)


def _refuse_open(place: Path, mode: int) -> None:
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        what = "other users may write where the collector's notes would lie"
        remedy = f"set {VARIABLE} to a folder of your own"
        raise CollectError(what, where=str(place), remedy=remedy)


def write(name: str, text: str | None) -> None:
    """Replace a note, or remove it where `text` is None."""
    place = folder() / name
    if text is None:
        place.unlink(missing_ok=True)
        return
    # The sampler asks for the folder alone, and has to be there quickly and take little memory.
    from sparkpub.record.store import write_atomic  # noqa: PLC0415

    place.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    write_atomic(place, text)


def read(name: str) -> str | None:
    """A note, or None where there is none."""
    try:
        return outside.content(folder() / name).decode("utf-8")
    except (OSError, ValueError):
        return None

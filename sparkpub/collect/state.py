"""The collector's own notes on this machine: what must be undone after a crash, and what it does now.

They lie in `SPARKPUB_STATE`, else `/var/lib/sparkpub` for root and the state folder of the user for anybody else:
two lines that need no platformdirs.
"""

import os
from pathlib import Path

from sparkpub.record import outside

VARIABLE = "SPARKPUB_STATE"
NOTE = "status.json"
"""What the collector does now."""


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


def write(name: str, text: str | None) -> None:
    """Replace a note, or remove it where `text` is None."""
    place = folder() / name
    if text is None:
        place.unlink(missing_ok=True)
        return
    # The sampler asks for the folder alone, and has to be there quickly and take little memory.
    from sparkpub.record.store import write_atomic  # noqa: PLC0415

    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(place, text)


def read(name: str) -> str | None:
    """A note, or None where there is none."""
    try:
        return outside.content(folder() / name).decode("utf-8")
    except (OSError, ValueError):
        return None

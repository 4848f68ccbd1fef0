"""The collector's own notes on this machine: what must be undone after a crash, and what it does now.

They lie in `SPARKPUB_STATE`, else `/var/lib/sparkpub` for root and the state folder of the user for anybody else:
two lines that need no platformdirs.
"""

import json
import os
from pathlib import Path
from typing import Any

from sparkpub.record import outside

VARIABLE = "SPARKPUB_STATE"
NOTE = "status.json"
"""What the collector does now, and as `owner` which process it is."""


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
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "sparkpub"


def write(name: str, document: Any) -> None:
    """Replace a note, or remove it where there is nothing to note."""
    place = folder() / name
    if not document:
        place.unlink(missing_ok=True)
        return
    # The sampler asks for the folder alone, and has to be there quickly and take little memory.
    from sparkpub.record.store import write_atomic  # noqa: PLC0415

    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(place, json.dumps(document))


def read(name: str) -> Any:
    """A note; None where there is none, or a torn one."""
    try:
        return json.loads(outside.content(folder() / name))
    except (OSError, ValueError):
        return None


def current() -> dict[str, Any] | None:
    """What a collector with these notes does now; None where none runs."""
    from sparkpub.collect.machine.processes import lives  # noqa: PLC0415 - it asks for the folder

    note: dict[str, Any] | None = read(NOTE)
    if note is None or not lives(note.pop("owner", "")):
        return None
    return note

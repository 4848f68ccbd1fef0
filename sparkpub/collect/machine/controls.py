"""What the collector changes on the machine where the matrix asks for it, and always changes back.

What must be undone is noted on disk before it is done, so that the next collector undoes it after a crash.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sparkpub.collect import state
from sparkpub.collect.machine.nvml import Gpus, opened
from sparkpub.plan.matrix import Gates
from sparkpub.record.record import Gate, Reading

_NOTE = "clocks.txt"
_PROFILE = Path("/sys/firmware/acpi/platform_profile")
DROP = Path("/proc/sys/vm/drop_caches")


def drop_caches() -> Gate:
    """Write dirty pages, drop the page cache, and say whether it worked."""
    began = time.monotonic()
    reason = None
    try:
        os.sync()
        DROP.write_text("3\n")
    except OSError as error:
        reason = f"the page cache was not dropped: {error.strerror}; run as root"
    return _gate(
        "drop_caches",
        True,
        "",
        reason,
        round(time.monotonic() - began, 3),
        missed=False,
    )


@contextmanager
def applied(
    gates: Gates, gpus: Gpus | None, why_no_gpu: str
) -> Iterator[tuple[Gate, ...]]:
    """Clocks locked where the matrix asks; released at the end, whatever happens."""
    mhz = gates.lock_clocks_mhz
    if mhz is None:
        yield ()
        return
    try:
        reason: str | None = why_no_gpu
        if gpus is not None:
            state.write(_NOTE, f"clocks locked at {mhz} MHz\n")
            reason = gpus.lock_clocks(mhz)
        yield (_gate("lock_clocks_mhz", mhz, "MHz", reason),)
    finally:
        release(gpus)


def _gate(
    name: str,
    wanted: float | str | bool,
    unit: str,
    reason: str | None,
    took: float = 0.0,
    missed: bool | None = None,
) -> Gate:
    done = reason is None
    readings = (Reading(at_seconds=took, value=wanted if done else missed),)
    return Gate(
        name=name,
        wanted=wanted,
        unit=unit,
        met=done,
        waited_seconds=took,
        readings=readings,
        reason=reason,
    )


def power_mode() -> str | None:
    """The machine's power mode in its own words; None where it has none."""
    with suppress(OSError):
        return _PROFILE.read_text().strip()
    return _said("powerprofilesctl", "get")


def _said(*argv: str) -> str | None:
    if shutil.which(argv[0]) is None:
        return None
    ended = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=10
    )
    return ended.stdout.strip() if ended.returncode == 0 else None


def release(gpus: Gpus | None) -> None:
    """Unlock the clocks, and forget that they were locked."""
    if gpus is not None:
        gpus.unlock_clocks()
    state.write(_NOTE, None)


def restore_after_crash() -> list[str]:
    """The same at the start of a collector, for one that was killed; says what was undone."""
    if state.read(_NOTE) is None:
        return []
    with opened() as (gpus, _):
        release(gpus)
        return [] if gpus is None else ["unlocked the GPU clocks"]

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

_NOTE = "restore.json"
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
    took, done = round(time.monotonic() - began, 3), reason is None
    return Gate(
        name="drop_caches",
        wanted=True,
        unit="",
        met=done,
        waited_seconds=took,
        readings=(Reading(at_seconds=took, value=done),),
        reason=reason,
    )


@contextmanager
def applied(
    gates: Gates, gpus: Gpus | None, why_no_gpu: str
) -> Iterator[tuple[Gate, ...]]:
    """Clocks locked where the matrix asks; unlocked at the end, whatever happens."""
    mhz = gates.lock_clocks_mhz
    if mhz is None:
        yield ()
        return
    reason: str | None = why_no_gpu
    if gpus is not None:
        state.write(_NOTE, {"clocks": True})
        reason = gpus.lock_clocks(mhz)
    done = reason is None
    gate = Gate(
        name="lock_clocks_mhz",
        wanted=mhz,
        unit="MHz",
        met=done,
        waited_seconds=0.0,
        readings=(Reading(at_seconds=0.0, value=mhz if done else None),),
        reason=reason,
    )
    try:
        yield (gate,)
    finally:
        _restore(gpus)


def power_mode() -> str | None:
    """The machine's power mode in its own words; None where it has none."""
    with suppress(OSError):
        return _PROFILE.read_text().strip()
    argv = ["powerprofilesctl", "get"]
    if shutil.which(argv[0]) is None:
        return None
    ended = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=10
    )
    return ended.stdout.strip() if ended.returncode == 0 else None


def _restore(gpus: Gpus | None) -> None:
    if gpus is not None:
        gpus.unlock_clocks()
    state.write(_NOTE, None)


def restore_after_crash() -> list[str]:
    """Undo what a killed collector changed; says what was undone."""
    if state.read(_NOTE) is None:
        return []
    with opened() as (gpus, _):
        _restore(gpus)
    return [] if gpus is None else ["unlocked the GPU clocks"]

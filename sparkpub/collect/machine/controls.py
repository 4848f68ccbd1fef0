"""What the collector changes on the machine where the matrix asks for it, and always changes back.

What must be undone is noted on disk before it is done, so that the next collector undoes it after a crash.
"""

import json
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
    """Clocks locked and power mode set where the matrix asks; restored at the end, whatever happens."""
    done: list[Gate] = []
    try:
        if (mhz := gates.lock_clocks_mhz) is not None:
            if gpus is not None:
                _note(clocks=True)
            done.append(
                _gate(
                    "lock_clocks_mhz",
                    mhz,
                    "MHz",
                    why_no_gpu if gpus is None else gpus.lock_clocks(mhz),
                )
            )
        if gates.power_mode is not None:
            reason: str | None = (
                "this machine offers no power modes that are known here"
            )
            if (before := power_mode()) is not None:
                _note(power_mode=before)
                reason = _switch(gates.power_mode)
            done.append(_gate("power_mode", gates.power_mode, "", reason))
        yield tuple(done)
    finally:
        if done:
            restore(gpus)


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


def _switch(mode: str) -> str | None:
    """Set a power mode; None when done, else the reason why not."""
    if not _PROFILE.exists():
        if _said("powerprofilesctl", "set", mode) is None:
            return f"powerprofilesctl refuses {mode}"
        return None
    try:
        _PROFILE.write_text(mode)
    except OSError as error:
        choices = _PROFILE.with_name("platform_profile_choices")
        known = choices.read_text().strip() if choices.exists() else "unknown"
        return f"{error.strerror}; the choices are {known}"
    return None


def _said(*argv: str) -> str | None:
    if shutil.which(argv[0]) is None:
        return None
    ended = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=10
    )
    return ended.stdout.strip() if ended.returncode == 0 else None


def restore(gpus: Gpus | None) -> list[str]:
    """Undo what is noted as changed; says what was undone."""
    noted, said = {}, []
    with suppress(ValueError, TypeError):
        noted = dict(json.loads(state.read(_NOTE) or "{}"))
    if noted.get("clocks") and gpus is not None:
        gpus.unlock_clocks()
        said.append("unlocked the GPU clocks")
    if (
        isinstance(noted.get("power_mode"), str)
        and _switch(noted["power_mode"]) is None
    ):
        said.append(f"set the power mode back to {noted['power_mode']}")
    state.write(_NOTE, None)
    return said


def restore_after_crash() -> list[str]:
    """The same at the start of a collector, for one that was killed."""
    if state.read(_NOTE) is None:
        return []
    with opened() as (gpus, _):
        return restore(gpus)


def _note(**changes: object) -> None:
    noted = json.loads(state.read(_NOTE) or "{}")
    state.write(_NOTE, json.dumps(noted | changes))

"""Whether the machine slept during a run, or its clock was set: then the run's times are not what they seem.

A machine that sleeps stops the monotonic clock but not the one that counts from boot, and a wall clock that is set
moves against both.
"""

import time
from dataclasses import dataclass

PARTED_SECONDS = 1.0
"""Clocks that part by more than this show a sleep, or a clock that was set."""


@dataclass(frozen=True)
class Clocks:
    """One moment in seconds on three clocks: without sleep, with sleep, and of the day."""

    monotonic: float
    boot: float
    wall: float

    @classmethod
    def now(cls) -> "Clocks":
        """As it is now."""
        return cls(
            time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME), time.time()
        )


def clocks_parted(began: Clocks, ended: Clocks) -> list[str]:
    """What three clocks show together, in words."""
    said = []
    slept = (ended.boot - began.boot) - (ended.monotonic - began.monotonic)
    if slept > PARTED_SECONDS:
        said.append(f"the machine slept for {slept:.0f} s")
    moved = (ended.wall - began.wall) - (ended.boot - began.boot)
    if abs(moved) > PARTED_SECONDS:
        said.append(f"the machine's clock was set by {moved:+.0f} s")
    return said

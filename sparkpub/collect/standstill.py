"""Whether the collector or the machine stood still during a run: then its times are not what they seem.

A collector that is stopped (SIGSTOP, Ctrl-Z, a debugger) beats no longer. A machine that sleeps stops the monotonic
clock but not the one that counts from boot, and a wall clock that is set moves against both.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

BEAT_SECONDS = 0.5
STILL_SECONDS = 5.0
"""A beat that comes later than this was held up by more than a busy machine."""
SLEPT_SECONDS = 1.0
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


class Heart:
    """Beats in a thread of its own, and keeps the longest time without a beat."""

    def __init__(self) -> None:
        self.began = Clocks.now()
        self.longest = 0.0
        self._last = time.monotonic()
        self._over = threading.Event()

    def beat(self) -> None:
        """One beat, now."""
        now = time.monotonic()
        self.longest = max(self.longest, now - self._last)
        self._last = now

    def run(self) -> None:
        """Beat until it is over."""
        while not self._over.wait(BEAT_SECONDS):
            self.beat()

    def end(self) -> None:
        """The last beat."""
        self._over.set()
        self.beat()

    def findings(self) -> list[str]:
        """What stood still since the beginning, in words."""
        said = []
        if self.longest > STILL_SECONDS:
            said.append(
                f"the collector did not run for {self.longest:.0f} s: stopped, or held up by others"
            )
        return said + clocks_parted(self.began, Clocks.now())


def clocks_parted(began: Clocks, ended: Clocks) -> list[str]:
    """What three clocks show together, in words."""
    said = []
    slept = (ended.boot - began.boot) - (ended.monotonic - began.monotonic)
    if slept > SLEPT_SECONDS:
        said.append(f"the machine slept for {slept:.0f} s")
    moved = (ended.wall - began.wall) - (ended.boot - began.boot)
    if abs(moved) > SLEPT_SECONDS:
        said.append(f"the machine's clock was set by {moved:+.0f} s")
    return said


@contextmanager
def beating() -> Iterator[Heart]:
    """A heart that beats meanwhile."""
    heart = Heart()
    thread = threading.Thread(target=heart.run, daemon=True)
    thread.start()
    try:
        yield heart
    finally:
        heart.end()
        thread.join()

"""What goes wrong while a run is on: throttling, foreign processes, stuck clocks, memory, kernel messages."""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from sparkpub.record.record import Event
from sparkpub.record.telemetry import (
    LEAK_GIB,
    LOAD_PERCENT,
    THROTTLES,
    Telemetry,
    clock_is_stuck,
)

SLOW_CLOCK_SAMPLES = 3
KMSG = "/dev/kmsg"
_KERNEL = re.compile(
    r"NVRM|Xid|nvidia|Out of memory|oom[-_]kill|Machine check|Hardware Error|AER:|thermal",
    re.IGNORECASE,
)
_XID = re.compile(r"\bXid\b")
_OOM = re.compile(r"out of memory|oom[-_]kill", re.IGNORECASE)


class Watch:
    """Turns samples and kernel messages into events, each kind and wording once, at the time it first appeared.

    `say` takes kind and words of each event when it is noted.
    """

    def __init__(
        self,
        clock_max_mhz: float | None,
        say: Callable[[str, str], None] = lambda _, __: None,
    ) -> None:
        self.events: list[Event] = []
        self.unavailable: dict[str, str] = {}
        self.available: float | None = None
        """MemAvailable of the last sample, in GiB."""
        self._clock_max, self._say = clock_max_mhz, say
        self._said: set[tuple[str, str]] = set()
        self._slow = 0
        self._kernel: int | None = None
        try:
            self._kernel = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK)
            with suppress(OSError):  # only messages from now on
                os.lseek(self._kernel, 0, os.SEEK_END)
        except OSError as error:
            self.unavailable["kernel_log"] = f"{KMSG} cannot be read: {error.strerror}"

    def note(self, kind: str, text: str, at: float | None = None) -> None:
        """One event, unless the same was said before."""
        if (kind, text) not in self._said:
            self._said.add((kind, text))
            moment = None if at is None else max(0.0, at)
            self.events.append(
                Event.model_validate({"at_seconds": moment, "kind": kind, "text": text})
            )
            self._say(kind, text)

    def sample(self, row: Mapping[str, str]) -> None:
        """Look at one telemetry row; rows from before the launch count only as a baseline."""
        at = float(row["elapsed_seconds"])
        self.available = _number(row["mem_available_gib"])
        if at < 0:
            return
        mask = int(row["gpu_throttle_reasons"] or "0", 16)
        for bit, words in THROTTLES.items():
            if mask & bit:
                self.note("throttle", words, at)
        if _number(row["gpu_foreign_processes"]):
            self.note("foreign-process", "another process computes on the GPU", at)
        self._look_at_clock(row, at)

    def _look_at_clock(self, row: Mapping[str, str], at: float) -> None:
        clock, use = (
            _number(row["gpu_clock_sm_mhz"]),
            _number(row["gpu_utilization_percent"]),
        )
        under_load = use is not None and use >= LOAD_PERCENT
        slow = under_load and clock_is_stuck(clock, self._clock_max)
        self._slow = self._slow + 1 if slow else 0
        if self._slow == SLOW_CLOCK_SAMPLES:
            self.note(
                "slow-clock",
                f"SM clock {clock:.0f} MHz under load, of {self._clock_max:.0f} MHz possible",
                at,
            )

    def left_behind(self, telemetry: Telemetry) -> None:
        """Memory that did not come back, once the run's processes are gone: the driver's, or shared segments."""
        for column, words in {
            "gpu_memory_used_gib": "device",
            "mem_shmem_gib": "shared",
        }.items():
            before, after = telemetry.before(column), telemetry.last(column)
            if before is not None and after is not None and after - before > LEAK_GIB:
                gone = f"{after - before:.2f} GiB of {words} memory"
                self.note("leak", f"{gone} in use after the run that were free before")

    def kernel(self, at: float | None) -> None:
        """New kernel messages about the GPU, memory or the machine's health."""
        if self._kernel is None:
            return
        while True:
            try:
                entry = os.read(self._kernel, 8192).decode(errors="replace")
                if not entry:
                    return
            except BlockingIOError:
                return
            except OSError:  # EPIPE: the ring buffer overran us; the next read goes on with what is left
                continue
            text = entry.partition(";")[2].partition("\n")[0]
            if _KERNEL.search(text):
                self.note(_kind(text), text[:500], at)

    def close(self) -> None:
        """Let go of the kernel's log."""
        if self._kernel is not None:
            os.close(self._kernel)
            self._kernel = None


def _kind(message: str) -> str:
    """The kind of event that a kernel message is."""
    if _XID.search(message):
        return "xid"
    return "oom" if _OOM.search(message) else "kernel"


def _number(text: str) -> float | None:
    return float(text) if text else None

"""What goes wrong while a run is on: throttling, memory that runs out or stays behind, kernel messages."""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from sparkpub.record.record import Event
from sparkpub.record.telemetry import LEAK_GIB, THROTTLES, Telemetry

KMSG = "/dev/kmsg"
_KINDS = {
    "xid": r"\bXid\b",
    "oom": r"out of memory|oom[-_]kill",
    "kernel": r"NVRM|nvidia|Machine check|Hardware Error|AER:|thermal",
}
"""Kinds of events to what kernel messages of them say; the first that fits counts."""


class Watch:
    """Turns samples and kernel messages into events, each kind and wording once, at the time it first appeared.

    `say` takes each event when it is noted.
    """

    def __init__(self, say: Callable[[Event], None] = lambda _: None) -> None:
        self.events: list[Event] = []
        self.unavailable: dict[str, str] = {}
        self.available: float | None = None
        """MemAvailable of the last sample, in GiB."""
        self.celsius = ""
        """The GPU's temperature in it."""
        self._say = say
        self._kernel: int | None = None
        try:
            self._kernel = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK)
            with suppress(OSError):  # only messages from now on
                os.lseek(self._kernel, 0, os.SEEK_END)
        except OSError as error:
            self.unavailable["kernel_log"] = f"{KMSG} cannot be read: {error.strerror}"

    def note(self, kind: str, text: str, at: float | None = None) -> None:
        """One event, unless the same was said before."""
        if any((event.kind, event.text) == (kind, text) for event in self.events):
            return
        moment = None if at is None else max(0.0, at)
        event = Event.model_validate({"at_seconds": moment, "kind": kind, "text": text})
        self.events.append(event)
        self._say(event)

    def sample(self, row: Mapping[str, str]) -> None:
        """Look at one telemetry row; rows from before the launch count only as a baseline."""
        at, available = float(row["elapsed_seconds"]), row["mem_available_gib"]
        self.available = float(available) if available else None
        self.celsius = row["gpu_temp_celsius"]
        if at < 0:
            return
        mask = int(row["gpu_throttle_reasons"] or "0", 16)
        for bit, words in THROTTLES.items():
            if mask & bit:
                self.note("throttle", words, at)

    def left_behind(self, telemetry: Telemetry) -> None:
        """Memory that did not come back, once the run's processes are gone: the driver's, or shared segments."""
        for column, words in (
            ("gpu_memory_used_gib", "device"),
            ("mem_shmem_gib", "shared"),
        ):
            before, after = telemetry.before(column), telemetry.last(column)
            if before is not None and after is not None and after - before > LEAK_GIB:
                gone = f"{after - before:.2f} GiB of {words} memory"
                self.note("leak", f"{gone} in use after the run that were free before")

    def kernel(self, at: float | None) -> None:
        """New kernel messages about the GPU, memory or the machine's health."""
        while self._kernel is not None:
            try:
                entry = os.read(self._kernel, 8192).decode(errors="replace")
            except BlockingIOError:
                return
            except OSError:  # EPIPE: the ring buffer overran us; the next read goes on with what is left
                continue
            if not entry:
                return
            text = entry.partition(";")[2].partition("\n")[0]
            for kind, words in _KINDS.items():
                if re.search(words, text, re.IGNORECASE):
                    self.note(kind, text[:500], at)
                    break

    def close(self) -> None:
        """Let go of the kernel's log."""
        if self._kernel is not None:
            os.close(self._kernel)
            self._kernel = None

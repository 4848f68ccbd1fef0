"""What the operator sees: one live line on a terminal, plain lines in a log, and a note for `sparkpub status`.

Not tqdm or rich: the line is also a note on disk, becomes plain lines in a log, and outlives a lost terminal.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from sparkpub.collect import state
from sparkpub.collect.machine import processes
from sparkpub.record.outside import plain
from sparkpub.record.record import Moment

Say = Callable[[str], None]


class Progress:
    """Says what happens, to `say` where that is given. A lost terminal silences it and stops nothing."""

    def __init__(self, campaign: str, say: Say | None = None) -> None:
        self._stream, self._say = sys.stdout, say
        self._live = say is None and self._stream.isatty()
        self._campaign = campaign
        self._planned = self._done = self._seen = 0
        self._began = time.monotonic()
        self._shown = False
        self._phase = ""
        self._note()

    def counts(self, done: int, planned: int) -> None:
        """How many of the runs are done before the first of them."""
        self._done = self._seen = done
        self._planned = planned

    def line(self, text: str) -> None:
        """A line that stays."""
        text = plain(text)  # it may be an engine's, and goes to a terminal
        if self._say is not None:
            self._say(text)
            return
        clock = datetime.now(UTC).strftime("%H:%M:%SZ")
        begin = "\r\x1b[K" if self._shown else ""
        self._write(f"{begin}{clock} {text}\n")
        self._shown = False

    def live(self, label: str, phase: str, detail: str = "") -> None:
        """Where the current run stands; elsewhere than on a terminal a line for each of its phases."""
        count = f"[{self._done}/{self._planned}]"
        if phase != self._phase:
            self._phase = phase
            self._note(run=label, phase=phase)
            if not self._live:
                self.line(f"{count} {label}: {phase} {detail}".rstrip())
        if self._live:
            line = f"{count}{self._eta()} | {phase} {detail} | {label}"
            shown = line[: shutil.get_terminal_size().columns - 1]
            self._write(f"\r\x1b[K{shown}")
            self._shown = True

    def finished(self) -> None:
        """One planned run more is finished with."""
        self._done += 1
        self._phase = ""

    def close(self) -> None:
        """Leave the live line behind."""
        if self._shown:
            self._write("\n")
        with suppress(OSError):
            state.write(state.NOTE, None)

    def _eta(self) -> str:
        new = self._done - self._seen
        if new == 0:
            return ""
        left = (time.monotonic() - self._began) / new * (self._planned - self._done)
        return f" ETA {duration(left)}"

    def _note(self, **doing: str) -> None:
        known = {
            "owner": processes.me(),
            "pid": os.getpid(),
            "campaign": self._campaign,
            "since": Moment.at(datetime.now(UTC)).value,
            "done": self._done,
            "planned": self._planned,
        }
        with suppress(OSError):
            state.write(state.NOTE, known | doing)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # The terminal is gone for good. Nothing may fail on it later, not even the interpreter's last flush.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._live = self._shown = False


def duration(seconds: float) -> str:
    """`3h12m`, `4m05s` or `12s`."""
    minutes, whole = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{whole:02d}s" if minutes else f"{whole}s"

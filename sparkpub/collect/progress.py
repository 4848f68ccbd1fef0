"""What the operator sees: one live line on a terminal, plain lines in a log, and a note for `sparkpub status`.

Not tqdm or rich: the line is also a note on disk, becomes plain lines in a log, and outlives a lost terminal.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from sparkpub.collect import lock, state
from sparkpub.record.outside import plain
from sparkpub.record.record import Moment


class Progress:
    """Says what happens. A lost terminal silences it and stops nothing."""

    def __init__(
        self,
        campaign: str,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._stream, self._say = sys.stdout, say
        # Emacs' shell, and terminals that say nothing of themselves, would show the sequences that replace a line.
        moves = os.environ.get("TERM", "") not in ("dumb", "unknown", "")
        self._live = say is None and self._stream.isatty() and moves
        self._campaign = campaign
        self._planned = self._done = self._seen = 0
        self._began = time.monotonic()
        self._shown = ""
        self._phase = ""
        self._throttles: set[str] = set()
        self.figure = ""
        """What the last good run came to, shown beside the one that is in progress."""

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
        line = f"{clock} {text}\n"
        if self._live and self._shown:
            line = f"\r\x1b[K{line}"
        self._write(line)
        self._shown = ""

    def event(self, label: str, kind: str, text: str) -> None:
        """What happened in a run. That the GPU lowers its clock under load is said once, since it may do so in every
        run: each record has it."""
        if kind != "throttle":
            self.line(f"{label}: {kind}: {text}")
        elif text not in self._throttles:
            self._throttles.add(text)
            self.line(f"{label}: {kind}: {text} (later runs: in their records)")

    def live(self, label: str, phase: str, detail: str) -> None:
        """Where the current run stands."""
        if phase != self._phase:
            self._phase = phase
            self._note(label, phase)
            if not self._live:
                said = [phase]
                if detail:
                    said.append(detail)
                self.line(f"{self._count()} {label}: {', '.join(said)}")
        if self._live:
            now = f"{phase} {detail} {self.figure}".strip()
            line = f"{self._count()}{self._eta()} | {now} | {label}"
            self._shown = line[: shutil.get_terminal_size().columns - 1]
            self._write(f"\r\x1b[K{self._shown}")

    def finished(self) -> None:
        """One planned run more is finished with."""
        self._done += 1
        self._phase = ""

    def close(self) -> None:
        """Leave the live line behind."""
        if self._live and self._shown:
            self._write("\n")
        with suppress(OSError):
            state.write(state.NOTE, None)

    def _count(self) -> str:
        return f"[{self._done}/{self._planned}]"

    def _eta(self) -> str:
        new = self._done - self._seen
        if new == 0:
            return ""
        left = (time.monotonic() - self._began) / new * (self._planned - self._done)
        return f" ETA {duration(left)}"

    def _note(self, label: str, phase: str) -> None:
        now = Moment.at(datetime.now(UTC)).value
        document = {
            "pid": os.getpid(),
            "campaign": self._campaign,
            "run": label,
            "phase": phase,
            "since": now,
            "done": self._done,
            "planned": self._planned,
        }
        with suppress(OSError):
            state.write(state.NOTE, json.dumps(document))

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # The terminal is gone for good. Nothing may fail on it later, not even the interpreter's last flush.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._live = False


def current() -> dict[str, object] | None:
    """What a collector on this machine does now; None where none runs."""
    holder = lock.holder()
    if holder is None:
        return None
    told = ("pid", "campaign", "run", "phase", "since", "done", "planned")
    return {name: holder[name] for name in told if name in holder}


def duration(seconds: float) -> str:
    """`3h12m`, `4m05s` or `12s`."""
    whole = max(0, round(seconds))
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    if whole >= 60:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole}s"

"""A process from its launch to its end: the command of a run, or the server that it is a client of."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkpub.collect.environments.base import Environment, Exit, Launch
from sparkpub.record import patterns
from sparkpub.record.errors import CollectError, NeverStartedError

MOST = 1 << 30
"""Bytes of a log while its process is on."""
_LINE = 1 << 16


class Log:
    """What a process prints, raw, in a file of a private folder as it comes, up to `MOST` bytes; and when its
    measurement began and ended, on the monotonic clock: when the first text that `begins` matches was printed, and the
    last line that `ends` does. One thread writes, and another may close it meanwhile: a server prints on."""

    def __init__(
        self, path: Path, begins: str | None = None, ends: str | None = None
    ) -> None:
        self.problem: str | None = None
        """Why the file could not be written to its end, in words."""
        self.began: float | None = None
        self.ended: float | None = None
        # The matrix may bring them, and the thread that reads the output must not wait for a match.
        self._begins = None if begins is None else patterns.compiled(begins.encode())
        self._ends = None if ends is None else patterns.compiled(ends.encode())
        self._rest = b""
        self._file = path.open("ab", buffering=0)
        self._turn = threading.Lock()

    def into(self, path: Path) -> None:
        """From here on, the file at `path` takes it."""
        with self._turn:
            self._file.close()
            self._file = path.open("ab", buffering=0)

    def write(self, chunk: bytes) -> None:
        """Take the next bytes; what comes after the end is not the run's."""
        with self._turn:
            if not self._file.closed:
                self._look_for_marks(chunk)
                self._take(chunk)

    def _look_for_marks(self, chunk: bytes) -> None:
        now = time.monotonic()
        printed = self._rest + chunk
        # A progress bar ends its first line only with its second.
        if self.began is None and self._begins and self._begins.search(printed):
            self.began = now
        cut = max(printed.rfind(b"\n"), printed.rfind(b"\r")) + 1
        self._rest = printed[cut:][-_LINE:]
        self._look_for_end(printed[:cut], now)

    def _look_for_end(self, lines: bytes, now: float) -> None:
        if self._ends is not None and self._ends.search(lines):
            self.ended = now

    def _take(self, chunk: bytes) -> None:
        if self._file.tell() + len(chunk) > MOST:
            self.problem = f"it is longer than {MOST >> 20} MiB"
        # A disk that is full ends the file and not the thread that reads the output: the command would block on a pipe
        # that nobody empties.
        try:
            while chunk and self.problem is None:
                chunk = chunk[self._file.write(chunk) :]
        except OSError as error:
            self.problem = error.strerror or str(error)

    def close(self) -> None:
        """Take nothing more; the last line may have no end. Safe to call twice."""
        with self._turn, suppress(OSError):
            self._look_for_end(self._rest, time.monotonic())
            self._rest = b""
            self._file.close()


class Process:
    """What was launched in an environment.

    Raises CollectError where it cannot be started, as NeverStartedError where nothing can be started there now.
    """

    def __init__(self, place: tuple[Environment, Any], launch: Launch) -> None:
        environment, options = place
        self.launched, self.launched_epoch = time.monotonic(), time.time()
        self.seconds, self.ended = 0.0, datetime.now(UTC)
        """From the launch to the end, or to the last look; and when that was by the clock, which goes on while the
        machine sleeps."""
        self.exit: Exit | None = None
        try:
            self.running = environment.launch(launch, options)
        except CollectError as error:
            if environment.obstacles(options):
                raise NeverStartedError(
                    error.what, where=error.where, remedy=error.remedy
                ) from None
            raise

    def ticks(self, pace: float) -> Iterator[float]:
        """The seconds since the launch, every `pace` seconds until it ends: its end wakes us at once."""
        while self.look(pace) is None:
            yield self.seconds

    def look(self, timeout: float = 0.0) -> Exit | None:
        """How it ended; None where it is still running after so many seconds."""
        if self.exit is None:
            self._take(self.running.wait(timeout))
        return self.exit

    def _take(self, ended: Exit | None) -> None:
        self.exit, self.ended = ended, datetime.now(UTC)
        self.seconds = time.monotonic() - self.launched

    def close(self) -> None:
        """End it where it runs, and undo all that launching did. Safe to call twice."""
        try:
            if self.exit is None:
                self._take(self.running.stop())
        finally:
            self.running.close()


def how(ended: Exit) -> str:
    """How a process ended, in words."""
    return ended.error or f"exit status {ended.code}"

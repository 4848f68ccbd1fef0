"""What the command of a run prints, or the server that it is a client of."""

import threading
import time
from contextlib import suppress
from pathlib import Path

from sparkpub.record import patterns

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

"""Signals, turned into two questions: finish after the run in hand, or stop now?

Ctrl-C once asks to finish, twice to stop. SIGTERM, and the hang-up of a lost terminal, stop at once.
"""

import os
import select
import signal
import time
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """What the operator or the machine asked for. A context: the handlers are in force within it."""

    def __init__(self) -> None:
        self.finish = False
        self.stop = False
        self.reason = ""
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        os.set_blocking(self._reader, False)
        self._before: dict[int, Any] = {}
        self._wakeup = -1

    def __enter__(self) -> "Interruption":
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._reader)
        os.close(self._writer)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and not self.finish:
            self.finish, self.reason = True, "Ctrl-C"
        else:
            self.finish = self.stop = True
            self.reason = "Ctrl-C, twice" if number == signal.SIGINT else signal.Signals(number).name

    def wait(self, seconds: float) -> bool:
        """Sleep; True, and at once, where nothing new may be started any more."""
        end = time.monotonic() + seconds
        while not self.finish and (left := end - time.monotonic()) > 0:
            if select.select([self._reader], [], [], left)[0]:
                os.read(self._reader, 4096)
        return self.finish

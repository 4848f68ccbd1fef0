"""Signals, turned into two questions: finish after the current run, or stop now?

Ctrl-C once asks to finish, twice to stop. SIGTERM, and the hang-up of a lost terminal, stop at once. Who was asked once
is on the way out and is not killed by being asked again: not while it puts the machine back, and not after that.
"""

import atexit
import signal
import time
from types import FrameType, TracebackType
from typing import Any

GLANCE = 0.1
"""Seconds after which a sleeper looks up: a handler must not take locks, so nothing can wake it."""


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _unheard(_number: int, _frame: FrameType | None) -> None:
    """Not `SIG_IGN`, which every process that is started afterwards would inherit: git with its hooks, for one."""


def _ignore() -> None:
    """For the end of the interpreter, which takes its handlers away and starts nothing any more."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class Interruption:
    """What the operator or the machine asked for. A context: the handlers are in force within it."""

    def __init__(self) -> None:
        self.finish = False
        self.stop = False
        self.reason = ""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, _unheard if self.finish else handler)
        if self.finish:
            atexit.register(_ignore)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and not self.finish:
            self.finish, self.reason = True, "Ctrl-C"
        else:
            self.finish = self.stop = True
            self.reason = signal.Signals(number).name
            if number == signal.SIGINT:
                self.reason = "Ctrl-C, twice"

    @property
    def stopped(self) -> str | None:
        """Why nothing new may be started any more, in words; None while something may."""
        return f"stopped by {self.reason}" if self.finish else None

    def wait(self, seconds: float) -> bool:
        """Sleep; True, and within a moment, where nothing new may be started any more."""
        end = time.monotonic() + seconds
        while not self.finish and (left := end - time.monotonic()) > 0:
            time.sleep(min(GLANCE, left))
        return self.finish

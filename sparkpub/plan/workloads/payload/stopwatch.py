"""The clock, the phases and the options that our payloads share.

It lies beside each of them and is what they import first: the clock starts before their other imports, which are part
of loading.
"""

import json
import sys
import time
from types import SimpleNamespace
from typing import Any

START = time.perf_counter()
START_EPOCH = time.time()


def options() -> SimpleNamespace:
    """The flags of the command line, each with its value: `--batch-size 8` as `batch_size`, a number where it is one,
    and True for a flag without a value."""
    found: dict[str, Any] = {}
    name = ""
    for word in sys.argv[1:]:
        if word.startswith("--"):
            name = word[2:].replace("-", "_")
            found[name] = True
        else:
            found[name] = json.loads(word) if word.isdecimal() else word
    return SimpleNamespace(**found)


class Phases:
    """The phases of a run, each from the end of the one before it, in seconds since the payload began."""

    def __init__(self) -> None:
        self._marked: list[dict[str, Any]] = []

    def mark(self, name: str) -> None:
        """A phase ends now."""
        start = self._marked[-1]["end_seconds"] if self._marked else 0.0
        end = time.perf_counter() - START
        phase = {"name": name, "start_seconds": start, "end_seconds": end}
        self._marked.append(phase)

    def begin_measuring(self) -> None:
        """Loading and warming up are over, and the collector hears it."""
        self.mark("warmup")
        print("sparkpub: measuring", flush=True)

    def report(self) -> dict[str, Any]:
        """For the report of the payload."""
        return {"phases_epoch": START_EPOCH, "phases": self._marked}

"""The collector's side of the sampler: start it, follow what it writes, and read it when all is over."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sparkpub.record.errors import CollectError
from sparkpub.record.telemetry import Telemetry, parse


class Sampling:
    """A sampler that has taken its first baseline sample. Raises CollectError where it does not start.

    `server` is the root process of the server that the run will be a client of; `tenants`: it measures one that nobody
    here started.
    """

    def __init__(
        self,
        path: Path,
        interval: float,
        gpus: Sequence[int] | None,
        server: int | None = None,
        *,
        tenants: bool = False,
    ) -> None:
        settings = {
            "path": str(path),
            "interval": interval,
            "gpus": None if gpus is None else list(gpus),
            "server": server,
            "tenants": tenants,
        }
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", "sparkpub.collect.sampler", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is for the collector: it decides when sampling ends.
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        if process.stdout.readline() != "ready\n":
            with process:
                said = process.stderr.read().strip().splitlines() or ["it said nothing"]
            raise CollectError(
                f"the sampler does not start: {said[-1]}", remedy="run sparkpub doctor"
            )
        self._rows = path.open(encoding="utf-8")
        self._header: list[str] = []
        self._rest = ""

    def launched(self, pid: int, at: float) -> None:
        """The run began: its root process, and when on the monotonic clock."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(f"{pid} {at!r}\n")
            self._process.stdin.flush()

    def fresh(self) -> Iterator[dict[str, str]]:
        """Samples written since the last call, as column to text."""
        *lines, self._rest = (self._rest + self._rows.read()).split("\n")
        for line in lines:
            cells = line.split(",")
            if not self._header:
                self._header = cells
            elif len(cells) == len(self._header):
                yield dict(zip(self._header, cells, strict=True))

    def alive(self) -> bool:
        """Whether it still samples."""
        return self._process.poll() is None

    def close(self) -> None:
        """One last sample, then the notes."""
        assert self._process.stdin is not None
        with self._process, self._rows:
            with suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()


def read(path: Path) -> Telemetry:
    """The finished telemetry of a run; empty where the file is not there."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError:
        return Telemetry({})

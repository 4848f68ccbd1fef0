"""What lies beside a record: the log as it came, redacted and capped, and the files that the run wrote."""

import re
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkpub.record import Evidence
from sparkpub.redaction import Redactor
from sparkpub.store import EVIDENCE_CAP, file_sha256, write_atomic

_TAIL = EVIDENCE_CAP // 4
_LINE = 1 << 16


class Log:
    """A run's log: takes chunks as they come, redacts whole lines, keeps the beginning and the end.

    `came` is when the first line that the regular expression `awaited` matches was printed, on the monotonic clock.
    """

    def __init__(self, path: Path, redactor: Redactor, cap: int = EVIDENCE_CAP, awaited: str | None = None) -> None:
        self.came: float | None = None
        self._awaited = None if awaited is None else re.compile(awaited.encode())
        self._file = path.open("wb")
        self._redactor = redactor
        self._rest = b""
        self._written, self._head = 0, cap - min(_TAIL, cap // 4)
        self._tail: deque[bytes] = deque()
        self._tail_bytes, self._tail_cap, self._cut = 0, cap - self._head - 200, 0

    @property
    def truncated(self) -> bool:
        """Whether something in the middle was cut."""
        return self._cut > 0

    def write(self, chunk: bytes) -> None:
        """Take the next bytes of the command's output; what comes after the end is not the run's."""
        if self._file.closed:
            return
        self._rest += chunk
        cut = max(self._rest.rfind(b"\n"), self._rest.rfind(b"\r")) + 1
        if cut == 0 and len(self._rest) > _LINE:
            cut = self._rest.rfind(b" ") + 1 or len(self._rest)
        if cut:
            self._keep(self._redactor.content(self._rest[:cut]))
            self._rest = self._rest[cut:]

    def _keep(self, content: bytes) -> None:
        if self.came is None and self._awaited is not None and self._awaited.search(content):
            self.came = time.monotonic()
        if self._written + len(content) <= self._head and not self._tail:
            self._file.write(content)
            self._file.flush()
            self._written += len(content)
            return
        self._tail.append(content)
        self._tail_bytes += len(content)
        while self._tail_bytes > self._tail_cap and len(self._tail) > 1:
            gone = len(self._tail.popleft())
            self._tail_bytes -= gone
            self._cut += gone

    def close(self) -> None:
        """Write what was held back; a cut is marked where it is. Safe to call twice."""
        if self._file.closed:
            return
        self._keep(self._redactor.content(self._rest))
        self._rest = b""
        if self._cut:
            self._file.write(b"\n[sparkpub: %d bytes cut here: logs are capped]\n" % self._cut)
        self._file.writelines(self._tail)
        self._file.close()


@dataclass
class Sealed:
    """Evidence in its final place. `content` is what the workload's parser reads, by role."""

    evidence: tuple[Evidence, ...] = ()
    content: dict[str, bytes] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)

    def add(self, role: Any, path: Path, truncated: bool = False) -> None:
        """One file more, as it lies there now."""
        size, sha256 = path.stat().st_size, file_sha256(path)
        self.evidence += (Evidence(role=role, path=path.name, sha256=sha256, bytes=size, truncated=truncated),)


def seal(
    run_folder: Path, folder: Path, stem: str, outputs: Mapping[str, str], redactor: Redactor, *, cut: bool
) -> Sealed:
    """Move the log, telemetry and outputs of a run from its own folder beside its record, as `<stem>.<role>…`."""
    sealed = Sealed()
    for role, name, suffix in (("log", "log", ".log"), ("telemetry", "telemetry.csv", ".telemetry.csv")):
        source, target = run_folder / name, folder / f"{stem}{suffix}"
        if source.is_file():
            if role == "log":
                sealed.content["log"] = source.read_bytes()
            source.replace(target)
        if target.is_file():
            sealed.add(role, target, cut and role == "log")
        else:
            sealed.unavailable[role] = "the run ended before it was written"
    for role, name in outputs.items():
        content = _output(run_folder / "work", name)
        target = folder / f"{stem}.{role}.json"
        if content is None and target.is_file():  # sealed already, by a collector that was killed right after
            content = target.read_bytes()
        if content is None:
            sealed.unavailable[role] = "the command did not write it"
            continue
        sealed.content[role] = redactor.content(content)
        if len(sealed.content[role]) > EVIDENCE_CAP:
            sealed.unavailable[role] = f"{len(content)} bytes are over the cap of {EVIDENCE_CAP}"
            continue
        write_atomic(target, sealed.content[role])
        sealed.add(role, target)
    return sealed


def _output(work: Path, name: str) -> bytes | None:
    """A file the command wrote. Links are not followed: the command may be anybody's."""
    path = work / name
    if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(work.resolve()):
        return None
    return path.read_bytes()

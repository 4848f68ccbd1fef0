"""What was worked out from the files of a campaign, kept as long as none of them changes.

A command that was run before finds here what it found then, and reads no record, log or telemetry again. What is kept
is named by a digest of everything that decides it: the inode, size, and times of modification and of change of every
file in the campaign's folder, this program and the packages that compute for it. The operating system moves the time of
change itself whenever a file is written or replaced, so that a file with an old date on it does not pass for the old
file. `check --deep` reads everything all the same.

Files that were written within the last seconds are not trusted to show a further change in their times; then nothing
is kept. It may all be deleted at any time, and two programs may share it.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from sparkpub.review import cache as caching
from sparkpub.review.cache import Cache

FOLDER = "review"
"""Below the user's cache folder."""
SETTLED_SECONDS = 2.0
"""A file that is older shows any later change in its times, even on file systems that count in whole seconds."""
_PACKAGE = Path(__file__).parent.parent
_COMPUTING = ("numpy", "scipy", "pydantic")

T = TypeVar("T")


class FileState(NamedTuple):
    """What the operating system says of a file: where one of these changes, its content may have changed."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


FolderState = Mapping[str, FileState]
"""Name to state of every file in a folder."""


def state_of(folder: Path) -> FolderState:
    """The files of a folder as they are now. A file that vanishes meanwhile is left out."""
    found = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat()
            except OSError:
                continue  # gone, or a link to nothing
            found[entry.name] = FileState(
                status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
            )
    return found


def program() -> str:
    """A digest of what turns files into findings and figures: this program, the packages that compute, and the zone
    in which local times are read."""
    rooms = [_PACKAGE / room for room in ("record", "plan", "review")]
    versions = [metadata.version(package) for package in _COMPUTING]
    return caching.key(
        caching.program(*rooms), versions, platform.python_version(), time.tzname
    )


@dataclass(frozen=True)
class Keeper:
    """Where documents are kept between commands, and the program that makes them."""

    cache: Cache
    program: str

    @classmethod
    def of_user(cls) -> "Keeper":
        """In the user's own cache folder, never in one that came with the data."""
        return cls(Cache(caching.user_folder() / FOLDER), program())


class Memory:
    """What is known of a campaign's folder in a `state`: in this process, and beyond it where there is a keeper."""

    def __init__(
        self,
        folder: Path | None = None,
        state: FolderState | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self._folder = folder or Path()
        self.state = state or {}
        self._keeper = keeper
        self._taken = time.time()
        self._made: dict[tuple[object, ...], Any] = {}

    def once(self, what: tuple[object, ...], make: Callable[[], T]) -> T:
        """What `make` makes, made once in this process."""
        if what not in self._made:
            self._made[what] = make()
        return cast(T, self._made[what])

    def document(self, what: tuple[object, ...]) -> Any:
        """The document that is kept under a name, or None."""
        data = self.data(what)
        return None if data is None else json.loads(data)

    def keep(self, what: tuple[object, ...], document: Any) -> Any:
        """Keep a document under a name; the document as it will be recalled."""
        data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        self.keep_data(what, data)
        return json.loads(data)

    def data(self, what: tuple[object, ...]) -> bytes | None:
        """The bytes that are kept under a name, or None."""
        if self._keeper is None:
            return None
        return self._keeper.cache.get(self._key(what))

    def keep_data(self, what: tuple[object, ...], data: bytes) -> None:
        """Keep bytes under a name."""
        if self._keeper is not None and self._settled():
            self._keeper.cache.put(self._key(what), data)

    def _key(self, what: tuple[object, ...]) -> str:
        return caching.key(self._files, *what)

    @cached_property
    def _files(self) -> str:
        """A digest of the folder, its files and the program."""
        assert self._keeper is not None
        lines = [
            f"{name} {state.inode} {state.size} {state.modified_ns} {state.changed_ns}"
            for name, state in sorted(self.state.items())
        ]
        return caching.key(self._keeper.program, str(self._folder), lines)

    def _settled(self) -> bool:
        """Whether the files are still those of which the state was taken, and old enough to show any change."""
        latest = max(
            (max(file.modified_ns, file.changed_ns) for file in self.state.values()),
            default=0,
        )
        old = latest < (self._taken - SETTLED_SECONDS) * 1e9
        return old and state_of(self._folder) == self.state

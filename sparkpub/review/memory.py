"""What was worked out from the files of a campaign, kept under what they hold.

A command that was run before finds here what it found then, and reads no record, log or telemetry again. What is kept
is named by a digest of everything that decides it: name and content of every file in the campaign's folder, this
program and the packages that compute for it. So it holds for a copy of the folder, too, and cannot be of other files.

What a folder holds is read once and then told, as git does it, by the inode, size, and times of modification and of
change of each file. The operating system moves the time of change itself whenever a file is written or replaced, so
that a file with an old date on it does not pass for the old file; it would take a clock that was set back. Files that
were written within the last seconds are not trusted to show a further change in their times: then nothing is kept.
`check --deep` reads everything all the same.

It may all be deleted at any time, and two programs may share it.
"""

import hashlib
import json
import marshal
import os
import platform
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from sparkpub.record.store import file_sha256
from sparkpub.review import cache as caching
from sparkpub.review.cache import Cache

FOLDER = "review"
"""Below the user's cache folder."""
SETTLED_SECONDS = 2.0
"""A file that is older shows any later change in its times, even on file systems that count in whole seconds."""
_PACKAGE = Path(__file__).parent.parent
_CONTENTS = "contents 2"
"""Under which the cache holds what a folder in a state holds; another form of the digest needs another number."""
_COMPUTING = ("numpy", "scipy", "pydantic")

T = TypeVar("T")


class FileState(NamedTuple):
    """What the operating system says of a file: where one of these changes, its content may have changed."""

    mode: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


FolderState = Mapping[str, FileState]
"""Name to state of every file in a folder."""


def state_of(folder: Path) -> FolderState:
    """The files of a folder as they are now. A file that vanishes meanwhile is left out."""
    found = {}
    # Names are looked up in the folder that is open, not along its whole path.
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                try:
                    status = entry.stat()
                except OSError:
                    continue  # gone, or a link to nothing
                found[entry.name] = FileState(
                    status.st_mode,
                    status.st_ino,
                    status.st_size,
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                )
    finally:
        os.close(handle)
    return found


def contents_of(folder: Path, state: FolderState) -> str | None:
    """A digest of the files of a folder, by name and content; None where one of them cannot be read.

    What is no ordinary file counts with its kind alone: nothing reads it.
    """
    digest = hashlib.sha256()
    for name, file in sorted(state.items()):
        held = f"kind {stat.S_IFMT(file.mode):o}"
        if stat.S_ISREG(file.mode):
            try:
                held = file_sha256(folder / name)
            except OSError:
                return None
        digest.update(f"{name}\0{held}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


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
        self._told: str | None = None
        self._made: dict[tuple[object, ...], Any] = {}

    def once(self, what: tuple[object, ...], make: Callable[[], T]) -> T:
        """What `make` makes, made once in this process."""
        if what not in self._made:
            self._made[what] = make()
        return cast(T, self._made[what])

    def holds(self, what: tuple[object, ...]) -> bool:
        """Whether something is kept under a name, told without reading any file of the folder: False where they were
        not read in this state before."""
        return self.known_files() is not None and self.data(what) is not None

    def known_files(self) -> str | None:
        """`files`, told without reading any file of the folder: None where they were not read in this state before."""
        if self._keeper is None or self._known_contents(self._keeper.cache) is None:
            return None
        return self.files

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
        key = self._key(what)
        if key is None or self._keeper is None:
            return None
        return self._keeper.cache.get(key)

    def keep_data(self, what: tuple[object, ...], data: bytes) -> None:
        """Keep bytes under a name."""
        key = self._key(what)
        if key is not None and self._keeper is not None and self.settled():
            self._keeper.cache.put(key, data)

    def _key(self, what: tuple[object, ...]) -> str | None:
        if self.files is None:
            return None
        return caching.key(self.files, *what)

    @cached_property
    def files(self) -> str | None:
        """A digest of the folder's name, its files and the program; None where nothing can be kept."""
        if self._keeper is None:
            return None
        contents = self._contents(self._keeper.cache)
        if contents is None:
            return None
        return caching.key(self._keeper.program, repr(self._folder.name), contents)

    def _contents(self, cache: Cache) -> str | None:
        """What the files hold: as it was found in this state, else read."""
        known = self._known_contents(cache)
        if known is not None:
            return known
        contents = contents_of(self._folder, self.state)
        if contents is not None and self.settled():
            cache.put(self._state_key, contents.encode())
        return contents

    def _known_contents(self, cache: Cache) -> str | None:
        """What the files hold, as it was found in this state; None where it was not."""
        if self._told is None:
            told = cache.get(self._state_key)
            if told is not None:
                self._told = told.decode()
        return self._told

    @cached_property
    def _state_key(self) -> str:
        # Version 2 has no references, so that equal states are equal bytes; a file's name need not be text.
        states = sorted((name, *state) for name, state in self.state.items())
        digest = hashlib.sha256(marshal.dumps(states, 2)).hexdigest()
        return caching.key(_CONTENTS, repr(self._folder.absolute()), digest)

    def settled(self) -> bool:
        """Whether the files are still those of which the state was taken, and old enough to show any change."""
        latest = max(
            (max(file.modified_ns, file.changed_ns) for file in self.state.values()),
            default=0,
        )
        old = latest < (self._taken - SETTLED_SECONDS) * 1e9
        return old and state_of(self._folder) == self.state

"""One place on disk for work that is dear and can be done again: drawings, and the script that makes them answer.

    cache = Cache(folder)
    cache.get(key("chart", specification, rows))   the bytes, or None
    cache.put(key(...), data)

An entry is named by a digest of everything that decides it, and begins with a digest of what it holds, so that one
which is damaged or cut off is made again. Any part may be deleted at any time, and two builds may share a folder.

Of our own, since joblib and diskcache keep Python pickles: reading a folder that somebody else wrote would run it.
"""

import functools
import hashlib
import os
import platform
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import platformdirs
from pydantic_core import to_json

from sparkpub.record.store import replacing

WORK = "work"
"""The folder of all that pages are made of."""
KEPT_DAYS = 30
"""An entry that no build asked for in so many days is deleted."""
_DIGEST_BYTES = 32
_PACKAGE = Path(__file__).parents[1]
_LIBRARIES = (
    "altair",
    "google-re2",
    "jinja2",
    "markdown",
    "markupsafe",
    "numpy",
    "pandas",
    "pydantic",
    "pyyaml",
    "scipy",
    "vl-convert-python",
)


def user_folder() -> Path:
    """Of the user and not of the project: what comes with a clone, a cache included, is not trusted."""
    return platformdirs.user_cache_path("sparkpub")


def key(*parts: object) -> str:
    """The name of an entry: SHA-256 of its parts as JSON."""
    return hashlib.sha256(to_json(parts)).hexdigest()


def code(*folders: Path) -> str:
    """SHA-256 of the Python sources in these folders: the part of a key that changes when they do."""
    return _digest(path for folder in folders for path in sorted(folder.glob("*.py")))


@functools.cache
def program() -> str:
    """Changes with this program, templates and catalogue included, and with the libraries that compute and write for
    it."""
    files = (path for path in sorted(_PACKAGE.rglob("*")) if path.is_file())
    sources = _digest(path for path in files if path.suffix != ".pyc")
    versions = [metadata.version(name) for name in _LIBRARIES]
    return key(sources, versions, platform.python_version())


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Cache:
    """Bytes by key, each in a file of its own below `folder`, which need not be there yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def empty(self) -> bool:
        """Whether nothing is known yet."""
        return not self._folder.is_dir() or next(self._folder.iterdir(), None) is None

    def get(self, key: str) -> bytes | None:
        """What was put under this key, or None where it is not there or not whole."""
        place = self._place(key)
        try:
            entry = place.read_bytes()
            os.utime(place)
        except OSError:
            return None
        digest, data = entry[:_DIGEST_BYTES], entry[_DIGEST_BYTES:]
        return data if hashlib.sha256(data).digest() == digest else None

    def put(self, key: str, data: bytes) -> None:
        """Keep the bytes under this key, unless the disk is full or not ours: nothing depends on it."""
        place = self._place(key)
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            with replacing(place) as entry:
                entry.write(hashlib.sha256(data).digest() + data)

    def prune(self, days: float = KEPT_DAYS) -> None:
        """Delete what no build asked for in so many days."""
        oldest = time.time() - days * 24 * 60 * 60
        for place in self._folder.glob("*/*"):
            try:
                if place.stat().st_mtime < oldest:
                    place.unlink()
            except FileNotFoundError:
                continue  # another build was faster

    def _place(self, key: str) -> Path:
        return self._folder / key[:2] / key[2:]

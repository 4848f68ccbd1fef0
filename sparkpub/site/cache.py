"""One place on disk for work that is dear and can be done again: drawings, and the script that makes them answer.

    cache = Cache(folder)
    cache.get(key("chart", specification, rows))   the bytes, or None
    cache.put(key(...), data)

An entry is named by a digest of everything that decides it, and is written whole or not at all. Any part may be deleted
at any time, and two builds may share a folder.

Of our own, since joblib and diskcache keep Python pickles: reading a folder that somebody else wrote would run it.
"""

import hashlib
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import platformdirs
from pydantic_core import to_json

from sparkpub.record.store import replacing

WORK = "made"
"""The folder of all that pages are made of."""
KEPT_DAYS = 30
"""An entry that no build asked for in so many days is deleted."""


def user_folder() -> Path:
    """Of the user and not of the project: what comes with a clone, a cache included, is not trusted."""
    return platformdirs.user_cache_path("sparkpub")


def key(*parts: object) -> str:
    """The name of an entry: SHA-256 of its parts as JSON."""
    return hashlib.sha256(to_json(parts)).hexdigest()


def code(folder: Path) -> str:
    """SHA-256 of the Python sources in a folder: the part of a key that changes when they do."""
    return digest_of(sorted(folder.glob("*.py")))


def digest_of(files: Iterable[Path]) -> str:
    """SHA-256 of what these files hold, one after another."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Cache:
    """Bytes by key, each in a file of its own below `folder`, which need not be there yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> bytes | None:
        """What was put under this key, or None where it is not there, or where a power cut left an empty file."""
        place = self._place(key)
        try:
            os.utime(place)
            return place.read_bytes() or None
        except OSError:
            return None

    def put(self, key: str, data: bytes) -> None:
        """Keep the bytes under this key, unless the disk is full or not ours: nothing depends on it."""
        place = self._place(key)
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            with replacing(place) as entry:
                entry.write(data)

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

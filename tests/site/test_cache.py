"""The one cache: what it holds is what was put, or nothing."""

import os
import time
from pathlib import Path

import pytest

from sparkpub.site import cache as caching
from sparkpub.site.cache import Cache


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "not there yet")


def entry(folder: Path) -> Path:
    (found,) = (path for path in folder.rglob("*") if path.is_file())
    return found


def test_what_was_put_is_there_for_the_next_build(store: Cache, tmp_path: Path) -> None:
    key = caching.key("a", 1)
    assert store.get(key) is None
    store.put(key, b"x")
    assert Cache(tmp_path / "not there yet").get(key) == b"x"


def test_a_change_of_code_changes_the_digest_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    before = caching.code(tmp_path)
    (tmp_path / "notes.txt").write_text("not code")
    assert caching.code(tmp_path) == before
    (tmp_path / "a.py").write_text("x = 2\n")
    assert caching.code(tmp_path) != before


def test_only_what_no_build_asked_for_is_deleted(store: Cache, tmp_path: Path) -> None:
    """A day over the limit goes, a day under it stays."""
    day = 24 * 60 * 60
    store.put(caching.key("old"), b"a")
    old = entry(tmp_path)
    os.utime(old, (0, time.time() - (caching.KEPT_DAYS + 1) * day))
    store.put(caching.key("young"), b"a")
    for path in tmp_path.rglob("*"):
        if path.is_file() and path != old:
            os.utime(path, (0, time.time() - (caching.KEPT_DAYS - 1) * day))
    store.prune()
    assert not old.exists()
    assert store.get(caching.key("young")) == b"a"

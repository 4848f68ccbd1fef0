"""Files of the last build that stay, since the next one would write the same.

MkDocs empties the folder of a site before each build, all but names that begin with a dot. Most of a site are records,
logs and the files of runs, which hardly change from one build to the next: removing and writing them anew took a third
of a build of 1,664 runs. So the folders that hold them wait under such names until the new tree is known.

    aside(site)            before MkDocs empties the folder
    back(site, wanted)     when every file of the new site is known; what is not wanted any more goes
    write, copy            a file, unless it is there already
"""

import os
import shutil
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

FOLDERS = ("charts", "evidence", "runs")
"""Those of the site that hold files by the thousand."""
_WAITING = ".sparkpub-"
"""With which their names begin while MkDocs empties the site."""


def aside(site: Path) -> None:
    """Take the folders out of MkDocs' way."""
    for name in FOLDERS:
        folder, waiting = site / name, site / f"{_WAITING}{name}"
        # What a link leads to is not ours to prune.
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(waiting, ignore_errors=True)  # of a build that was stopped
            folder.rename(waiting)


def back(site: Path, wanted: Collection[str]) -> None:
    """Put the folders back, without the files that are not among those wanted (addresses from the site's root)."""
    for name in FOLDERS:
        folder, waiting = site / name, site / f"{_WAITING}{name}"
        if waiting.is_dir() and not folder.exists():
            waiting.rename(folder)
            _prune(site, folder, wanted)


def _prune(site: Path, folder: Path, wanted: Collection[str]) -> None:
    """Remove files that are not wanted, and folders that are empty then."""
    from_root = folder.relative_to(site).as_posix()
    for entry in list(os.scandir(folder)):
        if entry.is_dir(follow_symlinks=False):
            _prune(site, folder / entry.name, wanted)
        elif f"{from_root}/{entry.name}" not in wanted:
            Path(entry).unlink()
    with suppress(OSError):  # where something is left in it
        folder.rmdir()


def write(path: Path, data: bytes) -> None:
    """Have a file hold these bytes."""
    known = _plain(path)
    if known is not None and known.st_size == len(data) and path.read_bytes() == data:
        return
    _make_room(path)
    path.write_bytes(data)


def copy(path: Path, source: Path) -> None:
    """Have a file be the copy of another: it stays where size and time of change are the same, as with rsync."""
    known, now = _plain(path), source.stat()
    if known is not None and _marks(known) == _marks(now):
        return
    _make_room(path)
    shutil.copyfile(source, path)
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))


def _marks(file: os.stat_result) -> tuple[int, int]:
    return file.st_size, file.st_mtime_ns


def _plain(path: Path) -> os.stat_result | None:
    """What a file is, or None where there is none or it is a link."""
    try:
        known = path.lstat()
    except OSError:
        return None
    return known if stat.S_ISREG(known.st_mode) else None


def _make_room(path: Path) -> None:
    """Have the folder of a file and no file there: nothing is written through a link, or into a file of two names."""
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)

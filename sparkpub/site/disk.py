"""Disk adapter: the docs tree as files, for any engine that turns a folder of Markdown into a site."""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from sparkpub.record.errors import SiteError
from sparkpub.record.store import write_atomic
from sparkpub.site.content import SHELL, Page, Site

MANIFEST = ".sparkpub-files.json"
"""What this program wrote into a folder: nothing else there is ever touched."""


def write(site: Site, out: Path) -> tuple[int, int]:
    """Write the site below `out` and remove what an earlier run wrote and this one did not; how many files there are,
    and how many changed.

    Files that are the same stay untouched, so a watching engine rebuilds only what is new. Raises SiteError where
    `out` holds files that somebody else wrote.
    """
    listing = out / MANIFEST
    if out.is_dir() and any(out.iterdir()) and not listing.is_file():
        raise SiteError(
            "the folder is not empty and was not written by sparkpub render",
            where=str(out),
            remedy="name an empty or new folder",
        )
    before = json.loads(listing.read_text("utf-8")) if listing.is_file() else []
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(listing, json.dumps(before, indent=0))
    there, changed = [], 0
    for name, data in contents(site):
        there.append(name)
        path = out / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            changed += 1
    for name in set(before) - set(there):
        (out / name).unlink(missing_ok=True)
    write_atomic(listing, json.dumps(sorted(there), indent=0))
    return len(there), changed


def contents(site: Site) -> Iterator[tuple[str, bytes]]:
    """Address and bytes of every file, as an engine without our plugin gets it."""
    for uri, file in chain(site.files.items(), site.runs()):
        if uri == SHELL:
            continue
        if isinstance(file, Page):
            yield uri, file.whole(uri).encode()
        else:
            yield uri, file if isinstance(file, bytes) else file.read_bytes()

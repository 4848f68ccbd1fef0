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


def write(site: Site, out: Path) -> int:
    """Write the site below `out`, in place of what an earlier call wrote there; how many files there are. Raises
    SiteError where `out` holds files that somebody else wrote."""
    listing = out / MANIFEST
    if listing.is_file():
        for name in json.loads(listing.read_text("utf-8")):
            (out / name).unlink(missing_ok=True)
    elif out.is_dir() and any(out.iterdir()):
        raise SiteError(
            "the folder is not empty and was not written by sparkpub render",
            where=str(out),
            remedy="name an empty or new folder",
        )
    found = dict(contents(site))
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(listing, json.dumps(sorted(found), indent=0))
    for name, data in found.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(data)
    return len(found)


def contents(site: Site) -> Iterator[tuple[str, bytes]]:
    """Address and bytes of every file, as an engine without our plugin gets it."""
    for uri, file in chain(site.files.items(), site.runs()):
        if uri == SHELL:
            continue
        if isinstance(file, Page):
            yield uri, file.whole(uri).encode()
        else:
            yield uri, file if isinstance(file, bytes) else file.read_bytes()

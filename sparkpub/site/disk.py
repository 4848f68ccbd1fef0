"""Disk adapter: the docs tree as files, for any engine that turns a folder of Markdown into a site."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from sparkpub.record.errors import SiteError
from sparkpub.record.store import write_atomic
from sparkpub.site.browser import runtime
from sparkpub.site.content import RUN_FILE, Content

MANIFEST = ".sparkpub-files.json"
"""What this program wrote into a folder: nothing else there is ever touched."""


def write(tree: Mapping[str, Content], out: Path) -> tuple[int, int]:
    """Write the tree below `out` and remove what an earlier run wrote and this one did not; how many files there are,
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
    beside = (f"{uri.removesuffix('.md')}/{RUN_FILE}" for uri in tree if tree[uri].late)
    # Named before they are written, so that a run that is cut off leaves nothing unknown.
    named = sorted({*before, *tree, *beside})
    write_atomic(listing, json.dumps(named, indent=0))
    there: list[str] = []
    changed = 0
    for uri, content in tree.items():
        files = content.files(uri)
        there += files
        changed += sum(_write(out / name, data) for name, data in files.items())
    for name in set(before) - set(there):
        (out / name).unlink(missing_ok=True)
    write_atomic(listing, json.dumps(sorted(there), indent=0))
    return len(there), changed


def page_assets(tree: Mapping[str, Content]) -> tuple[str, str]:
    """The addresses of the style sheet and of the module that an engine has to put into every page."""
    wanted = re.compile(rf"{re.escape(runtime.FOLDER)}/sparkpub\.[0-9a-f]+\.(css|js)")
    style, module = sorted(
        (uri for uri in tree if wanted.fullmatch(uri)),
        key=lambda uri: uri.rpartition(".")[2],
    )
    return style, module


def _write(path: Path, data: bytes) -> bool:
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True

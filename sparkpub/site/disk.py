"""Disk adapter: the docs tree as files, for any engine that turns a folder of Markdown into a site."""

import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from sparkpub.record.errors import SiteError
from sparkpub.site.content import SHELL, Page, Site, data_of


def write(site: Site, out: Path) -> int:
    """Write the site into an empty or new folder; how many files there are. Raises SiteError where it holds any."""
    if out.is_dir() and any(out.iterdir()):
        raise SiteError(
            "the folder is not empty",
            where=str(out),
            remedy="name an empty or new folder",
        )
    count = 0
    for name, data in contents(site):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(data)
        count += 1
    return count


def copy(places: Sequence[tuple[str, str]]) -> None:
    """Copy files to where they go."""
    for folder in {Path(target).parent for _, target in places}:
        folder.mkdir(parents=True, exist_ok=True)
    for source, target in places:
        shutil.copyfile(source, target)


def contents(site: Site) -> Iterator[tuple[str, bytes]]:
    """Address and bytes of every file, as an engine without our plugin gets it."""
    for uri, file in chain(site.files.items(), site.runs.items()):
        if uri == SHELL:
            continue
        if isinstance(file, Page):
            yield uri, file.whole(uri).encode()
        else:
            yield uri, data_of(file)

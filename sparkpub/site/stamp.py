"""Whether a site has to be built: it carries a digest of all that decided it, written last.

    digest = of(config, folders, options)
    known(site) == digest          nothing changed since the site was built
    remove(site), write(site, digest)

Files are known by their content and never by their times, so that a fresh clone knows a site that was built elsewhere.
Files of others that a further plugin of MkDocs reads outside of the pages do not count.
"""

import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.utils.yaml import yaml_load
from pydantic_core import to_json

from sparkpub.record import package, repository
from sparkpub.record.owner import ARENA_FILE, OWNER_FILE
from sparkpub.record.store import everything, file_sha256, write_atomic
from sparkpub.site import sources
from sparkpub.site.cache import digest_of, key
from sparkpub.site.content import SiteOptions

_PACKAGE = Path(__file__).parents[1]
NAME = ".stamp"
"""MkDocs leaves files that begin with a dot where they are, so a build has to take it away before it begins."""


def of(config: MkDocsConfig, folders: Sequence[Path], options: SiteOptions) -> str:
    """The digest of a site: its settings, the program and packages, what git knows, and every file it is made of."""
    with Path(config.config_file_path).open(encoding="utf-8") as file:
        settings = to_json(yaml_load(file), fallback=_named)
    read = {name: _digest(path) for name, path in read_files(config, folders, options)}
    return key(
        program(),
        package.public_source(),
        settings,
        options.commits,
        [repository.told(folder, "rev-parse", "HEAD") for folder in folders],
        read,
    )


@functools.cache
def program() -> str:
    """Changes with Python, with every installed package, and with this one, templates and catalogue included."""
    files = (path for path in sorted(_PACKAGE.rglob("*")) if path.is_file())
    sources = digest_of(path for path in files if path.suffix != ".pyc")
    installed = (f"{found.name} {found.version}" for found in metadata.distributions())
    return key(sys.version, sources, sorted(installed))


def known(site: Path) -> str | None:
    """The digest that a site carries; None for one that was not built to its end."""
    with suppress(OSError):
        return (site / NAME).read_text(encoding="ascii")
    return None


def write(site: Path, digest: str) -> None:
    """Say of a finished site what it was made of."""
    write_atomic(site / NAME, digest)


def remove(site: Path) -> None:
    """Take the digest away before anything in the site changes."""
    (site / NAME).unlink(missing_ok=True)


def read_files(
    config: MkDocsConfig, folders: Sequence[Path], options: SiteOptions
) -> Iterator[tuple[str, Path]]:
    """Every file that a build reads besides the packages' own, with a name that does not depend on where it lies."""
    for number, folder in enumerate(folders):
        commit = folder / OWNER_FILE  # which names all that was gathered with it
        is_gathered = commit.is_file()
        every = (Path(entry.path) for entry in everything(folder))
        for path in [commit] if is_gathered else every:
            yield f"data {number} {path.relative_to(folder)}", path
    for path, uri in sources.files(options.sources):
        yield f"page {uri}", path
    yield ARENA_FILE, options.repository / ARENA_FILE
    templates = config.theme.custom_dir
    if templates is not None:
        for path in sorted(Path(templates).rglob("*")):
            yield f"template {path.relative_to(templates)}", path
    for name in config.hooks:
        yield f"hook {name}", Path(config.config_file_path).parent / name


def _named(setting: object) -> str:
    """A setting that is no plain value, such as a function, by its name."""
    return getattr(setting, "__qualname__", type(setting).__qualname__)


def _digest(path: Path) -> str | None:
    """SHA-256 of a file; None for a link and for what is no file, or cannot be read."""
    with suppress(OSError):
        if path.is_file() and not path.is_symlink():
            return file_sha256(path)
    return None

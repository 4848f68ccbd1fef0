"""The docs tree of a site, built where anything changed that it is made of, and otherwise as it was.

A tree is kept under a digest of everything that decides it: every file that the build reads, its options, what git
knows, the program and its libraries. Files are known by their content and never by their times, so that a fresh clone
in the same place finds the tree of the one before. Only what was published is kept: a site that is refused is read
again each time.
"""

import functools
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter

from sparkpub.record import package
from sparkpub.record.errors import ClaimError
from sparkpub.record.store import everything, file_sha256
from sparkpub.review import committed
from sparkpub.review.claims import facts
from sparkpub.site import sources
from sparkpub.site.browser import runtime
from sparkpub.site.cache import WORK, Cache, key, program
from sparkpub.site.content import Content, MadeFile, SiteOptions

_FOLDER = "sites"
"""Of trees in the cache."""
_MOST = 4
"""Trees that are kept, the latest ones: each change makes another, of some ten megabytes."""
_OF_THE_MACHINE = ("cache", "compiled")
"""Options that change nothing in a tree."""

Tree = Mapping[str, Content]


@dataclass(frozen=True)
class KeptFile:
    """A file of a tree as it is kept, a line each: of thousands of runs, the text of all would take hundreds of
    megabytes. `made` is the key of one that lies in the cache by itself."""

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    uri: str
    content: Content
    made: str | None


_KEPT = TypeAdapter(KeptFile)


def tree(folders: Sequence[Path], options: SiteOptions) -> Tree:
    """The docs tree of data folders by address. Raises what `load`, `refuse` and `build` raise."""
    trees = Cache(options.cache / _FOLDER)
    name = _name(folders, options)
    entry = trees.get(name)
    if entry is not None:
        return _taken(entry, folders, options)
    built = _built(folders, options)
    trees.put_pieces(name, _lines(built))
    trees.prune_to(_MOST)
    return built


def _built(folders: Sequence[Path], options: SiteOptions) -> Tree:
    # These load pandas, which takes as long as writing the pages of a small site that did not change.
    from sparkpub.review.dataset import load  # noqa: PLC0415
    from sparkpub.site.build import build, refuse  # noqa: PLC0415

    dataset = load(*folders)
    refuse(dataset, options)
    return build(dataset, options)


def _lines(built: Tree) -> Iterator[bytes]:
    """The files of a tree as they are kept. What the browser runs is not among them: that depends on what this machine
    has for bundling it."""
    for uri, content in built.items():
        if not uri.startswith(f"{runtime.FOLDER}/"):
            made = None if content.made is None else content.made.name
            kept = KeptFile(uri, replace(content, made=None), made)
            yield _KEPT.dump_json(kept) + b"\n"


def _taken(entry: bytes, folders: Sequence[Path], options: SiteOptions) -> Tree:
    """The tree as it was built. Should a file that lies by itself be gone, all is built once more."""
    work = Cache(options.cache / WORK)
    again = functools.cache(functools.partial(_built, folders, options))
    found = {}
    for line in io.BytesIO(entry):
        kept = _KEPT.validate_json(line)
        found[kept.uri] = kept.content
        if kept.made is not None:
            make = functools.partial(_anew, again, kept.uri)
            found[kept.uri] = Content(made=MadeFile(kept.made, work, make))
    for uri, data in runtime.files(work).files.items():
        found[uri] = Content(data=data)
    return found


def _anew(again: "functools._lru_cache_wrapper[Tree]", uri: str) -> bytes:
    return again()[uri].inlined(uri)


def _name(folders: Sequence[Path], options: SiteOptions) -> str:
    """The key of the tree that these folders and options give."""
    given = {
        option.name: getattr(options, option.name)
        for option in fields(options)
        if option.name not in _OF_THE_MACHINE
    }
    return key(
        "site",
        program(),
        package.public_source(),
        given,
        [[str(folder.resolve()), folder.is_dir()] for folder in folders],
        [committed.head(folder) for folder in folders],
        {str(path): _digest(path) for path in read_files(folders, options)},
    )


def read_files(folders: Sequence[Path], options: SiteOptions) -> Iterator[Path]:
    """Every file that a build reads besides the program's own."""
    for folder in folders:
        if folder.is_dir():
            yield from (Path(entry.path) for entry in everything(folder))
    for path, _ in sources.files(options.sources):
        yield path
    if options.templates is not None:
        yield from sorted(options.templates.rglob("*"))
    with suppress(ClaimError):  # which stops the build, so that nothing is kept
        for fact in facts.read(options.sources / sources.FACTS_FILE).values():
            document = fact.source.file(options.sources.parent)
            if document is not None:
                yield document


def _digest(path: Path) -> str | None:
    """SHA-256 of a file; None for a link and for what is no file, or cannot be read."""
    with suppress(OSError):
        if path.is_file() and not path.is_symlink():
            return file_sha256(path)
    return None

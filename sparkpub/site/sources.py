"""Pages as somebody wrote them: front matter and Markdown within bounds."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    StrictBool,
    ValidationError,
)

from sparkpub.record import documents, outside
from sparkpub.record.errors import SiteError
from sparkpub.site.content import Page

CLAIMS_FILE, FACTS_FILE = "claims.yaml", "facts.yaml"
_FRONT = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
_UNQUOTED = re.compile(r"^\w+: *\{\{", re.MULTILINE)
"""YAML takes braces at the beginning of a value for a mapping."""


def dates(given: object) -> tuple[datetime, datetime]:
    """When a post was published and last changed, of its `date:`. Raises ValueError where it does not say so."""
    named = given if isinstance(given, dict) else {"created": given}
    created = _moment(named.get("created"))
    return created, _moment(named.get("updated") or created)


def _moment(given: object) -> datetime:
    """A day or a time as YAML has read it."""
    if isinstance(given, datetime):
        return given if given.tzinfo else given.replace(tzinfo=UTC)
    if isinstance(given, date):
        return datetime.combine(given, time(), UTC)
    raise ValueError(f"{given!r} is no day; write YYYY-MM-DD without quotes")


class FrontMatter(BaseModel):
    """What is read here of what a page says of itself; the rest is the theme's."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    title: str | None = None
    description: str | None = None
    summary: str | None = None
    subtitle: str | None = None
    campaign: str | None = None
    """The campaign that a page's expressions mean where they name none."""
    date: Annotated[Any, AfterValidator(dates)] = None
    slug: str | None = None
    authors: tuple[str, ...] | None = None
    draft: StrictBool = False


def files(sources: Path) -> Iterator[tuple[Path, str]]:
    """Every file of a folder of pages, and its address in it, by name; without hidden ones."""
    for path in sorted(path for path in sources.rglob("*") if path.is_file()):
        uri = path.relative_to(sources).as_posix()
        # Of the address: the folder itself may lie anywhere, below a hidden one as well.
        if not any(part.startswith(".") for part in uri.split("/")):
            yield path, uri


def refuse_outside(path: Path, uri: str, sources: Path) -> None:
    """Raise SiteError for a link that leads out of the folder of pages."""
    if not path.resolve().is_relative_to(sources.resolve()):
        raise SiteError(
            "a link leads out of the folder of pages",
            where=uri,
            remedy="put the file itself there",
        )


@dataclass(frozen=True, eq=False)
class WrittenPage:
    """A page as it was written. `front` are the lines of its front matter, and `meta` is what they say."""

    uri: str
    front: str
    meta: Mapping[str, Any]
    text: str

    @property
    def whole(self) -> str:
        """The file."""
        return self.front + self.text

    def filled(self, say: Callable[[str, int], str]) -> Page:
        """The page with `say(text, lines)` in place of its texts; so many lines of the file stand before each."""
        meta = dict(self.meta)
        for name, value in meta.items():
            if isinstance(value, str):
                before = self.front[: self.front.find(f"\n{name}:") + 1]
                meta[name] = say(value, before.count("\n"))
        return Page(meta, say(self.text, self.front.count("\n")))


def pages(sources: Path) -> dict[str, WrittenPage]:
    """Every page in a folder that can be read, by its address. The check `unreadable-page` names the others."""
    found = {}
    for path, uri in files(sources):
        if path.suffix == ".md":
            with suppress(SiteError):
                found[uri] = read(path, uri)
    return found


def read(path: Path, uri: str) -> WrittenPage:
    """A page with line feeds alone.

    Raises SiteError with the file, and the line where it matters, for what is no plain text, and for front matter that
    the site's engine could not read.
    """
    text = outside.text(path, SiteError, "give a Markdown page")
    return source_of(text.replace("\r\n", "\n"), uri)


@cache
def source_of(text: str, uri: str) -> WrittenPage:
    """A page of this text; the same one for the same text."""
    unwanted = outside.CONTROL.search(text)
    if unwanted is not None:
        line = text.count("\n", 0, unwanted.start()) + 1
        raise SiteError(
            f"a control character, U+{ord(unwanted[0]):04X}",
            where=f"{uri}:{line}",
            remedy="remove it",
        )
    front = _FRONT.match(text)
    if front is None:
        return WrittenPage(uri, "", {}, text)
    unquoted = _UNQUOTED.search(front[1])
    if unquoted is not None:
        line = front[1].count("\n", 0, unquoted.start()) + 2
        raise SiteError(
            "a value begins with an expression",
            where=f"{uri}:{line}",
            remedy="put the whole value in quotes: '{{ … }}'",
        )
    # Behind an empty line for the one that opens it.
    meta, lines = documents.parse("\n" + front[1], uri, SiteError)
    documents.refuse(lines.duplicates, SiteError)
    if not isinstance(meta, dict | None):
        raise SiteError(
            "front matter is no mapping", where=uri, remedy="write name: value"
        )
    try:
        FrontMatter.model_validate(meta or {})
    except ValidationError as error:
        mistakes = lines.described(error, (), FrontMatter, "front matter")
        documents.refuse(mistakes, SiteError)
    return WrittenPage(uri, front[0], meta or {}, text[front.end() :])

"""Where a value stands in a document or in a row of a table: one grammar for every mapping and every layout.

`results.rate` reaches into mappings, lists (`models.0.name`) and YAML that is kept as text. `requests.*.ttft_s` is the
list of each one's, `phases[kind=profiling].rate` is of the item that says so, and `a|b` is the first that is there. The
whole name of a column counts before its parts, since columns have dots and strokes, too.
"""

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import StringConstraints

from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.tools import reading

Where = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_CONDITION = re.compile(r"(?P<where>(?:[^=\[]|\[[^\]]*\])+)(?:=(?P<wanted>.*))?")


def at(document: Any, where: str | None) -> Any:
    """What stands there; None where nothing does."""
    if where is None:
        return None
    if isinstance(document, Mapping) and where in document:
        return document[where]
    for path in where.split("|"):
        found = _at(document, path.split("."))
        if found is not None:
            return found
    return None


def holds(document: Any, conditions: Iterable[str]) -> bool:
    """Whether a document has what each condition names: `path`, or `path=word` with `*` for any letters; of several
    with `|` between them, one."""
    return all(
        any(_holds(document, alternative) for alternative in condition.split("|"))
        for condition in conditions
    )


def looked_at(condition: str) -> str:
    """The places that a condition speaks of, as one."""
    parts = [_parts(alternative)[0] for alternative in condition.split("|")]
    return "|".join(dict.fromkeys(parts))


def _holds(document: Any, condition: str) -> bool:
    where, wanted = _parts(condition)
    found = at(document, where)
    if wanted is None:
        return found is not None
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return fnmatch.fnmatchcase(str(found).lower(), wanted.lower())


def _parts(condition: str) -> tuple[str, str | None]:
    """The place of a condition, and the word that has to stand there."""
    parts = _CONDITION.fullmatch(condition)
    return (condition, None) if parts is None else (parts["where"], parts["wanted"])


def _at(document: Any, path: list[str]) -> Any:
    """What lies at a path, of which several parts may be one name."""
    if isinstance(document, list) and path[0] == "*":
        return [_at(item, path[1:]) if path[1:] else item for item in document]
    if isinstance(document, str):
        document = _as_yaml(document)
    for end in range(1, len(path) + 1):
        found = _step(document, ".".join(path[:end]))
        if found is not None and path[end:]:
            found = _at(found, path[end:])
        if found is not None:
            return found
    return None


def _step(document: Any, name: str) -> Any:
    name, _, condition = name.rstrip("]").partition("[")
    if isinstance(document, list):
        index = int(name) if name.lstrip("-").isdecimal() else len(document)
        return document[index] if -len(document) <= index < len(document) else None
    found = document.get(name) if isinstance(document, Mapping) else None
    if not condition:
        return found
    key, _, wanted = condition.partition("=")
    items = reading.objects(found)
    return next((item for item in items if str(item.get(key)) == wanted), None)


def _as_yaml(text: str) -> Any:
    try:
        document, _ = documents.parse(text, "", ImportFormatError)
    except ImportFormatError:
        return None
    return document

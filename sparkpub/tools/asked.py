"""What was asked for, by the terms of a mapping: options in the vocabulary of the matrix, and the workload's name."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PureWindowsPath
from typing import Any

from sparkpub.record.secrets import without_secrets
from sparkpub.tools import cells, reading
from sparkpub.tools.language import ResultMapping, Term
from sparkpub.tools.where import at, holds

_AMOUNT = re.compile(r"[a-zA-Z]{0,2}[=_-]?(\d{1,9})(k?)")
_MOST = 2**53
"""The largest whole number of an option: up to there a float is exact."""


@dataclass(frozen=True)
class AskedLoad:
    """What a row or a document says of its load."""

    options: Mapping[str, Any]
    name: str
    """The name of the workload, as far as it is known."""
    is_known: bool
    """Whether everything is said that the name needs."""
    notes: tuple[str, ...]


def asked(mapping: ResultMapping, document: Any) -> AskedLoad:
    """By all terms; the first one counts of those for an option, and of those for a part of the name."""
    options: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for term in mapping.load:
        value = _value(term, document)
        if term.key is not None and parts.get(term.key) is None:
            is_word = isinstance(value, str)
            parts[term.key] = value.replace("/", "-") if is_word else value
        if term.option is not None and value is not None:
            options.setdefault(term.option, False if term.kind == "mark" else value)
    needed = [term.at for term in mapping.load if term.needed]
    is_said = any(value is not None for value in parts.values())
    is_known = is_said and all(at(document, where) is not None for where in needed)
    notes = tuple(noted(mapping.load, document))
    return AskedLoad(options, key_of(parts), is_known, notes)


def noted(terms: Iterable[Term], document: Any) -> Iterator[str]:
    """What is to be said where terms count."""
    for term in terms:
        value = _value(term, document)
        if value is not None and term.note is not None:
            for said in value if isinstance(value, list) else [value]:
                yield term.note.replace("{}", str(said))


def key_of(parts: Mapping[str, Any]) -> str:
    """A workload's key of letters and values, e.g. `serve-in64-out16-c4-n12`; what is None is left out. Empty
    where all is."""
    texts = [
        f"{letters}{value:g}" if isinstance(value, float) else f"{letters}{value}"
        for letters, value in parts.items()
        if value is not None
    ]
    return as_key("-".join(texts)) if texts else ""


def _value(term: Term, document: Any) -> Any:
    """What a document says of it; None where that goes without saying or is not said."""
    if not holds(document, term.when):
        return None
    if term.at is None and term.says is not None:
        return term.says
    found = at(document, term.at)
    value = _read(term, found)
    if value is None or _is_usual(term, found) or _is_usual(term, value):
        return None
    if term.says is not None:
        return term.says
    if term.join:
        return "-".join(map(str, (value, *(at(document, path) for path in term.join))))
    return value


def _is_usual(term: Term, value: Any) -> bool:
    """Whether a value goes without saying."""
    words = [word for word in term.unless if isinstance(word, str)]
    return value in term.unless or any(
        fnmatch.fnmatchcase(str(value), word) for word in words
    )


def _read(term: Term, found: Any) -> Any:
    """What stands there, as it counts."""
    match term.kind:
        case "mark":
            return ""
        case "count":
            length = len(found) if isinstance(found, list) else found
            return reading.positive_int(length)
        case "amount":
            named = amount(str(found))
            found = found if named is None else named
        case "number":
            return reading.number(found)
        case "path" | "file":
            said = cells.text(found) or ""
            own = PureWindowsPath(said).name  # which parts both kinds of paths
            return (own if term.kind == "file" else said.removeprefix("/v1/")) or None
        case "words":
            listed = found if isinstance(found, list) else [found]
            return [word for item in listed if (word := reading.word(item)) is not None]
    if isinstance(found, list | dict):
        return None
    value = reading.number(found)
    if value is None or abs(value) > _MOST:
        return cells.text(found)
    return int(value) if value.is_integer() else value


def amount(said: str) -> int | None:
    """The number that a word is, with letters around it: 16 of `c16`, 4096 of `4k`."""
    named = _AMOUNT.fullmatch(said)
    return named and int(named[1]) * (1024 if named[2] else 1)


def as_key(text: str) -> str:
    """A name in the form that keys have: lower case, everything else a hyphen."""
    name = without_secrets(text).rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9.-]+", "-", name).strip("-.")[:63] or "unnamed"

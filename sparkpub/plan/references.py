"""Secrets of a matrix: `$NAME` in place of a value, taken from the environment of the collector when a command starts.

`$NAME` as a whole is one in `env:` and `variables:`, and in the word after a flag whose name tells of a secret
(`--token $HF_TOKEN`). Any other `$` is for the shell that a command may be.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sparkpub.record.redaction import LEAST
from sparkpub.record.secrets import is_secret_name, without_secrets
from sparkpub.record.tokens import SECRET

REFERENCE = re.compile(r"\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
REMEDY = "write $NAME there, and set NAME in the environment of the collector"
_FOR_A_SHELL = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
_VARIABLES = frozenset({"env", "variables"})


def filled(value: str) -> str:
    """A value, taken from the environment where it is a reference to a variable that is set."""
    found = REFERENCE.fullmatch(value)
    return value if found is None else os.environ.get(found["name"], value)


def filled_words(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line with the secrets after its flags."""
    return tuple(
        filled(word) if _tells(flag) else word for flag, word in pairwise(["", *argv])
    )


def unset(document: Any) -> Iterator[str]:
    """The names of variables to which a document refers and which are not set."""
    for path, beside, text in _texts(document):
        found = REFERENCE.fullmatch(text)
        refers = _tells(beside) or not _VARIABLES.isdisjoint(path[-2:-1])
        if found and refers and found["name"] not in os.environ:
            yield found["name"]


def secrets(
    document: Any, words: Collection[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Where secrets stand in a document, and which: beside a telling name or flag, by their own shape, or as the value
    of a variable that tells; a text that is one of `words` is none."""
    for path, beside, said in _texts(document):
        if REFERENCE.fullmatch(said):
            continue
        # What a shell fills in is none; a placeholder in its place stays one.
        text = _FOR_A_SHELL.sub(SECRET, said)
        told = bool(text) and text != SECRET and is_secret_name(beside)
        if told or any(without_secrets(part) != part for part in (text, *text.split())):
            yield path, "a secret"
        elif said not in words:
            for variable, value in os.environ.items():
                known = len(value) >= LEAST and is_secret_name(variable)
                if known and value in said:
                    yield path, f"the value of {variable}"


def _texts(
    document: Any, path: tuple[str, ...] = (), beside: str = ""
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Each text of a document: where it is, its name or the flag before it, and itself."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from _texts(value, (*path, str(key)), str(key))
    elif isinstance(document, list | tuple):
        for index, (before, value) in enumerate(pairwise(["", *document])):
            flag = before if isinstance(before, str) and before[:1] == "-" else beside
            yield from _texts(value, (*path, str(index)), flag)
    elif isinstance(document, str):
        yield path, beside, document


def _tells(flag: object) -> bool:
    """Whether a secret comes after a word."""
    return isinstance(flag, str) and flag.startswith("-") and is_secret_name(flag)

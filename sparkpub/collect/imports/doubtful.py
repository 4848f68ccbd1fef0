"""What is in a folder of results and is none of its owner's: texts of others, and figures that nobody measured."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkpub.collect.imports.facts import machine_called
from sparkpub.tools import forms
from sparkpub.tools.forms import ResultFile

_COPIED = re.compile(r"(?im)^\W{0,4}(url|publisher|retrieved|fetched_by)\W{0,3}:")
"""A line of a page that was archived."""
_FIRST_LETTERS = 2000
_QUOTED = re.compile(
    r"(?m)^> *(?:\||.*\d ?tok(?:en)?s?(?:/s| per)|.*[Tt]hroughput.*\d)"
)
"""A row of a table, or a line with a rate, as Markdown quotes them."""
_OTHER_GPU = re.compile(
    r"\b(?:(?:RTX|GTX|rtx|gtx)[ _-]?(?:PRO |Pro )?\d{4}|[ABH][123]00|A[134]0|L40?S?|H20|H800|MI\d{3}X?)\b"
)
"""GPUs by their makers' names."""
_INVENTED = re.compile(
    r"(?i)(?<![a-z])(synthetic|interpolated|extrapolated|simulated|projected|external.reference|third.party|mocked)(?![a-z])"
)
_SAMPLE = re.compile(
    r"(?i)(?<![a-z])(synthetic|interpolated|sample|samples|mock|dummy)(?![a-z])"
)
_SAYS_SO = ("source", "status", "provenance", "origin", "data_type")
"""Names under which a row says where its figures come from."""
_PROSE_WORDS = 60
"""A text with more words outside its tables is prose, and no output of a tool."""


def not_own(file: ResultFile, machine: str | None, *, is_named: bool) -> str:
    """Why the tables of a text are no results of its owner's; empty where they are. One that was named is its owner's
    word, unless it was copied."""
    is_prose = file.suffix == ".md"
    copied = _COPIED.search(file.text[:_FIRST_LETTERS]) if is_prose else None
    if copied is not None:
        return f"a page of somebody else's: it has a line `{copied[1]}:`"
    if is_prose and _QUOTED.search(file.text):
        return "it quotes somebody else's results"
    if is_named:
        return ""
    other, own = _OTHER_GPU.search(file.text), machine_called(machine)
    if own and other and not own.startswith(str(machine_called(other[0]))):
        return f"it speaks of another GPU: {other[0]}"
    words = " ".join(_prose(file.text)).split()
    if is_prose and len(words) > _PROSE_WORDS:
        return "a table in prose; name the file to import it"
    return ""


def _prose(text: str) -> Iterator[str]:
    """The lines of a text that are neither a table, code, nor a heading."""
    is_code = False
    for line in text.splitlines():
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith(("|", "#")):
            yield line


def sample(file: ResultFile) -> str:
    """What the name of a table says that nobody measured; empty for any other."""
    found = _SAMPLE.search(file.stem)
    is_text = file.suffix in forms.TABLES
    return f"its name says {found[1]}" if found and is_text else ""


def invented(document: Mapping[str, Any], depth: int = 3) -> str:
    """What a row says of itself where its figures were not measured, or not by its owner; empty where it does not."""
    for name, value in document.items():
        if isinstance(value, Mapping) and depth:
            if said := invented(value, depth - 1):
                return said
        elif name.lower() in _SAYS_SO and isinstance(value, str):
            found = _INVENTED.search(value)
            if found is not None:
                return f"{name} is {value[:60]!r}, so nobody measured it here"
    return ""

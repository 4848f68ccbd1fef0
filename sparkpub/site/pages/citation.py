"""BibTeX entries for what the site publishes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
"""Signs that mean something to TeX, and how it prints them."""
_SIGNIFICANT = re.compile(f"[{re.escape(''.join(_SPECIAL))}]")


@dataclass(frozen=True)
class Work:
    """What is cited. `date` as ISO 8601, to the day; `address` may be empty."""

    key: str
    authors: Sequence[str]
    title: str
    date: str
    publisher: str
    address: str = ""


def bibtex(work: Work) -> str:
    """An entry of type `misc`, which every style of BibTeX and BibLaTeX knows."""
    year, month, _ = work.date.split("-")
    authors = [escaped(author) for author in work.authors]
    if not authors:
        # The braces keep TeX from reading a name of several words as a person's.
        authors = [f"{{{escaped(work.publisher)}}}"]
    fields = {
        "author": " and ".join(authors),
        "title": f"{{{escaped(work.title)}}}",
        "year": year,
        "month": str(int(month)),
        "howpublished": escaped(work.publisher),
    }
    if work.address:
        fields["url"] = work.address
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items()]
    return f"@misc{{{work.key},\n" + ",\n".join(lines) + "\n}"


def escaped(text: str) -> str:
    """Text as TeX prints it."""
    return _SIGNIFICANT.sub(lambda sign: _SPECIAL[sign[0]], text)

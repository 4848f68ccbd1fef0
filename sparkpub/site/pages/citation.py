"""BibTeX entries for what the site publishes."""

import re
from collections.abc import Sequence

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
"""Signs that a stroke before them does not make TeX print."""


def bibtex(
    key: str,
    authors: Sequence[str],
    title: str,
    date: str,
    publisher: str,
    address: str = "",
) -> str:
    """An entry of type `misc`, which every style of BibTeX knows. `date` is a day as ISO 8601; `address` may
    be empty."""
    year, month, _ = date.split("-")
    # The braces keep TeX from reading a name of several words as a person's.
    names = [escaped(author) for author in authors] or [f"{{{escaped(publisher)}}}"]
    fields = {
        "author": " and ".join(names),
        "title": f"{{{escaped(title)}}}",
        "year": year,
        "month": str(int(month)),
        "howpublished": escaped(publisher),
        "url": address,
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}"


def escaped(text: str) -> str:
    """Text as TeX prints it."""
    return re.sub(
        r"[\\~^&%$#_{}]", lambda sign: _SPECIAL.get(sign[0], f"\\{sign[0]}"), text
    )

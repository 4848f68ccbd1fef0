"""BibTeX entries for what the site publishes."""

import re
from collections.abc import Sequence

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
"""Signs that mean something to TeX, and how it prints them."""
_SIGNIFICANT = re.compile(f"[{re.escape(''.join(_SPECIAL))}]")


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
    names = [escaped(author) for author in authors]
    if not names:
        # The braces keep TeX from reading a name of several words as a person's.
        names = [f"{{{escaped(publisher)}}}"]
    fields = {
        "author": " and ".join(names),
        "title": f"{{{escaped(title)}}}",
        "year": year,
        "month": str(int(month)),
        "howpublished": escaped(publisher),
    }
    if address:
        fields["url"] = address
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items()]
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}"


def escaped(text: str) -> str:
    """Text as TeX prints it."""
    return _SIGNIFICANT.sub(lambda sign: _SPECIAL[sign[0]], text)

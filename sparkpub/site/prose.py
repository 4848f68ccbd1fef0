"""What a reader reads on a page that people wrote, and which figures and verdicts in it nobody computed.

A page is read as it is shown: its expressions are filled in (each by a mark in place of its result), Markdown becomes
HTML, and the text of the HTML is searched. So a figure is found in a heading, a table, a caption or an alternative
text, whatever markup stands between the number and its unit.

One rule holds for every page, whatever it is about: a digit is typed unless it stands in a date, in a name or in code.
Of numbers in words a few are figures: shares and multiples.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

import markdown

from sparkpub.site.sources import pages

BOUND, JUDGED = (
    "\N{OBJECT REPLACEMENT CHARACTER}",
    "\N{INTERLINEAR ANNOTATION TERMINATOR}",
)
"""In the text of a page: the result of an expression, and of one that gives a verdict. Typed, they are blanks."""
EXTENSIONS = (
    "abbr",
    "admonition",
    "attr_list",
    "footnotes",
    "md_in_html",
    "tables",
    "pymdownx.details",
    "pymdownx.superfences",
)
"""Of the Markdown in mkdocs.yml, what decides which text a reader sees."""

# -- what counts as typed --------------------------------------------------------------------------------------

UNIT = (
    r"(?:[kKMGT]i?B|B)(?:/s|/token)?|bytes|(?:tok|tokens|req|requests)/s|tokens|%|×|[nµm]?s|min|h|°C|k?[WJ]|[MG]Hz"
    r"|[GT]FLOP/s"
)
"""Signs of units: behind a name, `Qwen 119.8 tok/s`, a number with one is a figure and no part of the name."""
_NUMBER = r"\d[\d,\u202f]*(?:\.\d+)?"
_FIGURE = re.compile(
    rf"(?<![\w.^])(?:{_NUMBER}\s?[–—/⁄-]\s?)?{_NUMBER}(?:[\s-]?(?:{UNIT})(?![\w/]))?"
)
_SPELLED = re.compile(
    r"\b(?:half(?! an? )|halve[sd]?|twice|thrice|double[sd]?(?! counting| precision)|triple[sd]?|\w+fold"
    r"|(?:a|one|two) (?:third|quarter)s? of|(?:dozen|hundred|thousand|million|billion)s?)\b",
    re.IGNORECASE,
)
"""Numbers in words that are shares or multiples; `three models` counts things, and may be typed."""
_VERDICT = re.compile(
    r"\b(?:faster|slower|quicker|(?:is|are) (?:the )?(?:fastest|slowest)|equally fast"
    r"|equivalent|outperforms?|outperformed|supported|refuted|undecided|confounded"
    r"|(?:statistically )?significant(?:ly)?|no (?:measurable |real |significant )?difference|makes no difference)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|«[^»]*»")
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_NO_NAME = (
    "A|About|After|All|An|And|At|Between|By|Each|For|From|In|It|Mean|Median|Nearly|Of|On|Only|Or|Over|Some|That|The"
    "|These|This|Those|To|Under|We|With"
)
"""Words that begin a sentence in front of a figure."""
_NAME = (
    rf"(?!(?:{_NO_NAME})\b)[a-z]{{0,2}}[A-Z][\w.+-]*(?: [A-Z]\w*)*"
    r"|parts?|steps?|issues?|questions?|iterations?|phases?|versions?|status|port"
)
"""What a number behind it belongs to: `Llama 3.1`, `RTX PRO 6000`, `parts 1 to 3`."""
_NAMING = re.compile(
    "|".join(
        (
            r"\b\d{4}-\d\d(?:-\d\d)?(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?\b|\b\d\d:\d\d(?= UTC)",
            rf"\b(?:\d\d? )?{_MONTH}(?: \d\d?,)?(?: \d{{4}})?",
            rf"\b(?:19|20)\d\d\b(?![.,]\d| ?(?:{UNIT})(?!\w))",
            rf"\b(?:{_NAME}) (?:{_NUMBER}(?:\s?[–-]\s?| to | and | of |, ))*\d[\w.+-]*\b(?! ?(?:{UNIT})(?![\w/]))",
            r"\b\d+\.\d+\.\d+[\w.+-]*",
            r"(?<![\w=])[A-Za-z_][\w./:+-]*",
            r"\b(?:\d+x)?\d+(?:\.\d+)?[BM](?:-[A-Za-z]\w*)*(?![\w/])",
            r"\b\d[\d,]*\^?(?:st|nd|rd|th)\b|\b\d+-bit\b|\b(?:90|95|99) ?% (?=confidence|interval)",
            r"^\s*\(?\d{1,2}[.)](?=\s)|\(\d\)",
        )
    ),
    re.MULTILINE,
)
"""What may hold digits: dates, names with a number, versions, words that begin with a letter (`P99`), sizes of models
(`7B`), ordinals, widths, the levels of intervals, numbering."""


# -- a page as it is read --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Typed:
    """A figure or a verdict that somebody typed."""

    kind: Literal["figure", "verdict"]
    text: str


def passages(html: str) -> list[str]:
    """The text of a page as it is read, paragraph by paragraph, with titles, cells and alternative texts, and without
    code."""
    reader = _ProseReader()
    reader.feed(html)
    reader.close()
    reader.end_block()
    return reader.passages


def to_html(text: str) -> str:
    """Markdown as the site converts it."""
    converted: str = markdown.markdown(text, extensions=list(EXTENSIONS))
    return converted


def typed(passage: str) -> Iterator[Typed]:
    """What of a passage is typed and should be bound: any number, numbers in words, and words of a verdict where no
    verdict stands."""
    text = _plain(passage)
    for found in _SPELLED.finditer(text):
        yield Typed("figure", found[0])
    for found in _FIGURE.finditer(_NAMING.sub(_blank_names, text)):
        yield Typed("figure", found[0])
    if JUDGED not in text:
        quoted = _QUOTED.sub(lambda quote: " " * len(quote[0]), text)
        for found in _VERDICT.finditer(quoted):
            yield Typed("verdict", found[0])


def _blank_names(found: re.Match[str]) -> str:
    """Blanks for a name; a word without a digit stays, since it may be a unit."""
    return " " * len(found[0]) if any(c.isdigit() for c in found[0]) else found[0]


def _plain(text: str) -> str:
    """Compatibility forms as plain ones (`７０`, `½`), one kind of blank and of minus."""
    text = unicodedata.normalize("NFKC", text)
    return text.replace("\N{MINUS SIGN}", "-").replace("μ", "µ")


_BLOCK = re.compile(
    "p|li|t[dhr]|h[1-6]|div|d[td]|[uo]l|table|figure|(?:fig)?caption|details|summary|blockquote|section|article|header"
    "|footer|text|title|desc|option|button|label|legend"
)
_SAID_BY_ATTRIBUTES = re.compile(
    "alt|title|aria-(?:label|description)|content|placeholder|value"
)
_UNREAD = frozenset({"code", "pre", "script", "style", "template"})


class _ProseReader(HTMLParser):
    """Collects passages. Inline markup (`<b>`, `<span>`, `<sup>`) does not part a number from its unit."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.passages: list[str] = []
        self._pieces: list[str] = []
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a passage at a block; keep texts of attributes."""
        for name, value in attrs:
            if value and _SAID_BY_ATTRIBUTES.fullmatch(name):
                self.passages.append(value)
        if tag in _UNREAD:
            self._unread += 1
            self._pieces.append(" ")
        elif _BLOCK.fullmatch(tag):
            self.end_block()
        elif tag in ("br", "sup"):
            self._pieces.append(" " if tag == "br" else "^")

    def handle_endtag(self, tag: str) -> None:
        """End a passage at the end of a block."""
        if tag in _UNREAD:
            self._unread = max(0, self._unread - 1)
        elif _BLOCK.fullmatch(tag):
            self.end_block()

    def handle_data(self, data: str) -> None:
        """Text of the current passage."""
        if not self._unread:
            self._pieces.append(data)

    def end_block(self) -> None:
        """Keep what was read as a passage, if it has text."""
        text = "".join(self._pieces)
        if text.strip():
            self.passages.append(text)
        self._pieces = []


# -- where it stands -------------------------------------------------------------------------------------------


def line_of(source: str, said: Typed) -> int:
    """The line of a page's source (1-based) at which something typed stands, as near as the text tells."""
    digits = re.search(_NUMBER, said.text)
    without_code = _FENCED.sub(lambda block: "\n" * block[0].count("\n"), source)
    lines = [_plain(line) for line in without_code.split("\n")]
    for mark in (said.text, digits[0] if digits else said.text):
        for number, line in enumerate(lines, 1):
            if mark in line:
                return number
    return 1


_FENCED = re.compile(r"^\s*(```+|~~~+).*?(?:^\s*\1.*?$|\Z)", re.DOTALL | re.MULTILINE)


def uses(sources: Path, claim: str) -> list[str]:
    """`file:line` of every place whose text names a claim, for rereading when its verdict changed."""
    name = re.compile(
        rf"""\b(?:claim|verdict|evidence|says)\(\s*(["']){re.escape(claim)}\1"""
    )
    places: list[str] = []
    for uri, source in pages(sources).items():
        for found in name.finditer(source.whole):
            line = source.whole.count("\n", 0, found.start()) + 1
            places.append(f"{uri}:{line}")
    return list(dict.fromkeys(places))

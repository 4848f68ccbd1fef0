"""Figures typed into prose: found by file and line, since a typed figure goes stale in silence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

UNITS = (
    *("GiB", "GB", "GiB/s", "GB/s", "MiB", "MB", "KiB", "kB", "TiB", "TB", "TB/s", "B/s", "B/token"),
    *("tok/s", "tokens/s", "tokens/sec", "tokens/second", "req/s", "requests/s"),
    *("ns", "µs", "μs", "ms", "s", "sec", "seconds", "min", "minutes", "h", "hours"),
    *("°C", "celsius", "W", "kW", "watts", "J", "kJ", "joules", "MHz", "GHz", "GFLOP/s", "TFLOP/s"),
    *("%", "percent", "per cent", "×", "x", "times"),
)
"""Units that make a number a figure. `x` and `×` count only directly behind the number."""
_TIGHT = frozenset({"x", "×"})
_DIGITS = r"\d+(?:[,\u00a0\u202f]\d{3})*(?:\.\d+)?"
_NUMBER = rf"[+\-−~≈±<>≤≥]?{_DIGITS}(?:\s?[–—-]\s?{_DIGITS})?"


def _pattern() -> re.Pattern[str]:
    loose = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True) if unit not in _TIGHT)
    return re.compile(rf"(?<![\w.#/-])({_NUMBER})(?:[\s\u00a0\u202f-]?({loose})|([x×]))(?![\w/])")


_FIGURE = _pattern()
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_SKIPPED = re.compile(r"`[^`\n]*`|\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<!--.*?-->|\]\([^)]*\)|</?[a-zA-Z][^>]*>", re.DOTALL)

_INDENT = ("    ", "\t")
_CONTAINER = re.compile(r"\s{0,3}(?:[-*+]\s|\d+[.)]\s|!!!|\?\?\?|===|\[\^)")
"""Lines whose indented continuation is prose: list items, admonitions, tabs, footnotes."""


@dataclass(frozen=True)
class UnboundNumber:
    """A figure with a unit that somebody typed. `line` is 1-based; `fix` says what to write instead."""

    path: Path
    line: int
    text: str
    fix: str


def unbound_numbers(path: Path) -> list[UnboundNumber]:
    """Typed figures of one Markdown file, outside code, front matter and template expressions."""
    text = _prose(path.read_text(encoding="utf-8"))
    return [
        UnboundNumber(path, text.count("\n", 0, found.start()) + 1, found[0].strip(), _fix(found[2] or found[3]))
        for found in _FIGURE.finditer(text)
    ]


def _fix(unit: str) -> str:
    return (
        f'take it from the data with {{{{ value(…) }}}} or {{{{ compare(…) }}}}, or name it in facts.yaml ("{unit}") '
        "with its source and write {{ fact(…) }}"
    )


def _prose(text: str) -> str:
    """`text` with everything that is not prose blanked out; lines keep their numbers."""
    kept, fence, front, nested = [], "", text.startswith("---\n"), False
    for number, line in enumerate(text.split("\n")):
        mark = _FENCE.match(line)
        prose = not (front or fence or mark)
        if front:
            front = number == 0 or line.strip() != "---"
        elif fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        elif line.strip() and not line.startswith(_INDENT):
            nested = _CONTAINER.match(line) is not None
        indented_code = line.startswith(_INDENT) and not nested
        kept.append(line if prose and not indented_code else "")
    return _SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), "\n".join(kept))


def pages(sources: Path) -> Iterator[Path]:
    """Every Markdown file under `sources`, by name."""
    return iter(sorted(sources.rglob("*.md")))


def uses(sources: Path, claim: str) -> list[str]:
    """`file:line` of every place whose text names a claim, for rereading when its verdict changed."""
    name = re.compile(rf"""\b(?:claim|evidence|says)\(\s*(["']){re.escape(claim)}\1""")
    places = (
        f"{page.relative_to(sources)}:{text.count(chr(10), 0, found.start()) + 1}"
        for page in pages(sources)
        for text in [page.read_text(encoding="utf-8")]
        for found in name.finditer(text)
    )
    return list(dict.fromkeys(places))

"""The colours of the site by name, in light and in dark mode: `colours.css` is their one home."""

import re
from collections.abc import Mapping
from pathlib import Path

STYLESHEET = Path(__file__).parent / "colours.css"
"""The first part of the site's style sheet."""

_VARIABLE = re.compile(r"var\((--sp-[a-z0-9]+)\)")
_DECLARATION = re.compile(r"(--sp-[a-z0-9]+): *(#[0-9a-f]{6});")


def _declared(block: str) -> Mapping[str, str]:
    return dict(_DECLARATION.findall(block[: block.index("}")]))


_TEXT = STYLESHEET.read_text(encoding="utf-8")
LIGHT = _declared(_TEXT)
"""Name of a variable to its value as `#rrggbb`."""
DARK = _declared(_TEXT[_TEXT.index('[data-md-color-scheme="slate"] {') :])


def used(text: str) -> list[str]:
    """The variables that a drawing uses, each once, in order of their names."""
    return sorted(set(_VARIABLE.findall(text)))


def concrete(text: str) -> str:
    """A drawing or specification with every colour variable replaced by its value in light mode."""
    return _VARIABLE.sub(lambda found: LIGHT[found[1]], text)

"""Altair, loaded when the first chart is drawn.

A build that finds all drawings in its cache needs none of it, and would spend a tenth of its time on loading it.

Charts give their channels as objects, `alt.Href("href:N")`, `alt.XValue(0)`: for `href="href:N"`, and for what
`alt.value` and `alt.condition` return, Altair makes a table of all its classes anew, 5 ms each time, which was three
quarters of the time of a specification.
"""

import importlib
from typing import TYPE_CHECKING, Any


class _Lazily:
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("altair"), name)


if TYPE_CHECKING:
    import altair as alt
else:
    alt = _Lazily()

__all__ = ["alt"]

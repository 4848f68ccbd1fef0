"""A chart by what it shows: the function that draws it, and what that function is given."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

Specification = dict[str, Any]
"""Vega-Lite as plain values; the data that it names hold no rows."""


@dataclass(frozen=True)
class Chart:
    """A drawing not made yet: `draw(*subject)` is its Vega-Lite specification.

    `draw` is a function of a module, so that other processes find it. It is called only for a drawing that is not in
    the cache: Altair is slow, to load and to work.
    """

    draw: Callable[..., Specification]
    subject: tuple[Any, ...] = ()

    @property
    def identity(self) -> str:
        """Text that changes with everything but code that decides the specification."""
        return f"{self.draw.__module__}.{self.draw.__qualname__}{self.subject!r}"

    def given(self, *more: Any) -> Self:
        """The same chart, with further arguments for `draw`."""
        return replace(self, subject=(*self.subject, *more))

    def specification(self) -> Specification:
        """The Vega-Lite specification. Altair's own validation, most of its time, is left to the tests."""
        debug_mode = pkgutil.resolve_name("altair.utils.schemapi:debug_mode")
        with debug_mode(False):
            return self.draw(*self.subject)

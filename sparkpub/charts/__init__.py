"""Charts: a scope and metrics in, a Vega-Lite specification out; no files, no rows, no statistics, no HTML."""

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
from altair.utils import schemapi

from sparkpub.charts import comparison, distribution, explore, telemetry

CHARTS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "strip": distribution.strip,
    "relative": distribution.relative,
    "bars": distribution.bars,
    "box": distribution.box,
    "order": distribution.order,
    "scatter": distribution.scatter,
    "sweep": distribution.sweep,
    "forest": comparison.forest,
    "ledger": comparison.ledger,
    "coverage": comparison.coverage,
    "telemetry": telemetry.panels,
    "heat": telemetry.heat,
    "explore": explore.explore,
    "overlay": explore.overlay,
}
"""Every kind of chart, by name."""


@dataclass(frozen=True)
class Chart:
    """A chart by what it shows. Altair works only for a drawing that is not known yet: it is the slow part."""

    kind: str
    subject: tuple[Any, ...] = ()

    @property
    def identity(self) -> str:
        """Text that changes with everything that decides the specification."""
        return f"{self.kind}{self.subject!r} {_code()}"

    def specification(self) -> dict[str, Any]:
        """The Vega-Lite specification; Altair's own validation, most of its time, is left to the tests."""
        return _specification(self)


@functools.lru_cache(maxsize=16)
def _specification(chart: Chart) -> dict[str, Any]:
    with schemapi.debug_mode(False):
        return CHARTS[chart.kind](*chart.subject)


@functools.cache
def _code() -> str:
    """A digest of this package and of Altair's version."""
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"\0".join([*sources, alt.__version__.encode()])).hexdigest()

"""Charts: a scope and metrics in, a Vega-Lite specification out; no files, no rows, no statistics, no HTML."""

import functools
import hashlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

CHARTS: Mapping[str, str] = {
    "strip": "distribution:strip",
    "relative": "distribution:relative",
    "bars": "distribution:bars",
    "box": "distribution:box",
    "order": "distribution:order",
    "scatter": "distribution:scatter",
    "sweep": "distribution:sweep",
    "forest": "comparison:forest",
    "ledger": "comparison:ledger",
    "coverage": "comparison:coverage",
    "telemetry": "sensors:panels",
    "heat": "sensors:heat",
    "explore": "explore:explore",
    "overlay": "explore:overlay",
}
"""Every kind of chart, by name: the module here, and the function in it. Altair loads with the first drawn."""


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
    make = pkgutil.resolve_name(f"{__name__}.{CHARTS[chart.kind]}")
    with pkgutil.resolve_name("altair.utils.schemapi:debug_mode")(False):
        found: dict[str, Any] = make(*chart.subject)
    return found


@functools.cache
def _code() -> str:
    """A digest of this package and of Altair's version."""
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"\0".join([*sources, metadata.version("altair").encode()])).hexdigest()

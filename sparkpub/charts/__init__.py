"""Charts: a scope and metrics in, a Vega-Lite specification out; no files, no rows, no statistics, no HTML."""

from collections.abc import Callable, Mapping
from typing import Any

from sparkpub.charts import comparison, distribution, explore, telemetry

CHARTS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "strip": distribution.strip,
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

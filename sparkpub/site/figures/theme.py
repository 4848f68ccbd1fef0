"""What all charts share: colours as CSS variables, fonts, axes.

Colours are `var(--sp-…)`, so that one static SVG follows light, dark and print without script. A colour never stands
alone: every group has a shape or a dash as well.
"""

from typing import Any

from sparkpub.record.metrics import Metric

FONT = "Helvetica Neue, Arial, sans-serif"
"""Ends in a family that the converter ships, so that text is measured alike on every machine."""

SERIES = tuple(f"var(--sp-c{number})" for number in range(1, 7))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3])
INK, FAINT = "var(--sp-fg)", "var(--sp-fg2)"
GRID, GROUND = "var(--sp-grid)", "var(--sp-bg)"
RAMP = tuple(f"var(--sp-r{step})" for step in range(1, 7))
_SMALL = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
CONFIG: dict[str, Any] = {
    "aria": False,
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        **_SMALL,
        "labelColor": FAINT,
        "titleColor": FAINT,
        "gridColor": GRID,
        "gridOpacity": 0.7,
        "labelLimit": 220,
        "titlePadding": 8,
        "labelFlush": False,
        "tickCount": 6,
        "ticks": False,
        "domain": False,
        "labelPadding": 6,
    },
    # A title that is wider than the plot runs below the names of the rows, not off the edge.
    "axisX": {"titleAnchor": "end"},
    "header": {"labelColor": INK, "labelFontSize": 13, "labelFontWeight": "bold"},
    "legend": {
        **_SMALL,
        "labelColor": INK,
        "titleColor": FAINT,
        "titleLimit": 300,
        "orient": "top",
        "symbolStrokeColor": FAINT,
        "symbolBaseFillColor": FAINT,
        "offset": 6,
        "labelLimit": 300,
        # The browser's letters may be wider than those that the build measured.
        "columnPadding": 20,
    },
    "title": {"color": FAINT, "fontSize": 12, "fontWeight": "normal"},
    "text": {"color": INK, "font": FONT, "fontSize": 12},
    "point": {"strokeWidth": 1.2, "opacity": 1},
    "rule": {"color": FAINT},
    "line": {"strokeWidth": 1.6},
}


def metric_title(metric: Metric) -> str:
    """What stands beside an axis with the values of a metric."""
    return axis_title(metric.label, metric.unit)


def axis_title(label: str, unit: str) -> str:
    """`Peak memory (GiB)`; just the label where there is no unit."""
    return f"{label} ({unit})" if unit else label

"""What all charts share: size, colours as CSS variables, scales, axes.

Colours are `var(--sp-…)`, so that one static SVG follows light, dark and print without script. A colour never
stands alone: every series has a shape or a dash as well. Single and layered views leave their width out: the
drawing's decides.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import LEGEND_COLUMNS
from sparkpub.site.figures.output import FONT

LONG_NAME = 22
"""Letters from which on names of a legend stand below each other."""
SERIES = tuple(f"var(--sp-c{number})" for number in range(1, 7))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3])
TEXT = "var(--sp-fg)"
FAINT = "var(--sp-fg2)"
GRID = "var(--sp-grid)"
RAMP = tuple(f"var(--sp-r{step})" for step in range(1, 7))
BACKGROUND = "var(--sp-bg)"

VegaView = dict[str, Any]
"""A view of Vega-Lite as plain values."""
CONFIG: dict[str, Any] = {
    "aria": False,
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": FAINT,
        "titleColor": FAINT,
        "domainColor": GRID,
        "tickColor": GRID,
        "gridColor": GRID,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
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
    "legend": {
        "labelColor": TEXT,
        "titleColor": FAINT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleLimit": 300,
        "orient": "top",
        "titleFontWeight": "normal",
        "symbolStrokeColor": FAINT,
        "symbolBaseFillColor": FAINT,
        "offset": 6,
        "labelLimit": 300,
        "columns": LEGEND_COLUMNS,
        # The browser's letters may be wider than those that the build measured.
        "columnPadding": 20,
    },
    "text": {"color": TEXT, "font": FONT},
    "point": {"strokeWidth": 1.2, "opacity": 1},
    "rule": {"color": FAINT},
    "line": {"strokeWidth": 1.6},
}


def layered(charts: Sequence["alt.Chart"], **properties: Any) -> VegaView:
    """Charts on top of each other, as one view with these properties of Vega-Lite, such as `height`.

    Altair's own `layer` and `vconcat` copy all that they hold several times: two thirds of the time of a chart.
    """
    layers = [
        chart.to_dict(validate=False, context={"top_level": False}) for chart in charts
    ]
    return {"layer": layers, **properties}


def stacked(views: Sequence[VegaView], *, spacing: int, shared_x: bool) -> VegaView:
    """Views below each other, `spacing` pixels apart, with one scale for all horizontal axes or one each."""
    scale = {"x": "independent"}
    if shared_x:
        scale = {"x": "shared"}
    return {"vconcat": list(views), "spacing": spacing, "resolve": {"scale": scale}}


def finish(chart: "VegaView | alt.LayerChart | alt.FacetChart") -> VegaView:
    """The chart as a Vega-Lite specification, with the shared look; its data stay named, without rows."""
    if not isinstance(chart, dict):
        chart = chart.to_dict(validate=False)
    return {"$schema": alt.SCHEMA_URL, **chart, "config": CONFIG}


@dataclass(frozen=True)
class Series:
    """Names in a column that a chart tells apart by colour, shape and dash, each with a fixed place in every chart.

    With a `title` there is a legend, one for all channels.
    """

    column: str
    names: Sequence[str]
    title: str | None = None
    called: Sequence[str] = ()
    """What readers call them, where that is another word."""
    listed: Sequence[str] = ()
    """Those in the legend, where it has not all."""

    @property
    def colour(self) -> "alt.Color":
        """The colour of a line, or of the inside of a point."""
        return alt.Color(self._field, scale=self._among(SERIES), legend=self._legend)

    @property
    def outline(self) -> "alt.Stroke":
        """The colour of the edge of a point whose inside may be empty."""
        return alt.Stroke(self._field, scale=self._among(SERIES), legend=None)

    @property
    def shape(self) -> "alt.Shape":
        """The shape of a point."""
        return alt.Shape(self._field, scale=self._among(SHAPES), legend=self._legend)

    @property
    def dash(self) -> "alt.StrokeDash":
        """The dashes of a line. A name more than the colours have keeps them out of the legend, where Vega-Lite would
        fray the edges of its signs with them."""
        scale = self._among(DASHES)
        scale.domain, scale.range = [*scale.domain, ""], [*scale.range, [1, 0]]
        return alt.StrokeDash(self._field, scale=scale, legend=None)

    @property
    def _field(self) -> str:
        return f"{self.column}:N"

    @property
    def _legend(self) -> "alt.Legend | None":
        """Long names stand below each other."""
        if not self.title:
            return None
        legend: alt.Legend = alt.Legend(title=self.title)
        if self.listed:
            legend["values"] = list(self.listed)
        called = list(self.called or self.names)
        if called != list(self.names):
            place = f"indexof({json.dumps(list(self.names))}, datum.label)"
            legend.labelExpr = f"{json.dumps(called)}[{place}]"
        if max(map(len, called), default=0) > LONG_NAME:
            legend.columns = 1
        return legend

    def _among(self, looks: Sequence[Any]) -> "alt.Scale":
        """A scale that gives each name one of the looks, and begins anew where there are more names."""
        own = list(islice(cycle(looks), len(self.names)))
        return alt.Scale(domain=list(self.names), range=own)


def metric_title(metric: Metric) -> str:
    """What stands beside an axis with the values of a metric."""
    return axis_title(metric.label, metric.unit)


def axis_title(label: str, unit: str) -> str:
    """`Peak memory (GiB)`; just the label where there is no unit."""
    if not unit:
        return label
    return f"{label} ({unit})"

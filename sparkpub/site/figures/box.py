"""Box plots of a metric: how much the runs of a cell vary."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import spread
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences
from sparkpub.site.figures import cell_table, kind, marks, panels, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.selection import Selection

BOX = 18
"""Height of the strip of an environment within a row."""
LEAST = 30
"""Height of a row at least."""
EQUAL = 0.01
"""Standard deviation in per cent of the mean below which runs count as equal in a headline."""


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The spread of the cells; where no cell has one, what differs."""
    cells = selection.cells(metric)
    differences = sentences.headline(
        selection.names, metric, selection.comparisons(metric)
    )
    chart, note = panels.chart(draw, selection, metric)
    return selection.figure(
        key,
        chart,
        selection.data(metric, "runs"),
        title=f"{metric.label}: spread",
        says=_spread(cells)
        or differences
        or sentences.means(selection.names, metric, cells),
        narrow=chart.given(True),
        **cell_table.details(selection, metric, note=note),
    )


def _spread(cells: Sequence[TableRow]) -> str:
    shares = []
    for cell in cells:
        if cell.n > 1 and cell.cv_percent is not None:
            shares.append(cell.cv_percent)
    if not shares:
        return ""
    if max(shares) < EQUAL:
        return f"The standard deviation within a cell is below {EQUAL} % of the mean."
    texts = []
    for share in sorted(shares):
        text = f"{share:.2g}"
        if share < EQUAL:
            text = "0"
        texts.append(text)
    return f"The standard deviation within a cell is {spread(texts, '%')} of the mean."


def draw(metric: Metric, layout: Layout, narrow: bool = False) -> dict[str, Any]:
    """Rows `runs`: median, quartiles, whiskers to the farthest run within 1.5 interquartile ranges (Tukey)."""
    layers = partial(_layers, metric)
    step = layout.row_height(BOX, least=LEAST)
    return panels.draw(layout, layers, step, "runs", narrow=narrow, shared_x=False)


def _layers(metric: Metric, panel: Panel) -> "list[alt.Chart]":
    counted = panel.data("runs", marks.has(metric.name), marks.COUNTED)
    boxes = counted.mark_boxplot(
        size=12,
        median={"color": theme.TEXT},
        rule={"color": theme.FAINT},
        outliers={"size": 30, "filled": False},
    ).encode(
        x=panel.x(metric, metric.name, zero=False),
        y=panel.y,
        color=panel.environments.colour,
        **panel.beside,
    )
    return [boxes]


KIND = kind.of_each_metric("-box", figure)
"""`peak-memory-box`."""

"""Box plots of a metric: how much the runs of a cell vary."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import spread
from sparkpub.review.summary import CellStatistic
from sparkpub.site import sentences
from sparkpub.site.figures import cell_table, marks, panels, rows, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import slug

BOX = 18
"""Height of the strip of an environment within a row."""
LEAST = 30
"""Height of a row at least."""
EQUAL = 0.01
"""Standard deviation in per cent of the mean below which runs count as equal in a headline."""


def offers(_campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory-box`."""
    yield f"{slug(metric.name)}-box", partial(figure, metric)


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The spread of the cells; where no cell has one, what differs."""
    cells = selection.cells(metric)
    differences = sentences.headline(metric, selection.comparisons(metric))
    made = panels.charts(draw, selection, metric)
    return selection.figure(
        key,
        made.chart,
        {"runs": selection.rows_about("runs", metric)},
        title=f"{metric.label}: spread",
        says=_spread(cells) or differences or sentences.means(metric, cells),
        narrow=made.narrow,
        **cell_table.details(selection, metric, note=made.note),
    )


def _spread(cells: Sequence[CellStatistic]) -> str:
    shares = [
        cell.cv_percent for cell in cells if cell.n > 1 and cell.cv_percent is not None
    ]
    if not shares:
        return ""
    if max(shares) < EQUAL:
        return f"The standard deviation within a cell is below {EQUAL} % of the mean."
    texts = []
    for share in sorted(shares):
        texts.append("0" if share < EQUAL else f"{share:.2g}")
    return f"The standard deviation within a cell is {spread(texts, '%')} of the mean."


def draw(
    scope: Scope, metric: Metric, layout: Layout, narrow: bool = False
) -> dict[str, Any]:
    """Rows `runs`: median, quartiles, whiskers to the farthest run within 1.5 interquartile ranges (Tukey)."""

    def layers(panel: Panel) -> "list[alt.Chart]":
        return [_boxes(panel, metric)]

    step = max(LEAST, BOX * len(layout.environments))
    return panels.draw(
        scope, layout, layers, step, "runs", narrow=narrow, shared_x=False
    )


def _boxes(panel: Panel, metric: Metric) -> "alt.Chart":
    counted = panel.data("runs", marks.has(metric.name), "datum.state === 'counted'")
    side = {}
    if panel.legend:
        side["yOffset"] = alt.YOffset(
            "environment:N", sort=list(panel.layout.environments)
        )
    boxes: alt.Chart = counted.mark_boxplot(
        size=12,
        median={"color": theme.TEXT},
        rule={"color": theme.FAINT},
        outliers={"size": 30, "filled": False},
    ).encode(
        x=panel.x(metric, metric.name, zero=False),
        y=panel.y,
        color=marks.environment_colour(panel.scope, panel.legend),
        **side,
    )
    return boxes


KIND = Kind(of_metric=offers, tables={"runs": rows.runs})

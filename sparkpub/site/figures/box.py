"""Box plots of a metric: how much the runs of a cell vary."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import spread
from sparkpub.review.summary import CellStatistic
from sparkpub.site import sentences
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import cell_table, marks, rows, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import slug


def offers(_campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory-box`."""
    yield f"{slug(metric.name)}-box", partial(figure, metric)


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The spread of the cells; where no cell has one, what differs."""
    cells = selection.cells(metric)
    differences = sentences.differences(metric, selection.comparisons(metric))
    return selection.figure(
        key,
        Chart(draw, (selection.scope, metric)),
        {"runs": selection.rows_about("runs", metric)},
        title=f"{metric.label}: spread",
        says=_spread(cells) or differences or sentences.means(metric, cells),
        **cell_table.details(selection, metric),
    )


def _spread(cells: Sequence[CellStatistic]) -> str:
    shares = [
        cell.cv_percent for cell in cells if cell.n > 1 and cell.cv_percent is not None
    ]
    if not shares:
        return ""
    texts = [f"{share:.2g}" for share in sorted(shares)]
    return f"Runs of one cell vary by {spread(texts, '%')} of their mean (sd)."


def draw(scope: Scope, metric: Metric) -> dict[str, Any]:
    """Rows `runs`: median, quartiles, whiskers to the farthest run within 1.5 interquartile ranges (Tukey)."""
    counted = marks.rows(
        scope, "runs", marks.has(metric.name), "datum.state === 'counted'"
    )
    boxes = counted.mark_boxplot(
        size=18,
        median={"color": theme.TEXT},
        rule={"color": theme.FAINT},
        outliers={"size": 30, "filled": False},
    ).encode(
        x=marks.x(metric, metric.name, zero=False),
        y=marks.y(scope),
        color=marks.environment_colour(scope, None),
    )
    return theme.finish(alt.layer(boxes).properties(height=marks.height(scope)))


KIND = Kind(of_metric=offers, tables={"runs": rows.runs})

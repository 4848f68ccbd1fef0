"""A metric against the order of the runs: does it drift?"""

from collections.abc import Iterator, Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.review.dataset import CampaignData
from sparkpub.review.names import Names
from sparkpub.review.statistics.describe import ALPHA
from sparkpub.review.statistics.drift import detectable_change
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import cell_table, kind, marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection
from sparkpub.site.figures.theme import Series
from sparkpub.site.publication import Publication

MINIMUM_RUNS = 3
"""A line through fewer runs is no trend."""


def trends(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """Both ends of each cell's Theil-Sen line through the medians (Conover 1980), against place in the campaign.

    Two rows per cell and metric: its cell, `metric, end` (first or last), `order, value`.
    """
    places = {
        stored.record.run_id: place for place, stored in enumerate(campaign.runs, 1)
    }
    for metric in publication.metrics(campaign):
        for cell in publication.results.cells_of(campaign.name, metric.name):
            if cell.trend_slope is None or cell.n < MINIMUM_RUNS:
                continue
            middle = (cell.n - 1) / 2
            for end, index in (("first", 0), ("last", cell.n - 1)):
                yield {
                    **cell_fields(publication, campaign, cell.cell),
                    "metric": metric.name,
                    "end": end,
                    "order": places[cell.runs[index]],
                    "value": cell.p50 + cell.trend_slope * (index - middle),
                }


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """The cells that drift; where none was tested, what differs."""
    cells = selection.cells(metric)
    differences = sentences.headline(
        selection.names, metric, selection.comparisons(metric)
    )
    values = [row[metric.name] for row in selection.runs_with(metric)]
    shown = marks.least_axis(metric, values)
    drift = _drift(selection.names, metric, cells) or _too_few(metric, cells)
    return selection.figure(
        key,
        Chart(draw, (selection.scope, metric, shown)),
        selection.data(metric, "runs", "trends"),
        title=f"{metric.label} in run order",
        says=drift or differences or sentences.means(selection.names, metric, cells),
        **cell_table.details(selection, metric, runs="listed"),
    )


def _drift(names: Names, metric: Metric, cells: Sequence[TableRow]) -> str:
    tested = [cell for cell in cells if cell.trend_p_adjusted is not None]
    drifting = [
        " · ".join(names.cell(cell.campaign, cell.cell))
        for cell in tested
        if cell.trend_p_adjusted < ALPHA
    ]
    if not tested:
        return ""
    test = "Mann-Kendall over the runs in the figures, adjusted"
    if not drifting:
        return f"No trend of {metric.within_sentence} is seen in {_runs(tested)}; {_unseen(tested)} ({test})."
    cells_of_all = f"{len(drifting)} of {counted(len(tested), 'cell')}"
    return (
        f"{metric.label} drifts with run order in {cells_of_all} "
        f"({test}): {'; '.join(drifting)}."
    )


def _runs(cells: Sequence[TableRow]) -> str:
    """`10 runs`, `5 to 10 runs of 6 cells`."""
    fewest, most = min(cell.n for cell in cells), max(cell.n for cell in cells)
    number = f"{most} runs" if fewest == most else f"{fewest} to {most} runs"
    return number if len(cells) == 1 else f"{number} of {counted(len(cells), 'cell')}"


def _unseen(cells: Sequence[TableRow]) -> str:
    """What change over a campaign would have been seen: a test that sees nothing says no more than that."""
    changes = [
        detectable_change(cell.n, cell.sd, ALPHA / len(cells)) / cell.mean
        for cell in cells
        if cell.n > 2 and cell.mean > 0
    ]
    if not changes:
        return "how large a one would have been is not known"
    largest = 100 * max(changes)
    return f"a change of {largest:.2g} % from the first to the last run usually would have been"


def _too_few(metric: Metric, cells: Sequence[TableRow]) -> str:
    """What a reader can learn of order where no cell has a line; empty where one has."""
    if any(cell.n >= MINIMUM_RUNS for cell in cells):
        return ""
    return (
        f"No cell has enough runs to tell whether {metric.within_sentence} "
        "drifts with run order."
    )


def draw(
    scope: Scope, metric: Metric, shown: marks.Span | None = None
) -> dict[str, Any]:
    """Rows `runs` against their place in the campaign, and `trends`, the line of each cell.

    `shown` is what the axis of the metric shows at least.
    """
    title = theme.metric_title(metric)
    x = alt.X(
        "order:Q",
        title="Run order in the campaign",
        scale=alt.Scale(nice=True, zero=False),
    )
    environments = marks.environments(scope)
    points = marks.runs(
        marks.rows(scope, "runs", marks.has(metric.name)),
        environments,
        x=x,
        y=marks.y(metric.name, title, shown=shown),
        tooltip=[
            *marks.run_tooltip(metric.label, metric.name),
            alt.Tooltip("order:Q", title="place"),
        ],
    )
    # A name shared with the points would dash their legend.
    dashes = Series("line", [f"trend in {name}" for name in scope.environments])
    trend = (
        marks.rows(scope, "trends", marks.about(metric))
        .transform_calculate(line="'trend in ' + datum.environment")
        .mark_line(strokeWidth=2, opacity=0.8)
        .encode(
            x=x,
            y=alt.Y("value:Q", title=title),
            detail=alt.Detail("cell:N"),
            color=environments.colour,
            strokeDash=dashes.dash,
        )
    )
    layers = [trend, points]
    for place, workload in enumerate(scope.workloads):
        # Neighbouring workloads have their names on different sides of their lines.
        layers.append(_names(scope, metric, x, workload, below=place % 2 == 1))
    return theme.finish(theme.layered(layers, height=280))


def _names(
    scope: Scope, metric: Metric, x: "alt.X", workload: str, *, below: bool
) -> "alt.Chart":
    """The models of a workload, at the first end of their lines: one name per pair of lines that lie close."""
    name = scope.in_words(scope.models, "datum.model")
    if len(scope.workloads) > 1:
        load = scope.in_words(scope.workloads, "datum.workload")
        name += f" + ' · ' + {load}"
    ends = marks.rows(
        scope,
        "trends",
        marks.about(metric),
        marks.equal("end", "first"),
        marks.equal("environment", scope.environments[0]),
        marks.equal("workload", workload),
    )
    distance = -10
    if below:
        distance = 14
    words = ends.transform_calculate(name=name).mark_text(
        align="left", dy=distance, fontSize=11, color=theme.FAINT
    )
    named: alt.Chart = words.encode(x=x, y=alt.Y("value:Q"), text=alt.Text("name:N"))
    return named


KIND = kind.of_each_metric("-order", figure, trends=trends)
"""`peak-memory-order`."""

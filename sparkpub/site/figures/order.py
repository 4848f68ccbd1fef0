"""A metric against the order of the runs: does it drift?"""

from collections.abc import Iterator, Sequence
from functools import partial
from math import isinf
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted
from sparkpub.review.dataset import CampaignData
from sparkpub.review.names import Names
from sparkpub.review.statistics.estimate import ALPHA
from sparkpub.review.statistics.series import detectable_change
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences
from sparkpub.site.figures import cell_table, marks, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.compile import Chart
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.rows import Row, cell_fields
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.publication import Publication, slug

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
    return selection.figure(
        key,
        Chart(draw, (selection.scope, metric, shown)),
        selection.data(metric, "runs", "trends"),
        title=f"{metric.label} in run order",
        says=_drift(selection.names, metric, cells, _tests(selection))
        or differences
        or sentences.means(selection.names, metric, cells),
        **cell_table.details(selection, metric, runs="listed"),
    )


def drifting(cells: Sequence[TableRow]) -> list[TableRow]:
    """Those of these cells that drift with run order."""
    tested = [cell for cell in cells if cell.trend_p_adjusted is not None]
    return [cell for cell in tested if cell.trend_p_adjusted < ALPHA]


def _tests(selection: Selection) -> int:
    """How many trends of the campaign were tested: their p-values are corrected for that number."""
    table = selection.publication.results.cells
    mine = table[table["campaign"] == selection.campaign.name]
    return int(mine["trend_p_adjusted"].notna().sum())


def _drift(names: Names, metric: Metric, cells: Sequence[TableRow], tests: int) -> str:
    tested = [cell for cell in cells if cell.trend_p_adjusted is not None]
    drifting_cells = [
        " · ".join(names.cell(cell.campaign, cell.cell)) for cell in drifting(cells)
    ]
    if not tested:
        return ""
    test = "Mann-Kendall over the runs in the figures, adjusted"
    if not drifting_cells:
        return f"No trend of {metric.within_sentence} is seen in {_runs(tested)}; {_unseen(tested, tests)} ({test})."
    cells_of_all = f"{len(drifting_cells)} of {counted(len(tested), 'cell')}"
    return (
        f"{metric.label} drifts with run order in {cells_of_all} "
        f"({test}): {'; '.join(drifting_cells)}."
    )


def _runs(cells: Sequence[TableRow]) -> str:
    """`10 runs`, `5 to 10 runs of 6 cells`."""
    fewest, most = min(cell.n for cell in cells), max(cell.n for cell in cells)
    number = f"{most} runs" if fewest == most else f"{fewest} to {most} runs"
    return number if len(cells) == 1 else f"{number} of {counted(len(cells), 'cell')}"


def _unseen(cells: Sequence[TableRow], tests: int) -> str:
    """What change over a campaign would have been seen: a test that sees nothing says no more than that."""
    changes = [
        detectable_change(cell.n, cell.sd, ALPHA / tests) / cell.mean
        for cell in cells
        if cell.n > 2 and cell.mean > 0
    ]
    if not changes:
        return "how large a one would have been is not known"
    largest = 100 * max(changes)
    if isinf(largest):
        return "some are too few to show any"
    return f"a change of {largest:.2g} % from the first to the last run usually would have been"


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
    trend = (
        marks.rows(scope, "trends", marks.about(metric))
        .mark_line(strokeWidth=2, opacity=0.8)
        .encode(
            x=x,
            y=alt.Y("value:Q", title=title),
            detail=alt.Detail("cell:N"),
            color=environments.colour,
            strokeDash=environments.dash,
        )
    )
    layers = [trend, points]
    for place, workload in enumerate(scope.workloads):
        # Neighbouring workloads have their names on different sides of their lines.
        layers += _names(scope, metric, x, workload, below=place % 2 == 1)
    return theme.finish(theme.layered(layers, height=280))


def _names(
    scope: Scope, metric: Metric, x: "alt.X", workload: str, *, below: bool
) -> list["alt.Chart"]:
    """The models of a workload, at the first end of their lines, on a ground that parts them from the points: one name
    per pair of lines that lie close."""
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
    named = ends.transform_calculate(name=name)
    ground = named.mark_text(
        align="left",
        dy=distance,
        fontSize=12,
        stroke=theme.BACKGROUND,
        strokeWidth=4,
    )
    words = named.mark_text(align="left", dy=distance, fontSize=12, color=theme.TEXT)
    where = {"x": x, "y": alt.Y("value:Q"), "text": alt.Text("name:N")}
    return [ground.encode(**where), words.encode(**where)]


def offers(campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory-order`, where some cell has runs enough for a line."""
    if any(row["metric"] == metric.name for row in campaign.rows("trends")):
        yield f"{slug(metric.name)}-order", partial(figure, metric)


KIND = Kind(of_metric=offers, tables={"trends": trends})

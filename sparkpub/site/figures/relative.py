"""Every run of a metric in per cent of the baseline's mean, so that cells of any size compare."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import listed, percent
from sparkpub.site import sentences
from sparkpub.site.drawing.chart import Chart
from sparkpub.site.figures import marks, rows, theme
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection, published
from sparkpub.site.publication import slug


def offers(campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory-relative`, where the campaign compares the metric on a scale with a true zero."""
    if any(
        row.difference_percent is not None
        for row in campaign.campaign_comparisons(metric)
    ):
        yield f"{slug(metric.name)}-relative", partial(figure, metric)


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """How far single runs lie from the mean of the baseline."""
    pair = selection.campaign_comparisons(metric)[0]
    margin = pair.equivalence_margin_percent
    runs = selection.rows_about("runs", metric)
    shown = _in_percent(selection, metric, pair.baseline)
    far = listed(
        f"{percent(share).lstrip('+')} for {part}"
        for part, share in _farthest(shown).items()
    )
    return selection.figure(
        key,
        Chart(draw, (selection.scope, metric, pair.baseline, margin)),
        {"runs": runs},
        flagged=metric,
        title=f"{metric.label}: every run against {pair.baseline}",
        says=f"Single runs differ from the mean in {pair.baseline} by at most {far}; the band is ±{margin:g} %.",
        sample=sentences.sample(
            selection.cells(metric), selection.excluded(selection.runs_with(metric))
        ),
        table=_table(selection.scope, shown),
        rows=shown,
    )


def _in_percent(selection: Selection, metric: Metric, baseline: str) -> list[Row]:
    """The runs of models and workloads that the baseline has, with their distance from its mean in per cent."""
    means = {}
    for cell in selection.cells(metric):
        if cell.environment == baseline:
            means[cell.model, cell.workload] = cell.mean
    shown = []
    for row in selection.runs_with(metric):
        mean = means.get((row["model"], row["workload"]))
        if mean is not None:
            value = row[metric.name]
            (run,) = published([row])
            shown.append(
                {
                    **run,
                    "cell": row["cell"],
                    metric.name: value,
                    "percent": 100 * (value / mean - 1),
                }
            )
    return shown


def _farthest(shown: Sequence[Row]) -> dict[str, float]:
    """Model, with its workload where there are several, to the largest distance of a run in per cent."""
    several = len({row["workload"] for row in shown}) > 1
    farthest: dict[str, float] = {}
    for row in shown:
        part = f"{row['model']} ({row['workload']})" if several else row["model"]
        farthest[part] = max(farthest.get(part, 0.0), abs(row["percent"]))
    return farthest


def _table(scope: Scope, shown: Sequence[Row]) -> Table:
    body = []
    for cell in scope.cells:
        shares = [row["percent"] for row in shown if row["cell"] == cell]
        if shares:
            least, mean, most = min(shares), sum(shares) / len(shares), max(shares)
            body.append(
                [
                    cell,
                    str(len(shares)),
                    *(percent(share, 2) for share in (least, mean, most)),
                ]
            )
    return Table(("Cell", "n", "Least", "Mean", "Most"), body)


def draw(
    scope: Scope, metric: Metric, baseline: str, margin_percent: float
) -> dict[str, Any]:
    """Rows `runs`. The band is the margin within which the campaign calls two environments equivalent.

    Runs that are not in the figures are hollow, and not in the mean.
    """
    name = metric.name
    counted = f"datum.state === 'counted' && datum.environment === {baseline!r} ? datum.{name} : null"
    runs = (
        marks.rows(scope, "runs", marks.has(name))
        .transform_calculate(base=counted)
        .transform_joinaggregate(mean="mean(base)", groupby=["model", "workload"])
        .transform_calculate(percent=f"100 * (datum.{name} / datum.mean - 1)")
        .transform_filter("isValid(datum.mean)")
    )
    share = alt.Tooltip("percent:Q", title="% from the baseline's mean", format="+.2f")
    points = marks.points(
        scope,
        runs,
        title=None,
        x=alt.X(
            "percent:Q",
            title=f"{metric.label}, in % from the mean of {baseline}",
            scale=alt.Scale(padding=10),
        ),
        y=marks.y(scope),
        yOffset=alt.YOffset("iteration:Q", scale=alt.Scale(zero=False)),
        tooltip=marks.run_tooltip(metric.label, name, [share]),
    )
    once = marks.once("runs")
    layers = alt.layer(
        marks.margin_band(once, margin_percent), marks.zero_line(once), points
    )
    return theme.finish(layers.properties(height=marks.height(scope)))


KIND = Kind(of_metric=offers, tables={"runs": rows.runs})

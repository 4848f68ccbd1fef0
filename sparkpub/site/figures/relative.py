"""Every run of a metric in per cent of the baseline's mean, so that cells of any size compare."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import percent
from sparkpub.site import sentences
from sparkpub.site.figures import marks, panels, rows
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.scope import Scope
from sparkpub.site.figures.selection import Selection, published
from sparkpub.site.publication import slug

STRIP = 20
"""Height of the strip of an environment within a row."""
LEAST = 34
"""Height of a row at least."""

CLOSE = 0.1
"""In per cent: runs that all lie nearer to the mean than this are not told apart in a headline."""


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
    compared = {(row["model"], row["environment"], row["workload"]) for row in shown}
    cells = [cell for cell in selection.cells(metric) if cell.cell in compared]
    sample = sentences.sample(cells, selection.excluded(shown))
    made = panels.charts(draw, selection, metric, pair.baseline, margin, cells=compared)
    return selection.figure(
        key,
        made.chart,
        {"runs": runs},
        narrow=made.narrow,
        flagged=metric,
        title=f"{metric.label}: every run against {pair.baseline}",
        says=_sentence(shown, pair.baseline),
        sample=f"{sample} The band is ±{margin:g} %.{made.note}",
        table=_table(selection.scope, shown),
        rows=shown,
    )


def _sentence(shown: Sequence[Row], baseline: str) -> str:
    """How far the farthest run lies, and where that is."""
    farthest = _farthest(shown)
    if not farthest:
        return f"None of these runs is compared with {baseline}."
    part = max(farthest, key=farthest.__getitem__)
    far = percent(max(farthest[part], CLOSE)).lstrip("+")
    text = f"Every run is within {far} of the mean in {baseline}"
    if len(farthest) > 1 and farthest[part] > CLOSE:
        text += f"; {part} is farthest from it"
    return f"{text}."


def _in_percent(selection: Selection, metric: Metric, baseline: str) -> list[Row]:
    """The runs of models and workloads that are compared with the baseline, with their distance from its mean in per
    cent."""
    compared = {
        (row.model, row.workload) for row in selection.campaign_comparisons(metric)
    }
    means = {}
    for cell in selection.cells(metric):
        if cell.environment == baseline:
            means[cell.model, cell.workload] = cell.mean
    shown = []
    for row in selection.runs_with(metric):
        mean = means.get((row["model"], row["workload"]))
        if mean is not None and (row["model"], row["workload"]) in compared:
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
    """The runs in the figures: those that are left out are drawn hollow and counted nowhere."""
    in_figures = [row for row in shown if row["state"] == "counted"]
    body = []
    for cell in scope.cells:
        shares = [row["percent"] for row in in_figures if row["cell"] == cell]
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
    scope: Scope,
    metric: Metric,
    layout: Layout,
    baseline: str,
    margin_percent: float,
    narrow: bool = False,
) -> dict[str, Any]:
    """Rows `runs`. The band is the margin within which the campaign calls two environments equivalent.

    Runs that are not in the figures are hollow, and not in the mean.
    """

    def layers(panel: Panel) -> "list[alt.Chart]":
        return _layers(panel, metric, baseline, margin_percent)

    step = max(LEAST, STRIP * len(layout.environments))
    return panels.draw(
        scope, layout, layers, step, "runs", narrow=narrow, shared_x=True
    )


def _layers(
    panel: Panel, metric: Metric, baseline: str, margin_percent: float
) -> "list[alt.Chart]":
    name = metric.name
    counted = f"datum.state === 'counted' && datum.environment === {baseline!r} ? datum.{name} : null"
    runs = (
        panel.data("runs", marks.has(name))
        .transform_calculate(base=counted)
        .transform_joinaggregate(mean="mean(base)", groupby=["model", "workload"])
        .transform_calculate(percent=f"100 * (datum.{name} / datum.mean - 1)")
        .transform_filter("isValid(datum.mean)")
        .transform_joinaggregate(iterations="max(iteration)")
    )
    share = alt.Tooltip("percent:Q", title="% from the baseline's mean", format="+.2f")
    points = marks.points(
        panel.scope,
        panel.strips(runs, panels.BY_ITERATION),
        title=panel.legend,
        x=panel.across("percent", f"% from the mean of {baseline}"),
        y=panel.y,
        yOffset=panel.offset,
        tooltip=marks.run_tooltip(metric.label, name, [share]),
    )
    once = marks.once("runs")
    return [marks.margin_band(once, margin_percent), marks.zero_line(once), points]


KIND = Kind(of_metric=offers, tables={"runs": rows.runs})

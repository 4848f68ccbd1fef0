"""Every run of a metric in per cent of the baseline's mean, so that cells of any size compare."""

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.record.text import percent
from sparkpub.review.names import in_environment, runs_of
from sparkpub.site import sentences
from sparkpub.site.figures import marks, panels
from sparkpub.site.figures.altair import alt
from sparkpub.site.figures.figure import Figure, Table
from sparkpub.site.figures.kind import Kind, Offer
from sparkpub.site.figures.panels import Layout, Panel
from sparkpub.site.figures.rows import Row, cell_of
from sparkpub.site.figures.selection import Scope, Selection
from sparkpub.site.publication import slug

STRIP = 20
"""Height of the strip of an environment within a row."""
LEAST = 34
"""Height of a row at least."""

CLOSE = 0.1
"""In per cent: runs that all lie nearer to the mean than this are not told apart in a headline."""


def offers(campaign: Selection, metric: Metric) -> Iterator[Offer]:
    """`peak-memory-relative`, where the campaign compares the metric on a scale with a true zero."""
    for row in campaign.campaign_comparisons(metric):
        if row.difference_percent is not None:
            yield f"{slug(metric.name)}-relative", partial(figure, metric)
            return


def figure(metric: Metric, selection: Selection, key: str) -> Figure:
    """How far single runs lie from the mean of the baseline."""
    pair = selection.campaign_comparisons(metric)[0]
    margin = pair.equivalence_margin_percent
    shown = _in_percent(selection, metric, pair.baseline)
    compared = {cell_of(row) for row in shown}
    cells = [cell for cell in selection.cells(metric) if cell.cell in compared]
    sample = sentences.sample(cells, selection.excluded(shown))
    chart, note = panels.chart(
        draw,
        selection,
        metric,
        pair.baseline,
        margin,
        cells=compared,
        percent=shown,
    )
    return selection.figure(
        key,
        chart,
        selection.data(metric, "runs"),
        flagged=metric,
        title=f"{metric.label}: every run against {runs_of(selection.scope.name(pair.baseline))}",
        says=_sentence(selection.scope, shown, pair.baseline),
        sample=f"{sample} The band is ±{margin:g} %.{note}",
        table=_table(selection.scope, shown),
    )


def _sentence(scope: Scope, shown: Sequence[Row], baseline: str) -> str:
    """How far the farthest run lies, and where that is."""
    baseline = scope.name(baseline)
    farthest = _farthest(scope, shown)
    if not farthest:
        return f"None of these runs is compared with {runs_of(baseline)}."
    part = max(farthest, key=farthest.__getitem__)
    far = percent(max(farthest[part], CLOSE)).lstrip("+")
    measured = in_environment(baseline)
    text = f"Every run is within {far} of the mean measured {measured}"
    if len(farthest) > 1 and farthest[part] > CLOSE:
        text += f"; the farthest is of {part}"
    return f"{text}."


def _in_percent(selection: Selection, metric: Metric, baseline: str) -> list[Row]:
    """The runs of models and workloads that are compared with the baseline, with their distance from its mean in per
    cent."""
    rows = selection.campaign_comparisons(metric)
    compared = {(row.model, row.workload) for row in rows}
    runs = selection.runs_with(metric)
    # Not the cell's mean, in which a machine counts by its error: the drawing's zero is that of the runs shown.
    measured: dict[tuple[str, str], list[float]] = {}
    for row in runs:
        pair = (row["model"], row["workload"])
        counts = row["state"] == "counted" and row["environment"] == baseline
        if counts and pair in compared:
            measured.setdefault(pair, []).append(row[metric.name])
    means = {pair: fmean(values) for pair, values in measured.items()}
    shown = []
    for row in runs:
        mean = means.get((row["model"], row["workload"]))
        if mean is not None:
            share = 100 * (row[metric.name] / mean - 1)
            shown.append({**row, "percent": share})
    return shown


def _farthest(scope: Scope, shown: Sequence[Row]) -> dict[str, float]:
    """Model, with its workload where there are several, to the largest distance of a run in per cent."""
    several = len({row["workload"] for row in shown}) > 1
    farthest: dict[str, float] = {}
    for row in shown:
        part = scope.name(row["model"])
        if several:
            part += f" ({scope.name(row['workload'])})"
        farthest[part] = max(farthest.get(part, 0.0), abs(row["percent"]))
    return farthest


def _table(scope: Scope, shown: Sequence[Row]) -> Table:
    """The runs in the figures: those that are left out are drawn hollow and counted nowhere."""
    shares: dict[str, list[float]] = {}
    for row in shown:
        if row["state"] == "counted":
            shares.setdefault(row["cell"], []).append(row["percent"])
    body = []
    for cell in scope.cells:
        if cell in shares:
            mine = shares[cell]
            least, mean, most = min(mine), sum(mine) / len(mine), max(mine)
            texts = [percent(share, 2) for share in (least, mean, most)]
            body.append([cell, str(len(mine)), *texts])
    return Table(("Cell", "n", "Least", "Mean", "Most"), body)


def draw(
    metric: Metric,
    layout: Layout,
    baseline: str,
    margin_percent: float,
    narrow: bool = False,
) -> dict[str, Any]:
    """Rows `runs`. The band is the margin within which the campaign calls two environments equivalent.

    Runs that are not in the figures are hollow, and not in the mean.
    """
    layers = partial(_layers, metric, baseline, margin_percent)
    step = layout.row_height(STRIP, least=LEAST)
    return panels.draw(layout, layers, step, "runs", narrow=narrow, shared_x=True)


def _layers(
    metric: Metric, baseline: str, margin_percent: float, panel: Panel
) -> "list[alt.Chart]":
    name = metric.name
    of_baseline = f"{marks.COUNTED} && {marks.equal('environment', baseline)}"
    runs = (
        panel.data("runs", marks.has(name))
        .transform_calculate(base=f"{of_baseline} ? datum.{name} : null")
        .transform_joinaggregate(mean="mean(base)", groupby=["model", "workload"])
        .transform_calculate(percent=f"100 * (datum.{name} / datum.mean - 1)")
        .transform_filter("isValid(datum.mean)")
    )
    share = alt.Tooltip("percent:Q", title="% from the baseline's mean", format="+.2f")
    points = panel.runs(
        runs,
        x=panel.across(
            "percent", f"% from {sentences.mean_of(panel.layout.scope.name(baseline))}"
        ),
        tooltip=marks.run_tooltip(metric.label, name, share),
    )
    once = marks.once("runs")
    return [marks.margin_band(once, margin_percent), marks.zero_line(once), points]


KIND = Kind(of_metric=offers)

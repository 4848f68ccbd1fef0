"""Pages that are programs in the browser, and plain tables without scripting: the explorer of runs, and compare."""

from collections.abc import Sequence
from typing import Any

from sparkpub.record.metrics import METRICS, Metric, ranked
from sparkpub.site.figures import Chart
from sparkpub.site.figures.drawn import Figure, Table
from sparkpub.site.figures.library import Library
from sparkpub.site.figures.samples import thinned, trace
from sparkpub.site.publication import Publication

EXPLORER, OVERLAY = "explorer", "overlay"
DRAWN_SIGNALS, DRAWN_POINTS = 3, 80
"""How much of two runs is drawn before a reader chooses: a page for everybody stays light."""


def metrics(publication: Publication) -> list[Metric]:
    """Every metric that a run has, those that lead first."""
    found = {metric.name: metric for campaign in publication.campaigns for metric in publication.metrics(campaign)}
    return ranked(found.values())


def explorer(publication: Publication, library: Library) -> dict[str, Any] | None:
    """What the explorer's template needs, or None where there is no run with a metric.

    `settings` is read by `explorer.js`: addresses from the root of the site, and the metrics with unit and decimals.
    """
    known = metrics(publication)
    if not known:
        return None
    across = known[0]
    up = _beside(publication, across, known)
    return {
        "settings": {"rows": library.sources["runs"], "metrics": _described(known)},
        "metrics": known,
        "across": across,
        "up": up,
        "figure": library.add(_chart(library, across, up)),
        "fields": {
            axis: values
            for axis in ("campaign", "model", "environment", "workload", "state")
            if len(values := list(dict.fromkeys(row[axis] for row in library.tables["runs"]))) > 1
        },
    }


def _beside(publication: Publication, across: Metric, known: Sequence[Metric]) -> Metric:
    """The first metric that half of the runs with `across` have too, so that the first view is not empty."""
    runs = [run.record for run in publication.dataset.runs if run.record.value(across.name) is not None]
    shared = {metric.name: sum(run.value(metric.name) is not None for run in runs) for metric in known}
    others = [metric for metric in known if metric != across] or [across]
    return next((metric for metric in others if 2 * shared[metric.name] >= len(runs)), others[0])


def compare(publication: Publication, library: Library) -> dict[str, Any] | None:
    """What the template of compare needs, or None where there is nothing to compare."""
    known = metrics(publication)
    if not known:
        return None
    margins = {campaign.name: campaign.margin_percent for campaign in publication.campaigns}
    figure = _overlay(publication)
    return {
        "settings": {"rows": library.sources["runs"], "metrics": _described(known), "margins": margins},
        "figure": None if figure is None else library.add(figure),
        "comparisons": [(row, METRICS.get(row.metric)) for row in publication.statistics.comparisons],
    }


def _overlay(publication: Publication) -> Figure | None:
    """Two runs with telemetry, of one model in two environments where there are such."""
    runs = [run for campaign in publication.campaigns for run in campaign.runs if run.record.file("telemetry")]
    first = runs[0].record if runs else None
    pair = runs[:1] + [run for run in runs if first is not None and run.record.environment != first.environment][:1]
    traces = [(run.record.run_id, found) for run in pair if (found := trace(run))]
    if len(traces) < 2:
        return None
    shared = [label for label, _ in traces[0][1].signals if label in dict(traces[1][1].signals)][:DRAWN_SIGNALS]
    rows = [
        {"side": side, "signal": label, "t": t, "value": value}
        for side, (_, found) in zip("AB", traces, strict=True)
        for label in shared
        for t, value in thinned([(row["t"], row["value"]) for row in found.samples if row["signal"] == label],
                                DRAWN_POINTS)
    ]  # fmt: skip
    return Figure(
        key=OVERLAY,
        title="Two runs on one time axis",
        says="What the sensors saw, from the launch of each run.",
        sample="A: {}. B: {}.".format(*(name for name, _ in traces)),
        chart=Chart("overlay"),
        data={"samples": rows},
        table=Table((), ()),
        rows=rows,
    )


def _described(known: Sequence[Metric]) -> list[dict[str, Any]]:
    return [
        {"name": metric.name, "label": metric.label, "unit": metric.unit, "decimals": metric.decimals,
         "direction": metric.direction}
        for metric in known
    ]  # fmt: skip


def _chart(library: Library, across: Metric, up: Metric) -> Figure:
    rows = library.tables["runs"]
    environments = tuple(dict.fromkeys(row["environment"] for row in rows))
    return Figure(
        key=EXPLORER,
        title="Any metric against any other",
        says=f"Each point is a run: {across.label} ({across.unit}) across, {up.label} ({up.unit}) up.",
        sample=f"{len(rows)} runs of all campaigns. Drag over points to keep only those in the table.",
        chart=Chart("explore", (across.name, up.name, environments)),
        data={"runs": rows},
        table=Table((), ()),
        rows=rows,
        sources={"runs": library.sources["runs"]},
    )

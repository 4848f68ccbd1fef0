"""Pages that are programs in the browser, and plain tables without scripting: the explorer of runs, and compare."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparkpub.record.derived import values_of
from sparkpub.record.metrics import METRICS, Metric, ranked
from sparkpub.review.names import parts_of
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.comparisons import deciding
from sparkpub.site.figures import explore
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.library import Library
from sparkpub.site.publication import Publication, cell_label, run_address

ProgramRow = dict[str, Any]
COMPARED = "compared"
"""The table of comparisons that the page of compare reads."""
NAMES = "names"
"""The table of names for readers that both programs read: campaign, axis and key to the name."""
MOST_LISTED = 2_000
"""Comparisons in the plain table, which readers without scripting see: a megabyte."""
MOST_DRAWN = 2_000
"""Runs in the explorer's drawing until a browser shows all of them: laying out 8,000 takes a telephone 2 s more."""
FIRST = 25
"""Runs that the page of the explorer has; a browser fetches all when a reader asks for more."""
COLUMNS = 4
"""Metrics that the table begins with."""
AXES = ("campaign", "model", "environment", "workload", "iteration", "state")
"""Columns of the explorer's table beside metrics, as in `explorer.js`."""
FIELDS = ("campaign", "model", "environment", "workload", "state")
"""By which the explorer filters, where runs differ in them."""


def metrics(publication: Publication) -> list[Metric]:
    """Every metric that a run has, those that lead first."""
    found: dict[str, Metric] = {}
    for campaign in publication.campaigns:
        for metric in publication.metrics(campaign):
            found[metric.name] = metric
    return ranked(found.values())


def explorer(
    publication: Publication, library: Library, addresses: Mapping[str, str]
) -> dict[str, Any] | None:
    """What the explorer's template needs, or None where there is no run with a metric.

    `addresses` are those of `tables`. `settings` is read by `explorer.js`: addresses from the root of the site, and the
    metrics with unit and decimals.
    """
    known = metrics(publication)
    if not known:
        return None
    rows = list(_runs(publication))
    across = known[0]
    up = _beside(publication, across, known)
    names = _names(publication)
    columns = _columns(rows, known)
    fields = {}
    for axis in FIELDS:
        boxes = _boxes(names, rows, axis)
        if len(boxes) > 1:
            fields[axis] = boxes
    return {
        "settings": {
            "rows": addresses["runs"],
            "names": addresses[NAMES],
            "metrics": _described(known),
            "columns": [metric.name for metric in columns],
        },
        "metrics": known,
        "across": across,
        "up": up,
        "figure": library.add(_first_view(rows, addresses["runs"], across, up, names)),
        "fields": fields,
        "axes": AXES,
        "columns": columns,
        "names": names,
        "first": rows[:FIRST],
        "count": len(rows),
    }


def _columns(rows: Sequence[ProgramRow], known: Sequence[Metric]) -> Sequence[Metric]:
    """The metrics that the table begins with: the first that more than half of the runs have, or else the first."""
    common = []
    for metric in known:
        having = sum(metric.name in row for row in rows)
        if 2 * having > len(rows):
            common.append(metric)
    return (common or known)[:COLUMNS]


def _names(publication: Publication) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Campaign, axis and key to the name that readers see."""
    found = {}
    for campaign in publication.campaigns:
        of = publication.names.campaign(campaign.name)
        # Beside other campaigns a size alone would not tell which model it is.
        title = {campaign.name: campaign.info.title}
        found[campaign.name] = {**of.by_axis, "model": of.models, "campaign": title}
    return found


def _boxes(
    names: Mapping[str, Mapping[str, Mapping[str, str]]],
    rows: Sequence[ProgramRow],
    axis: str,
) -> dict[str, str]:
    """What readers can tick: the keys of one name, with strokes between them, and the name."""
    keys: dict[str, dict[str, None]] = {}
    for row in rows:
        key = str(row[axis])
        name = names[row["campaign"]].get(axis, {}).get(key, key)
        keys.setdefault(name, {})[key] = None
    return {"|".join(keys[name]): name for name in sorted(keys, key=str.casefold)}


def _first_view(
    rows: Sequence[ProgramRow],
    source: str,
    across: Metric,
    up: Metric,
    names: Mapping[str, Mapping[str, Mapping[str, str]]],
) -> Figure:
    """The figure of all runs; where these are more than `MOST_DRAWN`, a browser shows the rest."""
    called: dict[str, str] = {}
    for campaign in names.values():
        # What is special about one of several has no room in a legend of all campaigns.
        kinds = {
            key: parts_of(name)[0] for key, name in campaign["environment"].items()
        }
        called |= kinds
    figure = explore.figure(rows, across, up, called)
    figure = replace(figure, rows_at=source)
    points = [row for row in rows if across.name in row and up.name in row]
    if len(points) <= MOST_DRAWN:
        return figure
    drawn = _part(points, MOST_DRAWN)
    until = f"{len(drawn):,} runs of all campaigns, the same share of every cell"
    sample = f"{figure.sample} Until the chart is used, it shows {until}."
    chart = replace(figure.chart, rows=drawn)
    return replace(figure, chart=chart, sample=sample)


def _part(rows: Sequence[ProgramRow], most: int) -> list[ProgramRow]:
    """So many of the rows, evenly chosen in the order of their cells, and so the same share of each."""
    by_cell = sorted(rows, key=lambda row: str(row["cell"]))
    return [by_cell[place * len(rows) // most] for place in range(most)]


def _beside(
    publication: Publication, across: Metric, known: Sequence[Metric]
) -> Metric:
    """The first metric that half of the runs with `across` have too, so that the first view is not empty."""
    others = [metric for metric in known if metric != across] or [across]
    records = [run.record for run in publication.dataset.runs]
    having = [record for record in records if record.value(across.name) is not None]
    for metric in others:
        both = sum(record.value(metric.name) is not None for record in having)
        if 2 * both >= len(having):
            return metric
    return others[0]


def tables(publication: Publication) -> Mapping[str, object]:
    """Each table that these programs read by its name."""
    return {
        "runs": list(_runs(publication)),
        "cells": list(_cells(publication)),
        NAMES: _names(publication),
        COMPARED: list(map(_compared, publication.results.comparison_rows)),
    }


def _runs(publication: Publication) -> Iterator[ProgramRow]:
    """One row per run: `run, campaign, model, environment, workload, cell, iteration, state, flags, href, started,
    start_temp`, and a column per metric with a value."""
    for campaign in publication.campaigns:
        for stored in campaign.runs:
            record = stored.record
            model, environment, workload = record.cell
            findings = publication.review.by_run.get(record.run_id, ())
            yield {
                "run": record.run_id,
                "campaign": campaign.name,
                "model": model,
                "environment": environment,
                "workload": workload,
                "cell": cell_label(publication.names, campaign, record.cell),
                "iteration": record.iteration,
                "state": publication.state(record.run_id),
                "flags": ", ".join(sorted({finding.check for finding in findings})),
                "href": run_address(stored),
                "started": record.started.value,
                "start_temp": record.value("gpu_temp_start_celsius"),
                **values_of(record),
            }


def _cells(publication: Publication) -> Iterator[ProgramRow]:
    """One row per cell and metric: its keys, `metric, n, mean, sd`."""
    for cell in publication.results.cell_rows:
        keys = (
            "campaign",
            "model",
            "environment",
            "workload",
            "metric",
            "n",
            "mean",
            "sd",
        )
        yield {key: getattr(cell, key) for key in keys}


def _compared(row: TableRow) -> ProgramRow:
    """A comparison as `compare.js` reads it: `interval_percent` is the one that decides, of the baseline's mean."""
    return {
        "campaign": row.campaign,
        "model": row.model,
        "workload": row.workload,
        "metric": row.metric,
        "baseline": row.baseline,
        "candidate": row.candidate,
        "mean_baseline": row.mean_baseline,
        "mean_candidate": row.mean_candidate,
        "n_baseline": row.n_baseline,
        "n_candidate": row.n_candidate,
        "difference": row.difference,
        "percent": row.difference_percent,
        "interval_percent": _in_percent(row),
        "verdict": row.verdict,
        "why": row.why,
    }


def _in_percent(row: TableRow) -> list[float] | None:
    """The interval of the difference in per cent of the baseline, where the scale has a true zero."""
    interval = deciding(row)
    if interval is None or row.difference_percent is None:
        return None
    return [100 * end / row.mean_baseline for end in interval]


def compare(
    publication: Publication, addresses: Mapping[str, str]
) -> dict[str, Any] | None:
    """What the template of compare needs, or None where there is nothing to compare."""
    known = metrics(publication)
    if not known:
        return None
    listed = publication.results.comparison_rows[:MOST_LISTED]
    return {
        "settings": {
            "rows": addresses["runs"],
            "cells": addresses["cells"],
            "comparisons": addresses[COMPARED],
            "names": addresses[NAMES],
            "metrics": _described(known),
        },
        "comparisons": [(row, METRICS.get(row.metric)) for row in listed],
        "more": len(publication.results.comparison_rows) - len(listed),
    }


def _described(known: Sequence[Metric]) -> list[dict[str, Any]]:
    """The metrics as the browser reads them."""
    return [
        {
            "name": metric.name,
            "label": metric.label,
            "unit": metric.unit,
            "decimals": metric.decimals,
            "direction": metric.direction,
        }
        for metric in known
    ]

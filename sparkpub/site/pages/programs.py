"""Pages that are programs in the browser, and plain tables without scripting: the explorer of runs, and compare."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparkpub.record.derived import values_of
from sparkpub.record.metrics import METRICS, Metric, ranked
from sparkpub.review.names import parts_of
from sparkpub.review.tables.cells import CELL
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.comparisons import deciding
from sparkpub.site.figures import explore
from sparkpub.site.figures.library import Library
from sparkpub.site.publication import Publication, cell_label, run_address

ProgramRow = dict[str, Any]
COMPARED = "compared"
"""The table of comparisons that the page of compare reads."""
NAMES = "names"
"""The table of names for readers that both programs read: campaign, axis and key to the name."""
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
    across, up = known[0], _beside(rows, known)
    names = _names(publication)
    columns = _columns(rows, known)
    boxes = {axis: _boxes(names, rows, axis) for axis in FIELDS}
    called: dict[str, str] = {}
    for campaign in names.values():
        # What is special about one of several has no room in a legend of all campaigns.
        for key, name in campaign["environment"].items():
            called[key] = parts_of(name)[0]
    figure = explore.figure(rows, across, up, called)
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
        "figure": library.add(replace(figure, rows_at=addresses["runs"])),
        "fields": {axis: known for axis, known in boxes.items() if len(known) > 1},
        "axes": AXES,
        "columns": columns,
        "names": names,
        "first": rows[:FIRST],
        "count": len(rows),
    }


def _columns(rows: Sequence[ProgramRow], known: Sequence[Metric]) -> Sequence[Metric]:
    """The metrics that the table begins with: the first that more than half of the runs have, or else the first."""
    having = Counter(name for row in rows for name in row)
    common = [metric for metric in known if 2 * having[metric.name] > len(rows)]
    return (common or known)[:COLUMNS]


def _beside(rows: Sequence[ProgramRow], known: Sequence[Metric]) -> Metric:
    """The first metric that half of the runs with the first of all have too, so that the first view is not empty."""
    across, *others = known
    having = [row for row in rows if across.name in row]
    for metric in others:
        if 2 * sum(metric.name in row for row in having) >= len(having):
            return metric
    return (others or known)[0]


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
    keys = (*CELL, "metric", "n", "mean", "sd")
    for cell in publication.results.cell_rows:
        yield {key: getattr(cell, key) for key in keys}


def _compared(row: TableRow) -> ProgramRow:
    """A comparison as `compare.js` reads it: `interval_percent` is the one that decides, of the baseline's mean."""
    ends, interval = deciding(row), None
    if ends is not None and row.difference_percent is not None:
        interval = [100 * end / row.mean_baseline for end in ends]
    same = (
        *("campaign", "model", "workload", "metric", "baseline", "candidate"),
        *("mean_baseline", "mean_candidate", "n_baseline", "n_candidate", "difference"),
    )
    return {
        **{name: getattr(row, name) for name in same},
        "percent": row.difference_percent,
        "interval_percent": interval,
        "verdict": row.verdict,
        "why": row.why,
    }


def compare(
    publication: Publication, addresses: Mapping[str, str]
) -> dict[str, Any] | None:
    """What the template of compare needs, or None where there is nothing to compare."""
    known = metrics(publication)
    if not known:
        return None
    rows = publication.results.comparison_rows
    return {
        "settings": {
            "rows": addresses["runs"],
            "cells": addresses["cells"],
            "comparisons": addresses[COMPARED],
            "names": addresses[NAMES],
            "metrics": _described(known),
        },
        "comparisons": [(row, METRICS.get(row.metric)) for row in rows],
    }


def _described(known: Sequence[Metric]) -> list[dict[str, Any]]:
    """The metrics as the browser reads them."""
    named = ("name", "label", "unit", "decimals", "direction")
    return [{name: getattr(metric, name) for name in named} for metric in known]

"""The explorer of runs: a program in the browser, and a plain table of the first runs without scripting."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic_core import to_json

from sparkpub.record.derived import values_of
from sparkpub.record.metrics import Metric, ranked
from sparkpub.review.names import parts_of
from sparkpub.site.figures import explore
from sparkpub.site.figures.library import Library
from sparkpub.site.publication import Publication, cell_label, run_address

ProgramRow = dict[str, Any]
COLUMNS = 4
"""Metrics that the table begins with."""
FIELDS = ("campaign", "model", "environment", "workload", "state")
"""By which the explorer filters, where runs differ in them."""


class RunTable(NamedTuple):
    """Every run as a row, and the file in which the explorer finds them: its address changes with its content."""

    rows: Sequence[ProgramRow]
    metrics: Sequence[Metric]
    titles: Mapping[str, str]
    address: str
    content: bytes


def run_table(publication: Publication) -> RunTable:
    """The table of all runs; the file has what `explorer.js` says of them, too: the titles of campaigns, and the
    decimals of metrics."""
    found = {
        metric.name: metric
        for campaign in publication.campaigns
        for metric in publication.metrics(campaign)
    }
    rows, metrics = list(_runs(publication)), ranked(found.values())
    titles = {one.name: one.info.title for one in publication.campaigns}
    decimals = {metric.name: metric.decimals for metric in metrics}
    content = to_json({"rows": rows, "titles": titles, "decimals": decimals})
    digest = hashlib.sha256(content).hexdigest()[:8]
    address = f"data/runs.{digest}.json"
    return RunTable(rows, metrics, titles, address, content)


def explorer(library: Library, table: RunTable) -> dict[str, Any]:
    """What the explorer shows first, and what a reader can tick: of each field the values in the rows with their
    labels, where runs differ in it. Nothing where there is no run with a metric."""
    rows, metrics = table.rows, table.metrics
    if not metrics:
        return {}
    having = Counter(name for row in rows for name in row)
    # The first view is of what most runs have, so that it is not empty.
    common = [one for one in metrics if 2 * having[one.name] > len(rows)] or metrics
    across, up = common[0], common[:2][-1]
    # What is special about one of several environments has no room in a legend of all campaigns.
    called = {row["environment"]: parts_of(row["environment"])[0] for row in rows}
    figure = explore.figure(rows, across, up, called)
    fields = {}
    for axis in FIELDS:
        titles = table.titles if axis == "campaign" else {}
        values = {row[axis]: titles.get(row[axis], row[axis]) for row in rows}
        if len(values) > 1:
            ticked = sorted(values.items(), key=lambda item: item[1].casefold())
            fields[axis] = dict(ticked)
    return {
        "across": across,
        "up": up,
        "figure": library.add(replace(figure, rows_at=f"{table.address}#rows")),
        "fields": fields,
        "columns": common[:COLUMNS],
    }


def _runs(publication: Publication) -> Iterator[ProgramRow]:
    """One row per run: `run, campaign, model, environment, workload, cell, iteration, state, flags, href, started,
    start_temp`, and a column per metric with a value. Model, environment and workload are called as readers do."""
    out = publication.review.excluded
    for campaign in publication.campaigns:
        names = publication.names.campaign(campaign.name)
        for stored in campaign.runs:
            record = stored.record
            findings = publication.review.by_run.get(record.run_id, ())
            yield {
                "run": record.run_id,
                "campaign": campaign.name,
                # Beside other campaigns a size alone would not tell which model it is.
                "model": names.models[record.model],
                "environment": names.environments[record.environment],
                "workload": names.workloads[record.workload],
                "cell": cell_label(publication.names, campaign, record.cell),
                "iteration": record.iteration,
                "state": "excluded" if record.run_id in out else "counted",
                "flags": ", ".join(sorted({finding.check for finding in findings})),
                "href": run_address(stored),
                "started": record.started.value,
                "start_temp": record.value("gpu_temp_start_celsius"),
                **values_of(record),
            }

"""The rows that charts name, and the two tables of them that several kinds of figures read.

A table is one list for the whole site, published as JSON: `runs` has one row per run and a column per metric, `cells`
one row per cell and metric. What only one kind reads, its own module makes. Units are those of the metrics.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sparkpub.record.derived import values_of
from sparkpub.review.dataset import CampaignData
from sparkpub.review.reviewed import Cell
from sparkpub.site import sweeps
from sparkpub.site.publication import (
    Publication,
    cell_label,
    run_address,
)

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]
"""Name of a table to its rows."""
MakeRows = Callable[[Publication, CampaignData], Iterator[Row]]
"""Makes a campaign's share of a table."""


def cell_fields(publication: Publication, campaign: CampaignData, cell: Cell) -> Row:
    """What every row says of its cell (model, environment, workload): charts and filters select by it."""
    model, environment, workload = cell
    return {
        "campaign": campaign.name,
        "model": model,
        "environment": environment,
        "workload": workload,
        "cell": cell_label(publication.names, campaign, cell),
    }


def cell_of(row: Row) -> Cell:
    """The cell to which a row belongs."""
    return row["model"], row["environment"], row["workload"]


def runs(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per run: `run`, its cell, `iteration, order, status, state, flags, href, started, start_temp`, what it
    varies (`sweeps.columns`), and a column per metric with a value."""
    swept = sweeps.columns(
        publication.lines(campaign), publication.names.campaign(campaign.name)
    )
    for place, stored in enumerate(campaign.runs, 1):
        record = stored.record
        findings = publication.review.by_run.get(record.run_id, ())
        flags = {finding.check for finding in findings}
        yield {
            "run": record.run_id,
            **cell_fields(publication, campaign, record.cell),
            "iteration": record.iteration,
            "order": place,
            "status": record.status,
            "state": publication.state(record.run_id),
            "flags": ", ".join(sorted(flags)),
            "href": run_address(stored),
            "started": record.started.value,
            "start_temp": record.value("gpu_temp_start_celsius"),
            **swept.get(record.cell, {}),
            **values_of(record),
        }


def cells(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per cell and metric: its cell, `metric, n, mean, lo, hi` (95 % interval), `sd, p50`, what it varies."""
    swept = sweeps.columns(
        publication.lines(campaign), publication.names.campaign(campaign.name)
    )
    for metric in publication.metrics(campaign):
        for cell in publication.results.cells_of(campaign.name, metric.name):
            low, high = cell.ci95 or (None, None)
            yield {
                **cell_fields(publication, campaign, cell.cell),
                "metric": metric.name,
                "n": cell.n,
                "mean": cell.mean,
                "lo": low,
                "hi": high,
                "sd": cell.sd,
                "p50": cell.p50,
                **swept.get(cell.cell, {}),
            }


SHARED: Mapping[str, MakeRows] = {"runs": runs, "cells": cells}
"""The tables that several kinds of figures read."""

"""The table of all cells of a campaign: what each load asked for, and what came out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkpub.plan.requested import load_of
from sparkpub.plan.workloads.load import Load
from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.review.tables.column import TableRow
from sparkpub.site.pages.campaign_kind import CampaignQuestions
from sparkpub.site.publication import Publication, cell_keys, cell_label

MOST_ROWS = 20
"""Cells in the table of the page; the explorer of runs has all of them."""


def summary(
    publication: Publication, campaign: CampaignData, metrics: Sequence[Metric]
) -> list[dict[str, Any]]:
    """A row per cell: mean with interval of each leading metric."""
    cells: dict[tuple[str, ...], TableRow] = {}
    rivals: dict[tuple[str, ...], TableRow] = {}
    for metric in metrics:
        for cell in publication.results.cells_of(campaign.name, metric.name):
            cells[metric.name, *cell.cell] = cell
        for row in publication.results.comparisons_of(campaign.name, metric.name):
            rivals.setdefault(
                (metric.name, row.model, row.candidate, row.workload), row
            )
    reviewed = publication.review.campaigns[campaign.name]
    rows = []
    for key in cell_keys(campaign):
        values = [
            {
                "metric": metric,
                "cell": cells.get((metric.name, *key)),
                "comparison": rivals.get((metric.name, *key)),
            }
            for metric in metrics
        ]
        model, environment, workload = key
        recorded = len(reviewed.recorded.get(key, ()))
        in_figures = len(reviewed.counted.get(key, ()))
        runs = str(recorded)
        if in_figures != recorded:
            runs = f"{in_figures} of {recorded}"
        rows.append(
            {
                "label": cell_label(publication.names, campaign, key),
                "model": model,
                "environment": environment,
                "workload": workload,
                "values": values,
                "runs": runs,
            }
        )
    return rows


@dataclass(frozen=True)
class AskedLengths:
    """What the workloads of a sweep ask for, as the study lists its tests: column heads, and workload to values."""

    heads: tuple[str, ...] = ()
    rows: Mapping[str, Sequence[float | None]] = field(default_factory=dict)


def asked_lengths(campaign: CampaignData, question: CampaignQuestions) -> AskedLengths:
    """The loads of the workloads of a sweep; where all parts are known, the tokens of all requests at once as well.
    Empty for a campaign that sweeps nothing."""
    if not question.sweeps:
        return AskedLengths()
    by_workload: dict[str, Load] = {}
    for record in campaign.records:
        if record.workload not in by_workload:
            by_workload[record.workload] = load_of(record)
    loads = list(by_workload.values())
    columns: dict[str, list[int | None]] = {
        "Requests at once": [load.at_once for load in loads],
        "Depth": [load.depth for load in loads],
        "Input tokens": [load.input_tokens for load in loads],
        "Output tokens": [load.output_tokens for load in loads],
        "Total tokens": [_total_tokens(load) for load in loads],
    }
    if not any(columns["Depth"]):
        del columns["Depth"]
    # What some workload does not say is not shown.
    shown = {
        head: column
        for head, column in columns.items()
        if column and None not in column
    }
    rows = dict(zip(by_workload, zip(*shown.values(), strict=True), strict=False))
    return AskedLengths(tuple(shown), rows)


def _total_tokens(load: Load) -> int | None:
    """Tokens of all requests at once."""
    if load.at_once is None or load.input_tokens is None or load.output_tokens is None:
        return None
    return load.at_once * (load.input_tokens + load.output_tokens)

"""The table of all cells of a campaign: what came out of each."""

from collections.abc import Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.review.tables.column import TableRow
from sparkpub.site.publication import Publication, cell_keys, cell_label

MOST_CELLS = 40
"""Of a campaign with more, the page has no table: the charts have theirs, and the explorer has all runs."""


def summary(
    publication: Publication, campaign: CampaignData, metrics: Sequence[Metric]
) -> list[dict[str, Any]]:
    """A row per cell: mean with interval of each leading metric. Empty for a campaign of more than `MOST_CELLS`."""
    keys = cell_keys(campaign)
    if len(keys) > MOST_CELLS:
        return []
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
    for key in keys:
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

"""The table of all cells of a campaign: what came out of each."""

from collections.abc import Mapping, Sequence
from typing import Any

from sparkpub.record.metrics import Metric
from sparkpub.review.dataset import CampaignData
from sparkpub.review.statistics.estimate import MINIMUM_RUNS
from sparkpub.review.tables.column import TableRow
from sparkpub.site.figures.campaign import worth
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
        values = [_value(metric, key, cells, rivals) for metric in metrics]
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


def _value(
    metric: Metric,
    key: tuple[str, ...],
    cells: Mapping[tuple[str, ...], TableRow],
    rivals: Mapping[tuple[str, ...], TableRow],
) -> dict[str, Any]:
    """A mean with its comparison. A difference is of the runs that could be paired: where their baseline reads other
    than the mean in the table, it stands beside the difference as its `base`."""
    cell = cells.get((metric.name, *key))
    row = rivals.get((metric.name, *key))
    base = ""
    if row is not None:
        baseline = cells.get((metric.name, row.model, row.baseline, row.workload))
        base = metric.format(row.mean_baseline, unit=False)
        if baseline is not None and base == metric.format(baseline.mean, unit=False):
            base = ""
    return {
        "metric": metric,
        "cell": cell,
        "worth": worth(cell) if _is_wide(cell) else "",
        "comparison": row,
        "base": base,
    }


def _is_wide(cell: TableRow | None) -> bool:
    """Whether a mean has an interval that is wider than its runs look, because they are worth fewer than carry a
    verdict."""
    if cell is None or cell.ci95 is None or len(cell.machines) > 1:
        return False
    return bool(cell.n_effective < MINIMUM_RUNS)

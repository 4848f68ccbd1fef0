"""A campaign made of figures chosen in the test, as a dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Literal

from sparkpub.record.store import Stored
from sparkpub.review.claims.claim import Claim
from sparkpub.review.claims.ledger import Verdict, judge
from sparkpub.review.dataset import Dataset
from sparkpub.review.reviewed import ReviewedCampaign
from tests.review.statistics.campaigns import a_campaign

Cells = Mapping[tuple[str, str], Sequence[float]]
"""(model, environment) to the values of a metric in run order."""


def a_dataset(
    cells: Cells,
    metric: str = "output_throughput_tok_s",
    *,
    name: str = "c",
    order: Literal["random", "interleaved"] = "random",
    **others: Cells,
) -> Dataset:
    """Campaign `c`, or another `name`: one record per value, a minute apart, cells in turn.

    `others` maps further metrics to their values.
    """
    measured = {
        place: {metric: values, **{key: cell[place] for key, cell in others.items()}}
        for place, values in cells.items()
    }
    campaign = a_campaign(name, measured, order=order, matrix=False)
    runs = []
    for run in campaign.runs:
        record = run.record
        kind = "docker" if record.environment == "container" else "host"
        asked = record.requested.model_copy(update={"environment": {"type": kind}})
        record = record.model_copy(update={"requested": asked})
        runs.append(Stored(record, run.path))
    return Dataset(Path(), {name: replace(campaign, runs=tuple(runs))})


def together(*datasets: Dataset) -> Dataset:
    """Their campaigns in one."""
    campaigns = {}
    for dataset in datasets:
        campaigns.update(dataset.campaigns)
    return Dataset(Path(), MappingProxyType(campaigns))


def a_review(
    dataset: Dataset, *findings: Any, excluded: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """What the checks found, without asking them."""
    campaigns = {
        name: ReviewedCampaign(data, excluded)
        for name, data in dataset.campaigns.items()
    }
    return SimpleNamespace(
        dataset=dataset, findings=findings, excluded=dict(excluded), campaigns=campaigns
    )


def verdict_on(dataset: Dataset, review: Any = None, **fields: Any) -> Verdict:
    """The verdict on one claim about campaign `c`."""
    chosen: dict[str, Any] = {
        "id": "it",
        "source": {"document": "somewhere"},
        "about": "data",
        "campaign": "c",
        "note": "A margin of its own.",
        "recorded": "supported",
    }
    if "decided_by" in fields:
        chosen["says"] = "It is so."
    claim = Claim.model_validate(chosen | fields)
    return judge([claim], review or a_review(dataset))[0]

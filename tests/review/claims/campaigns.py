"""A campaign made of figures chosen in the test, as a dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Literal

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import Moment, Plan
from sparkpub.record.store import Stored
from sparkpub.review.claims.claim import Claim
from sparkpub.review.claims.ledger import Verdict, judge
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.reviewed import ReviewedCampaign
from tests.building import a_record

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
    runs = []
    for index in range(max(map(len, cells.values()))):
        for (model, environment), values in cells.items():
            if index >= len(values):
                continue
            value = values[index]
            metrics = {metric: value}
            for other, cell in others.items():
                metrics[other] = cell[model, environment][index]
            position = len(runs)
            record = a_record(
                metrics,
                campaign=name,
                run_id=f"{name}-{environment}_{model}_w_{index}",
                model=model,
                environment=environment,
                iteration=index + 1,
                plan=Plan(position=position, order=order),
                started=Moment(
                    value=f"2026-11-20T{10 + position // 60:02d}:{position % 60:02d}:00Z",
                    zone="utc",
                ),
            )
            kind = "docker" if environment == "container" else "host"
            asked = record.requested.model_copy(update={"environment": {"type": kind}})
            record = record.model_copy(update={"requested": asked})
            runs.append(Stored(record, Path(f"{name}/{record.stem}.json")))
    info = Campaign(campaign=name, title="t")
    campaign = CampaignData(info, Path(name), tuple(runs))
    return Dataset(Path(), MappingProxyType({name: campaign}))


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

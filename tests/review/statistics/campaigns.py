"""Small campaigns in memory, with any values in any cells."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import Moment, Observed, Plan
from sparkpub.record.store import CAMPAIGN_FILE, Stored, to_json
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.results import Results
from tests.building import a_record
from tests.leaderboards import reviewed

Cells = Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
"""(model, environment) to metric to the values of iterations 1, 2, …"""


FOUND = {"regex": "rate (.*)"}
"""Where a workload prints its metric."""


def a_campaign(
    name: str,
    cells: Cells,
    *,
    order: str = "interleaved",
    matrix: bool = True,
    servers: Mapping[str, str] = MappingProxyType({}),
    published: bool = False,
    **fields: Any,
) -> CampaignData:
    """A campaign of one workload; runs in the order of its plan, a minute apart. Letters name the server of each run of
    an environment; `fields` replace record fields. Figures that are `published` count without a log."""
    environments = list(dict.fromkeys(environment for _, environment in cells))
    models = list(dict.fromkeys(model for model, _ in cells))
    iterations = max(
        len(values) for metrics in cells.values() for values in metrics.values()
    )
    slots = []
    for number in range(iterations):
        turn = -1 if number % 2 and order == "interleaved" else 1
        slots += list(product([number], models, environments[::turn]))
    runs = []
    for position, (number, model, environment) in enumerate(slots):
        metrics = {
            key: values[number]
            for key, values in cells[model, environment].items()
            if number < len(values)
        }
        if not metrics:
            continue
        run = f"{name}-{environment}_{model}_w_{number + 1:02d}"
        minutes = f"{10 + position // 60:02d}:{position % 60:02d}"
        settings = {}
        if environment in servers:
            settings["server"] = f"{environment}-{servers[environment][number]}"
        chosen: dict[str, Any] = {
            "plan": Plan(position=position, order=order),
            "iteration": number + 1,
            "started": Moment(value=f"2026-11-20T{minutes}:00Z", zone="utc"),
            "observed": Observed(settings=settings),
        } | fields
        record = a_record(
            metrics,
            run_id=run,
            campaign=name,
            model=model,
            environment=environment,
            **chosen,
        )
        kind = {"type": "docker" if environment == "container" else "host"}
        asked = record.requested.model_copy(update={"environment": kind})
        record = record.model_copy(update={"requested": asked})
        if published:
            told = {
                key: replace(value, source="published")
                for key, value in record.metrics.items()
            }
            record = record.model_copy(update={"metrics": told})
        runs.append(Stored(record, Path(name) / f"{run}.json"))
    document = {
        "campaign": name,
        "title": name,
        "models": {model: {"id": model} for model in models},
        "environments": {environment: {"type": "host"} for environment in environments},
        "workloads": {
            "w": {
                "type": "command",
                "argv": ["true"],
                "metrics": {"output_throughput_tok_s": FOUND},
            }
        },
        "iterations": iterations,
        "equivalence_margin_percent": 2,
    }
    info = Campaign(campaign=name, title=name, matrix=document if matrix else None)
    return CampaignData(info, Path(name), tuple(runs))


def written(campaign: CampaignData, data: Path) -> Path:
    """The folder of a campaign in a data folder on the disk."""
    folder = data / campaign.name
    folder.mkdir(parents=True)
    (folder / CAMPAIGN_FILE).write_text(to_json(campaign.info))
    for record in campaign.records:
        (folder / f"{record.stem}.json").write_text(to_json(record))
    return folder


def a_dataset(*campaigns: CampaignData) -> Dataset:
    """A data folder in memory."""
    return Dataset(Path(), {data.name: data for data in campaigns})


def unreviewed(
    dataset: Dataset, out: Mapping[str, str] | None = None, **asked: Any
) -> Results:
    """What a dataset shows where no check takes a run out; those in `out` (run id to reason) do not count."""
    return Results(reviewed(dataset, out=out), **asked)

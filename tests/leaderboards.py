"""Records of benchmarks in memory, and campaigns of them, for tests of what is ranked and shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkpub.record.campaign import Campaign
from sparkpub.record.record import Moment, Observed, Record, Requested
from sparkpub.record.store import Stored
from sparkpub.review.checks import Finding, Review
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.reviewed import ReviewedCampaign
from tests.building import a_record

TPUT, PROMPT = "output_throughput_tok_s", "prompt_throughput_tok_s"
LOAD = {
    "type": "vllm-bench",
    "mode": "serve",
    "input_tokens": 512,
    "output_tokens": 128,
    "concurrency": 8,
}


def runs_of(
    model: str,
    values: Sequence[float],
    *,
    campaign: str = "c",
    load: Mapping[str, Any] = LOAD,
    metric: str = TPUT,
    metrics: Mapping[str, float] | None = None,
    model_id: str = "",
    observed: Mapping[str, Any] | None = None,
    **fields: Any,
) -> list[Record]:
    """One run for each value, in one cell."""
    records = []
    for number, value in enumerate(values, 1):
        record = a_record(
            {metric: value} | dict(metrics or {}),
            campaign=campaign,
            run_id=f"{campaign}-{model}-{fields.get('environment', 'native')}-{number}",
            model=model,
            iteration=number,
            started=Moment(value=f"2026-11-20T10:{number:02d}:00Z", zone="utc"),
            requested=Requested(
                model_id=model_id or f"x/{model}",
                workload=dict(load),
                environment={"type": "host"},
            ),
            observed=Observed(**(observed or {})),
            **fields,
        )
        records.append(record)
    return records


def published(record: Record, **fields: Any) -> Record:
    """The record as somebody published its figures: no file is behind them, and checks ask for none."""
    metrics = {
        name: replace(value, source="published")
        for name, value in record.metrics.items()
    }
    return record.model_copy(update={"metrics": metrics, **fields})


def dataset_of(*records: Record, **info: Any) -> Dataset:
    """The campaigns that these records belong to; `info` are fields of each campaign.json."""
    campaigns: dict[str, CampaignData] = {}
    for name in dict.fromkeys(record.campaign for record in records):
        mine = [record for record in records if record.campaign == name]
        stored = [Stored(record, Path(f"{record.run_id}.json")) for record in mine]
        about = Campaign(**({"campaign": name, "title": f"Campaign {name}"} | info))
        campaigns[name] = CampaignData(about, Path(name), tuple(stored))
    return Dataset(Path(), campaigns)


def reviewed(
    dataset: Dataset,
    *,
    out: Mapping[str, str] | None = None,
    findings: Sequence[Finding] = (),
) -> Review:
    """A review that found just this; `out` are runs that do not count, with the reasons."""
    campaigns = {
        name: ReviewedCampaign(data, out or {})
        for name, data in dataset.campaigns.items()
    }
    return Review(dataset, campaigns, tuple(findings))


def a_finding(check: str, severity: Any, cell: str | None = "m/native/w") -> Finding:
    """Something that a check found in a cell of campaign c."""
    return Finding(check, severity, "c", cell, None, "it is so", {})

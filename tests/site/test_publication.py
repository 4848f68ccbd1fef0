"""Which metrics lead a campaign, and what its cells are called."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from sparkpub.record.campaign import Campaign
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import MetricValue
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData, Dataset
from sparkpub.review.names import Names
from sparkpub.site.build import publish
from sparkpub.site.content import SiteOptions
from sparkpub.site.publication import (
    cell_label,
)
from tests.building import a_record

SAMPLED = (
    "system_peak_gib",
    "gpu_temp_end_celsius",
    "gpu_power_mean_watt",
    "gpu_energy_joule",
)


def a_campaign(
    metrics: Mapping[str, MetricValue], primary: tuple[str, ...] = ()
) -> CampaignData:
    record = a_record().model_copy(update={"metrics": dict(metrics)})
    matrix: dict[str, Any] = {
        "campaign": "c",
        "title": "t",
        "models": {"m": {"id": "x/m"}},
        "environments": {"native": {"type": "host"}},
        "workloads": {"w": {"type": "generate"}},
        "iterations": 1,
        "primary": list(primary),
    }
    info = Campaign(campaign="c", title="t", matrix=matrix if primary else None)
    return CampaignData(info, Path("c"), (Stored(record, Path("c/r.json")),))


def known(*names: str, source: Any = "report") -> dict[str, MetricValue]:
    """Values of metrics that the registry has."""
    return {
        name: MetricValue(value=1.0, unit=METRICS[name].unit, source=source)
        for name in names
    }


def headlines(campaign: CampaignData, options: SiteOptions) -> list[str]:
    dataset = Dataset(Path(), MappingProxyType({"c": campaign}))
    publication = publish(dataset, options)
    return [metric.name for metric in publication.headlines(campaign)]


OWN = MetricValue(
    value=1.0, unit="points", source="report", direction="neither", label="Score"
)


@pytest.mark.parametrize(
    ("values", "primary", "first"),
    [
        # No sensor pushes out a metric of one's own.
        ({**known(*SAMPLED, source="sampler"), "score": OWN}, (), ["score", *SAMPLED]),
        # The matrix names what leads in its own order; mean power has no place among the first without it.
        (
            known("output_throughput_tok_s", "tpot_p50_ms")
            | known(*SAMPLED, source="sampler"),
            ("tpot_p50_ms", "gpu_power_mean_watt"),
            ["tpot_p50_ms", "gpu_power_mean_watt", "output_throughput_tok_s"],
        ),
        # Where nothing leads the first metrics do.
        (
            known("weights_gib", "startup_seconds"),
            (),
            ["weights_gib", "startup_seconds"],
        ),
    ],
)
def test_what_leads_a_campaign(
    values: dict[str, MetricValue],
    primary: tuple[str, ...],
    first: list[str],
    options: SiteOptions,
) -> None:
    found = headlines(a_campaign(values, primary), options)
    assert found[: len(first)] == first
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("models", "environments", "workloads", "label"),
    [
        (("m",), ("e",), ("w",), "m"),
        (("m", "n"), ("e", "f"), ("w", "v"), "m · native (e) · w"),
    ],
)
def test_a_cell_is_called_by_what_differs(
    models: tuple[str, ...],
    environments: tuple[str, ...],
    workloads: tuple[str, ...],
    label: str,
) -> None:
    runs = []
    for cell in itertools.product(models, environments, workloads):
        keys = dict(zip(("model", "environment", "workload"), cell, strict=True))
        runs.append(Stored(a_record(run_id="-".join(cell), **keys), Path("c/r.json")))
    campaign = CampaignData(Campaign(campaign="c", title="t"), Path("c"), tuple(runs))
    names = Names(Dataset(Path(), {"c": campaign}))
    assert cell_label(names, campaign, ("m", "e", "w")) == label

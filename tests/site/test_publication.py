"""Which metrics lead a campaign, and what its cells are called."""

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
    LEADING,
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


def test_a_metric_of_ones_own_leads_and_no_sensor_pushes_it_out(
    options: SiteOptions,
) -> None:
    own = MetricValue(
        value=1.0, unit="points", source="report", direction="neither", label="Score"
    )
    found = headlines(
        a_campaign({**known(*SAMPLED, source="sampler"), "score": own}), options
    )
    assert found == ["score", *SAMPLED]


def test_metrics_of_the_workload_go_before_what_the_sampler_saw(
    options: SiteOptions,
) -> None:
    """The rank of the temperature is before that of no metric of the workload, and it comes last all the same."""
    measured = ("output_throughput_tok_s", "request_latency_p50_ms", "ttft_p50_ms")
    more = ("kv_cache_gib", "tpot_p50_ms", "peak_memory_gib")
    values = known(*SAMPLED, source="sampler") | known(*measured, *more)
    found = headlines(a_campaign(values), options)
    assert set(found) == {*measured, *more}
    assert len(found) == LEADING
    assert found[0] == "output_throughput_tok_s"


def test_the_matrix_names_what_leads_in_its_own_order(options: SiteOptions) -> None:
    """Mean power has no place among the first, unless the matrix says so."""
    primary = ("tpot_p50_ms", "gpu_power_mean_watt")
    values = known("output_throughput_tok_s", "tpot_p50_ms") | known(
        *SAMPLED, source="sampler"
    )
    found = headlines(a_campaign(values, primary), options)
    assert found[:3] == [*primary, "output_throughput_tok_s"]
    assert found.count("gpu_power_mean_watt") == 1


def test_where_nothing_leads_the_first_metrics_do(options: SiteOptions) -> None:
    found = headlines(a_campaign(known("weights_gib", "startup_seconds")), options)
    assert found == ["weights_gib", "startup_seconds"]


@pytest.mark.parametrize(
    ("models", "environments", "workloads", "label"),
    [
        (("m",), ("e",), ("w",), "m"),
        (("m",), ("e",), ("w", "v"), "w"),
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
    for model in models:
        for environment in environments:
            for workload in workloads:
                record = a_record(
                    run_id=f"c-{environment}_{model}_{workload}",
                    model=model,
                    environment=environment,
                    workload=workload,
                )
                runs.append(Stored(record, Path("c/r.json")))
    campaign = CampaignData(Campaign(campaign="c", title="t"), Path("c"), tuple(runs))
    names = Names(Dataset(Path(), {"c": campaign}))
    assert cell_label(names, campaign, ("m", "e", "w")) == label

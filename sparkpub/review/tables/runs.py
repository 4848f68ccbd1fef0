"""The table of runs: one row per run and metric, with what counts and why the rest does not."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from sparkpub.plan.requested import load_of
from sparkpub.record.derived import derived
from sparkpub.record.record import Record
from sparkpub.review.dataset import CampaignData
from sparkpub.review.setup import setup_of
from sparkpub.review.tables.column import Columns, columns, shared, table

COLUMNS: Columns = {
    **columns(
        "text",
        run="Id of the run",
    ),
    **shared("campaign", "model", "environment", "workload"),
    **columns(
        "integer",
        iteration="Which repetition of its cell the run is, from 1",
        position="Place in the planned order, from 0",
    ),
    **columns(
        "text",
        order="The planned order: interleaved, random or blocked; as-published where nobody planned one",
        started="Start as ISO 8601; in UTC where it ends in Z, else in an unknown zone",
        machine="Id of the machine; empty where it is not known",
        server="The server that served the run, by machine and start; empty where none is recorded",
        status="ok, failed, timeout, interrupted or invalid",
        repeat_of="Id of the run that this one repeats",
        specification="What was to be measured, as a digest; empty where the record does not say",
    ),
    **columns(
        "boolean",
        quarantined="Whether people excluded the run",
    ),
    **columns(
        "text",
        metric="Name of the metric",
    ),
    **columns(
        "number",
        value="The value in its unit; empty where it is not available",
    ),
    **columns(
        "text",
        unit="Unit of the value",
        source="Where the value was read: log, report, sampler or published; or derived from others",
        reason="Why there is no value",
        excluded="Why the run is not in the figures; empty where it is",
    ),
    **columns(
        "boolean",
        counts="Whether the value is in the figures",
    ),
    **columns(
        "text",
        model_id="The model as its publisher names it",
        weights="Format of the weights",
        engine="The inference engine",
        engine_version="Version of the engine",
        hardware="What the machine is, in words",
        tool="The tool that measured, and its mode",
        load="What was asked of the engine, in words",
    ),
}


def runs(campaign: CampaignData, excluded: Mapping[str, str]) -> pd.DataFrame:
    """Every recorded run of a campaign, in the order in which they ran: the metrics of its record, and those that
    follow from them. `excluded` maps runs that are not in the figures to the reason."""
    measured: list[tuple[Any, ...]] = []
    for number, record in enumerate(campaign.records):
        measured += [
            (number, name, metric.value, metric.source, metric.reason)
            for name, metric in record.metrics.items()
        ]
        measured += [
            (number, name, value, "derived", None)
            for name, value in derived(record).items()
        ]
    names = ["number", "metric", "value", "source", "reason"]
    found = pd.DataFrame(measured, columns=names)
    found["unit"] = [campaign.metrics[name].unit for name in found["metric"]]
    about = [_about(record, campaign, excluded) for record in campaign.records]
    of_run = [name for name in COLUMNS if name not in {*found, "counts"}]
    found = found.join(pd.DataFrame(about, columns=of_run), on="number")
    found["counts"] = found["value"].notna() & found["excluded"].isna()
    return table(COLUMNS, found)


def of_all(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The tables of several campaigns as one, a campaign after the other."""
    if len(tables) == 1:
        return tables[0]
    return table(COLUMNS, pd.concat(tables, ignore_index=True) if tables else [])


def _about(
    record: Record, campaign: CampaignData, excluded: Mapping[str, str]
) -> dict[str, Any]:
    """What all rows of a run share."""
    model, environment, workload = record.cell
    setup = setup_of(record)
    load = load_of(record)
    return {
        "run": record.run_id,
        "campaign": record.campaign,
        "model": model,
        "environment": environment,
        "workload": workload,
        "iteration": record.iteration,
        "position": record.plan.position,
        "order": record.plan.order,
        "started": record.started.value,
        "machine": record.machine.id,
        "server": _server(record),
        "status": record.status,
        "repeat_of": record.repeat_of,
        "specification": record.specification,
        "quarantined": record.run_id in campaign.quarantined,
        "excluded": excluded.get(record.run_id),
        "model_id": setup.model_id,
        "weights": setup.quantization,
        "engine": setup.engine,
        "engine_version": setup.engine_version,
        "hardware": setup.machine,
        "tool": load.tool,
        "load": load.label,
    }


def _server(record: Record) -> str | None:
    """The one start of a server that served a run, by machine and name; None where the record tells of none."""
    name = record.observed.settings.get("server")
    if name is None:
        return None
    return f"{record.machine.id or ''}/{name}"

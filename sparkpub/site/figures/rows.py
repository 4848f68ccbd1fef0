"""The rows that charts name, one list per name for the whole site: what they draw from, and what the reader gets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkpub.plan import coverage
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.dataset import CampaignData
from sparkpub.site.figures.samples import utilisation
from sparkpub.site.figures.scope import COVERAGE, PARTS
from sparkpub.site.publication import Publication, axes, batch_size, cell_keys, cell_label, run_address, samples_address

HEAT_RUNS = 60
"""Up to so many runs the heat map shows all; beyond it the first iteration of each cell."""

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]


def rows(publication: Publication) -> Rows:
    """All rows by name: `runs, cells, trends, comparisons, ledger, slots, heat`. Units are those of the metrics."""
    tables: dict[str, list[Row]] = {name: [] for name in MAKERS}
    for campaign in publication.campaigns:
        for name, make in MAKERS.items():
            tables[name] += make(publication, campaign)
    return tables


def _axes(campaign: CampaignData, cell: tuple[str, str, str]) -> Row:
    model, environment, workload = cell
    return {"campaign": campaign.name, "model": model, "environment": environment, "workload": workload,
            "cell": cell_label(campaign, cell)}  # fmt: skip


def _runs(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    for place, stored in enumerate(campaign.runs, 1):
        record = stored.record
        flags = sorted({finding.check for finding in publication.review.by_run.get(record.run_id, ())})
        yield {
            "run": record.run_id,
            **_axes(campaign, record.cell),
            "iteration": record.iteration,
            "order": place,
            "status": record.status,
            "state": publication.state(record.run_id),
            "flags": ", ".join(flags),
            "href": run_address(stored),
            "started": record.started.value,
            "start_temp": record.value("gpu_temp_start_celsius"),
            "batch": batch_size(record),
            **({"samples": samples_address(stored)} if record.file("telemetry") else {}),
            **{name: value.value for name, value in record.metrics.items() if value.value is not None},
        }


def _cells(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    batches = {record.cell: batch_size(record) for record in campaign.records}
    for metric in publication.metrics(campaign):
        for cell in publication.cells.get((campaign.name, metric.name), ()):
            key = (cell.model, cell.environment, cell.workload)
            low, high = cell.ci95 or (None, None)
            yield {**_axes(campaign, key), "metric": metric.name, "n": cell.n, "mean": cell.mean, "lo": low,
                   "hi": high, "sd": cell.sd, "p50": cell.p50, "batch": batches.get(key)}  # fmt: skip


def _trends(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """Both ends of each cell's Theil-Sen line through the medians (Conover 1980), against place in the campaign."""
    places = {stored.record.run_id: place for place, stored in enumerate(campaign.runs, 1)}
    for metric in publication.metrics(campaign):
        for cell in publication.cells.get((campaign.name, metric.name), ()):
            if cell.trend.slope is None or cell.n < 3:
                continue
            for end, index in (("first", 0), ("last", cell.n - 1)):
                value = cell.p50 + cell.trend.slope * (index - (cell.n - 1) / 2)
                yield {**_axes(campaign, (cell.model, cell.environment, cell.workload)), "metric": metric.name,
                       "end": end, "order": places[cell.runs[index]], "value": value}  # fmt: skip


def _comparisons(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    several = len(axes(campaign)[2]) > 1
    for metric in publication.headlines(campaign):
        for row in publication.comparisons.get((campaign.name, metric.name), ()):
            if row.ratio is None or row.deciding_ratio is None:
                continue
            percent, low, high = (100 * (ratio - 1) for ratio in (row.ratio, *row.deciding_ratio))
            yield {"campaign": campaign.name, "model": row.model, "environment": row.candidate,
                   "workload": row.workload,
                   "label": " · ".join([row.model, *([row.workload] if several else []), metric.label]),
                   "metric": metric.name, "percent": percent, "lo": low, "hi": high, "verdict": row.verdict,
                   "p": row.p_adjusted}  # fmt: skip


def _ledger(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    for cell in cell_keys(campaign):
        runs = [run for run in campaign.runs
                if run.record.cell == cell and publication.state(run.record.run_id) == "counted"]  # fmt: skip
        parts = [(run, found) for run in runs if (found := memory_parts(run.record))]
        if not parts:
            continue
        # One real run, the one in the middle by free memory, so that the parts add up to something that happened.
        run, found = sorted(parts, key=lambda item: item[1].get("free", 0.0))[len(parts) // 2]
        for rank, part in enumerate(PARTS):
            if found.get(part, 0.0) > 0:
                yield {**_axes(campaign, cell), "part": part, "rank": rank, "gib": round(found[part], 2),
                       "run": run.record.run_id, "href": run_address(run)}  # fmt: skip


def memory_parts(record: Record) -> Mapping[str, float]:
    """Where the machine's memory went at the run's peak, in GiB; empty where the record does not say.

    With a memory ledger: free, page cache, and what was used, of which weights and KV cache are known where the run
    observed them. Without one: what the engine's own profile says.
    """
    weights = record.value("weights_gib") or (record.observed.weight_bytes or 0) / 2**30
    cache = record.value("kv_cache_gib") or 0.0
    if record.memory is not None:
        peak = record.memory.peak
        used = peak.total_gib - peak.free_gib - peak.cached_gib
        total, rest = peak.total_gib, {"page cache": peak.cached_gib, "free": peak.free_gib}
        device = peak.gpu_used_gib if record.machine.unified_memory is False else None
        if device is not None and record.machine.gpus and record.machine.gpus[0].memory_total_gib:
            total, used = record.machine.gpus[0].memory_total_gib, device
            rest = {"free": total - device}
    elif (profiled := record.value("peak_memory_gib")) is not None and record.machine.memory_total_gib:
        used = min(profiled + cache, record.machine.memory_total_gib)
        rest = {"free": record.machine.memory_total_gib - used}
    else:
        return {}
    broken_down = weights > 0
    other = used - weights - cache
    return {"weights": weights, "KV cache": cache, **rest,
            "engine and other" if broken_down else "used, not broken down": max(0.0, other)}  # fmt: skip


def _slots(_: Publication, campaign: CampaignData) -> Iterator[Row]:
    by_slot: dict[tuple[tuple[str, str, str], int], list[Stored]] = {}
    for stored in campaign.runs:
        by_slot.setdefault((stored.record.cell, stored.record.iteration), []).append(stored)
    if campaign.matrix is None:
        known = {
            slot: "done" if any(r.record.status == "ok" for r in runs) else "failed" for slot, runs in by_slot.items()
        }
    else:
        states = coverage.states(campaign.matrix, campaign.records, campaign.quarantined)
        known = {
            ((run.model, run.environment, run.workload), run.iteration): "missing" if state == "retry" else state
            for run, state in states.items()
        }
        known |= {slot: "extra" for slot in by_slot if slot not in known}
    for (cell, iteration), state in known.items():
        runs = by_slot.get((cell, iteration), [])
        yield {**_axes(campaign, cell), "iteration": iteration, "state": state,
               "glyph": COVERAGE[state] + ("+" if len(runs) > 1 else ""),
               "run": runs[0].record.run_id if runs else "not run",
               **({"href": run_address(runs[0])} if runs else {})}  # fmt: skip


def _heat(_: Publication, campaign: CampaignData) -> Iterator[Row]:
    for stored in campaign.runs:
        record = stored.record
        if len(campaign.runs) > HEAT_RUNS and record.iteration > 1:
            continue
        label = f"{cell_label(campaign, record.cell)} {record.iteration}"
        for start, end, percent in utilisation(stored):
            yield {**_axes(campaign, record.cell), "run": record.run_id, "label": label, "start": start, "end": end,
                   "percent": percent, "href": run_address(stored)}  # fmt: skip


MAKERS = {
    "runs": _runs,
    "cells": _cells,
    "trends": _trends,
    "comparisons": _comparisons,
    "ledger": _ledger,
    "slots": _slots,
    "heat": _heat,
}
"""Name of a table to what makes a campaign's share of it."""

"""Where the machine's memory went in one run of each cell, as a table."""

from collections.abc import Mapping, Sequence

from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import listed, spread
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.site.figures.figure import Entry, Table, Value
from sparkpub.site.publication import Publication, cell_keys, cell_label, run_address

PARTS = (
    "weights",
    "KV cache",
    "engine and other",
    "page cache",
    "used, not broken down",
    "free",
)
"""Into which the machine's memory is divided, from left to right."""

Parts = Mapping[str, float]
"""Part of the memory to its size in GiB."""


def ledger(
    publication: Publication, campaign: CampaignData
) -> tuple[str, Table] | None:
    """Which part is the largest, what the records do not show, and a row per cell: the median run by free memory, at
    its peak. None where no record says where memory went."""
    counted = [
        run for run in campaign.runs if publication.state(run.run_id) == "counted"
    ]
    by_cell = grouped(counted, lambda run: run.record.cell)
    chosen: list[tuple[str, Stored, Parts]] = []
    for cell in cell_keys(campaign):
        middle = _middle_run(by_cell.get(cell, ()))
        if middle is not None:
            label = cell_label(publication.names, campaign, cell)
            chosen.append((label, *middle))
    shown = [
        name for name in PARTS if any(parts.get(name, 0) > 0 for *_, parts in chosen)
    ]
    if not shown:
        return None
    says = _largest([parts for *_, parts in chosen])
    missing = [part for part in ("weights", "page cache") if part not in shown]
    if missing:
        says += f" The records do not show {listed(missing)}."
    body: list[Sequence[Value]] = []
    for label, run, parts in chosen:
        sizes = [_size(parts.get(name, 0.0)) for name in shown]
        body.append([label, Entry(run.run_id, run_address(run)), *sizes])
    heads = [f"{name[0].upper()}{name[1:]} (GiB)" for name in shown]
    return says, Table(("Cell", "Run", *heads), body)


def _size(gib: float) -> str:
    return f"{gib:.2f}" if gib > 0 else "unknown"


def _middle_run(
    runs: Sequence[Stored],
) -> tuple[Stored, Mapping[str, float]] | None:
    """One real run, the one in the middle by free memory, so that the parts add up to something that happened."""
    known = []
    for run in runs:
        parts = memory_parts(run.record)
        if parts:
            known.append((run, parts))
    if not known:
        return None
    known.sort(key=lambda item: item[1].get("free", 0.0))
    return known[len(known) // 2]


def memory_parts(record: Record) -> Mapping[str, float]:
    """Where the machine's memory went at the run's peak, in GiB; empty where the record does not say.

    With a memory ledger: free, page cache, and what was used, of which weights and KV cache are known where the run
    observed them. Without one: what the engine's own profile says.
    """
    weights = record.value("weights_gib") or (record.observed.weight_bytes or 0) / 2**30
    cache = record.value("kv_cache_gib") or 0.0
    found = _measured(record) or _profiled(record, cache)
    if found is None:
        return {}
    used, rest = found
    other = "used, not broken down"
    if weights > 0:
        other = "engine and other"
    return {
        "weights": weights,
        "KV cache": cache,
        **rest,
        other: max(0.0, used - weights - cache),
    }


def _measured(record: Record) -> tuple[float, dict[str, float]] | None:
    """What was used, and the rest, by the ledger at the peak: of the GPU where it has memory of its own."""
    if record.memory is None:
        return None
    peak = record.memory.peak
    if record.machine.unified_memory is False and record.machine.gpus:
        used, total = peak.gpu_used_gib, record.machine.gpus[0].memory_total_gib
        if used is not None and total:
            return used, {"free": total - used}
    used = peak.total_gib - peak.free_gib - peak.cached_gib
    return used, {"page cache": peak.cached_gib, "free": peak.free_gib}


def _profiled(record: Record, cache: float) -> tuple[float, dict[str, float]] | None:
    """What was used, and what was free, by the engine's own profile; the KV cache comes on top of that."""
    profiled, total = record.value("peak_memory_gib"), record.machine.memory_total_gib
    if profiled is None or not total:
        return None
    used = min(profiled + cache, total)
    return used, {"free": total - used}


def _largest(runs: Sequence[Parts]) -> str:
    """Which part takes most, over the runs."""
    sizes: dict[str, list[float]] = {}
    for parts in runs:
        for part in PARTS:
            if part != "free" and parts.get(part, 0.0) > 0:
                sizes.setdefault(part, []).append(parts[part])
    if not sizes:
        return "The records do not show where memory went."
    part = max(sizes, key=lambda name: sum(sizes[name]))
    amounts = spread([f"{size:.1f}" for size in sorted(sizes[part])], "GiB")
    if part == "used, not broken down":
        return f"{amounts} are in use; the records do not show for what."
    return f"Most of the memory in use is {part}: {amounts}."

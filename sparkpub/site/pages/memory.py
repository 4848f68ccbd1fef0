"""Where the machine's memory went in one run of each cell, and what of it the weights of a model leave."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkpub.record.identity import expected, shown
from sparkpub.record.record import Record
from sparkpub.record.text import rounded, spread
from sparkpub.review.grouping import grouped
from sparkpub.review.models import stated_sizes
from sparkpub.review.physics import machine_of
from sparkpub.review.speeds import Speed
from sparkpub.site.figures.figure import Entry, TableLine
from sparkpub.site.publication import Publication, run_address
from sparkpub.site.study import StudiedCampaign

USED = "not broken down"
PARTS = ("weights", "KV cache", "engine and other", "page cache", USED, "free")
"""Into which the machine's memory is divided, from left to right."""

Parts = Mapping[str, float]
"""Part of the memory to its size in GiB."""


def ledger(whole: StudiedCampaign) -> tuple[str, list[TableLine]] | None:
    """Which part is the largest, and a row per cell: one real run, the median by free memory, at its peak. None where
    no record says where memory went: a run beside an idle GPU used none of its."""
    known = [
        (run, memory_parts(run.record))
        for run in whole.data.runs
        if run.run_id not in whole.site.review.excluded
    ]
    by_cell = grouped(known, lambda item: item[0].record.cell)
    body, every = [], []
    for cell, label in whole.cells_here.items():
        mine = [item for item in by_cell.get(cell, ()) if item[1]]
        if mine:
            mine.sort(key=lambda item: item[1].get("free", 0.0))
            run, parts = mine[len(mine) // 2]
            body.append((label, Entry(run.run_id, run_address(run)), parts))
            every.append(parts)
    shown = [name for name in PARTS if any(parts.get(name, 0) > 0 for parts in every)]
    if not {*shown} - {"free"}:
        return None
    heads = {name: f"{name[0].upper()}{name[1:]} (GiB)" for name in shown}
    rows: list[TableLine] = []
    for label, link, parts in body:
        sizes = {head: _size(parts.get(name, 0.0)) for name, head in heads.items()}
        rows.append({"Cell": label, "Run": link, **sizes})
    return _largest(every), rows


def _size(size: float) -> str:
    return f"{size:.2f}" if size > 0 else "unknown"


def memory_parts(record: Record) -> Parts:
    """Where the machine's memory went at the run's peak, in GiB; empty where the record does not say.

    With a memory ledger: free, page cache, and what was used, of which weights and KV cache are known where the run
    observed them; of the GPU where it has memory of its own. Without one: what the engine's own profile says, on top of
    which comes the KV cache.
    """
    machine = record.machine
    weights = record.value("weights_gib") or (record.observed.weight_bytes or 0) / 2**30
    cache = record.value("kv_cache_gib") or 0.0
    used, total, rest = record.value("peak_memory_gib"), machine.memory_total_gib, {}
    if record.memory is not None:
        peak = record.memory.peak
        gpu = machine.gpus[0].memory_total_gib if machine.gpus else None
        if machine.unified_memory is False and gpu and peak.gpu_used_gib is not None:
            used, total = peak.gpu_used_gib, gpu
        else:
            used = peak.total_gib - peak.free_gib - peak.cached_gib
            total, rest = (
                peak.total_gib - peak.cached_gib,
                {"page cache": peak.cached_gib},
            )
    elif used is not None and total:
        used = min(used + cache, total)
    if used is None or not total:
        return {}
    other = "engine and other" if weights > 0 else USED
    found = {"weights": weights, "KV cache": cache, other: used - weights - cache}
    return {**found, **rest, "free": total - used}


def _largest(runs: list[Parts]) -> str:
    """Which part takes most, over the runs."""
    sizes = {
        part: sorted(parts[part] for parts in runs if parts.get(part, 0.0) > 0)
        for part in PARTS
        if part != "free"
    }
    part = max(sizes, key=lambda name: sum(sizes[name]))
    amounts = spread([f"{size:.1f}" for size in sizes[part]], "GiB")
    return f"Most of the memory in use is {part}: {amounts}."


# -- what fits -------------------------------------------------------------------------------------------------


SCALED = {"NVFP4": 4.5, "MXFP4": 4.25}
"""Bits of a parameter in formats that scale blocks of 16 and 32 of them by a number of 8 bits."""

FEWEST_BITS = 4
"""Of formats with fewer the name tells no size: IQ1_M takes nearly two bits for each parameter."""


class Fit(NamedTuple):
    """What a recipe takes of the memory. Weights that no run, checkpoint or catalogue states are the parameters in the
    model's name times the bits of the format: `is_stated` tells."""

    speed: Speed
    weights_gib: float
    is_stated: bool
    kv_mib_per_1k: float | None
    """KV cache of 1,000 tokens of a request; None where it is not known."""

    @property
    def weights(self) -> str:
        """`60.8 GiB`; `~65 GiB` by the name."""
        if self.is_stated:
            return f"{self.weights_gib:.1f} GiB"
        return f"~{self.weights_gib:.0f} GiB"

    def left(self, total: float | None) -> str:
        """What it leaves of so many GiB."""
        if not total:
            return "not known"
        rest = total - self.weights_gib
        return f"{rest:.0f} GiB" if rest > 0 else "does not fit"


def fits(speeds: Iterable[Speed]) -> list[Fit]:
    """A row for each model, format and machine of which the size is known, in the order met."""
    found = {}
    for speed in speeds:
        key = speed.model, speed.weights, speed.machine
        if key not in found and (fit := _fit(speed)) is not None:
            found[key] = fit
    return list(found.values())


def left(publication: Publication, speeds: Iterable[Speed]) -> list[TableLine]:
    """What weights leave of the memory: a row for each format and machine of which the size is known."""
    rows: list[TableLine] = []
    for fit in fits(speeds):
        total, kv = of_machine(publication, fit.speed.machine), fit.kv_mib_per_1k
        line = {
            "Format": fit.speed.weights,
            "Weights": fit.weights,
            "Left": fit.left(total),
            "Memory": f"{total:.1f} GiB, {fit.speed.machine}" if total else "",
            "KV cache of 1,000 tokens": f"{rounded(kv)} MiB" if kv else "not known",
        }
        rows.append(line)
    return rows


def _fit(speed: Speed) -> Fit | None:
    record = speed.records[0]
    known, architecture = (
        shown(record.observed, record.metrics),
        expected(record.requested),
    )

    def stated(fact: str) -> float | None:
        return known.get(fact) or getattr(architecture, fact, None)

    cache = stated("kv_bytes_per_token")
    kv = None if cache is None else 1000 * cache / 2**20
    stated_bytes = stated("weight_bytes")
    if stated_bytes is not None:
        return Fit(speed, stated_bytes / 2**30, True, kv)
    # Of a name that says how many parameters work at once, the others are not known.
    named = stated_sizes(speed.model.name).get("")
    bits = SCALED.get(speed.weights, speed.bits)
    if bits is None or bits < FEWEST_BITS or named is None:
        return None
    return Fit(speed, named * bits / 8 / 2**30, False, kv)


def of_machine(publication: Publication, name: str) -> float | None:
    """What a model can have on a machine in GiB, as its records say, else the catalogue: of GPUs with memory of their
    own that of all of them."""
    for speed in publication.speeds.where(machine=name):
        machine = speed.records[0].machine
        own = [gpu.memory_total_gib or 0 for gpu in machine.gpus]
        if not machine.unified_memory and any(own):
            return sum(own)
        if machine.memory_total_gib and (machine.unified_memory or not machine.gpus):
            return machine.memory_total_gib * (machine.count or 1)
        known = machine_of(speed.records[0])
        if known is not None and known.memory_total_gib:
            return known.memory_total_gib * (machine.count or 1)
    return None

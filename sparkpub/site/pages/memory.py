"""Where the machine's memory went in one run of each cell, and what of it the weights of a model leave."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import pandas as pd

from sparkpub.record.identity import expected, shown
from sparkpub.record.record import Record
from sparkpub.record.text import rounded, spread
from sparkpub.review.models import stated_sizes
from sparkpub.review.physics import machine_of
from sparkpub.review.speeds import Speed
from sparkpub.site.figures.figure import Entry, TableLine
from sparkpub.site.publication import Publication, run_address
from sparkpub.site.study import StudiedCampaign, records

USED = "not broken down"
PARTS = ("weights", "KV cache", "engine and other", "page cache", USED, "free")
"""Into which the machine's memory is divided, from left to right."""

Parts = Mapping[str, float]
"""Part of the memory to its size in GiB."""


def ledger(whole: StudiedCampaign) -> tuple[str, Sequence[TableLine]] | None:
    """Which part is the largest, and a row per cell: one real run, the median by free memory, at its peak. None where
    no record says where memory went: a run beside an idle GPU used none of its."""
    found = []
    counted = whole.site.review.campaigns[whole.data.name].counted
    for cell, label in whole.cells_here.items():
        known = [(memory_parts(run.record), run) for run in counted.get(cell, ())]
        mine = sorted(filter(itemgetter(0), known), key=lambda one: one[0]["free"])
        if mine:
            parts, run = mine[len(mine) // 2]
            link = Entry(run.run_id, run_address(run))
            found.append({"Cell": label, "Run": link, **parts})
    about = pd.DataFrame(found, columns=["Cell", "Run", *PARTS])
    sizes = about[[*PARTS]]
    sizes = sizes[sizes > 0].dropna(axis="columns", how="all")
    used = sizes.drop(columns="free", errors="ignore")
    if used.empty:
        return None
    most = used.sum().idxmax()
    amounts = spread([f"{size:.1f}" for size in sorted(used[most].dropna())], "GiB")
    told = sizes.map("{:.2f}".format, na_action="ignore").fillna("unknown")
    told = told.rename(columns=lambda name: f"{name[0].upper()}{name[1:]} (GiB)")
    rows = records(about[["Cell", "Run"]].join(told))
    return f"Most of the memory in use is {most}: {amounts}.", rows


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


# -- what fits -------------------------------------------------------------------------------------------------


SCALED = {"NVFP4": 4.5, "MXFP4": 4.25}
"""Bits of a parameter in formats that scale blocks of 16 and 32 of them by a number of 8 bits."""

FEWEST_BITS = 4
"""Of formats with fewer the name tells no size: IQ1_M takes nearly two bits for each parameter."""


class Fit(NamedTuple):
    """What a recipe takes of the memory. Weights that no run, checkpoint or catalogue states are the parameters in the
    model's name times the bits of the format."""

    speed: Speed
    weights_gib: float
    weights: str
    """`60.8 GiB`; `~65 GiB` by the name."""
    kv_mib_per_1k: float | None
    """KV cache of 1,000 tokens of a request; None where it is not known."""
    total_gib: float | None
    """What a model can have on the machine; None where it is not known."""

    @property
    def left(self) -> str:
        """What it leaves of the memory."""
        if not self.total_gib:
            return "not known"
        rest = self.total_gib - self.weights_gib
        return f"{rest:.0f} GiB" if rest > 0 else "does not fit"


def fits(publication: Publication, speeds: Iterable[Speed]) -> list[Fit]:
    """A row for each model, format and machine of which the size is known, in the order met."""
    found: dict[tuple[object, ...], Fit] = {}
    for speed in speeds:
        key = speed.model, speed.weights, speed.machine
        if key not in found and (fit := _fit(publication, speed)):
            found[key] = fit
    return [*found.values()]


def left(publication: Publication, speeds: Iterable[Speed]) -> list[TableLine]:
    """What weights leave of the memory: a row for each format and machine of which the size is known."""
    rows: list[TableLine] = []
    for fit in fits(publication, speeds):
        total, kv = fit.total_gib, fit.kv_mib_per_1k
        line = {
            "Format": fit.speed.weights,
            "Weights": fit.weights,
            "Left": fit.left,
            "Memory": f"{total:.1f} GiB, {fit.speed.machine}" if total else "",
            "KV cache of 1,000 tokens": f"{rounded(kv)} MiB" if kv else "not known",
        }
        rows.append(line)
    return rows


def _fit(publication: Publication, speed: Speed) -> Fit | None:
    record, total = speed.records[0], of_machine(publication, speed.machine)
    # What a run showed goes before what is known of its model.
    facts = dict(expected(record.requested) or ())
    facts |= shown(record.observed, record.metrics)
    cache = facts.get("kv_bytes_per_token")
    kv = cache and 1000 * cache / 2**20
    if stated := facts.get("weight_bytes"):
        size = stated / 2**30
        return Fit(speed, size, f"{size:.1f} GiB", kv, total)
    # Of a name that says how many parameters work at once, the others are not known.
    named = stated_sizes(speed.model.name).get("")
    bits = SCALED.get(speed.weights, speed.bits)
    if bits is None or bits < FEWEST_BITS or named is None:
        return None
    size = named * bits / 8 / 2**30
    return Fit(speed, size, f"~{size:.0f} GiB", kv, total)


def of_machine(publication: Publication, name: str) -> float | None:
    """What a model can have on a machine in GiB, as its records say, else the catalogue: of GPUs with memory of their
    own that of all of them."""
    for speed in publication.speeds.where(machine=name):
        record = speed.records[0]
        machine = record.machine
        own = sum(gpu.memory_total_gib or 0 for gpu in machine.gpus)
        if own and not machine.unified_memory:
            return own
        is_shared = machine.unified_memory or not machine.gpus
        usual = getattr(machine_of(record), "memory_total_gib", None)
        if total := (is_shared and machine.memory_total_gib) or usual:
            return total * (machine.count or 1)
    return None

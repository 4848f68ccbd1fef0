"""Under which conditions a run took place: heat, throttling, clocks, company, kernel messages, telemetry, machine."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from sparkpub.record import telemetry
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks import thresholds
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.integrity import fingerprint
from sparkpub.review.checks.values import memory_gib
from sparkpub.review.checks.view import Cell, View, ids, label

_POWER_CAP = 0x4
_SLOWDOWN = sum(telemetry.THROTTLES) - _POWER_CAP


@dataclass(frozen=True)
class Sampled:
    """What a run's telemetry says of its conditions; None where it has no such column. Times in seconds."""

    samples: int
    end: float
    widest_gap: float
    widest_gap_at: float
    interval: float
    slowed_share: float | None
    capped_share: float | None
    clock_under_load_mhz: float | None
    foreign_processes: int | None


def sampled(stored: Stored) -> Sampled | None:
    """The telemetry of a run in short, read again only when the file changed; None where there is none."""
    item = stored.record.file("telemetry")
    if item is None:
        return None
    path = stored.evidence_path(item)
    size, sha256 = fingerprint(path)
    return None if size is None else _sampled(path, sha256)


@functools.lru_cache(maxsize=200_000)
def _sampled(path: Path, _sha256: str) -> Sampled:
    table = telemetry.parse(path.read_text(encoding="utf-8", errors="replace"))
    times = [time for time in table.numbers("elapsed_seconds") if time is not None]
    gaps = [(later - earlier, earlier) for earlier, later in pairwise(times)] or [(0.0, 0.0)]
    load = table.numbers("gpu_utilization_percent")
    busy = [place for place, value in enumerate(load) if value is not None and value >= thresholds.LOAD_PERCENT]
    masks, clocks = table.columns.get("gpu_throttle_reasons", ()), table.numbers("gpu_clock_sm_mhz")
    reasons = [mask for place in busy if place < len(masks) and (mask := _mask(masks[place])) is not None]
    loaded = [clock for place in busy if place < len(clocks) and (clock := clocks[place]) is not None]
    foreign = [value for value in table.numbers("gpu_foreign_processes") if value is not None]
    widest, at = max(gaps)
    return Sampled(
        samples=len(times),
        end=times[-1] if times else 0.0,
        widest_gap=widest,
        widest_gap_at=at,
        interval=median(gap for gap, _ in gaps),
        slowed_share=_share(reasons, _SLOWDOWN),
        capped_share=_share(reasons, _POWER_CAP),
        clock_under_load_mhz=median(loaded) if loaded else None,
        foreign_processes=int(max(foreign)) if foreign else None,
    )


def _mask(text: float | str | None) -> int | None:
    with suppress(ValueError):
        return int(str(text), 16)
    return None


def _share(masks: Sequence[int], bits: int) -> float | None:
    return sum(1 for mask in masks if mask & bits) / len(masks) if masks else None


def _events(stored: Stored, *kinds: str) -> list[str]:
    return [event.text for event in stored.record.events if event.kind in kinds]


def _unmet(stored: Stored, *words: str) -> list[str]:
    """Gates of those names that let the run start although their condition was not met, in words."""
    return [
        f"{gate.name.replace('_', ' ')} wanted {gate.wanted} {gate.unit}".strip()
        + (f" and read {gate.readings[-1].value}" if gate.readings else "")
        for gate in stored.record.gates
        if gate.met is False and any(word in gate.name for word in words)
    ]


def thermal_gate(view: View) -> Iterator[Finding]:
    """Runs that started hot."""
    for stored in view.happened:
        problems, start = _unmet(stored, "temp"), stored.record.value("gpu_temp_start_celsius")
        gated = any("temp" in gate.name for gate in stored.record.gates)
        if not gated and start is not None and start > thresholds.START_TEMPERATURE_CELSIUS:
            problems = [f"the GPU had {start:.0f} °C, and {thresholds.START_TEMPERATURE_CELSIUS:g} °C is the limit"]
        if problems:
            yield view.finding("thermal-gate", "warning", f"This run started hot: {'; '.join(problems)}.", run=stored,
                               start_celsius=start)  # fmt: skip


def throttled(view: View) -> Iterator[Finding]:
    """Runs that heat or hardware slowed down; a power cap, which is how a GPU is built to run, is only noted."""
    capped, harmless = [], {telemetry.THROTTLES[_POWER_CAP]}
    for stored in view.happened:
        conditions = sampled(stored)
        events = [text for text in _events(stored, "throttle") if set(text.split(", ")) != harmless]
        slowed = (conditions.slowed_share if conditions is not None else None) or 0.0
        if slowed > thresholds.THROTTLED_SHARE or events:
            text = f"Heat or hardware held the GPU back in {100 * slowed:.0f} % of the samples under load"
            yield view.finding("throttled", "warning", f"{text}{f': {events[0]}' if events else ''}.", run=stored,
                               slowed_share=slowed, events=events)  # fmt: skip
        elif conditions is not None and (conditions.capped_share or 0) > thresholds.POWER_CAPPED_SHARE:
            capped.append(stored)
    yield from view.together("throttled", "info", capped, lambda runs: f"The power limit held the clock in {runs}.")


def slow_clock(view: View) -> Iterator[Finding]:
    """Runs whose SM clock under load stayed far below what the GPU can do and what the matrix set."""
    for stored in view.happened:
        record, conditions = stored.record, sampled(stored)
        clock = record.value("gpu_clock_sm_mean_mhz") if conditions is None else conditions.clock_under_load_mhz
        limits = [gpu.clock_max_sm_mhz for gpu in record.machine.gpus if gpu.clock_max_sm_mhz]
        limit = record.machine.clocks_locked_mhz or max(limits, default=None)
        slow = clock is not None and limit is not None and clock < thresholds.SLOW_CLOCK_SHARE * limit
        events = _events(stored, "slow-clock")
        if slow or events:
            text = f"The SM clock was {clock:.0f} MHz under load, of {limit:.0f} MHz." if slow else f"{events[0]}."
            yield view.finding("slow-clock", "warning", text, run=stored, clock_mhz=clock, limit_mhz=limit)


def foreign_load(view: View) -> Iterator[Finding]:
    """Runs that shared the GPU, the CPU or the memory with somebody else."""
    for stored in view.happened:
        conditions = sampled(stored)
        problems = _unmet(stored, "exclusive", "cpu", "memory") + _events(stored, "foreign-process")
        if conditions is not None and conditions.foreign_processes:
            problems.append(f"up to {conditions.foreign_processes} other processes were on the GPU")
        if problems:
            yield view.finding("foreign-load", "warning", f"This run was not alone: {'; '.join(problems)}.", run=stored,
                               problems=problems)  # fmt: skip


def leak(view: View) -> Iterator[Finding]:
    """Runs whose memory kept growing while they were measured, or did not come back after them."""
    for stored in view.happened:
        if events := _events(stored, "leak"):
            yield view.finding("leak", "warning", f"This run leaked: {'; '.join(events)}.", run=stored, events=events)


def kernel_warning(view: View) -> Iterator[Finding]:
    """Runs during which kernel or driver complained."""
    for stored in view.happened:
        if events := _events(stored, "xid", "oom", "kernel", "memory-floor"):
            times = f"{len(events)} times" if len(events) > 1 else "once"
            text = f"Kernel or driver complained {times} during this run: {events[0]}."
            yield view.finding("kernel-warning", "warning", text, run=stored, events=events)


def telemetry_gap(view: View) -> Iterator[Finding]:
    """Runs in which the sampler was silent for a while, or whose samples are gone."""
    for stored in view.happened:
        record, conditions = stored.record, sampled(stored)
        if conditions is None:
            if any(value.source == "sampler" and value.value is not None for value in record.metrics.values()):
                yield view.finding("telemetry-gap", "warning", "Figures of this run come from the sampler, whose "
                                   "samples were not kept.", run=stored)  # fmt: skip
            continue
        matrix = view.campaign.matrix
        interval = conditions.interval if matrix is None else matrix.telemetry.interval
        allowed = max(thresholds.TELEMETRY_GAP_INTERVALS * interval, thresholds.TELEMETRY_GAP_SECONDS)
        late = (record.duration_seconds or 0.0) - conditions.end
        silent, at = max((conditions.widest_gap, conditions.widest_gap_at), (late, conditions.end))
        if silent > allowed:
            text = (
                f"The sampler was silent for {silent:.1f} s from second {at:.0f} of the run on; a sample every "
                f"{interval:g} s was wanted. Peaks in between were not seen."
            )
            yield view.finding("telemetry-gap", "warning", text, run=stored, gap_seconds=silent, at_seconds=at,
                               interval_seconds=interval, samples=conditions.samples)  # fmt: skip


_Read = Callable[[Record], object]
_POOLED: dict[str, tuple[bool, _Read]] = {
    "machine": (True, lambda record: record.machine.id),
    "GPU": (True, lambda record: ", ".join(gpu.name for gpu in record.machine.gpus) or None),
    "memory": (True, lambda record: (total := memory_gib(record)) and round(total)),
    "engine version": (True, lambda record: record.observed.engine_version),
    "container image": (True, lambda record: record.container.image_id if record.container else None),
    "driver": (False, lambda record: record.machine.driver),
    "kernel": (False, lambda record: record.machine.kernel),
    "power mode": (False, lambda record: record.machine.power_mode),
    "locked clock": (False, lambda record: record.machine.clocks_locked_mhz),
}  # fmt: skip
"""What runs of one cell must share: whether another value forbids pooling (else casts doubt), and where it is."""
_COMPARED = ("machine", "GPU", "memory", "engine version")
"""What cells that are compared must share too."""


def mixed_machines(view: View) -> Iterator[Finding]:
    """Cells that pool runs of different machines or software, and comparisons that are also between those."""
    groups: dict[tuple[str, str], dict[Cell, Sequence[Stored]]] = defaultdict(dict)
    for cell, runs in view.counted.items():
        groups[cell[0], cell[2]][cell] = runs
        for what, (fatal, read) in _POOLED.items():
            values = _distinct(runs, read)
            if len(values) > 1:
                text = f"The runs of {label(cell)} were pooled although their {what} differs: {' and '.join(values)}."
                yield view.finding("mixed-machines", "error" if fatal else "warning", text, cell=cell, runs=ids(runs),
                                   what=what, values=values)  # fmt: skip
    for (model, workload), cells in groups.items():
        for what in _COMPARED:
            each = {cell: _distinct(runs, _POOLED[what][1]) for cell, runs in cells.items()}
            values = sorted({value for own in each.values() for value in own})
            if len(values) > 1 and all(len(own) <= 1 for own in each.values()):
                text = (
                    f"The environments of {model}/{workload} differ in more than the environment: {what} is "
                    f"{' and '.join(values)}. The comparison is between those, too."
                )
                yield view.finding("mixed-machines", "warning", text, cells=[label(cell) for cell in each], what=what,
                                   values=values)  # fmt: skip


def _distinct(runs: Sequence[Stored], read: _Read) -> list[str]:
    return sorted({str(value) for stored in runs if (value := read(stored.record)) is not None})

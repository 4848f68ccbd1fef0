"""What a record takes from its telemetry: the sampler's metrics, and where memory went."""

import statistics
from collections.abc import Sequence

import numpy as np

from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Memory, MemoryLedger, MetricValue, Phase
from sparkpub.record.telemetry import Telemetry

LEAST_SAMPLES = 2
"""Samples in the measured phase that energy needs: with fewer most of it would be interpolated from outside."""


def metrics(
    telemetry: Telemetry, duration: float, phase: Phase | str, *, served: bool = False
) -> dict[str, MetricValue]:
    """The sampler's metrics of a run that took `duration` seconds; null with the reason where there is no value.

    `phase` is the measured phase, or why it is not known. `served`: a server was there before the run, so that the
    memory of the machine before it is no baseline.
    """
    found = _of_run(telemetry, duration)
    if served:
        found["system_peak_gib"] = None, "the server was loaded before the run"
    if isinstance(phase, str):
        found |= dict.fromkeys(OF_MEASURED_PHASE, (None, phase))
    else:
        found |= _of_phase(telemetry, phase)
    metrics = {}
    for name, (value, reason) in found.items():
        unit, why = METRICS[name].unit, reason if value is None else None
        metric = MetricValue(value=value, unit=unit, source="sampler", reason=why)
        metrics[name] = metric
    return metrics


SampledFigures = dict[str, tuple[float | None, str]]
"""Metric to its value, and why it has none."""
OF_MEASURED_PHASE = (
    "startup_seconds",
    "startup_energy_joule",
    "gpu_power_mean_watt",
    "gpu_energy_joule",
    "gpu_utilization_mean_percent",
    "gpu_clock_sm_mean_mhz",
)
"""Metrics that cannot be had without knowing when the measured phase was."""


def _of_run(telemetry: Telemetry, duration: float) -> SampledFigures:
    """Peaks, temperatures and energy from the launch to the end."""
    drop = None
    available = telemetry.during("mem_available_gib")
    baseline = telemetry.before("mem_available_gib")
    if available and baseline is not None:
        drop = max(0.0, baseline - min(available))
    peak, current = map(telemetry.during, ("cgroup_peak_gib", "cgroup_current_gib"))
    used, heat = "gpu_memory_used_gib", "gpu_temp_celsius"
    found = {
        "gpu_memory_peak_gib": (max(telemetry.during(used), default=None), used),
        "system_peak_gib": (drop, "mem_available_gib"),
        "cgroup_peak_gib": (max(peak or current, default=None), "cgroup_peak_gib"),
        "gpu_temp_start_celsius": (telemetry.before(heat), heat),
        "gpu_temp_end_celsius": (telemetry.last(heat), heat),
        "gpu_temp_max_celsius": (max(telemetry.during(heat), default=None), heat),
        "run_energy_joule": (energy(telemetry, 0.0, duration), "gpu_power_watt"),
    }
    return {
        name: (value, telemetry.reason(column))
        for name, (value, column) in found.items()
    }


def _of_phase(telemetry: Telemetry, phase: Phase) -> SampledFigures:
    """Means and energy over the measured phase, and what came before it."""
    start, end = phase.start_seconds, phase.end_seconds
    counter = "gpu_energy_joule" if _has_counter(telemetry) else "gpu_power_watt"
    use, clock = "gpu_utilization_percent", "gpu_clock_sm_mhz"
    joule = mean_power = None
    if len(telemetry.within(counter, phase)) >= LEAST_SAMPLES:
        joule = energy(telemetry, start, end)
    if joule is not None:
        mean_power = joule / (end - start)
    no_energy, no_clock = (
        _why_empty(telemetry, column, phase) for column in (counter, clock)
    )
    if telemetry.within(clock, phase):
        no_clock = "no sample was taken under load"
    usage = _mean(telemetry.within(use, phase))
    return {
        "startup_seconds": (start, ""),
        "startup_energy_joule": (energy(telemetry, 0.0, start), no_energy),
        "gpu_power_mean_watt": (mean_power, no_energy),
        "gpu_energy_joule": (joule, no_energy),
        "gpu_utilization_mean_percent": (usage, _why_empty(telemetry, use, phase)),
        "gpu_clock_sm_mean_mhz": (_mean(telemetry.under_load(clock, phase)), no_clock),
    }


def _why_empty(telemetry: Telemetry, column: str, phase: Phase) -> str:
    """Why a column has no value in a phase."""
    if telemetry.timed(column):
        length = phase.end_seconds - phase.start_seconds
        return f"too few samples were taken in the measured phase of {length:.3g} s"
    return telemetry.reason(column)


def energy(telemetry: Telemetry, start: float, end: float) -> float | None:
    """Joule between two moments: the difference of the counter, else the integral of power; None without either.

    Between samples both are interpolated linearly, and before the first and after the last they stay as they are.
    """
    if _has_counter(telemetry):
        times, joule = zip(*telemetry.timed("gpu_energy_joule"), strict=True)
        at_start, at_end = np.interp([start, end], times, joule)
        return max(0.0, float(at_end - at_start))
    power = telemetry.timed("gpu_power_watt")
    if len(power) < 2:
        return None
    times, watt = zip(*power, strict=True)
    inside = [time for time in times if start < time < end]
    moments = [start, *inside, end]
    return float(np.trapezoid(np.interp(moments, times, watt), moments))


def _has_counter(telemetry: Telemetry) -> bool:
    """Whether the driver counts energy."""
    return len(telemetry.timed("gpu_energy_joule")) >= 2


def ledger(telemetry: Telemetry, total_gib: float) -> MemoryLedger | None:
    """Where memory went: at the last sample before the launch, and at the one with the least MemAvailable."""
    samples = telemetry.timed("mem_available_gib")
    if not samples:
        return None
    before = next((time for time, _ in reversed(samples) if time < 0), samples[0][0])
    during = [(value, time) for time, value in samples if time >= 0]
    least = min(during)[1] if during else samples[0][0]
    return MemoryLedger(
        baseline=_memory(telemetry, before, total_gib),
        peak=_memory(telemetry, least, total_gib),
    )


_MEASURED = ("free", "available", "cached", "shmem")
"""Columns of the machine's memory that a ledger has under the same names."""


def _memory(telemetry: Telemetry, moment: float, total_gib: float) -> Memory:
    def at(column: str) -> float | None:
        return dict(telemetry.timed(column)).get(moment)

    return Memory(
        total_gib=total_gib,
        **{f"{name}_gib": at(f"mem_{name}_gib") or 0.0 for name in _MEASURED},
        swap_used_gib=max(0.0, at("swap_used_gib") or 0.0),
        gpu_used_gib=at("gpu_memory_used_gib"),
        cgroup_gib=at("cgroup_current_gib"),
        processes_pss_gib=at("processes_pss_gib"),
    )


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None

"""What the samples of a run show of it: figures under load, before it and while it was measured, which checks ask."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparkpub.record import telemetry
from sparkpub.record.record import Phase, Record
from sparkpub.review.checks.finding import Threshold
from sparkpub.review.statistics.estimate import Floats

HELD_CLOCK_SHARE = Threshold(
    0.7,
    "Below this share of the maximum SM clock under load, something holds the clock down: heat where the GPU is at its "
    "slowdown temperature, whatever its driver says (a DGX Spark at 92 °C had 850 MHz), else a lock where neither "
    "power nor heat does. In real runs at less than full power it was 0.98 at least.",
)
Marked = NDArray[np.bool_]
"""Which of a run's samples are meant."""
CLOCK, LOAD = "gpu_clock_sm_mhz", "gpu_utilization_percent"
COLUMNS = (
    "elapsed_seconds",
    LOAD,
    CLOCK,
    "gpu_temp_celsius",
    "gpu_clock_mem_mhz",
    "gpu_throttle_reasons",
    "gpu_foreign_processes",
    "gpu_memory_used_gib",
    "gpu_power_watt",
    "mem_available_gib",
    "processes_pss_gib",
    "pressure_io_some_percent",
    "pressure_memory_some_percent",
)
"""The columns of a run's telemetry that checks read."""
POWER_CAP = 0x4
"""NVML's bit for a clock held by the power limit, which is how a GPU is built to run."""
_SLOWING = sum(telemetry.THROTTLES)
LOAD_SAMPLES = 5
"""Samples in the measured phase from which its utilisation is known: the driver averages over up to a second."""


@dataclass(frozen=True, eq=False)
class Samples:
    """A run's telemetry: of each column a number per sample, NaN where the sensor gave nothing."""

    columns: Mapping[str, Floats]

    @property
    def times(self) -> Floats:
        """Seconds since the launch of the run; below zero before it."""
        return self.columns["elapsed_seconds"]

    @property
    def under_load(self) -> Marked:
        """The samples in which the GPU was busy."""
        return self.columns[LOAD] >= telemetry.LOAD_PERCENT

    @property
    def interval(self) -> float:
        """The usual time between two samples; 0 where there are fewer."""
        gaps = np.diff(self.times)
        return float(np.median(gaps)) if len(gaps) else 0.0

    def within(self, phase: Phase) -> Marked:
        """The samples of a phase, both of its ends included."""
        return (self.times >= phase.start_seconds) & (self.times <= phase.end_seconds)

    def over(
        self, column: str, places: Marked, of: Callable[[Floats], Any] = np.mean
    ) -> float | None:
        """A figure of what the sensor gave in some samples, by default its mean; None where it gave nothing."""
        values = self.columns[column][places]
        known = values[~np.isnan(values)]
        return float(of(known)) if len(known) else None


def read(table: str) -> Samples:
    """The samples of a table that have a time."""
    parsed = telemetry.parse(table)
    none = [None] * max(map(len, parsed.columns.values()), default=0)
    found = {name: parsed.numbers(name) for name in COLUMNS}
    reasons = parsed.columns.get("gpu_throttle_reasons", ())
    found["gpu_throttle_reasons"] = tuple(map(_mask, reasons))
    columns = {name: np.array(has or none, np.float64) for name, has in found.items()}
    timed = ~np.isnan(columns["elapsed_seconds"])
    return Samples({name: values[timed] for name, values in columns.items()})


def _mask(text: str) -> float:
    """The reasons that slow a GPU, as the number of their bits; NaN where the text is none."""
    try:
        return float(int(text, 16) & _SLOWING)
    except ValueError:
        return np.nan


def _share_with(bits: int) -> Callable[[Floats], Any]:
    return lambda reasons: np.mean(reasons.astype(np.int64) & bits > 0)


def sensed(
    record: Record, samples: Samples, slowdown_celsius: float, highest_mhz: float
) -> dict[str, float | None]:
    """The figures that the samples of a run show on a GPU of this slowdown temperature and highest clock."""
    over, busy = samples.over, samples.under_load
    is_hot = samples.columns["gpu_temp_celsius"] >= slowdown_celsius
    hot = busy & is_hot & (samples.columns[CLOCK] < HELD_CLOCK_SHARE * highest_mhz)
    moments = [*(samples.times.tolist() or [0.0]), record.duration_seconds or 0.0]
    gap, at = max((then - one, one) for one, then in pairwise(moments))
    phase = measured_phase(record)
    measured = samples.times >= 0 if phase is None else samples.within(phase)
    told = {
        "gpu_power_mean_watt": over("gpu_power_watt", busy),
        "gpu_memory_peak_gib": over("gpu_memory_used_gib", busy, np.max),
        "busy_clock": over(CLOCK, busy, np.median),
        "memory_clock": over("gpu_clock_mem_mhz", busy, np.median),
        "slowed": over("gpu_throttle_reasons", busy, _share_with(_SLOWING - POWER_CAP)),
        "held": over("gpu_throttle_reasons", busy, _share_with(_SLOWING)),
        "hot": hot.sum() / max(1, busy.sum()),
        "hot_clock": over(CLOCK, hot, np.median),
        "hottest": over("gpu_temp_celsius", hot, np.max),
        "others": over("gpu_foreign_processes", samples.times > -np.inf, np.max),
        "waited_for_disk": over("pressure_io_some_percent", measured),
        "waited_for_memory": over("pressure_memory_some_percent", measured),
        "busy_before": over(LOAD, samples.times < 0, np.median),
        "gap": gap,
        "gap_at": at,
        "interval": samples.interval,
    }
    if phase is not None and len(samples.times):
        is_long = phase.end_seconds - phase.start_seconds > 2 * samples.interval
        told["samples_within"] = measured.sum() if is_long else None
        if measured.sum() >= LOAD_SAMPLES:
            told["most_load"] = over(LOAD, measured, np.max)
    return told


def measured_phase(record: Record) -> Phase | None:
    """When a run measured; None where nobody knows."""
    return next((phase for phase in record.phases if phase.name == "measure"), None)

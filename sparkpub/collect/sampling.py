"""The collector's side of the sampler: start it, follow what it writes, and make metrics of it."""

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from sparkpub.record.errors import CollectError
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Memory, MemoryLedger, MetricValue, Phase
from sparkpub.record.telemetry import LOAD_PERCENT, Telemetry, parse

LEAST_SAMPLES = 2
"""Samples in the measured phase that energy needs: with fewer most of it would be interpolated from outside."""


class Sampling:
    """A running sampler."""

    def __init__(self, process: "subprocess.Popen[str]", path: Path) -> None:
        self._process = process
        self._rows = path.open(encoding="utf-8")
        self._header: list[str] = []
        self._rest = ""

    def launched(self, pid: int, at: float) -> None:
        """The run began: its root process, and when on the monotonic clock."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(f"{pid} {at!r}\n")
            self._process.stdin.flush()

    def fresh(self) -> Iterator[dict[str, str]]:
        """Samples written since the last call, as column to text."""
        *lines, self._rest = (self._rest + self._rows.read()).split("\n")
        for line in lines:
            cells = line.split(",")
            if not self._header:
                self._header = cells
            elif len(cells) == len(self._header):
                yield dict(zip(self._header, cells, strict=True))

    def alive(self) -> bool:
        """Whether it still samples."""
        return self._process.poll() is None

    def end(self) -> None:
        """One last sample, then the notes. Safe to call twice."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._rows.close()


@contextmanager
def sampling(
    path: Path,
    interval: float,
    gpus: Sequence[int] | None,
    server: int | None = None,
    *,
    tenants: bool = False,
) -> Iterator[Sampling]:
    """A sampler that has taken its first baseline sample. Raises CollectError where it does not start.

    `server` is the root process of the server that the run will be a client of. `tenants`: what is on the GPU before
    the run belongs to it, as a server does that nobody here started.
    """
    chosen = None if gpus is None else list(gpus)
    settings = json.dumps(
        {
            "path": str(path),
            "interval": interval,
            "gpus": chosen,
            "server": server,
            "tenants": tenants,
        }
    )
    with subprocess.Popen(
        [sys.executable, "-m", "sparkpub.collect.sampler", settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Ctrl-C is for the collector: it decides when sampling ends.
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if process.stdout.readline() != "ready\n":
            said = process.stderr.read().strip().splitlines() or ["it said nothing"]
            raise CollectError(
                f"the sampler does not start: {said[-1]}", remedy="run sparkpub doctor"
            )
        sampler = Sampling(process, path)
        try:
            yield sampler
        finally:
            sampler.end()


def read(path: Path) -> Telemetry:
    """The finished telemetry of a run; empty where the file is not there."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError:
        return Telemetry({})


class Readings:
    """The numbers of a run's telemetry, split at launch. Times are in seconds since the launch."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self.times = [time or 0.0 for time in telemetry.numbers("elapsed_seconds")]

    def during(self, column: str) -> list[float]:
        """Values from the launch on."""
        return [value for time, value in self.timed(column) if time >= 0]

    def within(self, column: str, phase: Phase) -> list[float]:
        """Values of the samples taken in a phase."""
        return [
            value
            for time, value in self.timed(column)
            if phase.start_seconds <= time <= phase.end_seconds
        ]

    def before(self, column: str) -> float | None:
        """The last value before the launch, else the first at all."""
        timed = self.timed(column)
        for time, value in reversed(timed):
            if time < 0:
                return value
        if timed:
            return timed[0][1]
        return None

    def last(self, column: str) -> float | None:
        """The last value of all."""
        timed = self.timed(column)
        return timed[-1][1] if timed else None

    def under_load(self, column: str, phase: Phase) -> list[float]:
        """Values of samples of a phase in which the GPU was busy."""
        use = dict(self.timed("gpu_utilization_percent"))
        return [
            value
            for time, value in self.timed(column)
            if phase.start_seconds <= time <= phase.end_seconds
            and use.get(time, 0.0) >= LOAD_PERCENT
        ]

    def energy(self, start: float, end: float) -> float | None:
        """Joule between two moments: the difference of the counter, else the integral of power.

        Between samples both are interpolated linearly, and before the first and after the last they stay as they are.
        """
        counter = self.timed("gpu_energy_joule")
        if len(counter) >= 2:
            times, joule = zip(*counter, strict=True)
            at_start, at_end = np.interp([start, end], times, joule)
            return max(0.0, float(at_end - at_start))
        power = self.timed("gpu_power_watt")
        if len(power) < 2:
            return None
        times, watt = zip(*power, strict=True)
        inside = [time for time in times if start < time < end]
        moments = [start, *inside, end]
        return float(np.trapezoid(np.interp(moments, times, watt), moments))

    def has_counter(self) -> bool:
        """Whether the driver counts energy."""
        return len(self.timed("gpu_energy_joule")) >= 2

    def reason(self, column: str) -> str:
        """Why a column has no values."""
        return self._telemetry.notes.get(column, "no sample was taken while it applied")

    def timed(self, column: str) -> list[tuple[float, float]]:
        """(seconds since the launch, value) of every sample that has one."""
        pairs = zip(self.times, self._telemetry.numbers(column), strict=False)
        return [
            (time, value)
            for time, value in pairs
            if value is not None and math.isfinite(value)
        ]


def metrics(
    readings: Readings, duration: float, phase: Phase | str, *, served: bool = False
) -> dict[str, MetricValue]:
    """The sampler's metrics of a run that took `duration` seconds; null with the reason where there is no value.

    `phase` is the measured phase, or why it is not known. `served`: a server was there before the run, so that the
    memory of the machine before it is no baseline.
    """
    found = _of_run(readings, duration)
    if served:
        found["system_peak_gib"] = _null(
            "system_peak_gib", "the server was loaded before the run"
        )
    if isinstance(phase, str):
        found |= {name: _null(name, phase) for name in OF_MEASURED_PHASE}
    else:
        found |= _of_phase(readings, phase)
    return found


OF_MEASURED_PHASE = (
    "startup_seconds",
    "startup_energy_joule",
    "gpu_power_mean_watt",
    "gpu_energy_joule",
    "gpu_utilization_mean_percent",
    "gpu_clock_sm_mean_mhz",
)
"""Metrics that cannot be had without knowing when the measured phase was."""


def _of_run(readings: Readings, duration: float) -> dict[str, MetricValue]:
    """Peaks, temperatures and energy from the launch to the end."""
    available = readings.during("mem_available_gib")
    baseline = readings.before("mem_available_gib")
    drop = None
    if available and baseline is not None:
        drop = max(0.0, baseline - min(available))
    charged = readings.during("cgroup_peak_gib") or readings.during(
        "cgroup_current_gib"
    )
    found: dict[str, tuple[float | None, str]] = {
        "gpu_memory_peak_gib": (
            max(readings.during("gpu_memory_used_gib"), default=None),
            "gpu_memory_used_gib",
        ),
        "system_peak_gib": (drop, "mem_available_gib"),
        "cgroup_peak_gib": (max(charged, default=None), "cgroup_peak_gib"),
        "gpu_temp_start_celsius": (
            readings.before("gpu_temp_celsius"),
            "gpu_temp_celsius",
        ),
        "gpu_temp_end_celsius": (readings.last("gpu_temp_celsius"), "gpu_temp_celsius"),
        "gpu_temp_max_celsius": (
            max(readings.during("gpu_temp_celsius"), default=None),
            "gpu_temp_celsius",
        ),
        "run_energy_joule": (readings.energy(0.0, duration), "gpu_power_watt"),
    }
    return {
        name: _value(name, value, readings.reason(column))
        for name, (value, column) in found.items()
    }


def _of_phase(readings: Readings, phase: Phase) -> dict[str, MetricValue]:
    """Means and energy over the measured phase, and what came before it."""
    start, end = phase.start_seconds, phase.end_seconds
    energy_column = "gpu_energy_joule" if readings.has_counter() else "gpu_power_watt"
    energy = None
    mean_power = None
    if len(readings.within(energy_column, phase)) >= LEAST_SAMPLES:
        energy = readings.energy(start, end)
    if energy is not None:
        mean_power = energy / (end - start)
    utilisation = readings.within("gpu_utilization_percent", phase)
    clocks = readings.under_load("gpu_clock_sm_mhz", phase)
    why_no_energy = _why_empty(readings, energy_column, phase)
    found = {
        "startup_seconds": (start, ""),
        "startup_energy_joule": (readings.energy(0.0, start), why_no_energy),
        "gpu_power_mean_watt": (mean_power, why_no_energy),
        "gpu_energy_joule": (energy, why_no_energy),
        "gpu_utilization_mean_percent": (
            _mean(utilisation),
            _why_empty(readings, "gpu_utilization_percent", phase),
        ),
        "gpu_clock_sm_mean_mhz": (_mean(clocks), _why_no_clock(readings, phase)),
    }
    return {
        name: _value(name, value, reason) for name, (value, reason) in found.items()
    }


def _why_empty(readings: Readings, column: str, phase: Phase) -> str:
    """Why a column has no value in a phase."""
    if readings.timed(column):
        length = phase.end_seconds - phase.start_seconds
        return f"too few samples were taken in the measured phase of {length:.3g} s"
    return readings.reason(column)


def _why_no_clock(readings: Readings, phase: Phase) -> str:
    if readings.within("gpu_clock_sm_mhz", phase):
        return "no sample was taken under load"
    return _why_empty(readings, "gpu_clock_sm_mhz", phase)


def _value(name: str, value: float | None, reason: str) -> MetricValue:
    """A known metric of the sampler; `reason` is why it has no value."""
    if value is None:
        return _null(name, reason)
    return MetricValue(value=value, unit=METRICS[name].unit, source="sampler")


def _null(name: str, reason: str) -> MetricValue:
    return MetricValue(
        value=None, unit=METRICS[name].unit, source="sampler", reason=reason
    )


def ledger(readings: Readings, total_gib: float) -> MemoryLedger | None:
    """Where memory went: at the last sample before the launch, and at the one with the least MemAvailable."""
    samples = readings.timed("mem_available_gib")
    if not samples:
        return None
    before = next((time for time, _ in reversed(samples) if time < 0), samples[0][0])
    during = [(value, time) for time, value in samples if time >= 0]
    least = min(during)[1] if during else samples[0][0]
    return MemoryLedger(
        baseline=_memory(readings, before, total_gib),
        peak=_memory(readings, least, total_gib),
    )


def _memory(readings: Readings, moment: float, total_gib: float) -> Memory:
    def at(column: str) -> float | None:
        return dict(readings.timed(column)).get(moment)

    return Memory(
        total_gib=total_gib,
        free_gib=at("mem_free_gib") or 0.0,
        available_gib=at("mem_available_gib") or 0.0,
        cached_gib=at("mem_cached_gib") or 0.0,
        shmem_gib=at("mem_shmem_gib") or 0.0,
        swap_used_gib=max(0.0, at("swap_used_gib") or 0.0),
        gpu_used_gib=at("gpu_memory_used_gib"),
        cgroup_gib=at("cgroup_current_gib"),
        processes_pss_gib=at("processes_pss_gib"),
    )


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None

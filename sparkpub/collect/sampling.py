"""The collector's side of the sampler: start it, follow what it writes, and make metrics of it."""

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from sparkpub.record.errors import CollectError
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Memory, MemoryLedger, MetricValue
from sparkpub.record.telemetry import Telemetry, parse

LOAD_PERCENT = 10.0
"""From this utilisation on a sample counts as under load."""


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
def sampling(path: Path, interval: float, gpus: Sequence[int] | None) -> Iterator[Sampling]:
    """A sampler that has taken its first baseline sample. Raises CollectError where it does not start."""
    settings = json.dumps({"path": str(path), "interval": interval, "gpus": None if gpus is None else list(gpus)})
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
            raise CollectError(f"the sampler does not start: {said[-1]}", remedy="run sparkpub doctor")
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
    """The numbers of a run's telemetry, split at launch."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self.times = [time or 0.0 for time in telemetry.numbers("elapsed_seconds")]

    def during(self, column: str) -> list[float]:
        """Values from the launch on."""
        return [value for time, value in self.timed(column) if time >= 0]

    def before(self, column: str) -> float | None:
        """The last value before the launch, else the first at all."""
        timed = self.timed(column)
        return next((value for time, value in reversed(timed) if time < 0), timed[0][1] if timed else None)

    def last(self, column: str) -> float | None:
        """The last value of all."""
        timed = self.timed(column)
        return timed[-1][1] if timed else None

    def under_load(self, column: str) -> list[float]:
        """Values of samples in which the GPU was busy."""
        busy = {time for time, use in self.timed("gpu_utilization_percent") if use >= LOAD_PERCENT}
        return [value for time, value in self.timed(column) if time >= 0 and time in busy]

    def energy(self) -> float | None:
        """Joule: the counter's difference over the run, else the integral of power by the trapezoidal rule."""
        counter = self.timed("gpu_energy_joule")
        if len(counter) >= 2:
            start = next((value for time, value in reversed(counter) if time <= 0), counter[0][1])
            return max(0.0, counter[-1][1] - start)
        power = [(time, value) for time, value in self.timed("gpu_power_watt") if time >= 0]
        pairs = pairwise(power)
        return sum((b - a) * (p + q) / 2 for (a, p), (b, q) in pairs) if len(power) >= 2 else None

    def reason(self, column: str) -> str:
        """Why a column has no values."""
        return self._telemetry.notes.get(column, "no sample was taken while it applied")

    def timed(self, column: str) -> list[tuple[float, float]]:
        """(seconds since the launch, value) of every sample that has one."""
        pairs = zip(self.times, self._telemetry.numbers(column), strict=False)
        return [(time, value) for time, value in pairs if value is not None and math.isfinite(value)]


def metrics(readings: Readings) -> dict[str, MetricValue]:
    """The sampler's metrics; null with the reason where a sensor gave nothing."""
    available = readings.during("mem_available_gib")
    baseline = readings.before("mem_available_gib")
    load = readings.under_load("gpu_clock_sm_mhz")
    found: dict[str, tuple[float | None, str]] = {
        "gpu_memory_peak_gib": (max(readings.during("gpu_memory_used_gib"), default=None), "gpu_memory_used_gib"),
        "system_peak_gib": (
            max(0.0, baseline - min(available)) if available and baseline is not None else None,
            "mem_available_gib",
        ),
        "cgroup_peak_gib": (
            max(readings.during("cgroup_peak_gib") or readings.during("cgroup_current_gib"), default=None),
            "cgroup_peak_gib",
        ),
        "gpu_temp_start_celsius": (readings.before("gpu_temp_celsius"), "gpu_temp_celsius"),
        "gpu_temp_end_celsius": (readings.last("gpu_temp_celsius"), "gpu_temp_celsius"),
        "gpu_temp_max_celsius": (max(readings.during("gpu_temp_celsius"), default=None), "gpu_temp_celsius"),
        "gpu_power_mean_watt": (_mean(readings.during("gpu_power_watt")), "gpu_power_watt"),
        "gpu_energy_joule": (readings.energy(), "gpu_energy_joule"),
        "gpu_utilization_mean_percent": (_mean(readings.during("gpu_utilization_percent")), "gpu_utilization_percent"),
        "gpu_clock_sm_mean_mhz": (_mean(load), "gpu_clock_sm_mhz"),
    }
    values = {}
    for name, (value, column) in found.items():
        unit = METRICS[name].unit
        reason = None if value is not None else readings.reason(column)
        if name == "gpu_clock_sm_mean_mhz" and not load and readings.last("gpu_clock_sm_mhz") is not None:
            reason = "no sample was taken under load"
        values[name] = MetricValue(value=value, unit=unit, source="sampler", reason=reason)
    return values


def ledger(readings: Readings, total_gib: float) -> MemoryLedger | None:
    """Where memory went: at the last sample before the launch, and at the one with the least MemAvailable."""
    samples = readings.timed("mem_available_gib")
    if not samples:
        return None
    before = next((time for time, _ in reversed(samples) if time < 0), samples[0][0])
    during = [(value, time) for time, value in samples if time >= 0]
    least = min(during)[1] if during else samples[0][0]
    return MemoryLedger(baseline=_memory(readings, before, total_gib), peak=_memory(readings, least, total_gib))


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

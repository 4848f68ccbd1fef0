"""The columns of a run's telemetry.csv: what the sampler writes and everybody else reads.

One row per sample; an empty cell means that the sensor gave nothing, which is not zero. Lines that begin with
`#` say why a column is empty throughout (`# gpu_memory_used_gib: not supported by this driver`).
"""

import csv
import functools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sparkpub.record.metrics import unit_of

if TYPE_CHECKING:  # the sampler takes the columns along, and no pydantic
    from sparkpub.record.record import Phase

_NAMES = """
elapsed_seconds
gpu_utilization_percent gpu_memory_utilization_percent gpu_memory_used_gib gpu_temp_celsius gpu_power_watt
gpu_energy_joule gpu_clock_sm_mhz gpu_clock_mem_mhz gpu_performance_state gpu_throttle_reasons
gpu_processes gpu_foreign_processes cpu_percent
mem_free_gib mem_available_gib mem_cached_gib mem_shmem_gib swap_used_gib
pressure_cpu_some_percent pressure_memory_some_percent pressure_io_some_percent
cgroup_current_gib cgroup_peak_gib cgroup_anon_gib cgroup_file_gib cgroup_shmem_gib cgroup_kernel_gib
processes_pss_gib
"""
COLUMNS: Mapping[str, str] = {name: unit_of(name) for name in _NAMES.split()}
"""Column to unit, in file order. `elapsed_seconds` counts from the launch of the run and starts below zero for
baseline samples; counters of processes are whole numbers; throttle reasons are NVML's bit mask as hexadecimal."""

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""What shows a process some of a machine's GPUs."""
THROTTLES = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""NVML's clock event reasons that slow a GPU under load; idle, application clocks and display do not count."""

LOAD_PERCENT = 50.0
"""GPU utilisation from which a sample counts as under load: for the checks and the means over busy samples."""
LEAK_GIB = 0.5
"""Less is no leak, neither growing in a run nor left behind after it: an idle machine moves by less."""


TEXT_COLUMNS = frozenset({"gpu_performance_state", "gpu_throttle_reasons"})


_SUMS = frozenset(
    [
        "gpu_memory_used_gib",
        "gpu_power_watt",
        "gpu_energy_joule",
        "gpu_processes",
        "gpu_foreign_processes",
    ]
)
_MEANS = frozenset({"gpu_utilization_percent", "gpu_memory_utilization_percent"})


def over_gpus(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One sample of several GPUs: sums of memory, power, energy and processes, means of utilisation, the highest
    temperature, the lowest clocks, the slowest state, all throttle reasons. None where one of them gives nothing."""
    found: dict[str, Any] = {}
    for name in each[0]:
        values = [columns.get(name) for columns in each]
        found[name] = None if None in values else _together(name, values)
    return found


def _together(name: str, values: Sequence[Any]) -> Any:
    if name in _SUMS:
        return sum(values)
    if name in _MEANS:
        return sum(values) / len(values)
    if name == "gpu_throttle_reasons":
        masks = [int(value, 16) for value in values]
        return f"0x{functools.reduce(operator.or_, masks):x}"
    if name == "gpu_performance_state":
        return max(values, key=lambda state: int(state[1:]))
    return max(values) if name == "gpu_temp_celsius" else min(values)


@dataclass(frozen=True)
class Telemetry:
    """Samples by column, as text; empty where a sensor gave nothing. `notes` says why a column is empty throughout."""

    columns: Mapping[str, Sequence[str]]
    notes: Mapping[str, str] = field(default_factory=dict)
    _timed: dict[str, Sequence[tuple[float, float]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def numbers(self, column: str) -> tuple[float | None, ...]:
        """A numeric column, None where a sensor gave nothing; empty where the file has no such column."""
        is_number = column in COLUMNS and column not in TEXT_COLUMNS
        texts = self.columns.get(column, ())
        return tuple([_number(text) if is_number else None for text in texts])

    def timed(self, column: str) -> Sequence[tuple[float, float]]:
        """(seconds since the launch, value) of every sample that has both; empty where there is no such column.

        Read at its first use: few of thirty columns are asked for.
        """
        if column not in self._timed:
            times, values = self.numbers("elapsed_seconds"), self.numbers(column)
            self._timed[column] = [
                (time, value)
                for time, value in zip(times, values, strict=False)
                if time is not None and value is not None
            ]
        return self._timed[column]

    def during(self, column: str) -> list[float]:
        """Values from the launch on."""
        return [value for time, value in self.timed(column) if time >= 0]

    def within(self, column: str, phase: "Phase") -> list[float]:
        """Values of the samples taken in a phase, both of its ends included."""
        start, end = phase.start_seconds, phase.end_seconds
        return [value for time, value in self.timed(column) if start <= time <= end]

    def under_load(self, column: str, phase: "Phase") -> list[float]:
        """Values of the samples of a phase in which the GPU was busy."""
        use = dict(self.timed("gpu_utilization_percent"))
        start, end = phase.start_seconds, phase.end_seconds
        return [
            value
            for time, value in self.timed(column)
            if start <= time <= end and use.get(time, 0.0) >= LOAD_PERCENT
        ]

    def before(self, column: str) -> float | None:
        """The last value before the launch, else the first at all."""
        timed = self.timed(column)
        earlier = [value for time, value in timed if time < 0]
        if earlier:
            return earlier[-1]
        return timed[0][1] if timed else None

    def last(self, column: str) -> float | None:
        """The last value of all."""
        timed = self.timed(column)
        return timed[-1][1] if timed else None

    def reason(self, column: str) -> str:
        """Why a column has no values."""
        return self.notes.get(column, "no sample was taken while it applied")


def parse(text: str) -> Telemetry:
    """Telemetry from CSV text. A torn last line is dropped."""
    notes, rows = {}, []
    for line in text.splitlines():
        if line.startswith("#"):
            name, _, reason = line[1:].partition(":")
            notes[name.strip()] = reason.strip()
        elif line:
            rows.append(line)
    try:
        table = list(csv.reader(rows))
    except csv.Error:  # a field of more than 128 KiB: no sensor gives one
        table = []
    if not table:
        return Telemetry({}, notes)
    header, body = table[0], [row for row in table[1:] if len(row) == len(table[0])]
    columns = zip(*body, strict=True) if body else ((),) * len(header)
    return Telemetry(dict(zip(header, columns, strict=True)), notes)


def _number(text: str) -> float | None:
    """The number in a cell; None where there is none, and where it is not finite."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None

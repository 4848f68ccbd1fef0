"""The GPU's sensors, through NVML. What a driver does not offer is None with a reason, never zero.

On unified memory (DGX Spark) `nvmlDeviceGetMemoryInfo` is not supported: that is how unified memory is told.
"""

import functools
import importlib
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from statistics import fmean
from typing import Any, TypeVar

from sparkpub.record.metrics import GIB

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""What restricts a process, and a node of a cluster, to some GPUs of a machine."""


def library() -> Any:
    """The module pynvml: the one seam at which tests put a stand-in."""
    return importlib.import_module("pynvml")


class Gpus:
    """The GPUs of a run: those of these indices, else those that CUDA shows to this process. Raises `NoGpuError` where
    there are none."""

    def __init__(self, indices: Sequence[int] | None = None) -> None:
        try:
            self.nvml = library()
            self.nvml.nvmlInit()
        except Exception as error:  # whatever is wrong with library or driver
            raise NoGpuError(
                f"no NVIDIA GPU can be read: {error or type(error).__name__}"
            ) from None
        listed = [
            self.nvml.nvmlDeviceGetHandleByIndex(index)
            for index in range(self.nvml.nvmlDeviceGetCount())
        ]
        self.reasons: dict[str, str] = {}
        if not listed:
            raise NoGpuError("NVML lists no GPU")
        if indices is None:
            self.handles = self._visible(listed)
        else:
            self.handles = [listed[index] for index in indices if index < len(listed)]
        if not self.handles:
            raise NoGpuError(f"{VISIBLE} names no GPU that NVML lists")

    def _visible(self, listed: Sequence[Any]) -> list[Any]:
        """The GPUs that CUDA shows to this process and to what it starts. NVML shows all of them to everybody.

        `CUDA_VISIBLE_DEVICES` names them by index or by the beginning of a UUID; the first name that fits none ends
        the list, as in CUDA. A part of a GPU (MIG) stands for itself in CUDA and has no sensors of its own: then all
        GPUs are read.
        """
        named = os.environ.get(VISIBLE)
        if named is None or "MIG-" in named:
            return list(listed)
        visible = []
        for name in named.split(","):
            handle = self._named(name.strip(), listed)
            if handle is None:
                break
            visible.append(handle)
        return visible

    def _named(self, name: str, listed: Sequence[Any]) -> Any:
        """The GPU of an index or a UUID; None where there is none."""
        if name.isdecimal():
            return listed[int(name)] if int(name) < len(listed) else None
        if not name.startswith("GPU-"):
            return None
        for handle in listed:
            uuid = self.nvml.nvmlDeviceGetUUID(handle)
            if str(uuid).startswith(name):
                return handle
        return None

    def each(self, column: str, read: Callable[[Any], Any]) -> list[Any]:
        """One value per GPU; empty, with the reason kept, where the sensor gives nothing."""
        try:
            return [read(handle) for handle in self.handles]
        except self.nvml.NVMLError as error:
            self.reasons[column] = f"{error} (NVML)"
            return []

    def columns(self) -> dict[str, float | str | None]:
        """One telemetry sample. Several GPUs: sums of memory, power and energy, the mean of utilisation, the
        highest temperature, the lowest clock, all throttle reasons."""
        nvml = self.nvml
        usage = self.each("gpu_utilization_percent", nvml.nvmlDeviceGetUtilizationRates)
        powers = self.each("gpu_power_watt", nvml.nvmlDeviceGetPowerUsage)
        energies = self.each(
            "gpu_energy_joule", nvml.nvmlDeviceGetTotalEnergyConsumption
        )
        states = self.each("gpu_performance_state", nvml.nvmlDeviceGetPerformanceState)
        reasons = self.each(
            "gpu_throttle_reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons
        )
        return {
            "gpu_utilization_percent": _over(fmean, [item.gpu for item in usage]),
            "gpu_memory_utilization_percent": _over(
                fmean, [item.memory for item in usage]
            ),
            "gpu_memory_used_gib": self.memory_used(),
            "gpu_temp_celsius": self.temperature(),
            "gpu_power_watt": _over(_thousandths, powers),
            "gpu_energy_joule": _over(_thousandths, energies),
            "gpu_clock_sm_mhz": min(
                self._clocks("gpu_clock_sm_mhz", nvml.NVML_CLOCK_SM), default=None
            ),
            "gpu_clock_mem_mhz": min(
                self._clocks("gpu_clock_mem_mhz", nvml.NVML_CLOCK_MEM), default=None
            ),
            "gpu_performance_state": _over(lambda read: f"P{max(read)}", states),
            "gpu_throttle_reasons": _over(_all_bits, reasons),
        }

    def temperature(self) -> float | None:
        """The highest temperature in °C."""
        sensor = self.nvml.NVML_TEMPERATURE_GPU
        read = self.each(
            "gpu_temp_celsius",
            lambda handle: self.nvml.nvmlDeviceGetTemperature(handle, sensor),
        )
        return float(max(read)) if read else None

    def memory_used(self) -> float | None:
        """Device memory in use, in GiB; None on unified memory."""
        read = self.each("gpu_memory_used_gib", self.nvml.nvmlDeviceGetMemoryInfo)
        return sum(item.used for item in read) / GIB if read else None

    def memory_free_percent(self) -> float | None:
        """The least share of free memory of any GPU, in percent; None on unified memory."""
        read = self.each("gpu_memory_used_gib", self.nvml.nvmlDeviceGetMemoryInfo)
        return min((100.0 * item.free / item.total for item in read), default=None)

    def processes(self) -> list[int] | None:
        """Ids of processes that compute on these GPUs; None where the driver does not tell."""
        read = self.each(
            "gpu_processes", self.nvml.nvmlDeviceGetComputeRunningProcesses
        )
        if not read and "gpu_processes" in self.reasons:
            return None
        return [int(process.pid) for listed in read for process in listed]

    def _clocks(self, column: str, kind: int) -> list[float]:
        return self.each(
            column, lambda handle: float(self.nvml.nvmlDeviceGetClockInfo(handle, kind))
        )

    def lock_clocks(self, mhz: int) -> str | None:
        """Fix the SM clock; None when done, else the reason why not."""
        try:
            for handle in self.handles:
                self.nvml.nvmlDeviceSetGpuLockedClocks(handle, mhz, mhz)
        except self.nvml.NVMLError as error:
            self.unlock_clocks()
            return f"{error} (NVML)"
        return None

    def unlock_clocks(self) -> None:
        """Let the driver choose the clocks again."""
        for handle in self.handles:
            with suppress(self.nvml.NVMLError):
                self.nvml.nvmlDeviceResetGpuLockedClocks(handle)

    def close(self) -> None:
        """Let go of the driver."""
        with suppress(self.nvml.NVMLError):
            self.nvml.nvmlShutdown()


Combined = TypeVar("Combined")


def _over(combine: Callable[[list[Any]], Combined], read: list[Any]) -> Combined | None:
    """One value of what the GPUs gave; None where they gave nothing."""
    return combine(read) if read else None


def _thousandths(values: list[float]) -> float:
    return sum(values) / 1000


def _all_bits(masks: list[int]) -> str:
    return f"0x{functools.reduce(operator.or_, masks):x}"


class NoGpuError(Exception):
    """There is no GPU whose sensors can be read; the message says why."""


@contextmanager
def opened(indices: Sequence[int] | None = None) -> Iterator[tuple[Gpus | None, str]]:
    """The GPUs, or None and why."""
    try:
        gpus = Gpus(indices)
    except NoGpuError as error:
        yield None, str(error)
        return
    try:
        yield gpus, ""
    finally:
        gpus.close()

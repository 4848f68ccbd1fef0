"""The GPU's sensors, through NVML. What a driver does not offer is None with a reason, never zero.

On unified memory (DGX Spark) `nvmlDeviceGetMemoryInfo` is not supported: that is how unified memory is told.
"""

import copy
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sparkpub.record.metrics import GIB
from sparkpub.record.telemetry import VISIBLE, over_gpus


def library() -> Any:
    """The module pynvml: the one seam at which tests put a stand-in."""
    return importlib.import_module("pynvml")


def listed() -> int:
    """How many GPUs the machine has; 0 where none can be read."""
    with suppress(Exception):  # whatever is wrong with library or driver
        nvml = library()
        nvml.nvmlInit()
        count = int(nvml.nvmlDeviceGetCount())
        nvml.nvmlShutdown()
        return count
    return 0


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
            indices = self._visible(listed)
        self.indices = [index for index in indices if index < len(listed)]
        """As NVML counts, of each of `handles`."""
        self.handles = [listed[index] for index in self.indices]
        if not self.handles:
            raise NoGpuError("NVML lists none of the GPUs that are named")

    def apart(self) -> "list[Gpus]":
        """Each of the GPUs by itself; why a sensor gives nothing is kept for all of them together."""
        singles = []
        for index, handle in zip(self.indices, self.handles, strict=True):
            single = copy.copy(self)
            single.indices, single.handles = [index], [handle]
            singles.append(single)
        return singles

    def _visible(self, listed: Sequence[Any]) -> list[int]:
        """The GPUs that CUDA shows to this process and to what it starts, by `CUDA_VISIBLE_DEVICES`. NVML shows all of
        them to everybody."""
        named = os.environ.get(VISIBLE)
        if named is None:
            return list(range(len(listed)))
        if not all(name.strip().isdecimal() for name in named.split(",")):
            raise NoGpuError(f"{VISIBLE} does not name GPUs by their indices")
        return [int(name) for name in named.split(",")]

    def each(self, column: str, read: Callable[[Any], Any]) -> list[Any]:
        """One value per GPU; empty, with the reason kept, where the sensor gives nothing."""
        try:
            return [read(handle) for handle in self.handles]
        except self.nvml.NVMLError as error:
            self.reasons[column] = f"{error} (NVML)"
            return []

    def columns(self) -> dict[str, Any]:
        """One telemetry sample of all of these GPUs together, see `over_gpus`."""
        return over_gpus([single._of_one() for single in self.apart()])

    def _of_one(self) -> dict[str, float | str | None]:
        nvml = self.nvml
        usage = self._first(
            "gpu_utilization_percent", nvml.nvmlDeviceGetUtilizationRates
        )
        power = self._first("gpu_power_watt", nvml.nvmlDeviceGetPowerUsage)
        energy = self._first(
            "gpu_energy_joule", nvml.nvmlDeviceGetTotalEnergyConsumption
        )
        state = self._first("gpu_performance_state", nvml.nvmlDeviceGetPerformanceState)
        reasons = self._first(
            "gpu_throttle_reasons", nvml.nvmlDeviceGetCurrentClocksThrottleReasons
        )
        return {
            "gpu_utilization_percent": usage and usage.gpu,
            "gpu_memory_utilization_percent": usage and usage.memory,
            "gpu_memory_used_gib": self.memory_used(),
            "gpu_temp_celsius": self.temperature(),
            "gpu_power_watt": None if power is None else power / 1000,
            "gpu_energy_joule": None if energy is None else energy / 1000,
            "gpu_clock_sm_mhz": self._clock("gpu_clock_sm_mhz", nvml.NVML_CLOCK_SM),
            "gpu_clock_mem_mhz": self._clock("gpu_clock_mem_mhz", nvml.NVML_CLOCK_MEM),
            "gpu_performance_state": None if state is None else f"P{state}",
            "gpu_throttle_reasons": None if reasons is None else f"0x{reasons:x}",
        }

    def _first(self, column: str, read: Callable[[Any], Any]) -> Any:
        """The value of the first GPU; None, with the reason kept, where its sensor gives nothing."""
        return next(iter(self.each(column, read)), None)

    def _clock(self, column: str, kind: int) -> float | None:
        clock = self._first(
            column, lambda handle: self.nvml.nvmlDeviceGetClockInfo(handle, kind)
        )
        return None if clock is None else float(clock)

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

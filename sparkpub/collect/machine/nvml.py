"""The GPU's sensors, through NVML. What a driver does not offer is None with a reason, never zero.

On unified memory (DGX Spark) `nvmlDeviceGetMemoryInfo` is not supported: that is how unified memory is told.
"""

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
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

    def _visible(self, listed: Sequence[Any]) -> list[int]:
        """The GPUs that CUDA shows to this process and to what it starts, by `CUDA_VISIBLE_DEVICES`. NVML shows all of
        them to everybody."""
        named = os.environ.get(VISIBLE)
        if named is None:
            return list(range(len(listed)))
        if not all(name.strip().isdecimal() for name in named.split(",")):
            raise NoGpuError(f"{VISIBLE} does not name GPUs by their indices")
        return [int(name) for name in named.split(",")]

    def columns(self) -> dict[str, Any]:
        """One telemetry sample of all of these GPUs together, see `over_gpus`."""
        return over_gpus([self._of_one(handle) for handle in self.handles])

    def _of_one(self, handle: Any) -> dict[str, float | str | None]:
        nvml, asked = self.nvml, partial(self._asked, handle)
        usage = asked("gpu_utilization_percent", "nvmlDeviceGetUtilizationRates")
        memory = asked("gpu_memory_used_gib", "nvmlDeviceGetMemoryInfo")
        sensor = nvml.NVML_TEMPERATURE_GPU
        power = asked("gpu_power_watt", "nvmlDeviceGetPowerUsage")
        energy = asked("gpu_energy_joule", "nvmlDeviceGetTotalEnergyConsumption")
        state = asked("gpu_performance_state", "nvmlDeviceGetPerformanceState")
        reasons = asked(
            "gpu_throttle_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        )
        clock = "nvmlDeviceGetClockInfo"
        return {
            "gpu_utilization_percent": usage and usage.gpu,
            "gpu_memory_utilization_percent": usage and usage.memory,
            "gpu_memory_used_gib": memory and memory.used / GIB,
            "gpu_temp_celsius": _float(
                asked("gpu_temp_celsius", "nvmlDeviceGetTemperature", sensor)
            ),
            "gpu_power_watt": None if power is None else power / 1000,
            "gpu_energy_joule": None if energy is None else energy / 1000,
            "gpu_clock_sm_mhz": _float(
                asked("gpu_clock_sm_mhz", clock, nvml.NVML_CLOCK_SM)
            ),
            "gpu_clock_mem_mhz": _float(
                asked("gpu_clock_mem_mhz", clock, nvml.NVML_CLOCK_MEM)
            ),
            "gpu_performance_state": None if state is None else f"P{state}",
            "gpu_throttle_reasons": None if reasons is None else f"0x{reasons:x}",
        }

    def _asked(self, handle: Any, column: str, question: str, *more: Any) -> Any:
        """The driver's answer for a GPU; None, with the reason kept for a column, where it has none."""
        try:
            return getattr(self.nvml, question)(handle, *more)
        except self.nvml.NVMLError as error:
            self.reasons[column] = f"{error} (NVML)"
            return None

    def memory_free_percent(self) -> float | None:
        """The least share of free memory of any GPU, in percent; None on unified memory."""
        column, question = "gpu_memory_used_gib", "nvmlDeviceGetMemoryInfo"
        read = [self._asked(handle, column, question) for handle in self.handles]
        if None in read:
            return None
        shares: list[float] = [100.0 * item.free / item.total for item in read]
        return min(shares)

    def processes(self) -> list[int] | None:
        """Ids of processes that compute on these GPUs; None where the driver does not tell."""
        column, question = "gpu_processes", "nvmlDeviceGetComputeRunningProcesses"
        read = [self._asked(handle, column, question) for handle in self.handles]
        if None in read:
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


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


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

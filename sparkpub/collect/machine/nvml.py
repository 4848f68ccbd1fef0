"""The GPU's sensors, through NVML. What a driver does not offer is None with a reason, never zero.

On unified memory (DGX Spark) `nvmlDeviceGetMemoryInfo` is not supported: that is how unified memory is told.
"""

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def in_thousands(value: float) -> float:
    """Watt of milliwatt, joule of millijoule."""
    return value / 1000


_SENSORS: Mapping[tuple[str, str], Mapping[str, Callable[[Any], Any]]] = {
    ("nvmlDeviceGetUtilizationRates", ""): {
        "gpu_utilization_percent": lambda rates: rates.gpu,
        "gpu_memory_utilization_percent": lambda rates: rates.memory,
    },
    ("nvmlDeviceGetMemoryInfo", ""): {
        "gpu_memory_used_gib": lambda info: info.used / GIB
    },
    ("nvmlDeviceGetTemperature", "NVML_TEMPERATURE_GPU"): {"gpu_temp_celsius": float},
    ("nvmlDeviceGetPowerUsage", ""): {"gpu_power_watt": in_thousands},
    ("nvmlDeviceGetTotalEnergyConsumption", ""): {"gpu_energy_joule": in_thousands},
    ("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"): {"gpu_clock_sm_mhz": float},
    ("nvmlDeviceGetClockInfo", "NVML_CLOCK_MEM"): {"gpu_clock_mem_mhz": float},
    ("nvmlDeviceGetPerformanceState", ""): {"gpu_performance_state": "P{}".format},
    ("nvmlDeviceGetCurrentClocksThrottleReasons", ""): {"gpu_throttle_reasons": hex},
}
"""The driver's function, and the kind of sensor that it is asked for, to the telemetry columns that its answer fills,
and how it is kept there."""


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

    def _of_one(self, handle: Any) -> dict[str, Any]:
        found = {}
        for (question, kind), columns in _SENSORS.items():
            kinds = [getattr(self.nvml, kind)] if kind else []
            said = self.ask(question, handle, *kinds, columns=columns)
            for column, convert in columns.items():
                found[column] = None if said is None else convert(said)
        return found

    def ask(
        self,
        question: str,
        *more: Any,
        columns: Iterable[str] = (),
        convert: Callable[[Any], Any] = lambda said: said,
    ) -> Any:
        """The driver's answer in our unit; None where it has none, with the reason kept for `columns`."""
        try:
            return convert(getattr(self.nvml, question)(*more))
        except self.nvml.NVMLError as error:
            for column in columns:
                self.reasons[column] = f"{error} (NVML)"
            return None

    def _of_each(self, question: str, column: str) -> list[Any] | None:
        """The driver's answers for the GPUs; None where one of them has none."""
        read = [self.ask(question, handle, columns=[column]) for handle in self.handles]
        return None if None in read else read

    def memory_free_percent(self) -> float | None:
        """The least share of free memory of any GPU, in percent; None on unified memory."""
        read = self._of_each("nvmlDeviceGetMemoryInfo", "gpu_memory_used_gib")
        if read is None:
            return None
        return float(min(100.0 * item.free / item.total for item in read))

    def processes(self) -> list[int] | None:
        """Ids of processes that compute on these GPUs; None where the driver does not tell."""
        question = "nvmlDeviceGetComputeRunningProcesses"
        read = self._of_each(question, "gpu_processes")
        if read is None:
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

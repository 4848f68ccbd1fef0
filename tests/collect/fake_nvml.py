"""A stand-in for pynvml: GPUs that are alike but for what a test sets, one unless it says more. `spark` leaves out what
a DGX Spark's driver does.
"""

from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """As pynvml's: the text is the driver's."""


class FakeNvml:
    """The functions sparkpub calls. A reading set to an NVMLError is raised."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1

    def __init__(self, *, spark: bool = False) -> None:
        unsupported = NVMLError("Not Supported")
        self.temperature: Any = 40
        self.pids: list[int] = []
        self.locked: int | None = None
        self.utilization = 0
        self.throttle = 0
        self.clock_sm = 1980
        self.memory: Any = (
            unsupported
            if spark
            else SimpleNamespace(total=141 * 2**30, used=2**30, free=140 * 2**30)
        )
        self.clock_mem: Any = unsupported if spark else 3201
        self.power_limit: Any = unsupported if spark else 700_000
        self.name = "NVIDIA GB10" if spark else "NVIDIA H200"
        self.may_lock = True
        self.slowdown: Any = unsupported if spark else 87
        self.power, self.energy, self.state = 100_000, 5_000_000, 8
        self.count = 1
        self.of_gpu: dict[int, dict[str, Any]] = {}
        """Answers of a GPU by its index that are not those of the others."""

    def _given(self, value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    def nvmlInit(self) -> None: ...  # noqa: N802
    def nvmlShutdown(self) -> None: ...  # noqa: N802

    def __getattr__(self, question: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetCount": self.count,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(
                gpu=self.utilization, memory=0
            ),
            "nvmlDeviceGetMemoryInfo": self.memory,
            "nvmlDeviceGetTemperature": self.temperature,
            "nvmlDeviceGetPowerUsage": self.power,
            "nvmlDeviceGetTotalEnergyConsumption": self.energy,
            "nvmlDeviceGetPerformanceState": self.state,
            "nvmlDeviceGetCurrentClocksThrottleReasons": self.throttle,
            "nvmlDeviceGetName": self.name,
            "nvmlDeviceGetUUID": "GPU-12345678-1234-1234-1234-123456789abc",
            "nvmlDeviceGetVbiosVersion": "96.00.B0.00.01",
            "nvmlDeviceGetEnforcedPowerLimit": self.power_limit,
            "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
            "nvmlDeviceGetMaxClockInfo": 1980,
            "nvmlDeviceGetCudaComputeCapability": (12, 1)
            if "GB10" in self.name
            else (9, 0),
            "nvmlDeviceGetTemperatureThreshold": self.slowdown,
            "nvmlDeviceGetMigMode": NVMLError("Not Supported"),
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlSystemGetDriverVersion": "580.95.05",
            "nvmlSystemGetCudaDriverVersion": 13000,
            "nvmlDeviceGetComputeRunningProcesses": [
                SimpleNamespace(pid=pid) for pid in self.pids
            ],
        }
        if question not in answers:
            raise AttributeError(question)

        def answer(*asked: Any) -> Any:
            index = int(asked[0][3:]) if asked and isinstance(asked[0], str) else 0
            own = self.of_gpu.get(index, {})
            return self._given(own.get(question, answers[question]))

        return answer

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return f"gpu{index}"

    def nvmlDeviceGetClockInfo(self, _handle: str, kind: int) -> Any:  # noqa: N802
        return self._given(
            self.clock_sm if kind == self.NVML_CLOCK_SM else self.clock_mem
        )

    def nvmlDeviceSetGpuLockedClocks(self, _handle: str, low: int, _high: int) -> None:  # noqa: N802
        if not self.may_lock:
            raise NVMLError("Insufficient Permissions")
        self.locked = low

    def nvmlDeviceResetGpuLockedClocks(self, _handle: str) -> None:  # noqa: N802
        self.locked = None

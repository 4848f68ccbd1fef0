"""The machine measured: facts read once at the start of a collection, with nothing in them that names it."""

import hashlib
import hmac
import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sparkpub.collect.machine import cgroup, controls, nvml, proc
from sparkpub.collect.machine.nvml import Gpus, in_thousands
from sparkpub.collect.machine.processes import boot_id
from sparkpub.record import catalogue
from sparkpub.record.metrics import GIB
from sparkpub.record.record import Gate, Gpu, Machine

NAME_VARIABLE = "SPARKPUB_MACHINE"
"""A name that tells machines apart which have the same `/etc/machine-id`, as clones of one disk and containers do. It
goes into the machine's id and nowhere else."""


def facts(gpus: Gpus | None, controlled: Sequence[Gate] = ()) -> Machine:
    """Everything the machine says about itself, null where it says nothing; `controlled` is what was set on it."""
    cards = _cards(gpus)
    driver = cuda = None
    if gpus is not None:
        driver = gpus.ask("nvmlSystemGetDriverVersion")
        cuda = gpus.ask("nvmlSystemGetCudaDriverVersion", convert=_cuda)
    return Machine(
        id=_hidden(
            _first_line("/etc/machine-id"),
            os.environ.get(NAME_VARIABLE),
            *(card.id or "" for card in cards),
        ),
        boot=_hidden(boot_id()),
        kind=_kind(cards),
        arch=platform.machine() or None,
        os=_os_release(),
        kernel=platform.release() or None,
        cpu=_cpu(),
        cpu_count=os.cpu_count(),
        memory_total_gib=round(proc.meminfo()["MemTotal"], 3),
        unified_memory=None if gpus is None else gpus.memory_free_percent() is None,
        gpus=cards,
        driver=driver,
        cuda_driver=cuda,
        firmware=_first_line("/sys/class/dmi/id/bios_version"),
        cgroup=cgroup.version(),
        power_mode=controls.power_mode(),
        governor=_first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clocks_locked_mhz=_locked_clock(controlled),
        gpu_slowdown_celsius=_slowdown(gpus),
    )


def machine_id() -> str | None:
    """The stable name of this machine in records, as `facts` gives it."""
    with nvml.opened() as (gpus, _):
        return facts(gpus).id


def _kind(cards: Sequence[Gpu]) -> str | None:
    """The kind of machine that a GPU belongs to; None where the catalogue knows none of them."""
    kinds = (catalogue.machine_of(card.name) for card in cards)
    return next(filter(None, kinds), None)


def _locked_clock(controlled: Sequence[Gate]) -> float | None:
    """The SM clock that was locked for the campaign, in MHz."""
    for gate in controlled:
        if gate.name == "lock_clocks_mhz" and gate.met:
            return float(gate.wanted or 0)
    return None


def _slowdown(gpus: Gpus | None) -> float | None:
    """The temperature from which the driver slows the first of the GPUs down that it says it of, in °C."""
    if gpus is None:
        return None
    limit = gpus.nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
    question = "nvmlDeviceGetTemperatureThreshold"
    said = (gpus.ask(question, handle, limit) for handle in gpus.handles)
    return next((float(celsius) for celsius in said if celsius), None)


def _cuda(version: int) -> str:
    """`12.8` of 12080."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _cards(gpus: Gpus | None) -> tuple[Gpu, ...]:
    if gpus is None:
        return ()
    return tuple(
        _card(gpus, *each) for each in zip(gpus.indices, gpus.handles, strict=True)
    )


def _card(gpus: Gpus, index: int, handle: Any) -> Gpu:
    def ask(
        question: str, *more: Any, by: Callable[[Any], Any] = lambda said: said
    ) -> Any:
        return gpus.ask(f"nvmlDeviceGet{question}", handle, *more, convert=by)

    return Gpu(
        name=ask("Name") or "unknown",
        index=index,
        id=ask("UUID", by=_hidden),
        memory_total_gib=ask("MemoryInfo", by=lambda info: round(info.total / GIB, 3)),
        compute_capability=ask(
            "CudaComputeCapability", by=lambda pair: "{}.{}".format(*pair)
        ),
        vbios=ask("VbiosVersion"),
        power_limit_watt=ask("EnforcedPowerLimit", by=in_thousands),
        power_default_watt=ask("PowerManagementDefaultLimit", by=in_thousands),
        clock_max_sm_mhz=ask("MaxClockInfo", gpus.nvml.NVML_CLOCK_SM, by=float),
        mig=ask("MigMode", by=lambda modes: bool(modes[0])),
        ecc=ask("EccMode", by=lambda modes: bool(modes[0])),
    )


def _hidden(*parts: str | None) -> str | None:
    """A stable name that cannot be turned back: keyed by the machine's own random id, as systemd derives its
    application-specific ids. None where nothing names the machine."""
    known = "".join(part for part in parts if part)
    if not known:
        return None
    return hmac.new(known.encode(), b"sparkpub", hashlib.sha256).hexdigest()[:16]


def _first_line(path: str) -> str | None:
    with suppress(OSError):
        lines = Path(path).read_text().splitlines()
        return (lines[0].strip() if lines else "") or None
    return None


def _os_release() -> str | None:
    with suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    return None


def _cpu() -> str | None:
    """The processor's name: x86 says it in full, Arm by implementer and part of each kind of core."""
    parts: Counter[str] = Counter()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, value = (part.strip() for part in line.partition(":")[::2])
            if name == "model name":
                return value
            if name == "CPU part":
                parts[_ARM_PARTS.get(value, f"Arm part {value}")] += 1
    return " + ".join(f"{name} ({count})" for name, count in parts.items()) or None


_ARM_PARTS: Mapping[str, str] = {
    "0xd85": "Arm Cortex-X925",
    "0xd87": "Arm Cortex-A725",
    "0xd4f": "Arm Neoverse-V2",
    "0xd40": "Arm Neoverse-V1",
    "0xd0c": "Arm Neoverse-N1",
}

"""The machine measured: facts read once at the start of a collection, with nothing in them that names it."""

import hashlib
import hmac
import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sparkpub.collect.machine import cgroup, controls, nvml, proc
from sparkpub.collect.machine.nvml import Gpus
from sparkpub.collect.machine.processes import boot_id
from sparkpub.record import catalogue
from sparkpub.record.metrics import GIB
from sparkpub.record.record import Gate, Gpu, Machine

Converted = TypeVar("Converted")

NAME_VARIABLE = "SPARKPUB_MACHINE"
"""A name that tells machines apart which have the same `/etc/machine-id`, as clones of one disk and containers do. It
goes into the machine's id and nowhere else."""


def facts(gpus: Gpus | None, controlled: Sequence[Gate] = ()) -> Machine:
    """Everything the machine says about itself, null where it says nothing; `controlled` is what was set on it."""
    cards = _cards(gpus)
    driver = None if gpus is None else gpus.nvml
    cuda = None if driver is None else _asked(driver, "nvmlSystemGetCudaDriverVersion")
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
        driver=None if driver is None else _asked(driver, "nvmlSystemGetDriverVersion"),
        cuda_driver=_of(
            cuda, lambda version: f"{version // 1000}.{version % 1000 // 10}"
        ),
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
    nvml, question = gpus.nvml, "nvmlDeviceGetTemperatureThreshold"
    for handle in gpus.handles:
        limit = nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        celsius = _asked(nvml, question, handle, limit)
        if celsius:
            return float(celsius)
    return None


def _cards(gpus: Gpus | None) -> tuple[Gpu, ...]:
    if gpus is None:
        return ()
    nvml = gpus.nvml
    cards = []
    for index, handle in zip(gpus.indices, gpus.handles, strict=True):
        capability = _asked(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
        memory = _asked(nvml, "nvmlDeviceGetMemoryInfo", handle)
        power = _asked(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)
        usual = _asked(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle)
        clock = _asked(nvml, "nvmlDeviceGetMaxClockInfo", handle, nvml.NVML_CLOCK_SM)
        mig = _asked(nvml, "nvmlDeviceGetMigMode", handle)
        ecc = _asked(nvml, "nvmlDeviceGetEccMode", handle)
        cards.append(
            Gpu(
                name=_asked(nvml, "nvmlDeviceGetName", handle) or "unknown",
                index=index,
                id=_hidden(_asked(nvml, "nvmlDeviceGetUUID", handle)),
                memory_total_gib=_of(memory, lambda info: round(info.total / GIB, 3)),
                compute_capability=_of(capability, lambda pair: "{}.{}".format(*pair)),
                vbios=_asked(nvml, "nvmlDeviceGetVbiosVersion", handle),
                power_limit_watt=_of(power, lambda milliwatt: milliwatt / 1000),
                power_default_watt=_of(usual, lambda milliwatt: milliwatt / 1000),
                clock_max_sm_mhz=_of(clock, float),
                mig=_of(mig, lambda modes: bool(modes[0])),
                ecc=_of(ecc, lambda modes: bool(modes[0])),
            )
        )
    return tuple(cards)


def _of(answer: Any, convert: Callable[[Any], Converted]) -> Converted | None:
    """The driver's answer in our unit; None where it has none."""
    return None if answer is None else convert(answer)


def _asked(nvml: Any, question: str, *arguments: Any) -> Any:
    """The driver's answer, or None where it has none."""
    try:
        return getattr(nvml, question)(*arguments)
    except nvml.NVMLError:
        return None


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

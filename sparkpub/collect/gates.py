"""Conditions before a run: each is read, waited for where waiting helps, and recorded with its readings.

A sensor that cannot be read is `met: null` with the reason. It never passes silently, and where the matrix says
`on_unmet: skip` or `stop` it counts as not met.
"""

import operator
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkpub.collect.interruption import Interruption
from sparkpub.collect.machine import controls, proc
from sparkpub.collect.machine.nvml import Gpus
from sparkpub.collect.machine.tree import ProcessTree
from sparkpub.plan.matrix import Gates
from sparkpub.record.metrics import GIB
from sparkpub.record.record import Gate, Reading
from sparkpub.record.text import other_processes

PACE = 2.0
"""Seconds between readings while a gate waits."""
KEPT = 200
"""Readings kept of one gate: enough for a curve of the longest wait."""

NONE: Mapping[str, Any] = {
    "cooldown": 0,
    "max_start_temp_celsius": None,
    "max_gpu_temp_celsius": None,
    "max_cpu_percent": None,
    "min_free_memory_percent": None,
    "exclusive_gpu": False,
}
"""Gates that wait for nothing."""

GateValue = float | str | bool | None
Read = tuple[GateValue, str]
"""What a sensor says, and a word on it: where it says nothing, why."""


@dataclass
class TriedGate:
    """One gate while it is tried. `compare` holds what is read against what is wanted, where something is."""

    name: str
    unit: str
    read: Callable[[], Read]
    compare: Callable[[Any, Any], bool]
    wanted: GateValue
    waits: bool
    """Whether waiting may help."""
    met: bool | None = None
    reason: str = ""
    waited: float = 0.0
    readings: list[Reading] = field(default_factory=list)

    def take(self, at: float) -> None:
        """One reading, and what it means."""
        value, self.reason = self.read()
        self.met = None
        if value is not None:
            self.met = self.wanted is None or self.compare(value, self.wanted)
        if self.waits:
            self.waited = at
        if len(self.readings) >= KEPT:
            self.readings = self.readings[::2]
        self.readings.append(Reading(at_seconds=round(at, 3), value=value))

    def gate(self) -> Gate:
        """The record's form."""
        said = [self.reason]
        if self.met is False and self.waits:
            said.append("not met within the longest wait")
        return Gate(
            name=self.name,
            wanted=self.wanted,
            unit=self.unit,
            met=self.met,
            waited_seconds=round(self.waited, 3),
            readings=tuple(self.readings),
            reason="; ".join(filter(None, said)) or None,
        )

    def __str__(self) -> str:
        value = f"{self.readings[-1].value} {self.unit}".strip()
        return f"{self.name} (is {value}, wanted {self.wanted})"


def why_unmet(gates: Sequence[Gate]) -> str:
    """Which conditions that the matrix sets did not hold, and which have no sensor here; empty where all hold."""
    said = []
    for met, words in ((False, "gate not met"), (None, "not measured here")):
        names = [
            gate.name for gate in gates if gate.wanted is not None and gate.met is met
        ]
        if names:
            said.append(f"{words}: {', '.join(names)}")
    return "; ".join(said)


class Gatekeeper:
    """Applies a matrix's gates on this machine."""

    def __init__(self, gates: Gates, why_no_gpu: str, data: Path) -> None:
        self._gates, self._why, self._data = gates, why_no_gpu, data
        self._gpus: Gpus | None = None
        self._server: ProcessTree | None = None
        self._cpu = proc.CpuLoad()

    def passed(
        self,
        gpus: Gpus | None,
        last_ended: datetime | None,
        interruption: Interruption,
        say: Callable[[str, str], object],
        server: ProcessTree | None = None,
    ) -> tuple[Gate, ...]:
        """Wait for everything that waiting helps, then read the rest; `say` takes what is waited for and how far it is.
        An interruption ends the waiting.

        `gpus` are those of the run, and `server` is the one that it will be a client of: neither its processes nor its
        memory stand in the run's way.
        """
        self._gpus, self._server = gpus, server
        done = [self._cooldown(last_ended, interruption, say)]
        if interruption.finish:
            return tuple(done)
        if self._gates.drop_caches:
            done.append(controls.drop_caches())
        conditions = self._conditions()
        began = time.monotonic()
        self._cpu.percent()
        if self._gates.max_cpu_percent is not None:
            interruption.wait(0.2)
        while True:
            at = time.monotonic() - began
            for condition in conditions:
                if condition.met is not True:
                    condition.take(at)
            waiting = [item for item in conditions if item.waits and item.met is False]
            left = self._gates.max_wait - at
            if not waiting or left <= 0:
                break
            say("waiting", f"for {', '.join(map(str, waiting))}")
            if interruption.wait(min(PACE, left)):
                break
        return (*done, *(condition.gate() for condition in conditions))

    def _cooldown(
        self,
        last_ended: datetime | None,
        interruption: Interruption,
        say: Callable[[str, str], object],
    ) -> Gate:
        """Time since the last run of the campaign ended, whichever collector ran it."""
        wanted, waited = self._gates.cooldown, 0.0
        gate = Gate(
            name="cooldown",
            wanted=wanted,
            unit="s",
            met=True,
            waited_seconds=0.0,
            reason="no earlier run to cool down from",
        )
        if last_ended is None:
            return gate
        since = max(0.0, (datetime.now(UTC) - last_ended).total_seconds())
        began = time.monotonic()
        while not interruption.finish and (rest := wanted - since - waited) > 0:
            say("cooling down", f"{rest:.0f} s left")
            interruption.wait(min(1.0, rest))
            waited = time.monotonic() - began
        passed = round(since + waited, 3)
        reading = Reading(at_seconds=round(waited, 3), value=passed)
        return replace(
            gate,
            met=since + waited >= wanted,
            waited_seconds=round(waited, 3),
            readings=(reading,),
            reason=None,
        )

    def _conditions(self) -> list[TriedGate]:
        """Those that the matrix sets, and the performance state, which is read in any case."""
        less, least = operator.lt, operator.ge
        table = (
            # The source's limits are strict: below 45 °C to start, below 80 °C at all.
            ("max_start_temp_celsius", "°C", self._temperature, less),
            ("max_gpu_temp_celsius", "°C", self._temperature, less),
            ("max_cpu_percent", "%", self._cpu_percent, operator.le),
            ("min_free_memory_percent", "%", self._free_memory, least),
            ("exclusive_gpu", "", self._exclusive, operator.is_),
            ("min_free_disk_gib", "GiB", self._free_disk, least),
            ("performance_state", "", self._performance_state, operator.eq),
        )
        conditions = []
        for name, unit, read, compare in table:
            wanted: GateValue = getattr(self._gates, name)
            if wanted is False:
                wanted = None
            if name == "min_free_memory_percent" and self._server is not None:
                continue  # a server that holds its memory would never let a client start
            if wanted is not None or name == "performance_state":
                # Disk and state do not change while a machine is idle.
                waits = name not in ("min_free_disk_gib", "performance_state")
                conditions.append(TriedGate(name, unit, read, compare, wanted, waits))
        return conditions

    def _of_gpus(self, column: str) -> tuple[Any, str]:
        """A reading of the GPUs together, or None and why there is none."""
        if self._gpus is None:
            return None, self._why
        value = self._gpus.columns()[column]
        return value, "" if value is not None else self._gpus.reasons[column]

    def _temperature(self) -> Read:
        return self._of_gpus("gpu_temp_celsius")

    def _cpu_percent(self) -> Read:
        load = self._cpu.percent()
        if load is None:
            return None, "no processor time passed"
        return round(load, 2), ""

    def _free_memory(self) -> Read:
        """Of the GPU where it has memory of its own, else of the machine, whose memory is then the GPU's."""
        free = self._gpus.memory_free_percent() if self._gpus is not None else None
        if free is not None:
            return round(free, 2), "memory of the GPU"
        values = proc.meminfo()
        share = 100.0 * values["MemAvailable"] / values["MemTotal"]
        why = "unified memory" if self._gpus is not None else "no GPU"
        return round(share, 2), f"MemAvailable of the machine: {why}"

    def _exclusive(self) -> Read:
        if self._gpus is None:
            return None, self._why
        pids = self._gpus.processes()
        if pids is None:
            return None, self._gpus.reasons["gpu_processes"]
        others = {pid for pid in pids if not self._is_servers(pid)}
        if not others:
            return True, ""
        return False, f"the GPU is in use by {other_processes(len(others))}"

    def _is_servers(self, pid: int) -> bool:
        """Whether a process is the server's; one of a process namespace that we cannot see is taken for it."""
        if self._server is None:
            return False
        return not Path(f"/proc/{pid}").exists() or self._server.owns(pid)

    def _free_disk(self) -> Read:
        return round(shutil.disk_usage(self._data).free / GIB, 2), ""

    def _performance_state(self) -> Read:
        wanted = self._gates.performance_state
        value, reason = self._of_gpus("gpu_performance_state")
        if value is not None and wanted is None:
            reason = "read for the record; the matrix sets no condition"
        elif value not in (None, wanted):
            reason = "an idle GPU lowers its state; it rises with the load"
        return value, reason


def floor_gib(gates: Gates, unified_memory: bool | None) -> float | None:
    """The MemAvailable below which a run is ended: the matrix's, else 8 GiB on unified memory, else none."""
    if gates.min_available_memory_gib is not None:
        return gates.min_available_memory_gib
    return 8.0 if unified_memory else None

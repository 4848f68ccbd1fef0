"""Conditions before a run: each is read, waited for where waiting helps, and recorded with its readings.

A sensor that cannot be read is `met: null` with the reason. It never passes silently, and where the matrix says
`on_unmet: skip` or `stop` it counts as not met.
"""

import operator
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

_NOT_WAITED_FOR = ("min_free_disk_gib", "performance_state")
"""What does not change while a machine is idle."""

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
Say = Callable[[str], None]


@dataclass
class TriedGate:
    """One gate while it is tried. `read` gives the value, or None and the reason why it cannot be read; `compare`
    holds it against what is wanted, where something is."""

    name: str
    wanted: GateValue
    unit: str
    read: Callable[[], tuple[GateValue, str]]
    compare: Callable[[Any, Any], bool]
    waits: bool = True
    met: bool | None = None
    reason: str | None = None
    waited: float = 0.0
    readings: list[Reading] = field(default_factory=list)

    def take(self, at: float) -> None:
        """One reading, and what it means."""
        value, reason = self.read()
        self.met = None
        if value is not None:
            self.met = self.wanted is None or self.compare(value, self.wanted)
        self.reason = reason or None
        if len(self.readings) >= KEPT:
            self.readings = self.readings[::2]
        self.readings.append(Reading(at_seconds=round(at, 3), value=value))

    def gate(self) -> Gate:
        """The record's form."""
        reason = self.reason
        if self.met is None and reason is None:
            reason = "the sensor gave nothing"
        if self.met is False and self.waits:
            reason = "; ".join(
                filter(None, (reason, "not met within the longest wait"))
            )
        return Gate(
            name=self.name,
            wanted=self.wanted,
            unit=self.unit,
            met=self.met,
            waited_seconds=round(self.waited, 3),
            readings=tuple(self.readings),
            reason=reason,
        )


@dataclass(frozen=True)
class Passed:
    """What came of the gates; `interrupted` where a signal ended the waiting."""

    gates: tuple[Gate, ...]
    interrupted: bool = False

    @property
    def unmet(self) -> tuple[str, ...]:
        """Names of conditions that the matrix sets and that are not known to hold."""
        return tuple(
            gate.name
            for gate in self.gates
            if gate.wanted is not None and gate.met is not True
        )

    @property
    def why_unmet(self) -> str:
        """The same in words: what did not hold, and what has no sensor on this machine."""
        unmet = [gate for gate in self.gates if gate.name in self.unmet]
        missed = [gate.name for gate in unmet if gate.met is False]
        unknown = [gate.name for gate in unmet if gate.met is None]
        parts = []
        if missed:
            parts.append(f"gate not met: {', '.join(missed)}")
        if unknown:
            parts.append(f"not measured here: {', '.join(unknown)}")
        return "; ".join(parts)


def company(gates: Gates) -> str | None:
    """What other programs use of the processors now, where the gates limit that and do not wait for them to end; None
    where it is within the limit."""
    if gates.max_cpu_percent is None or gates.max_wait > 0:
        return None
    load = proc.CpuLoad()
    time.sleep(0.3)
    percent = load.percent() or 0.0
    if percent <= gates.max_cpu_percent:
        return None
    processors = os.cpu_count() or 1
    return (
        f"this machine is busy: other programs use {percent * processors:.0f} % of {processors} processors; "
        "what you measure now varies with them and answers nothing"
    )


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
        say: Say,
        server: ProcessTree | None = None,
    ) -> Passed:
        """Wait for everything that waiting helps, then read the rest. `gpus` are those of the run, and `server` is the
        one that it will be a client of: neither its processes nor its memory stand in the run's way."""
        self._gpus, self._server = gpus, server
        done = [self._cooldown(last_ended, interruption, say)]
        if interruption.finish:
            return Passed(tuple(done), interrupted=True)
        if self._gates.drop_caches:
            done.append(controls.drop_caches())
        conditions = self._conditions()
        began = time.monotonic()
        self._cpu.percent()
        if any(condition.name == "max_cpu_percent" for condition in conditions):
            interruption.wait(0.2)
        while True:
            at = time.monotonic() - began
            open_ones = [
                condition for condition in conditions if condition.met is not True
            ]
            for condition in open_ones:
                condition.take(at)
                condition.waited = at if condition.waits else 0.0
            waiting = [
                condition
                for condition in conditions
                if condition.waits and condition.met is False
            ]
            left = self._gates.max_wait - at
            if not waiting or left <= 0:
                break
            say(
                "waiting for "
                + ", ".join(_described(condition) for condition in waiting)
            )
            if interruption.wait(min(PACE, left)):
                return Passed(tuple(done), interrupted=True)
        return Passed((*done, *(condition.gate() for condition in conditions)))

    def _cooldown(
        self, last_ended: datetime | None, interruption: Interruption, say: Say
    ) -> Gate:
        """Time since the last run of the campaign ended, whichever collector ran it."""
        wanted = self._gates.cooldown
        if last_ended is None:
            return Gate(
                name="cooldown",
                wanted=wanted,
                unit="s",
                met=True,
                waited_seconds=0.0,
                reason="no earlier run to cool down from",
            )
        since = max(0.0, (datetime.now(UTC) - last_ended).total_seconds())
        left = max(0.0, wanted - since)
        began = time.monotonic()
        while (rest := left - (time.monotonic() - began)) > 0:
            say(f"cooling down, {rest:.0f} s left")
            if interruption.wait(min(1.0, rest)):
                break
        waited = time.monotonic() - began if left else 0.0
        passed = since + waited
        reading = Reading(at_seconds=round(waited, 3), value=round(passed, 3))
        return Gate(
            name="cooldown",
            wanted=wanted,
            unit="s",
            met=passed >= wanted,
            waited_seconds=round(waited, 3),
            readings=(reading,),
        )

    def _conditions(self) -> list[TriedGate]:
        """Those that the matrix sets, and the performance state, which is read in any case."""
        sensors: list[
            tuple[str, str, Callable[[], Any], Callable[[Any, Any], bool]]
        ] = [
            # The source's limits are strict: below 45 °C to start, below 80 °C at all.
            ("max_start_temp_celsius", "°C", self._temperature, operator.lt),
            ("max_gpu_temp_celsius", "°C", self._temperature, operator.lt),
            ("max_cpu_percent", "%", self._cpu_percent, operator.le),
            ("min_free_memory_percent", "%", self._free_memory, operator.ge),
            ("exclusive_gpu", "", self._exclusive, operator.is_),
            ("min_free_disk_gib", "GiB", self._free_disk, operator.ge),
            ("performance_state", "", self._performance_state, operator.eq),
        ]
        conditions = []
        for name, unit, read, compare in sensors:
            wanted = self._wanted(name)
            if wanted is None and name != "performance_state":
                continue
            waits = name not in _NOT_WAITED_FOR
            conditions.append(TriedGate(name, wanted, unit, read, compare, waits))
        return conditions

    def _wanted(self, name: str) -> GateValue:
        """What the matrix asks for; None where it asks for nothing."""
        if name == "min_free_memory_percent" and self._server is not None:
            return None  # a server that holds its memory would never let a client start
        wanted: GateValue = getattr(self._gates, name)
        return None if wanted is False else wanted

    def _read(self, column: str, sensor: Callable[[Gpus], Any]) -> tuple[Any, str]:
        if self._gpus is None:
            return None, self._why
        value = sensor(self._gpus)
        if value is None:
            return None, self._gpus.reasons[column]
        return value, ""

    def _temperature(self) -> tuple[GateValue, str]:
        return self._read("gpu_temp_celsius", Gpus.temperature)

    def _cpu_percent(self) -> tuple[GateValue, str]:
        load = self._cpu.percent()
        if load is None:
            return None, "no processor time passed"
        return round(load, 2), ""

    def _free_memory(self) -> tuple[GateValue, str]:
        """Of the GPU where it has memory of its own, else of the machine, whose memory is then the GPU's."""
        free = self._gpus.memory_free_percent() if self._gpus is not None else None
        if free is not None:
            return round(free, 2), "memory of the GPU"
        values = proc.meminfo()
        share = 100.0 * values["MemAvailable"] / values["MemTotal"]
        why = "unified memory" if self._gpus is not None else "no GPU"
        return round(share, 2), f"MemAvailable of the machine: {why}"

    def _exclusive(self) -> tuple[GateValue, str]:
        pids, reason = self._read("gpu_processes", Gpus.processes)
        if pids is None:
            return None, reason
        others = {pid for pid in pids if not self._is_servers(pid)}
        if not others:
            return True, reason
        return False, f"the GPU is in use by {other_processes(len(others))}"

    def _is_servers(self, pid: int) -> bool:
        """Whether a process is the server's; one of a process namespace that we cannot see is taken for it."""
        if self._server is None:
            return False
        return not Path(f"/proc/{pid}").exists() or self._server.owns(pid)

    def _free_disk(self) -> tuple[GateValue, str]:
        return round(shutil.disk_usage(self._data).free / GIB, 2), ""

    def _performance_state(self) -> tuple[GateValue, str]:
        column, wanted = "gpu_performance_state", self._gates.performance_state
        value, reason = self._read(column, lambda gpus: gpus.columns()[column])
        if value is not None and wanted is None:
            reason = "read for the record; the matrix sets no condition"
        elif value not in (None, wanted):
            reason = "an idle GPU lowers its state; it rises with the load"
        return value, reason


def _described(condition: TriedGate) -> str:
    value = condition.readings[-1].value
    return f"{condition.name} (is {value}{condition.unit and ' ' + condition.unit}, wanted {condition.wanted})"


def floor_gib(gates: Gates, unified_memory: bool | None) -> float | None:
    """The MemAvailable below which a run is ended: the matrix's, else 8 GiB on unified memory, else none."""
    if gates.min_available_memory_gib is not None:
        return gates.min_available_memory_gib
    return 8.0 if unified_memory else None

"""The sampler: a process of its own that reads every sensor at a steady pace and writes telemetry.csv.

It is started before the run (`python -m sparkpub.collect.sampler {"path": …, "interval": …}`), says `ready` when
its first baseline sample is taken, learns of the launch by a line `<pid> <monotonic time>` on its standard input
and ends when that is closed, which the death of the collector does too.
"""

import csv
import json
import select
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkpub.collect.machine import proc
from sparkpub.collect.machine.nvml import Gpus, NoGpuError
from sparkpub.collect.machine.tree import ProcessTree
from sparkpub.record.telemetry import COLUMNS

PSS_EVERY = 10.0
"""Seconds between readings of PSS, which walks page tables and would disturb what is measured."""
PSS_SHARE = 0.01
"""And never more than this share of the time."""


class Sampler:
    """Reads one row at a time; knows why a column is empty. `server` is the root process of a server that lives for
    several runs: it and the run's command are sampled together. `tenants`: the run measures a server that nobody here
    started, and what computed before the run is taken for that server's."""

    def __init__(
        self,
        gpus: list[int] | None = None,
        server: int | None = None,
        *,
        tenants: bool = False,
    ) -> None:
        self.reasons: dict[str, str] = {}
        self._gpus: Gpus | None = None
        try:
            self._gpus = Gpus(gpus)
        except NoGpuError as error:
            self.reasons |= _for_columns("gpu_", str(error))
        self._cpu = proc.CpuLoad()
        self._at_baseline: set[int] = set()
        self._server = None if server is None else ProcessTree(server)
        self._tenants = tenants
        self._run: ProcessTree | None = None
        self._pss_due = 0.0
        for start in ("cgroup_", "processes_"):
            self.reasons |= _for_columns(
                start, "the run ended before its processes could be read"
            )
        self.reasons |= _for_columns("pressure_", "this kernel has no PSI")
        if server is not None:
            self.reasons["cgroup_peak_gib"] = (
                "the server lives longer than the run, and so does the peak of its group"
            )

    def attach(self, pid: int, now: float) -> None:
        """From here on, samples are of the run with this root process."""
        self._run = ProcessTree(pid)
        self._pss_due = now + min(2.0, PSS_EVERY)

    def row(self, now: float) -> dict[str, Any]:
        """One sample: column to value, None where a sensor gave nothing. `now` is monotonic."""
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        row |= (
            proc.machine_columns()
            | proc.pressure_columns()
            | {"cpu_percent": self._cpu.percent()}
        )
        if self._run is not None:
            row |= self._charged()
        if self._gpus is not None:
            row |= self._gpus.columns() | self._processes(self._gpus)
            self.reasons |= self._gpus.reasons
        if self._run is not None and now >= self._pss_due:
            row["processes_pss_gib"] = self._pss()
        return row

    def _trees(self) -> list[ProcessTree]:
        return [tree for tree in (self._server, self._run) if tree is not None]

    def _charged(self) -> dict[str, float]:
        """Memory of the control groups, of command and server together; empty where one of them has none."""
        total: dict[str, float] = {}
        for tree in self._trees():
            tree.find_folder()
            if tree.folder is None:
                self.reasons |= _for_columns("cgroup_", tree.reason)
                return {}
            for name, value in proc.cgroup_columns(tree.folder).items():
                total[name] = total.get(name, 0.0) + value
        if self._server is not None:
            total.pop("cgroup_peak_gib", None)
        return total

    def _processes(self, gpu: Gpus) -> dict[str, int]:
        """Computing processes of the GPUs, and those among them that are not the run's.

        NVML names processes by the ids of the machine's first process namespace; one that we cannot see is taken for
        the run's own unless it was there before.
        """
        pids = gpu.processes()
        if pids is None:
            self.reasons["gpu_foreign_processes"] = gpu.reasons["gpu_processes"]
            return {}
        if self._run is None:
            known = self._server is not None
            self._at_baseline |= {
                pid for pid in pids if not known or self._is_foreign(pid)
            }
        foreign = {pid for pid in pids if self._is_foreign(pid)}
        if self._tenants:
            foreign -= self._at_baseline
        else:
            foreign |= self._at_baseline.intersection(pids)
        return {"gpu_processes": len(set(pids)), "gpu_foreign_processes": len(foreign)}

    def _is_foreign(self, pid: int) -> bool:
        if not Path(f"/proc/{pid}").exists():
            return False
        return not any(tree.owns(pid) for tree in self._trees())

    def _pss(self) -> float | None:
        began = time.monotonic()
        pids = {pid for tree in self._trees() for pid in tree.pids()}
        value = proc.pss(pids)
        self._pss_due = began + max(PSS_EVERY, (time.monotonic() - began) / PSS_SHARE)
        return value


def _for_columns(start: str, reason: str) -> dict[str, str]:
    return {name: reason for name in COLUMNS if name.startswith(start)}


class TelemetryFile:
    """telemetry.csv as it grows; baseline rows wait until the launch gives them their time."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(COLUMNS)
        self._file.flush()
        self._waiting: list[tuple[float, Mapping[str, Any]]] = []
        self._launched: float | None = None
        self._filled: set[str] = set()

    def launched(self, at: float) -> None:
        """Everything before `at` was baseline."""
        self._launched = at
        for moment, row in self._waiting:
            self._write(moment, row)
        self._waiting = []

    def add(self, moment: float, row: Mapping[str, Any]) -> None:
        """One sample. Until the launch only the latest few are kept."""
        if self._launched is None:
            self._waiting = [*self._waiting[-9:], (moment, row)]
        else:
            self._write(moment, row)

    def _write(self, moment: float, row: Mapping[str, Any]) -> None:
        assert self._launched is not None
        values = {**row, "elapsed_seconds": moment - self._launched}
        self._writer.writerow([_cell(values.get(name)) for name in COLUMNS])
        self._filled |= {name for name, value in values.items() if value is not None}
        self._file.flush()

    def close(self, reasons: Mapping[str, str]) -> None:
        """Say why columns are empty throughout."""
        for name in COLUMNS:
            if name not in self._filled and name in reasons:
                self._file.write(f"# {name}: {' '.join(reasons[name].split())}\n")
        self._file.close()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Sample until standard input is closed; one last sample then."""
    settings = json.loads(sys.argv[1])
    table = TelemetryFile(Path(settings.pop("path")))
    interval = float(settings.pop("interval"))
    sampler = Sampler(**settings)

    def sample() -> float:
        now = time.monotonic()
        table.add(now, sampler.row(now))
        return now

    due = sample()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        due = max(due + interval, time.monotonic())
        line = _line_within(due)
        if line == "":
            break
        if line is not None:
            pid, launched = line.split()
            sampler.attach(int(pid), time.monotonic())
            table.launched(float(launched))
            due -= interval
        else:
            sample()
    sample()
    table.close(sampler.reasons)


def _line_within(due: float) -> str | None:
    """The next line of standard input, empty where it is closed; None where none comes until `due`."""
    ready, _, _ = select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))
    return sys.stdin.readline() if ready else None


if __name__ == "__main__":
    main()

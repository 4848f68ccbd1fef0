"""Memory as the kernel tells it: the machine's, a control group's, and a set of processes'."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from sparkpub.record.metrics import GIB

PROC = Path("/proc")
_KIB = 1024 / GIB
_OF_A_GROUP = {
    # Files of version 2 and 1, or lines of memory.stat; those of version 1 with what lies below.
    "cgroup_current_gib": ("memory.current", "memory.usage_in_bytes"),
    "cgroup_peak_gib": ("memory.peak", "memory.max_usage_in_bytes"),
    "cgroup_anon_gib": ("anon", "total_rss"),
    "cgroup_file_gib": ("file", "total_cache"),
    "cgroup_shmem_gib": ("shmem", "total_shmem"),
    "cgroup_kernel_gib": ("kernel", "memory.kmem.usage_in_bytes"),
}


def meminfo() -> dict[str, float]:
    """/proc/meminfo in GiB, by the kernel's names."""
    lines = (line.split() for line in (PROC / "meminfo").read_text().splitlines())
    return {
        words[0].rstrip(":"): int(words[1]) * _KIB
        for words in lines
        if words[2:] == ["kB"]
    }


def machine_columns() -> dict[str, float]:
    """The machine's memory as telemetry columns, in GiB."""
    values = meminfo()
    return {
        "mem_free_gib": values["MemFree"],
        "mem_available_gib": values["MemAvailable"],
        "mem_cached_gib": values["Cached"],
        "mem_shmem_gib": values["Shmem"],
        "swap_used_gib": values["SwapTotal"] - values["SwapFree"],
    }


def pressure_columns() -> dict[str, float]:
    """Share of the last 10 s in which some task stalled, in percent, per resource; empty without PSI."""
    columns = {}
    for resource in ("cpu", "memory", "io"):
        with suppress(OSError):
            line = (PROC / "pressure" / resource).read_text()
            columns[f"pressure_{resource}_some_percent"] = float(
                line.partition("avg10=")[2].partition(" ")[0]
            )
    return columns


def cgroup_columns(folder: Path) -> dict[str, float]:
    """A control group's memory as telemetry columns, in GiB, from either version's files."""
    stat: dict[str, int] = {}
    with suppress(OSError):
        lines = (folder / "memory.stat").read_text().splitlines()
        parts = (line.partition(" ") for line in lines)
        stat = {name: int(value) for name, _, value in parts}
    columns = {}
    for column, names in _OF_A_GROUP.items():
        said = (
            stat[name] if name in stat else _number(folder / name) for name in names
        )
        value = next((number for number in said if number is not None), None)
        if value is not None:
            columns[column] = value / GIB
    return columns


def pss(pids: Iterable[int]) -> float | None:
    """Proportional set size of processes together, in GiB; None where none can be read."""
    sizes = []
    for pid in pids:
        with suppress(OSError):
            text = (PROC / str(pid) / "smaps_rollup").read_text()
            size = text.partition("\nPss:")[2].split(None, 1)
            sizes.append(int(size[0]) if size else 0)
    return sum(sizes) * _KIB if sizes else None


class CpuLoad:
    """Load of all processors together between two looks."""

    def __init__(self) -> None:
        self._busy, self._total = _cpu_times()

    def percent(self) -> float | None:
        """Since the last look; None where no processor time passed."""
        busy, total = _cpu_times()
        before, self._busy, self._total = (self._busy, self._total), busy, total
        if total <= before[1]:
            return None
        return 100.0 * (busy - before[0]) / (total - before[1])


def _cpu_times() -> tuple[int, int]:
    """(busy, total) clock ticks since boot."""
    with (PROC / "stat").open() as handle:
        fields = [int(field) for field in handle.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None

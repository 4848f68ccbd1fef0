"""What this machine can measure, what is missing, and what to do about it: everything a night would find out."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sparkpub.collect import endpoints, lock, watch
from sparkpub.collect.books import known_records
from sparkpub.collect.choice import Choice
from sparkpub.collect.environments.chroot import may_mount
from sparkpub.collect.environments.docker import described
from sparkpub.collect.git import Repository
from sparkpub.collect.machine import (
    cgroup,
    controls,
    inventory,
    nvml,
    proc,
    processes,
)
from sparkpub.collect.obstacles import obstacles, unprepared
from sparkpub.collect.session import collect
from sparkpub.plan.matrix import Gates, Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError
from sparkpub.record.metrics import GIB
from sparkpub.record.repository import GitError
from sparkpub.record.text import other_processes

Readiness = Literal["ok", "warning", "missing"]
TOOLS = {
    "trtllm-bench": "trtllm-bench",
    "vllm": "vllm-bench",
    "llama-bench": "llama-bench",
    "llama-benchy": "llama-benchy",
}
"""Program on PATH to the workload that needs it."""


@dataclass(frozen=True)
class Diagnosis:
    """One thing looked at. `missing` stands in the way of the matrix; `warning` only narrows what is measured."""

    name: str
    state: Readiness
    detail: str
    remedy: str = ""

    @property
    def line(self) -> str:
        """For people."""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.state:8}{self.name}: {self.detail}{remedy}"


def examine(
    matrix: Matrix | None, data: Path, *, smoke: bool = False
) -> list[Diagnosis]:
    """Everything about the machine, and with a matrix about its cells; `smoke` runs each of them once."""
    found = [*measuring(matrix, data), *_git(data)]
    if matrix is not None:
        done = len(known_records(data / matrix.campaign))
        planned = len(plan(matrix))
        detail = f"{planned} runs planned, {done} recorded"
        found.append(Diagnosis("matrix", "ok", detail))
        if smoke and not any(item.state == "missing" for item in found):
            found += _smoke(matrix)
    return found


def measuring(matrix: Matrix | None, data: Path) -> list[Diagnosis]:
    """What can be measured here, and with a matrix which of its environments and workloads."""
    found = [*_gpu(), *_machine(data), *_engines(), *_rights()]
    if matrix is not None:
        found += _matrix(matrix)
    return found


def document(found: Sequence[Diagnosis]) -> dict[str, Any]:
    """`{"checks": [{name, state, detail, remedy}]}`."""
    return {"checks": [asdict(item) for item in found]}


def lines(found: Sequence[Diagnosis], matrix: Matrix | None = None) -> list[str]:
    """The same for people: what stands in the way first, then what the matrix needs. What it does not need is left
    out; without a matrix, engines that are not here are one line."""
    shown = [item for item in found if item.name not in _OPTIONAL]
    optional = [item for item in found if item.name in _OPTIONAL]
    absent = []
    for item in optional:
        if matrix is None and item.name in TOOLS and item.state != "ok":
            absent.append(item.name)
        elif matrix is None or item.name in needed_by(matrix):
            shown.append(item)
    if matrix is not None:
        shown.sort(key=lambda item: (item.state != "missing", not _of_matrix(item)))
    said = [item.line for item in shown]
    if absent:
        said.append(f"{'':8}engines that are not on PATH: {', '.join(absent)}")
    return said


_OPTIONAL = frozenset(
    {
        *TOOLS,
        "torch",
        "docker",
        "chroot",
        "nspawn",
        "page cache",
        "clocks",
        "power mode",
    }
)
"""Things that some matrices need."""


def needed_by(matrix: Matrix) -> frozenset[str]:
    """Those of the optional things that a matrix asks for."""
    kinds = {options.type for options in matrix.workloads.values()}
    needed: set[str] = {options.type for options in matrix.environments.values()}
    if "host" in needed:
        needed |= {tool for tool, workload in TOOLS.items() if workload in kinds}
    if any(getattr(item, "device", "") == "cuda" for item in matrix.workloads.values()):
        needed.add("torch")
    if matrix.gates.drop_caches:
        needed.add("page cache")
    if matrix.gates.lock_clocks_mhz is not None:
        needed.add("clocks")
    if matrix.gates.power_mode is not None:
        needed.add("power mode")
    return frozenset(needed)


def _of_matrix(item: Diagnosis) -> bool:
    """Whether a diagnosis is about the matrix and not about the machine."""
    about = ("matrix", "environment", "workload", "server", "smoke")
    return item.name.startswith(about)


def _gpu() -> Iterator[Diagnosis]:
    with nvml.opened() as (gpus, why):
        if gpus is None:
            yield Diagnosis(
                "gpu",
                "warning",
                why,
                "install the NVIDIA driver, or measure on the CPU only",
            )
            return
        facts = inventory.facts(gpus)
        for card in facts.gpus:
            size = "unified memory"
            if card.memory_total_gib is not None:
                size = f"{card.memory_total_gib:.1f} GiB"
            yield Diagnosis(
                "gpu",
                "ok",
                f"{card.name}, {size}, driver {facts.driver}, CUDA up to {facts.cuda_driver}",
            )
        read = sorted(
            name for name, value in gpus.columns().items() if value is not None
        )
        yield Diagnosis("nvml", "ok", f"readable: {', '.join(read)}")
        if others := gpus.processes():
            yield Diagnosis(
                "gpu use",
                "warning",
                f"in use by {other_processes(len(others))}",
                "stop them",
            )
        for name, reason in sorted(gpus.reasons.items()):
            detail = f"{name} is not readable: {reason}"
            yield Diagnosis(
                "nvml", "warning", detail, "it is null in records, with this reason"
            )


def _machine(data: Path) -> Iterator[Diagnosis]:
    values = proc.meminfo()
    yield Diagnosis(
        "memory",
        "ok",
        f"{values['MemAvailable']:.1f} of {values['MemTotal']:.1f} GiB available",
    )
    place = next(
        path for path in (data.resolve(), *data.resolve().parents) if path.exists()
    )
    free = shutil.disk_usage(place).free / GIB
    detail = f"{free:.1f} GiB free"
    if free >= 5:
        yield Diagnosis("disk", "ok", detail)
    else:
        yield Diagnosis("disk", "warning", detail, "make room")
    if not os.access(place, os.W_OK):
        yield Diagnosis(
            "disk",
            "missing",
            f"{data} cannot be written",
            "choose another --data, or correct its rights",
        )
    yield _control_group()
    if (holder := lock.holder()) is not None:
        detail = f"process {holder.get('pid')} collects campaign {holder.get('campaign')} now"
        yield Diagnosis(
            "collector",
            "warning",
            detail,
            "wait for it: two at once would measure each other",
        )


def _control_group() -> Diagnosis:
    owner, version = processes.notes(), f"cgroup {cgroup.version()}"
    group, where = cgroup.create(owner, f"doctor-{os.getpid()}")
    if group is not None:
        cgroup.remove(group)
    cgroup.leave(owner)
    if group is not None:
        detail = (
            f"{version}; each run on the host is charged to a group of its own, {where}"
        )
        return Diagnosis("cgroup", "ok", detail)
    detail = f"{version}; runs on the host get no group of their own ({where})"
    remedy = "run as root, or in a group of its own: systemd-run --scope -p Delegate=yes sparkpub ..."
    return Diagnosis("cgroup", "warning", detail, remedy)


def _engines() -> Iterator[Diagnosis]:
    for tool, workload in TOOLS.items():
        if shutil.which(tool) is not None:
            yield Diagnosis(tool, "ok", "on PATH")
        else:
            detail = f"not on PATH: {workload} cannot run on the host"
            yield Diagnosis(tool, "warning", detail)
    if importlib.util.find_spec("torch") is not None:
        yield Diagnosis("torch", "ok", "installed beside sparkpub")
    else:
        detail = "not installed beside sparkpub: matmul on a GPU needs it"
        yield Diagnosis("torch", "warning", detail)
    try:
        yield Diagnosis("docker", "ok", described())
    except CollectError as error:
        yield Diagnosis("docker", "warning", error.what, error.remedy)


def _rights() -> Iterator[Diagnosis]:
    root = "run as root: sudo sparkpub …"
    rights: Mapping[str, tuple[bool, str]] = {
        "chroot": (may_mount(), "mounting and chroot are not permitted"),
        "page cache": (
            os.access(controls.DROP, os.W_OK),
            "the page cache cannot be dropped between runs",
        ),
        "clocks": (os.geteuid() == 0, "GPU clocks cannot be locked"),
        "kernel log": (
            os.access(watch.KMSG, os.R_OK),
            "driver messages (Xid) cannot be seen",
        ),
    }
    for name, (permitted, otherwise) in rights.items():
        if permitted:
            yield Diagnosis(name, "ok", "permitted")
        else:
            yield Diagnosis(name, "warning", otherwise, root)
    mode = controls.power_mode()
    yield Diagnosis(
        "power mode", "ok", mode or "power modes are not supported on this machine"
    )


def _git(data: Path) -> Iterator[Diagnosis]:
    try:
        upstream = Repository.of(data).upstream()
    except GitError as error:
        yield Diagnosis(
            "git",
            "warning",
            f"runs will not be committed: {error}",
            "collect with --no-commit, or git init",
        )
        return
    target = f"--push goes to {upstream}" if upstream else "no upstream for --push"
    yield Diagnosis("git", "ok", f"runs are committed; {target}")


def _matrix(matrix: Matrix) -> Iterator[Diagnosis]:
    runs = plan(matrix)
    standing = obstacles(matrix, runs)
    for name, item in standing:
        yield Diagnosis(f"environment {name}", "missing", item.what, item.remedy)
    for name in dict.fromkeys(run.environment for run in runs):
        if name not in {place for place, _ in standing}:
            yield Diagnosis(f"environment {name}", "ok", "ready")
    for line in unprepared(matrix, runs):
        yield Diagnosis("workload", "missing", line)
    for line in endpoints.absent(matrix, runs):
        yield Diagnosis("server or client", "missing", line)


def _smoke(matrix: Matrix) -> Iterator[Diagnosis]:
    """One iteration of each cell, without gates, into a folder that is thrown away."""
    gates = Gates(
        cooldown=0,
        max_start_temp_celsius=None,
        max_gpu_temp_celsius=None,
        max_cpu_percent=None,
        min_free_memory_percent=None,
        min_free_disk_gib=None,
        exclusive_gpu=False,
        max_wait=0,
    )
    workloads = {
        name: type(options).model_validate(matrix.declared_workload(name))
        for name, options in matrix.workloads.items()
    }
    changes = {
        "workloads": workloads,
        "iterations": 1,
        "retries": 0,
        "gates": gates,
        "repeat_outliers": None,
    }
    once = matrix.model_copy(update=changes)
    with tempfile.TemporaryDirectory(prefix="sparkpub-smoke-") as folder:
        collect(once, Choice(Path(folder), commit=False), say=lambda _: None)
        for record in known_records(Path(folder) / matrix.campaign):
            name, took = (
                f"smoke {'/'.join(record.cell)}",
                f"{record.duration_seconds or 0:.1f} s",
            )
            if record.status == "ok":
                yield Diagnosis(name, "ok", f"ok in {took}")
            else:
                yield Diagnosis(
                    name,
                    "missing",
                    f"{record.status} after {took}: {record.status_reason}",
                )

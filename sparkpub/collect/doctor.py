"""What this machine can measure, what is missing, and what to do about it: everything a night would find out."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sparkpub.collect import endpoints, lock, watch
from sparkpub.collect.books import known_records
from sparkpub.collect.choice import Choice
from sparkpub.collect.environments.chroot import may_mount
from sparkpub.collect.environments.docker import described
from sparkpub.collect.gates import NONE
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


def _told(
    name: str, holds: bool, detail: str, otherwise: str, remedy: str = ""
) -> Diagnosis:
    """That something is as it should be, or what follows where it is not."""
    if holds:
        return Diagnosis(name, "ok", detail)
    return Diagnosis(name, "warning", otherwise, remedy)


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
    (
        *TOOLS,
        "torch",
        "docker",
        "chroot",
        "nspawn",
        "page cache",
        "clocks",
        "power mode",
    )
)
"""Things that some matrices need."""


def needed_by(matrix: Matrix) -> frozenset[str]:
    """Those of the optional things that a matrix asks for."""
    workloads, gates = matrix.workloads.values(), matrix.gates
    kinds = {options.type for options in workloads}
    places = {str(options.type) for options in matrix.environments.values()}
    tools = {tool for tool, workload in TOOLS.items() if workload in kinds}
    needs = {
        "torch": any(getattr(item, "device", "") == "cuda" for item in workloads),
        "page cache": gates.drop_caches,
        "clocks": gates.lock_clocks_mhz is not None,
        "power mode": gates.power_mode is not None,
    }
    asked = {name for name, needed in needs.items() if needed}
    return frozenset(places | asked | (tools if "host" in places else set()))


def _of_matrix(item: Diagnosis) -> bool:
    """Whether a diagnosis is about the matrix and not about the machine."""
    about = ("matrix", "environment", "workload", "server", "smoke")
    return item.name.startswith(about)


def _gpu() -> Iterator[Diagnosis]:
    with nvml.opened() as (gpus, why):
        if gpus is None:
            remedy = "install the NVIDIA driver, or measure on the CPU only"
            yield Diagnosis("gpu", "warning", why, remedy)
            return
        facts = inventory.facts(gpus)
        for card in facts.gpus:
            size = "unified memory"
            if card.memory_total_gib is not None:
                size = f"{card.memory_total_gib:.1f} GiB"
            software = f"driver {facts.driver}, CUDA up to {facts.cuda_driver}"
            yield Diagnosis("gpu", "ok", f"{card.name}, {size}, {software}")
        read = [name for name, value in gpus.columns().items() if value is not None]
        yield Diagnosis("nvml", "ok", f"readable: {', '.join(sorted(read))}")
        if others := gpus.processes():
            detail = f"in use by {other_processes(len(others))}"
            yield Diagnosis("gpu use", "warning", detail, "stop them")
        for name, reason in sorted(gpus.reasons.items()):
            detail = f"{name} is not readable: {reason}"
            remedy = "it is null in records, with this reason"
            yield Diagnosis("nvml", "warning", detail, remedy)


def _machine(data: Path) -> Iterator[Diagnosis]:
    values = proc.meminfo()
    detail = f"{values['MemAvailable']:.1f} of {values['MemTotal']:.1f} GiB available"
    yield Diagnosis("memory", "ok", detail)
    whole = data.resolve()
    place = next(path for path in (whole, *whole.parents) if path.exists())
    free = shutil.disk_usage(place).free / GIB
    detail = f"{free:.1f} GiB free"
    yield _told("disk", free >= 5, detail, detail, "make room")
    if not os.access(place, os.W_OK):
        detail = f"{data} cannot be written"
        remedy = "choose another --data, or correct its rights"
        yield Diagnosis("disk", "missing", detail, remedy)
    yield _control_group()
    if (holder := lock.holder()) is not None:
        detail = f"process {holder.get('pid')} collects campaign {holder.get('campaign')} now"
        remedy = "wait for it: two at once would measure each other"
        yield Diagnosis("collector", "warning", detail, remedy)


def _control_group() -> Diagnosis:
    owner, version = processes.notes(), f"cgroup {cgroup.version()}"
    group, where = cgroup.create(owner, f"doctor-{os.getpid()}")
    if group is not None:
        cgroup.remove(group)
    cgroup.leave(owner)
    return _told(
        "cgroup",
        group is not None,
        f"{version}; each run on the host is charged to a group of its own, {where}",
        f"{version}; runs on the host get no group of their own ({where})",
        "run as root, or in a group of its own: systemd-run --scope -p Delegate=yes sparkpub ...",
    )


def _engines() -> Iterator[Diagnosis]:
    for tool, workload in TOOLS.items():
        there = shutil.which(tool) is not None
        absent = f"not on PATH: {workload} cannot run on the host"
        yield _told(tool, there, "on PATH", absent)
    there = importlib.util.find_spec("torch") is not None
    absent = "not installed beside sparkpub: matmul on a GPU needs it"
    yield _told("torch", there, "installed beside sparkpub", absent)
    try:
        yield Diagnosis("docker", "ok", described())
    except CollectError as error:
        yield Diagnosis("docker", "warning", error.what, error.remedy)


def _rights() -> Iterator[Diagnosis]:
    drops, reads = os.access(controls.DROP, os.W_OK), os.access(watch.KMSG, os.R_OK)
    for name, permitted, otherwise in (
        ("chroot", may_mount(), "mounting and chroot are not permitted"),
        ("page cache", drops, "the page cache cannot be dropped between runs"),
        ("clocks", os.geteuid() == 0, "GPU clocks cannot be locked"),
        ("kernel log", reads, "driver messages (Xid) cannot be seen"),
    ):
        remedy = "run as root: sudo sparkpub …"
        yield _told(name, permitted, "permitted", otherwise, remedy)
    mode = controls.power_mode()
    detail = mode or "power modes are not supported on this machine"
    yield Diagnosis("power mode", "ok", detail)


def _git(data: Path) -> Iterator[Diagnosis]:
    try:
        upstream = Repository.of(data).upstream()
    except GitError as error:
        detail = f"runs will not be committed: {error}"
        remedy = "collect with --no-commit, or git init"
        yield Diagnosis("git", "warning", detail, remedy)
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
    workloads = {
        name: type(options).model_validate(matrix.declared_workload(name))
        for name, options in matrix.workloads.items()
    }
    changes = {
        "workloads": workloads,
        "iterations": 1,
        "retries": 0,
        "gates": Gates(**NONE, min_free_disk_gib=None, max_wait=0),
        "repeat_outliers": None,
    }
    once = matrix.model_copy(update=changes)
    with tempfile.TemporaryDirectory(prefix="sparkpub-smoke-") as folder:
        collect(once, Choice(Path(folder), commit=False), say=lambda _: None)
        for record in known_records(Path(folder) / matrix.campaign):
            name = f"smoke {'/'.join(record.cell)}"
            took = f"{record.duration_seconds or 0:.1f} s"
            detail = f"{record.status} after {took}: {record.status_reason}"
            if record.status == "ok":
                yield Diagnosis(name, "ok", f"ok in {took}")
            else:
                yield Diagnosis(name, "missing", detail)

"""What this machine can measure, what is missing, and what to do about it: everything a night would find out."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sparkpub.collect import state, watch
from sparkpub.collect.books import known_records
from sparkpub.collect.choice import Choice
from sparkpub.collect.environments.chroot import may_mount
from sparkpub.collect.environments.docker import described
from sparkpub.collect.gates import NONE
from sparkpub.collect.git import Repository
from sparkpub.collect.machine import cgroup, controls, inventory, nvml, proc, processes
from sparkpub.collect.obstacles import in_the_way
from sparkpub.collect.session import collect
from sparkpub.plan.matrix import Gates, Matrix
from sparkpub.plan.plan import plan
from sparkpub.record.errors import CollectError
from sparkpub.record.metrics import GIB
from sparkpub.record.repository import GitError
from sparkpub.record.text import other_processes

Readiness = Literal["ok", "warning", "missing"]
TOOLS = ("trtllm-bench", "vllm", "llama-bench", "llama-benchy")
"""Programs that workloads run on the host."""
_AS_ROOT = "run as root: sudo sparkpub …"


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


def _either(good: bool, name: str, detail: str, remedy: str) -> Diagnosis:
    """A diagnosis with a remedy only where it is not good."""
    state: Readiness = "ok" if good else "warning"
    return Diagnosis(name, state, detail, "" if good else remedy)


def examine(
    matrix: Matrix | None, data: Path, *, smoke: bool = False
) -> list[Diagnosis]:
    """Everything about the machine, and with a matrix about its cells; `smoke` runs each of them once."""
    found = [*_gpu(), *_machine(data), *_permitted()]
    if matrix is None:
        return [*found, _engines(), _git(data)]
    runs = plan(matrix)
    for line in in_the_way(matrix, runs):
        found.append(Diagnosis("matrix", "missing", line))
    done = len(known_records(data / matrix.campaign))
    detail = f"{len(runs)} runs planned, {done} recorded"
    found += [_git(data), Diagnosis("runs", "ok", detail)]
    if smoke and not any(item.state == "missing" for item in found):
        found += _smoke(matrix)
    return found


def _engines() -> Diagnosis:
    there = [tool for tool in TOOLS if shutil.which(tool)]
    absent = [tool for tool in TOOLS if tool not in there]
    detail = f"{', '.join(there) or 'none'}; not here: {', '.join(absent) or 'none'}"
    return Diagnosis("engines", "ok", detail)


def document(found: Sequence[Diagnosis]) -> dict[str, Any]:
    """`{"checks": [{name, state, detail, remedy}]}`."""
    return {"checks": [asdict(item) for item in found]}


def lines(found: Sequence[Diagnosis]) -> list[str]:
    """The same for people: what stands in the way first."""
    return [item.line for item in sorted(found, key=lambda it: it.state != "missing")]


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
    yield _either(free >= 5, "disk", f"{free:.1f} GiB free", "make room")
    if not os.access(place, os.W_OK):
        remedy = "choose another --data, or correct its permissions"
        yield Diagnosis("disk", "missing", f"{data} cannot be written", remedy)
    owner = processes.notes()
    group, where = cgroup.create(owner, f"doctor-{os.getpid()}")
    if group is not None:
        cgroup.remove(group)
    cgroup.leave(owner)
    yield _either(
        group is not None,
        "cgroup",
        f"cgroup {cgroup.version()}; control group of a run on the host: {where}",
        "run as root, or in a group of its own: systemd-run --scope -p Delegate=yes sparkpub ...",
    )
    if (now := state.current()) is not None:
        detail = f"process {now['pid']} collects campaign {now['campaign']} now"
        remedy = "wait for it: two at once would measure each other"
        yield Diagnosis("collector", "warning", detail, remedy)


def _permitted() -> Iterator[Diagnosis]:
    """The engine of containers, and what a matrix may ask for that needs rights."""
    try:
        yield Diagnosis("docker", "ok", described())
    except CollectError as error:
        yield Diagnosis("docker", "warning", error.what, error.remedy)
    for name, permitted, what in (
        ("chroot", may_mount(), "mounts and chroot"),
        ("page cache", os.access(controls.DROP, os.W_OK), "dropping the page cache"),
        ("clocks", os.geteuid() == 0, "locking GPU clocks"),
        ("kernel log", os.access(watch.KMSG, os.R_OK), "driver messages (Xid)"),
    ):
        said = "permitted" if permitted else "not permitted"
        yield _either(permitted, name, f"{what}: {said}", _AS_ROOT)
    mode = controls.power_mode() or "power modes are not supported on this machine"
    yield Diagnosis("power mode", "ok", mode)


def _git(data: Path) -> Diagnosis:
    try:
        upstream = Repository.of(data).upstream()
    except GitError as error:
        detail = f"runs will not be committed: {error}"
        remedy = "collect with --no-commit, or git init"
        return Diagnosis("git", "warning", detail, remedy)
    target = f"--push goes to {upstream}" if upstream else "no upstream for --push"
    return Diagnosis("git", "ok", f"runs are committed; {target}")


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
            detail = f"{record.status} after {record.duration_seconds or 0:.1f} s"
            if record.status != "ok":
                detail += f": {record.status_reason}"
            is_good: Readiness = "ok" if record.status == "ok" else "missing"
            yield Diagnosis(f"smoke {'/'.join(record.cell)}", is_good, detail)

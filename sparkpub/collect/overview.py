"""What `plan` and `status` say: the order, the estimate, the coverage, and what runs now. Starts nothing."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from sparkpub.collect import state
from sparkpub.collect.books import TO_DO, known_records
from sparkpub.collect.declaring import refuse_another_campaign
from sparkpub.collect.job import Job
from sparkpub.collect.obstacles import absent
from sparkpub.collect.progress import duration
from sparkpub.plan import coverage
from sparkpub.plan.environments import DockerOptions
from sparkpub.plan.matrix import Gates, Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.record import store
from sparkpub.record.errors import WorkloadError
from sparkpub.record.record import Record
from sparkpub.record.text import counted

_LACKING = ("failed", "quarantined", "missing")
_SAID = {"missing": "to do", "retry": "to do again"}
"""What people are told of a state, where its name in JSON says less."""


def _known(matrix: Matrix, data: Path) -> tuple[list[Record], list[str]]:
    """The records of a campaign, and the ids of those that are quarantined."""
    folder, out = data / matrix.campaign, []
    if (folder / store.CAMPAIGN_FILE).is_file():
        out = [item.run for item in store.read_campaign(folder).quarantined]
    return known_records(folder), out


def plan_document(matrix: Matrix, data: Path) -> dict[str, Any]:
    """`{"runs": [{position, model, environment, workload, iteration, state}], "estimate_seconds": N | null,
    "pauses_seconds": N, "absent": [line], "recipes": [...]}`; the estimate has the pauses in it, `absent` are servers
    and clients for which `collect` would stop at once, and `recipes` says what those of the matrix become."""
    records, out = _known(matrix, data)
    refuse_another_campaign(matrix, records, data / matrix.campaign)
    states = coverage.states(matrix, records, out)
    left = [run for run, found in states.items() if found in TO_DO]
    runs = []
    for run, found in states.items():
        given = {name: item for name, item in asdict(run).items() if item is not None}
        runs.append(given | {"state": found})
    return {
        "runs": runs,
        "estimate_seconds": estimate(matrix, records, left),
        "pauses_seconds": round(pauses(matrix, records, len(left)), 1),
        "absent": absent(matrix, left),
        "recipes": list(_recipes(matrix)),
    }


def _recipes(matrix: Matrix) -> Iterator[dict[str, Any]]:
    """What the recipes of a matrix become: `{environment, recipe, image, argv, left_out}`."""
    for run in {run.environment: run for run in plan(matrix)}.values():
        options = matrix.environments[run.environment]
        if not isinstance(options, DockerOptions) or options.recipe is None:
            continue
        argv: Sequence[str] = () if options.server is None else options.server.argv
        with suppress(WorkloadError):  # `collect` and `doctor` say it
            server = Job(matrix, run).server
            argv = argv if server is None else server.argv
        yield {
            "environment": run.environment,
            "recipe": options.recipe.file,
            "image": options.image,
            "argv": list(argv),
            "left_out": list(options.recipe.left_out),
        }


def estimate(
    matrix: Matrix, records: Sequence[Record], left: Sequence[PlannedRun]
) -> float | None:
    """Seconds for the runs left, from earlier runs of the same cell, or of the same workload elsewhere, with the pauses
    between them; None where a workload has no earlier run."""
    took: dict[Any, list[float]] = defaultdict(list)
    for record in records:
        if record.status == "ok" and record.duration_seconds:
            for key in (record.cell, record.workload):
                took[key].append(record.duration_seconds)
    total = pauses(matrix, records, len(left))
    for run in left:
        known = took[run.cell] or took[run.workload]
        if not known:
            return None
        total += fmean(known)
    return round(total, 1)


def pauses(matrix: Matrix, records: Sequence[Record], left: int) -> float:
    """Seconds between the runs left: what gates took so far, and at least the cooldown, which a first run has not."""
    gates = [record.gates for record in records if record.gates]
    waits = [sum(gate.waited_seconds for gate in passed) for passed in gates]
    between = max(matrix.gates.cooldown, fmean(waits) if waits else 0.0)
    first = 0 if records else 1
    return between * max(0, left - first)


def plan_lines(matrix: Matrix, data: Path) -> list[str]:
    """The same for people: what holds for every run, then one line per run."""
    document = plan_document(matrix, data)
    runs = document["runs"]
    lines = [
        f"{matrix.campaign}: {matrix.title}",
        f"order {matrix.order}, timeout {duration(matrix.timeout)}, {counted(matrix.retries, 'retry', 'retries')}",
        f"gates: {_conditions(matrix.gates)}",
    ]
    for item in document["recipes"]:
        lines.append(f"{item['environment']}, of {item['recipe']}: {item['image']}")
        lines.append(f"  {shlex.join(item['argv'])}")
        if item["left_out"]:
            lines.append(f"  not done: {'; '.join(item['left_out'])}")
    for run in runs:
        cell = f"{run['model']}/{run['environment']}/{run['workload']}"
        machine = f"  machine {run['machine']}" if "machine" in run else ""
        found = _SAID.get(run["state"], run["state"])
        lines.append(
            f"{run['position'] + 1:5d}  {cell}  iteration {run['iteration']}{machine}  {found}"
        )
    left = sum(run["state"] in TO_DO for run in runs)
    seconds, between = document["estimate_seconds"], document["pauses_seconds"]
    if seconds is None:
        estimated = f"Pauses: {duration(between)}. Run time not known yet."
    else:
        estimated = f"About {duration(seconds)}."
    lines.append(f"{counted(len(runs), 'run')}, {left} to do. {estimated}")
    lines += [f"missing: {line}" for line in document["absent"]]
    return lines


def _conditions(gates: Gates) -> str:
    """What the matrix asks for before and during a run, by its own keys."""
    said = []
    for name, wanted in gates.model_dump().items():
        if name in ("cooldown", "max_wait"):
            said.append(f"{name} {duration(wanted)}")
        elif isinstance(wanted, float):
            said.append(f"{name} {wanted:g}")
        elif wanted:
            said.append(name if wanted is True else f"{name} {wanted}")
    return ", ".join(said)


def _covered(count: Mapping[str, int]) -> str:
    """`3 of 5 done, 1 failed, 1 to do`: what there is none of is not said."""
    said = [f"{count['done']} of {count['planned']} done"]
    for name in _LACKING:
        if count[name]:
            said.append(f"{count[name]} {_SAID.get(name, name)}")
    return ", ".join(said)


def status_document(matrix: Matrix, data: Path) -> dict[str, Any]:
    """`{"cells": [{model, environment, workload, planned, done, failed, quarantined, missing}], "now": …}`; `now` is
    what a collector on this machine does, or null. Where each machine repeats the campaign, also
    `"machines": [{machine, planned, done, failed, quarantined, missing}]`, and while machines of a cluster measure
    `"leases": [{machine, run, state}]`, where `failed` is one whose machine is gone."""
    known = _known(matrix, data)
    axes = ("model", "environment", "workload")
    document: dict[str, Any] = {
        "cells": [
            dict(zip(axes, cell, strict=True)) | asdict(found)
            for cell, found in coverage.by_cell(matrix, *known).items()
        ]
    }
    if matrix.machines == "replicate":
        document["machines"] = [
            {"machine": machine} | asdict(found)
            for machine, found in coverage.by_machine(matrix, *known).items()
        ]
    if leases := state.read(state.leases_of(matrix.campaign)):
        document["leases"] = leases
    now = state.current()
    ours = now is not None and now["campaign"] == matrix.campaign
    return document | {"now": now if ours else None}


def status_lines(matrix: Matrix, data: Path) -> list[str]:
    """The same for people."""
    document = status_document(matrix, data)
    together: Counter[str] = Counter()
    lines = []
    for cell in document["cells"]:
        name = f"{cell['model']}/{cell['environment']}/{cell['workload']}"
        lines.append(f"{name}: {_covered(cell)}")
        together.update({name: cell[name] for name in ("planned", "done", *_LACKING)})
    for machine in document.get("machines", []):
        lines.append(f"machine {machine['machine']}: {_covered(machine)}")
    for lease in document.get("leases", []):
        machine = lease["machine"][:8]
        lines.append(f"machine {machine}: {lease['run']}: {lease['state']}")
    lines.append(f"together: {_covered(together)}")
    now = document["now"]
    if now is not None:
        doing = f"now: process {now['pid']}"
        if "run" in now:
            doing += f": {now['run']}: {now['phase']} since {now['since']}"
        lines.append(doing)
    return lines

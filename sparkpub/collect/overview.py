"""What `plan` and `status` say: the order, the estimate, the coverage, and what runs now. Starts nothing."""

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from sparkpub.collect import endpoints, state
from sparkpub.collect.books import known_records
from sparkpub.collect.declaring import refuse_another_campaign
from sparkpub.collect.job import Job
from sparkpub.collect.progress import current, duration
from sparkpub.collect.public import public
from sparkpub.plan import coverage
from sparkpub.plan.environments import DockerOptions
from sparkpub.plan.matrix import Gates, Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.record import store
from sparkpub.record.errors import WorkloadError
from sparkpub.record.record import Record
from sparkpub.record.text import counted

SHOWN = 40
"""Runs of a plan that people are shown; --json has all."""
_ORDERS = {
    "interleaved": "the environments take turns",
    "random": "in random order",
    "blocked": "one environment after the other",
}
_TO_DO = {"missing": "to do", "retry": "to do again"}
_CONDITIONS = {
    "max_start_temp_celsius": "GPU below {:g} °C",
    "max_cpu_percent": "processors at most {:g} % busy",
    "min_free_memory_percent": "{:g} % of memory free",
    "exclusive_gpu": "no other program on the GPU",
    "drop_caches": "page cache dropped",
    "lock_clocks_mhz": "GPU clock locked at {:g} MHz",
}
"""What is waited for before a run, as a person says it."""
_OTHERWISE = {"run": "run anyway", "skip": "skip the run", "stop": "stop"}


def _quarantined(folder: Path) -> list[str]:
    if not (folder / store.CAMPAIGN_FILE).is_file():
        return []
    return [item.run for item in store.read_campaign(folder).quarantined]


def plan_document(matrix: Matrix, data: Path) -> dict[str, Any]:
    """`{"runs": [{position, model, environment, workload, iteration, state}], "estimate_seconds": N | null,
    "pauses_seconds": N, "absent": [line], "recipes": [...]}`; the estimate has the pauses in it, `absent` are servers
    and clients for which `collect` would stop at once, and `recipes` says what those of the matrix become."""
    folder = data / matrix.campaign
    records = known_records(folder)
    shown, _ = public(matrix)
    refuse_another_campaign(shown, records, folder)
    states = coverage.states(shown, records, _quarantined(folder))
    left = [run for run, state in states.items() if state in ("missing", "retry")]
    return {
        "runs": [_given(run) | {"state": state} for run, state in states.items()],
        "estimate_seconds": estimate(matrix, records, left),
        "pauses_seconds": round(pauses(matrix, records, len(left)), 1),
        "absent": endpoints.absent(matrix, left),
        "recipes": _recipes(shown),
    }


def _recipes(matrix: Matrix) -> list[dict[str, Any]]:
    """What the recipes of a matrix become: `{environment, recipe, image, argv, left_out}`."""
    found = []
    for run in {run.environment: run for run in plan(matrix)}.values():
        options = matrix.environments[run.environment]
        if not isinstance(options, DockerOptions) or options.recipe is None:
            continue
        argv: Sequence[str] = ()
        if options.server is not None:
            argv = options.server.argv
        with suppress(WorkloadError):  # `collect` and `doctor` say it
            server = Job(matrix, run).server
            argv = argv if server is None else server.argv
        found.append(
            {
                "environment": run.environment,
                "recipe": options.recipe.file,
                "image": options.image,
                "argv": list(argv),
                "left_out": list(options.recipe.left_out),
            }
        )
    return found


def _given(run: PlannedRun) -> dict[str, Any]:
    """A run of the plan as data; it has a machine only where the campaign is repeated on each."""
    return {name: item for name, item in asdict(run).items() if item is not None}


def estimate(
    matrix: Matrix, records: Sequence[Record], left: Sequence[PlannedRun]
) -> float | None:
    """Seconds for the runs left, from earlier runs of the same cell, or of the same workload elsewhere, with the pauses
    between them; None where a workload has no earlier run."""
    of_cell: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    of_workload: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.status == "ok" and record.duration_seconds:
            of_cell[record.cell].append(record.duration_seconds)
            of_workload[record.workload].append(record.duration_seconds)
    total = pauses(matrix, records, len(left))
    for run in left:
        known = of_cell[run.cell] or of_workload[run.workload]
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
    lines = [
        f"{matrix.campaign}: {matrix.title}",
        f"{_ORDERS[matrix.order]}; {duration(matrix.timeout)} at most for a run, "
        f"{counted(matrix.retries, 'more attempt')} for one that fails",
        f"before each run: {_conditions(matrix.gates)}",
    ]
    for item in document["recipes"]:
        lines.append(f"{item['environment']}, of {item['recipe']}: {item['image']}")
        lines.append(f"  {shlex.join(item['argv'])}")
        if item["left_out"]:
            lines.append(f"  not done: {'; '.join(item['left_out'])}")
    for run in document["runs"][:SHOWN]:
        cell = f"{run['model']}/{run['environment']}/{run['workload']}"
        machine = f"  machine {run['machine']}" if "machine" in run else ""
        found = _TO_DO.get(run["state"], run["state"])
        lines.append(
            f"{run['position'] + 1:5d}  {cell}  iteration {run['iteration']}{machine}  {found}"
        )
    more = len(document["runs"]) - SHOWN
    if more > 0:
        lines.append(f"       and {more} more, which --json lists")
    left = sum(1 for run in document["runs"] if run["state"] in ("missing", "retry"))
    lines.append(
        f"{counted(len(document['runs']), 'run')}, {left} to do. {_estimated(document)}"
    )
    lines += [f"missing: {line}" for line in document["absent"]]
    return lines


def _estimated(document: Mapping[str, Any]) -> str:
    seconds, pauses = document["estimate_seconds"], document["pauses_seconds"]
    if seconds is not None:
        return f"About {duration(seconds)}."
    known = f"Pauses: {duration(pauses)}. " if pauses else ""
    return f"{known}Run time not known yet."


def _conditions(gates: Gates) -> str:
    """What is waited for before a run, and what follows where it does not come."""
    said = [f"a pause of {duration(gates.cooldown)}"] if gates.cooldown else []
    for name, words in _CONDITIONS.items():
        wanted = getattr(gates, name)
        if wanted is not None and wanted is not False:
            said.append(words.format(wanted))
    if not said:
        return "nothing is waited for"
    patience = f"after {duration(gates.max_wait)}" if gates.max_wait else "if not"
    return f"{', '.join(said)}; {patience}, {_OTHERWISE[gates.on_unmet]}"


def _covered(count: Mapping[str, int]) -> str:
    """`3 of 5 done, 1 failed, 1 to do`: what there is none of is not said."""
    said = [f"{count['done']} of {count['planned']} done"]
    for name in ("failed", "quarantined", "missing"):
        if count[name]:
            said.append(f"{count[name]} {_TO_DO.get(name, name)}")
    return ", ".join(said)


def status_document(matrix: Matrix, data: Path) -> dict[str, Any]:
    """`{"cells": [{model, environment, workload, planned, done, failed, quarantined, missing}], "now": …}`; `now` is
    what a collector on this machine does, or null. Where each machine repeats the campaign, also
    `"machines": [{machine, planned, done, failed, quarantined, missing}]`, and while machines of a cluster measure
    `"leases": [{machine, run, state}]`, where `failed` is one whose machine is gone."""
    folder = data / matrix.campaign
    shown, _ = public(matrix)
    known = (known_records(folder), _quarantined(folder))
    axes = ("model", "environment", "workload")
    document: dict[str, Any] = {
        "cells": [
            dict(zip(axes, cell, strict=True)) | asdict(found)
            for cell, found in coverage.by_cell(shown, *known).items()
        ]
    }
    if matrix.machines == "replicate":
        document["machines"] = [
            {"machine": machine} | asdict(found)
            for machine, found in coverage.by_machine(shown, *known).items()
        ]
    leases = json.loads(state.read(state.leases_of(matrix.campaign)) or "[]")
    if leases:
        document["leases"] = leases
    now = current()
    ours = now is not None and now.get("campaign") == matrix.campaign
    return document | {"now": now if ours else None}


def is_under_way(matrix: Matrix, data: Path) -> bool:
    """Whether a collector measures the campaign now, or runs are left that one could measure."""
    document = status_document(matrix, data)
    left = any(cell["missing"] for cell in document["cells"])
    return left or document["now"] is not None


def status_lines(matrix: Matrix, data: Path) -> list[str]:
    """The same for people."""
    document = status_document(matrix, data)
    lines = [
        f"{cell['model']}/{cell['environment']}/{cell['workload']}: {_covered(cell)}"
        for cell in document["cells"]
    ]
    for machine in document.get("machines", []):
        lines.append(f"machine {machine['machine']}: {_covered(machine)}")
    for lease in document.get("leases", []):
        machine = lease["machine"][:8]
        lines.append(f"machine {machine}: {lease['run']}: {lease['state']}")
    together: Counter[str] = Counter()
    for cell in document["cells"]:
        for name in ("done", "planned", "failed", "quarantined", "missing"):
            together[name] += cell[name]
    lines.append(f"together: {_covered(together)}")
    now = document["now"]
    if now is not None:
        doing = f"now: process {now.get('pid', 'unknown')}"
        if "run" in now:
            doing += f": {now['run']}: {now.get('phase')} since {now.get('since')}"
        lines.append(doing)
    return lines

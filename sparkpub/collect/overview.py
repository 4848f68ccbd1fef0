"""What `plan` and `status` say: the order, the estimate, the coverage, and what runs now. Starts nothing."""

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from sparkpub.collect import endpoints
from sparkpub.collect.bench import prepare
from sparkpub.collect.books import known_records
from sparkpub.collect.declaring import refuse_another_campaign
from sparkpub.collect.progress import current, duration
from sparkpub.collect.public import public
from sparkpub.plan import coverage
from sparkpub.plan.environments import DockerOptions
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.record import store
from sparkpub.record.record import Record


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
        "runs": [_planned(run) | {"state": state} for run, state in states.items()],
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
        server = prepare(matrix, run).server
        found.append(
            {
                "environment": run.environment,
                "recipe": options.recipe.file,
                "image": options.image,
                "argv": [] if server is None else list(server.argv),
                "left_out": list(options.recipe.left_out),
            }
        )
    return found


def _planned(run: PlannedRun) -> dict[str, Any]:
    """A run of the plan as data; it has a machine only where the campaign is repeated on each."""
    fields = asdict(run)
    if run.machine is None:
        del fields["machine"]
    return fields


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
    waits = [
        sum(gate.waited_seconds for gate in record.gates)
        for record in records
        if record.gates
    ]
    between = matrix.gates.cooldown
    if waits:
        between = max(between, fmean(waits))
    first = 0 if records else 1
    return between * max(0, left - first)


def plan_lines(matrix: Matrix, data: Path) -> list[str]:
    """The same for people: gates first, then one line per run."""
    document = plan_document(matrix, data)
    gates = matrix.gates.model_dump(mode="json", exclude_none=True)
    lines = [
        f"{matrix.campaign}: {matrix.title}",
        f"order {matrix.order}, seed {matrix.seed}, timeout {duration(matrix.timeout)}, retries {matrix.retries}",
        "gates: " + ", ".join(f"{name} {value}" for name, value in gates.items()),
    ]
    for item in document["recipes"]:
        lines.append(f"{item['environment']}, of {item['recipe']}: {item['image']}")
        lines.append(f"  {shlex.join(item['argv'])}")
        if item["left_out"]:
            lines.append(f"  not done: {'; '.join(item['left_out'])}")
    for run in document["runs"]:
        cell = f"{run['model']}/{run['environment']}/{run['workload']}"
        machine = f"  machine {run['machine']}" if "machine" in run else ""
        lines.append(
            f"{run['position']:5d}  {cell}  iteration {run['iteration']}{machine}  {run['state']}"
        )
    left = sum(1 for run in document["runs"] if run["state"] in ("missing", "retry"))
    lines.append(
        f"{len(document['runs'])} runs, {left} to do, estimate {_estimated(document)}"
    )
    lines += [f"missing: {line}" for line in document["absent"]]
    return lines


def _estimated(document: Mapping[str, Any]) -> str:
    seconds = document["estimate_seconds"]
    if seconds is not None:
        return duration(seconds)
    if not document["pauses_seconds"]:
        return "unknown, no earlier run of some workload"
    pause = duration(document["pauses_seconds"])
    return (
        f"{pause} of pauses, and the runs, of which some workload has none yet to go by"
    )


def status_document(matrix: Matrix, data: Path) -> dict[str, Any]:
    """`{"cells": [{model, environment, workload, planned, done, failed, quarantined, missing}], "now": …}`; `now` is
    what a collector on this machine does, or null. Where each machine repeats the campaign, also
    `"machines": [{machine, planned, done, failed, quarantined, missing}]`."""
    folder = data / matrix.campaign
    shown, _ = public(matrix)
    known = (known_records(folder), _quarantined(folder))
    document: dict[str, Any] = {
        "cells": [asdict(cell) for cell in coverage.by_cell(shown, *known)]
    }
    if matrix.machines == "replicate":
        machines = coverage.by_machine(shown, *known)
        document["machines"] = [asdict(machine) for machine in machines]
    now = current()
    ours = now is not None and now.get("campaign") == matrix.campaign
    return document | {"now": now if ours else None}


def status_lines(matrix: Matrix, data: Path) -> list[str]:
    """The same for people."""
    document = status_document(matrix, data)
    lines = [
        f"{cell['model']}/{cell['environment']}/{cell['workload']}: {cell['done']} of {cell['planned']} done, "
        f"{cell['failed']} failed, {cell['quarantined']} quarantined, {cell['missing']} missing"
        for cell in document["cells"]
    ]
    for machine in document.get("machines", []):
        lines.append(
            f"machine {machine['machine']}: {machine['done']} of {machine['planned']} done, "
            f"{machine['failed']} failed, {machine['quarantined']} quarantined, {machine['missing']} missing"
        )
    total = {
        name: sum(cell[name] for cell in document["cells"])
        for name in ("done", "planned", "failed", "missing")
    }
    lines.append(
        f"{total['done']} of {total['planned']} done, {total['failed']} failed, {total['missing']} missing"
    )
    now = document["now"]
    if now is not None:
        doing = f"now: process {now.get('pid', 'unknown')}"
        if "run" in now:
            since = (
                f"{now.get('phase', 'starting')} since {now.get('since', 'just now')}"
            )
            doing += f": {now['run']}: {since}"
        lines.append(doing)
    return lines

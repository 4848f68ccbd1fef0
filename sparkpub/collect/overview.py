"""What `plan` and `status` say: the order, the estimate, the coverage, and what runs now. Starts nothing."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from sparkpub.collect.progress import current, duration
from sparkpub.collect.public import public
from sparkpub.collect.session import known_records
from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun
from sparkpub.record import store
from sparkpub.record.record import Record


def _quarantined(folder: Path) -> list[str]:
    if not (folder / store.CAMPAIGN_FILE).is_file():
        return []
    return [item.run for item in store.read_campaign(folder).quarantined]


def plan_document(matrix: Matrix, data: Path) -> dict[str, Any]:
    """`{"runs": [{position, model, environment, workload, iteration, state}], "estimate_seconds": N | null}`."""
    folder = data / matrix.campaign
    records = known_records(folder)
    states = coverage.states(public(matrix)[0], records, _quarantined(folder))
    left = [run for run, state in states.items() if state in ("missing", "retry")]
    return {
        "runs": [asdict(run) | {"state": state} for run, state in states.items()],
        "estimate_seconds": estimate(matrix, records, left),
    }


def estimate(
    matrix: Matrix, records: Sequence[Record], left: Sequence[PlannedRun]
) -> float | None:
    """Seconds for the runs left, from earlier runs of the same cell, or of the same workload elsewhere; None where
    a workload has none. Between runs counts what gates took so far, and at least the cooldown."""
    took = [
        (item, item.duration_seconds)
        for item in records
        if item.status == "ok" and item.duration_seconds
    ]
    waits = [
        sum(gate.waited_seconds for gate in record.gates)
        for record in records
        if record.gates
    ]
    between = max(matrix.gates.cooldown, fmean(waits) if waits else 0.0)
    total = between * max(0, len(left) - (0 if records else 1))
    for run in left:
        same = [seconds for record, seconds in took if record.cell == run.slot[:3]]
        known = same or [
            seconds for record, seconds in took if record.workload == run.workload
        ]
        if not known:
            return None
        total += fmean(known)
    return round(total, 1)


def plan_lines(matrix: Matrix, data: Path) -> list[str]:
    """The same for people: gates first, then one line per run."""
    document = plan_document(matrix, data)
    gates = matrix.gates.model_dump(mode="json", exclude_none=True)
    lines = [
        f"{matrix.campaign}: {matrix.title}",
        f"order {matrix.order}, seed {matrix.seed}, timeout {duration(matrix.timeout)}, retries {matrix.retries}",
        "gates: " + ", ".join(f"{name} {value}" for name, value in gates.items()),
    ]
    for run in document["runs"]:
        cell = f"{run['model']}/{run['environment']}/{run['workload']}"
        lines.append(
            f"{run['position']:5d}  {cell}  iteration {run['iteration']}  {run['state']}"
        )
    seconds = document["estimate_seconds"]
    left = sum(1 for run in document["runs"] if run["state"] in ("missing", "retry"))
    shown = (
        "unknown, no earlier run of some workload"
        if seconds is None
        else duration(seconds)
    )
    lines.append(f"{len(document['runs'])} runs, {left} to do, estimate {shown}")
    return lines


def status_document(matrix: Matrix, data: Path) -> dict[str, Any]:
    """`{"cells": [{model, environment, workload, planned, done, failed, quarantined, missing}], "now": …}`; `now` is
    what a collector on this machine does, or null."""
    folder = data / matrix.campaign
    cells = coverage.by_cell(
        public(matrix)[0], known_records(folder), _quarantined(folder)
    )
    now = current()
    ours = now is not None and now.get("campaign") == matrix.campaign
    return {"cells": [asdict(cell) for cell in cells], "now": now if ours else None}


def status_lines(matrix: Matrix, data: Path) -> list[str]:
    """The same for people."""
    document = status_document(matrix, data)
    lines = [
        f"{cell['model']}/{cell['environment']}/{cell['workload']}: {cell['done']} of {cell['planned']} done, "
        f"{cell['failed']} failed, {cell['quarantined']} quarantined, {cell['missing']} missing"
        for cell in document["cells"]
    ]
    total = {
        name: sum(cell[name] for cell in document["cells"])
        for name in ("done", "planned", "failed", "missing")
    }
    lines.append(
        f"{total['done']} of {total['planned']} done, {total['failed']} failed, {total['missing']} missing"
    )
    now = document["now"]
    if now is not None:
        lines.append(
            f"now: {now.get('run', 'starting')}: {now.get('phase', '')} since {now.get('since', 'just now')}"
        )
    return lines

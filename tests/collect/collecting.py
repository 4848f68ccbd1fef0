"""A small campaign of real processes, for tests of the collector."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparkpub.collect.books import Outcome
from sparkpub.collect.choice import Choice
from sparkpub.collect.session import collect
from sparkpub.plan import matrix as matrices
from sparkpub.plan.matrix import Matrix
from sparkpub.record.record import Record
from sparkpub.record.store import read_folder

OPEN_GATES = {
    "cooldown": 0,
    "max_start_temp_celsius": None,
    "max_gpu_temp_celsius": None,
    "max_cpu_percent": None,
    "min_free_memory_percent": None,
    "min_free_disk_gib": 0,
    "exclusive_gpu": False,
    "max_wait": 0,
}
RATE = {
    "rate": {
        "regex": "rate ([0-9.]+)",
        "unit": "x/s",
        "label": "Rate",
        "direction": "higher",
    }
}


def a_command(script: str, **options: Any) -> dict[str, Any]:
    """A workload that runs a shell script which prints `rate N`."""
    return {"type": "command", "argv": ["sh", "-c", script], "metrics": RATE} | options


def a_matrix(script: str = "echo rate 5", **changes: Any) -> Matrix:
    document = {
        "campaign": "small",
        "title": "A small campaign",
        "models": {"m": {"id": "x/m"}},
        "environments": {"native": {"type": "host"}},
        "workloads": {"w": a_command(script)},
        "iterations": 2,
        "retries": 0,
        "gates": OPEN_GATES,
        "telemetry": {"interval": 0.05},
    } | changes
    return matrices.parse(json.dumps(document), "small.yaml")


def run(
    matrix: Matrix, data: Path, say: Callable[[str], None] | None = None, **choice: Any
) -> Outcome:
    return collect(matrix, Choice(data, **({"commit": False} | choice)), say)


def records(data: Path, campaign: str = "small") -> list[Record]:
    found = [stored.record for stored in read_folder(data / campaign)]
    return sorted(
        found,
        key=lambda record: (
            record.started.value,
            record.plan.position,
            record.plan.attempt,
        ),
    )


def measured(matrix: Matrix, data: Path, **choice: Any) -> Record:
    """The only record of a collection."""
    run(matrix, data, **choice)
    (record,) = records(data)
    return record


def text_of(record: Record, data: Path, role: str = "log") -> str:
    """A piece of evidence of a record."""
    item = record.file(role)
    assert item is not None
    return (data / record.campaign / item.path).read_text()

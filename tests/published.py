"""Real campaigns in `data/`: figures somebody published, and a few runs measured on an H200. Its README says more."""

import csv
import json
from pathlib import Path
from typing import Any

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given, read_about
from sparkpub.plan import matrix

DATA = Path(__file__).parent / "data"
MEASURED = DATA / "campaigns"
"""A data folder with the campaign `h200`: two rounds of one model, native and in a container, with all evidence."""
PUBLISHED = DATA / "published"
_NAMES = {
    "request_throughput_req_per_s": "throughput",
    "output_throughput_tok_per_s": "output_throughput",
    "peak_memory_gib": "peak_memory",
    "kv_cache_gib": "kv_cache",
}
"""Columns of the table to fields of the file that it was made from."""


def entries() -> list[dict[str, Any]]:
    """The 63 published runs, as the file of the study holds them."""
    paths = {
        name: model.path
        for name, model in matrix.read(PUBLISHED / "matrix.yaml").models.items()
    }
    found = []
    with (PUBLISHED / "runs.csv").open(newline="") as table:
        for row in csv.DictReader(table):
            entry: dict[str, Any] = {}
            for column, text in row.items():
                name = _NAMES.get(column, column)
                is_text = name in ("timestamp", "environment", "model_name", "model_id")
                entry[name] = text if is_text else json.loads(text)
            entry |= {"model_path": paths[entry["model_name"]], "latency": None}
            found.append(entry)
    return found


def write(folder: Path) -> Path:
    """Import the published runs as campaign `phase1` of a data folder, and return that folder."""
    source = folder.parent / f"{folder.name}-published.json"
    source.write_text(json.dumps(entries()))
    given = Given(
        "phase1",
        matrix.read(PUBLISHED / "matrix.yaml"),
        read_about(PUBLISHED / "about.yaml"),
    )
    outcome = import_results(source, folder, given, originals=False)
    assert len(outcome.imported) == 63
    return folder

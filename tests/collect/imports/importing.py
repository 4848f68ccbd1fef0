"""Imports of tests: a file or folder into a campaign `c`, and what became of it."""

from pathlib import Path
from typing import Any

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given
from sparkpub.collect.imports.outcome import ImportOutcome
from sparkpub.record.record import Record
from sparkpub.record.store import read_folder

RESULTS = Path(__file__).parents[2] / "data/imports"


def records_in(data: Path) -> list[Record]:
    """The records of campaign `c` in order of time."""
    stored = read_folder(data / "c") if (data / "c").is_dir() else []
    found = (item.record for item in stored)
    return sorted(found, key=lambda record: record.plan.position)


def imported(
    source: Path, data: Path, **given: Any
) -> tuple[ImportOutcome, list[Record]]:
    """What became of a file or folder of native runs, and the records of the campaign in order of time."""
    told = Given("c", **({"environment": "native"} | given))
    return import_results(source, data, told), records_in(data)

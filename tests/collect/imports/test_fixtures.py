"""Every fixture of a tool and the runs that it becomes, by `data/imports/expected.csv`: addresses, states, figures."""

import csv
import os
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from sparkpub.collect.imports import import_results
from sparkpub.collect.imports.given import Given
from sparkpub.record.record import Record
from sparkpub.record.store import Stored, read_folder
from sparkpub.review.checks import review
from sparkpub.review.dataset import load

FIXTURES = Path(__file__).parents[2] / "data/imports"
COLUMNS = ("model", "workload", "iteration", "status", "figures")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def expected() -> dict[str, list[tuple[str, ...]]]:
    """The lines of the table by fixture."""
    found: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    with (FIXTURES / "expected.csv").open(newline="") as table:
        for row in csv.DictReader(table):
            found[row["fixture"]].append(tuple(row[name] for name in COLUMNS))
    return found


EXPECTED = expected()


def row(record: Record) -> tuple[str, ...]:
    """A record as a line of the table, figures with seven digits."""
    figures = {name: record.value(name) for name in sorted(record.metrics)}
    said = " ".join(
        f"{name}={value:.7g}" for name, value in figures.items() if value is not None
    )
    return record.model, record.workload, str(record.iteration), record.status, said


def stored(fixture: str, folder: Path) -> list[Stored]:
    """The records of a fixture, whose files are as old as each other."""
    source = folder / "in"
    shutil.copytree(FIXTURES / fixture, source)
    for path in source.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    given = Given("c", environment="native", model="m")
    import_results(source, folder / "data", given)
    return list(read_folder(folder / "data/c"))


@pytest.mark.parametrize("fixture", EXPECTED)
def test_every_fixture_becomes_the_runs_of_the_table(
    fixture: str, tmp_path: Path
) -> None:
    """A reader that loses a run or a figure, or that names a load anew: those names are addresses of published runs."""
    read = stored(fixture, tmp_path)
    assert sorted(row(item.record) for item in read) == sorted(EXPECTED[fixture])
    errors = [
        finding.message
        for finding in review(load(tmp_path / "data")).findings
        if finding.check in ("metric-mismatch", "checksum")
    ]
    assert errors == []
    # The table alone would agree with a reader that takes the wrong column: a rate is a number of its run's files.
    for item in read:
        record = item.record
        kept = (item.evidence_path(part) for part in record.evidence)
        text = "\n".join(path.read_text(errors="replace") for path in kept)
        said = {f"{float(number):.7g}" for number in NUMBER.findall(text)}
        rates = {
            name: value
            for name in record.metrics
            if name.endswith(("throughput_tok_s", "throughput_req_s"))
            and (value := record.value(name)) is not None
        }
        missing = {n: v for n, v in rates.items() if f"{v:.7g}" not in said}
        assert missing == {}, record.run_id

"""The public results of a DGX Spark are in the tree as one import command writes them."""

from pathlib import Path

import pytest

from sparkpub.collect import imports
from sparkpub.collect.imports.given import Given
from sparkpub.plan.requested import with_load
from sparkpub.record.record import Record
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.record.store import read_folder
from sparkpub.review.checks import Review
from sparkpub.review.results import Results
from sparkpub.review.tables.column import TableRow, rows
from tests.study.conftest import ROOT

ABOUT = ROOT / "matrix/imports/dgx-spark-benchmarks.yaml"
PART = ROOT / "tests/data/imports/bench-spark"
CAMPAIGNS = ("spark-closed-loop", "spark-open-loop")
UP_TO = "limit not reached (up to {})"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three builds of the collection, imported by the command of the guide."""
    data = tmp_path_factory.mktemp("data")
    given = Given("rest", about=imports.about(ABOUT, PART))
    imports.import_results(PART, data, given)
    return data


def records(folder: Path) -> dict[str, Record]:
    return {item.record.run_id: item.record for item in read_folder(folder)}


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_the_records_are_those_that_the_import_writes(
    campaign: str, imported: Path
) -> None:
    """The part lacks some logs, with the tokenizer that they name, answers and telemetry, and its runs are counted by
    themselves."""
    written, committed = (
        records(data / campaign) for data in (imported, ROOT / DEFAULT_DATA)
    )
    assert len(written) == {"spark-closed-loop": 13, "spark-open-loop": 8}[campaign]
    other = {"plan", "events", "evidence", "unavailable", "phases", "metrics"}
    for name, record in written.items():
        whole = with_load(committed[name])  # which records did not hold then
        if record.file("log") is None:
            whole.observed.settings.pop("tokenizer", None)
        assert record.model_dump(exclude=other) == whole.model_dump(exclude=other)
        assert record.metrics.items() <= whole.metrics.items()


# -- capacity, by hand -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def capacities(committed: Review) -> list[TableRow]:
    return rows(Results(committed).capacities)


@pytest.mark.parametrize(
    ("cell", "text", "figures"),
    [
        # At 0.3 a second P95 are 2.50 s and 78.4 ms of 100 requests, 2.45 s and 80.1 ms of 200; at 0.5 they are 3.04 s
        # and 151 ms. Completed are 0.2716 and 0.2862 a second, of 32.31 and 31.80 s: 8.78 and 9.10 in flight. The mean
        # time per token is 64.67 and 63.57 ms.
        ("gemma-4-26b-a4b-nvfp4/container-nvfp4", "0.3", (0.2716, 9.10, 15.46)),
        # At 0.1 a second P95 are 2.37 s and 111 ms; 0.0963 a second of 35.15 s, 69.30 ms a token.
        ("kat-coder-v2.5-dev/container", "below 0.1", (0.0963, 3.386, 14.43)),
        # At 1.0 a second P95 are 1.69 s and 56.0 ms; 0.9182 a second of 22.80 s, 45.44 ms a token.
        ("gemma-4-e2b-it/container", UP_TO.format(1.0), (0.9182, 20.94, 22.01)),
    ],
)
def test_capacity_by_hand(
    cell: str,
    text: str,
    figures: tuple[float, ...],
    capacities: list[TableRow],
) -> None:
    (row,) = [
        row
        for row in capacities
        if f"{row.model}/{row.environment}" == cell and row.limit_seconds == 10
    ]
    assert row.text == text
    told = (row.served_req_s, row.in_flight, row.user_tok_s)
    assert told == pytest.approx(figures, rel=0.001)

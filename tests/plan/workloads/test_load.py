"""The load of a run in one vocabulary for all tools: `tests/data/loads.json` has options, and what they ask for."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.plan.requested import load_of, with_load
from sparkpub.record.load import Load
from sparkpub.record.record import Observed, Plan, Requested
from tests.building import a_record

LOADS = json.loads((Path(__file__).parents[2] / "data/loads.json").read_text())
IMPORTED = Plan(position=0, order="as-published")


@pytest.mark.parametrize("row", LOADS, ids=lambda row: json.dumps(row["workload"]))
def test_what_options_ask_for(row: dict[str, Any]) -> None:
    """Never what came out, and of an import no more than it says."""
    plan = {"plan": IMPORTED} if row.get("imported") else {}
    record = a_record(
        requested=Requested(
            model_id="x/y", workload=row["workload"], environment={"type": "host"}
        ),
        workload=row.get("key", "w"),
        specification=row.get("specification"),
        observed=Observed(input_tokens_mean=51.6, output_tokens_mean=10.2, requests=5),
        **plan,
    )
    found = load_of(record)
    assert found == Load(**row["load"])
    sizes = (row["load"].get("batch"), row["load"].get("requests"))
    assert (found.batch, found.requests) == sizes
    assert (found.label, found.is_known) == (row["label"], row["known"])
    assert load_of(with_load(record)) == found


def test_how_much_is_measured_and_what_a_batch_holds_are_no_part_of_the_load() -> None:
    many, few = (Load("t", 8, 8, batch=size, requests=size) for size in (64, 8))
    assert many == few

"""Any program, with metrics by regular expression and by JSON path."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sparkpub.plan.workloads import command as workload
from sparkpub.plan.workloads.command import CommandOptions
from tests.plan.workloads.running import a_case, run

CASE = a_case(model_path="/models/{seed}", iteration=3, seed=7)
OWN = {"unit": "events/s", "label": "Events", "direction": "higher"}


def test_a_program_is_run_and_read(tmp_path: Path) -> None:
    script = (
        "import json, sys; print('rate: 1,000.5'); print('rate: 2,000.5'); "
        "json.dump({'runs': [{'ms': 1.5}]}, open(sys.argv[1], 'w')); print(sys.argv[2:])"
    )
    options = CommandOptions.model_validate(
        {
            "argv": [
                sys.executable,
                "-c",
                script,
                "{workdir}/out.json",
                "{model_path}",
                "{seed}/{iteration}",
                "{other}",
            ],
            "outputs": {"report": "out.json"},
            "metrics": {
                "output_throughput_tok_s": {"regex": r"rate: ([\d.,]+)"},
                "own_rate": {"regex": r"rate: ([\d.,]+)", **OWN},
                "measured_time_ms": {"json": "runs.0.ms", "scale": 1000},
            },
        }
    )
    code, log, files = run(workload.command(CASE, options), tmp_path)
    assert code == 0
    # What a placeholder brings in is not itself searched for placeholders.
    assert b"['/models/{seed}', '7/3', '{other}']" in log
    answer = workload.parse(log, files, options)
    assert answer.complete
    assert answer.metrics["output_throughput_tok_s"].value == 2000.5
    assert answer.metrics["output_throughput_tok_s"].source == "log"
    assert answer.metrics["own_rate"].label == "Events"
    assert answer.metrics["measured_time_ms"].value == 1500.0
    assert answer.metrics["measured_time_ms"].source == "report"


def test_a_metric_that_is_missing_is_said_and_null() -> None:
    options = CommandOptions.model_validate(
        {
            "argv": ["x"],
            "metrics": {
                "a": {"regex": "a=(.+)", **OWN},
            },
        }
    )
    answer = workload.parse(b"nothing", {}, options)
    assert not answer.complete
    assert answer.problems == ("a was not found in the log",)
    assert answer.metrics["a"].value is None
    assert workload.parse(b"a=1", {}, options).complete


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ({"a": {"regex": "(", **OWN}}, "not a regular expression"),
        ({"a": {"regex": "a=.+", **OWN}}, "one group"),
        ({"a": OWN}, "either regex or json"),
        ({"a": {"regex": "(.)"}}, "needs unit, label and direction"),
        ({"ttft_mean_ms": {"regex": "(.)", "unit": "s"}}, "fixed for a known metric"),
        ({"a": {"json": "x", **OWN}}, "outputs does not name"),
    ],
)
def test_a_metric_that_cannot_be_read_is_refused(
    metric: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        CommandOptions.model_validate({"argv": ["x"], "metrics": metric})

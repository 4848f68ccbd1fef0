"""Secrets that a matrix takes from the environment of the collector."""

from pathlib import Path

import pytest

from sparkpub.collect.obstacles import in_the_way
from sparkpub.plan.plan import plan
from tests.collect.collecting import a_command, a_matrix, records, run


def test_a_variable_that_is_not_set_is_told_before_the_first_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("THERE", "x")
    environments = {
        "native": {"type": "host", "env": {"A": "$THERE", "HF_TOKEN": "$MINE"}}
    }
    argv = ["sh", "-c", "echo $SHELL_OWN", "--api-key", "$OTHER_KEY"]
    workloads = {"w": a_command("") | {"argv": argv, "variables": {"B": "$THIRD"}}}
    matrix = a_matrix(environments=environments, workloads=workloads)
    lines = in_the_way(matrix, plan(matrix))
    assert [line.partition(", environment native; export")[0] for line in lines] == [
        "$MINE is not set",
        "$OTHER_KEY is not set",
        "$THIRD is not set",
    ]


def test_a_command_gets_the_value_and_the_record_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "sesame-open-99")
    script = 'test "$DB_PASSWORD" = sesame-open-99 && echo rate 5 "$DB_PASSWORD"'
    workload = a_command(script) | {"variables": {"DB_PASSWORD": "$MINE"}}
    run(a_matrix(workloads={"w": workload}, iterations=1), tmp_path)
    (record,) = records(tmp_path)
    assert record.value("rate") == 5
    assert record.requested.workload["variables"] == {"DB_PASSWORD": "$MINE"}
    log = record.file("log")
    assert log is not None
    assert (tmp_path / "small" / log.path).read_text() == "rate 5 <secret>\n"

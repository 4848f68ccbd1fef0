"""What each tool is asked for: `tests/data/commands.json` has options of a matrix, and the command that they become."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from sparkpub.plan.workloads import WORKLOADS, WorkloadOptions
from sparkpub.plan.workloads.base import Command
from sparkpub.record.errors import WorkloadError
from tests.plan.workloads.running import a_case

DATA = Path(__file__).parents[2] / "data"
TABLE: list[dict[str, Any]] = json.loads((DATA / "commands.json").read_text())
LINES: list[dict[str, Any]] = json.loads((DATA / "lines.json").read_text())
"""What a tool prints, and whether a measurement begins or ends with it."""
OPTIONS: TypeAdapter[Any] = TypeAdapter(WorkloadOptions)


def command_of(options: dict[str, Any], **case: Any) -> Command:
    """The command of a run with these options, as a matrix has them."""
    made = OPTIONS.validate_python(options)
    return WORKLOADS[made.type].command(a_case(**case), made)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["about"])
def test_options_become_a_command(row: dict[str, Any]) -> None:
    case = row.get("case", {})
    if "refused" in row:
        with pytest.raises((ValidationError, WorkloadError)) as refused:
            command_of(row["options"], **case)
        assert row["refused"] in str(refused.value)
        return
    command = command_of(row["options"], **case)
    assert list(command.argv) == row["argv"]
    assert dict(command.variables) == row.get("variables", {})
    assert dict(command.outputs) == row.get("outputs", {})
    files = command.files()
    assert sorted(files) == sorted(row.get("files", {}))
    for name, content in row.get("files", {}).items():
        if content is not None:
            assert files[name].decode() == content


@pytest.mark.parametrize("row", LINES, ids=lambda row: row["line"])
def test_the_measurement_lies_between_lines_of_the_tool(row: dict[str, Any]) -> None:
    command = command_of(row["options"])
    found = [command.measured_from, command.measured_until]
    seen = [bool(pattern and re.search(pattern, row["line"])) for pattern in found]
    assert seen == [row["begins"], row["ends"]]


def test_a_server_is_shared_unless_its_command_names_the_iteration() -> None:
    argv = ["serve", "{model_path}", "--load-format", "{load_format}"]
    server = {"argv": [*argv, "--seed", "{seed}", "--port", "{port}"], "port": 8200}
    first, second = (
        a_case(server=server, random_weights=True, iteration=number)
        for number in (1, 2)
    )
    assert first.server_command == second.server_command
    assert first.server_command is not None
    said = "serve /models/tiny --load-format dummy --seed 42 --port 8200"
    assert " ".join(first.server_command.argv) == said
    restarted = {"argv": ["serve", "--name", "{iteration}"]}
    first, second = (a_case(server=restarted, iteration=number) for number in (1, 2))
    assert first.server_command != second.server_command


def test_no_two_runs_of_a_server_send_the_same_prompts() -> None:
    others = [{"workload_key": "c16"}, {"iteration": 2}, {"attempt": 2}, {"seed": 8}]
    seeds = {a_case(**other).prompt_seed for other in [{}, *others]}
    assert len(seeds) == 5
    assert all(0 <= seed < 2**31 for seed in seeds)

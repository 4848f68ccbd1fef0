"""What engines print of themselves.

`b11434-*.log` is llama-server's of that build on a CPU: once with its defaults, and once with

    llama-server -lv 4 -fa on -ctk q8_0 -ctv q8_0 -np 8 -b 512 -ub 256 -c 4096 --threads 2
"""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkpub.tools import engine

DATA = Path(__file__).parents[1] / "data"
LOGS = DATA / "logs/llama-server"
LV4 = (LOGS / "b11434-lv4.log").read_text().splitlines()
DEFAULT = (LOGS / "b11434-default.log").read_text().splitlines()
SAID = json.loads((DATA / "engines.json").read_text())
"""The second is of builds that print everything (src/llama-model.cpp:1926); vLLM's is of 0.24, shortened."""
VLLM = SAID[2]["log"]


@pytest.mark.parametrize("row", SAID)
def test_an_engine_says_what_decides_its_speed(row: dict[str, Any]) -> None:
    log = LV4 if isinstance(row["log"], str) else row["log"]
    said = dict(engine.printed(log).identity)
    assert said.pop("settings", {}) == row["settings"]
    assert said == row["facts"]


def test_what_a_server_says_by_default_and_twice() -> None:
    said = engine.printed(DEFAULT).identity
    assert (said["batch_size"], said["settings"]["n_slots"]) == (4, "4")
    assert "flash_attn" not in said["settings"]
    again = [*VLLM, VLLM[2].replace("14.2488", "15.5")]
    assert engine.printed(again).metrics["weights_gib"].value == 15.5

"""A run to prepare; and run a workload's command on this host as the collector does, without the collector."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from sparkpub.plan.environments import Server
from sparkpub.plan.workloads.base import PYTHON, WORKDIR, Command, RunCase


def a_case(**changes: Any) -> RunCase:
    """A run of a model with a folder."""
    facts: dict[str, Any] = {
        "model_key": "tiny",
        "model_id": "tiny/model",
        "model_path": "/models/tiny",
        "model_config": None,
        "random_weights": False,
        "iteration": 1,
        "seed": 42,
        "workload_key": "w",
    }
    if "server" in changes:
        changes["server"] = Server.model_validate(changes["server"])
    return RunCase(**facts | changes)


def run(command: Command, folder: Path) -> tuple[int, bytes, dict[str, bytes]]:
    """Exit code, merged standard output and error, and outputs by role."""
    for name, content in command.files().items():
        (folder / name).write_bytes(content)
    argv = [
        part.replace(WORKDIR, str(folder)).replace(PYTHON, sys.executable)
        for part in command.argv
    ]
    done = subprocess.run(
        argv, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    outputs = {role: folder / name for role, name in command.outputs.items()}
    return (
        done.returncode,
        done.stdout,
        {role: path.read_bytes() for role, path in outputs.items() if path.is_file()},
    )

"""Run a workload's command on this host as the collector does, without the collector."""

import subprocess
import sys
from pathlib import Path

from sparkpub.plan.workloads.base import PYTHON, WORKDIR, Command


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

"""Which packages the environment measured has: asked of its own Python, once per environment."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from sparkpub.collect.environments.base import Environment, Launch
from sparkpub.plan.workloads.base import PYTHON, Command
from sparkpub.record.errors import CollectError

PATIENCE = 60.0
"""Seconds for an answer: a container may have to start first."""


def installed(environment: Environment, options: Any) -> "dict[str, str] | str":
    """Packages of the environment's Python as `pip freeze` would list them, or why they are not known."""
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions() if d.metadata['Name']}))"
    )
    folder = Path(tempfile.mkdtemp(prefix="sparkpub-"))
    said = BytesIO()
    try:
        running = environment.launch(
            Launch(Command((PYTHON, "-c", code)), folder, said.write, "packages"),
            options,
        )
        try:
            ended = running.wait(PATIENCE) or running.stop()
        finally:
            running.close()
        found: Mapping[str, str] = json.loads(
            said.getvalue().decode(errors="replace").strip().splitlines()[-1]
        )
        if ended.code == 0:
            return dict(sorted(found.items()))
    except CollectError as error:
        return f"Python could not be asked: {error.what}"
    except (ValueError, IndexError, AttributeError):
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return "Python did not answer with its packages"

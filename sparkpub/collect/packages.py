"""Which packages the environment measured has: asked of its own Python, once per environment."""

import json
import tempfile
from collections.abc import Mapping
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

from sparkpub.collect.environments.base import Environment, Launch
from sparkpub.plan.workloads.base import PYTHON, Command
from sparkpub.record.errors import CollectError

PATIENCE = 60.0
"""Seconds for an answer: a container may have to start first."""


def installed(environment: Environment[Any]) -> "dict[str, str] | str":
    """Packages of the environment's Python as `pip freeze` would list them, or why they are not known."""
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions() if d.metadata['Name']}))"
    )
    said = BytesIO()
    try:
        with tempfile.TemporaryDirectory(
            prefix="sparkpub-", ignore_cleanup_errors=True
        ) as folder:
            asked = Command((PYTHON, "-c", code))
            launch = Launch(asked, Path(folder), said.write, "packages")
            with closing(environment.start(launch)) as running:
                running.wait(PATIENCE)
        lines = said.getvalue().decode(errors="replace").strip().splitlines()
        found: Mapping[str, str] = json.loads(lines[-1])
        if running.code == 0:
            return dict(sorted(found.items()))
    except CollectError as error:
        return f"Python could not be asked: {error.what}"
    except (ValueError, IndexError, AttributeError):
        pass
    return "Python did not answer with its packages"

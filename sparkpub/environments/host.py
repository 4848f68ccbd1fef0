"""Directly on the machine, with the operator's environment."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from sparkpub.environments import processes
from sparkpub.environments.base import Launch, Obstacle, Options, resolved
from sparkpub.environments.processes import HostProcess


class HostOptions(Options):
    """Options of `type: host`. The command inherits the collector's variables; `env` is added to them."""

    own_cgroup: bool = True
    """Charge the run's memory to a control group of its own where the machine allows it."""


class Host:
    """Commands run as the collector's children; `{python}` is the collector's interpreter unless the matrix says."""

    name: ClassVar[str] = "host"
    options: ClassVar[type[Options]] = HostOptions

    def obstacles(self, options: HostOptions, models: Sequence[str] = ()) -> Sequence[Obstacle]:
        """A Python interpreter or a model that is not there."""
        found = [
            Obstacle(f"no model at {path}", "download it there, or correct the model's path:")
            for path in models
            if not Path(path).exists()
        ]
        if options.python is not None and shutil.which(options.python) is None:
            found.append(Obstacle(f"no Python interpreter {options.python}", "correct python: or install it"))
        return found

    def inherited(self, options: HostOptions) -> Mapping[str, str]:  # noqa: ARG002 - the interface of all environments
        """The collector's own."""
        return os.environ

    def visible(self, path: str, options: HostOptions) -> str:  # noqa: ARG002 - the interface of all environments
        """The same path."""
        return path

    def launch(self, launch: Launch, options: HostOptions) -> HostProcess:
        """Start the command in the run's folder."""
        workdir = str(launch.workdir.resolve())
        argv, variables = resolved(launch, options, workdir, options.python or sys.executable)
        return HostProcess(
            argv, launch, os.environ | variables, recorded=argv, folder=Path(workdir), own_cgroup=options.own_cgroup
        )

    def reap(self) -> Sequence[str]:
        """End processes of dead collectors."""
        return processes.reap()

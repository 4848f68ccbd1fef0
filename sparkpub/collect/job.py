"""One run about to be measured: what of the plan, which attempt, its command, where that runs, and its server."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from sparkpub.collect.environments import client_place, environment_of
from sparkpub.collect.environments.base import Environment
from sparkpub.plan.address import host_of, is_loopback
from sparkpub.plan.environments import EnvironmentOptions
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun
from sparkpub.plan.workloads import WORKLOADS, WorkloadOptions
from sparkpub.plan.workloads.base import Command, RunCase, RunningServer, Workload


@dataclass(frozen=True)
class Job:
    """One run to measure now, and what earlier runs say about it. Its commands are made where they are asked for:
    `command` and `server` raise WorkloadError where the options make none."""

    matrix: Matrix
    run: PlannedRun
    attempt: int = 1
    repeat_of: str | None = None
    specification: str | None = None
    """The fingerprint of its cell."""
    last_ended: datetime | None = None
    """When the machine's last run of the campaign ended, for the pause before the next."""

    @property
    def label(self) -> str:
        """The run for people."""
        return labelled(self.run.cell, self.run.iteration, self.repeat_of)

    @property
    def workload(self) -> Workload[Any]:
        """The tool's dialect."""
        return WORKLOADS[self.asked.type]

    @property
    def asked(self) -> WorkloadOptions:
        """The workload's options."""
        return self.matrix.workloads[self.run.workload]

    @property
    def environment(self) -> Environment[Any]:
        """Where the run is measured: its server, where it has one there."""
        return environment_of(self.options)

    @property
    def options(self) -> EnvironmentOptions:
        """The environment's options."""
        return self.matrix.environments[self.run.environment]

    @property
    def client(self) -> Environment[Any]:
        """Where the command runs: in the environment, unless that keeps a server whose clients run on the host."""
        return client_place(self.options)

    @property
    def gpus(self) -> Sequence[int] | None:
        """The GPUs that the run uses, by index; None for all that the collector itself may use."""
        named = self.options.gpu_indices
        return None if named == "all" else named

    @property
    def running_server(self) -> RunningServer | None:
        """The server that was there before the run; None where it measures no such server."""
        return self.asked.running_server

    @property
    def elsewhere(self) -> bool:
        """Whether the run measures a server of another machine: this one's sensors say nothing of it."""
        server = self.running_server
        return server is not None and not is_here(server.url)

    @cached_property
    def command(self) -> Command:
        """What is started."""
        return self.workload.command(self._case(self.client), self.asked)

    @cached_property
    def server(self) -> Command | None:
        """The command of the server that the run is a client of; see `sparkpub.plan.environments.Server`."""
        return self._case(self.environment).server_command

    def _case(self, place: Environment[Any]) -> RunCase:
        """The run as its command is made of it, with the model's path as an environment sees it."""
        model = self.matrix.models[self.run.model]
        case = RunCase(
            model_key=self.run.model,
            model_id=model.id,
            model_path=None,
            model_config=model.config,
            random_weights=model.has_random_weights,
            iteration=self.run.iteration,
            seed=self.matrix.seed,
            workload_key=self.run.workload,
            attempt=self.attempt,
            server=self.options.server,
        )
        if model.path is None:
            return case
        return replace(case, model_path=place.visible(model.path))


def labelled(cell: tuple[str, str, str], iteration: int, repeat_of: str | None) -> str:
    """A run, or a repeat of one, for people."""
    kind = " repeat" if repeat_of else ""
    return f"{'/'.join(cell)} {iteration}{kind}"


def is_here(url: str) -> bool:
    """Whether a server's address is one of this machine's own: only such an address can be listened on."""
    if is_loopback(url):
        return True
    try:
        found = socket.getaddrinfo(host_of(url), 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return any(_is_own(family, place) for family, _, _, _, place in found)


def _is_own(family: socket.AddressFamily, place: tuple[Any, ...]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(place)
        except OSError:
            return False
    return True

"""What a run needs: the bench that holds for all of them, and the job that is one; what stands in their way."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sparkpub.collect import endpoints
from sparkpub.collect.environments import ENVIRONMENTS, client_place
from sparkpub.collect.environments.base import Environment, Obstacle
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.machine import nvml
from sparkpub.collect.progress import Progress
from sparkpub.collect.server import Serves
from sparkpub.plan.address import port_of
from sparkpub.plan.environments import EnvironmentOptions
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun
from sparkpub.plan.references import unset
from sparkpub.plan.workloads import WORKLOADS, WorkloadOptions
from sparkpub.plan.workloads.base import Command, RunCase, Workload
from sparkpub.record.errors import CollectError, WorkloadError
from sparkpub.record.record import Machine
from sparkpub.record.redaction import Redactor
from sparkpub.record.telemetry import VISIBLE


@dataclass
class Bench:
    """What holds for every run of a collection."""

    matrix: Matrix
    public: Matrix
    """The matrix as records and campaign.json show it: without secrets, home folders and host names."""
    folder: Path
    machine: Machine
    redactor: Redactor
    interruption: Interruption
    progress: Progress
    packages: dict[str, "dict[str, str] | str"] = field(default_factory=dict)
    """Environment to its packages, or to why they are not known."""


@dataclass(frozen=True)
class Order:
    """One run to measure now, and what earlier runs say about it."""

    run: PlannedRun
    attempt: int = 1
    repeat_of: str | None = None
    expected_seconds: float | None = None
    """What earlier runs of the cell took, for the progress bar."""
    last_ended: datetime | None = None
    """When the machine's last run of the campaign ended, for the pause before the next."""

    @property
    def label(self) -> str:
        """A run, or a repeat of one, for people."""
        kind = " repeat" if self.repeat_of else ""
        return f"{'/'.join(self.run.cell)} {self.run.iteration}{kind}"


@dataclass(frozen=True)
class RunJob:
    """One run about to start."""

    order: Order
    workload: Workload[Any]
    workload_options: WorkloadOptions
    environment: Environment
    environment_options: EnvironmentOptions
    command: Command
    server: Command | None = None
    """The command of the server that the run is a client of; see `sparkpub.plan.environments.Server`."""
    elsewhere: bool = False
    """Whether the run measures a server of another machine: this one's sensors say nothing of it."""

    @property
    def client(self) -> tuple[Environment, EnvironmentOptions]:
        """Where the command runs: in the environment, unless that keeps a server whose clients run on the host."""
        return client_place(self.environment_options)

    @property
    def runs_already(self) -> bool:
        """Whether the run measures a server that was there before it."""
        return self.workload_options.running_server is not None

    @property
    def port(self) -> int | None:
        """Where the server that was there before the run answers."""
        server = self.workload_options.running_server
        return None if server is None else port_of(server.url)

    @property
    def serves(self) -> Serves | None:
        """The server that the run wants; None where it needs none."""
        if self.server is None:
            return None
        environment = self.order.run.environment
        return Serves(environment, self.environment_options, self.server)


def prepare(matrix: Matrix, order: Order) -> RunJob:
    """The command of a run, and where it goes. Raises WorkloadError where the options do not make a command."""
    run = order.run
    model = matrix.models[run.model]
    workload_options = matrix.workloads[run.workload]
    options = matrix.environments[run.environment]
    workload = WORKLOADS[workload_options.type]
    environment = ENVIRONMENTS[options.type]
    case = RunCase(
        model_key=run.model,
        model_id=model.id,
        model_path=None,
        model_config=model.config,
        random_weights=model.has_random_weights,
        iteration=run.iteration,
        seed=matrix.seed,
        workload_key=run.workload,
        attempt=order.attempt,
        server=options.server,
    )
    command = workload.command(
        _seen(case, model.path, *client_place(options)), workload_options
    )
    inside = _seen(case, model.path, environment, options)
    return RunJob(
        order,
        workload,
        workload_options,
        environment,
        options,
        command,
        inside.server_command,
        elsewhere=_elsewhere(workload_options),
    )


def _seen(
    case: RunCase,
    path: str | None,
    environment: Environment,
    options: EnvironmentOptions,
) -> RunCase:
    """The case with the model's path as an environment sees it."""
    if path is None:
        return case
    return replace(case, model_path=environment.visible(path, options))


def gpu_indices(options: EnvironmentOptions) -> Sequence[int] | None:
    """The GPUs that a run uses, by index; None for all that the collector itself may use."""
    named = options.gpu_indices
    return None if named == "all" else named


def obstacles(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[tuple[str, Obstacle]]:
    """Why environments of these runs cannot be measured in, as (environment, obstacle)."""
    found = []
    for name in dict.fromkeys(run.environment for run in runs):
        models = dict.fromkeys(
            matrix.models[run.model].path for run in runs if run.environment == name
        )
        options = matrix.environments[name]
        member = ENVIRONMENTS[options.type]
        paths = [path for path in models if path is not None]
        found += [(name, item) for item in member.obstacles(options, paths)]
        workloads = {run.workload for run in runs if run.environment == name}
        found += [(name, item) for item in _unset(matrix, options, workloads)]
        if not all(_elsewhere(matrix.workloads[key]) for key in workloads):
            found += [(name, item) for item in _gpu_obstacles(options)]
    return found


def _elsewhere(options: WorkloadOptions) -> bool:
    """Whether a workload measures a server of another machine."""
    running = options.running_server
    return running is not None and not endpoints.is_here(running.url)


def _unset(
    matrix: Matrix, options: EnvironmentOptions, workloads: Iterable[str]
) -> Iterator[Obstacle]:
    """Variables that the matrix takes from the collector's environment, which does not have them."""
    documents = [options, *(matrix.workloads[key] for key in workloads)]
    names = {name for item in documents for name in unset(dict(item.declared))}
    for name in sorted(names):
        remedy = "export it, under sudo with --preserve-env, or have systemd read it from an EnvironmentFile"
        yield Obstacle(f"${name} is not set", remedy)


def _gpu_obstacles(options: EnvironmentOptions) -> Iterator[Obstacle]:
    """GPUs that are not there, and several of which nothing says which are used: sensors would be read of others."""
    remedy = "name those that runs use by their indices, gpus: [0], or --gpus 0 of sparkpub quick"
    named = options.gpu_indices
    there = nvml.listed()
    if named is None and there > 1 and VISIBLE not in os.environ:
        yield Obstacle(f"this machine has {there} GPUs", remedy)
    if named is None or named == "all" or not there:
        return
    for index in sorted(set(named) - set(range(there))):
        yield Obstacle(f"this machine has no GPU {index}", remedy)


def in_the_way(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[str]:
    """Everything that stands in the way of these runs, one line each."""
    lines = [
        f"{item.what}, environment {name}; {item.remedy}"
        for name, item in obstacles(matrix, runs)
    ]
    return lines + unprepared(matrix, runs) + endpoints.absent(matrix, runs)


def refuse_obstacles(matrix: Matrix, runs: Sequence[PlannedRun]) -> None:
    """Raise CollectError with everything that stands in the way: before the night, not in it."""
    lines = in_the_way(matrix, runs)
    if lines:
        raise CollectError(lines[0], others=lines[1:])


def unprepared(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[str]:
    """Cells whose options do not make a command, as lines."""
    lines: list[str] = []
    for run in {run.cell: run for run in runs}.values():
        try:
            prepare(matrix, Order(run))
        except WorkloadError as error:
            lines += [line for line in error.lines() if line not in lines]
    return lines

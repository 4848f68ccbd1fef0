"""What stands in the way of runs, asked before the first of them: everything a night would find out."""

import os
from collections.abc import Iterator, Sequence

from sparkpub.collect.environments import environment_of
from sparkpub.collect.environments.base import Obstacle
from sparkpub.collect.job import Job
from sparkpub.collect.machine import nvml
from sparkpub.plan.address import is_loopback
from sparkpub.plan.environments import EnvironmentOptions
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun
from sparkpub.plan.references import unset
from sparkpub.plan.workloads.base import RunningServer
from sparkpub.plan.workloads.payload import pages
from sparkpub.record import package
from sparkpub.record.errors import CollectError, WorkloadError
from sparkpub.record.telemetry import VISIBLE

_EXPORT = "export it, under sudo with --preserve-env, or have systemd read it from an EnvironmentFile"


def obstacles(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[tuple[str, Obstacle]]:
    """Why environments of these runs cannot be measured in, as (environment, obstacle)."""
    found = []
    for name in dict.fromkeys(run.environment for run in runs):
        here = [Job(matrix, run) for run in runs if run.environment == name]
        options = matrix.environments[name]
        paths = dict.fromkeys(matrix.models[job.run.model].path for job in here)
        models = [path for path in paths if path is not None]
        items = list(environment_of(options).obstacles(models))
        variables = set(unset(dict(options.declared)))
        for job in here:
            variables.update(unset(dict(job.asked.declared)))
        items += [
            Obstacle(f"${name} is not set", _EXPORT) for name in sorted(variables)
        ]
        if not all(job.elsewhere for job in here):
            items += _of_gpus(options)
        found += [(name, item) for item in items]
    return found


def _of_gpus(options: EnvironmentOptions) -> Iterator[Obstacle]:
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


def unprepared(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[str]:
    """Cells whose options do not make a command, as lines."""
    lines: dict[str, None] = {}
    for run in {run.cell: run for run in runs}.values():
        job = Job(matrix, run)
        try:
            _ = job.command, job.server
        except WorkloadError as error:
            lines |= dict.fromkeys(error.lines())
    return list(lines)


def absent(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[str]:
    """Clients that are not installed, and servers that do not answer or do not serve the model, a line each."""
    lines: dict[str, None] = {}
    servers: dict[RunningServer, None] = {}
    for run in {(run.environment, run.workload): run for run in runs}.values():
        job = Job(matrix, run)
        lines |= dict.fromkeys(_not_installed(job))
        server = job.running_server
        # A container has a loopback of its own.
        shared = job.environment.shares_ports
        if server is not None and (shared or not is_loopback(server.url)):
            servers[server] = None
    for server in servers:
        lines |= dict.fromkeys(_no_server(server))
    return list(lines)


def _not_installed(job: Job) -> Iterator[str]:
    """A client, or the engine of a payload of ours, that is not there, where that can be seen from outside."""
    place = job.client
    programs = job.asked.programs
    if programs and all(place.has_program(name) is False for name in programs):
        name, install = next(iter(programs.items()))
        where = f"environment {job.run.environment}"
        yield f"{name} is not installed, {where}; install with: {install}"
    for name, extra in job.asked.modules.items():
        if place.has_module(name) is False:
            install = package.install_command(extra)
            yield f"{name} is not installed, which the runs need; install it with: {install}"


def _no_server(server: RunningServer) -> Iterator[str]:
    """Why a server cannot be measured, and what to do about it.

    A matrix may be anybody's: to look at it sends no key to the address in it, and a server that wants one is there.
    """
    try:
        pages.models(server.url, server.model, keyed=False)
    except pages.StopError as error:
        if not (error.keyless and os.environ.get("OPENAI_API_KEY")):
            yield str(error)


def in_the_way(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[str]:
    """Everything that stands in the way of these runs, one line each."""
    lines = [
        f"{item.what}, environment {name}; {item.remedy}"
        for name, item in obstacles(matrix, runs)
    ]
    return lines + unprepared(matrix, runs) + absent(matrix, runs)


def refuse_obstacles(matrix: Matrix, runs: Sequence[PlannedRun]) -> None:
    """Raise CollectError with everything that stands in the way: before the night, not in it."""
    lines = in_the_way(matrix, runs)
    if lines:
        raise CollectError(lines[0], others=lines[1:])

"""What stands in the way of runs, asked before the first of them: everything a night would find out."""

import os
from collections.abc import Iterator, Sequence

from sparkpub.collect import endpoints
from sparkpub.collect.environments import ENVIRONMENTS
from sparkpub.collect.environments.base import Obstacle
from sparkpub.collect.job import Job
from sparkpub.collect.machine import nvml
from sparkpub.plan.environments import EnvironmentOptions
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun
from sparkpub.plan.references import unset
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
        items = list(ENVIRONMENTS[options.type].obstacles(options, models))
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

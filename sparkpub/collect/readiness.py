"""Whether the runs of a matrix can be started at all: asked before the night, not in it."""

from collections.abc import Sequence

from sparkpub.collect.run import prepare
from sparkpub.environments import ENVIRONMENTS
from sparkpub.environments.base import Obstacle
from sparkpub.errors import CollectError, WorkloadError
from sparkpub.matrix import Matrix, PlannedRun


def obstacles(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[tuple[str, Obstacle]]:
    """Why environments of these runs cannot be measured in, as (environment, obstacle)."""
    found = []
    for name in dict.fromkeys(run.environment for run in runs):
        models = dict.fromkeys(matrix.models[run.model].path for run in runs if run.environment == name)
        member = ENVIRONMENTS[matrix.environments[name]["type"]]
        paths = [path for path in models if path is not None]
        found += [(name, item) for item in member.obstacles(matrix.environment_options(name), paths)]
    return found


def refuse_obstacles(matrix: Matrix, runs: Sequence[PlannedRun]) -> None:
    """Raise CollectError with everything that stands in the way: before the night, not in it."""
    lines = [f"{item.what}, environment {name}; {item.remedy}" for name, item in obstacles(matrix, runs)]
    lines += unprepared(matrix, runs)
    if lines:
        raise CollectError(lines[0], others=lines[1:])


def unprepared(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[str]:
    """Cells whose options do not make a command, as lines."""
    lines: list[str] = []
    for run in {run.slot[:3]: run for run in runs}.values():
        try:
            prepare(matrix, run)
        except WorkloadError as error:
            lines += [line for line in error.lines() if line not in lines]
    return lines

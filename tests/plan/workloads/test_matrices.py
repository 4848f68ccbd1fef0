"""The shipped matrices, as far as their workloads go."""

from pathlib import Path

import pytest

from sparkpub.plan.matrix import read
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.base import RunCase
from tests.plan.workloads.test_examples import NO_LONGER_RUN

MATRICES = Path(__file__).parents[3] / "matrix"
SHIPPED = sorted(path.stem for path in MATRICES.glob("*.yaml"))


@pytest.mark.parametrize("name", sorted(set(SHIPPED) - {"phase1"}))
def test_every_cell_of_a_shipped_matrix_has_a_command(name: str) -> None:
    matrix = read(MATRICES / f"{name}.yaml")
    for model, environment, workload in matrix.cells():
        options = matrix.workloads[workload]
        if options.type in NO_LONGER_RUN:
            continue
        facts = matrix.models[model]
        case = RunCase(
            model,
            facts.id,
            facts.path,
            facts.config,
            random_weights=facts.has_random_weights,
            iteration=1,
            seed=matrix.seed,
            server=matrix.environments[environment].server,
        )
        assert WORKLOADS[options.type].command(case, options).argv

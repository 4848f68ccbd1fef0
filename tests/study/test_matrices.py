"""The matrices of the study: what they declare is what its documents say."""

from pathlib import Path

import pytest

from sparkpub.plan.matrix import read
from sparkpub.plan.plan import plan
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.trtllm_bench import TrtllmBenchOptions
from sparkpub.record.errors import WorkloadError
from tests.plan.workloads.running import a_case
from tests.study.methodology import SHAPES

MATRICES = Path(__file__).parents[2] / "matrix"


def test_the_published_matrix_says_what_it_lacks_to_be_run() -> None:
    """No document says how long its prompts were."""
    matrix = read(MATRICES / "phase1.yaml")
    with pytest.raises(WorkloadError, match="input_tokens"):
        WORKLOADS["trtllm-bench"].command(
            a_case(model_key="deepseek"), matrix.workloads["throughput"]
        )


def test_the_methodology_is_its_table() -> None:
    matrix = read(MATRICES / "methodology.yaml")
    for name, shape in SHAPES.items():
        options = matrix.workloads[name]
        assert isinstance(options, TrtllmBenchOptions)
        batch = options.max_batch_size
        assert (batch, options.input_tokens, options.output_tokens) == shape
        assert (options.concurrency, options.warmup, options.requests) == (
            batch,
            10 * batch,
            100 * batch,
        )
        assert options.kv_cache_tokens is not None
        assert options.kv_cache_tokens >= batch * (shape[1] + shape[2])
    assert matrix.gates.cooldown == 30


def test_phase_two_changes_one_thing_at_a_time() -> None:
    matrix = read(MATRICES / "phase2.yaml")
    container = matrix.environments["container"].declared
    changed = {
        name: {
            key
            for key in declared.keys() | container.keys()
            if declared.get(key) != container.get(key)
        }
        for name, declared in (
            (name, options.declared) for name, options in matrix.environments.items()
        )
        if declared["type"] == "docker" and name != "container"
    }
    assert changed["no-limit"] == {"memory", "memory_swap"}
    assert changed["root-cgroup"] == {"memory", "memory_swap", "cgroup_parent"}
    assert matrix.environments["root-cgroup"].declared["cgroup_parent"] == "/"
    assert changed["shm-1g"] == changed["shm-60g"] == {"ipc", "shm_size"}
    assert changed["network-host"] == {"network"}
    assert changed["cpus-0-9"] == {"cpuset"}
    assert len(plan(matrix)) == 13 * 5

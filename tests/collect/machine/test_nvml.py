"""Which GPUs are read: CUDA hides some from a process, and NVML shows all of them to everybody."""

from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect import obstacles
from sparkpub.collect.machine import nvml
from sparkpub.collect.machine.nvml import Gpus
from sparkpub.plan.environments import DockerOptions
from sparkpub.plan.plan import plan
from sparkpub.record.telemetry import VISIBLE
from tests.collect.collecting import a_matrix, measured, text_of
from tests.collect.fake_nvml import FakeNvml


@pytest.fixture(autouse=True)
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with four GPUs."""
    driver = FakeNvml()
    driver.count = 4
    monkeypatch.setattr(nvml, "library", lambda: driver)


@pytest.mark.parametrize(
    ("variable", "indices"),
    [
        (None, [0, 1, 2, 3]),
        ("3,1", [3, 1]),
    ],
)
def test_the_gpus_that_cuda_shows_are_read(
    variable: str | None, indices: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(VISIBLE, variable)
    assert Gpus().indices == indices


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "host"}, "this machine has 4 GPUs, environment native; name those"),
        ({"type": "host", "gpus": [0, 4]}, "this machine has no GPU 4, environment"),
        ({"type": "host", "gpus": [0, 3]}, None),
        ({"type": "host", "env": {"CUDA_VISIBLE_DEVICES": "1"}}, None),
    ],
)
def test_several_gpus_of_which_nothing_is_declared_are_refused(
    options: dict[str, Any], said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sensors would be read of GPUs that a run does not use."""
    monkeypatch.delenv(VISIBLE, raising=False)
    matrix = a_matrix(environments={"native": options})
    lines = obstacles.in_the_way(matrix, plan(matrix))
    assert [said in line for line in lines] == ([True] if said else [])
    monkeypatch.setenv(VISIBLE, "2")
    declared = "gpus" in options
    assert bool(obstacles.in_the_way(matrix, plan(matrix))) is bool(said and declared)


@pytest.mark.parametrize(
    ("options", "indices"),
    [
        ({"gpus": "all"}, "all"),
        ({"gpus": ["1", "3"]}, (1, 3)),
        ({"devices": ["nvidia.com/gpu=all"]}, "all"),
        ({"devices": ["/dev/nvidiactl", "/dev/nvidia2:/dev/nvidia0:rw"]}, (2,)),
    ],
)
def test_a_container_declares_its_gpus_by_its_own_flags(
    options: dict[str, Any], indices: object
) -> None:
    assert DockerOptions(image="x", **options).gpu_indices == indices


def test_a_command_sees_the_gpus_that_its_environment_names(tmp_path: Path) -> None:
    environments = {"native": {"type": "host", "gpus": [2, 0]}}
    record = measured(
        a_matrix(
            'echo "rate 5 $CUDA_VISIBLE_DEVICES"',
            environments=environments,
            iterations=1,
        ),
        tmp_path,
    )
    assert text_of(record, tmp_path) == "rate 5 2,0\n"
    assert [gpu.index for gpu in record.machine.gpus] == [0, 2]
    assert record.machine.gpus_there == 4

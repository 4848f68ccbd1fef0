"""Which GPUs are read: CUDA hides some from a process, and NVML shows all of them to everybody."""

from typing import Any

import pytest

from sparkpub.collect.machine import inventory, nvml
from sparkpub.collect.machine.nvml import Gpus, NoGpuError
from tests.collect.fake_nvml import FakeNvml


class Four(FakeNvml):
    """A machine with four GPUs; a handle is its index."""

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 4

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}0000000-1234"


@pytest.fixture(autouse=True)
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "library", Four)


@pytest.mark.parametrize(
    ("variable", "handles"),
    [
        (None, [0, 1, 2, 3]),
        ("2", [2]),
        ("3,1", [3, 1]),
        (" 1 , 2 ", [1, 2]),
        ("GPU-3", [3]),
        ("GPU-20000000-1234,0", [2, 0]),
        ("1,9,2", [1]),  # CUDA ends the list at the first name that fits none
        ("1,-1,2", [1]),
        ("MIG-11111111-1234", [0, 1, 2, 3]),
    ],
)
def test_the_gpus_that_cuda_shows_are_read(
    variable: str | None, handles: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(nvml.VISIBLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(nvml.VISIBLE, variable)
    assert Gpus().handles == handles


@pytest.mark.parametrize("variable", ["", "9", "GPU-9", "GPU"])
def test_no_gpu_is_read_where_cuda_shows_none(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(nvml.VISIBLE, variable)
    with pytest.raises(NoGpuError, match="CUDA_VISIBLE_DEVICES names no GPU"):
        Gpus()


def test_gpus_that_the_matrix_names_are_those_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(nvml.VISIBLE, "3")
    assert Gpus([1, 7]).handles == [1]


def test_two_nodes_of_one_machine_are_two_where_their_gpus_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def machine(variable: str) -> Any:
        monkeypatch.setenv(nvml.VISIBLE, variable)
        return inventory.machine_id()

    assert machine("0") == machine("GPU-0")
    assert len({machine("0"), machine("1"), machine("0,1")}) == 3

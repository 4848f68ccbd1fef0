"""What the matrix says, as the Docker SDK wants it: no engine needed."""

from pathlib import Path
from typing import Any

import pytest

from sparkpub.collect.environments.base import through_binds
from sparkpub.collect.environments.docker import (
    create_arguments,
)
from sparkpub.plan.environments import DockerOptions
from tests.collect.environments.launching import a_launch


def arguments(tmp_path: Path, **options: object) -> dict[str, Any]:
    chosen = DockerOptions.model_validate({"image": "i"} | options)
    return create_arguments(chosen, a_launch(tmp_path, "true")[0], {"A": "b"})


def test_gpus_by_name_and_by_cdi(tmp_path: Path) -> None:
    (by_name,) = arguments(tmp_path, gpus=["0", "GPU-1"])["device_requests"]
    found = arguments(tmp_path, devices=["nvidia.com/gpu=all", "/dev/nvidia0"])
    assert by_name["DeviceIDs"] == ["0", "GPU-1"]
    assert (
        found["device_requests"][0]["Driver"],
        found["device_requests"][0]["DeviceIDs"],
    ) == (
        "cdi",
        ["nvidia.com/gpu=all"],
    )
    assert found["devices"] == ["/dev/nvidia0"]


def test_all_gpus_are_those_that_the_collector_itself_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (every,) = arguments(tmp_path, gpus="all")["device_requests"]
    assert every["Count"] == -1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,3")
    (visible,) = arguments(tmp_path, gpus="all")["device_requests"]
    assert visible["DeviceIDs"] == ["1", "3"]


def test_every_option_reaches_the_engine(tmp_path: Path) -> None:
    """An option that changes nothing would be a lie in the matrix."""
    values: dict[str, object] = {
        "gpus": "all",
        "devices": ["/dev/null"],
        "ipc": "host",
        "shm_size": "1g",
        "ulimits": {"stack": 1},
        "binds": ["/a:/b"],
        "network": "none",
        "cpuset": "0",
        "memory": "1g",
        "memory_swap": "2g",
        "cgroup_parent": "/x",
        "privileged": True,
        "user": "1",
        "entrypoint": "",
    }
    assert set(values) == set(DockerOptions.model_fields) - {
        "type",
        "image",
        "env",
        "python",
        "server",
        "label",  # a name for readers
        "recipe",  # becomes other options when the matrix is read
    }
    plain = arguments(tmp_path)
    for name, value in values.items():
        assert arguments(tmp_path, **{name: value}) != plain, name


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("/data/models/a", "/m/a"),
        ("/data/models/fast/a", "/f/a"),
        ("/data/modelsmore/a", "/data/modelsmore/a"),
    ],
)
def test_a_path_is_seen_through_the_longest_bind(path: str, inside: str) -> None:
    options = DockerOptions.model_validate(
        {"image": "i", "binds": ["/data/models:/m:ro", "/data/models/fast/:/f"]}
    )
    assert through_binds(path, options.binds) == inside

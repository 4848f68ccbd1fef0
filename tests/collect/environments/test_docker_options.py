"""What the matrix says, as the Docker SDK wants it: no engine needed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sparkpub.collect.environments.base import through_binds
from sparkpub.collect.environments.docker import (
    DockerRun,
    address_of,
    create_arguments,
)
from sparkpub.plan.environments import DockerOptions
from tests.collect.environments.launching import a_launch


def arguments(tmp_path: Path, **options: object) -> dict[str, Any]:
    chosen = DockerOptions.model_validate({"image": "i"} | options)
    return create_arguments(chosen, a_launch(tmp_path, "true")[0], {"A": "b"})


def test_the_command_line_of_the_source_is_expressible(tmp_path: Path) -> None:
    # docker run --gpus all --ipc=host --shm-size=60g --ulimit memlock=-1 --ulimit stack=67108864 -v /d:/d:ro
    found = arguments(
        tmp_path,
        gpus="all",
        ipc="host",
        shm_size="60g",
        ulimits={"memlock": -1, "stack": 67108864},
        binds=["/d:/d:ro"],
    )
    (request,) = found["device_requests"]
    assert (request["Count"], request["Capabilities"]) == (-1, [["gpu"]])
    assert (found["ipc_mode"], found["shm_size"]) == ("host", "60g")
    assert [
        (limit["Name"], limit["Soft"], limit["Hard"]) for limit in found["ulimits"]
    ] == [
        ("memlock", -1, -1),
        ("stack", 67108864, 67108864),
    ]
    assert [
        (mount["Source"], mount["Target"], mount["ReadOnly"])
        for mount in found["mounts"]
    ] == [
        ("/d", "/d", True),
        (str(tmp_path), "/sparkpub", False),
    ]
    assert not {"network", "mem_limit", "privileged", "user", "entrypoint"} & set(found)


def test_gpus_by_number_by_name_and_by_cdi(tmp_path: Path) -> None:
    (by_number,) = arguments(tmp_path, gpus=2)["device_requests"]
    (by_name,) = arguments(tmp_path, gpus=["0", "GPU-1"])["device_requests"]
    found = arguments(tmp_path, devices=["nvidia.com/gpu=all", "/dev/nvidia0"])
    assert by_number["Count"] == 2
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
    (by_number,) = arguments(tmp_path, gpus=2)["device_requests"]
    assert by_number["Count"] == 2


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
        "runtime": "runc",
        "entrypoint": "",
        "security_opt": ["seccomp=unconfined"],
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
    "wrong",
    [
        {"binds": ["relative:/x"]},
        {"binds": ["/only"]},
        {"shm_size": "sixty"},
        {"gpus": 0},
        {"devices": ["nvidia0"]},
        {"cpuset": "all"},
        {"ulimits": {"stack": -2}},
        {"env": {"NOT A NAME": "x"}},
        {"colour": "red"},
    ],
)
def test_a_wrong_option_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        DockerOptions.model_validate({"image": "i"} | wrong)


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


@pytest.mark.parametrize(
    ("chosen", "beside", "expected"),
    [
        ({}, None, {}),
        ({"network": "host"}, None, {"network_mode": "host"}),
        ({"network": "lab"}, None, {"network": "lab"}),
        # A client joins the network of its server, unless both have the host's.
        ({}, "abc", {"network_mode": "container:abc"}),
        ({"network": "host"}, "abc", {"network_mode": "host"}),
    ],
)
def test_the_network_of_a_container_and_of_a_client(
    chosen: dict[str, str], beside: str | None, expected: dict[str, str], tmp_path: Path
) -> None:
    server = None
    if beside is not None:
        server = DockerRun.__new__(
            DockerRun
        )  # a container is what it takes to make one
        server.container_id = beside
    launch = replace(a_launch(tmp_path, "true")[0], server=server)
    options = DockerOptions.model_validate({"image": "i"} | chosen)
    found = create_arguments(options, launch, {})
    assert {
        name: found[name] for name in ("network", "network_mode") if name in found
    } == expected


@pytest.mark.parametrize(
    ("mode", "networks", "expected"),
    [
        ("host", {"host": {"IPAddress": ""}}, "127.0.0.1"),
        ("bridge", {"bridge": {"IPAddress": "172.17.0.2"}}, "172.17.0.2"),
        (
            "lab",
            {"a": {"IPAddress": ""}, "lab": {"IPAddress": "172.18.0.3"}},
            "172.18.0.3",
        ),
        ("none", None, ""),
    ],
)
def test_where_this_machine_reaches_a_container(
    mode: str, networks: dict[str, Any] | None, expected: str
) -> None:
    attributes = {
        "HostConfig": {"NetworkMode": mode},
        "NetworkSettings": {"Networks": networks},
    }
    assert address_of(attributes) == expected

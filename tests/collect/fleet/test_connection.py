"""What Ray says, without Ray: who is in the cluster, and each of its failures in one line."""

import json
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from sparkpub.cli import cli
from sparkpub.collect.fleet import cluster
from sparkpub.collect.fleet.cluster import LostError, Node
from sparkpub.record import package
from sparkpub.record.errors import CollectError
from tests.collect.collecting import a_matrix


def entry(name: str, *, alive: bool = True, **resources: float) -> dict[str, Any]:
    """A node as `ray.nodes()` has it."""
    return {
        "NodeID": name,
        "NodeManagerAddress": "10.0.0.1",
        "Alive": alive,
        "Resources": resources,
    }


def a_ray(**functions: Any) -> Any:
    class RayError(Exception):
        """As Ray's."""

    return SimpleNamespace(exceptions=SimpleNamespace(RayError=RayError), **functions)


def failing(error: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def test_nodes_that_are_alive_and_offer_to_measure_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = [
        entry("b", CPU=20.0, GPU=1.0, sparkpub_gpu=1.0),
        entry("head", CPU=20.0),
        entry("dead", alive=False, CPU=20.0, sparkpub_gpu=1.0),
        entry("taken", sparkpub_gpu=0.0),
        entry("a", sparkpub_gpu=2.0),
    ]
    monkeypatch.setitem(sys.modules, "ray", a_ray(nodes=lambda: there))
    found = cluster.nodes()
    assert found == [Node("a", "10.0.0.1", 0.0, 0.0), Node("b", "10.0.0.1", 20.0, 1.0)]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("The actor died.\n The node went.\n", "The actor died. The node went."),
        (
            "ray::Post.open()\nTraceback (most recent call last):\n  x\nKeyError: 'y'",
            "KeyError: 'y'",
        ),
        ("", "RayError"),
    ],
)
def test_a_lost_call_says_why_in_one_line(
    said: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = a_ray()
    ray.get = failing(ray.exceptions.RayError(said))
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(LostError) as caught:
        cluster.answer("ref")
    assert str(caught.value) == reason


def test_without_ray_the_command_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    matrix = tmp_path / "matrix.json"
    matrix.write_text(json.dumps(a_matrix().document()))
    arguments = ["collect", str(matrix), "--data", str(tmp_path), "--on", "auto"]
    found = CliRunner().invoke(cli, arguments)
    assert isinstance(found.exception, CollectError)
    (line,) = found.exception.lines()
    assert line.startswith(
        f"--on needs Ray, which is not installed; pip install '{package.requirement('fleet')}'"
    )
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "state") == [
        "matrix.json"
    ]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("nonsense", "invalid literal"),
        ("a port where nobody listens", "Connection refused"),
        ("auto", "nobody is there"),
    ],
)
def test_an_address_where_nothing_answers_is_one_line_at_once(
    address: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray itself would try for minutes."""
    ray = a_ray(init=failing(ConnectionError("nobody is there")))
    monkeypatch.setattr(cluster.importlib, "import_module", lambda _: ray)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        if address.startswith("a port"):
            address = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(CollectError) as caught, cluster.connected(address):
            pass
    (line,) = caught.value.lines()
    assert line.startswith(f"no Ray cluster answers: {why}")
    assert f", --on {address}; give its HOST:PORT" in line

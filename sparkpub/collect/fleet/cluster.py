"""All that knows Ray: who is in the cluster, what runs on its nodes, and what became of that.

Ray places the work, moves what it returns, and finds out which nodes are dead. It is an optional extra and has no
types of use to us, so that `Any` ends here.
"""

import importlib
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sparkpub.record import package
from sparkpub.record.errors import CollectError, SparkpubError

RESOURCE = "sparkpub_gpu"
"""What a node offers that may measure: one, since a run has its machine for itself."""
OFFER = f"--resources='{{\"{RESOURCE}\": 1}}'"
"""The same as it is written for `ray start`."""
KNOCK = 5.0
"""Seconds that an address may take to answer."""
ANSWER_SECONDS = 300.0
"""How long the command waits for an answer of its books: with a commit and its hooks, and a push."""
FREED_SECONDS = 30.0
"""How long the name of a killed command's books may stay taken."""


@dataclass(frozen=True)
class Node:
    """A node of the cluster that offers to measure. `address` is for the operator's screen and no record."""

    id: str
    address: str
    cpus: float
    gpus: float

    def __str__(self) -> str:
        return f"node {self.address} ({self.id[:8]})"


class LostError(Exception):
    """A node, or the process that worked on it for us, is gone; the message is Ray's reason in one line."""


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A cluster by its address, `HOST:PORT` or `auto`, from a machine that is part of it. Raises CollectError where Ray
    or the cluster is missing."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Else Ray ends this process a minute after its head is gone, with a line of its own.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "3600")
    try:
        ray = _ray()
    except ImportError:
        raise CollectError(
            "--on needs Ray, which is not installed",
            remedy=f"pip install '{package.requirement('fleet')}', on every machine of the cluster",
        ) from None
    host, _, port = address.rpartition(":")
    try:
        if address != "auto":  # Ray itself tries an address for minutes where nobody is
            socket.create_connection((host.strip("[]"), int(port)), KNOCK).close()
        ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (OSError, ValueError, OverflowError) as error:
        raise CollectError(
            f"no Ray cluster answers: {getattr(error, 'strerror', None) or _reason(error)}",
            where=f"--on {address}",
            remedy="give its HOST:PORT, or auto; start one with ray start --head, and collect on a machine of it",
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def _ray() -> Any:
    return importlib.import_module("ray")


def nodes() -> list[Node]:
    """Nodes that are alive and offer to measure, by id. Waits where the cluster's head is gone."""
    found = []
    for entry in _ray().nodes():
        offered = entry["Resources"]
        if entry["Alive"] and offered.get(RESOURCE, 0) >= 1:
            place = entry["NodeID"], entry["NodeManagerAddress"]
            found.append(Node(*place, offered.get("CPU", 0.0), offered.get("GPU", 0.0)))
    return sorted(found, key=lambda node: node.id)


def actor(what: type, called: str, *given: Any) -> Any:
    """An actor on this node, and a name for it. Raises CollectError where there is another one of this name."""
    ray = _ray()
    own = _on(ray.get_runtime_context().get_node_id())
    made = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(what)
    end = time.monotonic() + FREED_SECONDS
    while True:
        try:
            return made.options(name=called, namespace="sparkpub", **own).remote(*given)
        except ValueError:
            if time.monotonic() > end:
                raise CollectError(
                    f"another command collects campaign {called} on this cluster",
                    remedy="wait for it, or stop it with Ctrl-C",
                ) from None
            time.sleep(1.0)


def start(node: Node, work: Callable[..., Any], *given: Any) -> Any:
    """Call a function there, with all of the node: no other work of the cluster runs beside ours."""
    remote = _ray().remote(
        max_retries=0,  # a second try would measure twice unseen
        num_cpus=node.cpus,
        num_gpus=node.gpus,
        resources={RESOURCE: 1},
        max_calls=1,
    )(work)
    return remote.options(**_on(node.id)).remote(*given)


def done(refs: Sequence[Any], timeout: float) -> list[Any]:
    """Those whose answers, or failures, are there; waits for the first of them."""
    if not refs:
        time.sleep(timeout)
        return []
    return list(_ray().wait(refs, timeout=timeout, fetch_local=False)[0])


def ask(actor: Any, what: str, *given: Any, timeout: float | None = None) -> Any:
    """Call an actor's function; see `answer`."""
    return answer(getattr(actor, what).remote(*given), timeout)


def answer(ref: Any, timeout: float | None = None) -> Any:
    """What something came to. Raises LostError where nothing came back, and the SparkpubError that was raised there."""
    ray = _ray()
    try:
        return ray.get(ref, timeout=timeout)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, SparkpubError):
            raise cause from None
        raise LostError(_reason(error)) from None


def _on(node: str) -> dict[str, Any]:
    """Options of what is to run on this node and nowhere else."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    pinned = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return {"scheduling_strategy": pinned}


def _reason(error: BaseException) -> str:
    """Ray's reason in one line: the last of a remote traceback, else all of it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "Traceback" in str(error):
        lines = lines[-1:]
    return " ".join(lines)[:300] or type(error).__name__

"""All that knows Ray: who is in the cluster, what runs on its nodes, and what became of that.

Ray places the work, moves what it returns, and finds out which nodes are dead. It is an optional extra and has no
types of use to us, so that `Any` ends here.
"""

import importlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sparkpub.record import package
from sparkpub.record.errors import CollectError

RESOURCE = "sparkpub_gpu"
"""What a node offers that may measure: one, since a run has its machine for itself."""
OFFER = f"--resources='{{\"{RESOURCE}\": 1}}'"
"""The same as it is written for `ray start`."""
Returned = TypeVar("Returned")
HEAD_SECONDS = 30.0
"""How long the head of the cluster may take to answer before it is taken for gone."""
KNOCK = 5.0
"""Seconds that an address may take to answer."""
_RAYS_PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""The seconds after which Ray ends every process whose head is gone, ours too, with a line of its own."""
_LONGER_THAN_OURS = 3600
"""In seconds: what is under way is to be written and committed by then."""


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


class HeadLostError(CollectError):
    """The head of the Ray cluster is gone: nothing can be asked of it, or started, any more."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"the Ray cluster does not answer any more: {why}",
            remedy="start it and the same command again: finished runs wait on their machines",
        )


class Cluster:
    """A connection to a Ray cluster, from a machine that is part of it."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def nodes(self) -> list[Node]:
        """Nodes that are alive and offer to measure, by id. Raises HeadLostError where the cluster is gone."""
        found = []
        for entry in of_head(self._ray.nodes):
            offered = entry["Resources"]
            if entry["Alive"] and offered.get(RESOURCE, 0) >= 1:
                cpus, gpus = offered.get("CPU", 0.0), offered.get("GPU", 0.0)
                place = entry["NodeID"], entry["NodeManagerAddress"]
                found.append(Node(*place, cpus, gpus))
        return sorted(found, key=lambda node: node.id)

    def ask(self, node: Node, question: Callable[..., Any], *given: Any) -> Any:
        """Call a function there, beside whatever runs there. Raises HeadLostError."""
        return self._call(node, question, given, num_cpus=0)

    def measure(self, node: Node, work: Callable[..., Any], *given: Any) -> Any:
        """The same with all of the node: no other work of the cluster runs beside ours. Raises HeadLostError."""
        whole = {"num_cpus": node.cpus, "num_gpus": node.gpus}
        return self._call(
            node, work, given, **whole, resources={RESOURCE: 1}, max_calls=1
        )

    def _call(
        self, node: Node, function: Callable[..., Any], given: Any, **options: Any
    ) -> Any:
        # A second try would measure twice unseen.
        remote = self._ray.remote(max_retries=0, **options)(function)
        return of_head(partial(remote.options(**_on(node.id)).remote, *given))

    def actor(self, what: type, called: str, *given: Any) -> Any:
        """An actor on this node, and a name for it. Raises CollectError where there is another one of this name; that
        of a command that was killed goes within seconds."""
        own = self._ray.get_runtime_context().get_node_id()
        actor = self._ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(what)
        start = actor.options(name=called, namespace="sparkpub", **_on(own)).remote
        end = time.monotonic() + HEAD_SECONDS
        while True:
            try:
                return start(*given)
            except ValueError:
                if time.monotonic() > end:
                    raise CollectError(
                        f"another command collects campaign {called} on this cluster",
                        remedy="wait for it, or stop it with Ctrl-C",
                    ) from None
                time.sleep(1.0)

    def done(self, refs: Sequence[Any], timeout: float) -> list[Any]:
        """Those whose answers, or failures, are there; waits for the first of them."""
        if not refs:
            time.sleep(min(timeout, 0.2))
            return []
        done, _ = self._ray.wait(
            list(refs), num_returns=1, timeout=timeout, fetch_local=False
        )
        return list(done)

    def answer(self, ref: Any, timeout: float = 60.0) -> Any:
        """What something came to. Raises LostError where nothing came back."""
        try:
            return self._ray.get(ref, timeout=timeout)
        except self._ray.exceptions.RayError as error:
            raise LostError(_reason(error)) from None


def _on(node: str) -> dict[str, Any]:
    """Options of what is to run on this node and nowhere else."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    pinned = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return {"scheduling_strategy": pinned}


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """A cluster by its address, `HOST:PORT` or `auto`. Raises CollectError where Ray or the cluster is missing."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault(_RAYS_PATIENCE, str(_LONGER_THAN_OURS))
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise CollectError(
            "--on needs Ray, which is not installed",
            remedy=f"pip install '{package.requirement('fleet')}', on every machine of the cluster",
        ) from None
    begin = partial(ray.init, address, log_to_driver=False)
    host, _, port = address.rpartition(":")
    try:
        if address != "auto":  # Ray itself tries an address for minutes where nobody is
            socket.create_connection((host.strip("[]"), int(port)), KNOCK).close()
        of_head(partial(begin, logging_level=logging.CRITICAL))
    except (OSError, ValueError, OverflowError, HeadLostError) as error:
        why = getattr(error, "why", None) or getattr(error, "strerror", None) or error
        raise CollectError(
            f"no Ray cluster answers: {why}",
            where=f"--on {address}",
            remedy="give its HOST:PORT, or auto; start one with ray start --head, and collect on a machine of it",
        ) from None
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def of_head(question: Callable[[], Returned]) -> Returned:
    """What only the head of the cluster can answer. Raises HeadLostError where it does not, within `HEAD_SECONDS`.

    Asked in a thread of its own: where the head is gone, Ray waits for it and cannot be interrupted.
    """
    answers: SimpleQueue[Returned | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(question())
        except Exception as error:  # Ray raises whatever its transport raises
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=HEAD_SECONDS)
    except Empty:
        raise HeadLostError(f"no answer in {HEAD_SECONDS:g} s") from None
    if isinstance(answer, Exception):
        raise HeadLostError(_reason(answer)) from None
    return answer


def _reason(error: BaseException) -> str:
    """Ray's reason in one line: the last of a remote traceback, else all of it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "Traceback" in str(error):
        lines = lines[-1:]
    return " ".join(lines)[:300] or type(error).__name__

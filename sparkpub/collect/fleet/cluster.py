"""All that knows Ray: who is in the cluster, calls to its nodes, and what became of them.

Ray places the calls, moves what they return, and finds out which nodes are dead. It is an optional extra and has no
types of use to us, so that `Any` ends here.
"""

import importlib
import logging
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from sparkpub.collect.bench import Order
from sparkpub.collect.fleet import node as nodes
from sparkpub.collect.fleet.node import NodeAnswer
from sparkpub.record import package
from sparkpub.record.errors import CollectError

RESOURCE = "sparkpub_gpu"
"""What a node offers that may measure: one, since a run has its machine for itself."""
Returned = TypeVar("Returned")
HEAD_SECONDS = 30.0
"""How long the head of the cluster may take to answer before it is taken for gone."""
_RAYS_PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""The seconds after which Ray ends every process whose head is gone, ours too, with a line of its own."""
_LONGER_THAN_OURS = 3600
"""In seconds: what is under way is to be written and committed by then."""
KNOCK_SECONDS = 5.0
"""How long an address may take to answer: Ray itself tries one where nobody is for minutes."""
_ADDRESS = re.compile(r"(?P<host>[^\s/:\[\]]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""What a gRPC client says first (RFC 9113, 3.4): the preface of HTTP/2, and a frame of settings without any."""
_FRAME, _SETTINGS = 9, 4
"""Bytes before the content of a frame; and the kind of frame that every server answers with."""
_REMEDY = "start one with ray start --head, and collect on a machine that is part of it"


@dataclass(frozen=True)
class Node:
    """A node of the cluster that offers to measure. `address` is for the operator's screen and no record."""

    id: str
    address: str
    cpus: float
    gpus: float


@dataclass(frozen=True)
class Call(Generic[Returned]):
    """Something asked of a node; its answer comes through `Cluster.answer`."""

    ref: Any


class LostError(Exception):
    """A node, or the process that worked on it for us, is gone; the message is Ray's reason in one line."""


class HeadLostError(CollectError):
    """The head of the Ray cluster is gone: nothing can be asked of it, or started, any more."""

    def __init__(self, why: str) -> None:
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
        entries = _of_head(self._ray.nodes)
        found = []
        for entry in entries:
            offered = entry["Resources"]
            if entry["Alive"] and offered.get(RESOURCE, 0) >= 1:
                found.append(
                    Node(
                        entry["NodeID"],
                        entry["NodeManagerAddress"],
                        offered.get("CPU", 0.0),
                        offered.get("GPU", 0.0),
                    )
                )
        return sorted(found, key=lambda node: node.id)

    def ask(
        self, node: Node, question: Callable[..., Returned], *given: Any
    ) -> Call[Returned]:
        """Call a function there, beside whatever runs there. Raises HeadLostError."""
        remote = self._ray.remote(num_cpus=0, max_retries=0)(question)
        called = remote.options(**self._on(node)).remote
        return Call(_of_head(partial(called, *given)))

    def post(self, node: Node, document: Mapping[str, Any]) -> "PostOnNode":
        """Have a machine set up for a campaign: all of it, so that no other work of the cluster runs beside ours.
        Raises HeadLostError."""
        actor = self._ray.remote(
            num_cpus=node.cpus,
            num_gpus=node.gpus,
            resources={RESOURCE: 1},
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=2,
        )(nodes.StationOnNode)
        started = actor.options(**self._on(node)).remote
        return PostOnNode(self._ray, _of_head(partial(started, document)))

    def _on(self, node: Node) -> dict[str, Any]:
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        pinned = strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
        return {"scheduling_strategy": pinned}

    def answered(self, calls: Sequence[Call[Any]], timeout: float) -> list[Call[Any]]:
        """Those of the calls whose answers, or failures, are there; waits for the first of them."""
        by_ref = {call.ref: call for call in calls}
        if not by_ref:
            return []
        done, _ = self._ray.wait(
            list(by_ref), num_returns=1, timeout=timeout, fetch_local=False
        )
        return [by_ref[ref] for ref in done]

    def answer(self, call: Call[Returned], timeout: float = 60.0) -> Returned:
        """What a call came to. Raises LostError where nothing came back."""
        try:
            given: Returned = self._ray.get(call.ref, timeout=timeout)
        except self._ray.exceptions.RayError as error:
            raise LostError(_reason(error)) from None
        return given


class PostOnNode:
    """A `StationOnNode` on another machine, called from here."""

    def __init__(self, ray: Any, handle: Any) -> None:
        self._ray, self._handle = ray, handle

    def open(self) -> Call[NodeAnswer]:
        """See `StationOnNode.open`."""
        return Call(self._handle.open.remote())

    def measure(self, order: Order) -> Call[NodeAnswer]:
        """See `StationOnNode.measure`."""
        return Call(self._handle.measure.remote(order))

    def forget(self, stem: str) -> None:
        """See `StationOnNode.forget`. Nobody waits for it: what is not forgotten comes again and is known."""
        self._handle.forget.remote(stem)

    def stop(self, reason: str, *, now: bool) -> None:
        """See `StationOnNode.stop`."""
        self._handle.stop.remote(reason, now)

    def close(self) -> Call[None]:
        """See `StationOnNode.close`."""
        return Call(self._handle.close.remote())

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._handle)


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
    if address != "auto":
        _knock(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as error:  # Ray raises whatever its transport raises
        what = f"no Ray cluster answers: {_reason(error)}"
        raise CollectError(what, where=address, remedy=_REMEDY) from None
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def _of_head(question: Callable[[], Returned]) -> Returned:
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


def _knock(address: str) -> None:
    """Raise CollectError where an address is none, or where no gRPC server, such as a head's, answers at it."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) < 2**16:
        remedy = "give HOST:PORT, as in ray start --address=HOST:PORT, or auto"
        raise CollectError(
            f"--on {address!r} is no address of a cluster", remedy=remedy
        )
    place = found["host"].strip("[]"), int(found["port"])
    answer = b""
    try:
        with socket.create_connection(place, KNOCK_SECONDS) as knocking:
            if os.environ.get("RAY_USE_TLS") == "1":
                return  # Ray's own certificates are needed to say more
            knocking.sendall(_GREETING)
            while len(answer) < _FRAME and (more := knocking.recv(_FRAME)):
                answer += more
    except OSError as error:
        what = f"no Ray cluster answers: {error.strerror or error}"
        raise CollectError(what, where=address, remedy=_REMEDY) from None
    if len(answer) < _FRAME or answer[3] != _SETTINGS:
        what = "no Ray cluster answers: something else listens there"
        raise CollectError(what, where=address, remedy=_REMEDY)


def _reason(error: BaseException) -> str:
    """Ray's reason in one line: the last that is not empty of a remote traceback, else the first; all of them where
    that only begins a list, as of the versions that do not match."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    line = lines[0]
    if "Traceback" in str(error):
        line = lines[-1]
    elif line.endswith(":"):
        line = " ".join(lines)
    return line[:300]

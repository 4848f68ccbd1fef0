"""A cluster that is only pretended, for tests of the head: machines that answer at once, or die as a seed has it."""

import hashlib
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from sparkpub import __version__
from sparkpub.collect.bench import Order
from sparkpub.collect.books import Books, Outcome, known_records
from sparkpub.collect.choice import Choice
from sparkpub.collect.declaring import declare
from sparkpub.collect.fleet import accept
from sparkpub.collect.fleet.accept import Accepted, admit, asked
from sparkpub.collect.fleet.cluster import Call, LostError, Node
from sparkpub.collect.fleet.node import Delivery, NodeAnswer, NodeState, source_digest
from sparkpub.collect.fleet.session import Fleet, Patience
from sparkpub.collect.git import Committer
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.progress import Progress
from sparkpub.collect.public import public
from sparkpub.plan.matrix import Matrix
from sparkpub.record.record import Evidence, Machine, Moment, Plan, Record
from sparkpub.record.store import to_json
from tests.building import a_record

BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def standing(machine: str | None, **fields: Any) -> NodeState:
    """A machine that may measure, but for the fields given."""
    known = {"version": __version__, "source": source_digest(), "driver": None}
    return NodeState(machine, **(known | fields))


@dataclass
class Pretended:
    """A cluster of machines by name. `fates` are drawn for each run; `script` holds those to come first."""

    matrix: Matrix
    machines: list[str]
    seed: int = 0
    fates: tuple[str, ...] = ("measured",)
    script: list[str] = field(default_factory=list)
    deaths: int = 0
    keeps: bool = True
    """Whether a machine keeps what the head has not written."""
    given: list[tuple[str, Order]] = field(default_factory=list)
    """Every run that a machine was given."""
    kept: dict[str, list[Delivery]] = field(default_factory=dict)
    """What lies on each machine, not written by the head yet."""

    silent: Counter[str] = field(default_factory=Counter)
    """How often a machine will not say what it is."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.shown, _ = public(self.matrix)
        self.seconds = count()
        self.alive = {
            name: Node(f"{name}-0", "127.0.0.1", 1, 0) for name in self.machines
        }
        self.absent: dict[str, int] = {}
        self.answers: dict[int, Any] = {}

    # -- what the head asks of a cluster ---------------------------------------------------------------

    def nodes(self) -> list[Node]:
        """Those that are there; one that died comes back after some looks, as a new node."""
        for name in list(self.absent):
            self.absent[name] -= 1
            if self.absent[name] < 0:
                del self.absent[name]
                self.deaths += 1
                self.alive[name] = Node(f"{name}-{self.deaths}", "127.0.0.1", 1, 0)
        return sorted(self.alive.values(), key=lambda node: node.id)

    def ask(self, node: Node, question: Any, *given: Any) -> Call[Any]:
        machine = node.id.partition("-")[0]
        if self.silent[machine]:
            self.silent[machine] -= 1
            return self._call(LostError("no answer"))
        return self._call(standing(machine))

    def post(self, node: Node, document: Mapping[str, Any]) -> "PretendedPost":
        return PretendedPost(self, node)

    def answered(self, calls: list[Call[Any]], timeout: float) -> list[Call[Any]]:
        return [self.random.choice(calls)]

    def answer(self, call: Call[Any], timeout: float = 0.0) -> Any:
        found = self.answers[call.ref]
        if isinstance(found, LostError):
            raise found
        return found

    def _call(self, answer: Any) -> Call[Any]:
        self.answers[len(self.answers)] = answer
        return Call(len(self.answers) - 1)

    # -- what becomes of a run -------------------------------------------------------------------------

    def measured(self, machine: str, order: Order, **fields: Any) -> Delivery:
        """A run as a machine delivers it."""
        run = order.run
        at = Moment.at(BEGAN + timedelta(seconds=next(self.seconds)))
        stem = f"{run.environment}_{run.model}_{run.workload}_iter{run.iteration:02d}_{at.compact}"
        content = f"log of {stem}\n".encode()
        log = Evidence(
            role="log",
            path=f"{stem}.log",
            sha256=hashlib.sha256(content).hexdigest(),
            bytes=len(content),
        )
        known: dict[str, Any] = {
            "run_id": f"{self.matrix.campaign}-{stem}",
            "campaign": self.matrix.campaign,
            "model": run.model,
            "environment": run.environment,
            "workload": run.workload,
            "iteration": run.iteration,
            "repeat_of": order.repeat_of,
            "specification": self.shown.fingerprint(*run.cell),
            "plan": Plan(
                position=run.position, order="interleaved", attempt=order.attempt
            ),
            "started": at,
            "machine": Machine(id=machine),
            "evidence": (log,),
        }
        record = a_record(**(known | fields))
        return Delivery(to_json(record), {log.path: content})

    def die(self, machine: str) -> None:
        """The machine is gone, and will come back."""
        self.alive.pop(machine, None)
        self.absent[machine] = self.random.randint(0, 3)


class PretendedPost:
    """What `Post` does, at once."""

    def __init__(self, cluster: Pretended, node: Node) -> None:
        self.cluster, self.node = cluster, node
        self.machine = node.id.partition("-")[0]
        self.stopped: list[bool] = []
        self.killed = False

    def open(self) -> Call[NodeAnswer]:
        return self.cluster._call(
            NodeAnswer(tuple(self.cluster.kept.get(self.machine, ())))
        )

    def measure(self, order: Order) -> Call[NodeAnswer]:
        cluster, machine = self.cluster, self.machine
        if cluster.alive.get(machine) != self.node:
            return cluster._call(LostError("the node is gone"))
        cluster.given.append((machine, order))
        fate = (
            cluster.script.pop(0)
            if cluster.script
            else cluster.random.choice(cluster.fates)
        )
        if fate == "lost before":
            cluster.die(machine)
            return cluster._call(LostError("the node died"))
        if fate == "skipped":
            return cluster._call(NodeAnswer(why="skipped"))
        if fate == "cannot":
            return cluster._call(NodeAnswer(problem=("the disk is full",)))
        failed = {"status": "failed", "status_reason": "exit status 7"}
        delivery = cluster.measured(
            machine, order, **(failed if fate == "failed" else {})
        )
        if cluster.keeps:
            cluster.kept.setdefault(machine, []).append(delivery)
        if fate == "lost after":
            cluster.die(machine)
            return cluster._call(LostError("the node died"))
        if fate == "damaged":
            torn = dict.fromkeys(delivery.files, b"torn")
            return cluster._call(NodeAnswer((Delivery(delivery.record, torn),)))
        return cluster._call(NodeAnswer((delivery,) * (2 if fate == "twice" else 1)))

    def forget(self, stem: str) -> None:
        # The message is lost with the node, now and then.
        if self.cluster.alive.get(self.machine) == self.node:
            left = self.cluster.kept.get(self.machine, [])
            self.cluster.kept[self.machine] = [
                item for item in left if f"{stem}.log" not in item.files
            ]

    def stop(self, reason: str, *, now: bool) -> None:
        self.stopped.append(now)

    def close(self) -> Call[None]:
        return self.cluster._call(None)

    def kill(self) -> None:
        self.killed = True


def collected(
    cluster: Pretended, data: Path, **choice: Any
) -> tuple[Outcome, list[Record], list[str]]:
    """Have the pretended machines measure what is missing: the outcome, the records on disk, and what was said."""
    said: list[str] = []
    folder = data / cluster.matrix.campaign
    folder.mkdir(parents=True, exist_ok=True)
    shown, _ = public(cluster.matrix)
    declare(folder, shown)
    progress = Progress(cluster.matrix.campaign, 0, 0, said.append)
    chosen = Choice(data, commit=False, **choice)
    known = known_records(folder)
    books = Books(
        shown,
        folder,
        chosen,
        known,
        Committer(folder, False, False, progress),
        progress,
    )
    accepted = Accepted(accept.common([standing("x")]))
    for node in cluster.nodes():
        for there, found in asked(cluster, [node], cluster.matrix, 0.0):  # type: ignore[arg-type]
            admit(accepted, there, found)
    patience = Patience(survey=0, look=0, absent=0.3)
    fleet = Fleet(cluster.matrix, cluster, books, Interruption(), patience, accepted)  # type: ignore[arg-type]
    outcome = fleet.run()
    return outcome, known_records(folder), said

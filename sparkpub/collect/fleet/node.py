"""What runs on a machine of a fleet: it says what it is, measures one run at a time, and hands everything over.

Runs are measured by the same station as without a fleet, into a folder of the machine's own. What lies there stays
until the head has written it: a machine that was cut off brings it along when it comes back.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sparkpub
from sparkpub.collect import lock, state, station
from sparkpub.collect.bench import Order, in_the_way
from sparkpub.collect.doctor import Diagnosis, measuring
from sparkpub.collect.environments import ENVIRONMENTS
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.machine import inventory, nvml
from sparkpub.collect.progress import Progress
from sparkpub.collect.public import public
from sparkpub.collect.run import declared_architecture
from sparkpub.collect.station import NotMeasured, Station
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.record import store
from sparkpub.record.errors import SparkpubError, said_by_system
from sparkpub.record.store import Stored, canonical_json

FOLDER = "fleet"
"""Where a machine keeps runs that the head has not written yet, below the folder of its notes."""

OF_THE_NODE = ("LD_PRELOAD", "MALLOC_CONF")
"""Variables that Ray sets for its own node process: its memory allocator, which nothing else is to have."""


@dataclass(frozen=True)
class NodeState:
    """What a machine is, as far as it decides whether it may measure. Nothing here names it but its salted id."""

    machine: str | None
    version: str
    source: str
    """The first digits of the SHA-256 of sparkpub's own source."""
    driver: str | None
    gpus: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    """Key of a model to a digest of what its folder says; a model without a folder has none."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Environment to the id of its container image; an environment without an image has none."""
    obstacles: tuple[str, ...] = ()
    """Why runs of the matrix cannot be measured here, one line each."""
    niceness: int = 0
    """By how much Ray has lowered the priority of what it runs there."""


@dataclass(frozen=True)
class Delivery:
    """A run on its way to the head: the record as it is written, and its files by name."""

    record: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class NodeAnswer:
    """What came of a call. `problem` says, in lines, why nothing can be measured here any more."""

    deliveries: tuple[Delivery, ...] = ()
    why: NotMeasured | None = None
    problem: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def source_digest() -> str:
    """What tells one state of sparkpub's source from another, whatever its version says."""
    package = Path(sparkpub.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def standing(document: Mapping[str, Any] | None) -> NodeState:
    """What this machine is, and with a matrix what stands in the way of its runs."""
    as_started()
    with nvml.opened() as (gpus, _):
        facts = inventory.facts(gpus)
    models: dict[str, str] = {}
    images: dict[str, str] = {}
    obstacles: tuple[str, ...] = ()
    if document is not None:
        matrix = Matrix.model_validate(document)
        models, images = _models(matrix), _images(matrix)
        obstacles = tuple(in_the_way(matrix, plan(matrix)))
    return NodeState(
        facts.id,
        sparkpub.__version__,
        source_digest(),
        facts.driver,
        tuple(card.name for card in facts.gpus),
        models,
        images,
        obstacles,
        os.nice(0) - os.getpriority(os.PRIO_PROCESS, os.getppid()),
    )


def _models(matrix: Matrix) -> dict[str, str]:
    """What the folder of each model says of its configuration and weights, as a digest."""
    found = {}
    for key, model in matrix.models.items():
        facts = declared_architecture(model)
        if model.path is not None and facts is not None:
            content = canonical_json(facts.model_dump(mode="json"))
            found[key] = hashlib.sha256(content.encode()).hexdigest()[:12]
    return found


def _images(matrix: Matrix) -> dict[str, str]:
    """The image that each environment would run here."""
    found = {}
    for name, options in matrix.environments.items():
        image = ENVIRONMENTS[options.type].image_id(options)
        if image is not None:
            found[name] = image
    return found


def examined(document: Mapping[str, Any] | None) -> list[Diagnosis]:
    """What `sparkpub doctor` says of this machine, but for git, which is the head's."""
    as_started()
    matrix = None if document is None else Matrix.model_validate(document)
    return measuring(matrix, state.folder() / FOLDER)


def as_started() -> None:
    """Give this process, and what it starts, the surroundings that the node was started in.

    Ray sets variables for its workers (OMP_NUM_THREADS among them) and has the kernel end them first where
    memory runs out; runs would be measured otherwise than without it. The worker's parent is the node.
    """
    parent = os.getppid()
    with suppress(OSError):
        meant = _variables(parent)
        for name in OF_THE_NODE:
            meant.pop(name, None)
        for name in set(os.environ) - set(meant):
            del os.environ[name]
        os.environ.update(meant)
    with suppress(OSError):
        chosen = Path(f"/proc/{parent}/oom_score_adj").read_text()
        Path("/proc/self/oom_score_adj").write_text(chosen)


def _variables(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    content = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="surrogateescape")
    pairs = (entry.partition("=") for entry in content.split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


class StationOnNode:
    """The station of one machine, called from the head. Calls come one at a time, but `stop`, which comes between."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        as_started()
        self._matrix = Matrix.model_validate(document)
        self._shown, self._redactor = public(self._matrix)
        self._folder = state.folder() / FOLDER / self._matrix.campaign
        self._interruption = Interruption()
        self._said: list[str] = []
        self._stack = ExitStack()
        self._station: Station | None = None

    def open(self) -> NodeAnswer:
        """Take the machine for the campaign, clean up what was left behind, and hand over runs that the head has not
        written yet."""
        try:
            self._stack.enter_context(lock.locked(self._matrix.campaign, self._folder))
            self._folder.mkdir(parents=True, exist_ok=True)
            self._said += station.tidied(self._folder, self._redactor)
            progress = Progress(self._matrix.campaign, 0, 0, self._said.append)
            self._stack.callback(progress.close)
            self._station = self._stack.enter_context(
                station.opened(
                    self._matrix,
                    self._shown,
                    self._folder,
                    self._redactor,
                    self._interruption,
                    progress,
                )
            )
            left = tuple(_delivery(run) for run in store.read_folder(self._folder))
        except (SparkpubError, OSError) as error:
            self._stack.close()
            return NodeAnswer(problem=_lines(error), said=self._spoken())
        return NodeAnswer(left, said=self._spoken())

    def measure(self, order: Order) -> NodeAnswer:
        """One run, from its gates to its record."""
        assert self._station is not None
        try:
            ended = self._station.measure(order)
        except (SparkpubError, OSError) as error:
            return NodeAnswer(problem=_lines(error), said=self._spoken())
        if not isinstance(ended, Stored):
            return NodeAnswer(why=ended, said=self._spoken())
        return NodeAnswer((_delivery(ended),), said=self._spoken())

    def forget(self, stem: str) -> None:
        """The head has this run, or wants none of it."""
        path = self._folder / f"{stem}.json"
        if not path.is_file():
            return
        for file in reversed(store.read_record(path).files):
            file.unlink(missing_ok=True)

    def stop(self, reason: str, now: bool) -> None:
        """Start nothing any more, and end the current run where it has to be now."""
        self._interruption.reason = reason
        self._interruption.finish = True
        self._interruption.stop = now

    def close(self) -> None:
        """Put everything on the machine back."""
        self._stack.close()

    def _spoken(self) -> tuple[str, ...]:
        said = tuple(self._said)
        self._said.clear()
        return said


def _delivery(stored: Stored) -> Delivery:
    files = {
        item.path: stored.evidence_path(item).read_bytes()
        for item in stored.record.evidence
    }
    return Delivery(stored.path.read_text(encoding="utf-8"), files)


def _lines(error: SparkpubError | OSError) -> tuple[str, ...]:
    if isinstance(error, SparkpubError):
        return tuple(error.lines())
    return (said_by_system(error),)

"""What an environment is: where a command runs. It launches, and answers questions about what it launched."""

import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import ClassVar, Generic, TypeVar

from sparkpub.collect.machine import processes
from sparkpub.collect.machine.processes import OWNER_VARIABLE, RUN_VARIABLE
from sparkpub.plan.environments import LaunchOptions, Place, SharedGpus
from sparkpub.plan.references import filled, filled_words
from sparkpub.plan.workloads.base import PYTHON, WORKDIR, Command
from sparkpub.record.errors import CollectError, NeverStartedError
from sparkpub.record.record import Container, Isolation
from sparkpub.record.telemetry import VISIBLE

INSIDE_WORKDIR = "/sparkpub"
"""Where an environment with a root of its own shows the run's folder."""


class Running(ABC):
    """A command that was started, from its launch to its end. `pid` is its root process on the host, `argv` what it was
    started with.

    `address` is where this machine reaches the ports that it opens; empty where it does not. `isolation` says what
    keeps it apart from the rest of the machine.
    """

    pid: int
    argv: tuple[str, ...]
    address: str
    isolation: Isolation
    launched: float
    """When `start` was called, by the monotonic clock, and by the other."""
    launched_epoch: float

    def __init__(self) -> None:
        self.seconds, self.ended = 0.0, datetime.now(UTC)
        """From the launch to the end, or to the last look; and when that was by the clock, which goes on while the
        machine sleeps."""
        self.code: int | None = None
        """Its exit status, negative for a signal; None until it has ended."""
        self.error: str | None = None
        """Why it ended, where its exit status does not say it."""
        self.container: Container | None = None
        """What the engine said of its container then."""

    def __str__(self) -> str:
        return self.error or f"exit status {self.code}"

    def facts(self) -> Container | None:
        """What the engine says of the container that runs; None where there is none."""
        return None

    def wait(self, timeout: float = 0.0) -> bool:
        """Whether it has ended, after `timeout` seconds at most: its end wakes us at once."""
        if self.code is None:
            self._end(timeout)
            self.seconds = time.monotonic() - self.launched
            self.ended = datetime.now(UTC)
        return self.code is not None

    def ticks(self, pace: float) -> Iterator[float]:
        """The seconds since the launch, every `pace` seconds until it ends."""
        while not self.wait(pace):
            yield self.seconds

    def stop(self, grace: float = 10.0) -> None:
        """End the whole process tree or container: first politely, after `grace` seconds by force."""
        if self.code is None:  # else its process id may be somebody else's by now
            why_not = self._stop(grace)
            if not self.wait(30):
                self.code, self.error = -signal.SIGKILL, why_not

    def close(self) -> None:
        """End it where it runs, and undo everything that launching did (mounts, containers). Safe to call twice."""
        try:
            self.stop()
        finally:
            self.undo()

    @abstractmethod
    def _end(self, timeout: float) -> None:
        """Take in how it ended, where it does in time; see `wait`."""

    @abstractmethod
    def _stop(self, grace: float) -> str:
        """See `stop`; returns why it may not have ended."""

    @abstractmethod
    def undo(self) -> None:
        """Undo what launching did. Safe to call twice."""


@dataclass(frozen=True)
class Obstacle:
    """Why an environment cannot be measured in now, and what to do about it."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Launch:
    """What to start, of which run, and where its traces go."""

    command: Command
    workdir: Path
    """The run's folder on the host; the environment makes it visible inside."""
    log: Callable[[bytes], object]
    """Takes merged stdout and stderr as they come; never raises."""
    run: str
    owner: str = field(default_factory=processes.me)
    """The collector, as `processes.me` spells it: whose orphans these are, should it die."""
    server: Running | None = None
    """The server that the command is a client of; where it has a network of its own, the command is put into it."""

    @property
    def marks(self) -> Mapping[str, str]:
        """Variables by which the processes of the run are found again."""
        return {RUN_VARIABLE: self.run, OWNER_VARIABLE: self.owner}


AnyPlace = TypeVar("AnyPlace", bound=LaunchOptions)


class Environment(ABC, Generic[AnyPlace]):
    """One kind of place, with the options that a matrix declares."""

    no_container: ClassVar[str] = "not a container"
    """Why a record has no facts of a container."""

    def __init__(self, options: AnyPlace) -> None:
        self.options = options

    @property
    def shares_ports(self) -> bool:
        """Whether a port that a command opens here is one of this machine's own."""
        return True

    @abstractmethod
    def obstacles(self, models: Sequence[str] = ()) -> Sequence[Obstacle]:
        """What stands in the way on this machine now: rights, images, tools, folders of models that are not there."""

    def inherited(self) -> Mapping[str, str]:
        """Variables that a command gets here besides its own and those of the matrix."""
        return {}

    def visible(self, path: str) -> str:
        """A host path as the command inside sees it."""
        return path

    def has_program(self, name: str) -> bool | None:  # noqa: ARG002
        """Whether a program is installed here; None where that shows only inside."""
        return None

    def has_module(self, name: str) -> bool | None:  # noqa: ARG002
        """Whether the Python of a command has a module; None where that shows only inside."""
        return None

    def start(self, launch: Launch) -> Running:
        """Start the command. Raises CollectError where it cannot be started, as NeverStartedError where nothing can be
        started here now."""
        began = time.monotonic(), time.time()
        try:
            running = self.launch(launch)
        except CollectError as error:
            if not self.obstacles():
                raise
            where, remedy = error.where, error.remedy
            raise NeverStartedError(error.what, where=where, remedy=remedy) from None
        running.launched, running.launched_epoch = began
        return running

    @abstractmethod
    def launch(self, launch: Launch) -> Running:
        """What `start` does in an environment of this kind. Raises CollectError."""

    @staticmethod
    @abstractmethod
    def reap() -> Sequence[str]:
        """Clean up what a killed collector of this machine left behind; says what was cleaned."""

    def resolved(
        self, launch: Launch, workdir: str, python: str
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Argv and variables of a launch with placeholders and secrets filled; the matrix's variables win over the
        workload's."""
        interpreter = self.options.python or python

        def fill(text: str) -> str:
            return text.replace(WORKDIR, workdir).replace(PYTHON, interpreter)

        given = dict(launch.command.variables) | dict(self.options.env)
        variables = {name: fill(filled(value)) for name, value in given.items()}
        argv = tuple(fill(part) for part in filled_words(launch.command.argv))
        return argv, _visible_gpus(self.options) | variables | dict(launch.marks)


def _visible_gpus(options: LaunchOptions) -> dict[str, str]:
    """What shows a command of the machine its GPUs: those that the matrix names, else those that the collector was
    given. An engine gives its containers theirs by itself."""
    if not isinstance(options, SharedGpus):
        return {}
    if options.gpus is not None:
        return {VISIBLE: ",".join(map(str, options.gpus))}
    given = os.environ.get(VISIBLE)
    return {} if given is None else {VISIBLE: given}


def missing_sources(binds: Sequence[Place], models: Sequence[str]) -> list[Obstacle]:
    """Host folders that binds name, and folders of models below them, that do not exist."""
    found = [
        Obstacle(
            f"bind source {bind.source} does not exist", "create it or correct binds:"
        )
        for bind in binds
        if not Path(bind.source).exists()
    ]
    bound = [
        path
        for path in models
        if any(PurePosixPath(path).is_relative_to(bind.source) for bind in binds)
    ]
    return found + missing_models(bound)


def missing_models(paths: Sequence[str]) -> list[Obstacle]:
    """Folders of models that do not exist on the host."""
    remedy = "download it there, or correct the model's path:"
    return [
        Obstacle(f"no model at {path}", remedy)
        for path in paths
        if not Path(path).exists()
    ]


def through_binds(path: str, binds: Sequence[Place]) -> str:
    """A host path as seen inside: under the longest bind that covers it; unchanged where none does."""
    covering = [
        bind for bind in binds if PurePosixPath(path).is_relative_to(bind.source)
    ]
    if not covering:
        return path
    bind = max(covering, key=lambda bind: len(bind.source))
    return str(
        PurePosixPath(bind.target) / PurePosixPath(path).relative_to(bind.source)
    )

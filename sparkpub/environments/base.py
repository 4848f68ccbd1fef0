"""What an environment is: where a command runs. It launches, and answers questions about what it launched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, Field

from sparkpub.record import Container
from sparkpub.workloads.base import Command


class Options(BaseModel):
    """An environment's options in the matrix; an unknown key is an error. Every option has an effect."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: Mapping[str, str] = Field(default_factory=dict)
    """Variables of the command, besides the workload's own."""
    python: str | None = None
    """The Python interpreter of the environment; None for its default."""


@dataclass(frozen=True)
class Exit:
    """How a command ended. `code` is negative for a signal."""

    code: int
    error: str | None = None
    container: Container | None = None


class Running(Protocol):
    """A command that was started. `pid` is its root process on the host."""

    pid: int

    def wait(self, timeout: float) -> Exit | None:
        """The end, or None where it is still running after `timeout` seconds."""
        ...

    def stop(self, grace: float = 10.0) -> Exit:
        """End the whole process tree or container: first politely, after `grace` seconds by force."""
        ...

    def close(self) -> None:
        """Undo everything that launching did (mounts, containers). Safe to call twice."""
        ...


@dataclass(frozen=True)
class Obstacle:
    """Why an environment cannot be measured in now, and what to do about it."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Launch:
    """What to start and where its traces go."""

    command: Command
    workdir: Path
    """The run's folder on the host; the environment makes it visible inside."""
    log: BinaryIO
    """Receives merged stdout and stderr as they come."""
    labels: Mapping[str, str] = field(default_factory=dict)


class Environment(Protocol):
    """One kind of place. Members of the registry `ENVIRONMENTS` are instances without state."""

    name: ClassVar[str]
    options: ClassVar[type[Options]]

    def obstacles(self, options: Any) -> Sequence[Obstacle]:
        """What stands in the way on this machine now: rights, images, tools."""
        ...

    def visible(self, path: str, options: Any) -> str:
        """A host path as the command inside sees it."""
        ...

    def launch(self, launch: Launch, options: Any) -> Running:
        """Start the command. Raises CollectError where it cannot be started."""
        ...

    def reap(self) -> Sequence[str]:
        """Clean up what a killed collector of this machine left behind; says what was cleaned."""
        ...

"""Starting a command in an environment, for tests."""

import time
from collections.abc import Callable
from pathlib import Path

from sparkpub.collect.environments.base import Launch, Running
from sparkpub.collect.machine import processes
from sparkpub.plan.workloads.base import Command


class Kept:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.content = b""

    def write(self, chunk: bytes) -> None:
        self.content += chunk

    @property
    def text(self) -> str:
        return self.content.decode()


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for something another process does. The limit is for what never comes: a busy machine takes long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def a_launch(
    workdir: Path, *argv: str, run: str = "r1", who: str | None = None
) -> tuple[Launch, Kept]:
    log = Kept()
    return Launch(Command(argv), workdir, log.write, run, who or processes.me()), log


def ended(running: Running) -> Running:
    """A command that has ended by itself, once everything is undone."""
    assert running.wait(60)
    running.close()
    return running

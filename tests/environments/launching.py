"""Starting a command in an environment, for tests."""

from pathlib import Path

from sparkpub.environments import owner
from sparkpub.environments.base import OWNER_LABEL, RUN_LABEL, Launch
from sparkpub.workloads.base import Command


class Kept:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.content = b""

    def write(self, chunk: bytes) -> None:
        self.content += chunk

    @property
    def text(self) -> str:
        return self.content.decode()


def a_launch(workdir: Path, *argv: str, run: str = "r1", who: str | None = None) -> tuple[Launch, Kept]:
    log = Kept()
    labels = {RUN_LABEL: run, OWNER_LABEL: who or owner.me()}
    return Launch(Command(argv), workdir, log, labels), log

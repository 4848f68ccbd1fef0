"""A server that lives for several runs: started once, kept while consecutive runs are clients of it, then stopped.

Its processes and containers carry the collector's marks as those of a run do, so that the next collector ends what a
killed one left.
"""

import http
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sparkpub.collect import workdir
from sparkpub.collect.environments.base import Launch, Running
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.job import Job
from sparkpub.collect.log import Log
from sparkpub.collect.machine.tree import ProcessTree
from sparkpub.collect.progress import Progress, duration
from sparkpub.plan.address import LOOPBACK
from sparkpub.plan.environments import Server
from sparkpub.plan.workloads.payload import pages
from sparkpub.record.errors import CollectError, NeverStartedError
from sparkpub.record.record import Container, Record

SERVER_START = "server_start_seconds"
FOLDER = ".server"
"""The server's own folder, in that of the campaign."""
PACE = 0.1
"""Seconds between questions whether it is ready."""
ANSWER_SECONDS = 5.0
"""How long one question may take."""


class LiveServer:
    """The server that a run wants. `problem` says why it cannot be used, and is None once it is ready."""

    def __init__(self, job: Job, name: str, folder: Path) -> None:
        assert job.server is not None
        assert job.options.server is not None
        self.declared: Server = job.options.server
        """As the matrix has it."""
        self.name = name
        self._job, self._command, self._folder = job, job.server, folder
        self._work = workdir.new(folder)
        self._log = Log(folder / "log")
        self.problem: str | None = None
        self.start_seconds: float | None = None
        self.ready_at: datetime | None = None
        self.first_run: str | None = None
        """The run that has the server's start among its metrics."""
        self.answer: str | None = None
        """What the model said before the first run; None where the server has no chat."""
        self.tree: ProcessTree | None = None
        self.container: Container | None = None
        """The container that it runs in, where an engine runs it."""
        self.process: Running | None = None
        """None where it was not started, or was stopped."""

    def heard_in(self, path: Path) -> Log:
        """Have what it printed before its first run, and what it prints until the log is closed, in a file of a run."""
        shutil.copyfile(self._folder / "log", path)
        self._log.into(path)
        return self._log

    def serves(self, job: Job) -> bool:
        """Whether it is the server that a run wants, and runs: in the same place, with the same command."""
        same_place = job.run.environment == self._job.run.environment
        usable = self.problem is None and self.ended() is None
        return usable and same_place and job.server == self._command

    def start(self, interruption: Interruption, progress: Progress) -> None:
        """Launch it and wait until it is ready, has ended, took too long, or nothing new may be started any more; ask
        one that is ready for an answer."""
        label = f"{self._job.run.model}/{self._job.run.environment}"
        server, environment = self.declared, self._job.environment
        shared = environment.shares_ports
        if shared and _answers(LOOPBACK, server):
            self.problem = (
                f"something else listens on port {server.port} of this machine already; stop it, or give the server "
                "another port"
            )
            return
        launch = Launch(self._command, self._work, self._log.write, self.name)
        try:
            self.process = environment.start(launch)
        except NeverStartedError:
            raise  # a reason that lasts would fail every later run too
        except CollectError as error:
            self.problem = error.lines()[0]
            return
        self.tree = ProcessTree(self.process.pid)
        self.container = self.process.facts()
        if self.process.address:
            self.problem = self._why_not_ready(
                self.process,
                shared,
                interruption,
                lambda took: progress.live(label, "starting the server", took),
            )
        else:
            self.problem = (
                "the server's container has no network that this machine reaches: "
                "leave network: out, or name another one"
            )
        if self.start_seconds is not None:
            ready = duration(self.start_seconds)
            progress.line(f"{label}: server ready after {ready}")
            self._ask()

    def _why_not_ready(
        self,
        process: Running,
        shared: bool,
        interruption: Interruption,
        say: Callable[[str], object],
    ) -> str | None:
        """Wait until it is ready; else why it is not. `shared`: whether its port is one of this machine."""
        server, address = self.declared, process.address
        for took in process.ticks(PACE):
            page = pages.ask(self.url, server.health, limit=ANSWER_SECONDS, keyed=False)
            if page.status == http.HTTPStatus.OK:
                self.start_seconds = round(time.monotonic() - process.launched, 3)
                self.ready_at = datetime.now(UTC)
                return None
            if interruption.finish:
                return f"{interruption.stopped} while the server started"
            if took > server.ready_timeout:
                break
            say(duration(took))
        if process.code is not None:
            return f"the server ended before it was ready: {process}"
        late = f"the server was not ready after {duration(server.ready_timeout)}"
        if not shared and not _answers(address, server):
            late += (
                f": nothing listens on port {server.port} of its container's address; "
                "a server in a container has to listen on 0.0.0.0, not on 127.0.0.1"
            )
        return late

    @property
    def url(self) -> str:
        """Where this machine reaches it."""
        assert self.process is not None
        return f"http://{self.process.address}:{self.declared.port}"

    def _ask(self) -> None:
        """Keep one greedy answer of the model. An empty one, or a page, is why nothing is measured, unless the weights
        are random."""
        names = pages.listed(pages.ask(self.url, pages.MODELS).document)
        if not names:
            return
        try:
            found = pages.answer(self.url, names[0])
        except pages.StopError:
            return
        self.answer = " ".join(found["text"].split())
        if not self._job.matrix.models[self._job.run.model].has_random_weights:
            self.problem = pages.senseless(names[0], found["text"])

    def served(self, record: Record) -> None:
        """A run has its record: the first one has the server's start."""
        if SERVER_START in record.metrics:
            self.first_run = record.run_id

    def ended(self) -> str | None:
        """How it ended, in words; None while it runs."""
        if self.process is None:
            return "the server did not start"
        return f"the server ended: {self.process}" if self.process.wait() else None

    def close(self) -> None:
        """End its processes or container, and remove its folder."""
        if self.process is not None:
            self.process.close()
            self.process = None
        workdir.remove(self._folder)


def _answers(address: str, server: Server) -> bool:
    """Whether anything takes connections on the server's port."""
    with suppress(OSError):
        place = (address, server.port)
        socket.create_connection(place, ANSWER_SECONDS).close()
        return True
    return False

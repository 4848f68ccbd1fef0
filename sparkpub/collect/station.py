"""A machine that is ready to measure: what is set up once for a campaign, and then one run after the other.

A collection on this machine has one station; one that is spread over several machines has one on each of them.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sparkpub.collect import journal, workdir
from sparkpub.collect.environments import ENVIRONMENTS
from sparkpub.collect.gates import Gatekeeper, why_unmet
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.job import Job
from sparkpub.collect.machine import cgroup, controls, inventory, nvml, processes
from sparkpub.collect.obstacles import refuse_obstacles
from sparkpub.collect.packages import installed
from sparkpub.collect.progress import Progress
from sparkpub.collect.run import Run
from sparkpub.collect.server import FOLDER, LiveServer
from sparkpub.plan.matrix import Matrix
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Gate, Machine, Moment
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import Stored


def tidied(matrix: Matrix, folder: Path) -> list[str]:
    """Undo what a killed collector left on the machine (processes, mounts, containers, clocks), and record its run in
    the campaign's folder; says what was done."""
    said: list[str] = []
    for environment in ENVIRONMENTS.values():
        said += environment.reap()
    said += controls.restore_after_crash()
    workdir.remove(folder / FOLDER)
    if not folder.is_dir():
        return said
    recovered = journal.recover(folder, Redactor(matrix.words))
    if recovered is not None:
        run = recovered.record.run_id
        said.append(f"recorded {run}, which a killed collector left, as interrupted")
    return said


@contextmanager
def opened(
    matrix: Matrix, folder: Path, interruption: Interruption, progress: Progress
) -> Iterator["Station"]:
    """Set up this machine for a campaign, and put everything back. Records and evidence go into `folder`."""
    with ExitStack() as stack:
        stack.callback(cgroup.leave, processes.notes())
        gpus, why_no_gpu = stack.enter_context(nvml.opened())
        controlled = stack.enter_context(
            controls.applied(matrix.gates, gpus, why_no_gpu)
        )
        for gate in controlled:
            if not gate.met:
                what = f"{gate.name} {gate.wanted} was not set: {gate.reason}"
                progress.line(f"{what}; running anyway (recorded)")
        here = Station(
            matrix,
            Redactor(matrix.words),
            folder,
            inventory.facts(gpus, controlled),
            interruption,
            progress,
            Gatekeeper(matrix.gates, why_no_gpu, folder.parent),
            controlled,
        )
        stack.callback(here.stop_server)
        yield here


@dataclass
class Station:
    """One machine, set up for a campaign."""

    matrix: Matrix
    redactor: Redactor
    folder: Path
    machine: Machine
    interruption: Interruption
    progress: Progress
    keeper: Gatekeeper
    controlled: tuple[Gate, ...]
    server: LiveServer | None = None
    """The one server that runs at a time."""
    servers_started: int = 0
    packages: dict[str, "dict[str, str] | str"] = field(default_factory=dict)
    """Environment to its packages, or to why they are not known."""

    def measure(self, job: Job) -> Stored | None:
        """Gates, the server where the run needs one, the run, its record; None where the matrix says to skip a run
        whose gate is not met, or nothing new may be started any more.

        Raises CollectError where nothing can be measured here any more.
        """
        place = job.run.environment
        if place not in self.packages:
            self.packages[place] = installed(job.environment)
        gates = self.controlled
        server = self._serving(job)
        if job.server is not None and server is None:
            # The idle machine's conditions first, then those of any run that a server serves.
            passed = self.wait(job, None)
            if passed is None:
                return None
            gates += passed
            server = self._start_server(job)
            if self.interruption.finish:
                return None
        if server is None or server.problem is None:
            passed = self.wait(job, server)
            if passed is None:
                return None
            gates += passed
        try:
            with Run(self, job, gates, server) as run:
                run.follow()
                run.seal()
                stored = run.finish()
        except CollectError as error:
            # A reason that lasts would fail every later run: then the collection stops here, and can be resumed.
            refuse_obstacles(self.matrix, [job.run])
            raise error from None
        if server is not None:
            server.served(stored.record)
            if stored.record.status != "ok":
                self.stop_server()
        return stored

    def _serving(self, job: Job) -> LiveServer | None:
        """The live server, where it is the one that a run wants and can be used; any other is stopped."""
        if self.server is not None and not self.server.serves(job):
            self.stop_server()
        return self.server

    def _start_server(self, job: Job) -> LiveServer:
        """A new server that is ready, or with the problem that keeps it from being so."""
        self.servers_started += 1
        now = Moment.at(datetime.now(UTC)).compact
        name = (
            f"{job.run.environment}_{job.run.model}_server_{now}-{self.servers_started}"
        )
        self.server = LiveServer(job, name, self.folder / FOLDER)
        self.server.start(self.interruption, self.progress)
        return self.server

    def stop_server(self) -> None:
        """End the live server, if there is one."""
        live, self.server = self.server, None
        if live is not None:
            live.close()

    def wait(self, job: Job, server: LiveServer | None) -> tuple[Gate, ...] | None:
        """The gates before a run, or before its server starts; None where the run may not start."""
        ends = (job.last_ended, None if server is None else server.ready_at)
        last = max((moment for moment in ends if moment is not None), default=None)
        tree = None if server is None else server.tree
        with nvml.opened(job.gpus) as (gpus, _):
            passed = self.keeper.passed(
                gpus,
                last,
                self.interruption,
                lambda phase, detail: self.progress.live(job.label, phase, detail),
                tree,
            )
        if self.interruption.finish:
            return None
        action, why = self.matrix.gates.on_unmet, why_unmet(passed)
        if not why:
            return passed
        if action == "stop":
            remedy = "fix the machine, or set on_unmet: run or skip"
            what = f"stopped before {job.label}: {why}"
            raise CollectError(what, where="gates", remedy=remedy)
        if action == "skip":
            self.progress.line(f"{job.label}: skipped: {why}")
            return None
        self.progress.line(f"{job.label}: {why}; running anyway (recorded)")
        return passed

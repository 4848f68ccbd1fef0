"""One run from launch to exit: started, watched, ended where it must be, and what was seen of it."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sparkpub.collect import sampling
from sparkpub.collect.bench import Bench, RunJob, gpu_indices
from sparkpub.collect.environments.base import Exit, Launch, Running
from sparkpub.collect.gates import floor_gib
from sparkpub.collect.journal import Log
from sparkpub.collect.progress import duration
from sparkpub.collect.server import LiveServer
from sparkpub.collect.standstill import Clocks, clocks_parted
from sparkpub.collect.watch import Watch
from sparkpub.collect.workdir import WORK
from sparkpub.plan.references import filled
from sparkpub.record.errors import CollectError, NeverStartedError
from sparkpub.record.record import Event, Isolation, Record, Status
from sparkpub.record.redaction import Redactor
from sparkpub.record.telemetry import Telemetry

TICK = 0.25
"""Seconds between looks at a run; its end wakes us at once."""


@dataclass
class Followed:
    """What was seen of a run from launch to exit. Times are in seconds since the launch."""

    argv: tuple[str, ...]
    events: list[Event]
    unavailable: dict[str, str]
    ended: datetime
    stopped: tuple[Status, str] | None
    """Why the collector ended the run, or could not start it: status and reason."""
    exit: Exit | None = None
    isolation: Isolation | None = None
    launched_epoch: float = 0.0
    duration: float = 0.0
    measuring_began: float | None = None
    """When the line that begins the measurement was printed."""
    measuring_ended: float | None = None
    """Likewise for the line that ends it."""
    log_cut: bool = False
    telemetry: Telemetry = field(default_factory=lambda: Telemetry({}))


def follow(
    bench: Bench, job: RunJob, draft: Record, place: Path, server: LiveServer | None
) -> Followed:
    """Launch a run in its own folder `place`, as a client of `server` where there is one, and watch it to its end.

    Raises NeverStartedError where the environment cannot start any run now.
    """
    redactor = for_run(bench, job, place)
    with ExitStack() as stack:
        log = Log(
            place / "log",
            redactor,
            begins=job.command.measured_from,
            ends=job.command.measured_until,
        )
        stack.callback(log.close)
        watch = Watch(
            bench.redactor,
            _lowest_clock(bench),
            lambda kind, text: bench.progress.event(job.order.label, kind, text),
        )
        stack.callback(watch.close)
        if server is not None:
            stack.callback(server.quiet)
            log.write_served(server.heard.start())
            if server.problem is not None:
                return _not_started(job, watch, server.problem)
            server.heard.pass_on(log.write_served)
        return _RunUnderWay(bench, job, draft, place, server, log, watch).follow()


def for_run(bench: Bench, job: RunJob, place: Path) -> Redactor:
    """A redactor that also replaces the run's own folder, whose name changes with the machine."""
    variables = {
        name: filled(value)
        for name, value in (
            *job.command.variables.items(),
            *job.environment_options.env.items(),
        )
    }
    return bench.redactor.also(variables, {str((place / WORK).resolve()): "<workdir>"})


def _lowest_clock(bench: Bench) -> float | None:
    """The highest SM clock of the slowest GPU, in MHz."""
    clocks = [
        card.clock_max_sm_mhz
        for card in bench.machine.gpus
        if card.clock_max_sm_mhz is not None
    ]
    return min(clocks, default=None)


def _not_started(job: RunJob, watch: Watch, reason: str) -> Followed:
    return Followed(
        job.command.argv,
        watch.events,
        watch.unavailable,
        datetime.now(UTC),
        ("failed", reason),
    )


@dataclass
class _RunUnderWay:
    """A run while it is on."""

    bench: Bench
    job: RunJob
    draft: Record
    place: Path
    server: LiveServer | None
    log: Log
    watch: Watch
    launched: float = 0.0
    """On the monotonic clock."""

    def follow(self) -> Followed:
        """Launch, watch, and read what the sampler wrote."""
        telemetry = self.place / "telemetry.csv"
        interval = self.bench.matrix.telemetry.interval
        indices = gpu_indices(self.job.environment_options)
        tree = None if self.server is None else self.server.tree
        with sampling.sampling(
            telemetry,
            interval,
            indices,
            None if tree is None else tree.pid,
            port=self.job.port,
        ) as sampler:
            for row in sampler.fresh():
                self.watch.sample(row)
            self.launched, epoch = time.monotonic(), time.time()
            try:
                running = self._launch()
            except NeverStartedError:
                raise
            except CollectError as error:
                return _not_started(self.job, self.watch, error.lines()[0])
            try:
                sampler.launched(running.pid, self.launched)
                clocks = Clocks.now()
                ended, stopped = self._watched(running, sampler)
                took, at = time.monotonic() - self.launched, datetime.now(UTC)
            except BaseException:
                running.stop()  # nobody would watch it any more
                raise
            finally:
                running.close()
        for text in clocks_parted(clocks, Clocks.now()):
            self.watch.note("note", text)
        return Followed(
            running.argv,
            self.watch.events,
            self.watch.unavailable,
            at,
            stopped,
            exit=ended,
            isolation=running.isolation,
            launched_epoch=epoch,
            duration=took,
            telemetry=self._after(telemetry, took),
            log_cut=self.log.truncated,
            measuring_began=self._since_launch(self.log.began),
            measuring_ended=self._since_launch(self.log.ended),
        )

    def _launch(self) -> Running:
        """Start the command. Raises CollectError where that fails, as NeverStartedError where it would for any run."""
        environment, options = self.job.client
        launch = Launch(
            self.job.command,
            self.place / WORK,
            self.log.write,
            self.draft.run_id,
            server=None if self.server is None else self.server.running,
        )
        try:
            return environment.launch(launch, options)
        except CollectError as error:
            if environment.obstacles(options):
                raise NeverStartedError(
                    error.what, where=error.where, remedy=error.remedy
                ) from None
            raise

    def _watched(
        self, running: Running, sampler: sampling.Sampling
    ) -> tuple[Exit, tuple[Status, str] | None]:
        """Wait for the end, or bring it about; returns it, with status and reason where the collector ended it."""
        progress, temperature = self.bench.progress, ""
        while True:
            ended = running.wait(TICK)
            elapsed = time.monotonic() - self.launched
            for row in sampler.fresh():
                self.watch.sample(row)
                temperature = (
                    f"{row['gpu_temp_celsius']} °C" if row["gpu_temp_celsius"] else ""
                )
            self.watch.kernel(elapsed)
            if ended is not None:
                return ended, None
            if not sampler.alive():
                self.watch.note(
                    "note",
                    "the sampler ended before the run; telemetry stops there",
                    elapsed,
                )
            stopped = self._must_stop(elapsed)
            if stopped is not None:
                return running.stop(), stopped
            share = None
            if self.job.order.expected_seconds:
                share = elapsed / self.job.order.expected_seconds
            progress.live(
                self.job.order.label,
                "running",
                f"{duration(elapsed)} {temperature}".strip(),
                share,
            )

    def _must_stop(self, elapsed: float) -> tuple[Status, str] | None:
        """Why the run must be ended now, as status and reason."""
        bench, watch = self.bench, self.watch
        if bench.interruption.stop:
            return "interrupted", f"stopped by {bench.interruption.reason}"
        if elapsed > bench.matrix.timeout:
            text = f"still running after {duration(bench.matrix.timeout)}"
            watch.note("timeout", text, elapsed)
            return "timeout", text
        floor = floor_gib(bench.matrix.gates, bench.machine.unified_memory)
        if (
            floor is not None
            and watch.available_gib is not None
            and watch.available_gib < floor
        ):
            text = f"MemAvailable fell to {watch.available_gib:.2f} GiB, below the floor of {floor:g} GiB"
            watch.note("memory-floor", text, elapsed)
            return "failed", text
        gone = None if self.server is None else self.server.ended()
        return None if gone is None else ("failed", gone)

    def _after(self, path: Path, took: float) -> Telemetry:
        """The telemetry, once everything is over, and what only shows then."""
        self.log.close()
        if self.log.problem is not None:
            self.watch.note(
                "note", f"the log could not be written to its end: {self.log.problem}"
            )
        telemetry = sampling.read(path)
        if self.server is None and not self.job.runs_already:
            self.watch.left_behind(telemetry)
        self.watch.kernel(took)
        return telemetry

    def _since_launch(self, moment: float | None) -> float | None:
        return None if moment is None else moment - self.launched

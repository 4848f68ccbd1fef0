"""The loop: what is missing is measured, each run is committed, and everything survives an end at any instant."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sparkpub.collect import journal
from sparkpub.collect.bench import Bench, Job, gpu_indices, prepare, refuse_obstacles
from sparkpub.collect.cells import headline, look, outliers
from sparkpub.collect.choice import Choice
from sparkpub.collect.declaring import declare, refuse_another_campaign
from sparkpub.collect.environments import ENVIRONMENTS
from sparkpub.collect.gates import Gatekeeper, Passed, Say
from sparkpub.collect.git import Committer
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.lock import locked
from sparkpub.collect.machine import controls, inventory, nvml
from sparkpub.collect.packages import installed
from sparkpub.collect.progress import Progress, duration
from sparkpub.collect.public import public
from sparkpub.collect.run import measure
from sparkpub.collect.server import LiveServer, Servers, clear_server
from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix, Outliers
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.plan.workloads import reading
from sparkpub.record import store
from sparkpub.record.errors import CollectError
from sparkpub.record.record import Gate, Record
from sparkpub.record.redaction import Redactor

_LAST_BYTES, _LAST_CHARACTERS = 1 << 14, 200
"""How much of a log is looked at for its last line, and how much of that line is said."""


@dataclass(frozen=True)
class Outcome:
    """What a collection came to. `left` counts chosen runs that are still to do, `lacking` those that have no good
    record: these, and those whose retries are used up."""

    measured: int
    failed: int
    left: int
    stopped: str | None
    lacking: int = 0

    @property
    def exit_code(self) -> int:
        """1 while a chosen run has no good record, and where something was interrupted or skipped."""
        return 1 if self.lacking or self.stopped else 0

    @property
    def summary(self) -> str:
        """One line for people."""
        text = f"{self.measured} runs measured, {self.failed} failed, {self.left} to do"
        given_up = self.lacking - self.left
        if given_up:
            text += f", {given_up} given up after their retries (try again with --retry-failed)"
        if self.stopped:
            text += f"; {self.stopped}"
        return text


def known_records(folder: Path) -> list[Record]:
    """Records of a campaign's folder, which need not exist yet."""
    if not folder.is_dir():
        return []
    return [stored.record for stored in store.read_folder(folder)]


def collect(matrix: Matrix, choice: Choice, say: Say | None = None) -> Outcome:
    """Measure what is missing. Raises CollectError where the machine or an environment stands in the way.

    One collector at a time cleans up what a killed one left, looks at what there is and what stands in the way of the
    rest, declares the campaign, sets up the machine, measures run by run, and puts everything back. `say` takes each
    line that would else be printed.
    """
    folder = choice.data / matrix.campaign
    shown, redactor = public(matrix)
    with ExitStack() as stack:
        stack.enter_context(locked(matrix.campaign, folder))
        interruption = stack.enter_context(Interruption())
        cleaned = _clean_up(folder, redactor)

        records = known_records(folder)
        refuse_another_campaign(shown, records, folder)
        wanted = [run for run in plan(matrix, _here(matrix)) if choice.wants(run)]
        given_up: frozenset[str] = frozenset()
        if choice.retry_failed:
            given_up = _failed_before(shown, records, wanted)
        to_do = missing(shown, _without(records, given_up), wanted)
        refuse_obstacles(matrix, to_do)

        progress = Progress(matrix.campaign, len(wanted), len(wanted) - len(to_do), say)
        stack.callback(progress.close)
        for line in cleaned:
            progress.line(line)
        for line in declare(folder, shown):
            progress.line(line)
        committer = Committer(folder, choice.commit, choice.push, progress)
        committer.catch_up()

        gpus, why_no_gpu = stack.enter_context(nvml.opened())
        controlled = stack.enter_context(
            controls.applied(matrix.gates, gpus, why_no_gpu)
        )
        machine = inventory.facts(gpus, controlled)
        servers = Servers(folder, interruption, progress)
        stack.callback(servers.stop)

        bench = Bench(matrix, shown, folder, machine, redactor, interruption, progress)
        keeper = Gatekeeper(matrix.gates, why_no_gpu, choice.data)
        session = Session(
            bench, keeper, controlled, servers, committer, choice, records, given_up
        )
        outcome = session.run(wanted)
        committer.finish()
        progress.line(outcome.summary)
        return outcome


def _clean_up(folder: Path, redactor: Redactor) -> list[str]:
    """Undo what a killed collector left on the machine (processes, mounts, containers, clocks), and record its run;
    says what was done."""
    said: list[str] = []
    for environment in ENVIRONMENTS.values():
        said += environment.reap()
    said += controls.restore_after_crash()
    clear_server(folder)
    if not folder.is_dir():
        return said
    recovered = journal.recover(folder, redactor)
    if recovered is not None:
        run = recovered.record.run_id
        said.append(f"recorded {run}, which a killed collector left, as interrupted")
    return said


def missing(
    shown: Matrix, records: Sequence[Record], runs: Sequence[PlannedRun]
) -> list[PlannedRun]:
    """Those of the runs that are still to do."""
    found = states(shown, records, runs)
    return [run for run in runs if found[run] in ("missing", "retry")]


def states(
    shown: Matrix, records: Sequence[Record], runs: Sequence[PlannedRun]
) -> Mapping[PlannedRun, coverage.State]:
    """The state of every run of the plan that these runs are of."""
    machines = sorted({run.machine for run in runs if run.machine is not None})
    return coverage.states(shown, records, machines=machines)


def _here(matrix: Matrix) -> list[str]:
    """The machines for which a collector on this one plans: itself, where the campaign is repeated on each."""
    own = inventory.machine_id() if matrix.machines == "replicate" else None
    return [] if own is None else [own]


def _failed_before(
    shown: Matrix, records: Sequence[Record], runs: Sequence[PlannedRun]
) -> frozenset[str]:
    """Ids of the runs whose failures used up the retries of their slot."""
    found = states(shown, records, runs)
    given_up = [run for run in runs if found[run] == "failed"]
    return frozenset(
        record.run_id
        for record in records
        if any(attempted(record, run) for run in given_up)
    )


def _without(records: Sequence[Record], ids: Collection[str]) -> list[Record]:
    return [record for record in records if record.run_id not in ids]


@dataclass
class Session:
    """One collection on its way through the plan."""

    bench: Bench
    keeper: Gatekeeper
    controlled: tuple[Gate, ...]
    servers: Servers
    committer: Committer
    choice: Choice
    records: list[Record]
    given_up: frozenset[str] = frozenset()
    """Runs of earlier collections that failed and do not count as attempts now."""
    measured: int = 0
    failed: int = 0
    refused: set[PlannedRun] = field(default_factory=set)

    def run(self, wanted: Sequence[PlannedRun]) -> Outcome:
        """Every wanted run that is missing, with its retries; then repeats of outliers."""
        for run in [run for run in wanted if self._open(run)]:
            while self._goes_on() and self._open(run):
                self._one(run)
            if not self._open(run):
                self.bench.progress.finished()
        if self.bench.matrix.repeat_outliers is not None:
            self._repeat(self.bench.matrix.repeat_outliers, wanted)
        for line in look(self.records):
            self.bench.progress.line(line)
        counted = _without(self.records, self.given_up)
        left = len(missing(self.bench.public, counted, wanted))
        found = states(self.bench.public, counted, wanted)
        lacking = sum(
            1 for run in wanted if found[run] in ("missing", "retry", "failed")
        )
        stopped = None
        if self.bench.interruption.finish:
            stopped = f"stopped by {self.bench.interruption.reason}"
        elif self.refused:
            stopped = f"{len(self.refused)} runs skipped because a gate was not met"
        return Outcome(self.measured, self.failed, left, stopped, lacking)

    def _goes_on(self) -> bool:
        full = (
            self.choice.max_runs is not None and self.measured >= self.choice.max_runs
        )
        return not full and not self.bench.interruption.finish

    def _open(self, run: PlannedRun) -> bool:
        return run not in self.refused and self._to_do(run)

    def _to_do(self, run: PlannedRun) -> bool:
        counted = _without(self.records, self.given_up)
        return coverage.state(self.bench.public, counted, run) in ("missing", "retry")

    def _one(self, run: PlannedRun, repeat_of: str | None = None) -> None:
        """Gates, the server where the run needs one, the run, its record, its commit."""
        bench = self.bench
        job = self._job(run, repeat_of)
        if run.environment not in bench.packages:
            bench.packages[run.environment] = installed(
                job.environment, job.environment_options, bench.interruption
            )
        gates = self.controlled
        server = self.servers.serving(job.serves)
        if job.serves is not None and server is None:
            # The idle machine's conditions first, then those of any run that a server serves.
            passed = self._passed(job, None)
            if passed is None:
                return
            gates += passed.gates
            server = self.servers.start(job.serves, run.model, job.environment)
            if bench.interruption.finish:
                return
        if server is None or server.problem is None:
            passed = self._passed(job, server)
            if passed is None:
                return
            gates += passed.gates
        try:
            stored = measure(bench, job, Passed(gates), server)
        except CollectError as error:
            # A reason that lasts would fail every later run: then the collection stops here, and can be resumed.
            refuse_obstacles(bench.matrix, [run])
            raise error from None
        if server is not None:
            server.served(stored.record)
            if stored.record.status != "ok":
                self.servers.stop()
        self.measured += 1
        self.records.append(stored.record)
        self._report(job, stored.record)
        self.committer.add_run(stored)

    def _job(self, run: PlannedRun, repeat_of: str | None) -> Job:
        """The next attempt at a run."""
        attempt = 1 + sum(
            1
            for record in self.records
            if attempted(record, run) and record.repeat_of == repeat_of
        )
        took = [
            seconds
            for record in self.records
            if record.cell == run.cell and (seconds := record.duration_seconds)
        ]
        return prepare(
            self.bench.matrix,
            run,
            attempt,
            repeat_of,
            statistics.fmean(took) if took else None,
        )

    def _passed(self, job: Job, server: LiveServer | None) -> Passed | None:
        """The gates before a run, or before its server starts; None where the run may not start."""
        progress = self.bench.progress

        def waiting(text: str) -> None:
            progress.live(job.label, text.partition(",")[0].partition(" (")[0], text)

        tree = None if server is None else server.tree
        with nvml.opened(gpu_indices(job.environment_options)) as (gpus, _):
            passed = self.keeper.passed(
                gpus, self._last_ended(server), self.bench.interruption, waiting, tree
            )
        if passed.interrupted:
            return None
        if not self._may_run(job, passed):
            self.refused.add(job.run)
            return None
        return passed

    def _may_run(self, job: Job, passed: Passed) -> bool:
        """What the matrix says of a gate that is not known to hold: run, skip or stop."""
        if not passed.unmet:
            return True
        action, why = self.bench.matrix.gates.on_unmet, passed.why_unmet
        if action == "stop":
            remedy = "fix the machine, or set on_unmet: run or skip"
            raise CollectError(
                f"stopped before {job.label}: {why}", where="gates", remedy=remedy
            )
        if action == "run":
            self.bench.progress.line(f"{job.label}: {why}; running anyway (recorded)")
            return True
        self.bench.progress.line(f"{job.label}: skipped: {why}")
        return False

    def _last_ended(self, server: LiveServer | None) -> datetime | None:
        """When the machine was last at work: the end of the campaign's last run, whichever collector ran it, or of the
        server's start."""
        ends = [
            record.ended.value
            for record in self.records
            if record.ended and record.ended.zone == "utc"
        ]
        moments = [datetime.fromisoformat(max(ends))] if ends else []
        if server is not None and server.ready_at is not None:
            moments.append(server.ready_at)
        return max(moments, default=None)

    def _report(self, job: Job, record: Record) -> None:
        took = duration(record.duration_seconds or 0.0)
        name = headline([record])
        value = record.value(name)
        shown = ""
        if record.status != "ok":
            self.failed += record.status != "interrupted"
            shown = f": {record.status_reason}{self._last_words(record)}"
        elif value is not None:
            shown = f", {name} {value:g}"
        self.bench.progress.line(f"{job.label}: {record.status} in {took}{shown}")
        for event in record.events:
            # The others were said when they were noted.
            if event.kind == "note" and event.at_seconds is None:
                self.bench.progress.line(f"{job.label}: {event.kind}: {event.text}")

    def _repeat(self, wish: Outliers, wanted: Sequence[PlannedRun]) -> None:
        """Runs that stand out in a finished cell, as often again as the matrix wishes."""
        planned = {
            run.slot: run for run in plan(self.bench.matrix, _here(self.bench.matrix))
        }
        for cell in dict.fromkeys(run.cell for run in wanted):
            of_cell = [run for run in planned.values() if run.cell == cell]
            if any(self._to_do(run) for run in of_cell):
                continue
            for odd in outliers(self.records, cell, wish.metric):
                again = [
                    record for record in self.records if record.repeat_of == odd.run_id
                ]
                for _ in range(wish.repeat - len(again)):
                    if self._goes_on():
                        self._one(planned[_slot(odd)], repeat_of=odd.run_id)

    def _last_words(self, record: Record) -> str:
        """Where the log of a run that went wrong lies, and the last line in it."""
        evidence = record.file("log")
        if evidence is None:
            return ""
        log = self.bench.folder / evidence.path
        with suppress(OSError):
            lines = reading.lines(log.read_bytes()[-_LAST_BYTES:])
            spoken = [line.strip() for line in lines if line.strip()]
            if spoken:
                return f"; {log} ends: {spoken[-1][-_LAST_CHARACTERS:]}"
        return f"; see {log}"


def attempted(record: Record, run: PlannedRun) -> bool:
    """Whether a record is of a planned run, or of a repeat of it."""
    here = run.machine is None or record.machine.id == run.machine
    return here and _slot(record) == run.slot


def _slot(record: Record) -> tuple[str, str, str, int]:
    return (*record.cell, record.iteration)

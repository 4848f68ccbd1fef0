"""What is known of a campaign while it is collected: its records, what is left to do, and what each run came to.

Only who keeps the books writes to the campaign's folder and commits, wherever the runs are measured.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sparkpub.collect.choice import Choice
from sparkpub.collect.declaring import declare, refuse_another_campaign
from sparkpub.collect.git import Committer
from sparkpub.collect.job import Job, labelled
from sparkpub.collect.progress import Progress, duration
from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.plan.workloads import server_pages
from sparkpub.plan.workloads.payload.pages import LASTING
from sparkpub.record import store
from sparkpub.record.record import Record, metric_of
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review.statistics.series import grubbs

TO_DO = ("missing", "retry")
_HOPELESS = (LASTING, 126, 127)
"""Exit codes that the next attempt would end with, too: of our drivers, and of a shell for a program that it cannot
start or find."""
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
    uncommitted: str | None = None
    """What git did not take, in words."""
    limited: bool = False
    """Whether it ended after as many runs as were asked for, and others are still to do."""

    @property
    def exit_code(self) -> int:
        """1 while a chosen run has no good record, or no commit, and where something was interrupted or skipped. Of as
        many runs as were asked for, only these have to be good."""
        lacking = self.failed if self.limited else self.lacking
        return 1 if self.stopped or self.uncommitted or lacking else 0

    @property
    def summary(self) -> str:
        """One line for people."""
        measured = counted(self.measured, "run")
        text = f"{measured} measured, {self.failed} failed, {self.left} to do"
        given_up = self.lacking - self.left
        if given_up:
            text += f", {given_up} given up after their retries (try again with --retry-failed)"
        if self.limited:
            text += "; as many runs as --max-runs allows: the same command goes on"
        return "; ".join(filter(None, (text, self.stopped, self.uncommitted)))


def known_records(folder: Path) -> list[Record]:
    """Records of a campaign's folder, which need not exist yet."""
    if not folder.is_dir():
        return []
    return [stored.record for stored in store.read_folder(folder)]


def attempted(record: Record, run: PlannedRun) -> bool:
    """Whether a record is of a planned run, or of a repeat of it."""
    here = run.machine is None or record.machine.id == run.machine
    return here and (*record.cell, record.iteration) == run.slot


class Books:
    """The state of one collection. Raises CollectError where the campaign's name belongs to other runs."""

    def __init__(self, matrix: Matrix, choice: Choice, progress: Progress) -> None:
        self.matrix, self.choice, self.progress = matrix, choice, progress
        self.folder = choice.data / matrix.campaign
        self.records = known_records(self.folder)
        refuse_another_campaign(self.matrix, self.records, self.folder)
        self.committer = Committer(self.folder, choice.commit, choice.push, progress)
        self.measured = self.failed = 0
        self.refused: set[PlannedRun] = set()
        """Runs that a gate kept from starting."""
        self.hopeless: set[tuple[str, str, str]] = set()
        """Cells of which a run failed for a reason that the next attempt would meet again."""
        self.leases: dict[str | None, Job] = {}
        """What each machine, by its id, measures now."""
        self.forgiven: set[str] = set()
        """Runs of earlier collections that failed and do not count as attempts now."""
        if choice.retry_failed:
            failed = [item for item in self.records if item.status != "ok"]
            self.forgiven = {item.run_id for item in failed}
        self.schedule([])

    def schedule(self, machines: Sequence[str]) -> None:
        """Have what was chosen done; where the campaign is repeated on each machine, on these."""
        self.machines_planned = machines
        states = self.states()
        self.wanted = [run for run in states if self.choice.wants(run)]
        self.todo = [
            run
            for run in self.wanted
            if states[run] in TO_DO and not self.is_tried(run)
        ]

    def begin(self) -> None:
        """Declare the campaign, and commit what no commit has yet."""
        self.progress.counts(len(self.wanted) - len(self.todo), len(self.wanted))
        changed = declare(self.folder, self.matrix)
        if changed is not None:
            self.progress.line(changed)
        self.committer.catch_up()

    def states(self) -> Mapping[PlannedRun, coverage.State]:
        """The state of every planned run."""
        return coverage.states(
            self.matrix, self._attempts, machines=self.machines_planned
        )

    @property
    def planned(self) -> Sequence[PlannedRun]:
        """The whole plan."""
        return plan(self.matrix, self.machines_planned)

    @property
    def _attempts(self) -> list[Record]:
        """The records that count as attempts now."""
        return [item for item in self.records if item.run_id not in self.forgiven]

    def next(self, machine: str | None) -> Job | None:
        """The next attempt of a machine, which has its lease from now on; None where there is nothing for it now."""
        job = self.pending(machine)
        if job is not None:
            self.leases[machine] = job
        return job

    def pending(self, machine: str | None) -> Job | None:
        """What a machine without a lease would be given: a run with its retries, at last repeats of outliers."""
        if self.full(len(self.leases)):
            return None
        for run in self.open_for(machine):
            return self.job(run, machine)
        for run, odd in self.repeats():
            here = machine is None or odd.machine.id in (None, machine)
            if here and not self.is_tried(run):
                return self.job(run, machine, odd.run_id)
        return None

    def open_for(self, machine: str | None) -> Iterable[PlannedRun]:
        """Runs that a machine may take, in the order in which it takes them."""
        taken = {job.run for job in self.leases.values()}
        for run in self.todo:
            if run not in taken and run.machine in (None, machine):
                yield run

    def full(self, under_way: int = 0) -> bool:
        """Whether as many runs are measured, or under way, as were asked for."""
        most = self.choice.max_runs
        return most is not None and self.measured + under_way >= most

    def is_tried(self, run: PlannedRun) -> bool:
        """Whether a run is to be left alone now: a gate kept it from starting, or it would fail as another one did."""
        return run in self.refused or run.cell in self.hopeless

    def to_do(self, run: PlannedRun) -> bool:
        """Whether a run has neither a good record nor used up its retries."""
        return coverage.state(self.matrix, self._attempts, run) in TO_DO

    def job(
        self, run: PlannedRun, machine: str | None, repeat_of: str | None = None
    ) -> Job:
        """The next attempt at a run, on the machine with this id."""
        attempts, ends = 1, []
        for record in self.records:
            if attempted(record, run) and record.repeat_of == repeat_of:
                attempts += 1
            # When the machine was last at work, whichever collector ran it.
            here = record.machine.id in (None, machine)
            if here and record.ended and record.ended.zone == "utc":
                ends.append(record.ended.value)
        last = datetime.fromisoformat(max(ends)) if ends else None
        specification = self.matrix.fingerprint(*run.cell)
        return Job(self.matrix, run, attempts, repeat_of, specification, last)

    def keep(self, machine: str | None, stored: Stored) -> None:
        """Take in the run of a machine's lease, which is written: count it, say what it came to, commit it."""
        self.leases.pop(machine, None)
        self.measured += 1
        self.records.append(stored.record)
        self._report(stored)
        self.committer.catch_up()
        self._strike(stored.record)

    def skip(self, machine: str | None) -> None:
        """End a machine's lease: a gate kept the run from starting, and it is left alone now."""
        self.refused.add(self.leases.pop(machine).run)
        self._strike()

    def _strike(self, measured: Record | None = None) -> None:
        """Take what is finished with off the list."""
        for run in list(self.todo):
            tried = measured is not None and attempted(measured, run)
            if self.is_tried(run) or (tried and not self.to_do(run)):
                self.todo.remove(run)
                self.progress.finished()

    def repeats(self) -> Iterator[tuple[PlannedRun, Record]]:
        """Runs that stand out in a finished cell of the wanted ones, each as often as it is still to be repeated."""
        wish = self.matrix.repeat_outliers
        if wish is None:
            return
        for machine, cell in dict.fromkeys(
            (run.machine, run.cell) for run in self.wanted
        ):
            of_cell = {
                run.iteration: run
                for run in self.planned
                if (run.machine, run.cell) == (machine, cell)
            }
            if any(self.to_do(run) for run in of_cell.values()):
                continue
            for odd in outliers(self.records, cell, machine, wish.metric):
                if odd.iteration not in of_cell:  # the matrix asks for fewer by now
                    continue
                again = sum(run.repeat_of == odd.run_id for run in self.records)
                for _ in range(wish.repeat - again):
                    yield of_cell[odd.iteration], odd

    def outcome(self, stopped: str | None) -> Outcome:
        """What it came to, once nothing more is measured, with a last try to commit."""
        uncommitted = self.committer.catch_up()
        found = self.states()
        still = [found[run] for run in self.wanted]
        left = sum(state in TO_DO for state in still)
        if stopped is None and self.refused:
            skipped = counted(len(self.refused), "run")
            stopped = f"{skipped} skipped because a gate was not met"
        return Outcome(
            self.measured,
            self.failed,
            left,
            stopped,
            left + still.count("failed"),
            uncommitted,
            limited=bool(left) and self.full(),
        )

    def _report(self, stored: Stored) -> None:
        """Say what a run came to, and whether its cell is hopeless."""
        record = stored.record
        label = labelled(record.cell, record.iteration, record.repeat_of)
        line = f"{label}: {record.status} in {duration(record.duration_seconds or 0.0)}"
        name = headline(record)
        if record.status != "ok":
            self.failed += record.status != "interrupted"
            line += f": {record.status_reason}{self._last_words(record)}"
        elif name:
            line += f", {name} {record.value(name):g}"
        if record.status == "failed" and record.exit_code in _HOPELESS:
            self.hopeless.add(record.cell)
            line += "; not tried again now, since it would end the same way"
        self.progress.line(line)
        for event in record.events:
            # The others were said when they were noted, and the model's answer is for the review.
            is_answer = event.text.startswith(server_pages.ANSWERED)
            if event.kind == "note" and event.at_seconds is None and not is_answer:
                self.progress.line(f"{label}: note: {event.text}")

    def _last_words(self, record: Record) -> str:
        """Where the log of a run that went wrong lies, and the last line in it."""
        evidence, said = record.file("log"), []
        if evidence is None:
            return ""
        log = self.folder / evidence.path
        with suppress(OSError):
            said = log.read_bytes()[-_LAST_BYTES:].decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        return f"; {log} ends: {last[-_LAST_CHARACTERS:]}" if last else f"; see {log}"


def outliers(
    records: Sequence[Record],
    cell: tuple[str, str, str],
    machine: str | None,
    metric: str,
) -> list[Record]:
    """Good runs of a cell that Grubbs' test flags by a metric; repeats are not looked at. `machine`: only its own."""
    found, values = [], []
    for record in records:
        here = record.cell == cell and machine in (None, record.machine.id)
        first = record.repeat_of is None and record.status == "ok"
        value = record.value(metric)
        if here and first and value is not None:
            found.append(record)
            values.append(value)
    return [found[index] for index in grubbs(values)]


def headline(record: Record) -> str:
    """The first metric with which the workload itself answers a question of the study, memory last: a run is not
    about that. Never a sensor's, nor what describes the model, such as its weights. Empty where there is none."""
    answers = []
    for name, item in record.metrics.items():
        metric = metric_of(name, item)
        measured = item.source != "sampler" and item.value is not None
        if measured and metric.role == "primary":
            answers.append(metric)
    answers.sort(key=lambda metric: metric.memory_of is not None)
    return answers[0].name if answers else ""

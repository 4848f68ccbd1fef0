"""One run: its folder and draft are on disk before it starts, the draft is filled in place, and becomes its record."""

import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from sparkpub import __version__
from sparkpub.collect import journal, phases, sampling
from sparkpub.collect.environments.base import Launch, Running
from sparkpub.collect.gates import floor_gib
from sparkpub.collect.git import own_commit
from sparkpub.collect.job import Job
from sparkpub.collect.journal import TELEMETRY
from sparkpub.collect.log import Log
from sparkpub.collect.progress import duration
from sparkpub.collect.sampling import Sampling
from sparkpub.collect.server import SERVER_START, LiveServer
from sparkpub.collect.watch import Watch
from sparkpub.collect.workdir import WORK
from sparkpub.plan.matrix import Model
from sparkpub.plan.references import filled
from sparkpub.plan.requested import with_load
from sparkpub.plan.workloads import architecture, server_pages
from sparkpub.plan.workloads.base import Answer
from sparkpub.record import sampled_metrics
from sparkpub.record.errors import (
    CollectError,
    NeverStartedError,
    RecordError,
    SparkpubError,
    field_problems,
)
from sparkpub.record.identity import contradictions
from sparkpub.record.load import Load
from sparkpub.record.record import (
    Architecture,
    Container,
    Event,
    Gate,
    Machine,
    MetricValue,
    Moment,
    Observed,
    Phase,
    Plan,
    Record,
    Reproducibility,
    Requested,
    Status,
    stem_of,
)
from sparkpub.record.store import Stored, refuse_unreadable
from sparkpub.record.telemetry import Telemetry

if TYPE_CHECKING:
    from sparkpub.collect.station import Station

TICK = 0.25
"""Seconds between looks at a run; its end wakes us at once."""
OF_ANOTHER_MACHINE = (
    "the server runs on another machine, which the collector does not see"
)


class Run:
    """One run of a station, as a client of `server` where there is one. A context over the run's folder: whatever goes
    wrong within, the run has a record, unless nothing could be started.

    `fields` are those of the record, as far as they are known. Times are in seconds since the launch.
    """

    def __init__(
        self,
        station: "Station",
        job: Job,
        gates: tuple[Gate, ...],
        server: LiveServer | None,
    ) -> None:
        self.station, self.job, self.server = station, job, server
        self.place = station.folder / journal.FOLDER
        given = (dict(job.command.variables) | dict(job.options.env)).items()
        work = str((self.place / WORK).resolve())
        self.redactor = station.redactor.also(
            {name: filled(value) for name, value in given}, {work: "<workdir>"}
        )
        self.fields = _draft(station, job, gates)
        self.watch = Watch(self._say)
        self.process: Running | None = None
        """The command, once it was launched."""
        self.stopped: tuple[Status, str] | None = None
        """Why the collector ended the run, or could not start it: status and reason."""
        self.telemetry = Telemetry({})
        self.files: dict[str, bytes] = {}
        """What the workload's parser reads, by role."""
        self.load: Load | None = None
        """The load that the run's own report says."""

    def __enter__(self) -> "Run":
        folder, command = self.station.folder, self.job.command
        journal.begin(folder, self.record(), command.outputs, self.redactor)
        path = self.place / journal.LOG
        marks = command.measured_from, command.measured_until
        self.log = Log(path, *marks)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.watch.close()
        if error is None:
            return
        folder, redactor = self.station.folder, self.station.redactor
        if isinstance(error, NeverStartedError):
            journal.drop(folder)
            return
        # Whatever went wrong here, the run was on: it has a record, now or from the next collector.
        with suppress(Exception):  # what went wrong first is what is said
            why = f"the collector failed: {_described(error)}"
            journal.recover(folder, redactor, why)
        if isinstance(error, OSError):
            run = self.fields["run_id"]
            what = f"run {run} cannot be written: {error.strerror or error}"
            remedy = "make room or correct the rights; the next collector records what is there"
            raise CollectError(
                what, where=str(error.filename or folder), remedy=remedy
            ) from None

    def _say(self, event: Event) -> None:
        """That the GPU lowers its clock under load may be so in every run: the record has it."""
        if event.kind != "throttle":
            line = f"{self.job.label}: {event.kind}: {event.text}"
            self.station.progress.line(line)

    def record(self) -> Record:
        """The fields as the record of the run, without what is private.

        A payload or a server may claim what no record may hold (a rate of minus one). The run is then invalid, and
        still kept.
        """
        try:
            return self._validated()
        except ValidationError as error:
            problem = "; ".join(field_problems(error))
        except RecordError as error:
            problem = f"its record could not be read again: {error.what}"
        found = self.fields["metrics"].items()
        sampled = {name: item for name, item in found if item.source == "sampler"}
        self.load = None
        self.fields |= {"metrics": sampled, "samples": {}, "observed": Observed()}
        self.fields |= {"status": "invalid", "status_reason": problem[:1000]}
        return self._validated()

    def _validated(self) -> Record:
        document = self.redactor.record(to_jsonable_python(self.fields))
        record = with_load(Record.model_validate(document, strict=False), self.load)
        refuse_unreadable(record, self.station.folder / f"{record.stem}.json")
        return record

    def follow(self) -> None:
        """Launch the command, watch it to its end, or bring that about, and note what was seen.

        Raises NeverStartedError where the environment cannot start any run now.
        """
        job, server = self.job, self.server
        served = None if server is None else server.process
        work = self.place / WORK
        for path, content in job.command.files().items():
            target = work / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        with ExitStack() as stack:
            stack.enter_context(closing(self.log))
            if server is not None:
                heard = server.heard_in(self.place / journal.SERVER_LOG)
                stack.enter_context(closing(heard))
                self.stopped = _failed(server.problem)
                if self.stopped is not None:
                    return
            sampler = Sampling(
                self.place / TELEMETRY,
                self.station.matrix.telemetry.interval,
                job.gpus,
                None if served is None else served.pid,
                tenants=job.running_server is not None,
            )
            stack.enter_context(closing(sampler))
            self._look(sampler)
            run, hear = self.fields["run_id"], self.log.write
            launch = Launch(job.command, work, hear, run, server=served)
            try:
                process = job.client.start(launch)
            except NeverStartedError:
                raise
            except CollectError as error:
                self.stopped = _failed(error.lines()[0])
                return
            stack.enter_context(closing(process))
            sampler.launched(process.pid, process.launched)
            self._watch(process, sampler)
        self._note_end(process)

    def _note_end(self, process: Running) -> None:
        """What shows once the command and the sampler have ended."""
        self.process = process
        self.fields |= {"argv": process.argv, "isolation": process.isolation}
        if self.log.problem is not None:
            what = f"the log could not be written to its end: {self.log.problem}"
            self.watch.note("note", what)
        self.telemetry = sampling.read(self.place / TELEMETRY)
        if self.server is None and self.job.running_server is None:
            self.watch.left_behind(self.telemetry)
        self.watch.kernel(process.seconds)

    def _watch(self, process: Running, sampler: Sampling) -> None:
        """Wait for the end, or bring it about."""
        for elapsed in process.ticks(TICK):
            temperature = self._look(sampler)
            self.watch.kernel(elapsed)
            if not sampler.alive():
                what = "the sampler ended before the run; telemetry stops there"
                self.watch.note("note", what, elapsed)
            self.stopped = self._must_stop(elapsed)
            if self.stopped is not None:
                process.close()
                return
            detail = f"{duration(elapsed)} {temperature}".strip()
            self.station.progress.live(self.job.label, "running", detail)
        self._look(sampler)

    def _look(self, sampler: Sampling) -> str:
        """Take in what was sampled since the last look; returns how hot the GPU is, in words."""
        for row in sampler.fresh():
            self.watch.sample(row)
        celsius = self.watch.celsius
        return f"{celsius} °C" if celsius else ""

    def _must_stop(self, elapsed: float) -> tuple[Status, str] | None:
        """Why the run must be ended now, as status and reason."""
        station, watch = self.station, self.watch
        gates, limit = station.matrix.gates, station.matrix.timeout
        if station.interruption.stop:
            return "interrupted", f"stopped by {station.interruption.reason}"
        if elapsed > limit:
            text = f"still running after {duration(limit)}"
            watch.note("timeout", text, elapsed)
            return "timeout", text
        floor, left = floor_gib(gates, station.machine.unified_memory), watch.available
        if floor is not None and left is not None and left < floor:
            text = (
                f"MemAvailable fell to {left:.2f} GiB, below the floor of {floor:g} GiB"
            )
            watch.note("memory-floor", text, elapsed)
            return "failed", text
        return None if self.server is None else _failed(self.server.ended())

    def seal(self) -> None:
        """Log, telemetry and outputs, beside where the record will be, without what is private."""
        if self.job.elsewhere:
            (self.place / TELEMETRY).unlink(missing_ok=True)
        folder, outputs = self.station.folder, self.job.command.outputs
        stem = self.fields["run_id"].removeprefix(f"{self.station.matrix.campaign}-")
        evidence, lacking, self.files = journal.seal(
            self.place, folder, stem, outputs, self.redactor
        )
        self.fields |= {"evidence": evidence, "unavailable": lacking}

    def finish(self) -> Stored:
        """Read what the command answered, and write the record."""
        job, server, process = self.job, self.server, self.process
        answer = job.workload.parse(self.files.pop("log", b""), self.files, job.asked)
        self.load = answer.load
        status, reason = self._status(answer)
        if reason is not None:
            reason = self.redactor.text(reason)[:1000]
        stretches = self._phases(answer)
        sampled = self._sampled(stretches)
        observed = answer.observed
        if server is not None:
            settings = observed.settings | {"server": server.name}
            observed = observed.model_copy(update={"settings": settings})
        machine = self.station.machine
        self.fields |= {
            "status": status,
            "status_reason": reason,
            "ended": Moment.at(process.ended if process else datetime.now(UTC)),
            "duration_seconds": round(process.seconds, 6) if process else 0.0,
            "exit_code": process.code if process else None,
            "observed": observed,
            "metrics": dict(answer.metrics) | sampled,
            "samples": dict(answer.samples),
            "phases": stretches,
            "events": (*self.watch.events, *self._noted(answer, status)),
            "container": self._container,
            "machine": self._with_gpus_used(machine),
            "memory": sampled_metrics.ledger(
                self.telemetry, machine.memory_total_gib or 0.0
            ),
            "unavailable": self._unavailable(),
        }
        if job.elsewhere:
            self._leave_sensors_out(answer)
        return journal.finish(self.station.folder, self.record())

    def _status(self, answer: Answer) -> tuple[Status, str | None]:
        if self.stopped is not None:
            return self.stopped
        assert self.process is not None
        if self.process.code != 0:
            reason = str(self.process)
            return "failed", "; ".join((reason, *answer.problems))
        if not answer.complete:
            why = "; ".join(answer.problems)
            return "invalid", why or "the command ended without its result"
        return "ok", None

    def _phases(self, answer: Answer) -> tuple[Phase, ...]:
        """The phases of a run: as its payload timed them, else by what was printed."""
        process = self.process
        if process is None:
            return ()
        if answer.phases:
            return phases.timed_by_payload(answer, process.launched_epoch)
        began, ended = (
            None if moment is None else moment - process.launched
            for moment in (self.log.began, self.log.ended)
        )
        return phases.seen_in_log(answer, began, ended, process.seconds)

    def _sampled(self, stretches: tuple[Phase, ...]) -> dict[str, MetricValue]:
        """The sampler's metrics over the measured phase, or why they are not known; in its first run the server's
        start."""
        server = self.server
        found = sampled_metrics.metrics(
            self.telemetry,
            self.process.seconds if self.process else 0.0,
            phases.measured(stretches) or phases.UNKNOWN,
            served=server is not None or self.job.running_server is not None,
        )
        if server is not None and server.first_run is None and server.start_seconds:
            found[SERVER_START] = MetricValue(
                value=server.start_seconds, unit="s", source="sampler"
            )
        return found

    def _noted(self, answer: Answer, status: Status) -> list[Event]:
        """As notes what is doubtful in the figures (of a run that failed its reason says so already), what the model
        said before it was timed, and where another model ran than the one asked for."""
        texts = [*answer.problems, *answer.notes] if status == "ok" else []
        if self.server is not None and self.server.answer is not None:
            texts.append(f"{server_pages.ANSWERED}{self.server.answer}")
        asked = self.fields["requested"]
        for odd in contradictions(asked, answer.observed, answer.metrics):
            texts.append(f"observed identity is not the requested one: {odd}")
        return [Event(at_seconds=None, kind="note", text=text) for text in texts]

    @property
    def _container(self) -> Container | None:
        """The container that ran the command, else that of the server, whose client runs outside."""
        if self.process is not None and self.process.container is not None:
            return self.process.container
        return None if self.server is None else self.server.container

    def _unavailable(self) -> dict[str, str]:
        """What the record lacks, and why."""
        reasons: dict[str, str] = self.watch.unavailable | self.fields["unavailable"]
        if self._container is None:
            reasons |= {"container": self.job.environment.no_container}
        if self.server is not None and self.server.first_run is not None:
            first = f"measured once for this server, in run {self.server.first_run}"
            reasons |= {SERVER_START: first}
        return reasons

    def _with_gpus_used(self, machine: Machine) -> Machine:
        """The machine with the GPUs that the run used, of several that are there."""
        indices = self.job.gpus
        if indices is None or len(machine.gpus) < 2:
            return machine
        used = tuple(gpu for gpu in machine.gpus if gpu.index in indices)
        return machine.model_copy(
            update={"gpus": used, "gpus_there": len(machine.gpus)}
        )

    def _leave_sensors_out(self, answer: Answer) -> None:
        """Nothing was seen of the machine where the server is."""
        events = self.fields["events"]
        why = {"telemetry": OF_ANOTHER_MACHINE, "machine": OF_ANOTHER_MACHINE}
        self.fields |= {
            "metrics": dict(answer.metrics),
            "machine": Machine(),
            "memory": None,
            "events": [item for item in events if item.kind in ("note", "timeout")],
            "unavailable": self.fields["unavailable"] | why,
        }


def _failed(why: str | None) -> tuple[Status, str] | None:
    """The status and reason of a run that failed for a reason; None where there is none."""
    return None if why is None else ("failed", why)


def _described(error: BaseException) -> str:
    """An exception in one line."""
    if isinstance(error, SparkpubError):
        return error.lines()[0]
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def _draft(station: "Station", job: Job, gates: tuple[Gate, ...]) -> dict[str, Any]:
    """The fields of the record as they are if nothing more becomes of the run."""
    run, matrix = job.run, station.matrix
    while True:
        now = datetime.now(UTC)
        started = Moment.at(now)
        stem = stem_of(run.cell, run.iteration, started)
        if run.machine is not None:
            stem += f"_{run.machine[:8]}"  # others measure the same within the second
        if not (station.folder / f"{stem}.json").exists():
            break
        # A retry within the second: the address must be new.
        time.sleep(1.05 - now.microsecond / 1e6)
    model = matrix.models[run.model]
    return {
        "run_id": f"{matrix.campaign}-{stem}",
        "campaign": matrix.campaign,
        "model": run.model,
        "environment": run.environment,
        "workload": run.workload,
        "iteration": run.iteration,
        "repeat_of": job.repeat_of,
        "specification": job.specification,
        "status": "interrupted",
        "status_reason": journal.KILLED,
        "started": started,
        "argv": job.command.argv,
        "plan": Plan(
            position=run.position,
            order=matrix.order,
            seed=matrix.seed,
            attempt=job.attempt,
            analysis=matrix.analysis,
        ),
        "requested": Requested(
            model_id=model.id,
            model_path=model.path,
            random_weights=model.has_random_weights,
            architecture=declared_architecture(model),
            workload=matrix.declared_workload(run.workload),
            environment=matrix.declared_environment(run.environment),
        ),
        "metrics": {},
        "gates": gates,
        "machine": Machine() if job.elsewhere else station.machine,
        "reproducibility": _reproducibility(station, job),
    }


def declared_architecture(model: Model) -> Architecture | None:
    """Facts about the model asked for: from its folder or its configuration, else from the matrix."""
    found: Architecture | None = None
    with suppress(SparkpubError, OSError):
        if model.config is not None:
            found = architecture.from_config(model.config, "matrix")
        elif model.path is not None and (Path(model.path) / "config.json").is_file():
            found = architecture.read_model_folder(Path(model.path))
    return found or model.architecture


def _reproducibility(station: "Station", job: Job) -> Reproducibility:
    commit, clean = own_commit()
    inherited = job.environment.inherited()
    variables = dict(inherited) | dict(job.command.variables) | dict(job.options.env)
    known = station.packages.get(job.run.environment, "not asked")
    packages: Mapping[str, str] = {} if isinstance(known, str) else known
    seed = station.matrix.seed
    return Reproducibility(
        sparkpub_version=__version__,
        sparkpub_commit=commit,
        sparkpub_clean=clean,
        packages=dict(packages),
        packages_unavailable=known if isinstance(known, str) else None,
        variables=station.redactor.variables(variables),
        other_variables=station.redactor.other_names(variables),
        seeds={"workload": seed, "order": seed},
    )

"""One run: prepare, launch, follow, read the answer, and make the record of it."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparkpub import __version__
from sparkpub.collect import journal, phases, sampling
from sparkpub.collect.environments import ENVIRONMENTS
from sparkpub.collect.environments.base import Environment, Exit, Launch, Obstacle, Running
from sparkpub.collect.gates import Passed, floor_gib
from sparkpub.collect.git import own_commit
from sparkpub.collect.interruption import Interruption
from sparkpub.collect.journal import Log, Sealed, seal
from sparkpub.collect.progress import Progress, duration
from sparkpub.collect.server import SERVER_START, LiveServer, Serves
from sparkpub.collect.watch import Watch
from sparkpub.plan import serving
from sparkpub.plan.environments import EnvironmentOptions
from sparkpub.plan.matrix import Matrix, Model
from sparkpub.plan.plan import PlannedRun
from sparkpub.plan.workloads import WORKLOADS, WorkloadOptions, architecture
from sparkpub.plan.workloads.base import Answer, Case, Command, Workload
from sparkpub.record.errors import CollectError, SparkpubError, WorkloadError, field_problems
from sparkpub.record.identity import contradictions
from sparkpub.record.record import (
    Architecture,
    Event,
    Machine,
    MetricValue,
    Moment,
    Phase,
    Plan,
    Record,
    Reproducibility,
    Requested,
    Status,
)
from sparkpub.record.redaction import Redactor
from sparkpub.record.store import Stored
from sparkpub.record.telemetry import Telemetry

TICK = 0.25
"""Seconds between looks at a run; its end wakes us at once."""


@dataclass
class Bench:
    """What holds for every run of a collection."""

    matrix: Matrix
    public: Matrix
    """The matrix as records and campaign.json show it: without secrets, home folders and host names."""
    folder: Path
    machine: Machine
    redactor: Redactor
    interruption: Interruption
    progress: Progress
    packages: dict[str, "dict[str, str] | str"] = field(default_factory=dict)
    """Environment to its packages, or to why they are not known."""


@dataclass(frozen=True)
class Job:
    """One run about to start."""

    run: PlannedRun
    attempt: int
    repeat_of: str | None
    workload: Workload[Any]
    workload_options: WorkloadOptions
    environment: Environment
    environment_options: EnvironmentOptions
    command: Command
    expected_seconds: float | None
    """What earlier runs of the cell took, for the progress bar."""
    server: Command | None = None
    """The command of the server that the run is a client of; see `sparkpub.plan.environments.Server`."""

    @property
    def serves(self) -> Serves | None:
        """The server that the run wants; None where it needs none."""
        if self.server is None:
            return None
        return Serves(self.run.environment, self.environment_options, self.server)

    @property
    def label(self) -> str:
        """For people."""
        kind = " repeat" if self.repeat_of else ""
        return f"{self.run.model}/{self.run.environment}/{self.run.workload} {self.run.iteration}{kind}"


def prepare(
    matrix: Matrix,
    run: PlannedRun,
    attempt: int = 1,
    repeat_of: str | None = None,
    expected_seconds: float | None = None,
) -> Job:
    """The command of a run, and where it goes. Raises WorkloadError where the options do not make a command."""
    model = matrix.models[run.model]
    workload_options = matrix.workloads[run.workload]
    options = matrix.environments[run.environment]
    workload = WORKLOADS[workload_options.type]
    environment = ENVIRONMENTS[options.type]
    case = Case(
        model_key=run.model,
        model_id=model.id,
        model_path=None if model.path is None else environment.visible(model.path, options),
        model_config=model.config,
        random_weights=model.random_weights or model.config is not None,
        iteration=run.iteration,
        seed=matrix.seed,
        workload_key=run.workload,
        attempt=attempt,
        server=options.server,
    )
    command = workload.command(case, workload_options)
    return Job(
        run,
        attempt,
        repeat_of,
        workload,
        workload_options,
        environment,
        options,
        command,
        expected_seconds,
        server=None if options.server is None else serving.command(case, options.server),
    )


def measure(bench: Bench, job: Job, passed: Passed, server: LiveServer | None = None) -> Stored:
    """Run it, as a client of `server` where there is one. The record is written whatever the run does; raises
    CollectError where nothing could be started."""
    draft = _draft(bench, job, passed)
    place = journal.begin(bench.folder, draft)
    try:
        for path, content in job.command.files.items():
            target = place / journal.WORK / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        followed = _followed(bench, job, draft, place, server)
    except BaseException:
        journal.drop(bench.folder)
        raise
    sealed = seal(place, bench.folder, draft.stem, job.command.outputs, bench.redactor, cut=followed.log_cut)
    return journal.finish(bench.folder, _record(bench, job, draft, followed, sealed, server))


@dataclass
class Followed:
    """What was seen of a run from launch to exit."""

    argv: tuple[str, ...]
    events: list[Event]
    unavailable: dict[str, str]
    ended: datetime
    stopped: tuple[Status, str] | None
    exit: Exit | None = None
    launched_epoch: float = 0.0
    duration: float = 0.0
    measuring_began: float | None = None
    """When the line that begins the measurement was printed, in seconds since the launch."""
    measuring_ended: float | None = None
    """Likewise for the line that ends it."""
    log_cut: bool = False
    readings: sampling.Readings = field(default_factory=lambda: sampling.Readings(Telemetry({})))


def _followed(bench: Bench, job: Job, draft: Record, place: Path, server: LiveServer | None) -> Followed:
    """Launch and watch a run until it ends or must be ended."""
    redactor = _for_run(bench, job, place)
    log = Log(place / "log", redactor, begins=job.command.measured_from, ends=job.command.measured_until)
    clocks = [card.clock_max_sm_mhz for card in bench.machine.gpus if card.clock_max_sm_mhz is not None]
    lowest = min(clocks, default=None)
    watch = Watch(bench.redactor, lowest, lambda text: bench.progress.line(f"{job.label}: {text}"))
    indices = gpu_indices(job.environment_options)
    running: Running | None = None
    stopped: tuple[Status, str] | None
    try:
        if server is not None:
            log.write_served(server.heard.start())
            if server.problem is not None:
                stopped = ("failed", server.problem)
                return Followed(job.command.argv, watch.events, watch.unavailable, datetime.now(UTC), stopped)
            server.heard.pass_on(log.write_served)
        tree = None if server is None else server.tree
        with sampling.sampling(
            place / "telemetry.csv", bench.matrix.telemetry.interval, indices, None if tree is None else tree.pid
        ) as sampler:
            for row in sampler.fresh():
                watch.sample(row)
            launched, epoch = time.monotonic(), time.time()
            launch = Launch(job.command, place / journal.WORK, log.write, draft.run_id)
            try:
                running = job.environment.launch(launch, job.environment_options)
            except CollectError as error:
                if job.environment.obstacles(job.environment_options):
                    raise  # a reason that lasts (no engine, no image) would fail every later run too
                stopped = ("failed", error.lines()[0])
                return Followed(job.command.argv, watch.events, watch.unavailable, datetime.now(UTC), stopped)
            sampler.launched(running.pid, launched)
            ended, stopped = _watched(bench, job, running, sampler, watch, log, launched, server)
            took, at = time.monotonic() - launched, datetime.now(UTC)
        log.close()
        readings = sampling.Readings(sampling.read(place / "telemetry.csv"))
        if server is None:
            watch.left_behind(readings)
        watch.kernel(took)
        if log.began is None:
            watch.unavailable["leaks"] = "nothing that was printed says where the measurement began"
        return Followed(
            running.argv, watch.events, watch.unavailable, at, stopped,
            exit=ended, launched_epoch=epoch, duration=took, log_cut=log.truncated, readings=readings,
            measuring_began=None if log.began is None else log.began - launched,
            measuring_ended=None if log.ended is None else log.ended - launched,
        )  # fmt: skip
    finally:
        if server is not None:
            server.quiet()
        log.close()
        watch.close()
        if running is not None:
            running.close()


def _watched(
    bench: Bench,
    job: Job,
    running: Running,
    sampler: sampling.Sampling,
    watch: Watch,
    log: Log,
    launched: float,
    server: LiveServer | None,
) -> tuple[Exit, tuple[Status, str] | None]:
    floor = floor_gib(bench.matrix.gates, bench.machine.unified_memory)
    temperature = ""
    while True:
        ended = running.wait(TICK)
        elapsed = time.monotonic() - launched
        measured_from = None if log.began is None else log.began - launched
        for row in sampler.fresh():
            watch.sample(row, measured_from)
            temperature = f"{row['gpu_temp_celsius']} °C" if row["gpu_temp_celsius"] else ""
        watch.kernel(elapsed)
        if ended is not None:
            return ended, None
        if not sampler.alive():
            watch.note("note", "the sampler ended before the run; telemetry stops there", elapsed)
        stopped = _must_stop(bench, watch, elapsed, floor)
        if stopped is None and server is not None and (gone := server.ended()) is not None:
            stopped = ("failed", gone)
        if stopped is not None:
            return running.stop(), stopped
        share = elapsed / job.expected_seconds if job.expected_seconds else None
        bench.progress.live(job.label, "running", f"{duration(elapsed)} {temperature}", share)


def _must_stop(bench: Bench, watch: Watch, elapsed: float, floor: float | None) -> tuple[Status, str] | None:
    """Why a run must be ended now, as status and reason."""
    if bench.interruption.stop:
        return "interrupted", f"stopped by {bench.interruption.reason}"
    if elapsed > bench.matrix.timeout:
        text = f"still running after {duration(bench.matrix.timeout)}"
        watch.note("timeout", text, elapsed)
        return "timeout", text
    if floor is not None and watch.available_gib is not None and watch.available_gib < floor:
        text = f"MemAvailable fell to {watch.available_gib:.2f} GiB, below the floor of {floor:g} GiB"
        watch.note("memory-floor", text, elapsed)
        return "failed", text
    return None


def _for_run(bench: Bench, job: Job, place: Path) -> Redactor:
    """One that also replaces the run's own folder, whose name changes with the machine."""
    variables = dict(job.command.variables) | dict(job.environment_options.env)
    return bench.redactor.also(variables, {str((place / journal.WORK).resolve()): "<workdir>"})


def _draft(bench: Bench, job: Job, passed: Passed) -> Record:
    """The record as it is if nothing more becomes of the run."""
    run, matrix, public = job.run, bench.matrix, bench.public
    while True:
        now = datetime.now(UTC)
        started = Moment.at(now)
        stem = f"{run.environment}_{run.model}_{run.workload}_iter{run.iteration:02d}_{started.compact}"
        if not (bench.folder / f"{stem}.json").exists():
            break
        time.sleep(1.05 - now.microsecond / 1e6)  # a retry within the second: the address must be new
    model = matrix.models[run.model]
    return Record(
        run_id=f"{matrix.campaign}-{stem}",
        campaign=matrix.campaign,
        model=run.model,
        environment=run.environment,
        workload=run.workload,
        iteration=run.iteration,
        repeat_of=job.repeat_of,
        specification=public.fingerprint(run.model, run.environment, run.workload),
        status="interrupted",
        status_reason="the collector was killed while the run was on",
        plan=Plan(position=run.position, order=matrix.order, seed=matrix.seed, attempt=job.attempt),
        started=started,
        argv=bench.redactor.argv(job.command.argv),
        requested=Requested(
            model_id=model.id,
            model_path=public.models[run.model].path,
            random_weights=model.random_weights or model.config is not None,
            architecture=declared_architecture(model),
            workload=public.declared_workload(run.workload),
            environment=public.declared_environment(run.environment),
        ),
        metrics={},
        gates=passed.gates,
        machine=bench.machine,
        reproducibility=_reproducibility(bench, job),
    )


def declared_architecture(model: Model) -> Architecture | None:
    """Facts about the model asked for: from its folder or its configuration, else from the matrix."""
    found: Architecture | None = None
    with suppress(SparkpubError, OSError):
        if model.config is not None:
            found = architecture.from_config(model.config, "matrix")
        elif model.path is not None and (Path(model.path) / "config.json").is_file():
            found = architecture.read_model_folder(Path(model.path))
    return found or model.architecture


def _reproducibility(bench: Bench, job: Job) -> Reproducibility:
    commit, clean = own_commit()
    inherited = job.environment.inherited(job.environment_options)
    variables = dict(inherited) | dict(job.command.variables) | dict(job.environment_options.env)
    packages = bench.packages.get(job.run.environment, "not asked")
    return Reproducibility(
        sparkpub_version=__version__,
        sparkpub_commit=commit,
        sparkpub_clean=clean,
        packages=packages if isinstance(packages, dict) else {},
        packages_unavailable=packages if isinstance(packages, str) else None,
        variables=bench.redactor.variables(variables),
        seeds={"workload": bench.matrix.seed, "order": bench.matrix.seed},
    )


def _record(
    bench: Bench, job: Job, draft: Record, followed: Followed, sealed: Sealed, server: LiveServer | None
) -> Record:
    files = {role: content for role, content in sealed.content.items() if role != "log"}
    answer = job.workload.parse(sealed.content.get("log", b""), files, job.workload_options)
    stretches = _phases(answer, followed)
    sampled = _sampled(answer, followed, stretches, server)
    observed = answer.observed
    not_there = {} if server is None else _not_of_this_run(server)
    if server is not None:
        observed = observed.model_copy(update={"settings": observed.settings | {"server": server.name}})
    status, reason = _status(followed, answer)
    notes = [*answer.problems] if status == "ok" else []
    odd = contradictions(draft.requested, answer.observed, answer.metrics)
    notes += [f"observed identity is not the requested one: {text}" for text in odd]
    noted = (Event(at_seconds=None, kind="note", text=bench.redactor.text(text)) for text in notes)
    container = None if followed.exit is None else followed.exit.container
    no_container = {"container": job.environment.no_container}
    fields = dict(draft) | {
        "status": status,
        "status_reason": None if reason is None else bench.redactor.text(reason)[:1000],
        "ended": Moment.at(followed.ended),
        "duration_seconds": round(followed.duration, 6),
        "argv": _for_run(bench, job, bench.folder / journal.FOLDER).argv(followed.argv),
        "exit_code": None if followed.exit is None else followed.exit.code,
        "observed": observed,
        "metrics": dict(answer.metrics) | sampled,
        "samples": dict(answer.samples),
        "phases": stretches,
        "events": (*followed.events, *noted),
        "container": container,
        "memory": sampling.ledger(followed.readings, bench.machine.memory_total_gib or 0.0),
        "evidence": sealed.evidence,
        "unavailable": followed.unavailable
        | sealed.unavailable
        | ({} if container is not None else no_container)
        | not_there,
    }
    try:
        return Record(**fields)
    except ValidationError as error:
        # A payload may claim what no record may hold (a rate of minus one). The run is then invalid, and still kept.
        problem = "; ".join(field_problems(error))
        return Record(
            **fields | {"metrics": sampled, "samples": {}, "status": "invalid", "status_reason": problem[:1000]}
        )


def _phases(answer: Answer, followed: Followed) -> tuple[Phase, ...]:
    """The phases of a run: as its payload timed them, else by what was printed."""
    if answer.phases:
        return phases.timed_by_payload(answer, followed.launched_epoch)
    return phases.seen_in_log(answer, followed.measuring_began, followed.measuring_ended, followed.duration)


def _sampled(
    answer: Answer, followed: Followed, stretches: tuple[Phase, ...], server: LiveServer | None
) -> dict[str, MetricValue]:
    """The sampler's metrics over the measured phase, or why they are not known; in its first run the server's start."""
    why = phases.why_unknown(answer, followed.measuring_began, followed.measuring_ended)
    phase = phases.measured(stretches) or why
    found = sampling.metrics(followed.readings, followed.duration, phase, served=server is not None)
    if server is not None and server.first_run is None and server.start_seconds is not None:
        found[SERVER_START] = MetricValue(value=server.start_seconds, unit="s", source="sampler")
    return found


def _not_of_this_run(server: LiveServer) -> dict[str, str]:
    """Which run has the server's start, for all others."""
    if server.first_run is None:
        return {}
    return {SERVER_START: f"measured once for this server, in run {server.first_run}"}


def _status(followed: Followed, answer: Answer) -> tuple[Status, str | None]:
    if followed.stopped is not None:
        return followed.stopped
    assert followed.exit is not None
    if followed.exit.code != 0:
        reason = followed.exit.error or f"exit status {followed.exit.code}"
        return "failed", "; ".join((reason, *answer.problems))
    if not answer.complete:
        return "invalid", "; ".join(answer.problems) or "the command ended without its result"
    return "ok", None


def gpu_indices(options: Any) -> list[int] | None:
    """The GPUs that a run may use where its options name them by index; None for all."""
    gpus = getattr(options, "gpus", None)
    named = gpus if isinstance(gpus, tuple) else options.env.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return [int(name) for name in named if name.strip().isdigit()] or None


def obstacles(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[tuple[str, Obstacle]]:
    """Why environments of these runs cannot be measured in, as (environment, obstacle)."""
    found = []
    for name in dict.fromkeys(run.environment for run in runs):
        models = dict.fromkeys(matrix.models[run.model].path for run in runs if run.environment == name)
        options = matrix.environments[name]
        member = ENVIRONMENTS[options.type]
        paths = [path for path in models if path is not None]
        found += [(name, item) for item in member.obstacles(options, paths)]
    return found


def refuse_obstacles(matrix: Matrix, runs: Sequence[PlannedRun]) -> None:
    """Raise CollectError with everything that stands in the way: before the night, not in it."""
    lines = [f"{item.what}, environment {name}; {item.remedy}" for name, item in obstacles(matrix, runs)]
    lines += unprepared(matrix, runs)
    if lines:
        raise CollectError(lines[0], others=lines[1:])


def unprepared(matrix: Matrix, runs: Sequence[PlannedRun]) -> list[str]:
    """Cells whose options do not make a command, as lines."""
    lines: list[str] = []
    for run in {run.slot[:3]: run for run in runs}.values():
        try:
            prepare(matrix, run)
        except WorkloadError as error:
            lines += [line for line in error.lines() if line not in lines]
    return lines

"""One run: its draft, what was seen of it, the answer it gave, and the record of all that."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparkpub import __version__
from sparkpub.collect import journal, phases
from sparkpub.collect.bench import Bench, Order, RunJob, gpu_indices
from sparkpub.collect.following import Followed, follow, for_run
from sparkpub.collect.gates import Passed
from sparkpub.collect.git import own_commit
from sparkpub.collect.journal import Sealed, seal
from sparkpub.collect.public import published
from sparkpub.collect.server import SERVER_START, LiveServer
from sparkpub.collect.workdir import WORK
from sparkpub.plan.matrix import Matrix, Model
from sparkpub.plan.plan import PlannedRun
from sparkpub.plan.requested import with_load
from sparkpub.plan.workloads import architecture, server_pages
from sparkpub.plan.workloads.base import Answer
from sparkpub.record import sampled_metrics
from sparkpub.record.errors import (
    CollectError,
    NeverStartedError,
    SparkpubError,
    field_problems,
)
from sparkpub.record.identity import contradictions
from sparkpub.record.record import (
    Architecture,
    Container,
    Event,
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
from sparkpub.record.store import Stored

OF_ANOTHER_MACHINE = (
    "the server runs on another machine, which the collector does not see"
)


def measure(
    bench: Bench, job: RunJob, passed: Passed, server: LiveServer | None = None
) -> Stored:
    """Run it, as a client of `server` where there is one. The record is written whatever the run does; raises
    CollectError where nothing could be started."""
    draft = _draft(bench, job, passed)
    place = journal.begin(bench.folder, draft)
    try:
        for path, content in job.command.files().items():
            target = place / WORK / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        followed = follow(bench, job, draft, place, server)
        sealed = seal(
            place,
            bench.folder,
            draft.stem,
            job.command.outputs,
            bench.redactor,
            cut=followed.log_cut,
        )
        return journal.finish(
            bench.folder, _record(bench, job, draft, followed, sealed, server)
        )
    except NeverStartedError:
        journal.drop(bench.folder)
        raise
    except BaseException as error:
        # Whatever went wrong here, the run was on: it has a record, now or from the next collector.
        with suppress(Exception):  # what went wrong first is what is said
            journal.recover(
                bench.folder,
                bench.redactor,
                f"the collector failed: {_described(error)}",
            )
        if isinstance(error, OSError):
            what = f"run {draft.run_id} cannot be written: {error.strerror or error}"
            remedy = "make room or correct the rights; the next collector records what is there"
            raise CollectError(
                what, where=str(error.filename or bench.folder), remedy=remedy
            ) from None
        raise


def _described(error: BaseException) -> str:
    """An exception in one line."""
    if isinstance(error, SparkpubError):
        return error.lines()[0]
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def _draft(bench: Bench, job: RunJob, passed: Passed) -> Record:
    """The record as it is if nothing more becomes of the run."""
    run, matrix = job.order.run, bench.matrix
    while True:
        now = datetime.now(UTC)
        started = Moment.at(now)
        stem = stem_of(run.cell, run.iteration, started)
        if run.machine is not None:
            stem += f"_{run.machine[:8]}"  # others measure the same within the second
        if not (bench.folder / f"{stem}.json").exists():
            break
        # A retry within the second: the address must be new.
        time.sleep(1.05 - now.microsecond / 1e6)
    draft = interrupted(
        matrix,
        bench.public,
        job.order,
        stem=stem,
        started=started,
        status_reason=journal.KILLED,
        argv=bench.redactor.argv(job.command.argv),
        gates=passed.gates,
        machine=Machine() if job.elsewhere else bench.machine,
        reproducibility=_reproducibility(bench, job),
    )
    return published(draft, bench.redactor)


def interrupted(
    matrix: Matrix,
    shown: Matrix,
    order: Order,
    *,
    stem: str,
    **more: Any,
) -> Record:
    """The record of a run of the plan of which nothing is known but what it is to measure. `shown` is the matrix as
    records show it, and `more` are further fields."""
    run = order.run
    plan = Plan(
        position=run.position,
        order=matrix.order,
        seed=matrix.seed,
        attempt=order.attempt,
        analysis=matrix.analysis,
    )
    draft = Record(
        run_id=f"{matrix.campaign}-{stem}",
        campaign=matrix.campaign,
        model=run.model,
        environment=run.environment,
        workload=run.workload,
        iteration=run.iteration,
        repeat_of=order.repeat_of,
        specification=shown.fingerprint(*run.cell),
        status="interrupted",
        plan=plan,
        requested=_requested(matrix, shown, run),
        metrics={},
        **more,
    )
    return with_load(draft)


def _requested(matrix: Matrix, shown: Matrix, run: PlannedRun) -> Requested:
    """What a run is to measure; `shown` is the matrix as records show it."""
    model = matrix.models[run.model]
    return Requested(
        model_id=shown.models[run.model].id,
        model_path=shown.models[run.model].path,
        random_weights=model.has_random_weights,
        architecture=declared_architecture(model),
        workload=shown.declared_workload(run.workload),
        environment=shown.declared_environment(run.environment),
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


def _reproducibility(bench: Bench, job: RunJob) -> Reproducibility:
    commit, clean = own_commit()
    inherited = job.environment.inherited(job.environment_options)
    variables = (
        dict(inherited)
        | dict(job.command.variables)
        | dict(job.environment_options.env)
    )
    packages: dict[str, str] = {}
    why_none = None
    known = bench.packages.get(job.order.run.environment, "not asked")
    if isinstance(known, str):
        why_none = known
    else:
        packages = known
    return Reproducibility(
        sparkpub_version=__version__,
        sparkpub_commit=commit,
        sparkpub_clean=clean,
        packages=packages,
        packages_unavailable=why_none,
        variables=bench.redactor.variables(variables),
        other_variables=bench.redactor.other_names(variables),
        seeds={"workload": bench.matrix.seed, "order": bench.matrix.seed},
    )


def _record(
    bench: Bench,
    job: RunJob,
    draft: Record,
    followed: Followed,
    sealed: Sealed,
    server: LiveServer | None,
) -> Record:
    """What was asked, seen and answered, as the record of the run."""
    files = {role: content for role, content in sealed.content.items() if role != "log"}
    answer = job.workload.parse(
        sealed.content.get("log", b""), files, job.workload_options
    )
    stretches = _phases(answer, followed)
    sampled = _sampled(answer, followed, stretches, job.runs_already, server)
    status, reason = _status(followed, answer)
    if reason is not None:
        reason = bench.redactor.text(reason)[:1000]
    fields = dict(draft) | {
        "status": status,
        "status_reason": reason,
        "ended": Moment.at(followed.ended),
        "duration_seconds": round(followed.duration, 6),
        "argv": for_run(bench, job, bench.folder / journal.FOLDER).argv(followed.argv),
        "exit_code": None if followed.exit is None else followed.exit.code,
        "observed": _observed(answer, server),
        "metrics": dict(answer.metrics) | sampled,
        "samples": dict(answer.samples),
        "phases": stretches,
        "events": (*followed.events, *_noted(bench, draft, answer, status, server)),
        "container": _container(followed, server),
        "machine": _with_gpus_used(draft.machine, gpu_indices(job.environment_options)),
        "isolation": followed.isolation,
        "memory": sampled_metrics.ledger(
            followed.telemetry, bench.machine.memory_total_gib or 0.0
        ),
        "evidence": sealed.evidence,
        "unavailable": _unavailable(job, followed, sealed, server),
    }
    if job.elsewhere:
        sampled = {}
        fields |= _without_sensors(fields, answer, bench.folder)
    record = with_load(_valid(fields, sampled), answer.load)
    return published(record, bench.redactor)


def _valid(fields: dict[str, Any], sampled: Mapping[str, MetricValue]) -> Record:
    """A payload may claim what no record may hold (a rate of minus one). The run is then invalid, and still kept."""
    try:
        return Record(**fields)
    except ValidationError as error:
        problem = "; ".join(field_problems(error))
    instead = {
        "metrics": sampled,
        "samples": {},
        "status": "invalid",
        "status_reason": problem[:1000],
    }
    return Record(**fields | instead)


def _container(followed: Followed, server: LiveServer | None) -> Container | None:
    """The container that ran the command, else that of the server, whose client runs outside."""
    if followed.exit is not None and followed.exit.container is not None:
        return followed.exit.container
    return None if server is None else server.container


def _with_gpus_used(machine: Machine, indices: Sequence[int] | None) -> Machine:
    """The machine with the GPUs that the run used, of several that are there."""
    if indices is None or len(machine.gpus) < 2:
        return machine
    used = tuple(gpu for gpu in machine.gpus if gpu.index in indices)
    return machine.model_copy(update={"gpus": used, "gpus_there": len(machine.gpus)})


def _without_sensors(
    fields: Mapping[str, Any], answer: Answer, folder: Path
) -> dict[str, Any]:
    """What changes in the record of a run whose server is on another machine: nothing was seen of that one."""
    kept = []
    for item in fields["evidence"]:
        if item.role == "telemetry":
            (folder / item.path).unlink(missing_ok=True)
        else:
            kept.append(item)
    events = [event for event in fields["events"] if event.kind in ("note", "timeout")]
    why = {"telemetry": OF_ANOTHER_MACHINE, "machine": OF_ANOTHER_MACHINE}
    return {
        "metrics": dict(answer.metrics),
        "memory": None,
        "events": tuple(events),
        "evidence": tuple(kept),
        "unavailable": fields["unavailable"] | why,
    }


def _observed(answer: Answer, server: LiveServer | None) -> Observed:
    """What the run showed, and which start of a server served it."""
    if server is None:
        return answer.observed
    settings = answer.observed.settings | {"server": server.name}
    return answer.observed.model_copy(update={"settings": settings})


def _noted(
    bench: Bench,
    draft: Record,
    answer: Answer,
    status: Status,
    server: LiveServer | None,
) -> list[Event]:
    """As notes what is doubtful in the figures (of a run that failed its reason says so already), and what the model
    said before it was timed."""
    texts = [*answer.problems, *answer.notes] if status == "ok" else []
    if server is not None and server.answer is not None:
        texts.append(f"{server_pages.ANSWERED}{server.answer}")
    for odd in contradictions(draft.requested, answer.observed, answer.metrics):
        texts.append(f"observed identity is not the requested one: {odd}")
    return [
        Event(at_seconds=None, kind="note", text=bench.redactor.text(text))
        for text in texts
    ]


def _unavailable(
    job: RunJob, followed: Followed, sealed: Sealed, server: LiveServer | None
) -> dict[str, str]:
    """What the record lacks, and why."""
    reasons = followed.unavailable | sealed.unavailable
    if _container(followed, server) is None:
        reasons |= {"container": job.environment.no_container}
    if server is not None and server.first_run is not None:
        reasons |= {
            SERVER_START: f"measured once for this server, in run {server.first_run}"
        }
    return reasons


def _phases(answer: Answer, followed: Followed) -> tuple[Phase, ...]:
    """The phases of a run: as its payload timed them, else by what was printed."""
    if answer.phases:
        return phases.timed_by_payload(answer, followed.launched_epoch)
    return phases.seen_in_log(
        answer, followed.measuring_began, followed.measuring_ended, followed.duration
    )


def _sampled(
    answer: Answer,
    followed: Followed,
    stretches: tuple[Phase, ...],
    runs_already: bool,
    server: LiveServer | None,
) -> dict[str, MetricValue]:
    """The sampler's metrics over the measured phase, or why they are not known; in its first run the server's start."""
    why = phases.why_unknown(answer, followed.measuring_began, followed.measuring_ended)
    phase = phases.measured(stretches) or why
    found = sampled_metrics.metrics(
        followed.telemetry,
        followed.duration,
        phase,
        served=runs_already or server is not None,
    )
    if (
        server is not None
        and server.first_run is None
        and server.start_seconds is not None
    ):
        found[SERVER_START] = MetricValue(
            value=server.start_seconds, unit="s", source="sampler"
        )
    return found


def _status(followed: Followed, answer: Answer) -> tuple[Status, str | None]:
    if followed.stopped is not None:
        return followed.stopped
    assert followed.exit is not None
    if followed.exit.code != 0:
        reason = followed.exit.error or f"exit status {followed.exit.code}"
        return "failed", "; ".join((reason, *answer.problems))
    if not answer.complete:
        return "invalid", "; ".join(
            answer.problems
        ) or "the command ended without its result"
    return "ok", None

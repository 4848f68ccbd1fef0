"""Whether what was run is what the matrix declares: cells and iterations, options, order, amount of work, and no record
gone."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.plan.requested import load_of, options_of
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.base import RunCase
from sparkpub.record.errors import WorkloadError
from sparkpub.record.load import BATCH
from sparkpub.record.record import Analysis, Declared, Record
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review.checks.check import AskedOfRun, Check
from sparkpub.review.checks.finding import Finding, Threshold
from sparkpub.review.checks.rules import CLOCK_SECONDS, REPORT, TIMES, ask
from sparkpub.review.checks.view import (
    Case,
    View,
    about_cells,
    either,
    ids,
    label,
    listed,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell

LENGTH_TOLERANCE = Threshold(
    "length tolerance",
    0.005,
    "Allowed relative difference between requested and counted tokens per request, and two tokens at least: random "
    "prompts are decoded and encoded again. Answers that the tool forces to a length have exactly that length.",
)
PROMPT_TOLERANCE = Threshold(
    "prompt tolerance",
    0.1,
    "The same for prompts of llama-benchy, which are cut from a text: parts of it have more or fewer tokens than the "
    "whole has on average. And for prompts of imported runs, to which a chat template may add.",
)
CHANCE_ERRORS = Threshold(
    "standard errors",
    4.0,
    "Standard errors by which a mean may be off, of conditions or of prompts of random length: it is more in less than "
    "1 of 10,000 by chance.",
)
LENGTH_TOKENS = 2
"""Tokens that decoding and encoding again may add or take."""
TEMPLATE_TOKENS = 64
"""Tokens that a chat template may add to a prompt, in an imported run of which nobody knows whether it had one."""
_TEXT_TOLERANCE = 0.25
"""Relative difference between the tokens that a server counted and those of its text, encoded again: 12 % at most in
real answers of random tokens, which are the worst to encode."""
_ANY_SHORTER = 1.0
"""As a share: an answer may end early where nobody knows that it could not."""
_OWN_PAYLOADS = frozenset({"generate", "matmul", "ctranslate2"})
"""They report their number format by the name that the matrix has for it."""
_COUNT_TEXT = frozenset({"aiperf", "genai-perf", "guidellm"})
"""Clients that encode the text of answers again, where the server does not count."""
_OF_EXACT_LENGTH = frozenset({"generate", "llama-bench"})
"""They generate as many tokens as they are told to."""
_FOREIGN = re.compile(
    ", of another model$|, since that of the model could not be loaded$"
)
"""How clients' readers say that the prompts were not cut by the model's own tokenizer."""
SLOWING = frozenset(
    {
        "CUDA_LAUNCH_BLOCKING",
        "GGML_CUDA_DISABLE_GRAPHS",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "TORCHDYNAMO_DISABLE",
        "TORCH_COMPILE_DISABLE",
        "VLLM_TRACE_FUNCTION",
    }
)
"""Variables for debugging that make an engine slower. Of runs that we planned, each is told by itself where nobody
asked for it: left over on both sides, it shows in no comparison."""
_OFF = ("", "0", "false", "off", "no")
Departure = tuple[str, str]
"""In what a run is not as it was asked for, and how."""
_ANALYSIS = "the analysis that was declared when they began"


def is_planned(record: Record) -> bool:
    """Whether we planned a run, and did not import it."""
    return record.plan.order != "as-published"


# -- what was asked for --------------------------------------------------------------------------------------------


def not_as_requested(view: View) -> Iterator[Finding]:
    """Runs that were asked for something else than the matrix declares, or that did something else than asked for, one
    finding for each thing in which they differ."""
    matrix = view.campaign.matrix
    planned = {} if matrix is None else {run.slot: run for run in plan(matrix)}
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for run in view.happened:
        for what, detail in (
            *_declared(matrix, planned, run.record),
            *work_done(run.record),
        ):
            found[what][run.run_id].append(detail)
    for run, detail in _foreign_servers(view.happened):
        found["the server"][run.run_id].append(detail)
    source = "what was asked for" if matrix is None else "the matrix"
    for what, by_run in found.items():
        cases = [
            (run, "; ".join(by_run[run.run_id][:3]))
            for run in view.happened
            if run.run_id in by_run
        ]
        text = f"{{}} differs|differ from {source} in {what}"
        yield from view.tell("not-as-requested", "error", text, cases, what=what)


def _declared(
    matrix: Matrix | None,
    planned: Mapping[tuple[str, str, str, int], PlannedRun],
    record: Record,
) -> Iterator[Departure]:
    """What was asked for, and when, against what the matrix declares today."""
    if matrix is None:
        return
    for what, key, declared in (
        ("workload", record.workload, matrix.workloads),
        ("environment", record.environment, matrix.environments),
        ("model", record.model, matrix.models),
    ):
        if key not in declared:
            yield "its cell", f"the matrix has no {what} {key}"
            return
    if not is_planned(record):
        return
    asked, place, known = record.requested, record.plan, record.reproducibility
    workload = matrix.workloads[record.workload]
    environment = matrix.environments[record.environment]
    now = matrix.declared_workload(record.workload)
    yield from _differences("the workload", now, asked.workload, workload)
    now = matrix.declared_environment(record.environment)
    yield from _differences("the environment", now, asked.environment, environment)
    fingerprint = matrix.fingerprint(*record.cell)[:8]
    given = record.specification and record.specification[:8]
    seed = known and known.seeds.get("workload")
    run = planned.get((*record.cell, record.iteration))
    yield from _unlike("model", matrix.models[record.model].id, asked.model_id)
    yield from _unlike("specification", fingerprint, given)
    yield from _unlike("seed", matrix.seed, seed)
    yield from _unlike("order", matrix.order, place.order)
    yield from _unlike("seed of the order", matrix.seed, place.seed)
    if record.repeat_of is None:
        yield from _unlike("place in the plan", run and run.position, place.position)
        if run is None:
            lacks = f"iteration {record.iteration} is not planned"
            yield "the number of iterations", lacks
    yield from _analysis(matrix.analysis, place.analysis)
    yield from _container(record)
    yield from variables_of(record)
    yield from _command_line(matrix, record)


def _analysis(now: Analysis, then: Analysis | None) -> Iterator[Departure]:
    """A margin or primary metrics that were changed after a run: they may have been chosen with its figures in view."""
    if then is None:
        return
    if then.margin_percent != now.margin_percent:
        margins = f"{then.margin_percent:g} %, and {now.margin_percent:g} % now"
        yield _ANALYSIS, f"a margin of {margins}"
    if then.primary != now.primary:
        names = [", ".join(some.primary) or "none" for some in (then, now)]
        yield _ANALYSIS, f"the primary metrics were {names[0]}, and are {names[1]} now"


def _differences(
    what: str, declared: Mapping[str, Any], asked: Mapping[str, Any], options: Declared
) -> Iterator[Departure]:
    """Options of which one side has another value than the other; what is not written has its default."""
    fields = type(options).model_fields
    for name in dict.fromkeys([*declared, *asked]):
        default = None
        if name in fields:
            default = fields[name].get_default(call_default_factory=True)
        wanted, given = declared.get(name, default), asked.get(name, default)
        if wanted != given:
            yield what, f"{name} is {given!r} in place of {wanted!r}"


def _unlike(what: str, wanted: Any, found: Any) -> Iterator[Departure]:
    """Where two facts that are known differ."""
    if wanted is not None and found is not None and wanted != found:
        shown = f"{found:g}" if isinstance(found, float) else str(found)
        yield f"the {what}", f"{shown} in place of {wanted}"


def _container(record: Record) -> Iterator[Departure]:
    """A container is described by the engine that ran it; without that, nothing shows that there was one."""
    wanted = record.requested.environment.get("type") == "docker"
    if wanted and record.container is None and "container" not in record.unavailable:
        yield "the container", "one was requested, and none is recorded"


def variables_of(record: Record) -> Iterator[Departure]:
    """Environment variables that had another value than the environment sets, and switches that nobody set."""
    declared = record.requested.environment.get("env") or {}
    had = {} if record.reproducibility is None else record.reproducibility.variables
    for name, wanted in declared.items():
        value = had.get(name, wanted)
        if value != wanted and not is_path(str(wanted)):
            yield "an environment variable", f"{name} is {value} in place of {wanted}"
    for name in sorted(SLOWING & had.keys() - declared.keys()):
        if had[name].lower() not in _OFF:
            left = f"{name}={had[name]}, which slows engines, is not in the matrix"
            yield "an environment variable", left


def _command_line(matrix: Matrix, record: Record) -> Iterator[Departure]:
    """Flags that the options ask for and the command, as it was run, lacks or gives another value, and flags beside
    them."""
    given, asked = flag_values(record.argv), flag_values(_command(matrix, record))
    for flag in dict.fromkeys([*given, *asked]) if given and asked else ():
        had, wanted = given.get(flag), asked.get(flag)
        if had != wanted and not is_path(wanted or ""):
            shown = ("absent" if each is None else each for each in (had, wanted))
            yield "the command line", f"{flag} {' in place of '.join(shown)}"


def _command(matrix: Matrix, record: Record) -> tuple[str, ...]:
    """The command that the options of a run make; empty where they make none."""
    workload = matrix.workloads[record.workload]
    case = RunCase(
        model_key=record.model,
        model_id=record.requested.model_id,
        model_path=record.requested.model_path,
        model_config=matrix.models[record.model].config,
        random_weights=record.requested.random_weights,
        iteration=record.iteration,
        seed=matrix.seed,
        workload_key=record.workload,
        attempt=record.plan.attempt,
        server=matrix.environments[record.environment].server,
    )
    try:
        return WORKLOADS[workload.type].command(case, workload).argv
    except WorkloadError:
        return ()


def flag_values(argv: Sequence[str]) -> dict[str, str]:
    """Flag to the word that follows it; a flag without a value has an empty one."""
    return {
        word: "" if following.startswith("--") else following
        for word, following in pairwise([*argv, "--"])
        if word.startswith("--")
    }


def is_path(value: str) -> bool:
    """Whether a word of a command names a place on one machine, which no two environments need share."""
    return value.startswith(("/", "{", "<"))


# -- what was done -------------------------------------------------------------------------------------------------


def work_done(record: Record) -> Iterator[Departure]:
    """What the run observed of its own work, against what it was asked for, where its sources agree on that."""
    requested, seen, load = record.requested, record.observed, load_of(record)
    if "requests" not in requested.disputed:
        yield from _unlike("requests", load.requests, _sent(record))
    if not any(name in requested.disputed for name in BATCH):
        yield from _unlike("batch size", load.batch, seen.batch_size)
    for name, wanted, below, above, tokens in _lengths(record):
        found = getattr(seen, f"{name}_mean")
        if None in (wanted, found) or name in requested.disputed:
            continue
        share = below if found < wanted else above
        if not math.isclose(found, wanted, rel_tol=share, abs_tol=tokens):
            yield from _unlike(name.replace("_", " "), wanted, found)
    if requested.workload.get("type") in _OWN_PAYLOADS:
        yield from _unlike("number format", requested.workload.get("dtype"), seen.dtype)
    if record.container is not None:
        image = requested.environment.get("image")
        yield from _unlike("container image", image, record.container.image)


def _sent(record: Record) -> int | None:
    """The requests that a run sent: those that succeeded, which it counted, and those that failed."""
    succeeded = record.observed.requests
    failed = record.value("failed_requests_percent")
    if succeeded is None or failed is None or failed == 100:
        return succeeded
    return round(succeeded / (1 - failed / 100))


def _lengths(record: Record) -> Iterator[tuple[str, Any, float, float, int]]:
    """Prompts and answers: tokens of a request as asked for, None where they may be any; how far the counted ones may
    be below and above them, as shares; and how many more or fewer they may always be."""
    asked, load = record.requested.workload, load_of(record)
    prompt, answer = load.input_tokens, load.output_tokens
    tool = asked.get("reads") or asked.get("type")
    near, of_prompt = float(LENGTH_TOLERANCE), float(LENGTH_TOLERANCE)
    # Of a command that somebody wrote, the tool is known whose report it leaves, and not how it was asked.
    is_ours = is_planned(record) and "reads" not in asked
    if is_ours or tool in _OF_EXACT_LENGTH:
        few = LENGTH_TOKENS if is_ours else TEMPLATE_TOKENS
        if tool == "llama-benchy":
            of_prompt = float(PROMPT_TOLERANCE)
            prompt = None if prompt is None else prompt + load.depth
            answer = None if asked.get("exact_output") is False else answer
        yield "input_tokens", prompt, of_prompt, of_prompt, few
        if "--ignore-eos" in record.argv or tool in _OF_EXACT_LENGTH:
            near = few = 0
        yield "output_tokens", answer, near, near, few
        return
    # Lengths that are drawn from a range, each as likely: a share of 0.9 means from 0.1 to 1.9 times the middle.
    spread, drawn = 0.0, options_of(record).get("range_ratio")
    if drawn and record.observed.requests:
        spread = CHANCE_ERRORS * drawn / math.sqrt(3 * record.observed.requests)
    # What a chat template added is not known, nor whether answers were to end early. SGLang counts its range from the
    # other end.
    if "range_ratio" not in asked or tool == "vllm-bench":
        share = PROMPT_TOLERANCE + spread
        yield "input_tokens", prompt, share, share, TEMPLATE_TOKENS
    if asked.get("client", tool) in _COUNT_TEXT:
        near = _TEXT_TOLERANCE
    yield "output_tokens", answer, _ANY_SHORTER, near + spread, 0


def _of_another_tokenizer(_view: View, stored: Stored) -> Iterator[str]:
    tokenizer = stored.record.observed.settings.get("tokenizer", "")
    if _FOREIGN.search(tokenizer):
        yield tokenizer


def _on_the_processor(_view: View, stored: Stored) -> Iterator[str]:
    """An import of llama.cpp that could use a GPU and put no layer on it: nobody planned that, so nobody sees it."""
    record, settings = stored.record, stored.record.observed.settings
    backends = settings.get("backends", "CPU")
    if is_planned(record) or not record.machine.gpus or backends in ("CPU", "BLAS"):
        return
    if settings.get("n_gpu_layers") == "0":
        yield f"0 layers on the GPU, and llama.cpp was built with {backends}"


def _foreign_servers(runs: Sequence[Stored]) -> Iterator[Case]:
    """Runs that a server answered which the first of its clients, in another cell, had started."""
    owners: dict[str, tuple[str, str]] = {}
    for stored in runs:
        record, server = stored.record, stored.record.observed.settings.get("server")
        place = (record.model, record.environment)
        if server is not None and owners.setdefault(server, place) != place:
            yield stored, f"that of {'/'.join(owners[server])} in place of its own"


# -- as many runs as declared ----------------------------------------------------------------------------------------


def duplicate_iteration(view: View) -> Iterator[Finding]:
    """Iterations that stand more than once in their cell. The first good record counts, see
    `ReviewedCampaign.doubles`."""
    doubles = view.reviewed.doubles
    slots = grouped(view.happened, lambda run: doubles.get(run.run_id, run.run_id))
    again = [same for same in slots.values() if len(same) > 1]
    if not again:
        return
    iteration = view.where(again[0][:1]).removeprefix("iteration ")
    others = f" So were {len(again) - 1} more iterations." if len(again) > 1 else ""
    yield view.finding(
        "duplicate-iteration",
        "error",
        f"Iteration {iteration} was recorded {len(again[0])} times.{others} Only the first record of each counts, so "
        "that nobody picks the better one.",
        **about_cells(dict.fromkeys(same[0].record.cell for same in again)),
        runs=[run for same in again for run in ids(same)],
        excluded=list(doubles),
    )


def missing_cell(view: View) -> Iterator[Finding]:
    """Declared cells without one good run."""
    missing = {
        cell: len(runs)
        for cell, runs in view.recorded.items()
        if all(run.record.status != "ok" for run in runs)
    }
    if missing:
        cells = listed([label(cell) for cell in missing], "cells")
        failed = counted(sum(missing.values()), "recorded run")
        ended = f"; {failed} ended without a result" if any(missing.values()) else ""
        text = f"No good run of {cells}, which the matrix declares{ended}."
        yield view.finding("missing-cell", "warning", text, **about_cells(missing))


def unbalanced(view: View) -> Iterator[Finding]:
    """Cells with more or fewer good iterations than the matrix declares. Further records of an iteration have a finding
    of their own."""
    matrix, machines = view.campaign.matrix, 1
    if matrix is None:
        return
    if view.reviewed.replicated:
        machines = max(1, len(coverage.machines_of(view.campaign.records)))
    others: dict[int, dict[Cell, int]] = defaultdict(dict)
    for cell, runs in view.recorded.items():
        good = sum(
            run.record.status == "ok"
            and run.record.repeat_of is None
            and run.run_id not in view.reviewed.doubles
            for run in runs
        )
        declared = matrix.iterations_of(cell[2]) * machines
        if good not in (0, declared):
            others[declared][cell] = good
    for declared, cells in others.items():
        names = listed([label(cell) for cell in cells], "cells")
        numbers = listed([str(good) for good in sorted({*cells.values()})], "numbers")
        text = f"{names} has|have {numbers} of the {declared} good runs that the matrix declares."
        text = either(text, several=len(cells) > 1)
        yield view.finding("unbalanced", "warning", text, **about_cells(cells))


# -- times and records that are gone -------------------------------------------------------------------------------

ZONE_SECONDS = 14 * 3600.0
"""Local time lies up to so far off UTC."""
QUARTER_SECONDS = 900.0
"""And a whole number of these."""
_TIME_IN_ID = re.compile(r"_(\d{8}T\d{6}Z?)$")
_RECORD = re.compile(r".+_iter\d+_[^.]+\.json")


def time_consistency(view: View) -> Iterator[Finding]:
    """Runs whose times contradict each other or the evidence, and records that are gone."""
    yield from ask(view, "time-consistency", TIMES)
    times = "{} has|have impossible times"
    clocks = view.found(_other_clock)
    yield from view.tell("time-consistency", "error", times, clocks)
    unknown = [run for run in view.happened if run.record.started.zone == "unknown"]
    if len(unknown) < len(view.happened):
        yield from view.tell(
            "time-consistency",
            "warning",
            "The time zone of {} is unknown, and that of the others is UTC, so their order is unknown",
            [(run, "") for run in unknown],
        )
    attempt = "{} was|were repeated, but an earlier record is missing"
    lost = list(_lost_attempts(view))
    yield from view.tell("time-consistency", "error", attempt, lost)
    hole = "{} follows|follow an iteration without a record: it was deleted, or never committed"
    yield from view.tell("time-consistency", "error", hole, _holes(view))
    yield from _altered(view)


def _other_clock(view: View, stored: Stored) -> Iterator[str]:
    """Where the id of a run, or the tool's own clock, says another time than the record."""
    record, answer = stored.record, view.evidence.of(stored).answer
    named, compact = _TIME_IN_ID.search(record.run_id), record.started.compact
    if named is not None and named[1].rstrip("Z") != compact.rstrip("Z"):
        yield f"it started at {named[1]} according to its id, and at {compact} according to its record"
    if answer is None or record.started.zone != "utc":
        return
    start = datetime.fromisoformat(record.started.value)
    said = answer.said_at
    if answer.phases_epoch is not None:
        said = datetime.fromtimestamp(answer.phases_epoch, start.tzinfo)
    if said is None:
        return
    late = (said.replace(tzinfo=start.tzinfo) - start).total_seconds()
    if said.tzinfo is not None:
        late = (said - start).total_seconds()
    elif abs(late) <= ZONE_SECONDS:
        # Zones are whole quarters of an hour apart, and none explains a clock that is seven minutes off.
        late = (late + CLOCK_SECONDS) % QUARTER_SECONDS - CLOCK_SECONDS
    if not -CLOCK_SECONDS <= late <= (record.duration_seconds or 0.0) + CLOCK_SECONDS:
        yield f"its report says {said:%Y-%m-%dT%H:%M:%SZ}, {abs(late):,.0f} s off its start"


def _lost_attempts(view: View) -> Iterator[Case]:
    """Runs of whose earlier attempts one has no record."""

    def slot(record: Record) -> tuple[object, ...]:
        return *record.cell, record.iteration, record.repeat_of

    made = {(*slot(run.record), run.record.plan.attempt) for run in view.runs}
    for run in view.runs:
        for attempt in range(1, run.record.plan.attempt):
            if (*slot(run.record), attempt) not in made:
                yield run, f"attempt {attempt} is missing"
                break


def _altered(view: View) -> Iterator[Finding]:
    """Records that we collected, that were committed once and are gone, or say something else. Nobody has to touch one:
    a quarantine takes it out in sight. Who imports results again may get other names for them."""
    if not any(is_planned(run.record) for run in view.runs):
        return
    history = view.campaign.history
    for names, is_so in ((history.removed, "deleted"), (history.changed, "changed")):
        records = [name for name in names if _RECORD.fullmatch(name)]
        if records:
            yield view.finding(
                "time-consistency",
                "error",
                f"{counted(len(records), 'record')}, such as {records[0]}, {is_so} after being committed.",
                cells=[label(cell) for cell in view.recorded],
                files=records,
                what=f"records that were {is_so}",
            )


def _holes(view: View) -> list[Case]:
    """Runs of which an earlier iteration, on the same machine, left no record, not even of a failure. Whoever collects
    some cells only leaves out whole cells; machines that share a campaign share its iterations too, in any order."""
    ours = [run for run in view.runs if is_planned(run.record)]
    is_shared = len({run.record.machine.id for run in ours}) > 1
    if view.campaign.matrix is None or (is_shared and not view.reviewed.replicated):
        return []
    cases: dict[object, Case] = {}
    series = grouped(ours, lambda run: (*run.record.cell, run.record.machine.id))
    for place, runs in series.items():
        in_order = sorted(runs, key=lambda run: run.record.iteration)
        for before, after in pairwise(in_order):
            lost = before.record.iteration + 1
            if after.record.iteration > lost:
                cases.setdefault(place, (after, f"iteration {lost} has none"))
    # A damaged record is told of as such.
    return [] if view.damage else list(cases.values())


CHECKS = (
    Check(
        "duplicate-iteration",
        "meaning",
        ("error",),
        "Duplicate iterations?",
        duplicate_iteration,
        remedy="Quarantine the starts that were given up, with the reason.",
    ),
    Check(
        "missing-cell",
        "meaning",
        ("warning",),
        "Was every declared cell run?",
        missing_cell,
        remedy="Run sparkpub collect again, or take the cell out of the matrix (exclude:).",
    ),
    Check(
        "unbalanced",
        "meaning",
        ("warning",),
        "Has every cell the declared number of runs?",
        unbalanced,
        remedy="Measure what is missing (sparkpub collect), or say in campaign.json why it ended (ended:).",
    ),
    Check(
        "time-consistency",
        "meaning",
        ("error", "warning"),
        "Are the times of the runs possible?",
        time_consistency,
        thresholds=(CLOCK_SECONDS, REPORT),
        remedy="Restore deleted and changed records from git; where clocks differ, synchronise them and re-run.",
    ),
    Check(
        "not-as-requested",
        "meaning",
        ("error", "warning", "info"),
        "Did the runs follow the matrix?",
        not_as_requested,
        (
            AskedOfRun(
                _of_another_tokenizer,
                "was|were sent prompts that another model's tokenizer cut, so they are longer or shorter than their "
                "loads say",
                "info",
            ),
            AskedOfRun(
                _on_the_processor,
                "left the GPU idle",
                remedy="Have llama.cpp put the layers on the GPU (-ngl 99), or say that the processor was measured.",
            ),
        ),
        thresholds=(LENGTH_TOLERANCE, PROMPT_TOLERANCE, CHANCE_ERRORS),
        remedy="Re-run with the matrix as it was committed, or declare another campaign.",
        of_others="Read the figures as of the load that the report shows, and name it so in the import.",
    ),
)

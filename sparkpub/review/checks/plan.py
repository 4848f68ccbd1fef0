"""Whether what was run is what the matrix declares: cells and iterations, options, order, amount of work, and no record
gone."""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sparkpub.plan import coverage
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import plan
from sparkpub.plan.requested import load_of
from sparkpub.record.load import BATCH
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review import committed
from sparkpub.review.checks.check import ASK, Asked, Check, each
from sparkpub.review.checks.finding import Finding, Threshold
from sparkpub.review.checks.rules import CLOCK_SECONDS, REPORT, WALL, Breaks
from sparkpub.review.checks.view import (
    Case,
    View,
    ids,
    in_words,
    is_planned,
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
LENGTH_TOKENS = 2
"""Tokens that decoding and encoding again may add or take."""
TEMPLATE_TOKENS = 64
"""Tokens that a chat template may add to a prompt, in an imported run of which nobody knows whether it had one."""
_TEXT_TOLERANCE = 0.25
"""Relative difference between the tokens that a server counted and those of its text, encoded again: 12 % at most in
real answers of random tokens, which are the worst to encode."""
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


def _unlike(what: str, wanted: Any, found: Any) -> Iterator[str]:
    """Where two facts that are known differ."""
    if wanted is not None and found is not None and wanted != found:
        shown = f"{found:g}" if isinstance(found, float) else str(found)
        yield f"{what}: {shown} in place of {wanted}"


# -- what is declared --------------------------------------------------------------------------------------------


def _declared_otherwise(view: View, stored: Stored) -> Iterator[str]:
    """What the matrix declares of a run today and did not when it was measured. A margin or primary metrics may have
    been chosen with its figures in view."""
    record, matrix = stored.record, view.campaign.matrix
    if matrix is None:
        return
    try:
        specification = matrix.fingerprint(*record.cell)
    except KeyError:
        yield "the matrix has no such cell"
        return
    if not is_planned(record):
        return
    if record.specification not in (None, specification):
        yield from _options_changed(matrix, record)
    if record.repeat_of is None:
        slot = (*record.cell, record.iteration)
        position = view.once(_positions).get(slot, "none")
        yield from _unlike("place in the plan", position, record.plan.position)
    then, now = record.plan.analysis, matrix.analysis
    if then is not None and then.margin_percent != now.margin_percent:
        yield f"a margin of {then.margin_percent:g} %, and {now.margin_percent:g} % now"
    if then is not None and then.primary != now.primary:
        names = [", ".join(some.primary) or "none" for some in (then, now)]
        yield f"the primary metrics were {names[0]}, and are {names[1]} now"


def _options_changed(matrix: Matrix, record: Record) -> Sequence[str]:
    """Why a run has another specification than its cell has today."""
    asked = record.requested
    return [
        f"{name} was {then.get(name)}, and is {now.get(name)} now"
        for now, then in (
            (matrix.declared_workload(record.workload), asked.workload),
            (matrix.declared_environment(record.environment), asked.environment),
        )
        for name in {**now, **then}
        if then.get(name) != now.get(name)
    ] or ["its model or its seed was another"]


def _positions(view: View) -> Mapping[tuple[str, str, str, int], int]:
    """The place in the plan of each run that the matrix declares."""
    matrix = view.campaign.matrix
    return {} if matrix is None else {run.slot: run.position for run in plan(matrix)}


# -- what was done -------------------------------------------------------------------------------------------------


def _done_otherwise(view: View, stored: Stored) -> Iterator[str]:
    """What a run observed of itself, against what it was asked for, where its sources agree on that."""
    record = stored.record
    requested, seen, load = record.requested, record.observed, load_of(record)
    if is_planned(record):
        yield from _other_variables(record)
    server = seen.settings.get("server")
    if server is not None:
        owner = view.once(_owners)[server]
        yield from _unlike("server", "/".join(owner), "/".join(record.cell[:2]))
    if "requests" not in requested.disputed:
        yield from _unlike("requests", load.requests, _sent(record))
    if requested.disputed.keys().isdisjoint(BATCH):
        yield from _unlike("batch size", load.batch, seen.batch_size)
    yield from _other_prompts(record)
    yield from _other_answers(record)
    if requested.workload.get("type") in _OWN_PAYLOADS:
        yield from _unlike("number format", requested.workload.get("dtype"), seen.dtype)
    if record.container is not None:
        image = requested.environment.get("image")
        yield from _unlike("container image", image, record.container.image)


def _other_variables(record: Record) -> Iterator[str]:
    """Environment variables that had another value than the environment sets, and switches that nobody set."""
    declared = record.requested.environment.get("env") or {}
    had = {} if record.reproducibility is None else record.reproducibility.variables
    for name, wanted in declared.items():
        if not is_path(str(wanted)):
            yield from _unlike(name, wanted, had.get(name))
    for name in sorted(SLOWING & had.keys() - declared.keys()):
        if had[name].lower() not in _OFF:
            yield f"{name}={had[name]}, which slows engines, is not in the matrix"


def is_path(value: str) -> bool:
    """Whether a word of a command names a place on one machine, which no two environments need share."""
    return value.startswith(("/", "{", "<"))


def _owners(view: View) -> Mapping[str, tuple[str, str]]:
    """Server to the model and environment whose run was the first that it answered."""
    owners: dict[str, tuple[str, str]] = {}
    for record in (run.record for run in view.happened):
        server = record.observed.settings.get("server")
        if server is not None:
            owners.setdefault(server, (record.model, record.environment))
    return owners


def _sent(record: Record) -> int | None:
    """The requests that a run sent: those that succeeded, which it counted, and those that failed."""
    succeeded = record.observed.requests
    failed = record.value("failed_requests_percent")
    if succeeded is None or failed is None or failed == 100:
        return succeeded
    return round(succeeded / (1 - failed / 100))


def _tool(record: Record) -> Any:
    asked = record.requested.workload
    return asked.get("reads") or asked.get("type")


def _is_known(record: Record) -> bool:
    """Whether all is known of how a tool was asked: not in an import, nor in a command that somebody wrote."""
    return is_planned(record) and "reads" not in record.requested.workload


def _has_any_mean(record: Record) -> bool:
    """Whether lengths were drawn at random, of whose mean an import says nothing."""
    is_random = "range_ratio" in record.requested.workload
    return is_random and not _is_known(record)


def _other_prompts(record: Record) -> Iterator[str]:
    """Prompts of another length. What a chat template added to those of an import is not known."""
    load, found = load_of(record), record.observed.input_tokens_mean
    wanted, share, tokens = load.input_tokens, PROMPT_TOLERANCE, TEMPLATE_TOKENS
    if _is_known(record):
        tokens = LENGTH_TOKENS
        if _tool(record) != "llama-benchy":
            share = LENGTH_TOLERANCE
        elif wanted is not None:
            wanted += load.depth
    if wanted is None or found is None or "input_tokens" in record.requested.disputed:
        return
    if not _has_any_mean(record) and not _near(wanted, found, share, tokens):
        yield from _unlike("input tokens", wanted, found)


def _other_answers(record: Record) -> Iterator[str]:
    """Answers of another length. Those of an import may have been to end early; a client that encodes their text again
    counts more than the server did."""
    asked, load = record.requested.workload, load_of(record)
    wanted, found = load.output_tokens, record.observed.output_tokens_mean
    is_known, tool = _is_known(record), _tool(record)
    is_free = is_known and asked.get("exact_output") is False
    if wanted is None or found is None or "output_tokens" in record.requested.disputed:
        return
    share, tokens = float(LENGTH_TOLERANCE), LENGTH_TOKENS * is_known
    if tool in _OF_EXACT_LENGTH or (is_known and "--ignore-eos" in record.argv):
        share = tokens = 0
    elif is_free or _has_any_mean(record) or (not is_known and found < wanted):
        return
    elif not is_known and asked.get("client", tool) in _COUNT_TEXT:
        share = _TEXT_TOLERANCE
    if not _near(wanted, found, share, tokens):
        yield from _unlike("output tokens", wanted, found)


def _near(wanted: float, found: float, share: float, tokens: int) -> bool:
    return math.isclose(found, wanted, rel_tol=share, abs_tol=tokens)


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
        cells=[same[0].record.cell for same in again],
        runs=[run for same in again for run in ids(same)],
        excluded=list(doubles),
    )


def _good(view: View) -> Mapping[Cell, int]:
    """How many iterations of each cell have a record without a fault."""
    return {
        cell: sum(
            run.record.status == "ok"
            and run.record.repeat_of is None
            and run.run_id not in view.reviewed.doubles
            for run in runs
        )
        for cell, runs in view.recorded.items()
    }


def missing_cell(view: View) -> Iterator[Finding]:
    """Declared cells without one good run."""
    missing = [cell for cell, good in view.once(_good).items() if not good]
    if missing:
        text = f"No good run of {in_words(missing)}, which the matrix declares."
        yield view.finding("missing-cell", "warning", text, cells=missing)


def unbalanced(view: View) -> Iterator[Finding]:
    """Cells with more or fewer good iterations than the matrix declares. Further records of an iteration have a finding
    of their own."""
    matrix, machines = view.campaign.matrix, 1
    if matrix is None:
        return
    if view.reviewed.replicated:
        machines = max(1, len(coverage.machines_of(view.campaign.records)))
    others: dict[int, dict[Cell, int]] = defaultdict(dict)
    for cell, good in view.once(_good).items():
        declared = matrix.iterations_of(cell[2]) * machines
        if good not in (0, declared):
            others[declared][cell] = good
    for declared, cells in others.items():
        numbers = listed([str(good) for good in sorted({*cells.values()})], "numbers")
        text = f"Of the {declared} good runs that the matrix declares there are {numbers}: {in_words(cells)}."
        yield view.finding("unbalanced", "warning", text, cells=cells)


# -- times and records that are gone -------------------------------------------------------------------------------

_ZONE_SECONDS = 14 * 3600.0
"""Local time lies up to so far off UTC."""
_RECORD = re.compile(r".+_iter\d+_[^.]+\.json")


def _other_clock(view: View, stored: Stored) -> Iterator[str]:
    """Where the tool's own clock says another time than the record."""
    record, answer = stored.record, view.evidence.of(stored).answer
    if answer is None or record.started.zone != "utc":
        return
    start = datetime.fromisoformat(record.started.value)
    said = answer.said_at
    if answer.phases_epoch is not None:
        said = datetime.fromtimestamp(answer.phases_epoch, start.tzinfo)
    if said is None:
        return
    slack = CLOCK_SECONDS if said.tzinfo is not None else _ZONE_SECONDS
    late = (said.replace(tzinfo=said.tzinfo or start.tzinfo) - start).total_seconds()
    if not -slack <= late <= (record.duration_seconds or 0.0) + slack:
        yield f"its report says {said:%Y-%m-%dT%H:%M:%SZ}, {abs(late):,.0f} s off its start"


def _after_one_that_is_gone(view: View, stored: Stored) -> Iterator[str]:
    """Where an earlier attempt or iteration left no record, not even of a failure. Whoever collects some cells only
    leaves out whole cells; machines that share a campaign share its iterations too, in any order. A damaged record is
    told of as such."""
    record, made = stored.record, view.once(_made)
    if not is_planned(record) or view.damage:
        return
    *place, iteration = _place(view, record)
    for attempt in range(1, record.plan.attempt):
        if (*place, iteration, record.repeat_of, attempt) not in made:
            yield f"attempt {attempt} is missing"
    first, before = (*place, 1), (*place, iteration - 1)
    is_shared = len(view.reviewed.machines) > 1 and not view.reviewed.replicated
    in_order = record.plan.order != "random" and not is_shared
    if in_order and iteration > 1 and first in made and before not in made:
        yield f"iteration {iteration - 1} has none"


def _place(view: View, record: Record) -> tuple[Any, ...]:
    """Which run of the campaign a record is of: its cell, machine where each repeats the cell, and iteration."""
    return *record.cell, *view.reviewed.slot(record)


def _made(view: View) -> Collection[tuple[Any, ...]]:
    """Runs that have a record, and their attempts."""
    made: set[tuple[Any, ...]] = set()
    for record in view.campaign.records:
        place = _place(view, record)
        made |= {place, (*place, record.repeat_of, record.plan.attempt)}
    return made


def _in_no_zone(view: View) -> list[Case]:
    """The runs whose time zone is unknown, beside others whose zone is known."""
    unknown = [run for run in view.happened if run.record.started.zone == "unknown"]
    return [(run, "") for run in unknown if len(unknown) < len(view.happened)]


def touched_records(view: View) -> Iterator[Finding]:
    """Records that were committed once and are gone, or say something else. Nobody has to touch one: a quarantine takes
    it out in sight. Who imports results again may get other names."""
    if not any(is_planned(run.record) for run in view.runs):
        return
    for names, is_so in (
        (committed.removed, "deleted"),
        (committed.changed, "changed"),
    ):
        records = [*filter(_RECORD.fullmatch, names(view.campaign.folder))]
        if records:
            yield view.finding(
                "time-consistency",
                "error",
                f"{counted(len(records), 'record')}, such as {records[0]}, {is_so} after being committed.",
                cells=view.recorded,
                files=records,
                what=f"records that were {is_so}",
            )


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
        imported=ASK,
    ),
    Check(
        "time-consistency",
        "meaning",
        ("error", "warning"),
        "Are the times of the runs possible?",
        touched_records,
        (
            Asked("had impossible times", Breaks(WALL, also=_other_clock), "error"),
            Asked(
                "followed a run without a record: it was deleted, or never committed",
                each(_after_one_that_is_gone),
                "error",
            ),
            Asked(
                "began in a time zone that is unknown, and the others in UTC, so their order is unknown",
                _in_no_zone,
            ),
        ),
        thresholds=(CLOCK_SECONDS, REPORT),
        remedy="Restore deleted and changed records from git; where clocks differ, synchronise them and re-run.",
        imported=ASK,
    ),
    Check(
        "not-as-requested",
        "meaning",
        ("error", "warning", "info"),
        "Did the runs follow the matrix?",
        asked=(
            Asked("differed from the matrix", each(_declared_otherwise), "error"),
            Asked("did other work than asked for", each(_done_otherwise), "error"),
            Asked(
                "got prompts that another model's tokenizer cut, so they are longer or shorter than their loads say",
                each(_of_another_tokenizer),
                "info",
            ),
            Asked(
                "left the GPU idle",
                each(_on_the_processor),
                remedy="Have llama.cpp put the layers on the GPU (-ngl 99), or say that the processor was measured.",
            ),
        ),
        thresholds=(LENGTH_TOLERANCE, PROMPT_TOLERANCE),
        remedy="Re-run with the matrix as it was committed, or declare another campaign.",
        imported="Read the figures as of the load that the report shows, and name it so in the import.",
    ),
)

"""Whether what was run is what the matrix declares: cells and iterations, options, order, amount of work, and no record
gone."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkpub.plan.requested import load_of
from sparkpub.record.load import BATCH
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import counted
from sparkpub.review import committed
from sparkpub.review.checks.check import ASK, Asked, Check
from sparkpub.review.checks.finding import Finding, Threshold
from sparkpub.review.checks.rules import WALL, Wrong
from sparkpub.review.checks.view import (
    Case,
    View,
    in_words,
    is_planned,
    listed,
    once,
)
from sparkpub.review.reviewed import Cell

LENGTH_TOLERANCE = Threshold(
    0.005,
    "Allowed relative difference between requested and counted tokens per request, and two tokens at least: random "
    "prompts are decoded and encoded again. Answers that the tool forces to a length have exactly that length.",
)
LOOSE_TOLERANCE = Threshold(
    0.25,
    "The same, and 64 tokens at least, of prompts of llama-benchy and of imported runs: they are cut from a text, or "
    "get a chat template. And of imported answers that are longer: encoded again, they were 12 % off at most.",
)
LENGTH_TOKENS, LOOSE_TOKENS = 2, 64
"""Tokens that may be more or fewer whatever the length; 64 of prompts."""
_OWN_PAYLOADS = frozenset({"generate", "matmul", "ctranslate2"})
"""They report their number format by the name that the matrix has for it."""
_OF_EXACT_LENGTH = frozenset({"generate", "llama-bench"})
"""They generate as many tokens as they are told to."""
_FOREIGN = re.compile(
    ", of another model$|, since that of the model could not be loaded$"
)
"""How clients' readers say that the prompts were not cut by the model's own tokenizer."""


# -- what is declared --------------------------------------------------------------------------------------------


def _declared_otherwise(view: View, stored: Stored) -> Iterator[str]:
    """What the matrix declares of a run today and did not when it was measured. A margin or primary metrics may have
    been chosen with its figures in view."""
    record, matrix = stored.record, view.campaign.matrix
    if matrix is None:
        return
    if record.cell not in matrix.cells():
        yield "the matrix has no such cell"
        return
    if not is_planned(record):
        return
    if record.specification not in (None, matrix.fingerprint(*record.cell)):
        yield "model, seed or options were others"
    then, now = record.plan.analysis, matrix.analysis
    if then is not None and then.margin_percent != now.margin_percent:
        yield f"margin in %: {then.margin_percent:g} in place of {now.margin_percent:g}"
    if then is not None and then.primary != now.primary:
        yield f"primary metrics: {', '.join(then.primary)} in place of {', '.join(now.primary)}"


# -- what was done -------------------------------------------------------------------------------------------------


def _done_otherwise(view: View, stored: Stored) -> Iterator[str]:
    """What a run observed of itself, against what it was asked for, where its sources agree on that."""
    record = stored.record
    requested, seen, load = record.requested, record.observed, load_of(record)
    asked: dict[str, tuple[Any, Any]] = {}
    if "requests" not in requested.disputed:
        asked["requests"] = load.requests, _sent(record)
    if requested.disputed.keys().isdisjoint(BATCH):
        asked["batch size"] = load.batch, seen.batch_size
    if requested.workload.get("type") in _OWN_PAYLOADS:
        asked["number format"] = requested.workload.get("dtype"), seen.dtype
    if record.container is not None:
        image = requested.environment.get("image")
        asked["container image"] = image, record.container.image
    if server := seen.settings.get("server"):
        owner = "/".join(_owners(view)[server])
        asked["server"] = owner, "/".join(record.cell[:2])
    for name, wanted, share, tokens in _lengths(record):
        found = getattr(seen, f"{name}_mean")
        is_known = None not in (wanted, found) and name not in requested.disputed
        if is_known and not math.isclose(found, wanted, rel_tol=share, abs_tol=tokens):
            asked[name.replace("_", " ")] = wanted, f"{found:g}"
    for what, (wanted, found) in asked.items():
        if None not in (wanted, found) and wanted != found:
            yield f"{what}: {found} in place of {wanted}"


def is_path(value: str) -> bool:
    """Whether a word of a command names a place on one machine, which no two environments need share."""
    return value.startswith(("/", "{", "<"))


@once
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


def _lengths(record: Record) -> Iterator[tuple[str, Any, float, float]]:
    """Tokens of prompts and answers as asked for, where they may not be any; by how much the counted ones may be off,
    as a share and in tokens."""
    asked, load = record.requested.workload, load_of(record)
    tool = asked.get("reads") or asked.get("type")
    # Of a command that somebody wrote, the tool is known whose report it leaves, and not how it was asked.
    is_known = is_planned(record) and "reads" not in asked
    is_exact = tool in _OF_EXACT_LENGTH or (is_known and "--ignore-eos" in record.argv)
    if "range_ratio" in asked and not is_known:
        return  # lengths that are drawn at random may have any mean
    off: tuple[float, float] = LOOSE_TOLERANCE, LOOSE_TOKENS
    prompt, answer = load.input_tokens, load.output_tokens
    if tool == "llama-benchy" and is_known and prompt is not None:
        prompt += load.depth
    elif is_known:
        off = LENGTH_TOLERANCE, LENGTH_TOKENS
    if load.dataset is None:  # later turns send what was said before as well
        yield "input_tokens", prompt, *off
    # An answer may end early where the matrix does not forbid it.
    is_forced = is_known and asked.get("exact_output") is not False
    if is_exact:
        yield "output_tokens", answer, 0, 0
    elif is_forced or (record.observed.output_tokens_mean or 0) > (answer or 0):
        share = LENGTH_TOLERANCE if is_known else LOOSE_TOLERANCE
        yield "output_tokens", answer, share, LENGTH_TOKENS


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


def _doubled(view: View) -> list[Case]:
    """Records of iterations that have several. The first good one counts, see `ReviewedCampaign.doubles`."""
    doubles = view.reviewed.doubles
    named = {*doubles, *doubles.values()}
    return [(run, "") for run in view.happened if run.run_id in named]


@once
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
    missing = [cell for cell, good in _good(view).items() if not good]
    if missing:
        text = f"No good run of {in_words(missing)}, which the matrix declares."
        yield view.finding("missing-cell", "warning", text, cells=missing)


def unbalanced(view: View) -> Iterator[Finding]:
    """Cells with more or fewer good iterations than the matrix declares. Further records of an iteration have a finding
    of their own."""
    matrix = view.campaign.matrix
    if matrix is None:
        return
    machines = len(view.reviewed.machines) if view.reviewed.replicated else 1
    others: dict[Cell, str] = {}
    for cell, good in _good(view).items():
        declared = matrix.iterations_of(cell[2]) * max(1, machines)
        if good not in (0, declared):
            others[cell] = f"{good} of {declared}"
    if others:
        numbers = listed(sorted({*others.values()}), "numbers")
        text = f"Of the good runs that the matrix declares there are {numbers}: {in_words(others)}."
        yield view.finding("unbalanced", "warning", text, cells=others)


# -- times and records that are gone -------------------------------------------------------------------------------

_RECORD = re.compile(r".+_iter\d+_[^.]+\.json")


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
        "Duplicate iterations?",
        asked=(
            Asked(
                "are several records of one iteration, of which the first counts, so that nobody picks the better one",
                _doubled,
                "error",
            ),
        ),
        remedy="Quarantine the starts that were given up, with the reason.",
    ),
    Check(
        "missing-cell",
        "Was every declared cell run?",
        ("warning",),
        missing_cell,
        remedy="Run sparkpub collect again, or take the cell out of the matrix (exclude:).",
        imported=ASK,
    ),
    Check(
        "unbalanced",
        "Has every cell the declared number of runs?",
        ("warning",),
        unbalanced,
        remedy="Measure what is missing (sparkpub collect), or say in campaign.json why it ended (ended:).",
        imported=ASK,
    ),
    Check(
        "time-consistency",
        "Are the times of the runs possible?",
        ("error",),
        touched_records,
        asked=(
            Asked("had impossible times", Wrong(WALL), "error"),
            Asked(
                "began in a time zone that is unknown, and the others in UTC, so their order is unknown",
                _in_no_zone,
            ),
        ),
        remedy="Restore deleted and changed records from git; synchronise clocks, and re-run one run after the other.",
        imported=ASK,
    ),
    Check(
        "not-as-requested",
        "Did the runs follow the matrix?",
        asked=(
            Asked("differed from the matrix", Wrong(_declared_otherwise), "error"),
            Asked("did other work than asked for", Wrong(_done_otherwise), "error"),
            Asked(
                "got prompts that another model's tokenizer cut, so they are longer or shorter than their loads say",
                Wrong(_of_another_tokenizer),
                "info",
            ),
            Asked(
                "left the GPU idle",
                Wrong(_on_the_processor),
                remedy="Have llama.cpp put the layers on the GPU (-ngl 99), or say that the processor was measured.",
            ),
        ),
        remedy="Re-run with the matrix as it was committed, or declare another campaign.",
        imported="Read the figures as of the load that the report shows, and name it so in the import.",
    ),
)

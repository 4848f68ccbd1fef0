"""Whether what was run is what the matrix declares: options, image, order, specification, amount of work."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from sparkpub.plan import matrix as matrices
from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.plan.requested import load_of, options_of
from sparkpub.plan.workloads import WORKLOADS
from sparkpub.plan.workloads.base import RunCase
from sparkpub.record.errors import MatrixError, WorkloadError
from sparkpub.record.load import BATCH, Load
from sparkpub.record.record import Analysis, Declared, Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View, label

_TEXT_TOLERANCE = 0.25
"""Relative difference between the tokens that a server counted and those of its text, encoded again: 12 % at most in
real answers of random tokens, which are the worst to encode."""
LENGTH_TOLERANCE = Threshold(
    "length tolerance",
    0.005,
    "Allowed relative difference between requested and counted tokens per request, and two tokens at least: random "
    "prompts are decoded and encoded again. Answers that the tool forces to a length have exactly that length.",
)
LENGTH_TOKENS = 2
"""Tokens that decoding and encoding again may add or take."""
TEMPLATE_TOKENS = 64
"""Tokens that a chat template may add to a prompt, in an imported run of which nobody knows whether it had one."""
PROMPT_TOLERANCE = Threshold(
    "prompt tolerance",
    0.1,
    "The same for prompts of llama-benchy, which are cut from a text: parts of it have more or fewer tokens than the "
    "whole has on average. And for prompts of imported runs, to which a chat template may add.",
)

RANGE_ERRORS = Threshold(
    "range standard errors",
    4.0,
    "Standard errors by which the mean of prompts of random length may be off: less than 1 in 10,000 by chance.",
)

_OWN_PAYLOADS = frozenset({"generate", "matmul", "ctranslate2"})
"""They report their number format by the name that the matrix has for it."""
_COUNT_TEXT = frozenset({"aiperf", "genai-perf", "guidellm"})
"""Clients that encode the text of answers again, where the server does not count."""
_FOREIGN = re.compile(
    ", of another model$|, since that of the model could not be loaded$"
)
"""How clients' readers say that the prompts were not cut by the model's own tokenizer."""
_OF_EXACT_LENGTH = frozenset({"generate", "llama-bench"})
"""They generate as many tokens as they are told to."""


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
"""Variables for debugging that make an engine slower. Of runs that we planned, each is told
by itself where nobody asked for it: left over on both sides, it shows in no comparison."""
_OFF = ("", "0", "false", "off", "no")


def not_as_requested(view: View) -> Iterator[Finding]:
    """Runs that were asked for something else than the matrix declares, or that did something else than asked for."""
    matrix = view.campaign.matrix
    planned = {} if matrix is None else {run.slot: run for run in plan(matrix)}
    wrong: dict[str, list[Case]] = defaultdict(list)
    for stored in view.happened:
        record = stored.record
        differs = _work_done(record)
        if matrix is not None:
            differs = chain(_problems(matrix, planned, record), differs)
        for what, problem in differs:
            wrong[what].append((stored, problem))
    wrong["the server"] += _foreign_servers(view.happened)
    if matrix is not None:
        yield from _declared_anew(view, matrix)
    yield from view.faulty(
        "not-as-requested",
        "info",
        _of_another_tokenizer,
        "was sent prompts that another model's tokenizer cut, so they are longer or shorter than their load says",
        "were sent prompts that another model's tokenizer cut, so they are longer or shorter than their loads say",
        what="the tokenizer",
    )
    yield from view.faulty(
        "not-as-requested",
        "warning",
        _on_the_processor,
        "left the GPU idle",
        what="the GPU",
        remedy="Have llama.cpp put the layers on the GPU (-ngl 99), or say that the processor was measured.",
    )
    source = "what was asked for" if matrix is None else "the matrix"
    for what, cases in wrong.items():
        yield from view.cases(
            "not-as-requested",
            "error",
            cases,
            f"differs from {source} in {what}",
            f"differ from {source} in {what}",
            what=what,
        )


def _declared_anew(view: View, matrix: Matrix) -> Iterator[Finding]:
    """An analysis that is no longer the one that was committed with the first record, whatever the records say now."""
    first = view.campaign.history.first_matrix
    if first is None:
        return
    try:
        then = matrices.from_document(first, "the first commit")
    except MatrixError:
        return  # of a version that nobody reads any more
    cells = [label(cell) for cell in view.recorded]
    changes = [change for _, change in _analysis(matrix.analysis, then.analysis)]
    if changes:
        text = (
            f"The analysis was changed after the first record was committed: {'; '.join(changes)}. Verdicts are by "
            "an analysis that may have been chosen with the figures in view."
        )
        what = "the analysis that was committed first"
        yield view.finding("not-as-requested", "error", text, what=what, cells=cells)


def _problems(
    matrix: Matrix,
    planned: Mapping[tuple[str, str, str, int], PlannedRun],
    record: Record,
) -> Iterator[tuple[str, str]]:
    """What differs, and how."""
    if (
        record.workload not in matrix.workloads
        or record.environment not in matrix.environments
    ):
        yield "its cell", "the matrix has no such workload or environment"
        return
    if record.model not in matrix.models:
        yield "its cell", "the matrix has no such model"
        return
    if record.plan.order != "as-published":
        yield from _declared(matrix, planned, record)
        yield from _container(record)
        yield from _variables(record)
        yield from _command_line(matrix, record)


def _declared(
    matrix: Matrix,
    planned: Mapping[tuple[str, str, str, int], PlannedRun],
    record: Record,
) -> Iterator[tuple[str, str]]:
    """What was asked for, and when, against what the matrix declares today."""
    asked, place, known = record.requested, record.plan, record.reproducibility
    for what, declared, given, options in (
        (
            "the workload",
            matrix.declared_workload(record.workload),
            asked.workload,
            matrix.workloads[record.workload],
        ),
        (
            "the environment",
            matrix.declared_environment(record.environment),
            asked.environment,
            matrix.environments[record.environment],
        ),
    ):
        yield from _differences(what, declared, given, options)
    seed = None if known is None else known.seeds.get("workload")
    fingerprint = record.specification and record.specification[:8]
    yield from _unlike("model", matrix.models[record.model].id, asked.model_id)
    yield from _unlike(
        "specification", matrix.fingerprint(*record.cell)[:8], fingerprint
    )
    yield from _unlike("seed", matrix.seed, seed)
    yield from _unlike("order", matrix.order, place.order)
    yield from _unlike("seed of the order", matrix.seed, place.seed)
    if record.repeat_of is None:
        run = planned.get((*record.cell, record.iteration))
        position = None if run is None else run.position
        yield from _unlike("place in the plan", position, place.position)
        if run is None:
            yield (
                "the number of iterations",
                f"iteration {record.iteration} is not planned",
            )
    yield from _analysis(matrix.analysis, place.analysis)


def _analysis(now: Analysis, then: Analysis | None) -> Iterator[tuple[str, str]]:
    """A margin or primary metrics that were changed after a run: they may have been chosen with its figures in view."""
    what = "the analysis that was declared when they began"
    if then is None:
        return
    if then.margin_percent != now.margin_percent:
        yield (
            what,
            f"a margin of {then.margin_percent:g} %, and {now.margin_percent:g} % now",
        )
    if then.primary != now.primary:
        names = [", ".join(some.primary) or "none" for some in (then, now)]
        yield what, f"the primary metrics were {names[0]}, and are {names[1]} now"


def _differences(
    what: str, declared: Mapping[str, Any], asked: Mapping[str, Any], options: Declared
) -> Iterator[tuple[str, str]]:
    """Options of which one side has another value than the other; what is not written has its default."""
    fields = type(options).model_fields
    for name in dict.fromkeys([*declared, *asked]):
        default = (
            fields[name].get_default(call_default_factory=True)
            if name in fields
            else None
        )
        wanted, given = declared.get(name, default), asked.get(name, default)
        if wanted != given:
            yield what, f"{name} is {given!r} in place of {wanted!r}"


def _work_done(record: Record) -> Iterator[tuple[str, str]]:
    """What the run observed of its own work, against what it was asked for, where its sources agree on that."""
    requested, seen, load = record.requested, record.observed, load_of(record)
    if "requests" not in requested.disputed:
        yield from _unlike("requests", load.requests, _sent(record))
    if not any(name in requested.disputed for name in BATCH):
        yield from _unlike("batch size", load.batch, seen.batch_size)
    for name, length in _lengths(record, load):
        found = getattr(seen, f"{name}_mean")
        if (
            found is not None
            and name not in requested.disputed
            and length.excludes(found)
        ):
            yield from _unlike(name.replace("_", " "), length.wanted, found)
    if requested.workload.get("type") in _OWN_PAYLOADS:
        yield from _unlike("number format", requested.workload.get("dtype"), seen.dtype)
    if record.container is not None:
        image = requested.environment.get("image")
        yield from _unlike("container image", image, record.container.image)


def _of_another_tokenizer(_view: View, stored: Stored) -> Iterator[str]:
    tokenizer = stored.record.observed.settings.get("tokenizer", "")
    if _FOREIGN.search(tokenizer):
        yield tokenizer


def _on_the_processor(_view: View, stored: Stored) -> Iterator[str]:
    """An import of llama.cpp that could use a GPU and put no layer on it: nobody planned that, so nobody sees it."""
    record = stored.record
    settings = record.observed.settings
    is_planned = record.plan.order != "as-published"
    if is_planned or settings.get("n_gpu_layers") != "0" or not record.machine.gpus:
        return
    if settings.get("backends", "CPU") not in ("CPU", "BLAS"):
        yield f"0 layers on the GPU, and llama.cpp was built with {settings['backends']}"


def _sent(record: Record) -> int | None:
    """The requests that a run sent: those that succeeded, which it counted, and those that failed."""
    succeeded = record.observed.requests
    failed = record.value("failed_requests_percent")
    if succeeded is None or failed is None or failed == 100:
        return succeeded
    return round(succeeded / (1 - failed / 100))


class Length(NamedTuple):
    """Tokens of a request as asked for, None where they may be any; how far the counted ones may be below and above
    them, as shares; and how many more or fewer they may always be."""

    wanted: int | None
    below: float
    above: float
    tokens: int = 0

    def excludes(self, found: float) -> bool:
        """Whether a request had another length."""
        if self.wanted is None:
            return False
        share = self.below if found < self.wanted else self.above
        return not math.isclose(found, self.wanted, rel_tol=share, abs_tol=self.tokens)


_ANY_SHORTER = 1.0
"""As a share: an answer may end early where nobody knows that it could not."""


def _lengths(record: Record, load: Load) -> Iterator[tuple[str, Length]]:
    """Prompts and answers as asked for, and how exactly."""
    asked = record.requested.workload
    tool = asked.get("reads") or asked.get("type")
    prompt, answer = load.input_tokens, load.output_tokens
    near = float(LENGTH_TOLERANCE)
    imported = record.plan.order == "as-published" or "reads" in asked
    few = TEMPLATE_TOKENS if imported else LENGTH_TOKENS
    if imported and tool not in _OF_EXACT_LENGTH:
        spread = _of_range(record)
        # What a chat template added is not known, nor whether answers were to end early. SGLang counts its range from
        # the other end.
        if "range_ratio" not in asked or tool == "vllm-bench":
            share = PROMPT_TOLERANCE + spread
            yield "input_tokens", Length(prompt, share, share, few)
        if asked.get("client", tool) in _COUNT_TEXT:
            near = _TEXT_TOLERANCE
        yield "output_tokens", Length(answer, _ANY_SHORTER, near + spread)
        return
    of_prompt = near
    if tool == "llama-benchy":
        of_prompt = float(PROMPT_TOLERANCE)
        prompt = None if prompt is None else prompt + load.depth
        answer = None if asked.get("exact_output") is False else answer
    yield "input_tokens", Length(prompt, of_prompt, of_prompt, few)
    if "--ignore-eos" in record.argv or tool in _OF_EXACT_LENGTH:
        yield "output_tokens", Length(answer, 0.0, 0.0)
    else:
        yield "output_tokens", Length(answer, near, near, few)


def _of_range(record: Record) -> float:
    """How far the mean of lengths that are drawn from a range may be off its middle, as a share of it: four standard
    errors. A share of 0.9 means lengths from 0.1 to 1.9 times the middle, each as likely."""
    share = options_of(record).get("range_ratio")
    requests = record.observed.requests
    if not isinstance(share, int | float) or not requests:
        return 0.0
    return RANGE_ERRORS * share / math.sqrt(3 * requests)


def _foreign_servers(runs: Sequence[Stored]) -> Iterator[Case]:
    """Runs that a server answered which the first of its clients, in another cell, had started."""
    owners: dict[str, tuple[str, str]] = {}
    for stored in runs:
        record = stored.record
        server = record.observed.settings.get("server")
        if server is None:
            continue
        place = (record.model, record.environment)
        owner = owners.setdefault(server, place)
        if owner != place:
            yield stored, f"that of {'/'.join(owner)} in place of its own"


def _unlike(what: str, wanted: Any, found: Any) -> Iterator[tuple[str, str]]:
    """Where two facts that are known differ."""
    if wanted is not None and found is not None and wanted != found:
        shown = f"{found:g}" if isinstance(found, float) else str(found)
        yield f"the {what}", f"{shown} in place of {wanted}"


def _container(record: Record) -> Iterator[tuple[str, str]]:
    """A container is described by the engine that ran it; without that, nothing shows that there was one."""
    wanted = record.requested.environment.get("type") == "docker"
    explained = "container" in record.unavailable
    if wanted and record.container is None and not explained:
        yield "the container", "one was requested, and none is recorded"


def _variables(record: Record) -> Iterator[tuple[str, str]]:
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


def _command_line(matrix: Matrix, record: Record) -> Iterator[tuple[str, str]]:
    """Flags that the options ask for and the command, as it was run, lacks or gives another value, and flags beside
    them."""
    given, asked = flag_values(record.argv), flag_values(_command(matrix, record))
    if not given or not asked:
        return
    for flag, value in given.items():
        if flag not in asked:
            shown = "" if is_path(value) else value
            yield "the command line", f"nobody asked for {flag} {shown}".strip()
    for flag, wanted in asked.items():
        if flag not in given:
            yield "the command line", f"{flag} {wanted}".strip() + " is missing"
        elif given[flag] != wanted and not is_path(wanted):
            yield "the command line", f"{flag} {given[flag]} in place of {wanted}"


def _command(matrix: Matrix, record: Record) -> tuple[str, ...]:
    """The command that the options of a run make; empty where they make none."""
    workload = matrix.workloads[record.workload]
    model = matrix.models[record.model]
    case = RunCase(
        model_key=record.model,
        model_id=record.requested.model_id,
        model_path=record.requested.model_path,
        model_config=model.config,
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
    values: dict[str, str] = {}
    for word, following in pairwise([*argv, "--"]):
        if not word.startswith("--"):
            continue
        values[word] = "" if following.startswith("--") else following
    return values


def is_path(value: str) -> bool:
    """Whether a word of a command names a place on one machine, which no two environments need share."""
    return value.startswith(("/", "{", "<"))


CHECKS = (
    Check(
        "not-as-requested",
        "meaning",
        ("error", "warning", "info"),
        "Did the runs follow the matrix?",
        not_as_requested,
        thresholds=(LENGTH_TOLERANCE, PROMPT_TOLERANCE, RANGE_ERRORS),
        remedy="Re-run with the matrix as it was committed, or declare another campaign.",
    ),
)

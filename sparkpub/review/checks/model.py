"""Which model really ran: by its configuration, by the memory it takes, and beside other models."""

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from statistics import fmean, variance

from sparkpub.plan.requested import is_of_running_server
from sparkpub.record import identity as identities
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View, label
from sparkpub.review.physics import (
    THROUGHPUT,
    bandwidth,
    batch_of,
    read_per_step,
    traffic,
)
from sparkpub.review.reviewed import Cell

IDENTITY_TOLERANCE = Threshold(
    "identity tolerance",
    identities.TOLERANCE,
    "Allowed relative difference in parameters or KV bytes per token, because logs round.",
)
WEIGHTS_TOLERANCE = Threshold(
    "weights tolerance",
    identities.WEIGHTS_TOLERANCE,
    "Allowed relative difference in weight bytes, because of padding and unquantised layers: TensorRT-LLM loads "
    "4 % more than the files of gpt-oss-120b contain.",
)
SAME_NUMBERS_SHARE = Threshold(
    "same numbers share",
    0.02,
    "Two models have the same throughput where their means, two standard errors included, lie within this share.",
)
SAME_NUMBERS_BYTES_RATIO = Threshold(
    "same numbers bytes ratio",
    1.5,
    "Ratio of bytes read per step from which memory-bound throughput must differ.",
)
SAME_NUMBERS_BOUND_BY_MEMORY = Threshold(
    "same numbers bound by memory",
    0.5,
    "Share of the machine's bandwidth used by the larger model from which equal throughput is an error. Below it, a "
    "warning: something else may limit both models, such as kernel launches.",
)


def identity(view: View) -> Iterator[Finding]:
    """Runs whose evidence shows another model than was asked for, and language-model runs that show none."""
    silent: list[Case] = []
    others: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for stored in view.happened:
        record = stored.record
        about = record.requested, record.observed, record.metrics
        if problems := identities.contradictions(*about):
            others[record.requested.model_id, "; ".join(problems)].append((stored, ""))
        elif not identities.shown(*about[1:]) and record.value(THROUGHPUT) is not None:
            named_by_server = (
                is_of_running_server(record) and record.observed.model_path
            )
            silent += [] if named_by_server else [(stored, "")]
    for (model, problem), cases in others.items():
        text = f"{{}} was|were requested with {model}, but the evidence shows another model: {problem}"
        first = cases[0][0].record
        shown = identities.shown(first.observed, first.metrics)
        yield from view.tell(
            "identity", "error", text, cases, requested=model, observed=shown
        )
    yield from view.tell(
        "identity",
        "warning",
        "Nothing shows which model ran: {}. The name is what was asked for, not what was seen",
        silent,
    )
    yield from _strangers(view)


def _strangers(view: View) -> Iterator[Finding]:
    """Runs of one name that show different models, and different names that show the same configuration."""
    named: dict[str, set[str]] = defaultdict(set)
    for run in view.happened:
        if sha256 := run.record.observed.config_sha256:
            named[run.record.model].add(sha256)
    for model, sums in sorted(named.items()):
        if len(sums) > 1:
            text = f"Runs of {model} used different models: their configuration files differ."
            yield _of_models(view, text, [model], sums)
    for sha256 in sorted(set().union(*named.values())):
        models = sorted(model for model, sums in named.items() if sha256 in sums)
        if len(models) > 1:
            text = f"{' and '.join(models)} are names for one model: their configuration files are the same."
            yield _of_models(view, text, models, {sha256})


def _of_models(view: View, text: str, models: list[str], sums: set[str]) -> Finding:
    cells = [label(cell) for cell in view.ran if cell[0] in models]
    return view.finding(
        "identity", "error", text, cells=cells, config_sha256=sorted(sums)
    )


def same_numbers(view: View) -> Iterator[Finding]:
    """Models of very different size with the same throughput: one of them, or none, is what it is called."""
    rates: dict[Cell, list[float]] = {}
    sizes: dict[Cell, float] = {}
    for cell, runs in view.counted.items():
        found = [run.record.value(THROUGHPUT) for run in runs]
        known = [rate for rate in found if rate is not None]
        batch = batch_of(runs[0].record) if len(known) > 1 else None
        step = read_per_step(runs[0].record, batch) if batch else None
        if step is not None:
            rates[cell], sizes[cell] = known, step.expected
    alike: dict[Severity, list[tuple[float, Cell, Cell]]] = defaultdict(list)
    for one, other in combinations(rates, 2):
        small, large = sorted((one, other), key=lambda cell: sizes[cell])
        ratio = sizes[large] / sizes[small]
        is_one_place = one[1:] == other[1:] and ratio > SAME_NUMBERS_BYTES_RATIO
        if is_one_place and _are_alike(rates[one], rates[other]):
            record = view.counted[large][0].record
            flow, limit = traffic(record), bandwidth(record)
            bound = (
                flow is None
                or limit is None
                or flow.expected >= SAME_NUMBERS_BOUND_BY_MEMORY * limit
            )
            alike["error" if bound else "warning"].append((ratio, small, large))
    for severity, pairs in alike.items():
        ratio, small, large = max(pairs)
        means = {cell[0]: fmean(rates[cell]) for cell in (small, large)}
        first, then = (f"{model} ({mean:.1f} tok/s)" for model, mean in means.items())
        text = (
            f"{first} and {then} have the same output throughput in {'/'.join(small[1:])}, although one reads "
            f"{ratio:.1f} times the bytes of the other in every step."
        )
        yield view.concerning(
            "same-numbers",
            severity,
            text,
            [cell for _, *both in pairs for cell in both],
            cases=len(pairs),
            mean_tok_s=means,
            bytes_per_step={cell[0]: sizes[cell] for cell in (small, large)},
        )


def _are_alike(one: list[float], other: list[float]) -> bool:
    """Whether the means of two samples lie within a margin, and their errors with them."""
    error = math.sqrt(variance(one) / len(one) + variance(other) / len(other))
    apart = abs(fmean(one) - fmean(other)) + 2 * error
    return apart <= SAME_NUMBERS_SHARE * abs(fmean(one))


CHECKS = (
    Check(
        "identity",
        "meaning",
        ("error", "warning"),
        "Did the requested model run?",
        identity,
        thresholds=(IDENTITY_TOLERANCE, WEIGHTS_TOLERANCE),
        remedy="Keep the server's log, which names the model that it loaded, and correct a name that is wrong.",
    ),
    Check(
        "same-numbers",
        "meaning",
        ("error", "warning"),
        "Do different models have different throughput?",
        same_numbers,
        thresholds=(
            SAME_NUMBERS_SHARE,
            SAME_NUMBERS_BYTES_RATIO,
            SAME_NUMBERS_BOUND_BY_MEMORY,
        ),
        remedy="Look in the log for the model that each run loaded.",
    ),
)

"""Which model really ran: by its configuration, by the memory it takes, and beside other models."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np

from sparkpub.plan.requested import is_of_running_server
from sparkpub.record import identity as identities
from sparkpub.record.identity import expected
from sparkpub.record.metrics import GIB
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.rules import memory_gib
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, about_cells, ids, label, listed
from sparkpub.review.physics import (
    THROUGHPUT,
    bandwidth,
    batch_of,
    read_per_step,
    traffic,
)
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.estimate import ALPHA, resolution_of, two_means

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
SAME_NUMBERS_MARGIN_PERCENT = Threshold(
    "same numbers margin percent",
    2.0,
    "Equivalence margin within which two models have the same throughput.",
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
    silent: list[Stored] = []
    told: list[Stored] = []
    others: dict[tuple[str, str], list[Stored]] = defaultdict(list)
    for stored in view.happened:
        record = stored.record
        problems = identities.contradictions(
            record.requested, record.observed, record.metrics
        )
        shown = identities.shown(record.observed, record.metrics)
        if problems:
            others[record.requested.model_id, "; ".join(problems)].append(stored)
        elif not shown and record.value(THROUGHPUT) is not None:
            by_server = is_of_running_server(record) and record.observed.model_path
            (told if by_server else silent).append(stored)
    for (model, problem), runs in others.items():
        yield from _another_model(view, model, problem, runs)
    yield from view.together(
        "identity",
        "warning",
        silent,
        lambda runs: (
            f"Nothing shows which model ran: {runs}. The name is what was asked for, not what was seen."
        ),
    )
    names = {str(stored.record.observed.model_path) for stored in told}
    yield from view.together(
        "identity",
        "info",
        told,
        lambda runs: (
            f"Only the server's own word says which model ran in {runs}: {listed(sorted(names), 'names')}."
        ),
    )
    yield from _strangers(view)


def _another_model(
    view: View, model: str, problem: str, runs: Sequence[Stored]
) -> Iterator[Finding]:
    """Runs that show the same model in place of the one that was asked for."""
    first = runs[0].record
    were = "was" if len(runs) == 1 else "were"
    yield from view.together(
        "identity",
        "error",
        runs,
        lambda words: (
            f"{words} {were} requested with {model}, but the evidence shows another model: {problem}."
        ),
        requested=model,
        observed=identities.shown(first.observed, first.metrics),
    )


def _strangers(view: View) -> Iterator[Finding]:
    """Runs of one name that show different models, and different names that show the same configuration."""
    observed = [
        (run.record.model, run.record.observed.config_sha256) for run in view.happened
    ]
    seen = sorted({(model, sha256) for model, sha256 in observed if sha256 is not None})
    for side, words in (
        (
            0,
            "Runs of {} used different models: their configuration files differ.",
        ),
        (1, "{} are names for one model: their configuration files are the same."),
    ):
        for value in sorted({pair[side] for pair in seen}):
            pairs = [pair for pair in seen if pair[side] == value]
            if len(pairs) > 1:
                models = sorted({model for model, _ in pairs})
                yield view.finding(
                    "identity",
                    "error",
                    words.format(" and ".join(models)),
                    cells=[label(cell) for cell in view.ran if cell[0] in models],
                    config_sha256=sorted({sha256 for _, sha256 in pairs}),
                )


def does_not_fit(view: View) -> Iterator[Finding]:
    """Models whose weights and KV cache exceed the memory of the machine."""
    too_large: dict[str, dict[Cell, Need]] = defaultdict(dict)
    for cell, runs in view.counted.items():
        known = [_memory_need(run.record) for run in runs]
        needs = [need for need in known if need is not None]
        if needs and Need.beyond(max(needs, key=Need.beyond)) > 0:
            model = runs[0].record.requested.model_id
            too_large[model][cell] = max(needs, key=Need.beyond)
    for model, cells in too_large.items():
        weights, kv, memory = max(cells.values(), key=Need.beyond)
        beside = f" with a KV cache of {kv / GIB:.1f} GiB" if weights <= memory else ""
        text = (
            f"{model} cannot have run here: its weights take {weights / GIB:.1f} GiB{beside}, and the machine has "
            f"{memory / GIB:.1f} GiB."
        )
        yield view.finding(
            "does-not-fit",
            "error",
            text,
            **about_cells(cells),
            weight_bytes=weights,
            kv_bytes=kv,
            memory_bytes=memory,
            runs=[run for cell in cells for run in ids(view.counted[cell])],
        )


class Need(NamedTuple):
    """Bytes of weights and of KV cache, with nothing left for activations, and of the memory there is."""

    weights: float
    cache: float
    memory: float

    def beyond(self) -> float:
        """By how much they exceed the memory."""
        return self.weights + self.cache - self.memory


def _memory_need(record: Record) -> Need | None:
    known, memory = expected(record.requested), memory_gib(record)
    weights = identities.shown(record.observed, record.metrics).get("weight_bytes")
    if not weights and known is not None:
        weights = known.weight_bytes
    if weights is None or memory is None:
        return None
    return Need(weights, (record.value("kv_cache_gib") or 0.0) * GIB, memory * GIB)


class AlikeModels(NamedTuple):
    """Models with one throughput in one environment and workload although their steps read different numbers of bytes:
    cells, mean rates in tok/s and bytes per step by model."""

    cells: list[Cell]
    means: Mapping[str, float]
    sizes: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """Bytes per step of the largest model, in those of the smallest."""
        sizes = [self.sizes[model] for model in self.means]
        return max(sizes) / min(sizes)


def same_numbers(view: View) -> Iterator[Finding]:
    """Models of very different size with the same throughput: one of them, or none, is what it is called."""
    places: dict[tuple[str, str], dict[str, Sequence[Stored]]] = defaultdict(dict)
    for (model, environment, workload), runs in view.counted.items():
        if len(view.figures((model, environment, workload), THROUGHPUT)) > 1:
            places[environment, workload][model] = runs
    by_severity: dict[Severity, list[AlikeModels]] = defaultdict(list)
    for place, models in places.items():
        for same in _same_in(view, place, models):
            by_severity[_severity_of_same(view, same)].append(same)
    for severity, found in by_severity.items():
        yield _same_finding(view, severity, found)


def _same_in(
    view: View, place: tuple[str, str], models: Mapping[str, Sequence[Stored]]
) -> Iterator[AlikeModels]:
    sizes: dict[str, float] = {}
    values: dict[str, Sequence[float]] = {}
    for model, runs in models.items():
        size = _step_bytes(runs[0].record)
        if size is not None:
            sizes[model] = size
            values[model] = view.figures((model, *place), THROUGHPUT)
    for group in _equivalent(values):
        same = AlikeModels(
            cells=[(model, *place) for model in group],
            means={model: fmean(values[model]) for model in group},
            sizes={model: sizes[model] for model in group},
        )
        if same.ratio > SAME_NUMBERS_BYTES_RATIO:
            yield same


def _severity_of_same(view: View, same: AlikeModels) -> Severity:
    """An error where memory bounds the largest model, or nobody knows."""
    largest = max(same.cells, key=lambda cell: same.sizes[cell[0]])
    record = view.counted[largest][0].record
    flow, limit = traffic(record), bandwidth(record)
    if flow is None or limit is None:
        return "error"
    if flow.expected >= SAME_NUMBERS_BOUND_BY_MEMORY * limit:
        return "error"
    return "warning"


def _step_bytes(record: Record) -> float | None:
    batch = batch_of(record)
    if batch is None:
        return None
    per_step = read_per_step(record, batch)
    return None if per_step is None else per_step.expected


def _equivalent(values: Mapping[str, Sequence[float]]) -> list[list[str]]:
    """Groups of models, each joined to another of its group by equivalence within the margin (TOST at 5 %)."""
    groups = [{model} for model in values]
    means = {model: fmean(of_model) for model, of_model in values.items()}
    for one, other in combinations(values, 2):
        apart = abs(means[one] - means[other])
        if apart > SAME_NUMBERS_MARGIN_PERCENT / 100 * abs(means[one]):
            continue  # p of equivalence is above a half then
        # No order joins runs of two models; every run counts in full.
        sides = np.array(values[one]), np.array(values[other])
        step = resolution_of(np.concatenate(sides))
        found, _ = two_means(*sides, step, paired=False, serial=False)
        margin = SAME_NUMBERS_MARGIN_PERCENT / 100 * abs(means[one])
        if found.equivalence_p(margin) < ALPHA:
            joined = [group for group in groups if one in group or other in group]
            groups = [group for group in groups if group not in joined] + [
                set().union(*joined)
            ]
    return [sorted(group) for group in groups if len(group) > 1]


def _same_finding(
    view: View, severity: Severity, found: Sequence[AlikeModels]
) -> Finding:
    worst = max(found, key=lambda same: same.ratio)
    rates = ", ".join(f"{model} {mean:.1f}" for model, mean in worst.means.items())
    environment, workload = worst.cells[0][1:]
    end = "Something other than memory may limit all of them."
    if severity == "error":
        end = "They are probably one model."
    text = (
        f"{len(worst.cells)} models have the same output throughput in {environment}/{workload} ({rates} tok/s, "
        f"equivalent within {SAME_NUMBERS_MARGIN_PERCENT:g} %), although one reads {worst.ratio:.1f} times the bytes "
        f"of another in every step. {end}"
    )
    return view.concerning(
        "same-numbers",
        severity,
        text,
        [cell for same in found for cell in same.cells],
        cases=len(found),
        mean_tok_s=dict(worst.means),
        bytes_per_step=dict(worst.sizes),
        margin_percent=SAME_NUMBERS_MARGIN_PERCENT,
    )


CHECKS = (
    Check(
        "identity",
        "meaning",
        ("error", "warning", "info"),
        "Did the requested model run?",
        identity,
        thresholds=(IDENTITY_TOLERANCE, WEIGHTS_TOLERANCE),
        remedy="Keep the server's log, which names the model that it loaded, and correct a name that is wrong.",
    ),
    Check(
        "does-not-fit",
        "meaning",
        ("error",),
        "Do weights and KV cache fit into memory?",
        does_not_fit,
        remedy="Look in the log for the weights that were loaded, and correct the model's name.",
    ),
    Check(
        "same-numbers",
        "meaning",
        ("error", "warning"),
        "Do different models have different throughput?",
        same_numbers,
        thresholds=(
            SAME_NUMBERS_MARGIN_PERCENT,
            SAME_NUMBERS_BYTES_RATIO,
            SAME_NUMBERS_BOUND_BY_MEMORY,
        ),
        remedy="Look in the log for the model that each run loaded.",
    ),
)

"""Which model really ran, and whether the machine can do what the figures say."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record import catalogue
from sparkpub.record import identity as identities
from sparkpub.record.identity import expected
from sparkpub.record.metrics import GIB
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.values import memory_gib
from sparkpub.review.checks.view import View, about_cells, ids, label, listed
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics import compare, physics
from sparkpub.review.statistics.describe import ALPHA

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
ROOFLINE_SUSPICIOUS = Threshold(
    "roofline suspicious",
    0.85,
    "Share of the nominal bandwidth from which a throughput is suspicious: good engines reach 60 to 85 %.",
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

EMBEDDING_SHARE = Threshold(
    "embedding share",
    0.2,
    "Share of a dense model's weights that a step may not read: the input embedding, 7 % of Llama 3 8B and of "
    "Qwen2.5 7B in 16 bits, more where only it is not quantised.",
)

THROUGHPUT = "output_throughput_tok_s"
BEYOND_CACHES = 2**30
"""Bytes from which weights fit in no cache of a GPU, so that each step reads them from memory."""
DENSE_FAMILIES = frozenset(
    {"llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "mistral3"}
)
"""Architectures of llama.cpp without experts, where the size does not name any."""
_DENSE_SIZE = re.compile(r"[\d.]+[BM] ")


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
            by_server = options_of(record).get("url") and record.observed.model_path
            (told if by_server else silent).append(stored)
    for (model, problem), runs in others.items():
        yield from _another_model(view, model, problem, runs)
    yield from view.together(
        "identity",
        "warning",
        silent,
        lambda runs: (
            f"There is no evidence of which model ran in {runs}: the name is what was requested, not what was observed."
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
    unknown = []
    for cell, runs in view.counted.items():
        needs = []
        for run in runs:
            need = _memory_need(run.record)
            if need is not None:
                needs.append(need)
            elif run.record.value(THROUGHPUT) is not None:
                unknown.append(run)
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
    yield from view.unjudged(
        "does-not-fit",
        {"the model's weights in bytes, or the machine's memory": unknown},
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
    facts = catalogue.machines().get(record.machine.kind or "")
    if memory is None and facts is not None:
        memory = facts.memory_total_gib
    if weights is None or memory is None:
        return None
    return Need(weights, (record.value("kv_cache_gib") or 0.0) * GIB, memory * GIB)


def bandwidth(record: Record) -> float | None:
    """Nominal memory bandwidth of the machine in bytes per second; None where nothing says what machine it was."""
    facts = _machine(record)
    return None if facts is None else float(facts.bandwidth_bytes_s)


def _machine(record: Record) -> catalogue.MachineFacts | None:
    """What the catalogue knows of the machine of a run."""
    names = [
        record.machine.kind,
        *(catalogue.machine_kind(gpu.name) for gpu in record.machine.gpus),
    ]
    known = catalogue.machines()
    return next((known[name] for name in names if name and name in known), None)


def _bandwidth_then(view: View, stored: Stored) -> float | None:
    """The bandwidth of all GPUs of a run at the memory clock that its samples show; the nominal one where they show
    none."""
    facts, samples = _machine(stored.record), view.evidence.of(stored).samples
    if facts is None:
        return None
    machine = stored.record.machine
    devices = max(1, len(machine.gpus)) * (machine.count or 1)
    nominal = float(facts.bandwidth_bytes_s) * devices
    clock = None if samples is None else samples.memory_clock_under_load_mhz
    if clock is None or facts.memory_clock_mhz is None:
        return nominal
    return nominal * min(1.0, clock / facts.memory_clock_mhz)


def batch_of(record: Record) -> int | None:
    """Most sequences that one step can have held; None where neither the run nor its options say."""
    load = load_of(record)
    batch = record.observed.batch_size or load.batch
    known = [bound for bound in (batch, load.at_once) if bound is not None]
    return min(known, default=None)


def traffic(record: Record) -> tuple[float, float] | None:
    """Memory traffic in bytes per second that a run's throughput implies: at least, and as expected of a mixture of
    experts; None where batch, model or throughput is unknown, or speculative decoding makes steps uncountable."""
    throughput, batch = record.value(THROUGHPUT), batch_of(record)
    if throughput is None or batch is None or record.observed.speculative_decoding:
        return None
    per_step = read_per_step(record, batch)
    if per_step is None:
        return None
    load = load_of(record)
    tokens = record.observed.output_tokens_mean or load.output_tokens
    requests = record.observed.requests or load.requests
    if "requests" in record.requested.disputed or not tokens:
        requests = None
    least, likely = (
        physics.implied_bandwidth(throughput, step, batch, float(tokens or 1), requests)
        for step in (per_step.at_least, per_step.expected)
    )
    return least, likely


def read_per_step(record: Record, batch: int) -> physics.Bytes | None:
    """Bytes of weights that a decode step reads: by the model's architecture, else by the weights that a dense model of
    llama.cpp loaded, most of which every step reads whatever their format."""
    known = expected(record.requested)
    if known is not None and (found := physics.bytes_per_step(known, batch)):
        return found
    seen = record.observed
    weights = seen.weight_bytes
    if weights is None or seen.engine != "llama.cpp" or weights < BEYOND_CACHES:
        return None
    # "llama 8B F16", "qwen2 7B Q4_K - Medium"; with experts, "llama 8x7B Q4_0" and "qwen3moe 30B.A3B Q8_0".
    family, _, rest = seen.settings.get("model_type", "").partition(" ")
    if family not in DENSE_FAMILIES or not _DENSE_SIZE.match(rest):
        return None
    return physics.Bytes((1 - EMBEDDING_SHARE) * weights, float(weights))


def roofline(view: View) -> Iterator[Finding]:
    """Cells whose throughput implies more memory traffic than the machine can carry, or nearly all of it."""
    unknown: dict[str, list[Stored]] = defaultdict(list)
    loads: dict[Severity, dict[Cell, Traffic]] = defaultdict(dict)
    for cell, runs in view.counted.items():
        for run in runs:
            missing = _missing(run.record)
            if missing is not None:
                unknown[missing].append(run)
        flows = [flow for run in runs if (flow := traffic(run.record)) is not None]
        limits = [found for run in runs if (found := _bandwidth_then(view, run))]
        if not flows or not limits:
            continue
        limit = fmean(limits)
        load = Traffic(
            fmean(flow[0] for flow in flows),
            fmean(flow[1] for flow in flows),
            limit,
            len(flows),
        )
        if load.at_least > limit:
            loads["error"][cell] = load
        elif load.expected >= ROOFLINE_SUSPICIOUS * limit:
            loads["warning"][cell] = load
    for severity, cells in loads.items():
        yield _overload(view, severity, cells)
    yield from view.faulty(
        "roofline",
        "error",
        lambda run: _first_token_too_soon(view, run),
        "has first tokens that came before the weights can have been read once",
        "have first tokens that came before the weights can have been read once",
    )
    yield from view.unjudged("roofline", unknown)


def _first_token_too_soon(view: View, stored: Stored) -> Iterator[str]:
    """A TTFT below the time that one pass over the weights takes: what came was not a token."""
    first = stored.record.value("ttft_p50_ms")
    limit, weights = _bandwidth_then(view, stored), read_per_step(stored.record, 1)
    if first is None or limit is None or weights is None:
        return
    least = 1e3 * weights.at_least / limit
    if first < least:
        yield f"{first:.3g} ms, and {weights.at_least / 1e9:.3g} GB take {least:.3g} ms"


class Traffic(NamedTuple):
    """Memory traffic of a cell in bytes per second: at least, as expected, and what the machine has; `n` runs."""

    at_least: float
    expected: float
    limit: float
    n: int

    def share(self, severity: Severity) -> float:
        """Of the bandwidth: the bound that cannot be doubted for an error, the expected traffic for a warning."""
        if severity == "error":
            return self.at_least / self.limit
        return self.expected / self.limit


def _overload(view: View, severity: Severity, cells: Mapping[Cell, Traffic]) -> Finding:
    worst = max(cells, key=lambda cell: cells[cell].share(severity))
    load = cells[worst]
    share = load.share(severity)
    end = "Engines rarely come that close"
    if severity == "error":
        end = "A different model must have run"
    also = ""
    if len(cells) > 1:
        also = f" This concerns {listed([label(cell) for cell in cells], 'cells')}."
    text = (
        f"The throughput of {label(worst)} would need {share * load.limit / 1e9:,.0f} GB/s of memory traffic, "
        f"{100 * share:,.0f} % of the {load.limit / 1e9:,.0f} GB/s that the machine has. {end}.{also}"
    )
    return view.finding(
        "roofline",
        severity,
        text,
        **about_cells(cells),
        n=load.n,
        batch=batch_of(view.counted[worst][0].record),
        bytes_per_second_at_least=load.at_least,
        bytes_per_second_expected=load.expected,
        bandwidth_bytes_per_second=load.limit,
        share_by_cell={label(cell): cells[cell].share(severity) for cell in cells},
    )


def _missing(record: Record) -> str | None:
    """The fact without which the memory traffic of a language model's run cannot be judged; None where none is."""
    if record.value(THROUGHPUT) is None:
        return None
    if bandwidth(record) is None:
        return "the memory bandwidth of the machine, which is not in the catalogue"
    if record.observed.speculative_decoding:
        return "the number of decode steps, which speculative decoding hides"
    if batch_of(record) is None:
        return "the batch size"
    if read_per_step(record, 1) is None:
        return "the bytes that the model reads per step"
    return None


class Same(NamedTuple):
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
    by_severity: dict[Severity, list[Same]] = defaultdict(list)
    for place, models in places.items():
        for same in _same_in(view, place, models):
            by_severity[_severity_of_same(view, same)].append(same)
    for severity, found in by_severity.items():
        yield _same_finding(view, severity, found)


def _same_in(
    view: View, place: tuple[str, str], models: Mapping[str, Sequence[Stored]]
) -> Iterator[Same]:
    sizes: dict[str, float] = {}
    values: dict[str, Sequence[float]] = {}
    for model, runs in models.items():
        size = _step_bytes(runs[0].record)
        if size is not None:
            sizes[model] = size
            values[model] = view.figures((model, *place), THROUGHPUT)
    for group in _equivalent(values):
        same = Same(
            cells=[(model, *place) for model in group],
            means={model: fmean(values[model]) for model in group},
            sizes={model: sizes[model] for model in group},
        )
        if same.ratio > SAME_NUMBERS_BYTES_RATIO:
            yield same


def _severity_of_same(view: View, same: Same) -> Severity:
    """An error where memory bounds the largest model, or nobody knows."""
    largest = max(same.cells, key=lambda cell: same.sizes[cell[0]])
    record = view.counted[largest][0].record
    flow, limit = traffic(record), bandwidth(record)
    if flow is None or limit is None:
        return "error"
    if flow[1] >= SAME_NUMBERS_BOUND_BY_MEMORY * limit:
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
    for one, other in combinations(values, 2):
        p = compare.equivalence(values[one], values[other], SAME_NUMBERS_MARGIN_PERCENT)
        if p is not None and p < ALPHA:
            joined = [group for group in groups if one in group or other in group]
            groups = [group for group in groups if group not in joined] + [
                set().union(*joined)
            ]
    return [sorted(group) for group in groups if len(group) > 1]


def _same_finding(view: View, severity: Severity, found: Sequence[Same]) -> Finding:
    worst = max(found, key=lambda same: same.ratio)
    cells = [label(cell) for same in found for cell in same.cells]
    rates = ", ".join(f"{model} {mean:.1f}" for model, mean in worst.means.items())
    environment, workload = worst.cells[0][1:]
    also = f" The same holds in {listed(cells, 'cells')}." if len(found) > 1 else ""
    end = "Something other than memory may limit all of them."
    if severity == "error":
        end = "They are probably one model."
    text = (
        f"{len(worst.cells)} models have the same output throughput in {environment}/{workload} ({rates} tok/s, "
        f"equivalent within {SAME_NUMBERS_MARGIN_PERCENT:g} %), although one reads {worst.ratio:.1f} times the bytes "
        f"of another in every step.{also} {end}"
    )
    return view.finding(
        "same-numbers",
        severity,
        text,
        cells=cells,
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
        "roofline",
        "meaning",
        ("error", "warning"),
        "Is the throughput possible with the machine's memory bandwidth?",
        roofline,
        thresholds=(ROOFLINE_SUSPICIOUS, EMBEDDING_SHARE),
        remedy="Look in the log for model, batch size and number of requests before you publish.",
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

"""What two figures of one run must be to each other: a table of rules, asked of all runs of a campaign at once.

A rule compares two expressions. Their names are those of metrics, of what the run observed, of what it was asked for
(`asked_…`), of the client's definitions (`CLIENTS`) and of `define`. What is not known is NaN, which is neither more
nor less than anything and breaks no rule.

A serving tool has more figures than degrees of freedom. What a client gets wrong before it writes its report (latencies
of the requests that survived, a server that starves, seconds for milliseconds, a warm-up in the duration) breaks one of
these identities, and nothing else shows it.

Little's law: J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (1961).
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record import catalogue, identity
from sparkpub.record.metrics import DISTRIBUTIONS, GIB, METRICS, Metric, mixed_units
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review import physics
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import Samples
from sparkpub.review.checks.finding import Finding, Severity, Threshold
from sparkpub.review.checks.view import Case, View
from sparkpub.review.physics import (
    THROUGHPUT,
    computed,
    devices,
    machine_of,
    operations,
    peak,
    read_per_step,
    share_computed,
    traffic,
)

PerRun = NDArray[np.float64]
"""A figure of each run."""

REPORT = Threshold(
    "report tolerance",
    0.01,
    "Allowed relative difference between figures of one run, because they are rounded, and clocks corrected.",
)
DEFINITION = Threshold(
    "definition tolerance",
    0.001,
    "The same where one figure is made of the others: real reports of vLLM, SGLang and AIPerf agree to 12 digits.",
)
IDLE_SHARE = Threshold(
    "idle share",
    0.03,
    "Share of a closed loop's time that a client needs between two requests, beyond the end of the run, when fewer are "
    "in flight.",
)
IDLE_SHARE_OF_VLLM = Threshold(
    "idle share of vllm",
    0.005,
    "The same of `vllm bench serve`: on 57 runs it was 0.3 % at most, the beginning and the end of the run included.",
)
IDLE_SECONDS = Threshold(
    "idle seconds",
    0.05,
    "Seconds of a closed loop that may pass before the first request and after the last one.",
)
SPAN_SECONDS = Threshold(
    "span seconds",
    1.0,
    "AIPerf divides by the time between its first and its last credit, which is longer than its `benchmark_duration`.",
)
CHUNK_TOKENS = Threshold(
    "chunk tokens",
    1.1,
    "Tokens per chunk from which inter-token latency is the time between chunks, not between tokens.",
)
PROMPT_TIMES = Threshold(
    "prompt times",
    2.0,
    "Times by which the time that a prompt takes at the rate of prompts may miss the time to the first token. Of 266 "
    "loads of one user on a DGX Spark, 22 with short prompts miss it by more: their client takes its latency off.",
)
ARRIVAL_CHANCE = Threshold(
    "arrival chance",
    1e-4,
    "Chance that requests which arrive at a rate come so late; below it they came at another rate.",
)
LAST_ANSWER = Threshold(
    "last answer",
    2.0,
    "Slowest latencies that an open loop may go on after its last request arrived: on 300 runs it was one at most.",
)
STREAMED = Threshold(
    "streamed share",
    0.25,
    "Share of TPOT × further tokens that a request takes at least after its first token, whatever the lengths of its "
    "answers: in 700 runs of open loops on a DGX Spark it was 0.9 or more.",
)
MEMORY_GIB = Threshold(
    "memory slack gib",
    0.05,
    "GiB by which a part may exceed its total, because the two are read at different times.",
)
CLOCK_SECONDS = Threshold(
    "clock seconds",
    3.0,
    "Allowed difference between times, which are recorded to the second.",
)
SUSPICIOUS_SHARE = Threshold(
    "roofline suspicious",
    physics.SUSPICIOUS,
    "Share of the nominal bandwidth from which a throughput is suspicious: good engines reach 60 to 85 %. Of the "
    "nominal operations per second, 1,640 runs on a DGX Spark and a GPU of a data centre reached 64 %, but for two "
    "with rates over a part of the time. Where only the publisher's number of parameters is known, which a name "
    "rounds, it is 1.2.",
)
CARD = Threshold(
    "card limit share",
    1.1,
    "Maximum mean power or clock of a phase, as a multiple of the GPU's limit.",
)

RISING = ("min", "p50", "p90", "p95", "p99", "max")
"""The statistics of a distribution in the order in which they rise."""


class Rule(NamedTuple):
    """Two expressions that must be so to each other, but for a share of the larger one and an amount."""

    holds: str
    says: str = ""
    """What is wrong, with `{left}`, `{right}` and any column in braces; empty for the words of the expressions."""
    where: str = "True"
    share: str = "0"
    off: str = "0"


class Rules(NamedTuple):
    """Rules whose breach means the same. Of a run that breaks one that is no note, its check asks nothing less."""

    severity: Severity
    happened: str
    """What a run has that breaks one: `figures that contradict each other`."""
    rules: tuple[Rule, ...]
    about: Mapping[str, str] = {}
    """Evidence of what a finding is about, where several are of one severity."""
    remedy: str = ""


# -- columns -------------------------------------------------------------------------------------------------------

CLIENTS: Mapping[str, Mapping[str, float]] = {
    "vllm-bench": {
        "to_last_token": 1,
        "interpolates": 1,
        "idle_share": IDLE_SHARE_OF_VLLM,
    },
    "sglang": {"to_last_token": 1, "interpolates": 1},
    "aiperf": {"to_last_token": 1, "interpolates": 1, "span_slack": SPAN_SECONDS},
    "genai-perf": {"to_last_token": 1, "interpolates": 1},
    "inference-perf": {"interpolates": 1},
    "trtllm-bench": {"to_last_token": 1},
    "generate": {"to_last_token": 1, "in_batches": 1},
    "ctranslate2": {"in_batches": 1},
}
"""What tools mean by their figures, by the tool or by the client whose report a workload reads.

- `to_last_token`: a latency ends with the last token, and TPOT is the time after the first one divided by the others;
  GuideLLM's ends later, with the stream.
- `interpolates`: percentiles lie between requests, so that two are equal only where requests took equally long.
- `in_batches`: the requests of a batch share their times, so that few of them differ.
- `span_slack`: seconds by which rates may be over a longer time than the duration that is reported.
"""
OTHERS: Mapping[str, float] = {
    "to_last_token": 0,
    "interpolates": 0,
    "in_batches": 0,
    "span_slack": 0,
    "idle_share": IDLE_SHARE,
}
"""What holds by any definition."""


class FiguresOfRuns(dict[str, Any]):
    """The figures of some runs by name, an array each; a figure that no run has is NaN."""

    def __init__(self, rows: Sequence[Mapping[str, float | None]]) -> None:
        names = dict.fromkeys(name for row in rows for name in row)
        super().__init__(
            {
                name: np.array([row.get(name) for row in rows], dtype=np.float64)
                for name in names
            }
        )
        self.count = len(rows)

    def __missing__(self, name: str) -> Any:
        return FUNCTIONS.get(name, np.full(self.count, np.nan))

    def of(self, expression: str) -> PerRun:
        """The value of an expression for each run."""
        with np.errstate(all="ignore"):
            value = eval(expression, {"__builtins__": {}}, self)  # noqa: S307 - the rules are ours
        found: PerRun = np.full(self.count, value, dtype=np.float64)
        return found


def known(*columns: Any) -> PerRun:
    """The first of these that is known."""
    found = np.asarray(columns[0], dtype=np.float64)
    for column in columns[1:]:
        found = np.where(np.isnan(found), column, found)
    return found


def digits(*figures: PerRun) -> PerRun:
    """What figures have lost that are printed with two or three decimals, as a share of each, added up. A whole figure
    may be a number of things, or was printed like others."""
    lost = np.zeros_like(figures[0])
    for figure in figures:
        for places, half in ((2, 0.005), (3, 0.0005)):
            is_printed = (figure == np.round(figure, places)) & (figure != 0)
            lost = np.where(is_printed, lost + half / np.abs(figure), lost)
    return np.nan_to_num(lost)


FUNCTIONS: Mapping[str, Any] = {
    name: getattr(np, name) for name in ("fmin", "fmax", "isnan", "where", "abs")
} | {"known": known, "digits": digits}
"""What expressions can call."""


def figures(view: View, stored: Stored) -> dict[str, float | None]:
    """The figures of a run that are told: recorded, observed, asked for, and meant by its client."""
    record, answer = stored.record, view.evidence.of(stored).answer
    load, options = load_of(record), options_of(record)
    tool = options.get("client") or options.get("reads") or options.get("type")
    client = CLIENTS.get(str(tool), {})
    deviations = {} if answer is None else answer.deviations
    told: dict[str, float | None] = {**OTHERS, **client}
    told |= {f"asked_{name}": value for name, value in _numbers(asdict(load))}
    told |= dict(_numbers(record.observed.model_dump(exclude={"settings"})))
    told |= {name: metric.value for name, metric in record.metrics.items()}
    told["share_computed"] = share_computed(record)
    told |= _sampled(view.evidence.of(stored).samples, told)
    told["gpu_memory_total_gib"] = memory_gib(record)
    told["host_memory_total_gib"] = record.machine.memory_total_gib
    told["limit_W"] = limit_of(record, "power_limit_watt")
    told["limit_MHz"] = limit_of(record, "clock_max_sm_mhz")
    told |= _times(record)
    told |= _needs(record)
    # By how much the mean of products may be off the product of means, of a request's tokens and its time per token
    # (Cauchy and Schwarz), in milliseconds.
    if "tpot" in deviations and "output_tokens" in deviations:
        told["slack_ms"] = deviations["tpot"] * deviations["output_tokens"]
    return told


def _sampled(
    samples: Samples | None, told: Mapping[str, float | None]
) -> Iterator[tuple[str, float]]:
    """What the telemetry shows where the record has no such figure, as of an import that says not when it measured."""
    if samples is None:
        return
    if told.get("gpu_power_mean_watt") is None:
        watts = samples.known("gpu_power_watt", samples.under_load)
        if len(watts):
            yield "gpu_power_mean_watt", float(watts.mean())
    if told.get("gpu_memory_peak_gib") is None:
        used = samples.known("gpu_memory_used_gib")
        if len(used):
            yield "gpu_memory_peak_gib", float(used.max())


def _times(record: Record) -> Iterator[tuple[str, float | None]]:
    """Seconds of a run: from start to end, by the monotonic clock, and those that it was measured for."""
    if record.ended is not None and record.ended.zone == record.started.zone:
        start, end = (
            datetime.fromisoformat(moment.value)
            for moment in (record.started, record.ended)
        )
        yield "wall", (end - start).total_seconds()
    yield "lasted", record.duration_seconds
    phases = [phase.end_seconds for phase in record.phases]
    measured = (record.value("measured_time_ms") or 0.0) / 1e3
    observed = record.observed.measured_seconds or 0.0
    yield "measured_for", max(measured, observed, *phases, 0.0)


def _needs(record: Record) -> Iterator[tuple[str, float | None]]:
    """What the figures of a run need of its machine, in GiB, GB/s and TFLOP/s, and what that has."""
    model = identity.expected(record.requested)
    shown = identity.shown(record.observed, record.metrics).get("weight_bytes")
    if weights := shown or (model and model.weight_bytes):
        yield "model_gib", weights / GIB
    if facts := machine_of(record):
        yield "bandwidth", facts.bandwidth_bytes_s * devices(record) / 1e9
    if once := read_per_step(record, 1):
        yield "weights_once_gb", once.at_least / 1e9
    if flow := traffic(record):
        yield "traffic_at_least", flow.at_least / 1e9
        yield "traffic_expected", flow.expected / 1e9
        yield "traffic_suspicious", flow.step.suspicious
    token, most = operations(record), peak(record)
    if token is not None and most is not None:
        yield "peak_any_format", most.any_format / 1e12
        yield "peak_own_format", most.own_format / 1e12
        yield "suspicious", token.suspicious
        for metric, rate in computed(record):
            yield f"{metric}_expected", token.expected * rate / 1e12
            if not token.is_nominal:
                yield f"{metric}_at_least", token.at_least * rate / 1e12


def _numbers(fields: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in fields.items():
        if isinstance(value, int | float):
            yield name, value


def limit_of(record: Record, limit: str) -> float | None:
    """The highest limit of a machine's GPUs; where none is known, the catalogue's."""
    limits = [getattr(gpu, limit) for gpu in record.machine.gpus]
    known = [each for each in limits if each is not None]
    return max(known) if known else getattr(machine_of(record), limit, None)


def memory_gib(record: Record) -> float | None:
    """The memory that the GPU can use, in GiB, as the run or its machine said it, else the catalogue's."""
    if record.observed.device_total_gib is not None:
        return record.observed.device_total_gib
    machine = record.machine
    known = [gpu.memory_total_gib for gpu in machine.gpus if gpu.memory_total_gib]
    if machine.unified_memory or record.observed.device == "cpu":
        known = [machine.memory_total_gib] if machine.memory_total_gib else []
    facts = catalogue.machines().get(machine.kind or "")
    usual = None if facts is None else facts.memory_total_gib
    return sum(known) if known else usual


def define(c: FiguresOfRuns) -> None:
    """Add the figures that follow from others, times in seconds."""
    requests, asked = c["requests"], c["asked_output_tokens"]
    rate, served = _positive(c["request_throughput_req_s"]), _positive(requests)
    c["request_throughput"], c["requests_served"] = rate, served
    c["measured_seconds"] = c["measured_time_ms"] / 1e3
    c["span"] = served / rate
    c["output_tokens"] = known(_positive(c["output_tokens_mean"]), asked)
    # Tokens of every answer, where all have the same number.
    is_fixed = (asked > 1) & (c["output_tokens_mean"] == asked)
    c["length"] = np.where(is_fixed, asked, np.nan)
    c["slack_ms"] = np.where(is_fixed, 0.0, c["slack_ms"])
    latency = c["request_latency_mean_ms"]
    c["after_first_ms"] = latency - c["ttft_mean_ms"]
    c["in_flight"] = rate * latency / 1e3
    bound = c["asked_in_flight"]
    c["most"] = np.where(bound > served, served, bound)
    # Of requests that failed no report says how long they took.
    c["lost_some"] = c["failed_requests_percent"] > 0
    c["closed"] = np.isnan(c["asked_request_rate"]) & ~c["lost_some"]
    slowest = known(*(c[f"request_latency_{key}_ms"] for key in ("max", "p99", "p95")))
    c["slowest"] = slowest / 1e3
    c["least_share"] = _least_share(c)
    c["latest"] = _latest(c)
    c["prompt"] = known(c["input_tokens_mean"], c["asked_input_tokens"])
    prompts = (c["prompt"] + c["asked_depth"]) * c["asked_in_flight"]
    c["prompts_ms"] = 1e3 * prompts / c["prompt_throughput_tok_s"]


def _positive(figures: PerRun) -> PerRun:
    return np.where(figures > 0, figures, np.nan)


def _least_share(c: FiguresOfRuns) -> PerRun:
    """The share of the asked concurrency that an honest closed loop has at least: all but what a client needs between
    requests, and but the end of the run, when fewer are in flight; 0 where it is not known."""
    most, span, slowest = c["most"], c["span"], c["slowest"]
    # No lane is idle for longer than the last request takes.
    tail = (most - 1) / most * slowest / span
    # Lanes with as many requests each part by what single requests differ in: the slowest of a hundred is 2.3 standard
    # deviations from the middle, and the last of 64 lanes ends 2.4 of its own after their mean.
    spread = (
        (slowest - c["request_latency_p50_ms"] / 1e3)
        * np.sqrt(c["requests"] / most)
        / span
    )
    tail = np.where(c["requests"] % most == 0, np.fmin(tail, spread), tail)
    counted = 1 - c["idle_share"] - IDLE_SECONDS / span - tail
    # Nobody counted: each lane had a request, and one of them the slowest.
    mean = most * c["request_latency_mean_ms"] / 1e3
    uncounted = mean / (mean + (most - 1) * slowest)
    return known(np.where(np.isnan(span), uncounted, counted), np.zeros(c.count))


def _latest(c: FiguresOfRuns) -> PerRun:
    """Seconds until the last request of an open loop arrived, so late that chance does not explain it. Intervals are
    those of a gamma process, whose shape is the burstiness: 1 for arrivals at random."""
    gaps = np.where((c["requests"] > 1) & ~c["lost_some"], c["requests"] - 1, np.nan)
    shape = gaps * known(c["asked_burstiness"], 1.0)
    late = scipy.special.gammainccinv(shape, float(ARRIVAL_CHANCE)).astype(float)
    latest: PerRun = late * gaps / c["asked_request_rate"] / shape
    return latest


# -- rules ---------------------------------------------------------------------------------------------------------

IN_FLIGHT = (
    "request throughput × mean latency is {left:.3g} requests in flight (Little's law)"
)
LATENCY = "ttft_mean_ms + (output_tokens - 1) * tpot_mean_ms"
LATENCY_OFF = "definition * request_latency_mean_ms + slack_ms"
REPORT_RULES = (
    Rule(
        "output_throughput_tok_s == request_throughput * output_tokens",
        share="definition + digits(output_throughput_tok_s, request_throughput, output_tokens)",
    ),
    Rule(
        "total_throughput_tok_s == request_throughput * (input_tokens_mean + output_tokens)",
        share="definition + digits(total_throughput_tok_s, request_throughput)",
    ),
    Rule(
        "requests_served == request_throughput * measured_seconds",
        where="(span_slack == 0) | (measured_seconds > span) | (span > measured_seconds + span_slack)",
        share="definition + digits(request_throughput, measured_seconds)",
    ),
    # Those that failed were in flight too, for a time that no report gives.
    Rule(
        "concurrency_mean == in_flight",
        "mean concurrency is {left:.6g}, and request throughput × mean latency is {right:.6g}",
        where="(lost_some == 0) & (concurrency_mean > 0)",
        share="report",
    ),
    Rule(
        "output_throughput_per_user_tok_s >= 1e3 * length / request_latency_mean_ms",
        share="report",
    ),
    Rule(
        "itl_p99_ms != ttft_p99_ms",
        "P99 of inter-token latency is that of TTFT, {left:.10g} ms: the wait for the first token is among the gaps",
        share="1e-6",
    ),
    Rule(
        "in_flight <= most",
        IN_FLIGHT + ", and the client sends at most {most:g} at once",
        share="report",
    ),
    Rule(
        "in_flight >= fmin(0.5, least_share) * most",
        IN_FLIGHT + ", and the client keeps {most:g} there",
        where="closed",
    ),
    Rule(f"{LATENCY} <= request_latency_mean_ms", off=LATENCY_OFF),
    Rule(
        f"{LATENCY} >= request_latency_mean_ms", where="to_last_token", off=LATENCY_OFF
    ),
    Rule("after_first_ms >= streamed * (output_tokens - 1) * tpot_mean_ms"),
    Rule("itl_mean_ms >= after_first_ms / (length + 1)", share="report"),
    Rule(
        "ttft_mean_ms >= 1e3 * prompt * share_computed / prompt_throughput_tok_s / prompt_times",
        "TTFT is {left:.4g} ms, and the prompt takes {prompt_times:g} × {right:.4g} ms at its throughput",
    ),
)


def of_each(*rules: Rule, stems: Sequence[str] = DISTRIBUTIONS) -> tuple[Rule, ...]:
    """The rules for each distribution over requests, whose name stands for `S` in them."""
    return tuple(
        Rule(*(part.replace("S_", f"{stem}_") for part in rule))
        for stem in stems
        for rule in rules
    )


OF_REQUESTS = ("ttft", "request_latency")
SEVERAL = (
    "(in_batches == 0) & ((requests > 2) | (isnan(requests)"
    " & (abs(2 * S_p50_ms - S_min_ms - S_max_ms) > definition * (S_min_ms + S_max_ms))))"
)
"""Several requests have times of their own. Of two the median is the middle, which tells where no number does."""
PERCENTILES = (
    *of_each(
        *(Rule(f"S_{low}_ms <= S_{high}_ms") for low, high in combinations(RISING, 2)),
        Rule("S_min_ms <= S_mean_ms"),
        Rule("S_mean_ms <= S_max_ms"),
        Rule("S_mean_ms <= measured_time_ms + 1e3 * span_slack", share="report"),
    ),
    *of_each(
        Rule(
            "S_mean_ms <= where(requests > 100, 0.99 * S_p99_ms + 0.01 * known(S_max_ms, measured_time_ms), S_p99_ms)",
            "{label}: the mean {left:.6g} ms is above p99 {S_p99_ms:.6g} ms",
            where="requests > 2",
            share="report",
        ),
        stems=[stem for stem in DISTRIBUTIONS if stem != "itl"],
    ),
    *of_each(
        *(
            Rule(
                f"S_{low}_ms != S_{high}_ms",
                f"{{label}}: {low} and {high} are both {{left:.10g}} ms: those of several requests differ",
                where=f"{SEVERAL} & {told}",
                share="1e-6",
            )
            for low, high, told in (
                *(
                    (*pair, "(interpolates > 0) & (S_p50_ms > 0)")
                    for pair in pairwise(RISING)
                ),
                ("mean", "p50", "(S_mean_ms != S_max_ms)"),
            )
        ),
        stems=OF_REQUESTS,
    ),
)
INCONSISTENT: tuple[Rules, ...] = (
    Rules("error", "figures that contradict each other", REPORT_RULES + PERCENTILES),
    Rules(
        "warning",
        "a lighter load than the label says",
        (
            Rule(
                "measured_seconds <= latest + last_answer * slowest",
                "{requests:g} requests took {left:.3g} s, and at {asked_request_rate:g} a second the last one arrives "
                "after {latest:.3g} s at most and is answered within {slowest:.3g} s",
                where="isnan(asked_at_once)",
            ),
            Rule(
                "in_flight >= least_share * most",
                "{left:.3g} of {most:g} requests were in flight (throughput × latency)",
                where="closed",
            ),
        ),
        {"what": "in flight"},
        "Look for a client that cannot keep up, another concurrency or rate, or a warm-up in the duration.",
    ),
    Rules(
        "warning",
        "an ITL that is too short for the tokens: some were not counted, or chunks were counted twice",
        # Of a client that encodes each chunk by itself, each has a token more: inference-perf halved its ITL so.
        (Rule("itl_mean_ms >= after_first_ms / (output_tokens + 1)", share="report"),),
        {"what": "uncounted tokens"},
        "Compare the tokens with those that the server counted (`usage`), and re-run with a newer client.",
    ),
    Rules(
        "warning",
        "a prompt throughput over a part of the time to the first token",
        (
            Rule(
                "ttft_mean_ms <= prompt_times * prompts_ms",
                "{left:.4g} ms pass until the first token, and the prompts take {prompts_ms:.4g} ms at their rate",
            ),
        ),
        {"metric": "prompt_throughput_tok_s"},
        "Look for a latency that the client took off, or reasoning before the answer. Measure longer prompts.",
    ),
    Rules(
        "info",
        "several tokens per chunk, so ITL is the time between chunks (read TPOT instead)",
        (
            Rule(
                "itl_mean_ms / tpot_mean_ms <= chunk_tokens",
                "{left:.3g} tokens a chunk",
                where="length > 0",
            ),
        ),
        {"what": "chunks"},
    ),
    Rules(
        "info",
        "a P99 that is the slowest of 100 requests or fewer",
        of_each(
            Rule(
                "S_p99_ms != S_max_ms",
                "{label}",
                where="known(requests, asked_requests, 0) <= 100",
            )
        ),
        {"what": "p99"},
    ),
)
"""What is asked of every report, the worst first."""
BOOKKEEPING = (
    Rules(
        "error",
        "memory figures that do not add up",
        (
            Rule("weights_gib <= allocated_peak_gib", off="memory_gib"),
            Rule("weights_gib + kv_cache_gib <= allocated_peak_gib", off="memory_gib"),
            Rule("allocated_peak_gib <= reserved_peak_gib", off="memory_gib"),
            Rule("reserved_peak_gib <= device_used_peak_gib", off="memory_gib"),
            Rule("device_used_before_gib <= device_used_loaded_gib", off="memory_gib"),
            Rule("device_used_loaded_gib <= device_used_peak_gib", off="memory_gib"),
            Rule("weights_gib == weight_bytes / GIB", share="report", off="memory_gib"),
            Rule(
                "kv_cache_gib == kv_cache_tokens * kv_bytes_per_token / GIB",
                share="report",
                off="memory_gib",
            ),
        ),
    ),
)


def _possible(metric: Metric) -> Iterator[Rule]:
    """What a metric can be at all: a figure that is not available is null."""
    if metric.unit in ("tok/s", "req/s", "GFLOP/s", "B/token"):
        words = "{left:g}, and a successful run has a value above zero"
        yield Rule(f"{metric.name} > 0", words)
    if metric.memory_of is not None:
        words = "{left:.4g} GiB, and the machine has {right:.4g} GiB"
        yield Rule(f"{metric.name} <= {metric.memory_of}_memory_total_gib", words)
    if metric.unit in ("W", "MHz") and metric.name.startswith("gpu_"):
        limit = f"limit_{metric.unit}"
        words = f"{{left:.4g}} {metric.unit}, and the GPU's limit is {{{limit}:g}}"
        if metric.unit == "W":
            words += ", so it was measured at the plug, or of the whole machine"
        yield Rule(f"{metric.name} <= card * {limit}", words)


POSSIBLE = tuple(
    Rules(
        "error",
        f"a value of {metric.label} that cannot be",
        rules,
        {"metric": metric.name, "unit": metric.unit},
    )
    for metric in METRICS.values()
    if (rules := tuple(_possible(metric)))
)
TIMES = (
    Rules(
        "error",
        "impossible times",
        (
            Rule("wall >= 0", "it ended {left:.0f} s after it started"),
            Rule(
                "wall == lasted",
                "it lasted {right:.1f} s by the monotonic clock but {left:.0f} s from start to end",
                where="wall >= 0",
                share="report",
                off="clock_seconds",
            ),
            Rule(
                "measured_for <= lasted",
                "it lasted {right:.1f} s but measured for {left:.1f} s",
                off="clock_seconds",
            ),
        ),
    ),
)
FITS = (
    Rules(
        "error",
        "a model that is larger than the memory of the machine",
        (
            Rule(
                "model_gib + known(kv_cache_gib, 0) <= gpu_memory_total_gib",
                "weights take {model_gib:.1f} GiB, with the KV cache {left:.1f} GiB, and the machine has "
                "{right:.1f} GiB",
            ),
        ),
    ),
)
RATES = ("prompt_throughput_tok_s", THROUGHPUT, "ttft_mean_ms", "ttft_p50_ms")
"""Figures that tell how fast tokens were computed."""
ROOFLINE = (
    Rules(
        "error",
        "more memory traffic than the machine has: a different model must have run",
        (
            Rule(
                "traffic_at_least <= bandwidth",
                "{left:,.0f} GB/s, and the machine has {right:,.0f} GB/s",
            ),
        ),
    ),
    *(
        Rules(
            "error",
            "more arithmetic than the machine has in any format",
            (
                Rule(
                    f"{metric}_at_least <= peak_any_format",
                    "{left:,.0f} TFLOP/s, and the machine has {right:,.0f} TFLOP/s",
                ),
            ),
            {"metric": metric},
            "Look for tokens that came from a cache, for another model, and for a time that is too short.",
        )
        for metric in RATES
    ),
    Rules(
        "error",
        "first tokens that came before the weights can have been read once",
        (
            Rule(
                "ttft_p50_ms >= 1e3 * weights_once_gb / bandwidth",
                "{left:.3g} ms, and {weights_once_gb:.3g} GB take {right:.3g} ms",
            ),
        ),
    ),
    Rules(
        "warning",
        "nearly all memory traffic that the machine has, or more: engines rarely come that close",
        (
            Rule(
                "traffic_expected <= traffic_suspicious * bandwidth",
                "{left:,.0f} GB/s, and the machine has {bandwidth:,.0f} GB/s",
            ),
        ),
        remedy="Look whether the weights have fewer bits, or the model fewer parameters, than the record says.",
    ),
    *(
        Rules(
            "warning",
            "nearly all arithmetic that the machine has with numbers as wide as its weights, or more",
            (
                Rule(
                    f"{metric}_expected <= suspicious * peak_own_format",
                    "{left:,.0f} TFLOP/s, and the machine has {peak_own_format:,.0f} TFLOP/s",
                ),
            ),
            {"metric": metric},
            "Look for prompts from a cache, time that the client left out, fewer parameters or narrower numbers.",
        )
        for metric in RATES
    ),
)
THRESHOLDS: Mapping[str, Threshold] = {
    "clock_seconds": CLOCK_SECONDS,
    "report": REPORT,
    "definition": DEFINITION,
    "chunk_tokens": CHUNK_TOKENS,
    "prompt_times": PROMPT_TIMES,
    "last_answer": LAST_ANSWER,
    "streamed": STREAMED,
    "memory_gib": MEMORY_GIB,
    "card": CARD,
}
"""What expressions call the numbers that decide."""
_SIGNS: Mapping[type[ast.cmpop], Callable[[PerRun, PerRun, PerRun], Any]] = {
    ast.Eq: lambda left, right, off: np.abs(left - right) > off,
    ast.NotEq: lambda left, right, off: np.abs(left - right) <= off,
    ast.LtE: lambda left, right, off: left > right + off,
    ast.GtE: lambda left, right, off: left < right - off,
    ast.Gt: lambda left, right, _: left <= right,
}
"""What breaks each comparison: what is not known breaks none."""


# -- asking --------------------------------------------------------------------------------------------------------


def broken(rule: Rule, c: FiguresOfRuns) -> Iterator[tuple[int, str]]:
    """The places of the runs that break a rule, each with what is wrong in words."""
    compared = ast.parse(rule.holds, mode="eval").body
    assert isinstance(compared, ast.Compare)
    sides = [ast.unparse(side) for side in (compared.left, *compared.comparators)]
    left, right = map(c.of, sides)
    off = c.of(rule.off) + c.of(rule.share) * np.fmax(np.abs(left), np.abs(right))
    sign = type(compared.ops[0])
    with np.errstate(invalid="ignore"):
        is_broken = _SIGNS[sign](left, right, off)
    for place in np.flatnonzero(is_broken & (c.of(rule.where) > 0)):
        one, other = left[place], right[place]
        told = {name: c[name][place] for name in re.findall(r"{(\w+)[:}]", rule.says)}
        told |= {"left": one, "right": other, "label": _words(sides[0])}
        beside = {ast.LtE: "more than", ast.GtE: "less than"}.get(sign, "and")
        words = rule.says.format(**told) or _both(sides, beside, one, other)
        yield int(place), words + mixed_units(one, other)


def _both(sides: Sequence[str], beside: str, left: float, right: float) -> str:
    """What both sides of a rule are, as readers know them: metrics by their labels, other names by their words."""
    metric = METRICS.get(sides[0])
    unit = "" if metric is None else f" {metric.unit}"
    one, other = map(_words, sides)
    return f"{one} is {left:.6g}{unit}, {beside} {other}: {right:.6g}{unit}"


def _words(expression: str) -> str:
    def named(name: re.Match[str]) -> str:
        metric = METRICS.get(name[0])
        return name[0].replace("_", " ") if metric is None else metric.within_sentence

    return re.sub(r"[a-z]\w+", named, expression.replace("*", "×"))


def columns(view: View) -> FiguresOfRuns:
    """The figures of the runs of a campaign that happened."""
    c = FiguresOfRuns([figures(view, stored) for stored in view.happened])
    for name, value in (*THRESHOLDS.items(), ("GIB", GIB)):
        c[name] = np.full(c.count, float(value))
    with np.errstate(all="ignore"):
        define(c)
    return c


def ask(view: View, check: str, table: Sequence[Rules]) -> Iterator[Finding]:
    """A finding for each kind of rule that runs of a campaign break."""
    if not view.happened:
        return
    c = view.once(columns)
    told: set[int] = set()
    for kind in table:
        wrong: dict[int, list[str]] = defaultdict(list)
        if kind is INCONSISTENT[0]:
            wrong.update(_of_readers(view))
        for rule in kind.rules:
            for place, words in broken(rule, c):
                wrong[place].append(words)
        if kind.severity != "info":
            wrong = {
                place: words for place, words in wrong.items() if place not in told
            }
            told |= wrong.keys()
        cases: list[Case] = [
            (view.happened[place], "; ".join(wrong[place][:3]))
            for place in sorted(wrong)
        ]
        text = f"{{}} has|have {kind.happened}"
        yield from view.tell(
            check, kind.severity, text, cases, remedy=kind.remedy, **kind.about
        )


def _of_readers(view: View) -> Iterator[tuple[int, list[str]]]:
    """What the tool's own reader found in report and log of a run."""
    for place, stored in enumerate(view.happened):
        answer = view.evidence.of(stored).answer
        if answer is not None and answer.complete and answer.problems:
            yield place, list(answer.problems)


CHECKS = (
    Check(
        "unit",
        "meaning",
        ("error",),
        "Is every figure physically possible?",
        partial(ask, check="unit", table=POSSIBLE),
        thresholds=(CARD,),
        remedy="Check the unit in the mapping or in the tool's report, and import again.",
    ),
    Check(
        "memory-bookkeeping",
        "meaning",
        ("error",),
        "Do the memory figures add up?",
        partial(ask, check="memory-bookkeeping", table=BOOKKEEPING),
        thresholds=(REPORT, MEMORY_GIB),
        remedy="Check whether the source of the figures means GB or GiB.",
    ),
    Check(
        "inconsistent-report",
        "meaning",
        ("error", "warning", "info"),
        "Can the figures of each run all be true?",
        partial(ask, check="inconsistent-report", table=INCONSISTENT),
        thresholds=(
            REPORT,
            DEFINITION,
            IDLE_SHARE,
            IDLE_SHARE_OF_VLLM,
            IDLE_SECONDS,
            SPAN_SECONDS,
            CHUNK_TOKENS,
            PROMPT_TIMES,
            ARRIVAL_CHANCE,
            LAST_ANSWER,
            STREAMED,
        ),
    ),
    Check(
        "does-not-fit",
        "meaning",
        ("error",),
        "Do weights and KV cache fit into memory?",
        partial(ask, check="does-not-fit", table=FITS),
        remedy="Look in the log for the weights that were loaded, and correct the model's name.",
    ),
    Check(
        "roofline",
        "meaning",
        ("error", "warning"),
        "Are the figures possible with the machine's memory bandwidth and arithmetic?",
        partial(ask, check="roofline", table=ROOFLINE),
        thresholds=(SUSPICIOUS_SHARE,),
        remedy="Look in the log for the model, its weights, cached prompts and the number of requests.",
    ),
)

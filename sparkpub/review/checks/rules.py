"""What two figures of one run must be to each other: a table of rules, asked of all runs of a campaign at once.

A rule compares two expressions. Their names are those of metrics, of what the run observed, of what it was asked for
(`asked_…`), of `figures` and of `DEFINED`. What is not known is NaN, which is neither more nor less than anything and
breaks no rule.

A serving tool has more figures than degrees of freedom. What a client gets wrong before it writes its report (latencies
of the requests that survived, a server that starves, seconds for milliseconds, a warm-up in the duration) breaks one of
these identities, and nothing else shows it.

Little's law: J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (1961).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record import identity
from sparkpub.record.metrics import DISTRIBUTIONS, GIB, METRICS, Metric, mixed_units
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity, Threshold
from sparkpub.review.checks.view import Case, View
from sparkpub.review.physics import (
    SUSPICIOUS,
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
    SUSPICIOUS,
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
    rules: Sequence[Rule]
    about: Mapping[str, str] = {}
    """Evidence of what a finding is about, where several are of one severity."""
    remedy: str = ""


# -- columns -------------------------------------------------------------------------------------------------------

TO_LAST_TOKEN = frozenset(
    {"vllm-bench", "sglang", "aiperf", "genai-perf", "trtllm-bench", "generate"}
)
"""Tools, or clients whose report a workload reads, by which a latency ends with the last token, and TPOT is the time
after the first one divided by the others; GuideLLM's ends later, with the stream."""
DEFINED = {
    "measured_seconds": "measured_time_ms / 1e3",
    "output_tokens": "known(output_tokens_mean, asked_output_tokens)",
    "fixed_length": "(asked_output_tokens > 1) & (output_tokens_mean == asked_output_tokens)",
    "slack_ms": "where(fixed_length, 0, deviation_tpot * deviation_output_tokens)",
    "after_first_ms": "request_latency_mean_ms - ttft_mean_ms",
    "in_flight": "request_throughput_req_s * request_latency_mean_ms / 1e3",
    "most": "where(asked_in_flight > requests, requests, asked_in_flight)",
    # Of requests that failed no report says how long they took.
    "lost_some": "failed_requests_percent > 0",
    "closed": "isnan(asked_request_rate) & (lost_some == 0)",
    "slowest": "known(request_latency_max_ms, request_latency_p99_ms, request_latency_p95_ms) / 1e3",
    # Of the asked concurrency an honest closed loop has all but what a client needs between requests, and but the end
    # of the run, when fewer are in flight: no lane is idle for longer than the last request takes.
    "span": "requests / request_throughput_req_s",
    "tail": "(most - 1) / most * slowest / span",
    # Lanes with as many requests each part by what single requests differ in: the slowest of a hundred is 2.3 standard
    # deviations from the middle, and the last of 64 lanes ends 2.4 of its own after their mean.
    "apart": "sqrt(requests / most) * (slowest - request_latency_p50_ms / 1e3) / span",
    "least_share": f"known(1 - {IDLE_SHARE} - where(requests % most == 0, fmin(tail, apart), tail), 0)",
    # Seconds until the last request of an open loop arrived, so late that chance does not explain it. Intervals are
    # those of a gamma process, whose shape is the burstiness: 1 for arrivals at random.
    "shape": "(requests - 1) * known(asked_burstiness, 1)",
    "latest": f"gammainccinv(shape, {ARRIVAL_CHANCE}) / shape * (requests - 1) / asked_request_rate",
    "prompt": "known(input_tokens_mean, asked_input_tokens)",
    "prompts_ms": "1e3 * (prompt + asked_depth) * asked_in_flight / prompt_throughput_tok_s",
}
"""What follows from other figures, in this order; times in seconds but for those in `_ms`.

`slack_ms` is by how much the mean of products may be off the product of means, of a request's tokens and its time per
token (Cauchy and Schwarz); answers of one length have none.
"""


def known(*columns: Any) -> PerRun:
    """The first of these that is known."""
    found = np.asarray(columns[0], dtype=np.float64)
    for column in columns[1:]:
        found = np.where(np.isnan(found), column, found)
    return found


CALLED: Mapping[str, Any] = {
    "fmin": np.fmin,
    "gammainccinv": scipy.special.gammainccinv,
    "isnan": np.isnan,
    "known": known,
    "sqrt": np.sqrt,
    "where": np.where,
    "GIB": GIB,
}
"""What expressions can call."""


class FiguresOfRuns(dict[str, Any]):
    """The figures of some runs by name, an array each; a figure that no run has is NaN."""

    def __init__(self, rows: Sequence[Mapping[str, float | None]]) -> None:
        self.count = len(rows)
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row.get(name) for row in rows]
            self[name] = np.array(values, dtype=np.float64)
        for name, expression in DEFINED.items():
            self[name] = self.of(expression)

    def __missing__(self, name: str) -> Any:
        return CALLED.get(name, np.full(self.count, np.nan))

    def of(self, expression: str) -> PerRun:
        """The value of an expression for each run."""
        with np.errstate(all="ignore"):
            value = eval(expression, {"__builtins__": {}}, self)  # noqa: S307 - the rules are ours
        return np.full(self.count, value, dtype=np.float64)


SAMPLED: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "gpu_power_mean_watt": ("gpu_power_watt", np.mean),
    "gpu_memory_peak_gib": ("gpu_memory_used_gib", np.max),
}
"""Figures that the samples under load show where the record has none: imports say not when they measured."""


def figures(view: View, stored: Stored) -> dict[str, float | None]:
    """The figures of a run that are told: recorded, observed, asked for, and meant by its client."""
    record, beside = stored.record, view.evidence.of(stored)
    samples, answer = beside.samples, beside.answer
    options, machine = options_of(record), record.machine
    tool = options.get("client") or options.get("reads") or options.get("type")
    told: dict[str, float | None] = {}
    for name, (column, of) in SAMPLED.items():
        values = samples.known(column, samples.under_load) if samples else ()
        if len(values):
            told[name] = float(of(values))
    asked = {f"asked_{name}": has for name, has in asdict(load_of(record)).items()}
    for name, has in (asked | record.observed.model_dump()).items():
        if isinstance(has, int | float):
            told[name] = has
    for name, metric in record.metrics.items():
        if metric.value is not None:
            told[name] = metric.value
    told |= {
        "to_last_token": tool in TO_LAST_TOKEN,
        "share_computed": share_computed(record),
        "gpu_memory_total_gib": memory_gib(record),
        "host_memory_total_gib": machine.memory_total_gib,
        "limit_W": limit_of(record, "power_limit_watt"),
        "limit_MHz": limit_of(record, "clock_max_sm_mhz"),
        "lasted": record.duration_seconds,
    }
    if record.ended is not None and record.ended.zone == record.started.zone:
        start, end = (
            datetime.fromisoformat(moment.value)
            for moment in (record.started, record.ended)
        )
        told["wall"] = (end - start).total_seconds()
    if answer is not None:
        deviations = answer.deviations.items()
        told |= {f"deviation_{name}": value for name, value in deviations}
    return told | dict(_needs(record))


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


def limit_of(record: Record, limit: str) -> float | None:
    """The highest limit of a machine's GPUs; where none is known, the catalogue's."""
    known = [getattr(gpu, limit) or 0.0 for gpu in record.machine.gpus]
    return max(known, default=0.0) or getattr(machine_of(record), limit, None)


def memory_gib(record: Record) -> float | None:
    """The memory that the GPU can use, in GiB, as the run or its machine said it, else the catalogue's."""
    machine, observed = record.machine, record.observed
    total = sum(gpu.memory_total_gib or 0.0 for gpu in machine.gpus)
    if machine.unified_memory or observed.device == "cpu":
        total = machine.memory_total_gib or 0.0
    usual = getattr(machine_of(record), "memory_total_gib", None)
    return observed.device_total_gib or total or usual


# -- rules ---------------------------------------------------------------------------------------------------------

IN_FLIGHT = (
    "request throughput × mean latency is {left:.3g} requests in flight (Little's law)"
)
LATENCY = "ttft_mean_ms + (output_tokens - 1) * tpot_mean_ms"
LATENCY_OFF = f"{DEFINITION} * request_latency_mean_ms + slack_ms"
REPORT_RULES = (
    # A report may print rates with two decimals.
    Rule(
        "output_throughput_tok_s == request_throughput_req_s * output_tokens",
        share=f"{DEFINITION}",
        off="0.005 * (output_tokens + 1)",
    ),
    Rule(
        "total_throughput_tok_s == request_throughput_req_s * (input_tokens_mean + output_tokens)",
        share=f"{DEFINITION}",
        off="0.005 * (input_tokens_mean + output_tokens + 1)",
    ),
    # Clients differ by up to a second in when a measurement begins and ends.
    Rule(
        "requests == request_throughput_req_s * measured_seconds",
        share=f"{REPORT}",
        off="request_throughput_req_s",
    ),
    # Those that failed were in flight too, for a time that no report gives.
    Rule(
        "concurrency_mean == in_flight",
        "mean concurrency is {left:.6g}, and request throughput × mean latency is {right:.6g}",
        where="(lost_some == 0) & (concurrency_mean > 0)",
        share=f"{REPORT}",
    ),
    Rule(
        "itl_p99_ms != ttft_p99_ms",
        "P99 of inter-token latency is that of TTFT, {left:.10g} ms: the wait for the first token is among the gaps",
    ),
    Rule(
        "in_flight <= most",
        IN_FLIGHT + ", and the client sends at most {most:g} at once",
        share=f"{REPORT}",
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
    Rule(f"after_first_ms >= {STREAMED} * (output_tokens - 1) * tpot_mean_ms"),
    Rule(
        f"ttft_mean_ms >= 1e3 * prompt * share_computed / prompt_throughput_tok_s / {PROMPT_TIMES}",
        f"TTFT is {{left:.4g}} ms, and the prompt takes {PROMPT_TIMES:g} × {{right:.4g}} ms at its throughput",
    ),
)
RISING = ("min", "p50", "p90", "p95", "p99", "max")
"""The statistics of a distribution in the order in which they rise."""


def of_each(*rules: Rule) -> list[Rule]:
    """The rules for each distribution over requests, whose name stands for `S` in them."""
    return [
        Rule(*(part.replace("S_", f"{stem}_") for part in rule))
        for stem in DISTRIBUTIONS
        for rule in rules
    ]


INCONSISTENT: tuple[Rules, ...] = (
    Rules(
        "error",
        "figures that contradict each other",
        [
            *REPORT_RULES,
            *of_each(
                *(
                    Rule(f"S_{low}_ms <= S_{high}_ms")
                    for low, high in combinations(RISING, 2)
                ),
                Rule("S_min_ms <= S_mean_ms"),
                Rule("S_mean_ms <= S_max_ms"),
            ),
        ],
    ),
    Rules(
        "warning",
        "a lighter load than the label says",
        [
            Rule(
                f"measured_seconds <= latest + {LAST_ANSWER} * slowest",
                "{requests:g} requests took {left:.3g} s, and at {asked_request_rate:g} a second the last one arrives "
                "after {latest:.3g} s at most and is answered within {slowest:.3g} s",
                where="isnan(asked_at_once) & (lost_some == 0)",
            ),
            Rule(
                "in_flight >= least_share * most",
                "{left:.3g} of {most:g} requests were in flight (throughput × latency)",
                where="closed",
            ),
        ],
        {"what": "in flight"},
        "Look for a client that cannot keep up, another concurrency or rate, or a warm-up in the duration.",
    ),
    # Of a client that encodes each chunk by itself, each has a token more: inference-perf halved its ITL so.
    Rules(
        "warning",
        "an ITL that is too short for the tokens: some were not counted, or chunks were counted twice",
        [
            Rule(
                "itl_mean_ms >= after_first_ms / (output_tokens + 1)", share=f"{REPORT}"
            )
        ],
        {"what": "uncounted tokens"},
        "Compare the tokens with those that the server counted (`usage`), and re-run with a newer client.",
    ),
    Rules(
        "warning",
        "a prompt throughput over a part of the time to the first token",
        [
            Rule(
                f"ttft_mean_ms <= {PROMPT_TIMES} * prompts_ms",
                "{left:.4g} ms pass until the first token, and the prompts take {prompts_ms:.4g} ms at their rate",
            ),
        ],
        {"metric": "prompt_throughput_tok_s"},
        "Look for a latency that the client took off, or reasoning before the answer. Measure longer prompts.",
    ),
    Rules(
        "info",
        "several tokens per chunk, so ITL is the time between chunks (read TPOT instead)",
        [
            Rule(
                f"itl_mean_ms / tpot_mean_ms <= {CHUNK_TOKENS}",
                "{left:.3g} tokens a chunk",
                where="fixed_length",
            )
        ],
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
SLACK = f"{MEMORY_GIB}"
BOOKKEEPING = (
    Rules(
        "error",
        "memory figures that do not add up",
        [
            *(
                Rule(f"{part} <= {whole}", off=SLACK)
                for part, whole in (
                    ("weights_gib", "allocated_peak_gib"),
                    ("weights_gib + kv_cache_gib", "allocated_peak_gib"),
                    ("allocated_peak_gib", "reserved_peak_gib"),
                    ("reserved_peak_gib", "device_used_peak_gib"),
                    ("device_used_before_gib", "device_used_loaded_gib"),
                    ("device_used_loaded_gib", "device_used_peak_gib"),
                )
            ),
            Rule("weights_gib == weight_bytes / GIB", share=f"{REPORT}", off=SLACK),
            Rule(
                "kv_cache_gib == kv_cache_tokens * kv_bytes_per_token / GIB",
                share=f"{REPORT}",
                off=SLACK,
            ),
        ],
    ),
)


def _possible(metric: Metric) -> Iterator[Rule]:
    """What a metric can be at all: a figure that is not available is null."""
    name, unit = metric.name, metric.unit
    if unit in ("tok/s", "req/s", "GFLOP/s", "B/token"):
        words = "{left:g}, and a successful run has a value above zero"
        yield Rule(f"{name} >= 1e-12", words)
    if metric.memory_of is not None:
        words = "{left:.4g} GiB, and the machine has {right:.4g} GiB"
        yield Rule(f"{name} <= {metric.memory_of}_memory_total_gib", words)
    if unit in ("W", "MHz") and name.startswith("gpu_"):
        words = f"{{left:.4g}} {unit}, and the GPU's limit is {{limit_{unit}:g}}"
        if unit == "W":
            words += ", so it was measured at the plug, or of the whole machine"
        yield Rule(f"{name} <= {CARD} * limit_{unit}", words)


POSSIBLE = tuple(
    Rules(
        "error",
        f"a value of {metric.label} that cannot be",
        rules,
        {"metric": metric.name, "unit": metric.unit},
    )
    for metric in METRICS.values()
    if (rules := list(_possible(metric)))
)
TIMES = (
    Rules(
        "error",
        "impossible times",
        [
            Rule(
                "wall == lasted",
                "it lasted {right:.1f} s by the monotonic clock but {left:.0f} s from start to end",
                share=f"{REPORT}",
                off=f"{CLOCK_SECONDS}",
            )
        ],
    ),
)
FITS = (
    Rules(
        "error",
        "a model that is larger than the memory of the machine",
        [
            Rule(
                "model_gib + known(kv_cache_gib, 0) <= gpu_memory_total_gib",
                "weights take {model_gib:.1f} GiB, with the KV cache {left:.1f} GiB, and the machine has "
                "{right:.1f} GiB",
            )
        ],
    ),
)
RATES = ("prompt_throughput_tok_s", THROUGHPUT, "ttft_mean_ms", "ttft_p50_ms")
"""Figures that tell how fast tokens were computed."""
ROOFLINE = (
    Rules(
        "error",
        "more memory traffic than the machine has: a different model must have run",
        [
            Rule(
                "traffic_at_least <= bandwidth",
                "{left:,.0f} GB/s, and the machine has {right:,.0f} GB/s",
            )
        ],
    ),
    *(
        Rules(
            "error",
            "more arithmetic than the machine has in any format",
            [
                Rule(
                    f"{metric}_at_least <= peak_any_format",
                    "{left:,.0f} TFLOP/s, and the machine has {right:,.0f} TFLOP/s",
                )
            ],
            {"metric": metric},
            "Look for tokens that came from a cache, for another model, and for a time that is too short.",
        )
        for metric in RATES
    ),
    Rules(
        "error",
        "first tokens that came before the weights can have been read once",
        [
            Rule(
                "ttft_p50_ms >= 1e3 * weights_once_gb / bandwidth",
                "{left:.3g} ms, and {weights_once_gb:.3g} GB take {right:.3g} ms",
            )
        ],
    ),
    Rules(
        "warning",
        "nearly all memory traffic that the machine has, or more: engines rarely come that close",
        [
            Rule(
                "traffic_expected <= traffic_suspicious * bandwidth",
                "{left:,.0f} GB/s, and the machine has {bandwidth:,.0f} GB/s",
            )
        ],
        remedy="Look whether the weights have fewer bits, or the model fewer parameters, than the record says.",
    ),
    *(
        Rules(
            "warning",
            "nearly all arithmetic that the machine has with numbers as wide as its weights, or more",
            [
                Rule(
                    f"{metric}_expected <= suspicious * peak_own_format",
                    "{left:,.0f} TFLOP/s, and the machine has {peak_own_format:,.0f} TFLOP/s",
                )
            ],
            {"metric": metric},
            "Look for prompts from a cache, time that the client left out, fewer parameters or narrower numbers.",
        )
        for metric in RATES
    ),
)
_SIGNS: Mapping[str, Callable[[PerRun, PerRun, PerRun], Any]] = {
    "==": lambda left, right, off: np.abs(left - right) > off,
    "!=": lambda left, right, _: left == right,
    "<=": lambda left, right, off: left > right + off,
    ">=": lambda left, right, off: left < right - off,
}
"""What breaks each comparison: what is not known breaks none."""


# -- asking --------------------------------------------------------------------------------------------------------


def broken(rule: Rule, c: FiguresOfRuns) -> Iterator[tuple[int, str]]:
    """The places of the runs that break a rule, each with what is wrong in words."""
    said, sign, besides = re.split(r" ([=!<>]=) ", rule.holds)
    left, right = c.of(said), c.of(besides)
    off = c.of(rule.off) + c.of(rule.share) * np.fmax(np.abs(left), np.abs(right))
    is_broken = _SIGNS[sign](left, right, off) & (c.of(rule.where) > 0)
    beside = {"<=": "more than", ">=": "less than"}.get(sign, "and")
    for place in np.flatnonzero(is_broken):
        one, other = left[place], right[place]
        known = {name: values[place] for name, values in c.items()}
        known |= {"left": one, "right": other, "label": _words(said)}
        words = rule.says.format(**known)
        if not words:
            unit = f" {METRICS[said].unit}" if said in METRICS else ""
            words = f"{_words(said)} is {one:.6g}{unit}, {beside} {_words(besides)}: {other:.6g}{unit}"
        yield int(place), words + mixed_units(one, other)


def _words(expression: str) -> str:
    """An expression as readers know it: metrics by their labels, other names by their words."""

    def named(name: re.Match[str]) -> str:
        metric = METRICS.get(name[0])
        return name[0].replace("_", " ") if metric is None else metric.within_sentence

    return re.sub(r"[a-z]\w+", named, expression.replace("*", "×"))


def columns(view: View) -> FiguresOfRuns:
    """The figures of the runs of a campaign that happened."""
    return FiguresOfRuns([figures(view, stored) for stored in view.happened])


def ask(view: View, check: str, table: Sequence[Rules]) -> Iterator[Finding]:
    """A finding for each kind of rule that runs of a campaign break."""
    told: set[int] = set()
    for kind in table:
        wrong: dict[int, list[str]] = defaultdict(list)
        if kind is INCONSISTENT[0]:
            wrong.update(_of_readers(view))
        for rule in kind.rules:
            for place, words in broken(rule, view.once(columns)):
                wrong[place].append(words)
        if kind.severity != "info":
            for place in told & wrong.keys():
                del wrong[place]
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


def _check(
    name: str,
    question: str,
    table: Sequence[Rules],
    remedy: str = "",
    *thresholds: Threshold,
) -> Check:
    severities = tuple(dict.fromkeys(kind.severity for kind in table))
    judge = partial(ask, check=name, table=table)
    return Check(
        name,
        "meaning",
        severities,
        question,
        judge,
        thresholds=thresholds,
        remedy=remedy,
    )


CHECKS = (
    _check(
        "unit",
        "Is every figure physically possible?",
        POSSIBLE,
        "Check the unit in the mapping or in the tool's report, and import again.",
        CARD,
    ),
    _check(
        "memory-bookkeeping",
        "Do the memory figures add up?",
        BOOKKEEPING,
        "Check whether the source of the figures means GB or GiB.",
        REPORT,
        MEMORY_GIB,
    ),
    _check(
        "inconsistent-report",
        "Can the figures of each run all be true?",
        INCONSISTENT,
        "",
        REPORT,
        DEFINITION,
        IDLE_SHARE,
        CHUNK_TOKENS,
        PROMPT_TIMES,
        ARRIVAL_CHANCE,
        LAST_ANSWER,
        STREAMED,
    ),
    _check(
        "does-not-fit",
        "Do weights and KV cache fit into memory?",
        FITS,
        "Look in the log for the weights that were loaded, and correct the model's name.",
    ),
    _check(
        "roofline",
        "Are the figures possible with the machine's memory bandwidth and arithmetic?",
        ROOFLINE,
        "Look in the log for the model, its weights, cached prompts and the number of requests.",
        SUSPICIOUS_SHARE,
    ),
)

"""What two figures of one run must be to each other: a table of rules, asked of all runs of a campaign at once.

A rule compares two expressions. Their names are those of metrics, of what the run observed, of what it was asked for
(`asked_…`), of `figures` and of `DEFINED`. What is not known is NaN, which is neither more nor less than anything and
breaks no rule.

A serving tool has more figures than degrees of freedom. What a client gets wrong before it writes its report (latencies
of the requests that survived, a server that starves, seconds for milliseconds, a warm-up in the duration) breaks one of
these identities, and nothing else shows it.

Little's law: J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (1961).
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import combinations
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from sparkpub.plan.requested import (
    is_of_running_server,
    load_of,
    options_of,
)
from sparkpub.record import identity
from sparkpub.record.metrics import DISTRIBUTIONS, GIB, METRICS, Metric, mixed_units
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import ASK, Asked, Check, Problems
from sparkpub.review.checks.finding import Threshold
from sparkpub.review.checks.sensors import sensed
from sparkpub.review.checks.view import Case, View, is_planned, once
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
ShownFigures = dict[str, float | None]
"""The figures of one run by name."""

REPORT = Threshold(
    0.01,
    "Allowed relative difference between figures of one run, because they are rounded, and clocks corrected.",
)
DEFINITION = Threshold(
    0.001,
    "The same where one figure is made of the others: real reports of vLLM, SGLang and AIPerf agree to 12 digits.",
)
IDLE_SHARE = Threshold(
    0.03,
    "Share of a closed loop's time that a client needs between two requests, beyond the end of the run, when fewer are "
    "in flight.",
)
CHUNK_TOKENS = 1.1
"""Tokens per chunk from which inter-token latency is the time between chunks, not between tokens."""
PROMPT_TIMES = Threshold(
    2.0,
    "Times by which the time that a prompt takes at the rate of prompts may miss the time to the first token. Of 266 "
    "loads of one user on a DGX Spark, 22 with short prompts miss it by more: their client takes its latency off.",
)
ARRIVAL_CHANCE = 1e-4
"""Chance that requests which arrive at a rate come so late; below it they came at another rate."""
LAST_ANSWER = 2.0
"""Slowest latencies that an open loop may go on after its last request arrived: on 300 runs it was one at most."""
STREAMED = 0.25
"""Share of TPOT × further tokens that a request takes at least after its first token, whatever the lengths of its
answers: in 700 runs of open loops on a DGX Spark it was 0.9 or more."""
MEMORY_GIB = 0.05
"""GiB by which a part may exceed its total, because the two are read at different times."""
CLOCK_SECONDS = Threshold(
    3.0,
    "Allowed difference between times, which are recorded to the second.",
)
SUSPICIOUS_SHARE = Threshold(
    SUSPICIOUS,
    "Share of the nominal bandwidth from which a throughput is suspicious: good engines reach 60 to 85 %. Of the "
    "nominal operations per second, 1,640 runs on a DGX Spark and a GPU of a data centre reached 64 %, but for two "
    "with rates over a part of the time. Where only the publisher's number of parameters is known, which a name "
    "rounds, it is 1.2.",
)
CARD_LIMIT_SHARE = Threshold(
    1.1,
    "Maximum mean power or clock of a phase, as a multiple of the GPU's limit.",
)
FAILED_PERCENT = Threshold(
    1.0,
    "Failed requests of a run, in percent, from which its figures are of a lighter load than was asked for.",
)
HITS_PERCENT = Threshold(
    25.0,
    "Percentage points of prefix cache hits, beyond the client's own warm-ups, from which prompts were not computed: "
    "prompts drawn anew gave 13 at most in 40 runs of vLLM.",
)
ANSWER_SHARE = Threshold(
    0.2,
    "How far the mean answer may be from the length that the load declares, as a share of that. Of 1,522 runs that "
    "tell both, 6 are further. The mean of 100 lengths drawn from 0.1 to 1.9 times the declared one has a standard "
    "error of 5 %.",
)
DRAIN_SHARE = Threshold(
    0.2,
    "How long a mean request may take, as a share of the time in which requests arrive: longer, and the end of the "
    "measurement, when no more arrive, is a large part of it.",
)
COLD_START = Threshold(
    1.5,
    "From this multiple of the slowest other batch, the first batch of a run is a cold start.",
)


class Rule(NamedTuple):
    """Two expressions that must be so to each other, but for a share of the larger one and an amount."""

    holds: str
    says: str = ""
    """What is wrong, with `{left}`, `{right}` and any column in braces; empty for the words of the expressions."""
    where: str = "True"
    share: str = "0"
    off: str = "0"


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
    "least_share": f"known(1 - {IDLE_SHARE} - tail, 0)",
    # Seconds until the last request of an open loop arrived, so late that chance does not explain it. Intervals are
    # those of a gamma process, whose shape is the burstiness: 1 for arrivals at random.
    "shape": "(requests - 1) * known(asked_burstiness, 1)",
    "latest": f"gammainccinv(shape, {ARRIVAL_CHANCE}) / shape * (requests - 1) / asked_request_rate",
    "arriving": "asked_requests / asked_request_rate",
    "clock": "known(busy_clock, gpu_clock_sm_mean_mhz)",
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
    "fmax": np.fmax,
    "fmin": np.fmin,
    "gammainccinv": scipy.special.gammainccinv,
    "isnan": np.isnan,
    "known": known,
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


@once
def columns(view: View) -> FiguresOfRuns:
    """The figures of the runs of a campaign that happened: what the record tells, before what the evidence shows."""
    return FiguresOfRuns(
        [_beside(view, run, figures(run.record)) for run in view.happened]
    )


def _beside(view: View, stored: Stored, told: ShownFigures) -> ShownFigures:
    """The figures that the evidence of a run shows, with those that its record tells."""
    beside = view.evidence.of(stored)
    samples, answer = beside.samples, beside.answer
    shown: ShownFigures = {}
    if samples is not None:
        limits = [told[name] or math.nan for name in ("slowdown", "highest")]
        shown |= sensed(stored.record, samples, *limits)
    if answer is not None:
        for name, value in answer.deviations.items():
            shown[f"deviation_{name}"] = value
        first, *others = answer.series or (0.0,)
        if len(others) > 1:
            shown["first_batch_ms"] = first
            shown["slowest_batch_ms"] = max(others)
            shown["usual_batch_ms"] = median(others)
    return shown | told


def figures(record: Record) -> ShownFigures:
    """The figures of a run that its record tells: recorded, observed, asked for, and meant by its client."""
    options, machine, container = options_of(record), record.machine, record.container
    is_served = "server" in record.observed.settings or is_of_running_server(record)
    limit_mhz = limit_of(record, "clock_max_sm_mhz")
    tool = options.get("client") or options.get("reads") or options.get("type")
    told: ShownFigures = {}
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
        "may_cache": bool(options.get("prefix_caching")),
        "usual_hits": usual_hits(record),
        "gpu_memory_total_gib": memory_gib(record),
        "host_memory_total_gib": machine.memory_total_gib,
        "limit_W": power_limit(record, "power_limit_watt"),
        "default_W": power_limit(record, "power_default_watt"),
        "limit_MHz": limit_mhz,
        # What the matrix set, else what the GPU can do.
        "highest": machine.clocks_locked_mhz or limit_mhz,
        "slowdown": machine.gpu_slowdown_celsius
        or getattr(machine_of(record), "slowdown_celsius", None),
        "has_gate": any("temp" in gate.name for gate in record.gates),
        # Nothing of its own was on the GPU before: no server of several runs, nor one that an import measured.
        "begins_alone": is_planned(record) and not is_served,
        "killed": container is not None and container.oom_killed,
        "lasted": record.duration_seconds,
        "wall": seconds_on_the_clock(record),
    }
    return told | dict(_needs(record))


def seconds_on_the_clock(record: Record) -> float | None:
    """How long a run took by when it started and ended; None where an end without the start's zone tells nothing."""
    if record.ended is None or record.ended.zone != record.started.zone:
        return None
    start, end = map(datetime.fromisoformat, (record.started.value, record.ended.value))
    return (end - start).total_seconds()


def usual_hits(record: Record) -> float:
    """Hits in the prefix cache, in percent, up to which an engine did the work that the load says: beginnings that
    prompts share, and the client's warm-ups, which repeat one prompt."""
    asked = options_of(record)
    warmup, requests = asked.get("warmup"), asked.get("requests")
    if isinstance(warmup, int) and isinstance(requests, int):
        return HITS_PERCENT + 100 * (warmup + 1) / (warmup + 1 + requests)
    return HITS_PERCENT


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
        each, suspicious = token
        yield "peak", most / 1e12
        yield "suspicious", suspicious
        for metric, rate in computed(record):
            yield f"{metric}_operations", each * rate / 1e12


def limit_of(record: Record, limit: str) -> float | None:
    """The highest limit of a machine's GPUs; where none is known, the catalogue's."""
    known = [getattr(gpu, limit) or 0.0 for gpu in record.machine.gpus]
    return max(known, default=0.0) or getattr(machine_of(record), limit, None)


def power_limit(record: Record, limit: str) -> float | None:
    """The limit of all GPUs together, as their power is measured."""
    each = limit_of(record, limit)
    return each and each * devices(record)


def memory_gib(record: Record) -> float | None:
    """The memory that GPUs can use together, in GiB, as the run or its machine said it, else the catalogue's."""
    machine, observed = record.machine, record.observed
    total = sum(gpu.memory_total_gib or 0.0 for gpu in machine.gpus)
    if machine.unified_memory or observed.device == "cpu":
        total = machine.memory_total_gib or 0.0
    total *= machine.count or 1
    usual = getattr(machine_of(record), "memory_total_gib", None)
    return observed.device_total_gib or total or (usual and usual * devices(record))


# -- rules ---------------------------------------------------------------------------------------------------------

RISING = ("min", "p50", "p90", "p95", "p99", "max")
"""The statistics of a distribution in the order in which they rise."""


def of_each(*rules: Rule) -> list[Rule]:
    """The rules for each distribution over requests, whose name stands for `S` in them."""
    return [
        Rule(*(part.replace("S_", f"{stem}_") for part in rule))
        for stem in DISTRIBUTIONS
        for rule in rules
    ]


IN_FLIGHT = "request throughput × mean latency is {left:.3g} requests in flight (Little's law){hint}"
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
    *of_each(
        *(Rule(f"S_{low}_ms <= S_{high}_ms") for low, high in combinations(RISING, 2)),
        Rule("S_min_ms <= S_mean_ms"),
        Rule("S_mean_ms <= S_max_ms"),
    ),
)
LIGHTER = (
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
)
SLOWEST = of_each(
    Rule(
        "S_p99_ms != S_max_ms",
        "{label}",
        where="known(requests, asked_requests, 0) <= 100",
    )
)
BOOKKEEPING = (
    *(
        Rule(f"{part} <= {whole}", off=f"{MEMORY_GIB}")
        for part, whole in (
            ("weights_gib + known(kv_cache_gib, 0)", "allocated_peak_gib"),
            ("allocated_peak_gib", "reserved_peak_gib"),
            ("reserved_peak_gib", "device_used_peak_gib"),
            ("device_used_before_gib", "device_used_loaded_gib"),
            ("device_used_loaded_gib", "device_used_peak_gib"),
        )
    ),
    Rule("weights_gib == weight_bytes / GIB", share=f"{REPORT}", off=f"{MEMORY_GIB}"),
    Rule(
        "kv_cache_gib == kv_cache_tokens * kv_bytes_per_token / GIB",
        share=f"{REPORT}",
        off=f"{MEMORY_GIB}",
    ),
)
ANSWERS = Rule(
    "output_tokens_mean == asked_output_tokens",
    "its mean answer has {left:,.0f} tokens, and its load declares {right:,.0f}",
    where="asked_output_tokens",
    off=f"{ANSWER_SHARE} * asked_output_tokens",
)
"""Lengths drawn at random are declared by their mean, and prompts of a data set declare none."""
DRAINED = Rule(
    f"request_latency_mean_ms / 1e3 <= {DRAIN_SHARE} * arriving",
    "a mean request took {left:,.0f} s, and requests came for {arriving:,.0f} s",
    where="isnan(asked_in_flight) * asked_requests",
)
"""The requests of an open loop took so long that a large part was answered when no more arrived: the figures are of a
queue that empties, not of a server at that rate. Where the client bounds the requests at once, those that have to wait
are not sent."""
HITS = Rule(
    "prefix_cache_hit_percent <= usual_hits",
    "{left:.3g} % of their tokens",
    where="may_cache == 0",
)
WALL = Rule(
    "wall == lasted",
    "it lasted {right:.1f} s by the monotonic clock but {left:.0f} s from start to end",
    share=f"{REPORT}",
    off=f"{CLOCK_SECONDS}",
)


def _possible(metric: Metric) -> Iterator[Rule]:
    """What a metric can be at all: a figure that is not available is null."""
    name, unit = metric.name, metric.unit
    if unit in ("tok/s", "req/s", "GFLOP/s", "B/token"):
        words = "{left:g}, and a successful run has a value above zero"
        yield Rule(f"{name} >= 1e-12", words)
    if metric.memory_of is not None:
        words = "{left:.4g} GiB, and the machine has {right:.4g} GiB{hint}"
        yield Rule(f"{name} <= {metric.memory_of}_memory_total_gib", words)
    if unit in ("W", "MHz") and name.startswith("gpu_"):
        words = f"{{left:.4g}} {unit}, and the GPU's limit is {{limit_{unit}:g}}"
        if unit == "W":
            words += ", so it was measured at the plug, or of the whole machine"
        yield Rule(f"{name} <= {CARD_LIMIT_SHARE} * limit_{unit}", words)


_SIGNS: Mapping[str, Callable[[PerRun, PerRun, PerRun], Any]] = {
    "==": lambda left, right, off: np.abs(left - right) > off,
    "!=": lambda left, right, _: left == right,
    "<=": lambda left, right, off: left > right + off,
    ">=": lambda left, right, off: left < right - off,
    "<": lambda left, right, off: left >= right + off,
}
"""What breaks each comparison: what is not known breaks none."""


# -- asking --------------------------------------------------------------------------------------------------------


def broken(rule: Rule, c: FiguresOfRuns) -> Iterator[tuple[int, str]]:
    """The places of the runs that break a rule, each with what is wrong in words."""
    said, sign, besides = re.split(r" ([=!<>]=|<) ", rule.holds, maxsplit=1)
    left, right = c.of(said), c.of(besides)
    off = c.of(rule.off) + c.of(rule.share) * np.fmax(np.abs(left), np.abs(right))
    is_broken = _SIGNS[sign](left, right, off) & (c.of(rule.where) > 0)
    says = rule.says or _default_words(said, sign, besides)
    for place in np.flatnonzero(is_broken):
        one, other = left[place], right[place]
        known = {name: values[place] for name, values in c.items()}
        known |= {"left": one, "right": other, "label": _words(said)}
        known["hint"] = mixed_units(one, other)
        yield int(place), says.format(**known)


def _default_words(said: str, sign: str, besides: str) -> str:
    """What is wrong in the words of two expressions, to be filled with their values."""
    unit = f" {METRICS[said].unit}" if said in METRICS else ""
    beside = {"<=": "more than", ">=": "less than"}.get(sign, "and")
    return f"{_words(said)} is {{left:.6g}}{unit}, {beside} {_words(besides)}: {{right:.6g}}{unit}{{hint}}"


def _words(expression: str) -> str:
    """An expression as readers know it: metrics by their labels, other names by their words."""

    def named(name: re.Match[str]) -> str:
        metric = METRICS.get(name[0])
        return name[0].replace("_", " ") if metric is None else metric.within_sentence

    return re.sub(r"[a-z]\w+", named, expression.replace("*", "×"))


def breaches(records: Iterable[Record], *rules: Rule) -> list[dict[int, str]]:
    """For each rule of a record alone the places of the runs that break it, each with what is wrong."""
    told = FiguresOfRuns([figures(record) for record in records])
    return [dict(broken(rule, told)) for rule in rules]


class Wrong:
    """The runs, of those that happened or of others, that break rules of their figures or in which something else is
    wrong, with up to three things each, in the order in which they are asked."""

    def __init__(
        self,
        *asked: Rule | Problems,
        among: Callable[[View], Iterable[Stored]] = attrgetter("happened"),
    ) -> None:
        self.asked, self.among = asked, among

    def __call__(self, view: View) -> list[Case]:
        runs = list(self.among(view))
        told: dict[str, list[str]] = {run.run_id: [] for run in runs}
        for one in self.asked:
            if isinstance(one, Rule):
                for place, words in broken(one, columns(view)):
                    told[view.happened[place].run_id].append(words)
            else:
                for run in runs:
                    told[run.run_id] += one(view, run)
        wrong = ((run, told[run.run_id][:3]) for run in runs)
        return [(run, "; ".join(filter(None, words))) for run, words in wrong if words]


def _by_its_reader(view: View, stored: Stored) -> Iterator[str]:
    """What the tool's own reader found in report and log of a run."""
    answer = view.evidence.of(stored).answer
    if answer is not None and answer.complete:
        yield from answer.problems


def _of_arithmetic(metric: str) -> Asked:
    """Whether the machine has the arithmetic that a figure needs."""
    return Asked(
        "had nearly all arithmetic that the machine has with numbers as wide as its weights, or more",
        Wrong(
            Rule(
                f"{metric}_operations <= suspicious * peak",
                "{left:,.0f} TFLOP/s, and the machine has {peak:,.0f} TFLOP/s",
            )
        ),
        remedy="Look for prompts from a cache, time that the client left out, fewer parameters or narrower numbers.",
        metric=metric,
    )


ROOFLINE = (
    Asked(
        "had more memory traffic than the machine has: a different model must have run",
        Wrong(
            Rule(
                "traffic_at_least <= bandwidth",
                "{left:,.0f} GB/s, and the machine has {right:,.0f} GB/s",
            )
        ),
        "error",
    ),
    Asked(
        "had first tokens that came before the weights can have been read once",
        Wrong(
            Rule(
                "ttft_p50_ms >= 1e3 * weights_once_gb / bandwidth",
                "{left:.3g} ms, and {weights_once_gb:.3g} GB take {right:.3g} ms",
            )
        ),
        "error",
    ),
    Asked(
        "had nearly all memory traffic that the machine has, or more: engines rarely come that close",
        Wrong(
            Rule(
                "traffic_expected <= traffic_suspicious * bandwidth",
                "{left:,.0f} GB/s, and the machine has {bandwidth:,.0f} GB/s",
            )
        ),
        remedy="Look whether the weights have fewer bits, or the model fewer parameters, than the record says.",
    ),
    *map(
        _of_arithmetic,
        ("prompt_throughput_tok_s", THROUGHPUT, "ttft_mean_ms", "ttft_p50_ms"),
    ),
)
LOST = "lost requests, and the figures are of the others"
CHECKS = (
    Check(
        "unit",
        "Is every figure physically possible?",
        asked=tuple(
            Asked(
                f"had a value of {metric.label} that cannot be",
                Wrong(*rules),
                "error",
                metric=metric.name,
            )
            for metric in METRICS.values()
            if (rules := list(_possible(metric)))
        ),
        remedy="Check the unit in the mapping or in the tool's report, and import again.",
        worst_only=True,
    ),
    Check(
        "memory-bookkeeping",
        "Do the memory figures add up?",
        asked=(
            Asked(
                "had memory figures that do not add up", Wrong(*BOOKKEEPING), "error"
            ),
        ),
        remedy="Check whether the source of the figures means GB or GiB.",
    ),
    Check(
        "inconsistent-report",
        "Can the figures of each run all be true?",
        asked=(
            Asked(
                "had figures that contradict each other",
                Wrong(_by_its_reader, *REPORT_RULES),
                "error",
            ),
            Asked(
                "had a lighter load than the label says",
                Wrong(*LIGHTER),
                remedy="Look for a client that cannot keep up, another concurrency or rate, or a warm-up in the "
                "duration.",
            ),
            # Of a client that encodes each chunk by itself, each has a token more: inference-perf halved its ITL so.
            Asked(
                "had an ITL that is too short for the tokens: some were not counted, or chunks were counted twice",
                Wrong(
                    Rule(
                        "itl_mean_ms >= after_first_ms / (output_tokens + 1)",
                        share=f"{REPORT}",
                    )
                ),
                remedy="Compare the tokens with those that the server counted (`usage`), and re-run with a newer "
                "client.",
            ),
            Asked(
                "had a prompt throughput over a part of the time to the first token",
                Wrong(
                    Rule(
                        f"ttft_mean_ms <= {PROMPT_TIMES} * prompts_ms",
                        "{left:.4g} ms pass until the first token, and the prompts take {prompts_ms:.4g} ms at their "
                        "rate",
                    )
                ),
                remedy="Look for a latency that the client took off, or reasoning before the answer. Measure longer "
                "prompts.",
                metric="prompt_throughput_tok_s",
            ),
            Asked(
                "had several tokens per chunk, so ITL is the time between chunks (read TPOT instead)",
                Wrong(
                    Rule(
                        f"itl_mean_ms / tpot_mean_ms <= {CHUNK_TOKENS}",
                        "{left:.3g} tokens a chunk",
                        where="fixed_length",
                    )
                ),
                "info",
            ),
            Asked(
                "had a P99 that is the slowest of 100 requests or fewer",
                Wrong(*SLOWEST),
                "info",
            ),
        ),
        imported=ASK,
        worst_only=True,
    ),
    Check(
        "does-not-fit",
        "Do weights and KV cache fit into memory?",
        asked=(
            Asked(
                "had a model that is larger than the memory of the machine",
                Wrong(
                    Rule(
                        "model_gib + known(kv_cache_gib, 0) <= gpu_memory_total_gib",
                        "weights take {model_gib:.1f} GiB, with the KV cache {left:.1f} GiB, and the machine has "
                        "{right:.1f} GiB",
                    )
                ),
                "error",
            ),
        ),
        cause="another model",
        remedy="Look in the log for the weights that were loaded, and correct the model's name.",
    ),
    Check(
        "roofline",
        "Are the figures possible with the machine's memory bandwidth and arithmetic?",
        asked=ROOFLINE,
        cause="another model",
        remedy="Look in the log for the model, its weights, cached prompts and the number of requests.",
        worst_only=True,
    ),
    Check(
        "failed-requests",
        "Did requests fail?",
        asked=(
            Asked(
                LOST,
                Wrong(
                    Rule(f"failed_requests_percent < {FAILED_PERCENT}", "{left:.3g} %")
                ),
            ),
            Asked(
                LOST,
                Wrong(Rule("failed_requests_percent <= 0", "{left:.3g} %")),
                "info",
            ),
        ),
        remedy="Look for errors in the logs of server and client, and re-run with a longer timeout or a lighter load.",
        imported="Read the figures as those of a lighter load.",
        worst_only=True,
    ),
    Check(
        "prefix-cache",
        "Did the server compute every prompt?",
        asked=(
            Asked(
                "found prompts in the server's prefix cache, so TTFT and throughput are of less work than asked for",
                Wrong(HITS),
            ),
        ),
        remedy="Draw other prompts for each run (another seed), or start the server without the cache.",
        imported=ASK,
    ),
    Check(
        "answer-length",
        "Were the answers as long as the load declares?",
        asked=(
            Asked(
                "gave answers of another length, so it is other work than its load says",
                Wrong(ANSWERS),
            ),
        ),
        remedy="Have the server ignore the end of the text (`--ignore-eos`, `min_tokens`), and re-run.",
        imported="Compare it with answers of its own length only.",
    ),
    Check(
        "offered-load",
        "Did the server serve the rate at which requests came?",
        asked=(
            Asked(
                "measured in large part the emptying of a queue, not a server at that rate",
                Wrong(DRAINED),
                "info",
            ),
        ),
    ),
    Check(
        "warmed-up",
        "Did measuring begin after warming up?",
        asked=(
            Asked(
                "measured a cold start: the first batch or requests are far slower",
                Wrong(
                    Rule(
                        f"first_batch_ms <= {COLD_START} * slowest_batch_ms",
                        "{left:.1f} ms, while the others take {usual_batch_ms:.1f} ms",
                    )
                ),
            ),
        ),
        remedy="Raise warmup: of the workload, and re-run.",
        imported="Read medians, and no means.",
    ),
)

"""Whether the figures of one run can all be true: Little's law, the definition of TPOT, sums of tokens, percentiles.

A serving tool has more figures than degrees of freedom. What a client gets wrong before it writes its report (latencies
of the requests that survived, a server that starves, seconds for milliseconds, a warm-up in the duration) breaks one of
these identities, and nothing else shows it. Each is asked of a tool by the tool's own definitions, in `CLIENTS`. What a
report does not say is NaN there: it is neither more nor less than anything, and breaks no identity.

Little's law: J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (1961).
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isnan, nan, sqrt

import scipy

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record.metrics import DISTRIBUTIONS, METRICS
from sparkpub.record.record import Record
from sparkpub.record.text import number
from sparkpub.review.arithmetic import share_computed
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

REPORT_TOLERANCE = Threshold(
    "report tolerance",
    0.01,
    "Allowed relative difference between figures of one report, because they are rounded.",
)
DEFINITION_TOLERANCE = Threshold(
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
ROUNDED_SHARE = Threshold(
    "rounded share",
    0.01,
    "A unit of the last digit, as a share of the median, from which times are too coarse to be compared.",
)
CHUNK_TOKENS = Threshold(
    "chunk tokens",
    1.1,
    "Tokens per chunk from which inter-token latency is the time between chunks, not between tokens.",
)
ARRIVAL_CHANCE = Threshold(
    "arrival chance",
    1e-4,
    "Chance that requests which arrive at a rate come so early, or so late; below it they came at another rate.",
)
LAST_ANSWER = Threshold(
    "last answer",
    2.0,
    "Slowest latencies that an open loop may go on after its last request arrived: on 300 runs it was one at most.",
)

PROMPT_TIMES = Threshold(
    "prompt times",
    2.0,
    "Times by which the time that a prompt takes at the rate of prompts may miss the time to the first token. Of 266 "
    "loads of one user on a DGX Spark, 22 with short prompts miss it by more: their client takes its latency off.",
)

_RISING = ("min", "p50", "p90", "p95", "p99", "max")


@dataclass(frozen=True)
class Client:
    """What a tool means by its figures."""

    ends_with_last_token: bool = False
    """Whether a request's latency ends with its last token, and TPOT is the time after the first token divided by the
    remaining tokens. GuideLLM's latency ends later, with the end of the stream."""
    interpolates: bool = False
    """Whether percentiles are interpolated, so that two of them are equal only where requests took equally long."""
    span_is_longer: bool = False
    """Whether rates are over a longer span than the duration that is reported."""
    idle_share: Threshold = IDLE_SHARE


CLIENTS: Mapping[str, Client] = {
    "vllm-bench": Client(
        ends_with_last_token=True, interpolates=True, idle_share=IDLE_SHARE_OF_VLLM
    ),
    "sglang": Client(ends_with_last_token=True, interpolates=True),
    "aiperf": Client(ends_with_last_token=True, interpolates=True, span_is_longer=True),
    "genai-perf": Client(interpolates=True),
    "generate": Client(ends_with_last_token=True),
}
"""By the tool, or by the client whose report a workload reads. Others are asked what holds by any definition."""


class Reported:
    """The figures of a run as its tool means them, times in seconds. What is not known is NaN."""

    def __init__(self, record: Record) -> None:
        asked, seen = options_of(record), record.observed
        tool = str(asked.get("client", asked.get("type")))
        self.client = CLIENTS.get(tool, Client())
        self.load, self.record = load_of(record), record
        self.requests = seen.requests or 0
        self.concurrency = _known(seen.concurrency_mean)
        self.input_tokens = _known(seen.input_tokens_mean)
        self.output_tokens = _known(seen.output_tokens_mean or self.load.output_tokens)
        asked_for = self.load.output_tokens or 0
        fixed = asked_for > 1 and seen.output_tokens_mean == asked_for
        self.length: float = asked_for if fixed else nan
        """Tokens of every answer, where all have the same number."""
        self.rate = self.of("request_throughput_req_s") or nan
        self.seconds = self.of("measured_time_ms") / 1e3
        self.span = (self.requests or nan) / self.rate
        self.in_flight = self.rate * self.of("request_latency_mean_ms") / 1e3
        """Requests in flight on average, by Little's law."""
        bound = _known(self.load.in_flight)
        self.most = min(bound, self.requests or bound)
        """The most requests that a client had in flight."""
        self.lost_some = self.of("failed_requests_percent") > 0
        """Whether requests failed: of those, no report says how long they took."""
        self.is_closed = self.load.request_rate is None and not self.lost_some
        """Whether each request begins when another ends."""

    def of(self, name: str) -> float:
        """A metric of the run."""
        return _known(self.record.value(name))

    def mean(self, stem: str) -> float:
        """The mean of a distribution, in milliseconds."""
        return self.of(f"{stem}_mean_ms")

    def known(self, stem: str) -> Mapping[str, float]:
        """The statistics of a distribution that are known, in milliseconds, in the order in which they rise."""
        found = {key: self.of(f"{stem}_{key}_ms") for key in _RISING}
        return {key: value for key, value in found.items() if not isnan(value)}

    @cached_property
    def slowest(self) -> float:
        """The longest latency that is known."""
        known = self.known("request_latency")
        found = [known[name] for name in ("max", "p99", "p95") if name in known]
        return found[0] / 1e3 if found else nan

    @cached_property
    def least_share(self) -> float:
        """The share of the asked concurrency that an honest closed loop has at least: all but what a client needs
        between requests, and but the end of the run, when fewer are in flight; 0 where it is not known."""
        most, seconds = self.most, self.span
        # No lane is idle for longer than the last request takes.
        tail = (most - 1) / most * self.slowest / seconds
        middle = self.known("request_latency").get("p50", nan) / 1e3
        if self.requests % most == 0 and not isnan(middle):
            # Every lane has as many requests: they part by what single requests differ in. The slowest of a hundred is
            # 2.3 standard deviations from the middle, and the last of 64 lanes ends 2.4 of its own after their mean.
            spread = (self.slowest - middle) * sqrt(self.requests / most) / seconds
            tail = min(tail, spread)
        least = 1 - self.client.idle_share - IDLE_SECONDS / seconds - tail
        return 0.0 if isnan(least) else least


def _known(value: float | None) -> float:
    return nan if value is None else value


Law = Callable[[Reported], Iterable[str]]
"""What is wrong with a report, in words."""


def inconsistent_report(view: View) -> Iterator[Finding]:
    """Reports whose figures cannot all be true; loads that were lighter than their label and times that are too coarse,
    where nothing worse is wrong; and, as notes, figures that mean less than they seem to."""
    reports = {stored.run_id: Reported(stored.record) for stored in view.happened}

    def broken(laws: Iterable[Law], told: Collection[str] = ()) -> dict[str, list[str]]:
        found = {
            run: [problem for law in laws for problem in law(report)]
            for run, report in reports.items()
            if run not in told
        }
        return {run: problems for run, problems in found.items() if problems}

    wrong = broken(CONTRADICTIONS)
    for stored in view.happened:
        answer = view.evidence.of(stored).answer
        if answer is not None and answer.complete and answer.problems:
            wrong.setdefault(stored.run_id, []).extend(answer.problems)
    light = broken((_came_late, _few_in_flight), wrong)
    rounded = broken((_rounded,), wrong.keys() | light.keys())
    partly = broken((_without_latency,), wrong)
    yield from _told(
        view,
        "error",
        wrong,
        "has figures that contradict each other",
        "have figures that contradict each other",
    )
    yield from _told(
        view,
        "warning",
        light,
        "had a lighter load than its label says",
        "had a lighter load than their label says",
        what="in flight",
        remedy="Look for a client that cannot keep up, another concurrency or rate, or a warm-up in the duration.",
    )
    yield from _told(
        view,
        "warning",
        rounded,
        "has rounded times, so smaller differences cannot be seen",
        "have rounded times, so smaller differences cannot be seen",
        what="rounded",
    )
    yield from _told(
        view,
        "warning",
        partly,
        "has a prompt throughput over a part of the time to the first token",
        "have a prompt throughput over a part of the time to the first token",
        metric="prompt_throughput_tok_s",
        remedy="Look for a latency that the client took off, or reasoning before the answer. Measure longer prompts.",
    )
    several = "received several tokens per chunk, so ITL is the time between chunks (read TPOT instead)"
    yield from _told(view, "info", broken((_chunks,)), several, what="chunks")
    few = broken((_few_requests,))
    yield from view.together(
        "inconsistent-report",
        "info",
        [stored for stored in view.happened if stored.run_id in few],
        lambda runs: (
            f"P99 is the slowest request in {runs}: they have 100 requests or fewer."
        ),
        what="p99",
    )


def _told(
    view: View,
    severity: Severity,
    found: Mapping[str, Sequence[str]],
    happened: str,
    several: str = "",
    **more: str,
) -> Iterator[Finding]:
    """One finding for all runs, by id, with what is wrong in each."""
    cases = [
        (stored, "; ".join(found[stored.run_id]))
        for stored in view.happened
        if stored.run_id in found
    ]
    yield from view.cases(
        "inconsistent-report", severity, cases, happened, several, **more
    )


# -- rates -------------------------------------------------------------------------------------------------------


def _unequal(name: str, left: float, product: str, right: float) -> Iterator[str]:
    """Where two figures that are one are not."""
    if abs(left - right) > REPORT_TOLERANCE * max(abs(left), abs(right)):
        yield f"{name} is {left:.6g}, and {product} is {right:.6g}"


def _rates(report: Reported) -> Iterator[str]:
    """Products that must agree: rates, times and lengths are of the requests that succeeded, and so is their number."""
    rate, seconds = report.rate, report.seconds
    output = report.of("output_throughput_tok_s")
    product = "request throughput × output tokens"
    yield from _unequal(
        "output throughput", output, product, rate * report.output_tokens
    )
    longer = seconds <= report.span <= seconds + SPAN_SECONDS
    if not (report.client.span_is_longer and longer):
        product = "request throughput × measured time"
        yield from _unequal("requests", report.requests or nan, product, rate * seconds)
    # Those that failed were in flight too, for a time that no report gives.
    if not report.lost_some:
        product = "request throughput × mean latency"
        yield from _unequal(
            "mean concurrency", report.concurrency, product, report.in_flight
        )


def _tokens(report: Reported) -> Iterator[str]:
    """The throughput of all tokens, against that of the output and of the prompts."""
    output = report.of("output_throughput_tok_s")
    total = report.of("total_throughput_tok_s")
    if total < output:
        yield f"total throughput {total:.6g} tok/s is less than the output throughput {output:.6g} tok/s in it"
    else:
        both = output + report.rate * report.input_tokens
        product = "that of output and prompts together"
        yield from _unequal("total throughput", total, product, both)


# -- Little's law ------------------------------------------------------------------------------------------------


def _another_load(report: Reported) -> Iterator[str]:
    """Far more or fewer requests in flight than the client keeps there: another duration, unit or load."""
    found, most = report.in_flight, report.most
    words = f"request throughput × mean latency is {found:.3g} requests in flight (Little's law)"
    if found > most * (1 + REPORT_TOLERANCE):
        yield f"{words}, and the client sends at most {most} at once"
    elif report.is_closed and found < min(0.5, report.least_share) * most:
        yield f"{words}, and the client keeps {most} there"


def _few_in_flight(report: Reported) -> Iterator[str]:
    """Fewer requests in flight, in a closed loop, than its label says."""
    found, most = report.in_flight, report.most
    if report.is_closed and found < most * report.least_share:
        yield f"{found:.3g} of {most} requests were in flight (throughput × latency)"


def _arrivals(report: Reported) -> tuple[float, float]:
    """Seconds until the last request of an open loop arrived: so early, and so late, that chance does not explain it.
    Intervals are those of a gamma process, whose shape is the burstiness: 1 for arrivals at random."""
    rate, gaps = report.load.request_rate, report.requests - 1
    if rate is None or report.lost_some or gaps < 1:
        return nan, nan
    shape = gaps * (report.load.burstiness or 1.0)
    early = float(scipy.special.gammaincinv(shape, float(ARRIVAL_CHANCE))) / shape
    late = float(scipy.special.gammainccinv(shape, float(ARRIVAL_CHANCE))) / shape
    return early * gaps / rate, late * gaps / rate


def _served_too_fast(report: Reported) -> Iterator[str]:
    """An open loop that finished before its requests can have arrived."""
    earliest, _ = _arrivals(report)
    if report.seconds < earliest:
        rate = report.load.request_rate or nan
        yield (
            f"{report.requests} requests were served within {report.seconds:.3g} s, and {number(rate, 2)} a second "
            f"arrive over {(report.requests - 1) / rate:.3g} s"
        )


def _came_late(report: Reported) -> Iterator[str]:
    """An open loop that went on for longer than its requests arrive and the slowest of them takes."""
    _, latest = _arrivals(report)
    is_late = report.seconds > latest + LAST_ANSWER * report.slowest
    if is_late and report.load.at_once is None:
        rate = number(report.load.request_rate or nan, 2)
        yield (
            f"{report.requests} requests took {report.seconds:.3g} s, and at {rate} a second the last one arrives "
            f"after {latest:.3g} s at most and is answered within {report.slowest:.3g} s"
        )


# -- times of a request ------------------------------------------------------------------------------------------


def _definition_of_tpot(report: Reported) -> Iterator[str]:
    """Latency is the time to the first token and one TPOT for each further token."""
    further = report.length - 1
    latency, rest = report.mean("request_latency"), report.mean("tpot")
    whole = report.mean("ttft") + further * rest
    too_short = whole < latency * (1 - DEFINITION_TOLERANCE)
    if whole > latency * (1 + DEFINITION_TOLERANCE) or (
        report.client.ends_with_last_token and too_short
    ):
        yield f"TTFT + {further} × TPOT is {whole:.6g} ms, and the request latency is {latency:.6g} ms on average"
    # A stream may end with a chunk or two without a token.
    least = rest * further / (report.length + 1) * (1 - REPORT_TOLERANCE)
    chunk = report.mean("itl")
    if chunk < least and not isnan(whole + latency):
        yield f"ITL {chunk:.6g} ms is below TPOT {rest:.6g} ms, and no chunk holds less than a token"


def _chunks(report: Reported) -> Iterator[str]:
    """Several tokens per chunk, so that ITL is the time between chunks."""
    tokens = report.mean("itl") / (report.mean("tpot") or nan)
    if tokens > CHUNK_TOKENS and not isnan(report.length):
        yield f"{tokens:.3g} tokens a chunk"


def _prompt_times(report: Reported) -> tuple[float, float]:
    """How many times what no cache gave of a prompt, and all prompts that may be before or beside it, could be computed
    at the rate of prompts until the first token comes."""
    load, tokens = report.load, report.input_tokens
    if isnan(tokens):
        tokens = load.input_tokens or nan
    computed = report.of("prompt_throughput_tok_s") * report.mean("ttft") / 1e3
    together = (tokens + load.depth) * (load.in_flight or nan)
    alone = tokens * share_computed(report.record)
    return computed / (alone or nan), computed / (together or nan)


def _before_its_prompt(report: Reported) -> Iterator[str]:
    """First tokens that came long before the prompt can have been computed, at the rate that stands beside them."""
    times, _ = _prompt_times(report)
    if times < 1 / PROMPT_TIMES:
        first, least = report.mean("ttft"), report.mean("ttft") / times
        yield f"TTFT is {first:.4g} ms, and the prompt takes {least:.4g} ms at its throughput"


def _without_latency(report: Reported) -> Iterator[str]:
    """A rate of prompts over less than half of the time to the first token."""
    _, times = _prompt_times(report)
    if times > PROMPT_TIMES:
        yield f"{100 / times:.2g} % of TTFT suffice for the prompt at its throughput"


# -- percentiles -------------------------------------------------------------------------------------------------


def _percentiles(report: Reported) -> Iterator[str]:
    """Percentiles in order, apart from each other, and with a mean that they allow."""
    for stem in DISTRIBUTIONS:
        known = report.known(stem)
        for law in (
            _rise,
            _allow_the_mean,
            _are_apart,
            _lie_on_a_line,
            _fit_into_the_run,
        ):
            for problem in law(report, stem, known):
                yield f"{_label(stem)}: {problem}"


def _label(stem: str) -> str:
    return METRICS[f"{stem}_mean_ms"].label.removesuffix(", mean")


Known = Mapping[str, float]
"""The statistics of a distribution that are known, in milliseconds."""


def _rise(_report: Reported, _stem: str, known: Known) -> Iterator[str]:
    for (one, low), (other, high) in pairwise(known.items()):
        if low > high:
            yield f"{one} {low:.6g} ms is above {other} {high:.6g} ms"


def _allow_the_mean(report: Reported, stem: str, known: Known) -> Iterator[str]:
    """A mean that minimum, maximum and percentiles allow."""
    mean, requests = report.mean(stem), report.requests
    if mean < known.get("min", mean) or mean > known.get("max", mean):
        yield f"the mean {mean:.6g} ms lies outside minimum and maximum"
        return
    if requests < 3 or stem == "itl":
        return
    p99 = highest = known.get("p99", nan)
    if requests > 100:
        slowest = known.get("max", report.of("measured_time_ms"))
        highest = 0.99 * p99 + 0.01 * slowest
    if mean > highest * (1 + REPORT_TOLERANCE):
        yield f"the mean {mean:.6g} ms is above p99 {p99:.6g} ms"
    shares = {"p50": 0.4, "p90": 0.05, "p95": 0.04, "p99": 0.01}
    least = sum(share * known.get(key, nan) for key, share in shares.items())
    if requests >= 20 and mean < least * (1 - REPORT_TOLERANCE) and not isnan(highest):
        yield f"the mean {mean:.6g} ms is below the {least:.6g} ms that its percentiles allow"


def _is_of_requests(report: Reported, stem: str) -> bool:
    """Whether a distribution has a value for each of three requests or more, and percentiles between them."""
    return (
        report.client.interpolates
        and stem in ("ttft", "request_latency")
        and report.requests >= 3
    )


def _are_apart(report: Reported, stem: str, known: Known) -> Iterator[str]:
    """Two percentiles, or mean and median, that are one number although requests take different times."""
    if not _is_of_requests(report, stem):
        return
    requests, mean = report.requests, report.mean(stem)
    for (one, low), (other, high) in pairwise(known.items()):
        if low == high and low > 0:
            yield f"{one} and {other} are both {low:.10g} ms: interpolated percentiles of {requests} requests differ"
    if mean == known.get("p50") and mean != known.get("max"):
        yield f"mean and p50 are both {mean:.10g} ms: those of {requests} requests differ"


_QUANTILES = {"p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}


def _lie_on_a_line(report: Reported, stem: str, known: Known) -> Iterator[str]:
    """Percentiles of few requests that all lie between the slowest two of them, and so on one line."""
    last = report.requests - 1
    places = {
        key: share * last
        for key, share in _QUANTILES.items()
        if key in known and share * last >= last - 1
    }
    if not _is_of_requests(report, stem) or len(places) < 3 or "max" not in places:
        return
    first, *between = list(places)[:-1]
    slope = (known["max"] - known[first]) / (places["max"] - places[first])
    for key in between:
        expected = known[first] + slope * (places[key] - places[first])
        if abs(known[key] - expected) > DEFINITION_TOLERANCE * known["max"]:
            yield (
                f"{key} is {known[key]:.6g} ms, and between {first} and the maximum of {report.requests} requests it "
                f"is {expected:.6g} ms"
            )


def _fit_into_the_run(report: Reported, _stem: str, known: Known) -> Iterator[str]:
    """A request that took longer than all of them together."""
    measured = report.of("measured_time_ms")
    if report.client.span_is_longer:
        measured += 1e3 * SPAN_SECONDS
    longest = max(known.values(), default=0.0)
    if longest > measured * (1 + REPORT_TOLERANCE):
        yield f"{longest:.6g} ms is longer than the measured time, {measured:.6g} ms"


def _rounded(report: Reported) -> Iterator[str]:
    """The unit that all times of a distribution are multiples of, where it is large beside the median."""
    for stem in DISTRIBUTIONS:
        known = report.known(stem)
        values = [value for value in (report.mean(stem), *known.values()) if value > 0]
        middle = known.get("p50")
        if len(set(values)) < 2 or len(values) < 4 or not middle:
            continue
        unit = _unit(values)
        if unit is not None and unit > ROUNDED_SHARE * middle:
            share = f"{100 * unit / middle:.2g} % of the median"
            yield f"{_label(stem)} in steps of {unit:g} ms, {share}"


def _unit(values: Sequence[float]) -> float | None:
    """The largest power of ten, in ms, of which all values are multiples; None where there is none from 0.01 ms on."""
    for power in range(4, -3, -1):
        unit = 10.0**power
        if all(math.isclose(v, round(v / unit) * unit, rel_tol=1e-9) for v in values):
            return unit
    return None


def _few_requests(report: Reported) -> Iterator[str]:
    """A P99 that is the maximum of so few requests that it has to be."""
    if (report.requests or report.load.requests or 0) <= 100:
        for stem in DISTRIBUTIONS:
            if report.of(f"{stem}_p99_ms") == report.of(f"{stem}_max_ms"):
                yield stem


CONTRADICTIONS: tuple[Law, ...] = (
    _rates,
    _tokens,
    _another_load,
    _definition_of_tpot,
    _before_its_prompt,
    _percentiles,
    _served_too_fast,
)
"""What cannot be true."""

CHECKS = (
    Check(
        "inconsistent-report",
        "meaning",
        ("error", "warning", "info"),
        "Can the figures of each run all be true?",
        inconsistent_report,
        thresholds=(
            REPORT_TOLERANCE,
            DEFINITION_TOLERANCE,
            IDLE_SHARE,
            IDLE_SHARE_OF_VLLM,
            IDLE_SECONDS,
            SPAN_SECONDS,
            ROUNDED_SHARE,
            CHUNK_TOKENS,
            PROMPT_TIMES,
            ARRIVAL_CHANCE,
            LAST_ANSWER,
        ),
    ),
)

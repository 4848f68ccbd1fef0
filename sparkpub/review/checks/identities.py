"""Whether the figures of one run can all be true: Little's law, the definition of TPOT, sums of tokens, percentiles.

A serving tool has more figures than degrees of freedom. What a client gets wrong before it writes its report (latencies
of the requests that survived, a server that starves, seconds for milliseconds, a warm-up in the duration) breaks one of
these identities, and nothing else shows it. Each is asked of a tool by the tool's own definitions, in `CLIENTS`.

Little's law: J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (1961).
"""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import scipy

from sparkpub.plan.requested import load_of, options_of
from sparkpub.plan.workloads.load import Load
from sparkpub.record.metrics import DISTRIBUTIONS, METRICS
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import number
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View

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

_FAILED = "failed_requests_percent"
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


def inconsistent_report(view: View) -> Iterator[Finding]:
    """Reports whose figures cannot all be true; loads that were lighter than their label and times that are too coarse,
    where nothing worse is wrong; and, as notes, figures that mean less than they seem to."""
    wrong = _cases(view, lambda run: _contradictions(view, run))
    yield from view.cases(
        "inconsistent-report",
        "error",
        wrong,
        "has figures that contradict each other",
        "have figures that contradict each other",
    )
    told = {stored.run_id for stored, _ in wrong}
    light = _cases(view, _underloaded, told)
    yield from view.cases(
        "inconsistent-report",
        "warning",
        light,
        "had a lighter load than its label says; look for a client that cannot keep up, another concurrency or rate, "
        "or a warm-up in the duration, and re-run",
        "had a lighter load than their label says; look for a client that cannot keep up, another concurrency or rate, "
        "or a warm-up in the duration, and re-run",
        what="in flight",
    )
    told |= {stored.run_id for stored, _ in light}
    yield from view.cases(
        "inconsistent-report",
        "warning",
        _cases(view, _rounded, told),
        "has rounded times, so smaller differences cannot be seen",
        "have rounded times, so smaller differences cannot be seen",
        what="rounded",
    )
    yield from view.cases(
        "inconsistent-report",
        "info",
        _cases(view, _chunks),
        "received several tokens per chunk, so ITL is the time between chunks (read TPOT instead)",
        what="chunks",
    )
    yield from view.together(
        "inconsistent-report",
        "info",
        [run for run in view.happened if _has_few_requests(run.record)],
        lambda runs: (
            f"P99 is the slowest request in {runs}: they have 100 requests or fewer."
        ),
        what="p99",
    )


def _cases(
    view: View,
    problems: Callable[[Stored], Iterable[str]],
    told: Container[str] = frozenset(),
) -> list[Case]:
    """The runs in which something is wrong, without those of which a worse cause is told already."""
    found = [
        (stored, "; ".join(problems(stored)))
        for stored in view.happened
        if stored.run_id not in told
    ]
    return [(stored, problem) for stored, problem in found if problem]


def _client(record: Record) -> Client:
    asked = options_of(record)
    return CLIENTS.get(str(asked.get("client", asked.get("type"))), Client())


def _contradictions(view: View, stored: Stored) -> Iterator[str]:
    """What cannot be true in the figures of a run, and what its parser noticed."""
    record = stored.record
    yield from _rates(record)
    yield from _tokens(record)
    yield from _another_load(record)
    yield from _definition_of_tpot(record)
    yield from _percentiles(record)
    yield from _served_too_fast(record)
    answer = view.evidence.of(stored).answer
    if answer is not None and answer.complete:
        yield from answer.problems


# -- rates -------------------------------------------------------------------------------------------------------


def _rates(record: Record) -> Iterator[str]:
    """Products that must agree, where all their factors are known: rates, times and lengths are of the requests that
    succeeded, and so is their number."""
    rate, seen = record.value("request_throughput_req_s"), record.observed
    if rate is None:
        return
    length = seen.output_tokens_mean or load_of(record).output_tokens
    output = record.value("output_throughput_tok_s")
    product = "request throughput × output tokens"
    yield from _unequal("output throughput", output, product, _times(rate, length))
    seconds = _seconds(record, "measured_time_ms")
    if seconds is not None and seen.requests is not None:
        span = seen.requests / rate
        may_be_longer = _client(record).span_is_longer
        if not (may_be_longer and seconds <= span <= seconds + SPAN_SECONDS):
            product = "request throughput × measured time"
            yield from _unequal("requests", seen.requests, product, rate * seconds)
    # Those that failed were in flight too, for a time that no report gives.
    if not record.value(_FAILED):
        latency = _seconds(record, "request_latency_mean_ms")
        product = "request throughput × mean latency"
        yield from _unequal(
            "mean concurrency", seen.concurrency_mean, product, _times(rate, latency)
        )


def _times(one: float, other: float | None) -> float | None:
    return None if other is None else one * other


def _seconds(record: Record, name: str) -> float | None:
    milliseconds = record.value(name)
    return None if milliseconds is None else milliseconds / 1e3


def _unequal(
    name: str, left: float | None, product: str, right: float | None
) -> Iterator[str]:
    if left is None or right is None:
        return
    if not math.isclose(left, right, rel_tol=REPORT_TOLERANCE):
        yield f"{name} is {left:.6g}, and {product} is {right:.6g}"


def _tokens(record: Record) -> Iterator[str]:
    """The throughput of all tokens, against that of the output and of the prompts."""
    output = record.value("output_throughput_tok_s")
    total = record.value("total_throughput_tok_s")
    if output is None or total is None:
        return
    if total < output:
        yield f"total throughput {total:.6g} tok/s is less than the output throughput {output:.6g} tok/s in it"
        return
    rate, prompt = (
        record.value("request_throughput_req_s"),
        record.observed.input_tokens_mean,
    )
    if rate is not None and prompt is not None:
        product = "that of output and prompts together"
        yield from _unequal("total throughput", total, product, output + rate * prompt)


# -- Little's law ------------------------------------------------------------------------------------------------


def _in_flight(record: Record) -> float | None:
    """Requests in flight on average, by Little's law: rate × mean latency."""
    rate = record.value("request_throughput_req_s")
    latency = _seconds(record, "request_latency_mean_ms")
    return None if rate is None or latency is None else rate * latency


def _bound(record: Record, load: Load) -> int | None:
    """The most requests that a client had in flight."""
    if load.in_flight is None:
        return None
    return min(load.in_flight, record.observed.requests or load.in_flight)


def _another_load(record: Record) -> Iterator[str]:
    """Far more or fewer requests in flight than the client keeps there: another duration, unit or load."""
    load = load_of(record)
    found, most = _in_flight(record), _bound(record, load)
    if found is None or most is None:
        return
    words = f"request throughput × mean latency is {found:.3g} requests in flight (Little's law)"
    if found > most * (1 + REPORT_TOLERANCE):
        yield f"{words}, and the client sends at most {most} at once"
    elif found < min(0.5, _least_share(record, most)) * most and _is_closed(record):
        yield f"{words}, and the client keeps {most} there"


def _is_closed(record: Record) -> bool:
    """Whether each request begins when another ends. Of requests that failed, no report says how long."""
    return load_of(record).request_rate is None and not record.value(_FAILED)


def _underloaded(stored: Stored) -> Iterator[str]:
    """Fewer requests in flight, in a closed loop, than its label says; later ones, in an open loop, than its rate."""
    record = stored.record
    yield from _came_late(record)
    found, most = _in_flight(record), _bound(record, load_of(record))
    if found is None or most is None or not _is_closed(record):
        return
    if found < most * _least_share(record, most):
        yield f"{found:.3g} of {most} requests were in flight (throughput × latency)"


def _least_share(record: Record, most: int) -> float:
    """The share of the asked concurrency that an honest closed loop has at least: all but what a client needs between
    requests, and but the end of the run, when fewer are in flight."""
    rate = record.value("request_throughput_req_s")
    requests = record.observed.requests
    slowest = _slowest(record)
    if rate is None or requests is None or slowest is None:
        return 0.0
    seconds = requests / rate
    # No lane is idle for longer than the last request takes.
    tail = (most - 1) / most * slowest / seconds
    middle = _seconds(record, "request_latency_p50_ms")
    if requests % most == 0 and middle is not None:
        # Every lane has as many requests: they part by what single requests differ in. The slowest of a hundred is
        # 2.3 standard deviations from the middle, and the last of 64 lanes ends 2.4 of its own after their mean.
        spread = (slowest - middle) * sqrt(requests / most) / seconds
        tail = min(tail, spread)
    return 1 - _client(record).idle_share - IDLE_SECONDS / seconds - tail


def _slowest(record: Record) -> float | None:
    """The longest latency that is known, in seconds."""
    for statistic in ("max", "p99", "p95"):
        found = _seconds(record, f"request_latency_{statistic}_ms")
        if found is not None:
            return found
    return None


def _served_too_fast(record: Record) -> Iterator[str]:
    """An open loop that finished before its requests can have arrived."""
    load, requests = load_of(record), record.observed.requests
    seconds = _seconds(record, "measured_time_ms")
    if load.request_rate is None or seconds is None or not requests or requests < 2:
        return
    if record.value(_FAILED):
        return
    earliest, _ = _arrivals(requests, load.request_rate, load.burstiness or 1.0)
    if seconds < earliest:
        yield (
            f"{requests} requests were served within {seconds:.3g} s, and {number(load.request_rate, 2)} a second "
            f"arrive over {(requests - 1) / load.request_rate:.3g} s"
        )


def _came_late(record: Record) -> Iterator[str]:
    """An open loop that went on for longer than its requests arrive and the slowest of them takes."""
    load, requests = load_of(record), record.observed.requests
    seconds, slowest = _seconds(record, "measured_time_ms"), _slowest(record)
    if load.request_rate is None or load.at_once is not None or record.value(_FAILED):
        return
    if seconds is None or slowest is None or not requests or requests < 2:
        return
    _, latest = _arrivals(requests, load.request_rate, load.burstiness or 1.0)
    if seconds > latest + LAST_ANSWER * slowest:
        yield (
            f"{requests} requests took {seconds:.3g} s, and at {number(load.request_rate, 2)} a second the last one "
            f"arrives after {latest:.3g} s at most and is answered within {slowest:.3g} s"
        )


def _arrivals(requests: int, rate: float, burstiness: float) -> tuple[float, float]:
    """Seconds until the last of some requests arrived: so early, and so late, that chance does not explain it.
    Intervals are those of a gamma process, whose shape is the burstiness: 1 for arrivals at random."""
    shape = float((requests - 1) * burstiness)
    mean = (requests - 1) / rate
    early = float(scipy.special.gammaincinv(shape, float(ARRIVAL_CHANCE))) / shape
    late = float(scipy.special.gammainccinv(shape, float(ARRIVAL_CHANCE))) / shape
    return early * mean, late * mean


# -- times of a request ------------------------------------------------------------------------------------------


def _fixed_length(record: Record) -> int | None:
    """Tokens of every answer, where all have the same number."""
    asked, seen = load_of(record).output_tokens, record.observed.output_tokens_mean
    return asked if asked is not None and asked > 1 and seen == asked else None


def _definition_of_tpot(record: Record) -> Iterator[str]:
    """Latency is the time to the first token and one TPOT for each further token."""
    latency, first, rest = (
        record.value(f"{stem}_mean_ms") for stem in ("request_latency", "ttft", "tpot")
    )
    tokens = _fixed_length(record)
    if latency is None or first is None or rest is None or tokens is None:
        return
    whole = first + (tokens - 1) * rest
    client = _client(record)
    too_long = whole > latency * (1 + DEFINITION_TOLERANCE)
    too_short = whole < latency * (1 - DEFINITION_TOLERANCE)
    if too_long or (client.ends_with_last_token and too_short):
        yield (
            f"TTFT + {tokens - 1} × TPOT is {whole:.6g} ms, and the request latency is {latency:.6g} ms on average"
        )
    chunk = record.value("itl_mean_ms")
    # A stream may end with a chunk or two without a token.
    if chunk is not None and chunk < rest * (tokens - 1) / (tokens + 1) * (
        1 - REPORT_TOLERANCE
    ):
        yield f"ITL {chunk:.6g} ms is below TPOT {rest:.6g} ms, and no chunk holds less than a token"


def _chunks(stored: Stored) -> Iterator[str]:
    """Several tokens per chunk, so that ITL is the time between chunks."""
    chunk, token = (stored.record.value(f"{stem}_mean_ms") for stem in ("itl", "tpot"))
    if _fixed_length(stored.record) is None or not chunk or not token:
        return
    if chunk / token > CHUNK_TOKENS:
        yield f"{chunk / token:.3g} tokens a chunk"


# -- percentiles -------------------------------------------------------------------------------------------------


def _percentiles(record: Record) -> Iterator[str]:
    """Percentiles in order, apart from each other, and with a mean that they allow."""
    for stem in DISTRIBUTIONS:
        known = {
            key: found
            for key in _RISING
            if (found := record.value(f"{stem}_{key}_ms")) is not None
        }
        label = METRICS[f"{stem}_mean_ms"].label.removesuffix(", mean")
        for (one, low), (other, high) in pairwise(known.items()):
            if low > high:
                yield f"{label}: {one} {low:.6g} ms is above {other} {high:.6g} ms"
        for problem in (
            *_mean_between(record, stem, known),
            *_one_number(record, stem, known),
            *_off_the_line(record, stem, known),
            *_longer_than_the_run(record, known),
        ):
            yield f"{label}: {problem}"


def _mean_between(
    record: Record, stem: str, known: Mapping[str, float]
) -> Iterator[str]:
    """A mean that minimum, maximum and percentiles allow."""
    mean, requests = record.value(f"{stem}_mean_ms"), record.observed.requests
    if mean is None:
        return
    if not known.get("min", mean) <= mean <= known.get("max", mean):
        yield f"the mean {mean:.6g} ms lies outside minimum and maximum"
        return
    p99, is_of_requests = known.get("p99"), stem in ("ttft", "tpot", "request_latency")
    if p99 is None or requests is None or requests < 3 or not is_of_requests:
        return
    slowest = known.get("max", record.value("measured_time_ms"))
    highest = p99
    if requests > 100 and slowest is not None:
        highest = 0.99 * p99 + 0.01 * slowest
    elif requests > 100:
        return
    if mean > highest * (1 + REPORT_TOLERANCE):
        yield f"the mean {mean:.6g} ms is above p99 {p99:.6g} ms"
    shares = {"p50": 0.4, "p90": 0.05, "p95": 0.04, "p99": 0.01}
    if requests >= 20 and shares.keys() <= known.keys():
        least = sum(share * known[key] for key, share in shares.items())
        if mean < least * (1 - REPORT_TOLERANCE):
            yield f"the mean {mean:.6g} ms is below the {least:.6g} ms that its percentiles allow"


def _one_number(record: Record, stem: str, known: Mapping[str, float]) -> Iterator[str]:
    """Two percentiles, or mean and median, that are one number although requests take different times."""
    requests = record.observed.requests or 0
    if stem not in ("ttft", "request_latency") or requests < 3:
        return
    if not _client(record).interpolates:
        return
    for (one, low), (other, high) in pairwise(known.items()):
        if low == high and low > 0:
            yield f"{one} and {other} are both {low:.10g} ms: interpolated percentiles of {requests} requests differ"
    mean = record.value(f"{stem}_mean_ms")
    if mean is not None and mean == known.get("p50") and mean != known.get("max"):
        yield f"mean and p50 are both {mean:.10g} ms: those of {requests} requests differ"


_QUANTILES = {"p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}


def _off_the_line(
    record: Record, stem: str, known: Mapping[str, float]
) -> Iterator[str]:
    """Percentiles of few requests that all lie between the slowest two of them, and so on one line."""
    requests = record.observed.requests or 0
    if stem not in ("ttft", "request_latency") or not _client(record).interpolates:
        return
    places = {
        key: share * (requests - 1)
        for key, share in _QUANTILES.items()
        if key in known and share * (requests - 1) >= requests - 2
    }
    if requests < 3 or len(places) < 3 or "max" not in places:
        return
    first, *between = list(places)[:-1]
    slope = (known["max"] - known[first]) / (places["max"] - places[first])
    for key in between:
        expected = known[first] + slope * (places[key] - places[first])
        if abs(known[key] - expected) > DEFINITION_TOLERANCE * known["max"]:
            yield (
                f"{key} is {known[key]:.6g} ms, and between {first} and the maximum of {requests} requests it is "
                f"{expected:.6g} ms"
            )


def _longer_than_the_run(record: Record, known: Mapping[str, float]) -> Iterator[str]:
    """A request that took longer than all of them together."""
    measured = record.value("measured_time_ms")
    longest = max(known.values(), default=0.0)
    if measured is None:
        return
    if _client(record).span_is_longer:
        measured += 1e3 * SPAN_SECONDS
    if longest > measured * (1 + REPORT_TOLERANCE):
        yield f"{longest:.6g} ms is longer than the measured time, {measured:.6g} ms"


def _rounded(stored: Stored) -> Iterator[str]:
    """The unit that all times of a distribution are multiples of, where it is large beside the median."""
    record = stored.record
    for stem in DISTRIBUTIONS:
        names = [f"{stem}_{key}_ms" for key in ("mean", *_RISING)]
        values = [found for name in names if (found := record.value(name))]
        middle = record.value(f"{stem}_p50_ms")
        if len(set(values)) < 2 or len(values) < 4 or not middle:
            continue
        unit = _unit(values)
        if unit is not None and unit > ROUNDED_SHARE * middle:
            label = METRICS[f"{stem}_mean_ms"].label.removesuffix(", mean")
            yield f"{label} in steps of {unit:g} ms, {100 * unit / middle:.2g} % of the median"


def _unit(values: Sequence[float]) -> float | None:
    """The largest power of ten, in ms, of which all values are multiples; None where there is none from 0.01 ms on."""
    for power in range(4, -3, -1):
        unit = 10.0**power
        if all(math.isclose(v, round(v / unit) * unit, rel_tol=1e-9) for v in values):
            return unit
    return None


def _has_few_requests(record: Record) -> bool:
    """Whether a P99 of the run is the maximum of so few requests that it has to be."""
    requests = record.observed.requests or load_of(record).requests or 0
    for stem in DISTRIBUTIONS:
        p99 = record.value(f"{stem}_p99_ms")
        if p99 is not None and p99 == record.value(f"{stem}_max_ms"):
            return requests <= 100
    return False


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
            ARRIVAL_CHANCE,
            LAST_ANSWER,
        ),
    ),
)

"""Whether the figures of one run can all be true: Little's law, the definition of TPOT, sums of tokens, percentiles.

A serving tool has more figures than degrees of freedom. What a client gets wrong before it writes its report (latencies
of the requests that survived, a server that starves, seconds for milliseconds, a warm-up in the duration) breaks one of
these identities, and nothing else shows it. Each is asked by the tool's own definitions (`clients.py`). What a
report does not say is NaN there: it is neither more nor less than anything, and breaks no identity.

Little's law: J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (1961).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan, nan

import scipy

from sparkpub.record.metrics import DISTRIBUTIONS, METRICS, mixed_units
from sparkpub.record.text import number
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.clients import (
    IDLE_SECONDS,
    IDLE_SHARE,
    IDLE_SHARE_OF_VLLM,
    Reported,
)
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View
from sparkpub.review.physics import share_computed

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


Law = Callable[[Reported], Iterable[str]]
"""What is wrong with a report, in words."""


@dataclass(frozen=True)
class Laws:
    """Laws whose breach means the same, and how a reader is told. Of a run that breaks one of them, nothing less is
    asked."""

    severity: Severity
    laws: tuple[Law, ...]
    happened: str
    several: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    """Evidence of what a finding is about, where several are of one severity."""
    remedy: str = ""


def inconsistent_report(view: View) -> Iterator[Finding]:
    """Reports whose figures cannot all be true; loads that were lighter than their label, tokens that nobody counted
    and times that are too coarse, where nothing worse is wrong; and, as notes, figures that mean less than they seem
    to."""
    reports = [
        (stored, Reported(stored.record, view.evidence.of(stored).answer))
        for stored in view.happened
    ]
    told: set[str] = set()
    for question in QUESTIONS:
        cases = []
        for stored, report in reports:
            if question.severity != "info" and stored.run_id in told:
                continue
            problems = [problem for law in question.laws for problem in law(report)]
            if problems:
                cases.append((stored, "; ".join(problems)))
        if question.severity != "info":
            told |= {stored.run_id for stored, _ in cases}
        yield from view.cases(
            "inconsistent-report",
            question.severity,
            cases,
            question.happened,
            question.several,
            remedy=question.remedy,
            **question.about,
        )
    yield from view.together(
        "inconsistent-report",
        "info",
        [stored for stored, report in reports if any(_few_requests(report))],
        lambda runs: (
            f"P99 is the slowest request in {runs}: they have 100 requests or fewer."
        ),
        what="p99",
    )


def _of_its_evidence(report: Reported) -> Iterable[str]:
    """What the tool's own reader found in report and log."""
    return report.problems


# -- rates -------------------------------------------------------------------------------------------------------


def _unequal(name: str, figure: float, product: str, *factors: float) -> Iterator[str]:
    """Where a figure is not the product of others, but for the digits that a printed one has lost."""
    found = math.prod(factors)
    lost = sum(map(_lost_share, (figure, *factors)))
    tolerance = DEFINITION_TOLERANCE + lost
    if abs(figure - found) > tolerance * max(abs(figure), abs(found)):
        yield f"{name} is {figure:.6g}, and {product} is {found:.6g}{mixed_units(figure, found)}"


def _lost_share(figure: float) -> float:
    """Half a unit of the last decimal of a figure that was printed, as a share of it. A whole figure may be a number of
    things, or was printed like others with two decimals."""
    if isnan(figure) or figure == 0:
        return 0.0
    places = [place for place in _PRINTED if figure == round(figure, place)]
    if not places:
        return 0.0
    decimals = 2 if figure == round(figure) else places[0]
    return 0.5 * 10.0**-decimals / abs(figure)


_PRINTED = (1, 2, 3, 4)
"""Decimals of figures that are printed; a figure of a JSON file has more."""


def _rates(report: Reported) -> Iterator[str]:
    """Products that must agree: rates, times and lengths are of the requests that succeeded, and so is their number."""
    rate, seconds = report.rate, report.seconds
    output, total = (
        report.of(f"{kind}_throughput_tok_s") for kind in ("output", "total")
    )
    product = "request throughput × output tokens"
    yield from _unequal(
        "output throughput", output, product, rate, report.output_tokens
    )
    if total < output:
        yield f"total throughput {total:.6g} tok/s is less than the output throughput {output:.6g} tok/s in it"
    else:
        product = "request throughput × tokens of prompt and output"
        both = report.input_tokens + report.output_tokens
        yield from _unequal("total throughput", total, product, rate, both)
    longer = seconds <= report.span <= seconds + SPAN_SECONDS
    if not (report.client.span_is_longer and longer):
        product = "request throughput × measured time"
        yield from _unequal("requests", report.requests or nan, product, rate, seconds)
    # Those that failed were in flight too, for a time that no report gives. Of batches, the pauses between them count.
    if not report.lost_some:
        share = report.in_flight / report.concurrency
        if abs(share - 1) > REPORT_TOLERANCE:
            yield (
                f"mean concurrency is {report.concurrency:.6g}, and request throughput × mean latency is "
                f"{report.in_flight:.6g}{mixed_units(report.in_flight, report.concurrency)}"
            )


def _of_a_user(report: Reported) -> Iterator[str]:
    """What each user gets, tokens by latency: on average at least by the mean one, at most by the shortest."""
    user, length = report.of("output_throughput_per_user_tok_s"), report.length
    low, high = (
        1e3 * length / (report.of(f"request_latency_{key}_ms") or nan)
        for key in ("mean", "min")
    )
    if user < low * (1 - REPORT_TOLERANCE) or user > high * (1 + REPORT_TOLERANCE):
        yield (
            f"each user gets {user:.6g} tok/s, and {length:g} tokens by latency are {low:.6g} to {high:.6g} tok/s"
        )


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
    further = report.output_tokens - 1
    latency = report.mean("request_latency")
    whole = report.mean("ttft") + further * report.mean("tpot")
    off = DEFINITION_TOLERANCE * latency + report.slack
    too_short = report.client.ends_with_last_token and whole < latency - off
    if whole > latency + off or too_short:
        yield (
            f"TTFT + {further:g} × TPOT is {whole:.6g} ms, and the request latency is {latency:.6g} ms on average"
            f"{mixed_units(whole, latency)}"
        )


def _time_per_chunk(report: Reported) -> tuple[float, float]:
    """What ITL is in milliseconds, and the least that it can be: the time after the first token divided by the tokens,
    and by a chunk or two without a token at the end of the stream."""
    least = _after_the_first(report) / (report.output_tokens + 1)
    return report.mean("itl") or nan, least * (1 - REPORT_TOLERANCE)


def _after_the_first(report: Reported) -> float:
    return report.mean("request_latency") - report.mean("ttft")


def _itl(report: Reported) -> Iterator[str]:
    """Answers of one length: no chunk holds less than a token, and a step of a batch exactly one."""
    chunk, least = _time_per_chunk(report)
    token = _after_the_first(report) / (report.length - 1)
    off = DEFINITION_TOLERANCE * token
    is_other = report.client.a_chunk_a_token and abs(chunk - token) > off
    if not isnan(token) and (chunk < least or is_other):
        yield (
            f"ITL is {chunk:.6g} ms, and the time after the first token, by the further tokens, is {token:.6g} ms"
            f"{mixed_units(chunk, token)}"
        )


def _uncounted(report: Reported) -> Iterator[str]:
    """More chunks than tokens, of answers of any length: tokens that nobody counted. Of a client that encodes each
    chunk by itself, each has a token more: inference-perf did so, and halved its ITL."""
    chunk, least = _time_per_chunk(report)
    if chunk < least:
        chunks = _after_the_first(report) / chunk + 1
        yield f"{report.output_tokens:.4g} tokens a request, in {chunks:.4g} chunks"


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


def _is_of_requests(report: Reported, stem: str, known: Known) -> bool:
    """Whether a distribution has a value for each of three requests or more. Of two, the median is the middle."""
    if stem not in ("ttft", "request_latency") or report.client.in_batches:
        return False
    if report.requests:
        return report.requests >= 3
    middle = (known.get("min", nan) + known.get("max", nan)) / 2
    return abs(known.get("p50", nan) - middle) > DEFINITION_TOLERANCE * middle


def _are_apart(report: Reported, stem: str, known: Known) -> Iterator[str]:
    """Two percentiles, or mean and median, that are one number although requests take different times."""
    if not _is_of_requests(report, stem, known):
        return
    requests, mean = report.requests or "several", report.mean(stem)
    for (one, low), (other, high) in pairwise(known.items()):
        if report.client.interpolates and low == high and low > 0:
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
    is_of_them = report.client.interpolates and _is_of_requests(report, stem, known)
    if not report.requests or not is_of_them or len(places) < 3 or "max" not in places:
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
        if len(set(values)) < 2 or len(values) < 3 or not middle:
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


QUESTIONS: tuple[Laws, ...] = (
    Laws(
        "error",
        (
            _rates,
            _of_a_user,
            _another_load,
            _definition_of_tpot,
            _itl,
            _before_its_prompt,
            _percentiles,
            _served_too_fast,
            _of_its_evidence,
        ),
        "has figures that contradict each other",
        "have figures that contradict each other",
    ),
    Laws(
        "warning",
        (_came_late, _few_in_flight),
        "had a lighter load than its label says",
        "had a lighter load than their label says",
        about={"what": "in flight"},
        remedy="Look for a client that cannot keep up, another concurrency or rate, or a warm-up in the duration.",
    ),
    Laws(
        "warning",
        (_uncounted,),
        "has an ITL that is too short for its tokens: some were not counted, or chunks were counted twice",
        "have an ITL that is too short for their tokens: some were not counted, or chunks were counted twice",
        about={"what": "uncounted tokens"},
        remedy="Compare the tokens with those that the server counted (`usage`), and re-run with a newer client.",
    ),
    Laws(
        "warning",
        (_rounded,),
        "has rounded times, so smaller differences cannot be seen",
        "have rounded times, so smaller differences cannot be seen",
        about={"what": "rounded"},
    ),
    Laws(
        "warning",
        (_without_latency,),
        "has a prompt throughput over a part of the time to the first token",
        "have a prompt throughput over a part of the time to the first token",
        about={"metric": "prompt_throughput_tok_s"},
        remedy="Look for a latency that the client took off, or reasoning before the answer. Measure longer prompts.",
    ),
    Laws(
        "info",
        (_chunks,),
        "received several tokens per chunk, so ITL is the time between chunks (read TPOT instead)",
        about={"what": "chunks"},
    ),
)
"""What is asked of every report, the worst first."""

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

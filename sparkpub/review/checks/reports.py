"""What server and client said of a run: requests that failed, prompts from a cache, other work than was asked for, a
cold start, repetitions that say nothing, answers without sense, and what the engine warned of while measuring."""

import re
from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from sparkpub.plan.requested import load_of, options_of
from sparkpub.plan.workloads.payload import pages
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record.store import Stored
from sparkpub.review import offered
from sparkpub.review import repeated as repetition
from sparkpub.review.checks.check import AskedOfRun, Check
from sparkpub.review.checks.finding import Finding, Threshold
from sparkpub.review.checks.view import Case, View, about_metrics, first_of

FAILED_PERCENT = Threshold(
    "failed requests percent",
    1.0,
    "Failed requests of a run, in percent, from which its figures are of a lighter load than was asked for.",
)
HITS_PERCENT = Threshold(
    "prefix cache hits percent",
    offered.HITS_PERCENT,
    "Percentage points of prefix cache hits, beyond the client's own warm-ups, from which prompts were not computed: "
    "prompts drawn anew gave 13 at most in 40 runs of vLLM.",
)
ANSWER_SHARE = Threshold(
    "answer share",
    offered.ANSWER_SHARE,
    "How far the mean answer may be from the length that the load declares, as a share of that. Of 1,522 runs that "
    "tell both, 6 are further. The mean of 100 lengths drawn from 0.1 to 1.9 times the declared one has a standard "
    "error of 5 %.",
)
DRAIN_SHARE = Threshold(
    "drain share",
    offered.DRAIN_SHARE,
    "How long a mean request may take, as a share of the time in which requests arrive: longer, and the end of the "
    "measurement, when no more arrive, is a large part of it.",
)
COLD_START = Threshold(
    "cold start",
    1.5,
    "From this multiple of the slowest other batch, the first batch of a run is a cold start.",
)
COLD_TAIL = Threshold(
    "cold tail",
    5.0,
    "From this multiple of the median, and from that of all requests in flight, the 99th percentile of TTFT is a cold "
    "start in a run that was to warm up with nothing, where the times of single requests are not known. With a warm-up "
    "it was below 2 in 154 of 156 runs.",
)
APART_SHARE = Threshold(
    "apart share",
    repetition.APART_SHARE,
    "Standard deviation of a run's repetitions, as a share of their mean, from which that says nothing if its 95 % "
    "interval begins at zero, as it does with three repetitions and 40 %. Of 1,900 rates of llama-benchy on a DGX "
    "Spark, 30 have more.",
)


def _figure(view: View, stored: Stored, name: str) -> float:
    """A figure that a record holds, else the one in its evidence: a record may be older than the metric."""
    answer = view.evidence.of(stored).answer
    if name in stored.record.metrics or answer is None:
        return stored.record.value(name) or 0.0
    return answer.value(name) or 0.0


def _failed(view: View, stored: Stored) -> Iterator[str]:
    percent = _figure(view, stored, "failed_requests_percent")
    if percent >= FAILED_PERCENT:
        yield f"{percent:.3g} %"


def _failed_few(view: View, stored: Stored) -> Iterator[str]:
    percent = _figure(view, stored, "failed_requests_percent")
    if 0 < percent < FAILED_PERCENT:
        yield f"{percent:.3g} %"


def _cached(view: View, stored: Stored) -> Iterator[str]:
    """How much of its prompts a run found in the server's cache, although nobody asked for that."""
    hits = _figure(view, stored, "prefix_cache_hit_percent")
    is_asked = options_of(stored.record).get("prefix_caching")
    if offered.is_less_work(stored.record, hits) and not is_asked:
        yield f"{hits:.3g} % of their tokens"


def _cold(view: View, stored: Stored) -> Iterator[str]:
    """A first batch apart from the rest; of a run of ours that kept no such times and warmed up with nothing, a slowest
    TTFT apart from the median. Where requests arrive at a rate, they may just have waited."""
    record, answer = stored.record, view.evidence.of(stored).answer
    if answer is not None and answer.series:
        first, *others = answer.series
        if len(others) > 1 and first > COLD_START * max(others):
            yield f"{first:.1f} ms, while the others take {median(others):.1f} ms"
        return
    asked = options_of(record)
    usual, slowest = record.value("ttft_p50_ms"), record.value("ttft_p99_ms")
    is_cold = asked.get("warmup") == 0 and asked.get("request_rate") is None
    if not is_cold or record.plan.order == "as-published" or not usual or not slowest:
        return
    # Prompts that are sent together are computed one after the other at worst.
    if slowest > max(float(COLD_TAIL), load_of(record).in_flight or 1) * usual:
        yield f"nothing was warmed up, and TTFT is {usual:.0f} ms at the median and {slowest:.0f} ms at P99"


def _nonsense(_view: View, stored: Stored) -> Iterator[str]:
    """What is wrong with the answers that a run of trained weights kept. What we measure ourselves is not timed after
    such an answer; what others measured may keep one beside its results."""
    for event in stored.record.events:
        is_answer = event.kind == "note" and event.text.startswith(ANSWERED)
        if is_answer and not stored.record.requested.random_weights:
            problem = pages.nonsense(event.text.removeprefix(ANSWERED))
            yield from filter(None, [problem])


def repetitions(view: View) -> Iterator[Finding]:
    """Runs whose repetitions lie so far apart that their mean says nothing, and runs whose repetitions are one."""
    apart: list[Case] = []
    names: dict[str, None] = {}
    once: list[Case] = []
    for stored in view.happened:
        found = list(repetition.repeated(stored.record))
        if unknown := [each for each in found if each.says_nothing]:
            worst = max(unknown, key=attrgetter("share"))
            metric = view.metrics[worst.metric]
            number = "" if worst.number is None else f" over {worst.number}"
            said = (
                f"{metric.within_sentence} {metric.format(worst.mean)} ± {metric.format(worst.deviation)} "
                f"({100 * worst.share:.0f} %{number})"
            )
            apart.append((stored, said))
            names[metric.name] = None
        times = max((each.number or 0 for each in found), default=0)
        # Of more than three digits the last would differ from time to time.
        is_exact = any(float(f"{each.mean:.3g}") != each.mean for each in found)
        if times > 2 and is_exact and not any(each.deviation for each in found):
            once.append((stored, f"its {times} repetitions agree to the last digit"))
    text = "{} has|have repetitions too far apart for a mean, which are not ranked"
    about = about_metrics(list(names))
    yield from view.tell("repetitions", "warning", text, apart, **about)
    yield from view.tell(
        "repetitions",
        "warning",
        "{} was|were measured once, and says|say otherwise",
        once,
        what="once",
        remedy="Look in the client's log for its number of repetitions, and correct it.",
    )


class Trouble(NamedTuple):
    """What an engine warns of that changes the figures of a run, and what to do about it."""

    said: re.Pattern[str]
    happened: str
    remedy: str
    is_of_all: bool = False
    """Whether what is said before the measurement, or in a log that does not say when that was, is true of it, too."""


TROUBLES = (
    Trouble(
        re.compile(r"preempt|recomput|evict|in the KV cache|pool is full", re.I),
        "took requests out of its batch, to compute them again later",
        "Send fewer requests at once, or give the KV cache more memory, and re-run.",
    ),
    Trouble(
        re.compile(r"fall(?:s|ing)?[ -]?back|fell back|sub-?optimal|degrade", re.I),
        "used slower code than it could",
        "Install what the engine lacks, or choose another kernel, and re-run.",
    ),
    Trouble(
        re.compile(r"truncat|context shift", re.I),
        "cut prompts short, or forgot their beginning, to fit them into its context",
        "Give each request a longer context (`-c`, `num_ctx`, `--context-length`), and re-run.",
        is_of_all=True,
    ),
    Trouble(
        re.compile(r"no usable GPU|layers on the GPU", re.I),
        "computed the model, or a part of it, on the processor",
        "Install a build for the GPU, or let all layers fit into its memory, and re-run.",
        is_of_all=True,
    ),
    Trouble(
        re.compile(r"compil|autotun", re.I),
        "compiled kernels, which the requests waited for",
        "Warm up with the same lengths and the same number of requests, and re-run.",
    ),
)
"""Of the warnings of real engines, those that a reader has to know. Others say what a client or a server would have
liked better: samplers, limits of open files, lengths of prompts."""
ERRORS = Trouble(
    re.compile(""), "reported errors", "Read the log around the error, and re-run."
)


def engine_warning(view: View) -> Iterator[Finding]:
    """What the engines warned of while they were measured, one finding for each cause."""
    cases: dict[Trouble, list[Case]] = defaultdict(list)
    for stored in view.happened:
        said: dict[Trouble, list[str]] = defaultdict(list)
        answer = view.evidence.of(stored).answer
        for text, measured, is_error in () if answer is None else answer.warnings:
            known = (*TROUBLES, *[ERRORS] * is_error)
            trouble = next((one for one in known if one.said.search(text)), None)
            if trouble is not None and (measured or trouble.is_of_all):
                said[trouble].append(text)
        for trouble, texts in said.items():
            cases[trouble] += [(stored, one) for one in first_of(texts, "warnings")]
    for trouble in (*TROUBLES, ERRORS):
        text = f"{{}} ran on an engine that {trouble.happened}"
        text += "" if trouble.is_of_all else ", while it was measured"
        yield from view.tell(
            "engine-warning", "warning", text, cases[trouble], remedy=trouble.remedy
        )


LOST = "lost requests, and the figures are of the others"
CHECKS = (
    Check(
        "failed-requests",
        "meaning",
        ("warning", "info"),
        "Did requests fail?",
        asked=(AskedOfRun(_failed, LOST), AskedOfRun(_failed_few, LOST, "info")),
        thresholds=(FAILED_PERCENT,),
        remedy="Look for errors in the logs of server and client, and re-run with a longer timeout or a lighter load.",
        of_others="Read the figures as those of a lighter load.",
    ),
    Check(
        "prefix-cache",
        "meaning",
        ("warning",),
        "Did the server compute every prompt?",
        asked=(
            AskedOfRun(
                _cached,
                "found its|their prompts in the server's prefix cache, so TTFT and throughput are of less work than "
                "asked for",
            ),
        ),
        thresholds=(HITS_PERCENT,),
        remedy="Draw other prompts for each run (another seed), or start the server without the cache.",
    ),
    Check(
        "answer-length",
        "meaning",
        ("warning",),
        "Were the answers as long as the load declares?",
        asked=(
            AskedOfRun(
                lambda _, run: filter(None, [offered.answers_apart(run.record)]),
                "gave answers of another length, so it is other work than its load says",
            ),
        ),
        thresholds=(ANSWER_SHARE,),
        remedy="Have the server ignore the end of the text (`--ignore-eos`, `min_tokens`), and re-run.",
        of_others="Compare it with answers of its own length only.",
    ),
    Check(
        "offered-load",
        "meaning",
        ("info",),
        "Did the server serve the rate at which requests came?",
        asked=(
            AskedOfRun(
                lambda _, run: filter(None, [offered.emptied_queue(run.record)]),
                "is|are in large part the emptying of a queue, not a server at that rate",
                "info",
            ),
        ),
        thresholds=(DRAIN_SHARE,),
    ),
    Check(
        "warmed-up",
        "meaning",
        ("warning",),
        "Did measuring begin after warming up?",
        asked=(
            AskedOfRun(
                _cold,
                "measured a cold start: the first batch or requests are far slower",
            ),
        ),
        thresholds=(COLD_START, COLD_TAIL),
        remedy="Raise warmup: of the workload, and re-run.",
        of_others="Read medians, and no means.",
    ),
    Check(
        "repetitions",
        "meaning",
        ("warning",),
        "Do the repetitions inside a run agree?",
        repetitions,
        thresholds=(APART_SHARE,),
        remedy="Measure more repetitions, or longer prompts and answers.",
        of_others="Read the figures of longer prompts and answers.",
    ),
    Check(
        "sanity",
        "meaning",
        ("error",),
        "Did the model make sense before it was timed?",
        asked=(
            AskedOfRun(
                _nonsense,
                "measured a model whose answer makes no sense, so the weights or the engine are broken",
                "error",
            ),
        ),
        remedy="Ask the server a question yourself, and correct weights, quantisation or chat template.",
    ),
    Check(
        "engine-warning",
        "evidence",
        ("warning",),
        "Did the engine work undisturbed while it was measured?",
        engine_warning,
    ),
)

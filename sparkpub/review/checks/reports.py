"""What server and client said of a run: requests that failed, prompts from a cache, other work than was asked for, a
cold start, repetitions that say nothing, answers without sense, and what the engine warned of while measuring."""

import re
from collections.abc import Iterable, Iterator
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from sparkpub.plan.requested import options_of
from sparkpub.plan.workloads.payload import pages
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record.store import Stored
from sparkpub.review import offered
from sparkpub.review.checks.check import AskedOfRun, Check
from sparkpub.review.checks.finding import Finding, Threshold
from sparkpub.review.checks.view import Case, View, about_metrics, first_of
from sparkpub.review.repeated import APART_SHARE as APART_SHARE_OF_MEAN
from sparkpub.review.repeated import repeated

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
APART_SHARE = Threshold(
    "apart share",
    APART_SHARE_OF_MEAN,
    "Standard deviation of a run's repetitions, as a share of their mean, from which that says nothing if its 95 % "
    "interval begins at zero, as it does with three repetitions and 40 %. Of 1,900 rates of llama-benchy on a DGX "
    "Spark, 30 have more.",
)


def _failed(_view: View, stored: Stored) -> Iterator[str]:
    percent = stored.record.value("failed_requests_percent") or 0.0
    if percent >= FAILED_PERCENT:
        yield f"{percent:.3g} %"


def _failed_few(_view: View, stored: Stored) -> Iterator[str]:
    percent = stored.record.value("failed_requests_percent") or 0.0
    if 0 < percent < FAILED_PERCENT:
        yield f"{percent:.3g} %"


def _cached(_view: View, stored: Stored) -> Iterator[str]:
    """How much of its prompts a run found in the server's cache, although nobody asked for that."""
    hits = stored.record.value("prefix_cache_hit_percent") or 0.0
    is_asked = options_of(stored.record).get("prefix_caching")
    if offered.is_less_work(stored.record, hits) and not is_asked:
        yield f"{hits:.3g} % of their tokens"


def _cold(view: View, stored: Stored) -> Iterator[str]:
    """A first batch apart from the rest."""
    answer = view.evidence.of(stored).answer
    first, *others = answer.series if answer and answer.series else (0.0,)
    if len(others) > 1 and first > COLD_START * max(others):
        yield f"{first:.1f} ms, while the others take {median(others):.1f} ms"


def _nonsense(_view: View, stored: Stored) -> Iterator[str]:
    """What is wrong with the answers that a run of trained weights kept. What we measure ourselves is not timed after
    such an answer; what others measured may keep one beside its results."""
    for event in stored.record.events:
        is_answer = event.kind == "note" and event.text.startswith(ANSWERED)
        if is_answer and not stored.record.requested.random_weights:
            problem = pages.nonsense(event.text.removeprefix(ANSWERED))
            yield from filter(None, [problem])


def repetitions(view: View) -> Iterator[Finding]:
    """Runs whose repetitions lie so far apart that their mean says nothing."""
    apart: list[Case] = []
    names: dict[str, None] = {}
    for stored in view.happened:
        found = [each for each in repeated(stored.record) if each.says_nothing]
        if found:
            worst = max(found, key=attrgetter("share"))
            metric = view.metrics[worst.metric]
            number = "" if worst.number is None else f" over {worst.number}"
            said = (
                f"{metric.within_sentence} {metric.format(worst.mean)} ± {metric.format(worst.deviation)} "
                f"({100 * worst.share:.0f} %{number})"
            )
            apart.append((stored, said))
            names[metric.name] = None
    text = "{} has|have repetitions too far apart for a mean, which are not ranked"
    about = about_metrics(list(names))
    yield from view.tell("repetitions", "warning", text, apart, **about)


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


def _of_engine(trouble: Trouble) -> AskedOfRun:
    """Whether an engine warned of this, and of nothing that is told before it."""

    def problems(view: View, stored: Stored) -> Iterable[str]:
        answer, said = view.evidence.of(stored).answer, []
        for text, measured, is_error in answer.warnings if answer else ():
            known = (*TROUBLES, *[ERRORS] * is_error)
            first = next((one for one in known if one.said.search(text)), None)
            if first is trouble and (measured or trouble.is_of_all):
                said.append(text)
        return first_of(said, "warnings")

    happened = f"ran on an engine that {trouble.happened}"
    happened += "" if trouble.is_of_all else ", while it was measured"
    return AskedOfRun(problems, happened, remedy=trouble.remedy)


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
        thresholds=(COLD_START,),
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
        asked=tuple(map(_of_engine, (*TROUBLES, ERRORS))),
    ),
)

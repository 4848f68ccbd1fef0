"""What server and client said of themselves: requests that failed, and what the engine warned of while measuring."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.evidence import Warned
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View, first_of

FAILED_PERCENT = Threshold(
    "failed requests percent",
    1.0,
    "Failed requests of a run, in percent, from which its figures are of a lighter load than was asked for.",
)


def failed_requests(view: View) -> Iterator[Finding]:
    """Runs of which requests failed: their figures are of the requests that succeeded."""
    many, few = dict[str, float](), dict[str, float]()
    for stored in view.happened:
        percent = _failed_percent(view, stored)
        if percent:
            found = many if percent >= FAILED_PERCENT else few
            found[stored.record.run_id] = percent
    yield from _failures(view, "warning", many)
    yield from _failures(view, "info", few)


_FAILED = "failed_requests_percent"


def _failures(
    view: View, severity: Severity, percents: Mapping[str, float]
) -> Iterator[Finding]:
    """One finding for runs that lost a share of their requests, by id, in percent."""
    if not percents:
        return
    highest = max(percents.values())
    share = f"{highest:.3g} %" if len(percents) == 1 else f"up to {highest:.3g} %"
    yield from view.together(
        "failed-requests",
        severity,
        [run for run in view.happened if run.record.run_id in percents],
        lambda runs: (
            f"{runs}: {share} of the requests failed, and the figures are of the others."
        ),
        percents=percents,
    )


def _failed_percent(view: View, stored: Stored) -> float | None:
    """The share of failed requests that a record holds, else the one in its report: a record may be older than the
    metric."""
    if _FAILED in stored.record.metrics:
        return stored.record.value(_FAILED)
    answer = view.evidence.of(stored).answer
    return None if answer is None else answer.values.get(_FAILED)


# -- warnings of the engine --------------------------------------------------------------------------------------


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


def engine_warning(view: View) -> Iterator[Finding]:
    """What the engines warned of while they were measured, one finding for each cause."""
    of_trouble: dict[Trouble, list[Case]] = defaultdict(list)
    failing: list[Case] = []
    for stored in view.happened:
        said: dict[Trouble, list[str]] = defaultdict(list)
        errors = []
        for warned in _warned(view, stored):
            trouble = _trouble(warned.text)
            if trouble is not None and (warned.measured or trouble.is_of_all):
                said[trouble].append(warned.text)
            elif warned.measured and warned.is_error:
                errors.append(warned.text)
        for trouble, texts in said.items():
            of_trouble[trouble] += _case(stored, texts, "warnings")
        failing += _case(stored, errors, "errors")
    for trouble in TROUBLES:
        cases = of_trouble[trouble]
        happened = f"ran on an engine that {trouble.happened}"
        if not trouble.is_of_all:
            happened += ", while it was measured"
        yield from view.cases(
            "engine-warning", "warning", cases, happened, remedy=trouble.remedy
        )
    yield from view.cases(
        "engine-warning",
        "warning",
        failing,
        "ran on an engine that reported errors while it was measured",
        remedy="Read the log around the error, and re-run.",
    )


def _warned(view: View, stored: Stored) -> tuple[Warned, ...]:
    answer = view.evidence.of(stored).answer
    return () if answer is None else answer.warnings


def _trouble(text: str) -> Trouble | None:
    return next((one for one in TROUBLES if one.said.search(text)), None)


def _case(stored: Stored, texts: list[str], what: str) -> list[Case]:
    return [(stored, one) for one in first_of(texts, what)]


CHECKS = (
    Check(
        "failed-requests",
        "meaning",
        ("warning", "info"),
        "Did requests fail?",
        failed_requests,
        thresholds=(FAILED_PERCENT,),
        remedy="Look for errors in the logs of server and client, and re-run with a longer timeout or a lighter load.",
    ),
    Check(
        "engine-warning",
        "evidence",
        ("warning",),
        "Did the engine work undisturbed while it was measured?",
        engine_warning,
    ),
)

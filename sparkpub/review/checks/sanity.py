"""Whether a model talked sense before it was timed: one that only says "!" makes fine tokens per second."""

from collections.abc import Iterator

from sparkpub.plan.workloads.payload import pages
from sparkpub.plan.workloads.server_pages import ANSWERED
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import of_each_run
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

DISTINCT_WORDS = Threshold(
    "distinct words",
    pages.LEAST_DISTINCT,
    "Distinct words in all words of an answer, below which it repeats itself: prose of a hundred words has 0.6.",
)
LETTERS = Threshold(
    "letters",
    pages.LEAST_LETTERS,
    "Letters and digits in all characters of an answer, below which it is no text.",
)


def _nonsense(_view: View, stored: Stored) -> Iterator[str]:
    """What is wrong with the answers that a run of trained weights kept. What we measure ourselves is not timed after
    such an answer; what others measured may keep one beside its results."""
    if stored.record.requested.random_weights:
        return
    for event in stored.record.events:
        if event.kind == "note" and event.text.startswith(ANSWERED):
            problem = pages.nonsense(event.text.removeprefix(ANSWERED))
            if problem is not None:
                yield problem


CHECKS = (
    of_each_run(
        "sanity",
        "meaning",
        "error",
        "Did the model make sense before it was timed?",
        _nonsense,
        (
            "measured a model whose answer makes no sense, so the weights or the engine are broken",
            "measured models whose answers make no sense, so the weights or the engine are broken",
        ),
        thresholds=(DISTINCT_WORDS, LETTERS),
        remedy="Ask the server a question yourself, and correct weights, quantisation or chat template.",
    ),
)

"""Whether runs did the work that their load declares, and whether the rate at which requests came is one that was
served."""

from collections.abc import Iterator

from sparkpub.record.store import Stored
from sparkpub.review import offered
from sparkpub.review.checks.check import of_each_run
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

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


def _answers(_view: View, stored: Stored) -> Iterator[str]:
    yield from filter(None, [offered.answers_apart(stored.record)])


def _queue(_view: View, stored: Stored) -> Iterator[str]:
    yield from filter(None, [offered.emptied_queue(stored.record)])


CHECKS = (
    of_each_run(
        "answer-length",
        "meaning",
        "warning",
        "Were the answers as long as the load declares?",
        _answers,
        ("gave answers of another length, so it is other work than its load says",),
        thresholds=(ANSWER_SHARE,),
        remedy="Have the server ignore the end of the text (`--ignore-eos`, `min_tokens`), and re-run.",
    ),
    of_each_run(
        "offered-load",
        "meaning",
        "info",
        "Did the server serve the rate at which requests came?",
        _queue,
        (
            "is in large part the emptying of a queue, not a server at that rate",
            "are in large part the emptying of queues, not servers at those rates",
        ),
        thresholds=(DRAIN_SHARE,),
    ),
)

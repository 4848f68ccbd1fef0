"""Whether a server worked on as many requests at once as its clients sent."""

from collections.abc import Iterator

from sparkpub.plan.requested import load_of
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import of_each_run
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View

QUEUED_PERCENT = Threshold(
    "queued percent",
    10.0,
    "Percent of their time on the server that requests waited for their turn: vLLM with room for all 16 requests "
    "gave 3 to 6, and 49 with room for five.",
)
_QUEUED = "queue_time_percent"
_MORE_ROOM = "more slots, or more memory for the KV cache, would serve them at once"


def _problems(_view: View, stored: Stored) -> Iterator[str]:
    """That requests waited for one another, or had to make room."""
    yield from _waited(stored.record)
    yield from _preempted(stored.record)


def _preempted(record: Record) -> Iterator[str]:
    times = record.value("preemptions_per_request")
    if times:
        yield f"the KV cache was full, and each was computed again {times:.2g} times on average"


def _waited(record: Record) -> Iterator[str]:
    """As the server counted, else because it has fewer slots."""
    share = record.value(_QUEUED)
    slots, sent = record.observed.batch_size, load_of(record).in_flight
    if share is not None:
        if share >= QUEUED_PERCENT:
            yield f"{share:.0f} % of their time on the server; {_MORE_ROOM}"
    elif slots is not None and sent is not None and slots < sent:
        yield f"{sent} requests at once, and {slots} slots; {_MORE_ROOM}"


CHECKS = (
    of_each_run(
        "queued",
        "meaning",
        "info",
        "Did the server work on all requests at once?",
        _problems,
        ("had requests that waited for their turn, which is part of their latency",),
        thresholds=(QUEUED_PERCENT,),
    ),
)

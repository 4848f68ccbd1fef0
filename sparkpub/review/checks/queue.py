"""Whether a server worked on as many requests at once as its clients sent."""

from collections.abc import Iterator

from sparkpub.plan.requested import load_of
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View

QUEUED_PERCENT = Threshold(
    "queued percent",
    10.0,
    "Percent of their time on the server that requests waited for their turn: vLLM with room for all 16 requests "
    "gave 3 to 6, and 49 with room for five.",
)
_QUEUED = "queue_time_percent"
_MORE_ROOM = "more slots, or more memory for the KV cache, would serve them at once"


def queued(view: View) -> Iterator[Finding]:
    """Runs whose requests waited for one another, or had to make room."""
    cases: list[Case] = []
    for stored in view.happened:
        why = _waited(stored.record)
        if why is not None:
            cases.append((stored, why))
    what = "requests that waited for their turn, which is part of the time to the first token"
    yield from view.cases("queued", "info", cases, f"had {what}", f"had {what}")
    yield from view.faulty(
        "queued",
        "info",
        _preempted,
        "had requests that lost their place because the KV cache was full, and were computed again",
    )


def _preempted(stored: Stored) -> Iterator[str]:
    times = stored.record.value("preemptions_per_request")
    if times:
        yield f"{times:.2g} times for each request that was answered; {_MORE_ROOM}"


def _waited(record: Record) -> str | None:
    """That requests waited, in words: as the server counted, else because it has fewer slots."""
    share = record.value(_QUEUED)
    if share is not None:
        long = share >= QUEUED_PERCENT
        return (
            f"{share:.0f} % of their time on the server; {_MORE_ROOM}" if long else None
        )
    slots, sent = record.observed.batch_size, load_of(record).in_flight
    if slots is None or sent is None or slots >= sent:
        return None
    return f"{sent} requests at once, and {slots} slots; {_MORE_ROOM}"


CHECKS = (
    Check(
        "queued",
        "meaning",
        ("info",),
        "Did the server work on all requests at once?",
        queued,
        thresholds=(QUEUED_PERCENT,),
    ),
)

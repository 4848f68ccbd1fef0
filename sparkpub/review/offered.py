"""Whether a run did the work that its load declares, and whether its requests came as fast as it says.

    answers_apart(record)          "its mean answer has 154 tokens, and its load declares 500"
    emptied_queue(record)          "a mean request took 268 s, and requests came for 250 s"
    is_less_work(record, 61.0)     whether its prompts came from a cache in part

The words are empty where nothing is wrong, or nothing known.
"""

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record.record import Record

ANSWER_SHARE = 0.2
"""How far the mean answer may be from the declared length, as a share of that."""
DRAIN_SHARE = 0.2
"""How long a mean request may take, as a share of the time in which requests arrived."""
HITS_PERCENT = 25.0
"""Percentage points of prefix cache hits, beyond the client's own warm-ups, from which prompts were not computed."""


def answers_apart(record: Record) -> str:
    """That the mean answer has another length than the load declares. Lengths drawn at random are declared by their
    mean, and prompts of a data set declare none."""
    declared = load_of(record).output_tokens
    mean = record.observed.output_tokens_mean
    if not declared or mean is None or abs(mean - declared) <= ANSWER_SHARE * declared:
        return ""
    return f"its mean answer has {mean:,.0f} tokens, and its load declares {declared:,}"


def emptied_queue(record: Record) -> str:
    """That the requests of an open loop took so long that a large part was answered when no more arrived. The figures
    are then of a queue that empties, not of a server at that rate. Where the client bounds the requests at once, those
    that have to wait are not sent."""
    load, latency = load_of(record), record.value("request_latency_mean_ms")
    if load.request_rate is None or load.in_flight is not None:
        return ""
    if not load.requests or latency is None:
        return ""
    arriving = load.requests / load.request_rate
    if latency / 1000 <= DRAIN_SHARE * arriving:
        return ""
    return f"a mean request took {latency / 1000:,.0f} s, and requests came for {arriving:,.0f} s"


def is_less_work(record: Record, hits_percent: float) -> bool:
    """Whether so many hits in the prefix cache are more than the prompts' own beginnings and the client's warm-ups
    make, which repeat one prompt: then the engine computed less than the load says."""
    asked = options_of(record)
    warmup, requests = asked.get("warmup"), asked.get("requests")
    of_warmups = 0.0
    if isinstance(warmup, int) and isinstance(requests, int):
        of_warmups = 100 * (warmup + 1) / (warmup + 1 + requests)
    return hits_percent > of_warmups + HITS_PERCENT

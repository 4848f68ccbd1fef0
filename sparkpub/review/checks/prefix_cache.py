"""Whether a server took its prompts from a cache instead of computing them."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from sparkpub.plan.requested import load_of, options_of
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import View, about_cells, label
from sparkpub.review.reviewed import Cell

HITS_PERCENT = Threshold(
    "prefix cache hits percent",
    25.0,
    "Percentage points of prefix cache hits, beyond the client's own warm-ups, from which prompts were not computed: "
    "prompts drawn anew gave 13 at most in 40 runs of vLLM.",
)
_HITS = "prefix_cache_hit_percent"


def _cached(view: View, stored: Stored) -> Iterator[str]:
    """How much of its prompts a run found in the server's cache, although nobody asked for that."""
    hits = _hits(view, stored)
    if hits is None or options_of(stored.record).get("prefix_caching"):
        return
    if is_less_work(stored.record, hits):
        yield f"{hits:.3g} % of their tokens"


def is_less_work(record: Record, hits_percent: float) -> bool:
    """Whether so many hits in the prefix cache are more than the prompts' own beginnings and the client's warm-ups
    make: then the engine computed less than the load says."""
    return hits_percent > _of_warmups(record) + HITS_PERCENT


def _hits(view: View, stored: Stored) -> float | None:
    """Hits that a record holds, else those in its log: a record may be older than the metric."""
    if _HITS in stored.record.metrics:
        return stored.record.value(_HITS)
    answer = view.evidence.of(stored).answer
    return None if answer is None else answer.values.get(_HITS)


def _of_warmups(record: Record) -> float:
    """Hits in percent that a client's warm-ups make by themselves: they repeat one prompt."""
    asked = options_of(record)
    warmup, requests = asked.get("warmup"), asked.get("requests")
    if not isinstance(warmup, int) or not isinstance(requests, int):
        return 0.0
    return 100 * (warmup + 1) / (warmup + 1 + requests)


def prefix_cache(view: View) -> Iterator[Finding]:
    """Runs whose prompts the server had, and loads that some models' servers may have had and others' not."""
    yield from view.faulty(
        "prefix-cache",
        "warning",
        _cached,
        "found its prompts in the server's prefix cache, so TTFT and throughput are of less work than asked for",
        "found their prompts in the server's prefix cache, so TTFT and throughput are of less work than asked for",
    )
    yield from _switched_on_for_some(view)


def _switched_on_for_some(view: View) -> Iterator[Finding]:
    """Loads of an environment of which some models' servers kept prompts and others' did not, where nothing shows how
    many they found and they may have seen them before."""
    times = Counter(map(_server, view.happened))
    settings: dict[tuple[str, str], dict[str, dict[Cell, None]]] = {}
    for cell, runs in view.counted.items():
        for run in runs:
            said = run.record.observed.settings.get("enable_prefix_caching")
            again = times[_server(run)] > 1 or load_of(run.record).dataset is not None
            if said is not None and again and _hits(view, run) is None:
                by_said = settings.setdefault((cell[1], cell[2]), {})
                by_said.setdefault(said.lower(), {})[cell] = None
    mixed = [cells for cells in settings.values() if len(cells) > 1]
    if not mixed:
        return
    examples = [
        f"{label(next(iter(cells)))} {said}" for said, cells in mixed[0].items()
    ]
    text = (
        f"Servers of one load differ in enable_prefix_caching ({', '.join(examples)}): a ranking of them may compare "
        "less work with more."
    )
    every = dict.fromkeys(chain(*chain(*(cells.values() for cells in mixed))))
    yield view.finding("prefix-cache", "warning", text, **about_cells(every))


def _server(stored: Stored) -> str:
    """The server that a run measured; the run itself where it started one of its own."""
    record = stored.record
    url = record.requested.workload.get("url")
    return record.observed.settings.get("server") or url or stored.run_id


CHECKS = (
    Check(
        "prefix-cache",
        "meaning",
        ("warning",),
        "Did the server compute every prompt?",
        prefix_cache,
        thresholds=(HITS_PERCENT,),
        remedy="Draw other prompts for each run (another seed), or start the server without the cache.",
    ),
)

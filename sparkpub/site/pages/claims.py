"""Every claim with its verdict, and every fact with its source."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

from sparkpub.record.metrics import METRICS
from sparkpub.record.text import between, number, outward, with_unit
from sparkpub.review.claims.facts import Fact
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.grouping import grouped
from sparkpub.review.vocabulary import STATISTICS
from sparkpub.site.pages import templating
from sparkpub.site.publication import Publication

_SPEED = "Speed"
_TOPICS = {
    "GiB": "Memory",
    "tokens": "Memory",
    "°C": "Heat and power",
    "W": "Heat and power",
    "J": "Heat and power",
    "MHz": "Heat and power",
}
"""Unit of a metric to what a claim about it is about; every other one is about speed."""
_CONDUCT, _OPEN = "How was it measured?", "Not tested"
_TOLD = {"void": "not judged", "hypothesis": "not tested"}
"""Verdict to what a reader calls it, where that is another word."""


def ledger(publication: Publication, address: Callable[[str], str]) -> str:
    """Claims by the question that they answer, a line each: what it says, and the verdict; behind it the figures, and
    where it was published. What is refuted is in sight, the others are behind their number. `address` gives the way to
    a page."""
    by_question = grouped(publication.verdicts, _question)
    ordered = dict.fromkeys((_SPEED, *_TOPICS.values(), _CONDUCT, _OPEN))
    return templating.text(
        "ledger.md.j2",
        by_question={
            name: by_question[name] for name in ordered if name in by_question
        },
        campaigns=publication.dataset.campaigns,
        names=publication.names,
        address=address,
        bound=bound,
        tally=_tally,
    ).strip()


def _question(verdict: Verdict) -> str:
    """What a claim is about."""
    claim = verdict.claim
    if claim.metric is None:
        return _OPEN if claim.expect is None else _CONDUCT
    metric = METRICS.get(claim.metric)
    return _SPEED if metric is None else _TOPICS.get(metric.unit, _SPEED)


def _tally(verdicts: Iterable[Verdict]) -> list[str]:
    """`5 supported`, `2 not judged`."""
    words = Counter(verdict.verdict for verdict in verdicts).most_common()
    return [f"{count} {_TOLD.get(word, word)}" for word, count in words]


def bound(verdict: Verdict) -> str:
    """What is known of a difference that the runs leave undecided: what was measured, and the ends of the intervals,
    `measured −0.3 to +0.2 %, between −6.0 and +6.1 %`. Empty for other verdicts, and without an interval."""
    claim, units = verdict.claim, verdict.evidence.get("units", ())
    if verdict.verdict != "undecided" or claim.expect is None or claim.compare is None:
        return ""
    intervals = [unit["ci95"] for unit in units]
    metric = METRICS.get(claim.metric or "")
    # Of the highest and the lowest the figures are those of the others.
    is_alone = claim.expect.form not in ("highest", "lowest")
    if not (intervals and all(intervals) and metric and is_alone):
        return ""
    statistic = STATISTICS[units[0]["statistic"]]
    unit, decimals = statistic.unit, 1
    if unit == "metric":
        unit, decimals = metric.unit, metric.decimals
    values = sorted(unit["value"] for unit in units)
    ends = min(low for low, _ in intervals), max(high for _, high in intervals)
    told = between(values[0], values[-1], decimals, signed=statistic.signed)
    low, high = (
        number(end, decimals, signed=statistic.signed)
        for end in outward(*ends, decimals)
    )
    return (
        f"measured {with_unit(told, unit)}, between {low} and {with_unit(high, unit)}"
    )


def facts(known: Mapping[str, Fact]) -> str:
    """Every fact with an anchor and its meaning, by the document that it comes from, a line each that opens."""
    by_document = grouped(known.values(), attrgetter("source.document"))
    return templating.text("facts.md.j2", by_document=by_document).strip()

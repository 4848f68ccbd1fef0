"""claims.yaml: every factual statement that data can test, and the verdict the data give.

A claim is data, never code: a closed set of expectations over a closed set of statistics. Its author records
the verdict that the text was written for; when the data give another one, the build stops and names the pages
to reread.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkpub.record import documents
from sparkpub.record.errors import ClaimError
from sparkpub.record.text import counted, listed
from sparkpub.review.checks.alike import differences
from sparkpub.review.claims.chosen import AXES, Chosen, choose, matches, split
from sparkpub.review.claims.claim import Claim, VerdictWord
from sparkpub.review.claims.expectations import Decided, UnitVerdict
from sparkpub.review.claims.expectations import read as read_units
from sparkpub.review.claims.quantities import Question
from sparkpub.review.claims.sentence import sentence
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.names import Names
from sparkpub.review.reviewed import ReviewedCampaign

if TYPE_CHECKING:
    from sparkpub.review.checks import Review

_FROM_ONE_SESSION = " It is so in these runs, of one machine on one day, and they tell nothing about others."


@dataclass(frozen=True)
class Verdict:
    """A claim with what the data say of it. `says` is its sentence, `text` the figures in one more; `evidence` is JSON
    data: `units` (label, n, statistic, value, ci95, verdict each), `findings` (check, cell, message) where void."""

    claim: Claim
    says: str
    verdict: VerdictWord
    text: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    early: bool = False
    """Whether runs that it rests on are still to be measured: it is undecided until then."""

    @property
    def changed(self) -> bool:
        """Whether the text was written for another verdict than that of the finished runs."""
        return self.verdict != self.claim.recorded and not self.early

    def document(self) -> dict[str, Any]:
        """The verdict as in `sparkpub claims --json`."""
        told = self.claim.model_dump(
            include={"id", "source", "about", "recorded"}, exclude_none=True
        )
        return told | {
            "says": self.says,
            "verdict": self.verdict,
            "text": self.text,
            "evidence": dict(self.evidence),
        }


def read(path: Path) -> list[Claim]:
    """Claims in the order of the file; none where there is no file. Raises ClaimError with every mistake, by line."""
    return documents.read_parts(path, Claim, ClaimError)


def judge(
    claims: Sequence[Claim], review: "Review", names: Names | None = None
) -> list[Verdict]:
    """The verdict of each claim, in the `names` of the dataset, where they are known. Raises ClaimError for a claim
    that names what its campaign does not have."""
    names, verdicts = names or Names(review.dataset), []
    for claim in claims:
        try:
            verdicts.append(_judge(claim, review, names))
        except ClaimError as error:
            raise ClaimError(
                error.what, where=f"claim {claim.id}", remedy=error.remedy
            ) from None
    return verdicts


def _judge(claim: Claim, review: "Review", names: Names) -> Verdict:
    if claim.expect is None:
        text = f"What would decide it: {claim.decided_by}"
        return Verdict(claim, claim.says or "", "hypothesis", text)
    needed = (claim.campaign, *claim.repeated_in)
    for name in needed:
        if name not in review.campaigns:
            text = f"The campaign {name} is not among these data."
            return Verdict(claim, sentence(claim, names, None), "undecided", text)
    campaigns = [review.campaigns[name] for name in needed]
    chosen = _chosen(claim, campaigns)
    told = partial(Verdict, claim, sentence(claim, names, chosen))
    for campaign in (reviewed.campaign for reviewed in campaigns):
        if _is_early(claim, campaign):
            text = f"Campaign {campaign.name} is not finished: {campaign.progress}."
            return told("undecided", text, early=True)
    readings = read_units(claim, claim.expect, _questions(claim, chosen))
    figures = _figures(claim, readings)
    units = [reading.document() for reading in readings]
    evidence: dict[str, Any] = {"include": claim.include, "units": units}
    doubts = _doubts(chosen, review) if claim.about == "world" else {}
    if doubts:
        evidence["findings"] = list(doubts.values())
        text = f"These runs are no evidence for it, because of {listed(doubts)}. Their figures: {figures}."
        return told("void", text, evidence)
    decided = _combined(claim.scope, [reading.verdict for reading in readings])
    sessions = min((reading.quantity.sessions for reading in readings), default=1)
    text = f"{figures}."
    if claim.about == "world" and decided == "supported" and sessions == 1:
        decided = "undecided"
        text += _FROM_ONE_SESSION
    elif len(campaigns) > 1 or sessions > 1:
        machines = {record.machine.id for record in chosen.records}
        days = {record.started.value[:10] for record in chosen.records}
        on = f"{counted(len(machines), 'machine')} on {counted(len(days), 'day')}"
        text += f" The interval holds for sessions like these, of {on}."
    by_campaign = grouped(chosen.records, attrgetter("campaign"))
    apart = differences(list(by_campaign.values()))
    if apart:
        evidence["differences"] = apart
        text += f" The campaigns differ in {listed(apart)}."
    return told(decided, text, evidence)


# -- of which runs -------------------------------------------------------------------------------------------------


def _is_early(claim: Claim, campaign: CampaignData) -> bool:
    """Whether a cell that the claim is about has runs that are still to be measured, or the campaign no good run."""
    cells, wanted = campaign.unfinished_cells, _wanted(claim)
    return campaign.awaits() or any(matches(cell, wanted) for cell in cells)


def _wanted(claim: Claim) -> tuple[tuple[str, ...], ...]:
    """The models, environments and workloads that a claim is about; all where it names none."""
    return claim.models, claim.environments or claim.sides or (), claim.workloads


def _chosen(claim: Claim, campaigns: Sequence[ReviewedCampaign]) -> Chosen:
    """The runs that a claim is about. Workloads that do not have the metric at all are none of them."""
    axes = dict(zip(AXES, _wanted(claim), strict=True))
    each = [choose(reviewed, claim.include, **axes) for reviewed in campaigns]
    records = sum((chosen.records for chosen in each), ())
    table = Chosen(tuple(campaigns), records).table
    measured = set(table.loc[table["metric"] == claim.metric, "workload"])
    if measured:
        records = tuple(record for record in records if record.workload in measured)
    return Chosen(tuple(campaigns), records)


def _questions(claim: Claim, chosen: Chosen) -> list[Question]:
    """One question per unit of the claim's scope, over all of its campaigns. Raises ClaimError for a margin that
    differs from the campaign's unexplained, and for a unit that a campaign does not repeat."""
    assert claim.expect is not None
    usual = chosen.campaign.margin_percent
    margin = claim.expect.equivalent_within_percent or usual
    if margin != usual and claim.note is None:
        what = f"its margin of {margin:g} % is not the campaign's {usual:g} %"
        raise ClaimError(what, remedy="say why in note:")
    unit = claim.scope.rpartition(" ")[2]
    axes = AXES if unit == "cell" else (unit, "workload")
    questions = []
    for part in split(chosen, () if unit == "pooled" else axes):
        ran = {record.campaign for record in part.records}
        for name in (claim.campaign, *claim.repeated_in):
            if name not in ran:
                raise ClaimError(
                    f"{name} did not repeat {part.label}",
                    remedy="name with models: what was repeated",
                )
        asked = claim.metric or "", claim.against or "", claim.sides, margin
        questions.append(Question(part, *asked))
    return questions


# -- what is said of them ------------------------------------------------------------------------------------------


def _figures(claim: Claim, readings: Sequence[UnitVerdict]) -> str:
    """The figures of all units; what a condition asks of them is said first."""
    if not readings:
        return "No run has this metric"
    lead = ""
    if claim.expect and claim.expect.holds:
        asked = readings[0].quantity.statistic.definition
        lead = f"{asked[:1].upper()}{asked[1:]}: "
    if [reading.unit for reading in readings] == ["all runs"]:
        return lead + readings[0].shown
    return lead + "; ".join(f"{reading.unit}: {reading.shown}" for reading in readings)


def _doubts(chosen: Chosen, review: "Review") -> dict[str, dict[str, Any]]:
    """Findings that void a claim about the world on these runs, one entry per check."""
    mine = [each for each in review.findings if review.voids(each, chosen.records)]
    return {
        check: {
            "check": check,
            "findings": len(same),
            "severity": same[0].severity,
            "message": same[0].message,
        }
        for check, same in grouped(mine, attrgetter("check")).items()
    }


def _combined(scope: str, verdicts: Sequence[Decided]) -> Decided:
    """All units must agree, or with `any` one is enough; without units nothing is decided."""
    both: tuple[Decided, Decided] = ("supported", "refuted")
    winning, losing = both if scope.startswith("any") else both[::-1]
    if winning in verdicts:
        return winning
    return losing if set(verdicts) == {losing} else "undecided"


def as_text(verdicts: Sequence[Verdict], uses: Callable[[str], Sequence[str]]) -> str:
    """What `sparkpub claims` prints: verdict, id and statement, the evidence below, and a count at the end.

    `uses` gives the places whose text names a claim, to be reread where its verdict changed.
    """
    lines = []
    for verdict in verdicts:
        claim = verdict.claim
        lines.append(f"{verdict.verdict:<10} {claim.id}: {verdict.says}")
        lines.append(f"{'':<11}{verdict.text}")
        if verdict.changed:
            places = ", ".join(uses(claim.id)) or "no page"
            lines.append(
                f"{'':<11}CHANGED: recorded as {claim.recorded}; reread {places}"
            )
    counts = Counter(verdict.verdict for verdict in verdicts).most_common()
    summary = ", ".join(f"{count} {word}" for word, count in counts)
    return "\n".join([*lines, summary or "no claims"])

"""claims.yaml: every factual statement that data can test, and the verdict the data give.

A claim is data, never code: a closed set of expectations over a closed set of statistics. Its author records
the verdict that the text was written for; when the data give another one, the build stops and names the pages
to reread.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkpub.record import documents
from sparkpub.record.errors import ClaimError
from sparkpub.record.record import Record
from sparkpub.record.text import listed
from sparkpub.review.checks.alike import differences
from sparkpub.review.claims.chosen import AXES, Chosen, choose, matches, split
from sparkpub.review.claims.claim import Claim, Expect, VerdictWord
from sparkpub.review.claims.expectations import Decided, UnitVerdict
from sparkpub.review.claims.expectations import read as read_units
from sparkpub.review.claims.quantities import Question
from sparkpub.review.claims.sentence import sentence
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.names import Names
from sparkpub.review.reviewed import ReviewedCampaign

if TYPE_CHECKING:
    from sparkpub.review.checks import Finding, Review

BEYOND_DOUBT = frozenset(
    {"identity", "order-confound", "missing-cell", "mixed-machines"}
)
"""Checks whose warnings, too, void a claim about the world: identity, order and coverage."""
UNSERVED = "offered-load"
"""The check that voids it with a note: what a server did while its queue emptied is no rate that it serves."""
_STANDS_FOR = {
    (False, False): "sessions like these",
    (True, False): "machines like these on that day",
    (False, True): "that machine on days like these",
    (True, True): "machines and days like these",
}
"""Whether machines and days were varied to what runs stand for."""
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


def judge(claims: Sequence[Claim], review: "Review") -> list[Verdict]:
    """The verdict of each claim. Raises ClaimError for a claim that names what its campaign does not have."""
    names, verdicts = Names(review.dataset), []
    for claim in claims:
        try:
            verdicts.append(_judge(claim, review, names))
        except ClaimError as error:
            raise ClaimError(
                error.what, where=f"claim {claim.id}", remedy=error.remedy
            ) from None
    return verdicts


def _judge(claim: Claim, review: "Review", names: Names) -> Verdict:
    needed = (claim.campaign, *claim.repeated_in)
    missing = [name for name in needed if name not in review.campaigns]
    campaigns = [review.campaigns[name] for name in needed if name not in missing]
    if missing and claim.expect is not None:
        campaigns = []
    groups = [_chosen(claim, reviewed) for reviewed in campaigns]
    told = partial(Verdict, claim, sentence(claim, names, groups))
    if claim.expect is None:
        return told("hypothesis", f"What would decide it: {claim.decided_by}")
    if missing:
        return told("undecided", f"The campaign {missing[0]} is not among these data.")
    for reviewed in campaigns:
        if _is_early(claim, reviewed.campaign):
            text = f"Campaign {reviewed.campaign.name} is not finished: {reviewed.campaign.progress}."
            return told("undecided", text, early=True)
    readings = read_units(claim, claim.expect, _questions(claim, groups))
    evidence: dict[str, Any] = {
        "include": claim.include,
        "units": [reading.document() for reading in readings],
    }
    figures = _figures(claim.expect, readings)
    doubts = _doubts(groups, review) if claim.about == "world" else {}
    if doubts:
        evidence["findings"] = list(doubts.values())
        text = f"These runs are no evidence for it, because of {listed(doubts)}. Their figures: {figures}."
        return told("void", text, evidence)
    decided = _combined(claim.scope, [reading.verdict for reading in readings])
    is_of_several = bool(readings) and all(
        one.quantity.sessions > 1 for one in readings
    )
    text = f"{figures}."
    if claim.about == "world" and decided == "supported" and not is_of_several:
        decided = "undecided"
        text += _FROM_ONE_SESSION
    elif len(groups) > 1 or is_of_several:
        records = [record for group in groups for record in group.records]
        text += f" The interval holds for {_like_these(records)}."
    apart = differences([group.records for group in groups])
    if apart:
        evidence["differences"] = apart
        text += f" The campaigns differ in {listed(apart)}."
    return told(decided, text, evidence)


def _like_these(records: Sequence[Record]) -> str:
    """What runs stand for: what all of them share was not varied, so that nothing is known of another."""
    machines = {record.machine.id for record in records}
    days = {record.started.value[:10] for record in records}
    return _STANDS_FOR[len(machines) > 1, len(days) > 1]


def _is_early(claim: Claim, campaign: CampaignData) -> bool:
    """Whether a cell that the claim is about has runs that are still to be measured, or the campaign no good run."""
    wanted = (claim.models, _environments(claim), claim.workloads)
    return campaign.awaits() or any(
        matches(cell, wanted) for cell in campaign.unfinished_cells
    )


def _environments(claim: Claim) -> tuple[str, ...]:
    return claim.environments or claim.sides or ()


def _chosen(claim: Claim, reviewed: ReviewedCampaign) -> Chosen:
    """The runs that a claim is about. Workloads that do not have the metric at all are none of them."""
    chosen = choose(
        reviewed,
        claim.include,
        model=claim.models,
        environment=_environments(claim),
        workload=claim.workloads,
    )
    table = chosen.table
    measured = set(table.loc[table["metric"] == claim.metric, "workload"])
    if not measured:
        return chosen
    cells = tuple(cell for cell in chosen.cells if cell[2] in measured)
    return Chosen(reviewed, cells, claim.include)


def _questions(claim: Claim, groups: Sequence[Chosen]) -> list[Question]:
    """One question per unit of the claim's scope, over all of its campaigns."""
    first, *repeats = ([*_units(claim, group)] for group in groups)
    campaign = groups[0].reviewed.campaign
    margin = _margin(claim, campaign)
    questions = []
    for unit in first:
        same = []
        for repeated in repeats:
            by_cells = {frozenset(other.cells): other for other in repeated}
            found = by_cells.get(frozenset(unit.cells))
            if found is None:
                name = repeated[0].reviewed.campaign.name if repeated else "a campaign"
                raise ClaimError(
                    f"{name} did not repeat {unit.label}",
                    remedy="name with models: what was repeated",
                )
            same.append(found)
        questions.append(
            Question(
                replace(unit, repeats=tuple(same)),
                claim.metric or "",
                claim.against or "",
                claim.sides,
                margin,
            )
        )
    return questions


def _units(claim: Claim, chosen: Chosen) -> list[Chosen]:
    unit = claim.scope.rpartition(" ")[2]
    axes = AXES if unit == "cell" else (unit, "workload")
    return split(chosen, () if unit == "pooled" else axes)


def _margin(claim: Claim, campaign: CampaignData) -> float:
    """The margin of a claim, in percent: its own or the campaign's. Raises ClaimError where it differs unexplained."""
    asked = claim.expect and claim.expect.equivalent_within_percent
    if asked and asked != campaign.margin_percent and claim.note is None:
        what = f"its margin of {asked:g} % is not the campaign's {campaign.margin_percent:g} %"
        raise ClaimError(what, remedy="say why in note:")
    return asked or campaign.margin_percent


def _figures(expect: Expect, readings: Sequence[UnitVerdict]) -> str:
    """The figures of all units; what a condition asks of them is said first."""
    if not readings:
        return "No run has this metric"
    asked = readings[0].quantity.statistic.definition
    lead = f"{asked[:1].upper()}{asked[1:]}: " if expect.holds else ""
    if [reading.unit for reading in readings] == ["all runs"]:
        return lead + readings[0].shown
    return lead + "; ".join(f"{reading.unit}: {reading.shown}" for reading in readings)


def _doubts(groups: Sequence[Chosen], review: "Review") -> dict[str, dict[str, Any]]:
    """Findings on the runs concerned that void a claim about the world, one entry per check."""
    found = [
        finding
        for finding in review.findings
        if _is_serious(finding)
        and any(_concerns(finding, group, review) for group in groups)
    ]
    return {
        check: {
            "check": check,
            "findings": len(mine),
            "severity": mine[0].severity,
            "message": mine[0].message,
        }
        for check, mine in grouped(found, attrgetter("check")).items()
    }


def _is_serious(finding: "Finding") -> bool:
    if finding.severity == "error" or finding.check == UNSERVED:
        return True
    return finding.severity == "warning" and finding.check in BEYOND_DOUBT


def _concerns(finding: "Finding", group: Chosen, review: "Review") -> bool:
    """Whether a finding is about runs of a group that count, or about its cells."""
    if finding.campaign != group.reviewed.campaign.name:
        return False
    if finding.runs:
        named = set(finding.runs) - set(review.excluded)
        return not named.isdisjoint(record.run_id for record in group.records)
    cells = {"/".join(record.cell) for record in group.records}
    return not finding.cells or not cells.isdisjoint(finding.cells)


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
        lines.append(f"{verdict.verdict:<10} {verdict.claim.id}: {verdict.says}")
        lines.append(f"{'':<11}{verdict.text}")
        if verdict.changed:
            places = ", ".join(uses(verdict.claim.id)) or "no page"
            lines.append(
                f"{'':<11}CHANGED: recorded as {verdict.claim.recorded}; reread {places}"
            )
    counts = Counter(verdict.verdict for verdict in verdicts)
    summary = (
        ", ".join(f"{count} {word}" for word, count in counts.most_common())
        or "no claims"
    )
    return "\n".join([*lines, summary])

"""claims.yaml: every factual statement that data can test, and the verdict the data give.

A claim is data, never code: a closed set of expectations over a closed set of statistics. Its author records
the verdict that the text was written for; when the data give another one, the build stops and names the pages
to reread.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from sparkpub.record import documents
from sparkpub.record.errors import ClaimError
from sparkpub.record.metrics import METRICS
from sparkpub.record.record import Key, MetricName, Record
from sparkpub.record.text import listed
from sparkpub.review.checks.alike import differences
from sparkpub.review.claims.chosen import AXES, Chosen, choose, matches, split
from sparkpub.review.claims.expectations import Decided, Expect, Expected, UnitVerdict
from sparkpub.review.claims.facts import FactSource
from sparkpub.review.claims.quantities import STATISTICS, Question
from sparkpub.review.claims.wording import problems
from sparkpub.review.dataset import CampaignData
from sparkpub.review.reviewed import ReviewedCampaign

if TYPE_CHECKING:
    from sparkpub.review.checks import Finding, Review

VerdictWord = Literal["supported", "refuted", "undecided", "void", "hypothesis"]
BEYOND_DOUBT = frozenset(
    {"identity", "order-confound", "missing-cell", "mixed-machines"}
)
"""Checks whose warnings, too, void a claim about the world: identity, order and coverage."""
UNSERVED = "offered-load"
"""The check that voids it with a note: what a server did while its queue emptied is no rate that it serves."""
_SCOPE = r"^((each|any) (cell|model|environment)|pooled)$"
_BRACES = re.compile(r"\{([a-z0-9/._-]+)\}")
"""A figure of a statement, by name."""
_FROM_ONE_SESSION = " It is so in these runs, of one machine on one day, and they tell nothing about others."
_COMPARE = r"^[a-z0-9][a-z0-9.-]* / [a-z0-9][a-z0-9.-]*$"


class Claim(documents.ListEntry):
    """One statement. `about: data` is what these runs show. `about: world` goes beyond them: it needs several machines
    or days to be supported, and is void where findings of the review cast doubt on identity, order or coverage."""

    says: Annotated[str, Field(min_length=1)]
    """The statement. Its figures are those of `expect`, in braces: `{within}`, `{low}` and `{high}`, `{number}`, or the
    name of a unit that was published."""
    source: FactSource
    about: Literal["data", "world"]
    campaign: Key
    repeated_in: tuple[Key, ...] = ()
    """Campaigns that measured the same on other machines or days: the claim is about all of them together, and its
    interval holds what differs between them."""
    metric: MetricName | None = None
    against: MetricName | None = None
    """A second metric, for statistics that relate two (slope, intercept, r_squared, difference_gap)."""
    statistic: str | None = None
    """What `published`, `spans`, `highest` and `lowest` read; the mean, or with `compare` the difference."""
    compare: Annotated[str, Field(pattern=_COMPARE)] | None = None
    """`candidate / baseline`: environments."""
    scope: Annotated[str, Field(pattern=_SCOPE)] = "pooled"
    models: tuple[Key, ...] = ()
    environments: tuple[Key, ...] = ()
    workloads: tuple[Key, ...] = ()
    include: Literal["counted", "all"] = "counted"
    decimals: Annotated[int, Field(ge=0, le=6)] = 2
    expect: Expect | None = None
    decided_by: str | None = None
    """For a hypothesis: the measurement that would decide it."""
    note: str | None = None
    recorded: VerdictWord

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.expect is None) == (self.decided_by is None):
            raise ValueError(
                "a claim has expect:, or decided_by: where it is a hypothesis"
            )
        if self.compare is not None and "cell" in self.scope:
            raise ValueError("a comparison has scope each model, any model or pooled")
        unknown = set(_BRACES.findall(self.says)) - self._figures.keys()
        if unknown:
            there = ", ".join(f"{{{name}}}" for name in self._figures) or "none"
            raise ValueError(
                f"says names {{{min(unknown)}}}, and its expectation has {there}"
            )
        if self.expect is not None:
            for problem in problems(self.says, self.expect, self.compare, self._unit):
                raise ValueError(problem)
        return self

    @property
    def _unit(self) -> str | None:
        """The unit of the figures that a statement may use; None where it is not known before the data are read."""
        assert self.expect is not None
        if (
            self.expect.difference_percent is not None
            or self.expect.equivalent_within_percent is not None
        ):
            return "%"
        name = self.statistic or ("difference" if self.compare else "mean")
        if self.expect.holds is not None:
            name = self.expect.condition[0]
        if self.expect.ratio is not None:
            name = "ratio"
        if self.expect.difference is not None:
            name = "difference"
        statistic = STATISTICS.get(name)
        if statistic is None:
            return None
        if statistic.unit != "metric":
            return statistic.unit
        metric = METRICS.get(self.metric or "")
        return None if metric is None else metric.unit

    @property
    def _figures(self) -> Mapping[str, str]:
        return {} if self.expect is None else self.expect.figures

    @property
    def sentence(self) -> str:
        """The statement with the figures that are tested."""
        return _BRACES.sub(lambda found: self._figures[found[1]], self.says)


@dataclass(frozen=True)
class Verdict:
    """A claim with what the data say of it. `text` is one sentence for a reader; `evidence` is JSON data:
    `units` (label, n, statistic, value, ci95, verdict each), `findings` (check, cell, message) where void."""

    claim: Claim
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
            "says": self.claim.sentence,
            "verdict": self.verdict,
            "text": self.text,
            "evidence": dict(self.evidence),
        }


def read(path: Path) -> list[Claim]:
    """Claims in the order of the file; none where there is no file. Raises ClaimError with every mistake, by line."""
    return documents.read_parts(path, Claim, ClaimError)


def judge(claims: Sequence[Claim], review: "Review") -> list[Verdict]:
    """The verdict of each claim. Raises ClaimError for a claim that names what its campaign does not have."""
    verdicts = []
    for claim in claims:
        try:
            verdicts.append(_judge(claim, review))
        except ClaimError as error:
            raise ClaimError(
                error.what, where=f"claim {claim.id}", remedy=error.remedy
            ) from None
    return verdicts


def _judge(claim: Claim, review: "Review") -> Verdict:
    if claim.expect is None:
        return Verdict(claim, "hypothesis", f"What would decide it: {claim.decided_by}")
    names = (claim.campaign, *claim.repeated_in)
    campaigns = [review.campaigns[name] for name in names if name in review.campaigns]
    missing = [name for name in names if name not in review.campaigns]
    if missing:
        text = f"The campaign {missing[0]} is not among these data."
        return Verdict(claim, "undecided", text)
    for reviewed in campaigns:
        if _is_early(claim, reviewed.campaign):
            campaign = reviewed.campaign
            text = f"Campaign {campaign.name} is not finished: {campaign.progress}."
            return Verdict(claim, "undecided", text, early=True)
    groups = [_chosen(claim, reviewed) for reviewed in campaigns]
    readings = _readings(claim, groups)
    evidence: dict[str, Any] = {
        "include": claim.include,
        "units": [reading.document() for reading in readings],
    }
    figures = _sentence(claim.expect, readings)
    world = claim.about == "world"
    doubts = _doubts(groups, review) if world else {}
    if doubts:
        evidence["findings"] = list(doubts.values())
        text = f"These runs are no evidence for it, because of {listed(doubts)}. Their figures: {figures}."
        return Verdict(claim, "void", text, evidence)
    decided = _combined(claim.scope, [reading.verdict for reading in readings])
    over = len(groups) > 1 or _over_sessions(readings)
    text = f"{figures}."
    if world and decided == "supported" and not _over_sessions(readings):
        decided = "undecided"
        text += _FROM_ONE_SESSION
    elif over:
        records = [record for group in groups for record in group.records]
        text += f" The interval holds for {_like_these(records)}."
    apart = differences([group.records for group in groups])
    if apart:
        evidence["differences"] = apart
        text += f" The campaigns differ in {listed(apart)}."
    return Verdict(claim, decided, text, evidence)


def _like_these(records: Sequence[Record]) -> str:
    """What runs stand for: what all of them share was not varied, so that nothing is known of another."""
    machines = {record.machine.id for record in records}
    days = {record.started.value[:10] for record in records}
    if len(machines) == len(days) == 1:
        return "sessions like these"
    if len(days) == 1:
        return "machines like these on that day"
    if len(machines) == 1:
        return "that machine on days like these"
    return "machines and days like these"


def _is_early(claim: Claim, campaign: CampaignData) -> bool:
    """Whether a cell that the claim is about has runs that are still to be measured, or the campaign no good run."""
    if campaign.awaits():
        return True
    environments = claim.environments
    if claim.compare is not None:
        environments += tuple(claim.compare.split(" / "))
    wanted = (claim.models, environments, claim.workloads)
    return any(matches(cell, wanted) for cell in campaign.unfinished_cells)


def _chosen(claim: Claim, reviewed: ReviewedCampaign) -> Chosen:
    return choose(
        reviewed,
        claim.include,
        model=claim.models,
        environment=claim.environments,
        workload=claim.workloads,
    )


def _readings(claim: Claim, groups: Sequence[Chosen]) -> list[UnitVerdict]:
    """What each unit of the claim says, over all of its campaigns."""
    assert claim.expect is not None
    questions = _questions(claim, groups[0])
    for repeat in groups[1:]:
        questions = _repeated(questions, _questions(claim, repeat))
    statistic = claim.statistic or ("mean" if claim.compare is None else "difference")
    chances = len(questions) if claim.scope.startswith("any") else 1
    world = claim.about == "world"
    asked = Expected(claim.expect, questions, statistic, claim.decimals, world, chances)
    return asked.read()


def _repeated(
    questions: Sequence[Question], repeats: Sequence[Question]
) -> list[Question]:
    """The questions, each with the one of the same cells in a campaign that repeats them."""
    by_cells = {frozenset(question.group.cells): question for question in repeats}
    together = []
    for question in questions:
        unit = question.group.label
        cells = frozenset(question.group.cells)
        if cells not in by_cells:
            campaigns = {repeat.group.reviewed.campaign.name for repeat in repeats}
            what = f"{' and '.join(campaigns) or 'a campaign of repeated_in:'} did not repeat {unit}"
            raise ClaimError(what, remedy="name with models: what was repeated")
        both = (*question.repeats, by_cells[cells])
        together.append(replace(question, repeats=both))
    return together


def _over_sessions(readings: Sequence[UnitVerdict]) -> bool:
    """Whether every unit rests on several machines, or on several campaigns."""
    return bool(readings) and all(one.quantity.sessions > 1 for one in readings)


def _sentence(expect: Expect, readings: Sequence[UnitVerdict]) -> str:
    """The figures of all units; what a condition asks of them is said first."""
    if not readings:
        return "No run has this metric"
    asked = readings[0].quantity.statistic.definition
    lead = f"{asked[:1].upper()}{asked[1:]}: " if expect.form == "holds" else ""
    named = len(readings) > 1 or readings[0].unit != "all runs"
    return lead + "; ".join(
        f"{reading.unit}: {reading.shown}" if named else reading.shown
        for reading in readings
    )


def _questions(claim: Claim, chosen: Chosen) -> list[Question]:
    """One question per unit of the claim's scope. Workloads that do not have the metric at all hold no unit."""
    unit = claim.scope.rpartition(" ")[2]
    axes = {
        "cell": AXES,
        "model": ("model", "workload"),
        "environment": ("environment", "workload"),
    }.get(unit, ())
    margin = _margin(claim, chosen.reviewed.campaign)
    table = chosen.table
    measured = set(table.loc[table["metric"] == claim.metric, "workload"])
    if measured:
        cells = tuple(cell for cell in chosen.cells if cell[2] in measured)
        chosen = Chosen(chosen.reviewed, cells, chosen.include)
    questions = []
    for unit_group in split(chosen, axes):
        candidate, baseline = _sides(claim, unit_group)
        questions.append(
            Question(
                candidate, claim.metric or "", claim.against or "", baseline, margin
            )
        )
    return questions


def _margin(claim: Claim, campaign: CampaignData) -> float:
    """The margin of a claim, in percent: its own or the campaign's. Raises ClaimError where it differs unexplained."""
    asked = None if claim.expect is None else claim.expect.equivalent_within_percent
    if asked is None:
        return campaign.margin_percent
    if asked != campaign.margin_percent and claim.note is None:
        what = f"its margin of {asked:g} % is not the campaign's {campaign.margin_percent:g} %"
        raise ClaimError(what, remedy="say why in note:")
    return asked


def _sides(claim: Claim, group: Chosen) -> tuple[Chosen, Chosen | None]:
    """The group asked about, and its baseline where the claim compares."""
    if claim.compare is None:
        return group, None
    candidate, baseline = claim.compare.split(" / ")
    return group.of_environment(candidate), group.of_environment(baseline)


def _doubts(groups: Sequence[Chosen], review: "Review") -> dict[str, dict[str, Any]]:
    """Findings on the runs concerned that void a claim about the world, one entry per check."""
    doubts: dict[str, list[Finding]] = defaultdict(list)
    for group in groups:
        for finding in review.findings:
            if _is_serious(finding) and _concerns(finding, group, review):
                doubts[finding.check].append(finding)
    return {
        check: {
            "check": check,
            "findings": len(found),
            "severity": found[0].severity,
            "message": found[0].message,
        }
        for check, found in doubts.items()
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
        return bool(named & {record.run_id for record in group.records})
    cells = {"/".join(record.cell) for record in group.records}
    return not finding.cells or bool(cells & set(finding.cells))


def _combined(scope: str, verdicts: Sequence[Decided]) -> Decided:
    """All units must agree, or with `any` one is enough; without units nothing is decided."""
    both: tuple[Decided, Decided] = ("supported", "refuted")
    winning, losing = both if scope.startswith("any") else both[::-1]
    if winning in verdicts:
        return winning
    return losing if set(verdicts) == {losing} else "undecided"


def as_json(verdicts: Sequence[Verdict]) -> str:
    """What `sparkpub claims --json` prints."""
    return json.dumps(
        {"claims": [verdict.document() for verdict in verdicts]},
        indent=1,
        ensure_ascii=False,
    )


def as_text(verdicts: Sequence[Verdict], uses: Callable[[str], Sequence[str]]) -> str:
    """What `sparkpub claims` prints: verdict, id and statement, the evidence below, and a count at the end.

    `uses` gives the places whose text names a claim, to be reread where its verdict changed.
    """
    lines = []
    for verdict in verdicts:
        lines.append(
            f"{verdict.verdict:<10} {verdict.claim.id}: {verdict.claim.sentence}"
        )
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

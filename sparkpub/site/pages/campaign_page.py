"""What the page of a campaign shows: the answer with its charts and table; and folded, everything to check it by."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkpub.plan import coverage
from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.text import between, counted, percent, span
from sparkpub.review import differences
from sparkpub.review.dataset import CampaignData
from sparkpub.review.statistics.estimate import holm, is_significant
from sparkpub.review.tables.column import rows as rows_of
from sparkpub.review.unrecorded import unrecorded
from sparkpub.site import sentences, sweeps
from sparkpub.site.content import placeholder
from sparkpub.site.figures.campaign import without_room
from sparkpub.site.figures.figure import Table
from sparkpub.site.figures.library import ENDINGS, Library
from sparkpub.site.figures.others import capacities
from sparkpub.site.figures.said import capacity, curves, drifting, growing
from sparkpub.site.pages import campaign_kind, campaign_table, findings, memory
from sparkpub.site.pages.campaign_kind import CampaignQuestions
from sparkpub.site.publication import Publication, slug
from sparkpub.site.study import StudiedCampaign

ANSWERS = 4
"""Sentences of a campaign's answer."""
CHARTS = 2
"""Charts beside the answer; the page behind it has the others."""
RESULTS = 3
"""Charts of a comparison's result."""
SWEPT = 3
"""Metrics drawn along an axis: the first of all, and of the others what a user waits for first."""
ALONG = {
    "load": "Under load",
    "rate": "At rising request rates",
    "depth": "With a filled KV cache",
    "input": "With longer prompts",
    "output": "With longer answers",
    "length": "With longer requests",
}
"""Name of an axis to the title of what varies along it."""


@dataclass(frozen=True)
class Section:
    """A question of a campaign's page with the placeholders of its figures. `more` are folded, by a summary each."""

    title: str
    figures: Sequence[str]
    more: Mapping[str, str] = field(default_factory=dict)


def context(
    publication: Publication, library: Library, campaign: CampaignData
) -> dict[str, Any]:
    """What the template of a campaign's page needs."""
    headlines = publication.headlines(campaign)
    models, environments, workloads = campaign.axes
    names = publication.names
    question = campaign_kind.asked(publication, campaign)
    found = answering(publication, library, campaign, question)
    leading = _leading(found)
    return {
        "campaign": campaign,
        "extent": extent(publication, campaign),
        "footnotes": _footnotes(publication, campaign),
        "unrecorded": unrecorded(campaign),
        "kind": question.kind,
        "compares": question.compares,
        "card": card(publication, campaign),
        "answers": answers(publication, campaign),
        "problems": findings.problems(
            publication.names, publication.findings_of(campaign)
        ),
        "doubted": bool(publication.review.voiding(campaign.name)),
        "models": {key: names.short_model(campaign.name, key) for key in models},
        "environments": {
            key: names.environment(campaign.name, key) for key in environments
        },
        "workloads": {key: names.workload(campaign.name, key) for key in workloads},
        "headlines": headlines,
        "runs_per_cell": _runs_per_cell(publication, campaign),
        "summary": campaign_table.summary(publication, campaign, headlines),
        "charts": leading,
        "sections": [
            *_others(found, leading),
            *_asking(publication, library, campaign),
        ],
        "placed": {placeholder(one.block): one for one in library.wanted.values()},
        "memory": memory.ledger(publication, campaign),
        "together": together(publication, campaign),
        "settings": environments_of(campaign),
        "recipes": _differences(publication, campaign),
        "coverage": _coverage(library, campaign),
        "failed": [run for run in campaign.runs if run.record.status != "ok"],
        "quarantined": campaign.quarantined,
    }


def _others(found: Sequence[Section], leading: Sequence[str]) -> Iterator[Section]:
    """The sections with the charts that do not stand beside the answer."""
    for section in found:
        others = [figure for figure in section.figures if figure not in leading]
        if others or section.more:
            yield Section(section.title, others, section.more)


@dataclass(frozen=True)
class Covered:
    """How many of the planned runs are done: a sentence with a table, and the placeholder of a chart where there is
    more to see than that all are."""

    says: str
    table: Table
    chart: str


def _coverage(library: Library, campaign: CampaignData) -> Covered | None:
    """None of a campaign without runs."""
    if "coverage" not in library.makers(campaign.name):
        return None
    figure = library.figure("coverage", campaign.name)
    chart = ""
    if any(row["group"] != "done" for row in figure.chart.rows):
        chart = library.place("coverage", campaign.name)
    return Covered(figure.says, figure.table, chart)


def _leading(sections: Sequence[Section]) -> list[str]:
    """The charts beside the answer: one of each section, and more of one that stands alone."""
    leading = [section.figures[0] for section in sections]
    for section in sections:
        leading += section.figures[1:]
    return leading[:CHARTS]


def _runs_per_cell(publication: Publication, campaign: CampaignData) -> str:
    """How many runs stand behind a figure of the first leading metric; empty where there is none."""
    for metric in publication.headlines(campaign)[:1]:
        cells = publication.results.cells_of(campaign.name, metric.name)
        sizes = sorted({cell.n for cell in cells})
        if sizes == [1]:
            return "One run per cell, so the spread is not known."
        if sizes:
            return f"n = {span([str(size) for size in sizes])} per cell."
    return ""


def extent(publication: Publication, campaign: CampaignData) -> str:
    """How much was measured: `24 models in 38 builds`, or `4 models in 2 environments` where a key is a model."""
    keys, environments, _ = campaign.axes
    models = {publication.names.entity(record).key for record in campaign.records}
    number = len(models) or len(keys)
    text = str(counted(number, "model"))
    if number == len(keys):
        return f"{text} in {counted(len(environments), 'environment')}"
    builds = {(record.model, record.environment) for record in campaign.records}
    return f"{text} in {counted(len(builds), 'build')}"


def _footnotes(
    publication: Publication, campaign: CampaignData
) -> list[tuple[str, str]]:
    """What those who measured say of single results: of which, and what."""
    found = []
    for footnote in campaign.info.footnotes:
        subjects = "; ".join(footnote.subjects)
        told = publication.names.in_words(campaign.name, subjects)
        found.append((told, footnote.text))
    return found


def environments_of(campaign: CampaignData) -> dict[str, Mapping[str, Any]]:
    """Key of each environment to what the matrix says of it, or else what its first run does."""
    found: dict[str, Mapping[str, Any]] = {}
    for record in campaign.records:
        found.setdefault(record.environment, record.requested.environment)
    if campaign.matrix is not None:
        for name, environment in campaign.matrix.environments.items():
            found[name] = environment.declared
    return found


def _differences(
    publication: Publication, campaign: CampaignData
) -> list[differences.Difference]:
    """What tells builds of one model apart, where no matrix says it."""
    if campaign.matrix is not None:
        return []
    found = differences.differences(campaign, publication.names)
    return [difference for difference in found if difference.text]


def answering(
    publication: Publication,
    library: Library,
    campaign: CampaignData,
    question: CampaignQuestions,
) -> list[Section]:
    """The sections that answer what the campaign asks."""
    leading = [slug(metric.name) for metric in publication.headlines(campaign)]
    bears = _place(library, campaign, "capacity")
    bounds = _place(library, campaign, "memory-bandwidth")
    found = [
        Section("How many requests does each build bear?", bears),
        Section("What does the memory allow?", bounds),
    ]
    if question.compares:
        found.append(_result(publication, library, campaign, leading))
        comparison = _place(library, campaign, "comparison")
        found.append(Section("Is the difference real?", comparison))
        each = _place(library, campaign, "effect-per-machine")
        found.append(Section("Does it hold on other machines?", each))
    # Below saturation the throughput of an open loop follows the arrivals: it ranks nothing.
    if question.ranks and not bears:
        found.append(_ranking(library, campaign, leading))
    if question.sweeps:
        found += _along(publication, library, campaign)
    return [section for section in found if section.figures]


def _result(
    publication: Publication,
    library: Library,
    campaign: CampaignData,
    leading: Sequence[str],
) -> Section:
    """Every run of the first leading metrics; of a single workload that is compared beside others, its runs alone."""
    first = _place(library, campaign, *[f"{name}-relative" for name in leading[:1]])
    rest = leading[: RESULTS - len(first)]
    compared = {
        row.workload
        for metric in publication.headlines(campaign)
        for row in publication.results.comparisons_of(campaign.name, metric.name)
    }
    if len(compared) == 1 and len(campaign.axes[2]) > 1:
        every_run = library.place_known(campaign, rest, workload=compared.pop())
    else:
        every_run = _place(library, campaign, *rest)
    return Section("The result", [*first, *every_run])


def _ranking(
    library: Library, campaign: CampaignData, leading: Sequence[str]
) -> Section:
    """Bars of the first two leading metrics; workloads for which a chart has no room are folded, a chart each."""
    bars = [f"{name}-bars" for name in leading[:2]]
    more = {}
    for workload in without_room(library.campaign(campaign.name)):
        placed = library.place_known(campaign, bars[:1], workload=workload)
        more.update({f"{workload}": figure for figure in placed})
    return Section("Ranking", _place(library, campaign, *bars), more)


def _along(
    publication: Publication, library: Library, campaign: CampaignData
) -> Iterator[Section]:
    """A section for each axis that the campaign varies; with the load, what machine and user get of it."""
    headlines = publication.headlines(campaign)
    # What a user waits for goes before memory and energy.
    others = sorted(headlines[1:], key=lambda metric: not metric.distribution)
    for axis in sweeps.AXES:
        # At a rate that is asked for, throughput is what was asked for.
        shown = others if axis.name == "rate" else [*headlines[:1], *others]
        leading = [slug(metric.name) for metric in shown][:SWEPT]
        names = [f"{name}-{ENDINGS[axis.name]}" for name in leading]
        figures = _place(library, campaign, *names)
        if axis is sweeps.LOAD:
            figures[1:1] = _place(library, campaign, "pareto-front")
        yield Section(ALONG[axis.name], figures)


def _asking(
    publication: Publication, library: Library, campaign: CampaignData
) -> list[Section]:
    """The sections for who wants to know more, after the table of all cells."""
    orders = [
        f"{slug(metric.name)}-order"
        for metric in publication.headlines(campaign)[:2]
        if drifting(publication.results.cells_of(campaign.name, metric.name))
    ]
    first = publication.headlines(campaign)[:1]
    spread = [
        f"{slug(metric.name)}-{view}"
        for metric in first
        if publication.results.comparisons_of(campaign.name, metric.name)
        for view in ("box", "bars")
    ]
    found = [
        Section("How far do runs spread?", _place(library, campaign, *spread)),
        Section("Does order matter?", _place(library, campaign, *orders)),
        Section("The GPU over time", _place(library, campaign, "gpu-utilisation")),
    ]
    return [section for section in found if section.figures]


def _place(library: Library, campaign: CampaignData, *names: str) -> list[str]:
    """Placeholders of those of these figures that the campaign has."""
    return library.place_known(campaign, names)


def card(publication: Publication, campaign: CampaignData) -> dict[str, Any]:
    """What a campaign is, in a few figures and two sentences."""
    records = campaign.records
    excluded = [
        record for record in records if record.run_id in publication.review.excluded
    ]
    severities = [finding.severity for finding in publication.findings_of(campaign)]
    times = sorted(record.started.value for record in records)
    found = answers(publication, campaign)
    return {
        "campaign": campaign,
        "href": f"campaigns/{campaign.name}/",
        "runs": len(records),
        "counted": len(records) - len(excluded),
        "failed": sum(record.status != "ok" for record in records),
        "hardware": _hardware(records),
        "begun": times[0][:10] if times else None,
        "ended": times[-1][:10] if times else None,
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "says": found[0] if found else "",
        "answer": " ".join(found[:2]),
    }


def _hardware(records: Sequence[Record]) -> list[str]:
    """The GPUs of a campaign, or the processors where there is none, and on how many machines where on several."""
    gpus = {gpu.name for record in records for gpu in record.machine.gpus}
    processors = {record.machine.cpu or "unknown machine" for record in records}
    names = sorted(gpus or processors)
    number = len(coverage.machines_of(records))
    if number > 1:
        names.append(f"{number} machines")
    return names


def answers(publication: Publication, campaign: CampaignData) -> list[str]:
    """What the campaign found out, by leading metric: what differs, what shape it has, which is best."""
    shared = publication.shared(campaign)
    if shared:
        return [shared]
    bears = capacity(capacities(StudiedCampaign(publication, campaign)))
    if bears:
        return [bears]
    ranks = campaign_kind.asked(publication, campaign).ranks
    compared, grown, ranked = [], [], []
    for metric in publication.headlines(campaign)[:ANSWERS]:
        rows = publication.results.comparisons_of(campaign.name, metric.name)
        cells = publication.results.cells_of(campaign.name, metric.name)
        shape = _shape(publication, campaign, metric)
        if rows:
            said = sentences.differences(publication.names, metric, rows)
            compared.append(
                f"{said} {_together(publication, campaign, metric)}".strip()
            )
        elif cells and (ranks or not shape):
            said = sentences.means(publication.names, metric, cells)
            about = sentences.about_prompts(metric, campaign.records)
            ranked.append(f"{said} {about}".strip())
        if shape:
            grown.append(shape)
    of_each = [*compared[:1], *ranked[:1], *grown[:1]]
    others = [*compared[1:], *grown[1:], *ranked[1:]]
    return [*of_each, *others][:ANSWERS]


def _together(publication: Publication, campaign: CampaignData, metric: Metric) -> str:
    """What this campaign and those that a claim joins with it show of a metric: one day of one machine is not all."""
    joined = publication.joined(campaign)
    if len(joined) < 2:
        return ""
    _, together = publication.results.over(joined)
    found = [
        row
        for row in rows_of(together)
        if row.metric == metric.name and row.ci95_effect is not None
    ]
    if len(found) != 1 or found[0].effect_unit != "%":
        return ""
    (row,) = found
    low, high = row.ci95_effect
    ends = between(low, high, 1, signed=True)
    return f"On {row.machines} machines together: {percent(row.effect)}, {ends} ({row.verdict})."


def _shape(publication: Publication, campaign: CampaignData, metric: Metric) -> str:
    """How a metric grows along the first axis of a campaign with a shape, empty without one."""
    whole = StudiedCampaign(publication, campaign)
    if sweeps.has_a_shape(list(whole.lines)):
        for axis in sweeps.AXES:
            found = curves(whole, axis, metric)
            if sweeps.has_a_shape([curve.line for curve in found]):
                return growing(metric, found)
    return ""


def together(publication: Publication, campaign: CampaignData) -> list[str]:
    """A sentence for each metric that matters in which all cells together show a difference, corrected for their
    number."""
    pooled = publication.results.pooled
    is_meant = (pooled["campaign"] == campaign.name) & (pooled["family"] == "primary")
    rows = rows_of(pooled[is_meant])
    metrics = {metric.name: metric for metric in publication.metrics(campaign)}
    found = []
    for row, p in zip(rows, holm([row.p_value for row in rows]), strict=True):
        metric = metrics[row.metric]
        if is_significant(p):
            comparisons = publication.results.comparisons_of(campaign.name, metric.name)
            names = publication.names
            found.append(sentences.together(names, metric, row, comparisons))
    return found

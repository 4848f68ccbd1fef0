"""What the page of a campaign shows: the answer with its charts and table; and folded, everything to check it by."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sparkpub.plan import coverage
from sparkpub.record.metrics import Metric
from sparkpub.record.text import between, counted, percent, span
from sparkpub.review import differences
from sparkpub.review.checks.happened import unrecorded
from sparkpub.review.dataset import CampaignData
from sparkpub.review.statistics.estimate import MINIMUM_RUNS, holm, is_significant
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.column import rows as rows_of
from sparkpub.site import sentences, sweeps
from sparkpub.site.content import placeholder
from sparkpub.site.figures.campaign import worth
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.library import ENDINGS, Library
from sparkpub.site.figures.others import capacities
from sparkpub.site.figures.said import capacity, curves, drifting, growing
from sparkpub.site.pages import findings, memory
from sparkpub.site.publication import Publication, cell_keys, cell_label, slug
from sparkpub.site.study import KEYS, StudiedCampaign

ANSWERS = 4
"""Sentences of a campaign's answer."""
CHARTS = 2
"""Charts beside the answer; the page behind it has the others."""
RESULTS = 3
"""Charts of a comparison's result."""
SWEPT = 3
"""Metrics drawn along an axis: the first of all, and of the others what a user waits for first."""
MOST_CELLS = 40
"""Of a campaign with more, the page has no table: the charts have theirs, and the explorer has all runs."""
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
    """A question of a campaign's page with the placeholders of its figures."""

    title: str
    figures: Sequence[str]


def context(
    publication: Publication, library: Library, campaign: CampaignData
) -> dict[str, Any]:
    """What the template of a campaign's page needs."""
    headlines = publication.headlines(campaign)
    question = asked(publication, campaign)
    found = answering(publication, library, campaign, question)
    # Beside the answer stands one chart of each section, and more of one that stands alone.
    first = [section.figures[0] for section in found]
    rest = [figure for section in found for figure in section.figures[1:]]
    leading = [*first, *rest][:CHARTS]
    imported = campaign.matrix is None
    recipes = differences.differences(campaign, publication.names) if imported else []
    return {
        "campaign": campaign,
        "names": publication.names.campaign(campaign.name),
        "extent": extent(publication, campaign),
        "unrecorded": unrecorded(campaign),
        "card": card(publication, campaign),
        "problems": findings.problems(publication.findings_of(campaign)),
        "doubted": bool(publication.review.voiding(campaign.name)),
        "headlines": headlines,
        "runs_per_cell": _runs_per_cell(publication, campaign),
        "summary": summary(publication, campaign, headlines),
        "charts": leading,
        "sections": [*found, *_asking(publication, library, campaign)],
        "placed": {placeholder(one.block): one for one in library.wanted.values()},
        "memory": memory.ledger(publication, campaign),
        "together": together(publication, campaign),
        "settings": environments_of(campaign),
        "recipes": [recipe for recipe in recipes if recipe.text],
        "coverage": _covered(library, campaign),
    }


def _covered(library: Library, campaign: CampaignData) -> tuple[Figure, str] | None:
    """Planned and completed runs, with the placeholder of the chart where a cell is not done."""
    if "coverage" not in library.makers(campaign.name):
        return None
    figure = library.figure("coverage", campaign.name)
    if all(row["group"] == "done" for row in figure.chart.rows):
        return figure, ""
    return figure, library.place("coverage", campaign.name)


# -- what it asks ----------------------------------------------------------------------------------------------


class CampaignQuestions(NamedTuple):
    """What a campaign asks: do environments differ, how does something grow, which model is best."""

    compares: bool
    sweeps: bool
    ranks: bool


def asked(publication: Publication, campaign: CampaignData) -> CampaignQuestions:
    """What a campaign asks, by what it has: comparisons of a leading metric, lines of three points, several models.

    Models that were all measured along such a line are lines of a sweep, and a ranking of their cells would only rank
    the loads. A campaign with none of these ranks what it has.
    """
    models, _, _ = campaign.axes
    lines = publication.lines(campaign)
    compares = any(
        publication.results.comparisons_of(campaign.name, metric.name)
        for metric in publication.headlines(campaign)
    )
    grows = sweeps.has_a_shape(lines)
    shown = [line for line in lines if sweeps.has_a_shape([line])]
    on_lines = {cell for line in shown for _, cell in line.points}
    all_on_lines = all(record.cell in on_lines for record in campaign.records)
    ranks = len(models) > 1 and not compares and not all_on_lines
    return CampaignQuestions(compares, grows, ranks or not (compares or grows))


def answering(
    publication: Publication,
    library: Library,
    campaign: CampaignData,
    question: CampaignQuestions,
) -> list[Section]:
    """The sections that answer what the campaign asks."""
    place = partial(library.place_known, campaign)
    leading = [slug(metric.name) for metric in publication.headlines(campaign)]
    bears = place(["capacity"])
    found = [
        Section("How many requests does each build bear?", bears),
        Section("What does the memory allow?", place(["memory-bandwidth"])),
    ]
    if question.compares:
        found += [
            _result(publication, library, campaign, leading),
            Section("Is the difference real?", place(["comparison"])),
            Section("Does it hold on other machines?", place(["effect-per-machine"])),
        ]
    # Below saturation the throughput of an open loop follows the arrivals: it ranks nothing.
    if question.ranks and not bears:
        bars = [f"{name}-bars" for name in leading[:2]]
        found.append(Section("Ranking", place(bars)))
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
    first = library.place_known(campaign, [f"{name}-relative" for name in leading[:1]])
    compared = {
        row.workload
        for metric in publication.headlines(campaign)
        for row in publication.results.comparisons_of(campaign.name, metric.name)
    }
    part = {}
    if len(compared) == 1 and len(campaign.axes[2]) > 1:
        part = {"workload": compared.pop()}
    rest = leading[: RESULTS - len(first)]
    return Section("The result", [*first, *library.place_known(campaign, rest, **part)])


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
        names = [f"{slug(metric.name)}-{ENDINGS[axis.name]}" for metric in shown]
        figures = library.place_known(campaign, names[:SWEPT])
        if axis is sweeps.LOAD:
            figures[1:1] = library.place_known(campaign, ["pareto-front"])
        yield Section(ALONG[axis.name], figures)


def _asking(
    publication: Publication, library: Library, campaign: CampaignData
) -> list[Section]:
    """The sections for who wants to know more, after the table of all cells."""
    results, place = publication.results, partial(library.place_known, campaign)
    first, *_ = [*publication.headlines(campaign), None]
    spread, orders = [], []
    if first and results.comparisons_of(campaign.name, first.name):
        spread = [f"{slug(first.name)}-{view}" for view in ("box", "bars")]
    for metric in publication.headlines(campaign)[:2]:
        if drifting(results.cells_of(campaign.name, metric.name)):
            orders.append(f"{slug(metric.name)}-order")
    return [
        Section("How far do runs spread?", place(spread)),
        Section("Does order matter?", place(orders)),
        Section("The GPU over time", place(["gpu-utilisation"])),
    ]


# -- what it is ------------------------------------------------------------------------------------------------


def card(publication: Publication, campaign: CampaignData) -> dict[str, Any]:
    """What a campaign is: its machines, and its first answers."""
    records = campaign.records
    gpus = {gpu.name for record in records for gpu in record.machine.gpus}
    processors = {record.machine.cpu or "unknown machine" for record in records}
    number = len(coverage.machines_of(records))
    machines = [f"{number} machines"] if number > 1 else []
    return {
        "campaign": campaign,
        "hardware": [*sorted(gpus or processors), *machines],
        "answers": answers(publication, campaign)[:2],
    }


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


def environments_of(campaign: CampaignData) -> dict[str, Mapping[str, Any]]:
    """Key of each environment to what the matrix says of it, or else what its first run does."""
    found: dict[str, Mapping[str, Any]] = {}
    for record in campaign.records:
        found.setdefault(record.environment, record.requested.environment)
    if campaign.matrix is not None:
        for name, environment in campaign.matrix.environments.items():
            found[name] = environment.declared
    return found


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


# -- what it found out -----------------------------------------------------------------------------------------


def answers(publication: Publication, campaign: CampaignData) -> list[str]:
    """What the campaign found out, by leading metric: what differs, what shape it has, which is best."""
    whole = StudiedCampaign(publication, campaign)
    alone = publication.shared(campaign) or capacity(capacities(whole))
    if alone:
        return [alone]
    names, results = publication.names, publication.results
    ranks = asked(publication, campaign).ranks
    compared, grown, ranked = [], [], []
    for metric in publication.headlines(campaign)[:ANSWERS]:
        rows = results.comparisons_of(campaign.name, metric.name)
        cells = results.cells_of(campaign.name, metric.name)
        shape = _shape(whole, metric)
        if rows:
            said = sentences.differences(names, metric, rows)
            over = _over_machines(publication, campaign, metric)
            compared.append(f"{said} {over}".strip())
        elif cells and (ranks or not shape):
            said = sentences.means(names, metric, cells)
            about = sentences.about_prompts(metric, campaign.records)
            ranked.append(f"{said} {about}".strip())
        if shape:
            grown.append(shape)
    of_each = [*compared[:1], *ranked[:1], *grown[:1]]
    return [*of_each, *compared[1:], *grown[1:], *ranked[1:]][:ANSWERS]


def _over_machines(
    publication: Publication, campaign: CampaignData, metric: Metric
) -> str:
    """What this campaign and those that a claim joins with it show of a metric: one day of one machine is not all."""
    joined = publication.joined(campaign)
    if len(joined) < 2:
        return ""
    _, over = publication.results.over(joined)
    found = [
        row
        for row in rows_of(over)
        if row.metric == metric.name and row.ci95_effect is not None
    ]
    if len(found) != 1 or found[0].effect_unit != "%":
        return ""
    (row,) = found
    low, high = row.ci95_effect
    ends = between(low, high, 1, signed=True)
    return f"On {row.machines} machines together: {percent(row.effect)}, {ends} ({row.verdict})."


def _shape(whole: StudiedCampaign, metric: Metric) -> str:
    """How a metric grows along the first axis of a campaign with a shape, empty without one."""
    if sweeps.has_a_shape(list(whole.lines)):
        for axis in sweeps.AXES:
            found = curves(whole, axis, metric)
            if sweeps.has_a_shape([curve.line for curve in found]):
                return growing(metric, found)
    return ""


def together(publication: Publication, campaign: CampaignData) -> list[str]:
    """A sentence for each metric that matters in which all cells together show a difference, corrected for their
    number."""
    results = publication.results
    pooled = results.pooled
    is_meant = (pooled["campaign"] == campaign.name) & (pooled["family"] == "primary")
    rows = rows_of(pooled[is_meant])
    metrics = {metric.name: metric for metric in publication.metrics(campaign)}
    found = []
    for row, p in zip(rows, holm([row.p_value for row in rows]), strict=True):
        if is_significant(p):
            compared = results.comparisons_of(campaign.name, row.metric)
            metric = metrics[row.metric]
            said = sentences.together(publication.names, metric, row, compared)
            found.append(said)
    return found


def summary(
    publication: Publication, campaign: CampaignData, metrics: Sequence[Metric]
) -> list[dict[str, Any]]:
    """A row per cell: mean with interval of each leading metric. Empty for a campaign of more than `MOST_CELLS`."""
    keys = cell_keys(campaign)
    if len(keys) > MOST_CELLS:
        return []
    results = publication.results
    cells: dict[tuple[str, ...], TableRow] = {}
    rivals: dict[tuple[str, ...], TableRow] = {}
    for metric in metrics:
        for cell in results.cells_of(campaign.name, metric.name):
            cells[metric.name, *cell.cell] = cell
        for row in results.comparisons_of(campaign.name, metric.name):
            rival = (metric.name, row.model, row.candidate, row.workload)
            rivals.setdefault(rival, row)
    reviewed = publication.review.campaigns[campaign.name]
    found = []
    for key in keys:
        recorded = len(reviewed.recorded.get(key, ()))
        counts = len(reviewed.counted.get(key, ()))
        found.append(
            {
                "label": cell_label(publication.names, campaign, key),
                **dict(zip(KEYS, key, strict=True)),
                "values": [_value(metric, key, cells, rivals) for metric in metrics],
                "runs": f"{counts} of {recorded}" if counts < recorded else recorded,
            }
        )
    return found


def _value(
    metric: Metric,
    key: tuple[str, ...],
    cells: Mapping[tuple[str, ...], TableRow],
    rivals: Mapping[tuple[str, ...], TableRow],
) -> dict[str, Any]:
    """A mean with its comparison. A difference is of the runs that could be paired: where their baseline reads other
    than the mean in the table, it stands beside the difference as its `base`."""
    cell = cells.get((metric.name, *key))
    row = rivals.get((metric.name, *key))
    base = ""
    if row is not None:
        baseline = cells.get((metric.name, row.model, row.baseline, row.workload))
        base = metric.format(row.mean_baseline, unit=False)
        if baseline is not None and base == metric.format(baseline.mean, unit=False):
            base = ""
    # An interval that is wider than its runs look: they are worth fewer than carry a verdict.
    is_wide = (
        cell is not None
        and cell.ci95 is not None
        and len(cell.machines) <= 1
        and cell.n_effective < MINIMUM_RUNS
    )
    return {
        "metric": metric,
        "cell": cell,
        "worth": worth(cell) if is_wide else "",
        "comparison": row,
        "base": base,
    }

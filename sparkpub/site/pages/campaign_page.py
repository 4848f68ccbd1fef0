"""What the page of a campaign shows: the answer with its charts and table; and folded, everything to check it by."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sparkpub.plan import coverage
from sparkpub.record.metrics import Metric
from sparkpub.record.text import SPACE, between, counted, percent
from sparkpub.review import differences, sweeps
from sparkpub.review.dataset import CampaignData
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.estimate import MINIMUM_RUNS
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.column import rows as rows_of
from sparkpub.site import sentences
from sparkpub.site.content import placeholder
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.library import ENDINGS, Library, studied
from sparkpub.site.figures.others import capacities
from sparkpub.site.figures.said import capacity, curves, drifting, growing
from sparkpub.site.publication import (
    Publication,
    slug,
)
from sparkpub.site.study import KEYS, StudiedCampaign, worth

ANSWERS, BRIEFLY = 4, 2
"""Sentences of a campaign's answer, and of those the first, which its page shows."""
CHARTS = 2
"""Charts beside the answer; the page behind it has the others."""
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


class Section(NamedTuple):
    """A question of a campaign's page with the placeholders of its figures."""

    title: str
    figures: Sequence[str]


def source(campaign: CampaignData) -> str:
    """The source of a campaign's page."""
    return f"campaigns/{campaign.name}.md"


class PageFigures(NamedTuple):
    """The figures of a campaign's page, by their placeholders: a chart or two in sight, and the others by what they
    answer. `answers` are what the charts in sight do not say."""

    charts: Sequence[str]
    sections: Sequence[Section]
    placed: Mapping[str, Figure]
    answers: Sequence[str]


def shown(
    publication: Publication, library: Library, campaign: CampaignData
) -> PageFigures:
    """What the page of a campaign shows."""
    whole = library.campaign(campaign.name)
    found = answering(whole, library, asked(whole))
    # One chart of each section is in sight, and more of one that stands alone; what says the answer comes first, and
    # the answer is not said twice.
    first = [section.figures[0] for section in found]
    rest = [figure for section in found for figure in section.figures[1:]]
    sections = [*found, *_asking(whole, library)]
    placed = {placeholder(one.key): one for one in library.wanted.values()}
    said = answers(publication, campaign)[:BRIEFLY]
    charts = [*first, *rest][:CHARTS]
    charts.sort(key=lambda chart: placed[chart].says not in said)
    seen = {placed[chart].says for chart in charts}
    return PageFigures(
        charts, sections, placed, [one for one in said if one not in seen]
    )


def recipes(
    publication: Publication, campaign: CampaignData
) -> list[differences.Difference]:
    """How builds of one model differ, where no matrix says it."""
    if campaign.matrix is not None:
        return []
    found = differences.differences(campaign, publication.names)
    return [recipe for recipe in found if recipe.text]


# -- what it asks ----------------------------------------------------------------------------------------------


class CampaignQuestions(NamedTuple):
    """What a campaign asks: do environments differ, how does something grow, which model is best."""

    compares: bool
    sweeps: bool
    ranks: bool


def asked(whole: StudiedCampaign) -> CampaignQuestions:
    """What a campaign asks, by what it has: comparisons of a leading metric, lines of three points, several models.

    Models that were all measured along such a line are lines of a sweep, and a ranking of their cells would only rank
    the loads. A campaign with none of these ranks what it has.
    """
    models, _, _ = whole.data.axes
    compares = any(map(whole.compared, whole.headlines))
    shown = [line for line in whole.lines if sweeps.has_a_shape([line])]
    grows = bool(shown)
    on_lines = {cell for line in shown for _, cell in line.points}
    all_on_lines = all(record.cell in on_lines for record in whole.records)
    ranks = len(models) > 1 and not compares and not all_on_lines
    return CampaignQuestions(compares, grows, ranks or not (compares or grows))


def answering(
    whole: StudiedCampaign, library: Library, question: CampaignQuestions
) -> list[Section]:
    """The sections that answer what the campaign asks, each with the figures that it has."""
    headlines = whole.headlines
    leading = [slug(metric.name) for metric in headlines]
    place = partial(library.place_known, whole.data)
    bears = place(["capacity"])
    found = [
        Section("How many requests does each build bear?", bears),
        Section("What does the memory allow?", place(["memory-bandwidth"])),
    ]
    if question.compares:
        relative = place([f"{name}-relative" for name in leading[:1]])
        found += [
            Section("The result", relative or place(leading[:1])),
            Section("Is the difference real?", place(["comparison"])),
            Section("Does it hold on other machines?", place(["effect-per-machine"])),
        ]
    # Below saturation the throughput of an open loop follows the arrivals: it ranks nothing.
    if question.ranks and not bears:
        found.append(
            Section("Ranking", place([f"{name}-bars" for name in leading[:2]]))
        )
    # What a user waits for goes before memory and energy.
    others = sorted(headlines[1:], key=lambda metric: not metric.distribution)
    for axis in sweeps.AXES if question.sweeps else ():
        # At a rate that is asked for, throughput is what was asked for.
        shown = others if axis.name == "rate" else [*headlines[:1], *others]
        names = [f"{slug(metric.name)}-{ENDINGS[axis.name]}" for metric in shown]
        found.append(Section(ALONG[axis.name], place(names[:SWEPT])))
    return [section for section in found if section.figures]


def _asking(whole: StudiedCampaign, library: Library) -> list[Section]:
    """The sections for who wants to know more, after the table of all cells."""
    place = partial(library.place_known, whole.data)
    # Of one model the runs beside the answer show it.
    spread = [
        f"{slug(metric.name)}-{view}"
        for metric in whole.headlines[:1]
        for view in ("box", "bars")
        if whole.compared(metric) and len(whole.data.axes[0]) > 1
    ]
    orders = [
        f"{slug(metric.name)}-order"
        for metric in whole.headlines[:2]
        if drifting(whole.statistics(metric))
    ]
    return [
        Section("How far do runs spread?", place(spread)),
        Section("Does order matter?", place(orders)),
        # The telemetry of other owners is not read here: a hub has much of it.
        Section(
            "The GPU over time", [] if whole.data.owner else place(["gpu-utilisation"])
        ),
    ]


# -- what it is ------------------------------------------------------------------------------------------------


def hardware(campaign: CampaignData) -> list[str]:
    """Its GPUs, or else processors, and on how many machines where there were several."""
    records = campaign.records
    gpus = {gpu.name for record in records for gpu in record.machine.gpus}
    processors = {record.machine.cpu or "unknown machine" for record in records}
    number = len(coverage.machines_of(records))
    return [
        *sorted(gpus or processors),
        *([f"{number} machines"] if number > 1 else []),
    ]


def in_order(publication: Publication) -> list[CampaignData]:
    """Every campaign as lists show them: those of the home machine, the newest first, then the newest of the others."""

    def place(campaign: CampaignData) -> tuple[bool, str]:
        starts = (record.started.value for record in campaign.records)
        return is_home(publication, campaign), max(starts, default="")

    return sorted(publication.campaigns, key=place, reverse=True)


def is_home(publication: Publication, campaign: CampaignData) -> bool:
    """Whether a campaign measured models on the machine that comes first."""
    home = publication.home
    return bool(publication.speeds.where(campaign=campaign.name, machine=home))


def extent(publication: Publication, campaign: CampaignData) -> str:
    """How much was measured: `24 models in 38 builds`, or `4 models in 2 environments` where a key is a model."""
    keys, environments, _ = campaign.axes
    models = {publication.names.entity(record).key for record in campaign.records}
    number = len(models) or len(keys)
    builds = {(record.model, record.environment) for record in campaign.records}
    kinds = counted(len(builds), "build")
    if number == len(keys):
        kinds = counted(len(environments), "environment")
    return f"{counted(number, 'model')} in {kinds}"


def environments_of(campaign: CampaignData) -> dict[str, Mapping[str, Any]]:
    """Key of each environment to what the matrix says of it, or else what its first run does."""
    found: dict[str, Mapping[str, Any]] = {}
    for record in campaign.records:
        found.setdefault(record.environment, record.requested.environment)
    if campaign.matrix is not None:
        for name, environment in campaign.matrix.environments.items():
            found[name] = environment.declared
    return found


# -- what it found out -----------------------------------------------------------------------------------------


def answers(publication: Publication, campaign: CampaignData) -> list[str]:
    """What the campaign found out, by leading metric: what differs, what shape it has, which is best."""
    said = publication.said
    if campaign.name not in said:
        said[campaign.name] = _answers(studied(publication)(campaign.name))
    return said[campaign.name]


def _answers(whole: StudiedCampaign) -> list[str]:
    publication, campaign = whole.site, whole.data
    alone = publication.shared(campaign) or capacity(capacities(whole))
    if alone:
        return [alone]
    ranks = asked(whole).ranks
    differing: list[str] = []
    grown: list[str] = []
    ranked: list[str] = []
    for metric in whole.headlines[:ANSWERS]:
        cells = whole.statistics(metric)
        difference = compared(whole, metric, joined=not differing)
        shape = _shape(whole, metric)
        if difference:
            differing.append(difference)
        elif cells and (ranks or not shape):
            said = sentences.means(publication.names, metric, cells)
            about = sentences.about_prompts(metric, campaign.records)
            ranked.append(f"{said} {about}".strip())
        if shape:
            grown.append(shape)
    # The reason that differences share is said once.
    for first in differing[:1]:
        reason = f", but {first.partition(', but ')[2]}"
        differing[1:] = [text.replace(reason, ", too.") for text in differing[1:]]
    of_each = [*differing[:1], *ranked[:1], *grown[:1]]
    return [*of_each, *differing[1:], *grown[1:], *ranked[1:]][:ANSWERS]


def compared(whole: StudiedCampaign, metric: Metric, *, joined: bool = True) -> str:
    """How environments differ in a metric: in this campaign, and, `joined`, over the machines of those that a claim
    joins with it, since one day of one machine is not all. Empty where nothing is compared."""
    rows = whole.compared(metric)
    if not rows:
        return ""
    text = sentences.differences(whole.names, metric, rows)
    row = _together(whole, metric) if joined else None
    # A campaign of several machines has said it.
    if row is not None and all(each.machines < row.machines for each in rows):
        low, high = row.ci95_effect
        ends = between(low, high, 1, signed=True)
        word = sentences.verdict_words(row.verdict, row.equivalence_margin_percent)
        text += f" On {row.machines} machines together: {percent(row.effect)}, {ends} ({word})."
    return text


def _together(whole: StudiedCampaign, metric: Metric) -> TableRow | None:
    """The one effect in per cent over the campaigns that a claim joins with this one, None where there is none."""
    _, over = whole.site.results.over(whole.site.joined(whole.data))
    rows = rows_of(over[over["metric"] == metric.name])
    found = [row for row in rows if row.ci95_effect is not None]
    return found[0] if len(found) == 1 and found[0].effect_unit == "%" else None


class Effect(NamedTuple):
    """How environments differ in a metric: what the intervals leave open, in per cent, and the verdict in words."""

    low: float
    high: float
    words: str
    machines: int


def effect(
    publication: Publication, campaign: CampaignData, metric: Metric
) -> Effect | None:
    """The effect over all machines that a claim joins, else over the campaign's models; None where its design or its
    checks allow no conclusion."""
    if publication.doubts(campaign):
        return None
    whole = studied(publication)(campaign.name)
    rows: Sequence[TableRow] = whole.compared(metric)
    ends = sentences.bounds_of(rows) if sentences.in_percent(rows) else []
    together = _together(whole, metric)
    if together is not None:
        rows, ends = [together], [*together.ci95_effect]
    verdicts = {row.verdict for row in rows}
    if "confounded" in verdicts or not ends:
        return None
    words = "Differs between models"
    if "undecided" in verdicts:
        few = together is None and any(map(sentences.is_of_few, rows))
        words = "Too few independent runs" if few else "No clear effect"
    elif len(verdicts) == 1:
        margin = f"{rows[0].equivalence_margin_percent:g}{SPACE}%"
        equal = f"Equal within {margin}"
        words = equal if verdicts == {"equivalent"} else verdicts.pop().capitalize()
    machines = max(row.machines for row in rows)
    return Effect(min(ends), max(ends), words, machines)


def _shape(whole: StudiedCampaign, metric: Metric) -> str:
    """How a metric grows along the first axis of a campaign with a shape, empty without one."""
    if sweeps.has_a_shape(list(whole.lines)):
        for axis in sweeps.AXES:
            found = curves(whole, axis, metric)
            if sweeps.has_a_shape([curve.line for curve in found]):
                return growing(metric, found)
    return ""


def summary(whole: StudiedCampaign) -> list[dict[str, Any]]:
    """A row per cell: mean with interval of each leading metric. Empty for a campaign of more than `MOST_CELLS`."""
    if len(whole.cells_here) > MOST_CELLS:
        return []
    reviewed = whole.site.review.campaigns[whole.data.name]
    found = []
    common = shared_by_loads(whole)
    for key, label in whole.cells_here.items():
        called = label
        for part in common:
            called = called.replace(f", {part}", "")
        recorded = len(reviewed.recorded.get(key, ()))
        counts = len(reviewed.counted.get(key, ()))
        row = {
            "label": called,
            **dict(zip(KEYS, key, strict=True)),
            "values": [_value(whole, metric, key) for metric in whole.headlines],
            "runs": f"{counts} of {recorded}" if counts < recorded else recorded,
        }
        found.append(row)
    return found


def shared_by_loads(whole: StudiedCampaign) -> list[str]:
    """What all loads have in common, which their names need not say: `512 in`, `128 out`."""
    workloads = dict.fromkeys(workload for _, _, workload in whole.cells_here)
    loads = [
        whole.names.called(whole.data.name, "workload", key).split(", ")
        for key in workloads
    ]
    if len(loads) < 2:
        return []
    return [part for part in loads[0][1:] if all(part in load[1:] for load in loads)]


def _value(whole: StudiedCampaign, metric: Metric, key: Cell) -> dict[str, Any]:
    """A mean with its comparison. A difference is of the runs that could be paired: where their baseline reads other
    than the mean in the table, it stands beside the difference as its `base`."""
    cells = {row.cell: row for row in whole.statistics(metric)}
    cell = cells.get(key)
    pairs = {
        (row.model, row.candidate, row.workload): row for row in whole.compared(metric)
    }
    row, base = pairs.get(key), ""
    if row is not None:
        other = cells.get((row.model, row.baseline, row.workload))
        base = metric.format(row.mean_baseline, unit=False)
        if other is not None and base == metric.format(other.mean, unit=False):
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
        "worth": worth(cell.n, cell.n_effective) if cell and is_wide else "",
        "comparison": row,
        "base": base,
    }

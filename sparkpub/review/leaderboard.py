"""The leaderboard: every cell with a token rate, ranked among the cells that it can be compared with.

    standings(results)  ->  sections by tool, in each the loads, in each the ranked rows

A group is one tool under one load. Rows of other groups are never ranked against it: a rate at another prompt length,
with other requests in flight or counted by another tool says nothing about this one. Figures are those of the cells in
`statistics`.

A place is a range: from one more than the number of rows that are better beyond both 95 % intervals, to the number of
rows that are not worse beyond both. A row of a single run has no interval: its place is marked as approximate.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sparkpub.plan.requested import load_of
from sparkpub.plan.workloads.load import Load
from sparkpub.record.metrics import METRICS, MemoryOf, Metric, ranked
from sparkpub.record.record import Record
from sparkpub.record.text import counted, listed, number
from sparkpub.review.checks import CHECKS, Finding, Review
from sparkpub.review.dataset import CampaignData
from sparkpub.review.frame import Cell, Frame, machine_of
from sparkpub.review.results import Results
from sparkpub.review.setup import Setup, setup_of
from sparkpub.review.statistics.describe import MINIMUM_RUNS, Description
from sparkpub.review.tables.column import TableRow

ColumnName = Literal["generation", "prompt", "ttft", "memory", "efficiency"]
EFFICIENCY = METRICS["output_tokens_per_joule"]


def _memory_metrics() -> tuple[str, ...]:
    """Metrics of memory in use: the GPU's first, then those that lead."""
    names: dict[MemoryOf, list[str]] = {"gpu": [], "host": []}
    for metric in ranked(METRICS.values()):
        in_use = metric.direction == "lower" and metric.role != "state"
        if metric.memory_of is not None and in_use:
            names[metric.memory_of].append(metric.name)
    return (*names["gpu"], *names["host"])


MEMORY = _memory_metrics()
"""Metrics of memory in use. They have different definitions, so a section shows one of them."""
SOURCES: Mapping[ColumnName, tuple[str, ...]] = {
    "generation": ("output_throughput_tok_s",),
    "prompt": ("prompt_throughput_tok_s",),
    "ttft": ("ttft_p50_ms", "ttft_mean_ms"),
    "memory": MEMORY,
    "efficiency": (EFFICIENCY.name,),
}
"""Columns of the leaderboard, and the metrics that can fill them."""
LEADING: tuple[ColumnName, ...] = ("generation", "prompt")
"""A group is ranked by the first of these that it has."""
PARAMETER_TOLERANCE = 0.01
"""Relative difference of parameter counts up to which a model is the same: files count tied matrices once or twice."""


@dataclass(frozen=True)
class Caveat:
    """Something that a reader should know before believing a row. `text` is short enough to stand in it."""

    kind: Literal[
        "error", "warning", "excluded", "imported", "few", "random", "machines"
    ]
    text: str
    why: str


@dataclass(frozen=True)
class Row:
    """One cell. `figures` has a description for each metric that was measured; `runs` are those that count."""

    campaign: str
    cell: Cell
    setup: Setup
    load: Load
    figures: Mapping[str, Description]
    runs: tuple[str, ...]
    caveats: tuple[Caveat, ...]
    machines: frozenset[str] = frozenset()
    """Ids of the machines of its runs, as far as they are known."""
    doubts: tuple[str, ...] = ()
    """Checks whose errors change what the figures mean: such a row has no place."""
    places: tuple[int, int] | None = None
    """The best and the worst place in the group that the intervals leave open."""
    is_approximate: bool = False
    """Whether the place rests on a single run, whose spread nobody knows."""
    share: float | None = None
    """The leading figure as a part of the group's largest."""


@dataclass(frozen=True)
class Column:
    """A column of a section: what it is for, and the metric that fills it."""

    name: ColumnName
    metric: Metric


@dataclass(frozen=True)
class Group:
    """Rows that can be compared, ranked by `lead`: the best first, rows without a place last."""

    load: Load
    lead: Metric
    rows: tuple[Row, ...]
    apart: str = ""
    """Why the group stands apart from others of the same load; empty where it does not."""

    @property
    def label(self) -> str:
        """The load in one line."""
        return self.load.label


@dataclass(frozen=True)
class Section:
    """What one tool measured: groups in the order of their loads."""

    tool: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all groups."""
        return tuple(row for group in self.groups for row in group.rows)


@dataclass(frozen=True)
class Standings:
    """Sections, that with the most rows first, and the cells that are in none: (campaign, cell) to the reason."""

    sections: tuple[Section, ...]
    left_out: Mapping[tuple[str, Cell], str]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all sections."""
        return tuple(row for section in self.sections for row in section.rows)


def standings(results: Results) -> Standings:
    """Every cell of the reviewed campaigns in its group, or left out with the reason."""
    review = results.review
    tools: dict[str, list[Row]] = {}
    left_out: dict[tuple[str, Cell], str] = {}
    for name, frame in review.frames.items():
        for cell, recorded in frame.recorded.items():
            key = (name, cell)
            if not recorded:
                left_out[key] = "declared, but not run yet"
                continue
            if not frame.counted.get(cell):
                left_out[key] = "none of its runs counts"
                continue
            row = _row(frame, cell, results, review)
            if _lead(row.figures) is None:
                left_out[key] = "no token rate was measured"
                continue
            tools.setdefault(row.load.tool, []).append(row)
    sections = [_section(tool, rows) for tool, rows in tools.items()]
    sections.sort(key=lambda section: (-len(section.rows), section.tool))
    return Standings(tuple(sections), left_out)


# -- rows --------------------------------------------------------------------------------------------------


def _row(frame: Frame, cell: Cell, results: Results, review: Review) -> Row:
    campaign = frame.campaign
    records = [stored.record for stored in frame.counted[cell]]
    figures: dict[str, TableRow] = {}
    for names in SOURCES.values():
        for name in names:
            found = results.cell(campaign.name, *cell, name)
            if found is not None:
                figures[name] = found
    setup = _common_setup(records)
    findings = review.by_cell.get((campaign.name, "/".join(cell)), ())
    return Row(
        campaign=campaign.name,
        cell=cell,
        setup=setup,
        load=load_of(records[0]),
        figures=figures,
        runs=tuple(record.run_id for record in records),
        caveats=tuple(_caveats(campaign, records, frame, cell, setup, findings)),
        machines=frozenset(filter(None, map(machine_of, records))),
        doubts=_doubts(findings),
    )


def _common_setup(records: Sequence[Record]) -> Setup:
    """The set-up of a cell's runs; where they ran several versions of an engine, all of them."""
    setups = [setup_of(record) for record in records]
    versions = {setup.engine_version for setup in setups} - {None}
    if len(versions) < 2:
        return setups[0]
    return replace(setups[0], engine_version=" / ".join(sorted(map(str, versions))))


def _doubts(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The checks that found a cell's figures not to mean what they seem to."""
    checks = []
    for finding in findings:
        if finding.severity == "error" and CHECKS[finding.check].kind == "meaning":
            checks.append(finding.check)
    return tuple(dict.fromkeys(checks))


def _caveats(
    campaign: CampaignData,
    records: Sequence[Record],
    frame: Frame,
    cell: Cell,
    setup: Setup,
    findings: Sequence[Finding],
) -> Iterable[Caveat]:
    """What a reader should know of a cell, the gravest first."""
    for severity in ("error", "warning"):
        checks = [item.check for item in findings if item.severity == severity]
        if checks:
            distinct = sorted(set(checks))
            yield Caveat(
                "error" if severity == "error" else "warning",
                counted(len(distinct), severity),
                listed(distinct),
            )
    recorded = len(frame.recorded[cell])
    missing = recorded - len(records)
    if missing:
        yield Caveat(
            "excluded",
            f"{missing} of {counted(recorded, 'run')} excluded",
            "The page of checks gives the reasons.",
        )
    if setup.random_weights:
        why = "The weights were random: the speed is valid, the output is meaningless."
        yield Caveat("random", "random weights", why)
    imported = campaign.info.origin is not None
    imported = imported or any(record.origin is not None for record in records)
    if imported:
        why = "Imported from the results of another tool."
        yield Caveat("imported", "imported", why)
    per_machine = Counter(machine_of(record) for record in records)
    if len(per_machine) > 1:
        each = listed(f"{runs} on {name}" for name, runs in per_machine.items())
        why = f"A mean over machines, with an interval for machines like these: {each}."
        yield Caveat("machines", f"{len(per_machine)} machines", why)
    if len(records) < MINIMUM_RUNS:
        why = f"With fewer than {MINIMUM_RUNS} runs the spread is unknown."
        yield Caveat("few", f"only {counted(len(records), 'run')}", why)


# -- sections and groups -----------------------------------------------------------------------------------


def _section(tool: str, rows: Sequence[Row]) -> Section:
    ambiguous = ambiguous_models(rows)
    parts: dict[tuple[Load, str, str], list[Row]] = {}
    for row in rows:
        lead = _lead(row.figures)
        assert lead is not None
        parts.setdefault((row.load, lead, _apart(row, ambiguous)), []).append(row)
    groups = []
    for (load, lead, apart), members in parts.items():
        told = _with_other_machines(members)
        ordered = _ranked(told, METRICS[lead])
        groups.append(Group(load, METRICS[lead], tuple(ordered), apart))
    groups.sort(key=_place_of_group)
    return Section(tool, _columns(rows), tuple(groups))


def _with_other_machines(rows: Sequence[Row]) -> list[Row]:
    """The rows of a group, with a caveat on those of one machine that are ranked against another one of its kind.

    Between machines of different kinds the table itself shows the difference. Within a kind the intervals show how
    much runs differ, and not how much machines do.
    """
    of_kind: dict[str | None, set[str]] = {}
    for row in rows:
        of_kind.setdefault(row.setup.machine, set()).update(row.machines)
    told = []
    for row in rows:
        number = len(of_kind[row.setup.machine])
        caveats = list(row.caveats)
        if len(row.machines) == 1 and number > 1:
            why = (
                f"Rows of this group ran on {number} machines of this kind. "
                "The interval does not include the difference between machines."
            )
            caveats.append(Caveat("machines", f"1 of {number} machines", why))
        told.append(replace(row, caveats=tuple(caveats)))
    return told


def _place_of_group(group: Group) -> tuple[object, ...]:
    load = group.load
    sizes = [load.input_tokens, load.output_tokens, load.depth, load.at_once]
    known = [size or 0 for size in sizes]
    return *known, load.in_flight or 0, load.request_rate or 0, load.named, group.apart


def _apart(row: Row, ambiguous: Mapping[str, Sequence[int]]) -> str:
    """Why a row cannot be ranked with all others of its load; empty where it can."""
    reasons = []
    if not row.load.is_known:
        reasons.append(
            "The records do not contain the full load, so these rows of campaign "
            f"{row.campaign} are not compared with others."
        )
    parameters = row.setup.parameters
    sizes = ambiguous.get(row.setup.model, ())
    if sizes and parameters is not None:
        this = next(size for size in sizes if _same_size(size, parameters))
        names = listed(billions(size) for size in sizes)
        reasons.append(
            f"{row.setup.model} is the name of different models here ({names} parameters); "
            f"this is the one with {billions(this)}."
        )
    return " ".join(reasons)


def ambiguous_models(rows: Iterable[Row]) -> dict[str, list[int]]:
    """Names of models that stand for several definitions, with the parameter counts of each."""
    sizes: dict[str, list[int]] = {}
    for row in rows:
        parameters = row.setup.parameters
        if parameters is None:
            continue
        known = sizes.setdefault(row.setup.model, [])
        if not any(_same_size(parameters, other) for other in known):
            known.append(parameters)
    return {name: sorted(known) for name, known in sizes.items() if len(known) > 1}


def _same_size(a: int, b: int) -> bool:
    return abs(a - b) <= PARAMETER_TOLERANCE * max(a, b)


def billions(parameters: int) -> str:
    """`7.62 B`; millions below one billion: `4.1 M`."""
    if parameters < 10**9:
        return f"{number(parameters / 10**6, 1)} M"
    return f"{number(parameters / 10**9, 2)} B"


def _lead(figures: Mapping[str, Description]) -> str | None:
    """The metric by which a cell is ranked; None where it has no rate above zero."""
    for column in LEADING:
        for name in SOURCES[column]:
            if name in figures and figures[name].mean > 0:
                return name
    return None


def _columns(rows: Sequence[Row]) -> tuple[Column, ...]:
    """The columns that a row has figures for, each with the metric that most rows have."""
    measured = Counter(name for row in rows for name in row.figures)
    columns = []
    for column, names in SOURCES.items():
        # Of those that equally many rows have, `max` takes the first.
        name = max(names, key=lambda name: measured[name])
        if measured[name]:
            columns.append(Column(column, METRICS[name]))
    return tuple(columns)


# -- ranking -----------------------------------------------------------------------------------------------


def _ranked(rows: Sequence[Row], lead: Metric) -> list[Row]:
    """The rows of a group with their places, the largest figure first and those without a place last."""
    largest = max(row.figures[lead.name].mean for row in rows)
    rivals = [row.figures[lead.name] for row in rows if not row.doubts]
    placed = []
    for row in rows:
        if row.doubts:
            placed.append(row)
            continue
        figure = row.figures[lead.name]
        placed.append(
            replace(
                row,
                places=places(figure, rivals),
                is_approximate=figure.ci95 is None,
                share=figure.mean / largest,
            )
        )

    def order(row: Row) -> tuple[bool, float]:
        return row.places is None, -row.figures[lead.name].mean

    return sorted(placed, key=order)


def places(figure: Description, rivals: Sequence[Description]) -> tuple[int, int]:
    """The best and the worst place of a figure among all (itself included) that their intervals leave open."""
    low, high = _interval(figure)
    better = sum(_interval(rival)[0] > high for rival in rivals)
    worse = sum(_interval(rival)[1] < low for rival in rivals)
    return better + 1, len(rivals) - worse


def _interval(figure: Description) -> tuple[float, float]:
    """The 95 % interval of the mean; of a single value the value itself."""
    return figure.ci95 or (figure.mean, figure.mean)

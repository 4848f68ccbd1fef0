"""A campaign as the checks see it: runs by cell in order of time, series of figures, and how findings are worded."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from sparkpub.plan.requested import is_of_running_server
from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import listed as every_one_of
from sparkpub.review.checks.evidence import EvidenceReader
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell, ReviewedCampaign
from sparkpub.review.tables import cells, comparisons
from sparkpub.review.tables.column import TableRow, groups, rows

MATERIAL_SHARE_OF_MARGIN = Threshold(
    "material share of margin",
    0.5,
    "A drift or an outlier is reported from this share of the equivalence margin on. Smaller ones can be significant "
    "but do not matter.",
)
FLOORS = {
    "GiB": Threshold(
        "least change in GiB",
        0.1,
        "Memory: page cache and allocators vary by some tens of MiB between runs.",
    ),
    "ms": Threshold(
        "least change in ms",
        0.05,
        "Times: the resolution of clocks and schedulers on a busy machine.",
    ),
    "J": Threshold(
        "least change in J",
        20.0,
        "Energy: counters are read a few milliseconds early or late, at up to 700 W.",
    ),
    "s": Threshold(
        "least change in s",
        0.5,
        "Start-up times, which are read from log lines.",
    ),
}
"""Metrics near zero are judged on an absolute floor, by unit."""

Made = TypeVar("Made")

LISTED_NAMES = 3
"""Longer lists are a number."""

Case = tuple[Stored, str]
"""A run, and what is wrong with it in words."""
CellMetric = tuple[Cell, str]
"""A metric of a cell, by name."""
_OF_CELL = ("model", "environment", "workload", "metric")
_HYPHEN_FOR_MINUS = re.compile(r"(?<=[ (])-(?=\d)")


def label(cell: Cell) -> str:
    """The text form of a cell: `model/environment/workload`."""
    return "/".join(cell)


@dataclass(frozen=True, eq=False)
class View:
    """One campaign. `out` says which runs did not properly happen (or are quarantined), and why; `damage` holds
    the lines of the campaign's files that could not be read. Equal to itself alone, so that checks share what a
    function makes of it."""

    campaign: CampaignData
    out: Mapping[str, str] = field(default_factory=dict)
    damage: Sequence[str] = ()
    evidence: EvidenceReader = field(default_factory=EvidenceReader)
    _made: dict[Callable[["View"], Any], Any] = field(default_factory=dict, repr=False)

    def once(self, make: Callable[["View"], Made]) -> Made:
        """What a function makes of this view, made at its first use: several checks share it."""
        if make not in self._made:
            self._made[make] = make(self)
        found: Made = self._made[make]
        return found

    @property
    def runs(self) -> tuple[Stored, ...]:
        """Every recorded run, failed ones too, in order of time."""
        return self.campaign.runs

    @cached_property
    def reviewed(self) -> ReviewedCampaign:
        """The campaign with what counts of it, and the values."""
        return ReviewedCampaign(self.campaign, self.out)

    @property
    def recorded(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """All runs by cell, in order of time; cells that the matrix declares and nobody ran are there, empty."""
        return self.reviewed.recorded

    @property
    def ran(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """Runs that happened properly, further records of one iteration included: what the machine did."""
        return self.reviewed.ran

    @property
    def counted(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """The runs that enter the figures, by cell."""
        return self.reviewed.counted

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Every metric recorded in the campaign, by name, in the order met."""
        return self.campaign.metrics

    @property
    def standing(self) -> tuple[Stored, ...]:
        """The runs that nobody has taken out yet, in order of time."""
        return tuple(
            stored for stored in self.runs if stored.record.run_id not in self.out
        )

    @cached_property
    def happened(self) -> tuple[Stored, ...]:
        """The runs of `ran`, cell by cell."""
        return tuple(stored for runs in self.ran.values() for stored in runs)

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The metrics that a campaign is about: the primary ones, and one summary of each distribution over requests
        (the median, else the mean)."""
        return tuple(
            name for name, metric in self.metrics.items() if self._is_result(metric)
        )

    @cached_property
    def _table(self) -> pd.DataFrame:
        """The table of runs without the memory of servers that were there before: they grow with their first requests,
        and keep what they took."""
        table = self.reviewed.table
        there = [run.run_id for run in self.runs if is_of_running_server(run.record)]
        kept = [
            name for name, metric in self.metrics.items() if metric.memory_of == "gpu"
        ]
        if not there or not kept:
            return table
        return table[~(table["run"].isin(there) & table["metric"].isin(kept))]

    def figure(self, record: Record, name: str) -> float | None:
        """A figure of one run, as the table has it."""
        if self.metrics[name].memory_of == "gpu" and is_of_running_server(record):
            return None
        return record.value(name)

    def _is_result(self, metric: Metric) -> bool:
        if not metric.distribution:
            return metric.role == "primary"
        median = f"{metric.distribution}_p50_ms"
        return metric.name == median or (
            metric.summary == "mean" and median not in self.metrics
        )

    def matters(self, metric: Metric, mean: float, change: float) -> bool:
        """Whether a change is large enough to matter: beside the equivalence margin of a mean, and at all."""
        margin = self.campaign.margin_percent / 100 * abs(mean)
        return abs(change) >= max(MATERIAL_SHARE_OF_MARGIN * margin, floor(metric))

    @cached_property
    def cells(self) -> Mapping[CellMetric, TableRow]:
        """The rows of the table of cells, of the results."""
        table = cells.cells(self._results, self._itself, resampled=False)
        return {(row.cell, row.metric): row for row in rows(table)}

    @cached_property
    def comparisons(self) -> Sequence[TableRow]:
        """The rows of the table of comparisons, of the results."""
        return rows(comparisons.comparisons(self._results, self._itself))

    @property
    def _itself(self) -> Mapping[str, ReviewedCampaign]:
        return {self.campaign.name: self.reviewed}

    @property
    def _results(self) -> pd.DataFrame:
        return self._table[self._table["metric"].isin(self.results)]

    def figures(self, cell: Cell, metric: str) -> tuple[float, ...]:
        """A metric over the runs of a cell that count, machines brought to one level, in order of time."""
        return self._figures.get((cell, metric), ())

    @cached_property
    def _figures(self) -> Mapping[CellMetric, tuple[float, ...]]:
        table = self._results[self._results["counts"]]
        parts = groups(table, _OF_CELL)
        values = cells.levelled(table, parts)
        about = [table[name].to_numpy(object) for name in _OF_CELL]
        found = {}
        for part in parts:
            *cell, metric = (column[part[0]] for column in about)
            found[tuple(cell), metric] = tuple(values[part].tolist())
        return found

    def finding(
        self,
        check: str,
        severity: Severity,
        message: str,
        *,
        cell: Cell | None = None,
        run: Stored | None = None,
        remedy: str = "",
        **evidence: Any,
    ) -> Finding:
        """A finding of this campaign; a run brings its cell along. `remedy`: where it is not that of the check."""
        where = run.record.cell if run is not None else cell
        about = (
            None if where is None else label(where),
            None if run is None else run.record.run_id,
        )
        words = _HYPHEN_FOR_MINUS.sub("\N{MINUS SIGN}", message)
        campaign = self.campaign.name
        return Finding(check, severity, campaign, *about, words, evidence, remedy)

    def together(
        self,
        check: str,
        severity: Severity,
        runs: Sequence[Stored],
        say: Callable[[str], str],
        **evidence: Any,
    ) -> Iterator[Finding]:
        """The same fault in several runs as one finding; nothing for no run. `say` makes the message from words for
        the runs concerned."""
        if not runs:
            return
        words, cells = self.where(runs)
        about: dict[str, Any] = {}
        if len(runs) == 1:
            about["run"] = runs[0]
        else:
            if len(cells) == 1 or len(runs) < len(self.runs):
                about = about_cells(cells)
            about["runs"] = ids(runs)
        yield self.finding(check, severity, capital(say(words)), **about, **evidence)

    def concerning(
        self,
        check: str,
        severity: Severity,
        text: str,
        cells: Sequence[Cell],
        metrics: Sequence[str] = (),
        *,
        cases: int,
        **evidence: Any,
    ) -> Finding:
        """A finding that holds in several cases and is told by the clearest of them, with all cells and metrics that
        it concerns."""
        places, names = list(dict.fromkeys(cells)), list(dict.fromkeys(metrics))
        if cases > 1:
            words = [self.metrics[name].within_sentence for name in names]
            what = f"for {listed(words, 'metrics')} " if words else ""
            where = listed([label(cell) for cell in places], "cells")
            text = f"{text} In all, this holds {what}in {where}."
        about = about_cells(places)
        if names:
            about |= about_metrics(names)
        return self.finding(check, severity, text, **about, **evidence)

    def where(self, runs: Sequence[Stored]) -> tuple[str, list[Cell]]:
        """Some runs in words (`iteration 4 of a/b/c`, `all 10 runs of a/b/c`, `30 runs of 3 cells`); their cells."""
        cells = list(dict.fromkeys(stored.record.cell for stored in runs))
        if len(runs) == 1:
            return f"iteration {runs[0].record.iteration} of {label(cells[0])}", cells
        if len(runs) == len(self.runs):
            return f"all {len(runs)} runs of the campaign", cells
        if len(cells) == 1:
            total = len(self.recorded[cells[0]])
            number = f"all {total}" if len(runs) == total else f"{len(runs)} of {total}"
            return f"{number} runs of {label(cells[0])}", cells
        if len(cells) == len(runs) > LISTED_NAMES:
            return f"{len(runs)} runs", cells  # each of a cell of its own
        return (
            f"{len(runs)} runs of {listed([label(cell) for cell in cells], 'cells')}",
            cells,
        )

    def cases(
        self,
        check: str,
        severity: Severity,
        cases: Sequence[Case],
        happened: str,
        several: str = "",
        **evidence: Any,
    ) -> Iterator[Finding]:
        """One finding for runs with the same fault, each with a detail of its own: `… started hot: 51 °C.`

        `several` is what is said of more than one run, where it differs from what `happened` to one.
        """
        runs = [stored for stored, _ in cases]
        details = {stored.record.run_id: detail for stored, detail in cases}

        def say(words: str) -> str:
            if len(cases) == 1:
                return f"{words} {happened}: {cases[0][1]}."
            first = self.where(runs[:1])[0]
            return f"{words} {several or happened}. For example {first}: {cases[0][1]}."

        yield from self.together(
            check, severity, runs, say, details=details, **evidence
        )

    def faulty(
        self,
        check: str,
        severity: Severity,
        problems: Callable[["View", Stored], Iterable[str]],
        happened: str,
        several: str = "",
        **more: Any,
    ) -> Iterator[Finding]:
        """One finding for the runs in which `problems` finds any, as of `cases`, which `more` is for."""
        cases: list[Case] = []
        for stored in self.happened:
            found = list(problems(self, stored))
            if found:
                cases.append((stored, "; ".join(found)))
        yield from self.cases(check, severity, cases, happened, several, **more)


def listed(names: Sequence[str], what: str) -> str:
    """Up to three names, else their number: `a, b and c`, `12 cells`."""
    if len(names) > LISTED_NAMES:
        return f"{len(names)} {what}"
    return every_one_of(names)


def few(values: Sequence[str]) -> str:
    """Up to four values, else the first and the last of them."""
    if len(values) > 4:
        return f"{values[0]} to {values[-1]} ({len(values)} values)"
    return " and ".join(values)


class NamedValues(NamedTuple):
    """The values in which runs differ: in short, and one line for each name."""

    words: str
    values: list[str]


def named_values(what: str, names: Mapping[str, Sequence[str]]) -> NamedValues:
    """The values of each name; a fact that is its own name says it once."""
    if names.keys() == {what}:
        return NamedValues(few(names[what]), list(names[what]))
    lines = [f"{name} {few(found)}" for name, found in sorted(names.items())]
    more = f", and {len(lines) - 1} more differ" if len(lines) > 1 else ""
    return NamedValues(lines[0] + more, lines)


def first_of(texts: Sequence[str], what: str) -> Sequence[str]:
    """One line for several of a kind."""
    if len(texts) < 2:
        return texts
    return [f"{len(texts)} {what}, the first: {texts[0]}"]


def capital(text: str) -> str:
    """The text with a capital letter first."""
    return text[:1].upper() + text[1:]


def about_cells(cells: Iterable[Cell]) -> dict[str, Any]:
    """Where a finding belongs: `cell` for one, `cells` in the evidence for several."""
    places = list(cells)
    if len(places) == 1:
        return {"cell": places[0]}
    return {"cells": [label(cell) for cell in places]}


def about_metrics(names: Sequence[str]) -> dict[str, Any]:
    """Evidence of what a finding is about: `metric` for one, `metrics` for several of one cause."""
    return {"metric": names[0]} if len(names) == 1 else {"metrics": list(names)}


def floor(metric: Metric) -> float:
    """The smallest change of a metric that can matter, in its unit: near zero every relative change is large."""
    return float(FLOORS.get(metric.unit, 0.0))


def by_gpu(runs: Iterable[Stored]) -> list[list[Stored]]:
    """The runs that a known machine ran, in a list for each set of GPUs."""
    known = [run for run in runs if run.record.machine.id is not None]
    groups = grouped(
        known,
        lambda run: (
            run.record.machine.id,
            *(gpu.id for gpu in run.record.machine.gpus),
        ),
    )
    return list(groups.values())


def ids(runs: Iterable[Stored]) -> list[str]:
    """The run ids, for evidence."""
    return [stored.record.run_id for stored in runs]

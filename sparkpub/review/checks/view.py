"""A campaign as the checks see it: runs by cell in order of time, series of figures, and how findings are worded."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import pandas as pd

from sparkpub.plan.requested import is_of_running_server
from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import listed as every_one_of
from sparkpub.review.checks.evidence import EvidenceReader
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell, ReviewedCampaign
from sparkpub.review.tables import cells, comparisons
from sparkpub.review.tables.column import TableRow, rows

Made = TypeVar("Made")
LISTED_NAMES = 3
"""Longer lists are a number."""
Case = tuple[Stored, str]
"""A run, and what is wrong with it in words."""
CellMetric = tuple[Cell, str]
"""A metric of a cell, by name."""
_HYPHEN_FOR_MINUS = re.compile(r"(?<=[ (])-(?=\d)")


def is_planned(record: Record) -> bool:
    """Whether we planned a run, and did not import it."""
    return record.plan.order != "as-published"


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

    # -- runs ----------------------------------------------------------------------------------------------------

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
    def counted(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """The runs that enter the figures, by cell."""
        return self.reviewed.counted

    @cached_property
    def happened(self) -> tuple[Stored, ...]:
        """Runs that happened properly, cell by cell, further records of one iteration included: what the machine
        did."""
        return tuple(run for runs in self.reviewed.ran.values() for run in runs)

    # -- figures -------------------------------------------------------------------------------------------------

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Every metric recorded in the campaign, by name, in the order met."""
        return self.campaign.metrics

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The metrics that a campaign is about: the primary ones, and one summary of each distribution over requests
        (the median, else the mean)."""
        found = []
        for name, metric in self.metrics.items():
            is_result = metric.role == "primary"
            if metric.distribution:
                median = f"{metric.distribution}_p50_ms"
                usual = "p50" if median in self.metrics else "mean"
                is_result = metric.summary == usual
            if is_result:
                found.append(name)
        return tuple(found)

    @cached_property
    def results_table(self) -> pd.DataFrame:
        """The results of the runs that count, of the table of runs: without the memory of servers that were there
        before, which grows with their first requests, and stays."""
        table, metrics = self.reviewed.table, self.metrics
        memory = [name for name in self.results if metrics[name].memory_of == "gpu"]
        there = [run.run_id for run in self.runs if is_of_running_server(run.record)]
        grows = table["metric"].isin(memory) & table["run"].isin(there)
        return table[table["counts"] & table["metric"].isin(self.results) & ~grows]

    @cached_property
    def cells(self) -> Mapping[CellMetric, TableRow]:
        """The rows of the table of cells, of the results."""
        campaigns = {self.campaign.name: self.reviewed}
        table = cells.cells(self.results_table, campaigns, resampled=False)
        return {(row.cell, row.metric): row for row in rows(table)}

    @cached_property
    def comparisons(self) -> Sequence[TableRow]:
        """The rows of the table of comparisons, of the results."""
        campaigns = {self.campaign.name: self.reviewed}
        return rows(comparisons.comparisons(self.results_table, campaigns))

    @cached_property
    def figures(self) -> Mapping[CellMetric, tuple[float, ...]]:
        """A metric over the runs of a cell that count, machines brought to one level, in order of time."""
        table = self.results_table
        about = ["model", "environment", "workload", "metric"]
        values = cells.levelled(table, about).tolist()
        axes = (table[name] for name in about)
        of_runs = grouped(zip(*axes, values, strict=True), lambda row: row[:-1])
        return {
            ((model, environment, workload), metric): tuple(row[-1] for row in found)
            for (model, environment, workload, metric), found in of_runs.items()
        }

    # -- findings ------------------------------------------------------------------------------------------------

    def finding(
        self,
        check: str,
        severity: Severity,
        message: str,
        *,
        cells: Iterable[Cell] = (),
        metrics: Iterable[str] = (),
        run: Stored | None = None,
        remedy: str = "",
        **evidence: Any,
    ) -> Finding:
        """A finding of this campaign, of one run or of some cells: a run brings its cell along. `remedy`: where it is
        not that of the check."""
        of_run = [] if run is None else [run.record.cell]
        places = [label(cell) for cell in dict.fromkeys([*of_run, *cells])]
        names = list(dict.fromkeys(metrics))
        if len(places) > 1:
            evidence["cells"] = places
        if names:
            evidence |= {"metrics": names} if len(names) > 1 else {"metric": names[0]}
        return Finding(
            check,
            severity,
            self.campaign.name,
            places[0] if len(places) == 1 else None,
            None if run is None else run.run_id,
            _HYPHEN_FOR_MINUS.sub("\N{MINUS SIGN}", message),
            evidence,
            remedy,
        )

    def tell(
        self,
        check: str,
        severity: Severity,
        text: str,
        cases: Sequence[Case],
        **evidence: Any,
    ) -> Iterator[Finding]:
        """The same fault in several runs as one finding; none where there is no run.

        `text` has `{}` in the place of words for the runs. What is wrong with a run in particular follows it:
        `Iteration 4 of a/b/c started hot: 51 °C.`
        """
        if not cases:
            return
        (first, detail), several = cases[0], len(cases) > 1
        runs = [run for run, _ in cases]
        cells = list(dict.fromkeys(run.record.cell for run in runs))
        about: dict[str, Any] = {"run": first}
        if several:
            is_whole = len(runs) == len(self.runs) and len(cells) > 1
            about = {"runs": ids(runs), "cells": () if is_whole else cells}
        said = text.replace("{}", self.where(runs), 1)
        if detail:
            about["details"] = {run.run_id: detail for run, detail in cases}
            example = f". For example {self.where([first])}" if several else ""
            said += f"{example}: {detail}"
        message = f"{said[:1].upper()}{said[1:]}."
        yield self.finding(check, severity, message, **about, **evidence)

    def concerning(
        self,
        check: str,
        severity: Severity,
        text: str,
        cells: Iterable[Cell],
        metrics: Iterable[str] = (),
        **evidence: Any,
    ) -> Finding:
        """A finding that holds in several cells and is told by the clearest of them, with all cells and metrics that
        it concerns."""
        places = list(dict.fromkeys(cells))
        names = list(dict.fromkeys(metrics))
        if max(len(places), len(names)) > 1:
            words = [self.metrics[name].within_sentence for name in names]
            what = f"for {listed(words, 'metrics')} " if words else ""
            text += f" In all, this holds {what}in {in_words(places)}."
        evidence |= {"cells": places, "metrics": names}
        return self.finding(check, severity, text, **evidence)

    def where(self, runs: Sequence[Stored]) -> str:
        """Some runs in words: `iteration 4 of a/b/c`, `3 of 10 runs of a/b/c`, `30 runs of 5 cells`, `30 runs`."""
        cells = list(dict.fromkeys(run.record.cell for run in runs))
        names = in_words(cells)
        if len(runs) == 1:
            return f"iteration {runs[0].record.iteration} of {names}"
        if len(runs) == len(self.runs):
            return f"all {len(runs)} runs of the campaign"
        if len(cells) == len(runs) > LISTED_NAMES:
            return f"{len(runs)} runs"
        among = f"of {len(self.recorded[cells[0]])} " if len(cells) == 1 else ""
        return f"{len(runs)} {among}runs of {names}"


def listed(names: Sequence[str], what: str) -> str:
    """Up to three names, else their number: `a, b and c`, `12 cells`."""
    if len(names) > LISTED_NAMES:
        return f"{len(names)} {what}"
    return every_one_of(names)


def in_words(cells: Iterable[Cell]) -> str:
    """Up to three cells, else their number."""
    return listed([label(cell) for cell in cells], "cells")


def ids(runs: Iterable[Stored]) -> list[str]:
    """The run ids, for evidence."""
    return [run.run_id for run in runs]

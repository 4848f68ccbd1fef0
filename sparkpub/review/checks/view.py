"""A campaign as the checks see it: runs by cell in order of time, series of figures, and how findings are worded."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import pandas as pd

from sparkpub.plan.requested import is_of_running_server
from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.record.text import listed as every_one_of
from sparkpub.review.checks.evidence import EvidenceReader
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.dataset import CampaignData
from sparkpub.review.reviewed import Cell, ReviewedCampaign
from sparkpub.review.tables.cells import plain_cells
from sparkpub.review.tables.column import TableRows, rows

once = lru_cache(maxsize=1)
"""For what a function makes of a view, which several checks share: kept until another campaign is looked at."""
LISTED_NAMES = 3
"""Longer lists are a number."""
Case = tuple[Stored, str]
"""A run, and what is wrong with it in words."""
_HYPHEN_FOR_MINUS = re.compile(r"(?<=[ (])-(?=\d)")


def is_planned(record: Record) -> bool:
    """Whether we planned a run, and did not import it."""
    return record.plan.order != "as-published"


def label(cell: Cell) -> str:
    """The text form of a cell: `model/environment/workload`."""
    return "/".join(cell)


@dataclass(frozen=True, eq=False)
class View:
    """One campaign. `out` says which runs did not properly happen (or are quarantined), and why. Equal to itself alone,
    for the sake of `once`."""

    campaign: CampaignData
    out: Mapping[str, str] = field(default_factory=dict)
    evidence: EvidenceReader = field(default_factory=EvidenceReader)

    # -- runs ----------------------------------------------------------------------------------------------------

    @property
    def runs(self) -> Sequence[Stored]:
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
        table, metrics = self.reviewed.runs, self.metrics
        memory = [name for name in self.results if metrics[name].memory_of == "gpu"]
        there = [run.run_id for run in self.runs if is_of_running_server(run.record)]
        grows = table["metric"].isin(memory) & table["run"].isin(there)
        return table[table["counts"] & table["metric"].isin(self.results) & ~grows]

    @cached_property
    def cells(self) -> TableRows:
        """The rows of the table of cells, of the results, with the `levels` of their runs: see `plain_cells`."""
        return rows(plain_cells(self.reviewed, self.results_table))

    # -- findings ------------------------------------------------------------------------------------------------

    def finding(
        self,
        check: str,
        severity: Severity,
        message: str,
        *,
        cells: Iterable[Cell] = (),
        metrics: Iterable[str | None] = (),
        runs: Sequence[Stored] = (),
        remedy: str = "",
        **evidence: Any,
    ) -> Finding:
        """A finding of this campaign: of some runs, of some cells or of all of it. `remedy`: where it is not that of
        the check."""
        places = [label(cell) for cell in dict.fromkeys(cells)]
        names = list(dict.fromkeys(metrics))
        if len(places) > 1:
            evidence["cells"] = places
        if len(runs) > 1:
            evidence["runs"] = ids(runs)
        if names:
            evidence |= {"metrics": names} if len(names) > 1 else {"metric": names[0]}
        return Finding(
            check,
            severity,
            self.campaign.name,
            places[0] if len(places) == 1 else None,
            runs[0].run_id if len(runs) == 1 else None,
            _HYPHEN_FOR_MINUS.sub("\N{MINUS SIGN}", message),
            evidence,
            remedy,
        )

    def tell(
        self,
        check: str,
        severity: Severity,
        happened: str,
        cases: Sequence[Case],
        **about: Any,
    ) -> Iterator[Finding]:
        """One finding on some runs, of what they did or had, with what is wrong with each as evidence, or none. What is
        wrong with the first in particular follows: `Iteration 4 of a/b/c started hot: 51 °C.`"""
        if not cases:
            return
        runs, details = zip(*cases, strict=True)
        cells = list(dict.fromkeys(run.record.cell for run in runs))
        said = f"{self.where(runs)} {happened}"
        if details[0]:
            about["details"] = {run.run_id: detail for run, detail in cases}
            example = f". For example {self.where(runs[:1])}" if len(runs) > 1 else ""
            said += f"{example}: {details[0]}"
        if len(runs) == len(self.runs) and len(cells) > 1:
            cells = []
        message = f"{said[:1].upper()}{said[1:]}."
        yield self.finding(check, severity, message, runs=runs, cells=cells, **about)

    def concerning(
        self,
        check: str,
        severity: Severity,
        text: str,
        cells: Iterable[Cell],
        metrics: Iterable[str] = (),
        **evidence: Any,
    ) -> Finding:
        """A finding that holds in several cells and of several metrics, and is told by the clearest of them."""
        places, names = dict.fromkeys(cells), dict.fromkeys(metrics)
        words = [self.metrics[name].within_sentence for name in names]
        if max(len(places), len(words)) > 1:
            what = f" for {listed(words, 'metrics')}" if len(words) > 1 else ""
            text += f" In all, this holds{what} in {in_words(places)}."
        return self.finding(
            check, severity, text, cells=places, metrics=names, **evidence
        )

    def where(self, runs: Sequence[Stored]) -> str:
        """Some runs in words: `iteration 4 of a/b/c`, `3 runs of a/b/c`, `30 runs`, `all 30 runs of the campaign`."""
        cells = list(dict.fromkeys(run.record.cell for run in runs))
        if len(runs) == 1:
            return f"iteration {runs[0].record.iteration} of {label(cells[0])}"
        if len(runs) == len(self.runs):
            return f"all {len(runs)} runs of the campaign"
        several = len(cells) > LISTED_NAMES
        return f"{len(runs)} runs" + ("" if several else f" of {in_words(cells)}")


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

"""The tables of a campaign with readers' words in them: what figures are made of."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import attrgetter
from typing import Any

import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.text import between
from sparkpub.review import sweeps
from sparkpub.review.checks import Finding
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.names import Names, told_apart
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.estimate import deciding_level
from sparkpub.review.tables.column import TableRow, plain
from sparkpub.review.tables.comparisons import deciding
from sparkpub.site.publication import (
    Publication,
    cell_keys,
    cell_label,
    one_of_each_check,
    run_address,
)

KEYS = ["model", "environment", "workload"]
"""Of a cell."""
WORDS = ["Model", "Environment", "Load"]
"""What readers call these."""
HARDLY_LESS = 0.5
"""How much less than their number runs may be worth before a table says so."""
RANKS = {"higher": 0, "lower": 0, "equivalent": 2}
"""Verdict to its place in a list: what is decided first, then what is open."""


def worth(n: int, n_effective: float) -> str:
    """` (effective n 1.9)` where runs are worth less than their number; empty elsewhere."""
    if n_effective > n - HARDLY_LESS:
        return ""
    return f" (effective n {n_effective:.1f})"


def column(rows: pd.DataFrame, values: Iterable[Any]) -> "pd.Series[Any]":
    """Values of any type as a column beside these rows."""
    return pd.Series(list(values), index=rows.index, dtype=object)


def records(rows: pd.DataFrame) -> list[dict[Any, Any]]:
    """Rows one by one, None where there is nothing."""
    names = list(rows)
    values = zip(*(plain(rows[name]) for name in names), strict=True)
    return [dict(zip(names, each, strict=True)) for each in values]


def cells_of(rows: pd.DataFrame) -> list[Cell]:
    """The cell of each row."""
    return list(zip(*(rows[key] for key in KEYS), strict=True))


@dataclass(frozen=True)
class StudiedCampaign:
    """A campaign, or the cells of it that have the keys in `only`: a model, an environment, a workload."""

    site: Publication
    data: CampaignData
    only: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> Names:
        """What readers call models, environments and workloads."""
        return self.site.names

    def holds(self, *cell: str) -> bool:
        """Whether a cell (model, environment, workload) is in this part."""
        here = zip(KEYS, cell, strict=True)
        return all(self.only.get(axis, key) == key for axis, key in here)

    @cached_property
    def cells_here(self) -> dict[Cell, str]:
        """Every cell that is declared or was run, with what a row of a table is called."""
        cells = [cell for cell in cell_keys(self.data) if self.holds(*cell)]
        return {cell: cell_label(self.names, self.data, cell) for cell in cells}

    @cached_property
    def environments(self) -> list[str]:
        """What readers call the environments: the baseline, then the others in the order of the matrix."""
        here = {environment for _, environment, _ in self.cells_here}
        keys = [key for key in self.data.axes[1] if key in here]
        keys.sort(key=lambda key: key != self.data.baseline)
        return [self.names.called(self.data.name, "environment", key) for key in keys]

    @property
    def records(self) -> list[Record]:
        """The records of this part."""
        return [record for record in self.data.records if self.holds(*record.cell)]

    @property
    def baseline(self) -> str:
        """What readers call the environment that others are compared with."""
        return self.names.called(self.data.name, "environment", self.data.baseline)

    @property
    def headlines(self) -> Sequence[Metric]:
        """The metrics that lead the campaign."""
        return self.site.headlines(self.data)

    # ---- The three tables --------------------------------------------------------------------------------------------

    @cached_property
    def runs(self) -> Callable[[Metric], pd.DataFrame]:
        """Gives each run with a value of a metric, in the order of the campaign: the words of its cell, `run,
        iteration, value`, `number` (in the campaign), `counts, excluded, href, tip`."""
        return cache(self._runs_made)

    def _runs_made(self, metric: Metric) -> pd.DataFrame:
        rows = self._runs[self._runs["metric"] == metric.name]
        rows = rows.sort_values("number", kind="stable").reset_index(drop=True)
        tips = []
        for row in records(rows):
            tip = {"run": row["run"], "cell": row["cell"]}
            tip[metric.label] = metric.format(row["value"])
            if row["excluded"]:
                tip["left out"] = row["excluded"]
            tips.append(tip)
        return rows.assign(tip=column(rows, tips))

    @cached_property
    def cells(self) -> Callable[[Metric], pd.DataFrame]:
        """Gives each cell with a mean of a metric: the words of its cell, `n, p50, trend_slope, runs`, `value` (the
        mean), `low` and `high` (its 95 % interval), `tip`: what a table says of it."""
        return cache(self._cells_made)

    def _cells_made(self, metric: Metric) -> pd.DataFrame:
        rows = self._cells[self._cells["metric"] == metric.name].reset_index(drop=True)
        mean = f"Mean ({metric.unit})" if metric.unit else "Mean"
        tips = []
        for row in records(rows):
            number, each = str(row["n"]), row["n_by_machine"]
            if len(each) > 1:
                number += f" on {len(each)} machines ({', '.join(map(str, each))})"
            interval = "n too small"
            if row["low"] is not None:
                interval = between(row["low"], row["high"], metric.decimals)
            tip = {"Cell": row["cell"], "n": number}
            tip[mean] = metric.format(row["value"], unit=False)
            tip["95 % interval"] = interval + worth(row["n"], row["n_effective"])
            tip["sd"] = metric.format(row["sd"], unit=False)
            tip["Median"] = metric.format(row["p50"], unit=False)
            tips.append(tip)
        return rows.assign(tip=column(rows, tips))

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Every comparison of a leading metric on a scale with a true zero, by metric, what is decided first, and the
        largest difference: `panel` (the metric's label), `name`, `value` (in per cent), `low, high` (the interval that
        decides, of `level` %), `verdict`, `p_adjusted`."""
        found = []
        for place, metric in enumerate(self.headlines):
            for row in self.compared(metric):
                ends = deciding(row, "ratio")
                if ends is None or row.ratio is None:
                    continue
                low, value, high = (
                    100 * (end - 1) for end in (ends[0], row.ratio, ends[1])
                )
                told = {
                    "model": row.model,
                    "environment": row.candidate,
                    "workload": row.workload,
                    "panel": metric.label,
                    "value": value,
                    "low": low,
                    "high": high,
                    "verdict": row.verdict,
                    "level": 100 * deciding_level(row.verdict, row.equivalence_p),
                    "p_adjusted": row.p_adjusted,
                    "place": (place, RANKS.get(row.verdict, 1), -abs(value)),
                }
                found.append(told)
        if not found:
            return pd.DataFrame()
        rows = self.worded(pd.DataFrame(found))
        for _, mine in rows.groupby("panel"):
            loads = mine["Load"].str.split(", ")
            parts = zip(mine["Model"], mine["Environment"], loads, strict=True)
            names = told_apart([(model, place, *load) for model, place, load in parts])
            rows.loc[mine.index, "name"] = names
        return rows.sort_values("place", ignore_index=True)

    def worded(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows in the order of the matrix, with `Model, Environment, Load`, the names of legends and rows, and
        `cell`, that of tables."""
        known = self.names.campaign(self.data.name).by_axis
        order = {cell: place for place, cell in enumerate(self.cells_here)}
        places = column(rows, [order[cell] for cell in cells_of(rows)])
        rows = rows.loc[places.sort_values(kind="stable").index].reset_index(drop=True)
        for axis, name in zip(KEYS, WORDS, strict=True):
            rows[name] = [known[axis].get(key, key) for key in rows[axis]]
        return rows.assign(cell=[self.cells_here[cell] for cell in cells_of(rows)])

    def part(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table about cells that belong to this part."""
        rows = table[table["campaign"] == self.data.name]
        for axis, key in self.only.items():
            rows = rows[rows[axis] == key]
        # Categories would carry all that the whole table knows.
        return rows.astype(dict.fromkeys(rows.select_dtypes("category"), object))

    def statistics(self, metric: Metric) -> Sequence[TableRow]:
        """The cells of a metric as sentences take them."""
        about = {"campaign": self.data.name, "metric": metric.name}
        return self.site.results.cell_rows.where(**about, **self.only)

    def compared(self, metric: Metric) -> Sequence[TableRow]:
        """The comparisons of a metric of which the candidate is in this part."""
        about = {"campaign": self.data.name, "metric": metric.name}
        for axis, key in self.only.items():
            about["candidate" if axis == "environment" else axis] = key
        return self.site.results.comparison_rows.where(**about)

    @cached_property
    def _runs(self) -> pd.DataFrame:
        columns = ["run", "campaign", *KEYS, "iteration", "metric", "value"]
        table = self.site.results.runs[[*columns, "excluded", "counts"]]
        rows = self.worded(self.part(table[table["value"].notna()]))
        numbers = {run.run_id: place for place, run in enumerate(self.data.runs, 1)}
        addresses = {run.run_id: run_address(run) for run in self.data.runs}
        return rows.assign(
            number=rows["run"].map(numbers), href=rows["run"].map(addresses)
        )

    @cached_property
    def _cells(self) -> pd.DataFrame:
        called = {"mean": "value", "ci95_low": "low", "ci95_high": "high"}
        return self.worded(self.part(self.site.results.cells)).rename(columns=called)

    # ---- What it varies, and what was found --------------------------------------------------------------------------

    @cached_property
    def lines(self) -> dict[sweeps.Line, str]:
        """What the campaign varies in this part, each line with its name among those of its axis."""
        found: dict[sweeps.Line, str] = {}
        called = self.names.campaign(self.data.name)
        by_axis = grouped(self.site.lines[self.data.name], attrgetter("axis"))
        for lines in by_axis.values():
            here = [
                line
                for line in lines
                if any(self.holds(*cell) for _, cell in line.points)
            ]
            found |= sweeps.names(here, called)
        return found

    def flags(self, metric: Metric | None = None) -> tuple[Finding, ...]:
        """Findings that touch this part (and, where a finding names one, the metric): one per check."""
        found = []
        for finding in self.site.findings.where(campaign=self.data.name):
            named = finding.evidence.get("metrics") or [finding.evidence.get("metric")]
            is_meant = metric is None or {None, metric.name} & set(named)
            cells = [cell.split("/") for cell in finding.cells]
            is_here = not cells or any(self.holds(*cell) for cell in cells)
            if finding.severity != "info" and is_meant and is_here:
                found.append(finding)
        return tuple(one_of_each_check(found))

"""The tables of a campaign with readers' words in them: what figures are made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks import Finding
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.names import Names
from sparkpub.review.reviewed import Cell
from sparkpub.review.statistics.estimate import deciding_level
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sweeps
from sparkpub.site.publication import Publication, cell_keys, cell_label, run_address

KEYS = ["model", "environment", "workload"]
"""Of a cell."""
WORDS = ["Model", "Environment", "Load"]
"""What readers call these."""


def column(rows: pd.DataFrame, values: Iterable[Any]) -> "pd.Series[Any]":
    """Values of any type as a column beside these rows."""
    return pd.Series(
        list(values),
        index=rows.index,
        dtype=object,
    )


def records(rows: pd.DataFrame) -> list[dict[Any, Any]]:
    """Rows one by one, None where there is nothing."""
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


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
        here = dict(zip(KEYS, cell, strict=True))
        return all(here[axis] == key for axis, key in self.only.items())

    @cached_property
    def axes(self) -> tuple[tuple[str, ...], ...]:
        """The keys of models, environments and workloads, in the order of the matrix."""
        found = []
        for axis, keys in zip(KEYS, self.data.axes, strict=True):
            found.append(tuple(key for key in keys if self.only.get(axis, key) == key))
        return tuple(found)

    @cached_property
    def cells_here(self) -> dict[Cell, str]:
        """Every cell that is declared or was run, with what a row of a table is called."""
        labels = {}
        for cell in cell_keys(self.data):
            if self.holds(*cell):
                labels[cell] = cell_label(self.names, self.data, cell)
        return labels

    @property
    def records(self) -> list[Record]:
        """The records of this part."""
        return [record for record in self.data.records if self.holds(*record.cell)]

    @property
    def baseline(self) -> str:
        """What readers call the environment that others are compared with."""
        return self.names.environment(self.data.name, self.data.baseline or "")

    def build(self, model: str, environment: str) -> str:
        """What readers call a model as it was served."""
        return self.names.build(self.data.name, model, environment)

    def called(self, environments: Iterable[str]) -> list[str]:
        """What readers call environments."""
        return [self.names.environment(self.data.name, key) for key in environments]

    # ---- The three tables --------------------------------------------------------------------------------------------

    def runs(self, metric: Metric) -> pd.DataFrame:
        """Each run with a value of a metric, in the order of the campaign: the words of its cell, `run, iteration,
        value`, `number` (in the campaign), `counts, reason, href, tip`."""
        rows = _of(metric, self._runs)
        rows = rows.sort_values("number", kind="stable").reset_index(drop=True)
        tips = [self._tip(row, metric) for row in records(rows)]
        return rows.assign(tip=column(rows, tips))

    def cells(self, metric: Metric) -> pd.DataFrame:
        """Each cell with a mean: the words of its cell, `n, p50, trend_slope, runs`, `value` (the mean), `low` and
        `high` (its 95 % interval), `tip`."""
        rows = _of(metric, self._cells)
        tips = []
        for row in records(rows):
            tip = {"cell": row["cell"], "mean": metric.format(row["value"])}
            tip["95 % interval"] = "n too small"
            if row["low"] is not None:
                low = metric.format(row["low"], unit=False)
                tip["95 % interval"] = f"{low} to {metric.format(row['high'])}"
            tips.append(tip | {"n": str(row["n"])})
        return rows.assign(tip=column(rows, tips))

    def worded(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows in the order of the matrix with `row` (their place in it), `Model, Environment, Load`, the names of
        legends and rows, and `cell`, that of tables."""
        known = self.names.campaign(self.data.name).by_axis
        order = list(self.cells_here)
        cells = cells_of(rows)
        rows = rows.assign(
            cell=[self.cells_here[cell] for cell in cells],
            row=[order.index(cell) for cell in cells],
        )
        for axis, name in zip(KEYS, WORDS, strict=True):
            rows[name] = [known[axis].get(key, key) for key in rows[axis]]
        return rows.sort_values("row", kind="stable").reset_index(drop=True)

    def part(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table about cells that belong to this part."""
        mine = table["campaign"] == self.data.name
        for axis, key in self.only.items():
            mine &= table[axis] == key
        rows = table[mine]
        # Categories would carry all that the whole table knows.
        return rows.astype(dict.fromkeys(rows.select_dtypes("category"), object))

    def statistics(self, metric: Metric) -> list[TableRow]:
        """The cells of a metric as sentences take them."""
        rows = self.site.results.cells_of(self.data.name, metric.name)
        return [row for row in rows if self.holds(*row.cell)]

    def compared(self, metric: Metric) -> list[TableRow]:
        """The comparisons of a metric of which both sides are in this part."""
        rows = self.site.results.comparisons_of(self.data.name, metric.name)
        return [
            row
            for row in rows
            if self.holds(row.model, row.candidate, row.workload)
            and self.holds(row.model, row.baseline, row.workload)
        ]

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Every comparison of a leading metric on a scale with a true zero, by metric, what is decided first, and the
        largest difference: `panel` (the metric's label), `name`, `value` (in per cent), `low, high` (the interval that
        decides, at `level` in per cent), and the columns of the table of comparisons."""
        whole = replace(self, only={})
        rows = whole.part(self.site.results.overall)
        rows = whole.worded(rows.assign(environment=rows["candidate"]))
        p = [None if pd.isna(value) else value for value in rows["equivalence_p"]]
        levels = map(deciding_level, rows["verdict"], p)
        rows["level"] = [round(100 * level) for level in levels]
        for end in ("low", "high"):
            narrow, wide = rows[f"ci90_ratio_{end}"], rows[f"ci95_ratio_{end}"]
            rows[end] = 100 * (wide.where(rows["level"] > 90, narrow) - 1)
        rows["value"] = 100 * (rows["ratio"] - 1)
        leading = {metric.name: metric for metric in self.site.headlines(self.data)}
        order = list(leading)
        is_shown = rows["metric"].isin(order) & rows["low"].notna()
        rows = rows[is_shown & rows["ratio"].notna()]
        rows["panel"] = [leading[name].label for name in rows["metric"]]
        rows["name"] = ""
        for _, mine in rows.groupby("metric"):
            rows.loc[mine.index, "name"] = told_apart(mine)
        rows["place"] = [order.index(name) for name in rows["metric"]]
        decided = {"higher": 0, "lower": 0, "equivalent": 2}
        rows["rank"] = rows["verdict"].map(decided).fillna(1)
        rows["size"] = -rows["value"].abs()
        rows = self.part(rows)
        rows = rows.sort_values(["place", "rank", "size"], kind="stable")
        return rows.reset_index(drop=True)

    @cached_property
    def _runs(self) -> pd.DataFrame:
        columns = ["run", "campaign", *KEYS, "iteration", "metric", "value"]
        rows = self.worded(self.part(self.site.results.runs[columns].dropna()))
        runs = self.data.runs
        excluded = self.site.review.excluded
        of_runs = {
            "run": [run.run_id for run in runs],
            "number": range(1, len(runs) + 1),
            "href": [run_address(run) for run in runs],
            "reason": [excluded.get(run.run_id, "") for run in runs],
        }
        rows = rows.merge(pd.DataFrame(of_runs), on="run")
        rows["counts"] = rows["reason"] == ""
        return rows

    @cached_property
    def _cells(self) -> pd.DataFrame:
        called = {"mean": "value", "ci95_low": "low", "ci95_high": "high"}
        others = ["campaign", *KEYS, "metric", "n", "p50", "trend_slope", "runs"]
        rows = self.worded(self.part(self.site.results.cells[[*others, *called]]))
        return rows.rename(columns=called)

    def _tip(self, row: Mapping[str, Any], metric: Metric) -> dict[str, str]:
        """What pointing at a run tells: whole names, whatever the row beside it is called."""
        stored = self.site.dataset.by_id[row["run"]]
        findings = self.site.review.by_run.get(row["run"], ())
        told = {"run": row["run"], "cell": row["cell"]}
        told[metric.label] = metric.format(row["value"])
        warm = stored.record.value("gpu_temp_start_celsius")
        if warm is not None:
            told["°C at start"] = f"{warm:g}"
        told["left out"] = row["reason"]
        told["flags"] = ", ".join(sorted({finding.check for finding in findings}))
        return {name: text for name, text in told.items() if text}

    # ---- What it varies, and what was found --------------------------------------------------------------------------

    @cached_property
    def lines(self) -> dict[sweeps.Line, str]:
        """What the campaign varies in this part, each line with its name among those of its axis."""
        found: dict[sweeps.Line, str] = {}
        called = self.names.campaign(self.data.name)
        by_axis = grouped(self.site.lines(self.data), attrgetter("axis"))
        for mine in by_axis.values():
            here = [
                line
                for line in mine
                if self.only.get("model", line.model) == line.model
                and self.only.get("environment", line.environment) == line.environment
            ]
            found |= sweeps.names(here, called)
        return found

    def flags(self, metric: Metric | None = None) -> tuple[Finding, ...]:
        """Findings that touch this part (and, where a finding names one, the metric): one per check."""
        chosen: dict[str, Finding] = {}
        for finding in self.site.findings_of(self.data):
            named = finding.evidence.get("metrics") or [finding.evidence.get("metric")]
            is_other = metric is not None and not {None, metric.name} & set(named)
            if finding.severity == "info" or is_other:
                continue
            if not finding.cells or any(
                self.holds(*cell.split("/")) for cell in finding.cells
            ):
                chosen.setdefault(finding.check, finding)
        return tuple(chosen.values())

    def sampled(self) -> list[Stored]:
        """The first run with telemetry of each cell."""
        found: dict[Cell, Stored] = {}
        for run in self.data.runs:
            if run.record.file("telemetry") and self.holds(*run.record.cell):
                found.setdefault(run.record.cell, run)
        return list(found.values())


def told_apart(rows: pd.DataFrame) -> list[str]:
    """What tells each row from the others: model and environment where they differ, and of the load what other rows of
    these have otherwise: `32B`, but `7B, CUDA graphs` beside `7B, no CUDA graphs`."""
    varied = [axis for axis in ("Model", "Environment") if rows[axis].nunique() > 1]
    heads = [tuple(row) for row in rows[varied].to_numpy()]
    loads = [load.split(", ") for load in rows["Load"]]
    shared: dict[tuple[str, ...], set[str]] = {}
    for head, load in zip(heads, loads, strict=True):
        shared[head] = shared.get(head, set(load)) & set(load)
    names = []
    for head, load, model in zip(heads, loads, rows["Model"], strict=True):
        own = [part for part in load if part not in shared[head]]
        names.append(", ".join([*head, *own]) or model)
    return names


def _of(metric: Metric, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a metric."""
    return rows[rows["metric"] == metric.name].reset_index(drop=True)

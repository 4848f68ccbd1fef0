"""The tables of a campaign with readers' words in them: what figures are made of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan
from typing import Any

import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record
from sparkpub.record.store import Stored
from sparkpub.review.checks import Finding
from sparkpub.review.dataset import CampaignData
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
    return pd.Series(list(values), index=rows.index, dtype=object)


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows one by one, None where there is nothing."""
    found: list[dict[str, Any]] = []
    for row in rows.to_dict("records"):
        missing = (
            str(name)
            for name, value in row.items()
            if value is pd.NA or (isinstance(value, float) and isnan(value))
        )
        found.append(
            {str(name): value for name, value in row.items()} | dict.fromkeys(missing)
        )
    return found


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

    def words(self, cell: Cell) -> dict[str, str]:
        """The keys of a cell with its names: `model, environment, workload, Model, Environment, Load, cell`."""
        known = self.names.campaign(self.data.name).by_axis
        found = dict(zip(KEYS, cell, strict=True))
        for (axis, key), name in zip(list(found.items()), WORDS, strict=True):
            found[name] = known[axis].get(key, key)
        return {**found, "cell": self.cells_here[cell]}

    @property
    def records(self) -> list[Record]:
        """The records of this part."""
        return [record for record in self.data.records if self.holds(*record.cell)]

    # ---- The three tables --------------------------------------------------------------------------------------------

    def runs(self, metric: Metric, beside: Metric | None = None) -> pd.DataFrame:
        """Each run with a value of a metric, in the order of the campaign, and of another one where asked.

        The words of its cell, `run, iteration, number` (in the campaign), `counts, reason, href, value`, of the other
        metric `x`, and `tip`.
        """
        rows = self._of_metric("_runs", metric)
        if beside is not None:
            other = self._of_metric("_runs", beside)[["run", "value"]]
            rows = rows.merge(other.rename(columns={"value": "x"}), on="run")
        rows = rows.sort_values("number", kind="stable").reset_index(drop=True)
        metrics = [each for each in (metric, beside) if each is not None]
        rows["tip"] = column(rows, [self._tip(row, metrics) for row in records(rows)])
        return rows

    def cells(self, metric: Metric) -> pd.DataFrame:
        """Each cell with a mean: the words of its cell, `n, p50, trend_slope, runs`, `value` (the mean), `low` and
        `high` (its 95 % interval), `tip`."""
        rows = self._of_metric("_cells", metric)
        tips = [
            {
                "cell": row["cell"],
                "mean": metric.format(row["value"]),
                "95 % interval": _interval(metric, row["low"], row["high"]),
                "n": str(row["n"]),
            }
            for row in records(rows)
        ]
        rows["tip"] = column(rows, tips)
        return rows

    def _of_metric(self, table: str, metric: Metric) -> pd.DataFrame:
        rows: pd.DataFrame = getattr(self, table)
        return rows[rows["metric"] == metric.name].reset_index(drop=True)

    def part(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table about cells that belong to this part."""
        mine = table["campaign"] == self.data.name
        for axis, key in self.only.items():
            mine &= table[axis] == key
        return _with_texts(table[mine])

    def statistics(self, metric: Metric) -> list[TableRow]:
        """The cells of a metric as sentences take them."""
        rows = self.site.results.cells_of(self.data.name, metric.name)
        return [row for row in rows if self.holds(*row.cell)]

    def compared(self, metric: Metric) -> list[TableRow]:
        """The comparisons of a metric of which both sides are in this part."""
        found = []
        for row in self.site.results.comparisons_of(self.data.name, metric.name):
            sides = (row.candidate, row.baseline)
            if all(self.holds(row.model, side, row.workload) for side in sides):
                found.append(row)
        return found

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Every comparison of a leading metric on a scale with a true zero, by metric, what is decided first, and the
        largest difference: `panel` (the metric's label), `name`, `value` (in per cent), `low, high` (the interval that
        decides, at `level` in per cent), and the columns of the table of comparisons."""
        found = []
        for metric in self.site.headlines(self.data):
            rows = self._of_baseline
            rows = rows[rows["metric"] == metric.name].assign(panel=metric.label)
            rows["name"] = self._told_apart(rows)
            found.append(rows)
        rows = (
            pd.concat(found) if found else self._of_baseline.assign(panel="", name="")
        )
        rows["rank"] = (
            rows["verdict"].map({"higher": 0, "lower": 0, "equivalent": 2}).fillna(1)
        )
        rows["size"] = -rows["value"].abs()
        rows = self.part(rows)
        order = {
            label: place for place, label in enumerate(dict.fromkeys(rows["panel"]))
        }
        rows["order"] = rows["panel"].map(order)
        rows = rows.sort_values(["order", "rank", "size"], kind="stable").drop(
            columns="order"
        )
        return rows.reset_index(drop=True)

    @cached_property
    def _of_baseline(self) -> pd.DataFrame:
        """The comparisons of the campaign with an interval that decides, in per cent."""
        table = self.site.results.overall
        mine = _with_texts(table[table["campaign"] == self.data.name])
        rows = self._worded(mine.assign(environment=mine["candidate"]))
        told = [
            deciding_level(verdict, None if pd.isna(p) else p)
            for verdict, p in zip(rows["verdict"], rows["equivalence_p"], strict=True)
        ]
        rows["level"] = [round(100 * level) for level in told]
        for end in ("low", "high"):
            wide = rows["level"] > 90
            rows[end] = 100 * (
                rows[f"ci95_ratio_{end}"].where(wide, rows[f"ci90_ratio_{end}"]) - 1
            )
        rows["value"] = 100 * (rows["ratio"] - 1)
        return rows[rows["ratio"].notna() & rows["low"].notna()]

    def _told_apart(self, rows: pd.DataFrame) -> list[str]:
        """What tells each row from the others: model and environment where they differ, and of the load what other rows
        of these have otherwise: `32B`, but `7B, CUDA graphs` beside `7B, no CUDA graphs`."""
        varied = [axis for axis in ("Model", "Environment") if rows[axis].nunique() > 1]
        shared: dict[tuple[str, ...], set[str]] = {}
        loads = [set(load.split(", ")) for load in rows["Load"]]
        alike = [tuple(row) for row in rows[varied].to_numpy()]
        for mine, load in zip(alike, loads, strict=True):
            shared[mine] = shared.get(mine, load) & load
        names = []
        for mine, load, model in zip(alike, rows["Load"], rows["Model"], strict=True):
            own = [part for part in load.split(", ") if part not in shared[mine]]
            names.append(", ".join([*mine, *own]) or model)
        return names

    @cached_property
    def _runs(self) -> pd.DataFrame:
        table = self.site.results.runs
        rows = self._told(
            table[["run", "campaign", *KEYS, "iteration", "metric", "value"]].dropna()
        )
        places = {
            run.run_id: (place, run) for place, run in enumerate(self.data.runs, 1)
        }
        rows["number"] = [places[run][0] for run in rows["run"]]
        rows["href"] = [run_address(places[run][1]) for run in rows["run"]]
        rows["reason"] = [self.site.review.excluded.get(run, "") for run in rows["run"]]
        rows["counts"] = rows["reason"] == ""
        return rows

    @cached_property
    def _cells(self) -> pd.DataFrame:
        columns = [
            "campaign",
            *KEYS,
            "metric",
            "n",
            "mean",
            "ci95_low",
            "ci95_high",
            "p50",
            "trend_slope",
            "runs",
        ]
        rows = self._told(self.site.results.cells[columns])
        return rows.rename(
            columns={"mean": "value", "ci95_low": "low", "ci95_high": "high"}
        )

    def _told(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of this part in the order of the matrix, with `cell, Model, Environment, Load` for readers."""
        rows = self._worded(self.part(table))
        order = {cell: place for place, cell in enumerate(self.cells_here)}
        rows["cell"] = [self.cells_here[cell] for cell in self._keys(rows)]
        places = [order[cell] for cell in self._keys(rows)]
        return (
            rows.assign(row=places)
            .sort_values("row", kind="stable")
            .reset_index(drop=True)
        )

    def _worded(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows with `Model, Environment, Load`: the names that legends and rows have."""
        rows = rows.copy()
        known = self.names.campaign(self.data.name).by_axis
        for axis, column in zip(KEYS, WORDS, strict=True):
            rows[column] = [known[axis].get(key, key) for key in rows[axis]]
        return rows

    @staticmethod
    def _keys(rows: pd.DataFrame) -> list[Cell]:
        return list(zip(*(rows[axis] for axis in KEYS), strict=True))

    def _tip(self, row: Mapping[str, Any], metrics: Sequence[Metric]) -> dict[str, str]:
        """What pointing at a run tells: whole names, whatever the row beside it is called."""
        stored = self.site.dataset.by_id[row["run"]]
        findings = self.site.review.by_run.get(row["run"], ())
        values = zip(metrics, (row["value"], row.get("x")), strict=False)
        warm = stored.record.value("gpu_temp_start_celsius")
        told = {
            "run": row["run"],
            "cell": row["cell"],
            **{metric.label: metric.format(value) for metric, value in values},
            "°C at start": "" if warm is None else f"{warm:g}",
            "left out": row["reason"],
            "flags": ", ".join(sorted({finding.check for finding in findings})),
        }
        return {name: text for name, text in told.items() if text}

    # ---- What it varies, and what was found --------------------------------------------------------------------------

    @cached_property
    def lines(self) -> dict[sweeps.Line, str]:
        """What the campaign varies in this part, each line with its name among those of its axis."""
        found: dict[sweeps.Line, str] = {}
        called = self.names.campaign(self.data.name)
        for axis in sweeps.AXES:
            mine = []
            for line in self.site.lines(self.data):
                here = {"model": line.model, "environment": line.environment}
                if line.axis is axis and all(
                    here.get(at, key) == key for at, key in self.only.items()
                ):
                    mine.append(line)
            found |= sweeps.names(mine, called)
        return found

    def excluded(self, runs: Iterable[str]) -> Mapping[str, str]:
        """Those of these runs that are not in the pooled figures, with the reason."""
        reasons = self.site.review.excluded
        return {run: reasons[run] for run in runs if run in reasons}

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

    def firsts(self, role: str) -> list[Stored]:
        """The first run of each cell that has a file of this role."""
        found: dict[Cell, Stored] = {}
        for run in self.data.runs:
            if run.record.file(role) and self.holds(*run.record.cell):
                found.setdefault(run.record.cell, run)
        return list(found.values())


def _with_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with texts in place of categories, which would carry all that the whole table knows."""
    texts = rows.select_dtypes("category").columns
    return rows.astype(dict.fromkeys(texts, object))


def _interval(metric: Metric, low: float | None, high: float | None) -> str:
    if low is None:
        return "n too small"
    return f"{metric.format(low, unit=False)} to {metric.format(high)}"

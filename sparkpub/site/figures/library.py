"""Every figure there is, by name: what pages and authors ask for, drawn once each.

<metric>            all runs as points, with mean and interval      peak-memory, output-throughput, ...
<metric>-relative   in % from the mean of the baseline
<metric>-bars       means from zero          <metric>-box     box plots
<metric>-order      against run order        <metric>-sweep   against batch size
<metric>-against-<metric>                    one metric against another
comparison, memory-ledger, coverage, gpu-utilisation
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sparkpub.record.errors import SiteError
from sparkpub.record.metrics import Metric
from sparkpub.record.text import listed, percent
from sparkpub.review.checks import Finding
from sparkpub.review.dataset import CampaignData
from sparkpub.review.summary import CellStatistic, ComparisonRow
from sparkpub.site import sentences
from sparkpub.site.content import placeholder
from sparkpub.site.figures import Chart
from sparkpub.site.figures.compile import Drawings
from sparkpub.site.figures.drawn import Entry, Figure, Table, Value
from sparkpub.site.figures.rows import HEAT_RUNS, Row, Rows
from sparkpub.site.figures.scope import Scope
from sparkpub.site.publication import Publication, scope

_UNIT = re.compile(r"_(gib|tok_s|req_s|gflop_s|ms|celsius|watt|joule|percent|mhz)$")
KINDS = ("bars", "box", "order", "sweep")
_TABLES = {"strip": ("runs", "cells"), "bars": ("cells",), "box": ("runs",), "order": ("runs", "trends"),
           "sweep": ("runs", "cells"), "scatter": ("runs",)}  # fmt: skip
_TITLES = {"strip": "{}: every run", "bars": "{}: means", "box": "{}: spread", "order": "{} in run order",
           "sweep": "{} against batch size"}  # fmt: skip
_DRAWN = ("run", "campaign", "model", "environment", "workload", "cell", "iteration", "order", "state", "flags", "href",
          "start_temp", "batch")  # fmt: skip
"""What charts read of a run besides its metrics."""
_AXES = ("run", "campaign", "model", "environment", "workload", "iteration", "order", "state")


def slug(metric: str) -> str:
    """What a metric is called in addresses and in prose: its name without the unit, `peak-memory`."""
    return _UNIT.sub("", metric).replace("_", "-")


class Library:
    """The figures of a publication. Asking for one has it drawn, so that only what is shown gets drawn.

    Without `drawings` figures can be named and not shown.
    """

    def __init__(
        self, publication: Publication, tables: Rows, sources: Mapping[str, str], drawings: Drawings | None = None
    ) -> None:
        self.publication, self.tables, self.sources, self._drawings = publication, tables, sources, drawings
        self.wanted: dict[str, Figure] = {}
        self.pictures: set[str] = set()
        self._makers: dict[str, Mapping[str, Callable[[CampaignData, Scope, str], Figure]]] = {}
        self._made: dict[tuple[Any, ...], Figure] = {}

    def place(self, name: str, campaign: str | None = None, **part: str) -> str:
        """The placeholder of a figure. `part` may name a `model`, an `environment` or a `workload`.

        Raises SiteError naming what there is where the figure, the campaign or the part does not exist.
        """
        return self.add(self.figure(name, campaign, **part))

    def add(self, figure: Figure) -> str:
        """The placeholder of a figure made elsewhere."""
        if figure.key not in self.wanted:
            self.wanted[figure.key] = figure
            if self._drawings is not None:
                self._drawings.want(figure.job)
        return placeholder(figure.block)

    def picture(self, name: str, campaign: str | None = None, **part: str) -> str:
        """Note that a figure is wanted as PNG too, and return its placeholder."""
        text = self.place(name, campaign, **part)
        self.pictures.add(self.figure(name, campaign, **part).key)
        return text

    def figure(self, name: str, campaign: str | None = None, **part: str) -> Figure:
        """A figure by name."""
        known = self._made.get((name, campaign, *sorted(part.items())))
        if known is not None:
            return known
        data = self._campaign(campaign)
        unknown = set(part) - {"model", "environment", "workload"}
        cut = scope(data, **part) if not unknown else None
        if cut is None or not cut.cells:
            wrong = ", ".join(f"{key}={value!r}" for key, value in part.items())
            raise SiteError(f"no cell of campaign {data.name} is {wrong}", remedy="see sparkpub values")
        make = self.makers(data).get(name)
        if make is None:
            near = difflib.get_close_matches(name, self.makers(data), n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.makers(data))}"
            raise SiteError(f"no figure {name!r} for campaign {data.name}", remedy=hint)
        key = "-".join([data.name, name, *part.values()])
        return self._made.setdefault((name, campaign, *sorted(part.items())), make(data, cut, key))

    def _campaign(self, name: str | None) -> CampaignData:
        if name is not None:
            return self.publication.dataset.campaign(name)
        if not self.publication.campaigns:
            raise SiteError("there is no campaign to draw", remedy="collect or import one")
        return self.publication.campaigns[0]

    def makers(self, campaign: CampaignData) -> Mapping[str, Callable[[CampaignData, Scope, str], Figure]]:
        """Name to what makes the figure, for one campaign."""
        if campaign.name not in self._makers:
            self._makers[campaign.name] = self._makers_of(campaign)
        return self._makers[campaign.name]

    def _makers_of(self, campaign: CampaignData) -> Mapping[str, Callable[[CampaignData, Scope, str], Figure]]:
        found: dict[str, Callable[[CampaignData, Scope, str], Figure]] = {}
        metrics = self.publication.metrics(campaign)
        batches = {row.get("batch") for row in self.tables["runs"] if row["campaign"] == campaign.name} - {None}
        for metric in metrics:
            for kind in ("strip", *KINDS):
                if kind != "sweep" or len(batches) > 1:
                    name = slug(metric.name) + ("" if kind == "strip" else f"-{kind}")
                    found[name] = _bound(self._metric_figure, kind, metric)
            if any(row.difference_percent is not None for row in self._compared(campaign, metric)):
                found[f"{slug(metric.name)}-relative"] = _bound(self._relative, metric)
            for other in metrics:
                if other is not metric:
                    found[f"{slug(other.name)}-against-{slug(metric.name)}"] = _bound(self._scatter, metric, other)
        for name, (table, make) in self._whole().items():
            if any(row["campaign"] == campaign.name for row in self.tables[table]):
                found[name] = make
        return found

    def _whole(self) -> Mapping[str, tuple[str, Callable[[CampaignData, Scope, str], Figure]]]:
        return {
            "comparison": ("comparisons", self._comparison),
            "memory-ledger": ("ledger", self._ledger),
            "coverage": ("slots", self._coverage),
            "gpu-utilisation": ("heat", self._heat),
        }

    def _compared(self, campaign: CampaignData, metric: Metric) -> Sequence[ComparisonRow]:
        return self.publication.comparisons.get((campaign.name, metric.name), ())

    def _cells(self, cut: Scope, metric: Metric) -> list[CellStatistic]:
        return [
            cell
            for cell in self.publication.cells.get((cut.campaign, metric.name), ())
            if cell.model in cut.models and cell.environment in cut.environments and cell.workload in cut.workloads
        ]

    def _rows(self, names: Sequence[str], cut: Scope) -> Rows:
        return {name: [row for row in self._of_campaign[name].get(cut.campaign, ()) if _inside(row, cut)]
                for name in names}  # fmt: skip

    @cached_property
    def _of_campaign(self) -> Mapping[str, Mapping[str, Sequence[Row]]]:
        found: dict[str, dict[str, list[Row]]] = {name: {} for name in self.tables}
        for name, rows in self.tables.items():
            for row in rows:
                found[name].setdefault(row["campaign"], []).append(row)
        return found

    def _excluded(self, rows: Sequence[Row], field: str) -> Mapping[str, str]:
        out = self.publication.review.excluded
        return {row["run"]: out[row["run"]] for row in rows if row["run"] in out and row.get(field) is not None}

    def _metric_figure(self, kind: str, metric: Metric, data: CampaignData, cut: Scope, key: str) -> Figure:
        rows = _about(self._rows(_TABLES[kind], cut), metric)
        cells = self._cells(cut, metric)
        compared = [row for row in self._compared(data, metric)
                    if row.model in cut.models and row.workload in cut.workloads
                    and {row.candidate, row.baseline} <= set(cut.environments)]  # fmt: skip
        runs = [row for row in self._rows(("runs",), cut)["runs"] if row.get(metric.name) is not None]
        return self._of(
            key,
            Chart(kind, (cut, metric)),
            rows,
            metric,
            title=_TITLES[kind].format(metric.label),
            says=sentences.of_kind(kind, metric, compared, cells),
            sample=sentences.sample(cells, self._excluded(runs, metric.name)),
            table=_cell_table(metric, cells, runs, cut, kind),
            rows=[{**{name: row.get(name) for name in _AXES}, metric.name: row[metric.name]} for row in runs],
            about={"metric": metric.name, "unit": metric.unit, "definition": metric.definition},
        )

    def _relative(self, metric: Metric, data: CampaignData, cut: Scope, key: str) -> Figure:
        rows = _about(self._rows(("runs",), cut), metric)
        pair, cells = self._compared(data, metric)[0], self._cells(cut, metric)
        margin = pair.equivalence_margin_percent
        means = {(cell.model, cell.workload): cell.mean for cell in cells if cell.environment == pair.baseline}
        shown = [
            {**{name: row.get(name) for name in (*_AXES, "cell")}, metric.name: row[metric.name],
             "percent": 100 * (row[metric.name] / means[row["model"], row["workload"]] - 1)}
            for row in rows["runs"] if row.get(metric.name) is not None and (row["model"], row["workload"]) in means
        ]  # fmt: skip
        by_cell: dict[str, list[float]] = {}
        farthest: dict[str, float] = {}
        several = len({row["workload"] for row in shown}) > 1
        for row in shown:
            by_cell.setdefault(row["cell"], []).append(row["percent"])
            part = f"{row['model']} ({row['workload']})" if several else row["model"]
            farthest[part] = max(farthest.get(part, 0.0), abs(row["percent"]))
        bounds = listed(f"{percent(far).lstrip('+')} for {part}" for part, far in farthest.items())
        return self._of(
            key, Chart("relative", (cut, metric, pair.baseline, margin)), rows, metric,
            title=f"{metric.label}: every run against {pair.baseline}",
            says=f"Single runs differ from the mean in {pair.baseline} by at most {bounds}; the band is ±{margin:g} %.",
            sample=sentences.sample(cells, self._excluded(rows["runs"], metric.name)),
            table=Table(("Cell", "n", "Least", "Mean", "Most"), [
                [cell, str(len(found)), *(percent(value, 2)
                                          for value in (min(found), sum(found) / len(found), max(found)))]
                for cell in cut.cells if (found := by_cell.get(cell))]),
            rows=shown,
        )  # fmt: skip

    def _scatter(self, across: Metric, up: Metric, data: CampaignData, cut: Scope, key: str) -> Figure:
        rows = _about(self._rows(("runs",), cut), across, up)
        both = [row for row in rows["runs"] if row.get(across.name) is not None and row.get(up.name) is not None]
        derived = across.name in up.derived_from or up.name in across.derived_from
        return self._of(
            key, Chart("scatter", (cut, across, up)), rows,
            title=f"{up.label} against {across.within_sentence}",
            says=f"Each point is a run: {across.within_sentence} across, {up.within_sentence} up."
            + (" One is computed from the other, so they are one piece of evidence." if derived else ""),
            sample=f"n = {len(both)} runs of campaign {data.name}.",
            table=Table(("Run", across.label, up.label), [
                [Entry(row["run"], row["href"]), across.format(row[across.name]), up.format(row[up.name])]
                for row in both]),
            rows=[{**{name: row.get(name) for name in _AXES}, across.name: row[across.name], up.name: row[up.name]}
                  for row in both],
        )  # fmt: skip

    def _comparison(self, data: CampaignData, cut: Scope, key: str) -> Figure:
        rows = self._rows(("comparisons",), cut)
        shown = rows["comparisons"]
        verdicts = [row["verdict"] for row in shown]
        count = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))
        return self._of(
            key, Chart("forest", (cut, data.margin_percent)), rows,
            narrow=Chart("forest", (cut, data.margin_percent, True)),
            title="Difference from the baseline",
            says=f"Difference of each model in {listed(row['environment'] for row in shown)} from the"
            f" baseline, with 95 % interval: {count}. The band is ±{data.margin_percent:g} %: inside it the two are"
            " equivalent.",
            sample="Verdicts are corrected for the number of comparisons (Holm).",
            table=Table(("Comparison", "Difference", "95 % interval", "p, adjusted", "Verdict"), [
                [row["label"], percent(row["percent"]),
                 f"{percent(row['lo'])} to {percent(row['hi'])}",
                 "n/a" if row["p"] is None else f"{row['p']:.2g}", row["verdict"]] for row in shown]),
            rows=shown,
        )  # fmt: skip

    def _ledger(self, data: CampaignData, cut: Scope, key: str) -> Figure:
        rows = self._rows(("ledger",), cut)
        shown = rows["ledger"]
        parts = list(dict.fromkeys(row["part"] for row in shown))
        missing = [part for part in ("weights", "page cache") if part not in parts]
        by_cell = {row["cell"]: row for row in shown}
        return self._of(
            key, Chart("ledger", (cut, tuple(parts))), rows,
            narrow=Chart("ledger", (cut, tuple(parts), True)),
            title="Where memory went",
            says="Memory of the whole machine at the peak of one run of each cell, the middle one by free memory."
            + (f" These records do not say what was {listed(missing)}." if missing else ""),
            sample=f"{len(by_cell)} runs of campaign {data.name}, one of each cell.",
            table=Table(("Cell", "Run", *(f"{part} (GiB)" for part in parts)), [
                [cell, Entry(row["run"], row["href"]), *(
                    next((f"{r['gib']:.2f}" for r in shown if r["cell"] == cell and r["part"] == part), "unknown")
                    for part in parts)] for cell, row in by_cell.items()]),
            rows=shown,
        )  # fmt: skip

    def _coverage(self, data: CampaignData, cut: Scope, key: str) -> Figure:
        rows = self._rows(("slots",), cut)
        states = [row["state"] for row in rows["slots"]]
        count = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        cells = {cell: [row for row in rows["slots"] if row["cell"] == cell] for cell in cut.cells}
        return self._of(
            key, Chart("coverage", (cut,)), rows,
            title="What was planned and what was done",
            says=f"Of {len(states)} runs of campaign {data.name}: {count}.",
            sample="● done, × failed, ◘ quarantined, ○ missing; + where an iteration was recorded more than once.",
            table=Table(("Cell", "Iterations"), [
                [cell, [Entry(f"{row['iteration']} {row['glyph']}", row.get("href", "")) for row in found]]
                for cell, found in cells.items()]),
            rows=[{key: value for key, value in row.items() if key != "glyph"} for row in rows["slots"]],
        )  # fmt: skip

    def _heat(self, data: CampaignData, cut: Scope, key: str) -> Figure:
        rows = self._rows(("heat",), cut)
        by_run: dict[str, list[Row]] = {}
        for row in rows["heat"]:
            by_run.setdefault(row["run"], []).append(row)
        return self._of(
            key, Chart("heat", (cut,)), rows,
            title="GPU utilisation over time",
            says="One row per run, from launch to exit: the darker, the busier the GPU.",
            sample=f"{len(by_run)} of {len(data.runs)} runs of campaign {data.name}"
            + (": the first iteration of each cell." if len(data.runs) > HEAT_RUNS else ", those with telemetry."),
            table=Table(("Run", "Seconds", "Mean utilisation"), [
                [Entry(run, found[0]["href"]), f"{found[-1]['end']:.0f}",
                 f"{sum(row['percent'] for row in found) / len(found):.1f} %"] for run, found in by_run.items()]),
            rows=rows["heat"],
        )  # fmt: skip

    def _of(self, key: str, chart: Chart, shared: Rows, metric: Metric | None = None, **what: Any) -> Figure:
        """A figure that shows rows of the site's shared tables, with the findings on its scope."""
        sources = {name: self.sources[name] for name in shared if name in self.sources}
        found = flags(self.publication, chart.subject[0], metric)
        return Figure(key=key, chart=chart, data=shared, sources=sources, flags=found, **what)


def flags(publication: Publication, cut: Scope, metric: Metric | None = None) -> tuple[Finding, ...]:
    """Findings that touch the cells of a scope (and, where a finding names one, the metric): one per check."""
    chosen: dict[str, Finding] = {}
    for finding in publication.review.findings:
        named = finding.evidence.get("metric")
        if (
            finding.campaign != cut.campaign
            or finding.severity == "info"
            or (metric and named not in (None, metric.name))
        ):
            continue
        cells = [cell.split("/") for cell in finding.cells]
        if not cells or any(m in cut.models and e in cut.environments and w in cut.workloads for m, e, w in cells):
            chosen.setdefault(finding.check, finding)
    return tuple(chosen.values())


def _about(rows: Rows, *metrics: Metric) -> Rows:
    """Rows without what other metrics say, so that a changed figure draws only its own charts anew."""
    names = {metric.name for metric in metrics}
    kept = names | set(_DRAWN)
    return {
        table: [{key: value for key, value in row.items() if key in kept} for row in found]
        if table == "runs"
        else [row for row in found if row["metric"] in names]
        for table, found in rows.items()
    }


def _bound(make: Callable[..., Figure], *first: Any) -> Callable[[CampaignData, Scope, str], Figure]:
    return lambda data, cut, key: make(*first, data, cut, key)


def _inside(row: Row, cut: Scope) -> bool:
    return row["model"] in cut.models and row["environment"] in cut.environments and row["workload"] in cut.workloads


def _cell_table(metric: Metric, cells: Sequence[CellStatistic], runs: Sequence[Row], cut: Scope, kind: str) -> Table:
    """A row per cell, with every run where the chart is about single runs; those of all runs lead to them."""
    head = ("Cell", "n", f"Mean ({metric.unit})" if metric.unit else "Mean", "95 % interval", "sd", "Median", "Runs")
    by_cell = {(cell.model, cell.environment, cell.workload): cell for cell in cells}
    body: list[Sequence[Value]] = []
    for label in cut.cells:
        mine = [row for row in runs if row["cell"] == label]
        links = [Entry(metric.format(r[metric.name], unit=False), r["href"] if kind == "strip" else "") for r in mine]
        cell = by_cell.get((mine[0]["model"], mine[0]["environment"], mine[0]["workload"])) if mine else None
        if cell is None:
            body.append([label, "0", "not available", "", "", "", links])
            continue
        interval = "n too small" if cell.ci95 is None else " to ".join(metric.format(x, unit=False) for x in cell.ci95)
        body.append([label, str(cell.n), metric.format(cell.mean, unit=False), interval,
                     "n/a" if cell.sd is None else metric.format(cell.sd, unit=False),
                     metric.format(cell.p50, unit=False), links])  # fmt: skip
    return Table(head, body) if kind in ("strip", "order") else Table(head[:-1], [row[:-1] for row in body])

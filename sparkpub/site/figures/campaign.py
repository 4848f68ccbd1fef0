"""The figures of a campaign's metrics: a question to its tables, a shape, a sentence, a table."""

from collections import Counter

import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted, outward, percent
from sparkpub.review.names import told_apart
from sparkpub.review.reviewed import Cell
from sparkpub.review.sweeps import Axis
from sparkpub.site import sentences
from sparkpub.site.figures import said, shapes
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.figure import Entry, Figure, Table, Value, chart, table_of
from sparkpub.site.figures.theme import axis_title, metric_title
from sparkpub.site.study import KEYS, StudiedCampaign, cells_of, column, records

MOST_ROWS, MOST_PANELS, LEAST_ROWS = 24, 8, 4
"""Rows of a chart in all its panels, about a screen; its panels; and the rows of one that many others stand beside."""
MOST_LINES = 6
"""So many lines are told apart by colour and shape; further ones are in the table."""
FEWEST_STEPS = 6
"""Of a metric's last digit that an axis spans at least: it would spread the rounding errors of equal values."""
MOST_BEYOND = 1.3
"""An axis of bars ends at the latest at so many times the largest mean: the interval of two runs can be ten times."""
WHISKER = 1.5
"""A box's lines reach to the last run within so many times the distance of its quartiles (Tukey 1977)."""


def every_run(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory`: every run of a metric, the mean of each cell and its interval."""
    table = _table_of_cells(campaign, metric)
    return _dots(campaign, metric, campaign.cells(metric), table)


def box(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-box`: every run, the median of each cell, its quartiles and the ends of its whiskers."""
    runs = campaign.runs(metric)
    by_cell = runs[runs["counts"]].groupby(KEYS, sort=False)["value"]
    cells = campaign.worded(by_cell.describe().reset_index())
    quartiles = {"25%": "low", "50%": "value", "75%": "high"}
    cells = cells.rename(columns=quartiles)
    if cells["count"].max() > 1:  # one run has no quartiles
        cells = cells[cells["count"] > 1]
    inside = runs[runs["counts"]].merge(cells[[*KEYS, "low", "high"]], on=KEYS)
    reach = WHISKER * (inside["high"] - inside["low"])
    is_near = inside["value"].between(inside["low"] - reach, inside["high"] + reach)
    whiskers = inside[is_near].groupby(KEYS, sort=False)["value"]
    ends = whiskers.agg(least="min", most="max").reset_index()
    cells = cells.merge(ends, on=KEYS)
    shown = ("least", "low", "value", "high", "most")
    told = [
        [row["cell"], f"{row['count']:g}"]
        + [metric.format(row[end], unit=False) for end in shown]
        for row in records(cells)
    ]
    median = axis_title("Median", metric.unit)
    heads = ("Lower end", "Lower quartile", median, "Upper quartile", "Upper end")
    note = (
        f" Boxes are quartiles, lines the ends within {WHISKER} times their distance."
    )
    return _dots(campaign, metric, cells, Table(("Cell", "n", *heads), told), note)


def _dots(
    campaign: StudiedCampaign,
    metric: Metric,
    cells: pd.DataFrame,
    table: Table,
    note: str = "",
) -> Figure:
    """Cells with their runs."""
    runs = campaign.runs(metric).assign(kind="run")
    rows = pd.concat([cells.assign(kind="mean", first=_first(metric, cells)), runs])
    rows, groups, more = placed(campaign, rows)
    return Figure(
        says=_headline(campaign, metric),
        chart=chart(
            shapes.dots,
            _with_room(metric, rows),
            title=metric_title(metric),
            groups=groups,
        ),
        table=table,
        sample=_sample(campaign, metric, note + more),
    )


def relative(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-relative`: every run in per cent of the baseline's mean, so that cells of any size compare.

    The zero is the mean of the runs that are shown, not that of the cell, in which a machine counts by its error.
    """
    sides = ["model", "workload"]
    pairs = campaign.site.results.comparisons_of(campaign.data.name, metric.name)
    compared = pd.DataFrame({(row.model, row.workload) for row in pairs}, columns=sides)
    runs = campaign.runs(metric).merge(compared)
    is_baseline = runs["counts"] & (runs["environment"] == campaign.data.baseline)
    means = runs[is_baseline].groupby(sides)["value"].mean().rename("base")
    runs = runs.join(means, on=sides, how="inner").assign(kind="run")
    runs["first"] = _first(metric, runs)
    runs["value"] = 100 * (runs["value"] / runs["base"] - 1)
    for tip, share in zip(runs["tip"], runs["value"], strict=True):
        tip["% from the baseline's mean"] = percent(share, 2)
    margin = campaign.data.margin_percent
    rows, groups, more = placed(campaign, runs)
    by_cell = runs[runs["counts"]].groupby(KEYS, sort=False)["value"]
    cells = by_cell.agg(["size", "min", "mean", "max"]).reset_index()
    told = [
        [row["cell"], str(row["size"])]
        + [percent(row[end], 2) for end in ("min", "mean", "max")]
        for row in records(campaign.worded(cells))
    ]
    return Figure(
        says=said.farthest(runs, campaign.baseline),
        chart=chart(
            shapes.dots,
            rows,
            title=f"% from {sentences.mean_of(campaign.baseline)}",
            groups=groups,
            band=margin,
            shared=True,
        ),
        table=Table(("Cell", "n", "Least", "Mean", "Most"), told),
        sample=_sample(campaign, metric, f" The band is ±{margin:g} %.{more}", runs),
    )


def bars(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-bars`: means from zero with their intervals, the best first."""
    cells = campaign.cells(metric)
    means, top = cells["value"], None
    if means.min() >= 0 and means.max() > 0:
        top = min(cells[["value", "high"]].max().max(), MOST_BEYOND * means.max())
    rows, groups, note = placed(campaign, cells.assign(first=_first(metric, cells)))
    return Figure(
        says=sentences.means(campaign.names, metric, campaign.statistics(metric)),
        chart=chart(
            shapes.bars, rows, title=metric_title(metric), groups=groups, top=top
        ),
        table=_table_of_cells(campaign, metric),
        sample=_sample(campaign, metric, note),
    )


def comparison(campaign: StudiedCampaign) -> Figure:
    """`comparison`: each leading metric's difference from the baseline, what is decided first."""
    rows, margin = campaign.differences, campaign.data.margin_percent
    told = []
    for row in records(rows):
        low, high = outward(row["low"], row["high"])
        p = row["p_adjusted"]
        told.append(
            {
                "Metric": row["panel"],
                "Comparison": row["name"],
                "Difference": percent(row["value"]),
                "Deciding interval": f"{percent(low)} to {percent(high)}",
                "p of a difference, adjusted": "n/a" if p is None else f"{p:.2g}",
                "Verdict": row["verdict"],
            }
        )
    by_panel = rows.assign(tip=column(rows, told)).groupby("panel", sort=False)
    drawn = by_panel.head(_room(by_panel.ngroups))
    note = (
        f"Lines are the intervals that decide, at 90 % for equivalent and undecided, else at 95 %; the band is "
        f"±{margin:g} %. Verdicts are corrected for the number of comparisons (Holm)."
    )
    if len(drawn) < len(rows):
        note += f" {len(drawn)} of {len(rows)} are drawn, the largest differences first; the table has all."
    return Figure(
        says=said.verdicts(rows, campaign.baseline, margin),
        chart=difference_chart(drawn, margin),
        table=table_of(told),
        sample=note,
    )


def difference_chart(rows: pd.DataFrame, margin: float) -> Chart:
    """Differences in per cent of the baseline, by metric. One without an interval keeps its place among the others."""
    low, high = (rows[end].fillna(rows["value"]) for end in ("low", "high"))
    title = "Difference in % of the baseline"
    return chart(
        shapes.forest, rows.assign(low=low, high=high), title=title, band=margin
    )


def along(campaign: StudiedCampaign, metric: Metric, axis: Axis) -> Figure:
    """`output-throughput-sweep`, `-by-depth` and the like: a metric along what a campaign varies."""
    found = said.curves(campaign, axis, metric)
    # Of too many lines those of the load that was measured most, so that they compare.
    alike = Counter(curve.line.held for curve in found)
    best = sorted(found, key=lambda curve: -alike[curve.line.held])[:MOST_LINES]
    # In the campaign's order, so that a line has one colour whatever the metric.
    shown = [line for line in campaign.lines if any(line is one.line for one in best)]
    parts = [campaign.lines[line].split(", ") for line in shown]
    groups = dict(zip(shown, told_apart(parts), strict=True))
    points = [
        (*cell, at, curve.name, groups.get(curve.line))
        for curve in found
        for at, cell in curve.line.points
    ]
    places = pd.DataFrame(points, columns=[*KEYS, "x", "line", "group"])
    means = places.merge(campaign.cells(metric), on=KEYS).assign(kind="mean")
    runs = campaign.runs(metric).merge(places, on=KEYS).assign(kind="run")
    first, note = found[0], ""
    told = []
    for row in records(means):
        told.append({"Line": row["line"], first.line.title: f"{row['x']:,g}"})
        told[-1] |= {name: text for name, text in row["tip"].items() if name != "Cell"}
    if first.line.held and len(alike) == 1:
        note = f" All with {first.line.held}."
    if len(found) > MOST_LINES:
        note += f" {MOST_LINES} of {len(found)} lines are drawn, the best of one load; the table has all."
    rows = pd.concat([means, runs]).dropna(subset="group")
    return Figure(
        says=said.growing(metric, found),
        chart=chart(
            shapes.lines,
            _with_room(metric, rows),
            across=first.line.title,
            up=metric_title(metric),
            groups=list(groups.values()),
            legend="Line",
            ticks=[float(at) for at in sorted(rows["x"].unique())],
            knee=first.knee if len(found) == 1 else None,
        ),
        table=table_of(told),
        sample=_sample(campaign, metric, note, places),
    )


def in_order(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-order`: a metric against the order of the runs, and both ends of each cell's Theil-Sen line through
    the medians (Conover 1980)."""
    runs, cells = campaign.runs(metric), campaign.cells(metric)
    places = runs.set_index("run")["number"]
    cells = cells[cells["trend_slope"].notna() & (cells["n"] > 2)]
    half = cells["trend_slope"] * (cells["n"] - 1) / 2
    begin = cells.assign(x=cells["runs"].str[0].map(places), value=cells["p50"] - half)
    end = cells.assign(x=cells["runs"].str[-1].map(places), value=cells["p50"] + half)
    trends = pd.concat([begin, end]).assign(kind="mean")
    rows = pd.concat([trends, runs.assign(kind="run", x=runs["number"])])
    groups = list(dict.fromkeys(rows["cell"]))
    return Figure(
        says=said.drift(campaign, metric) or _headline(campaign, metric),
        chart=chart(
            shapes.lines,
            _with_room(metric, rows.assign(group=rows["cell"])),
            across="Run order in the campaign",
            up=metric_title(metric),
            groups=groups,
            legend="Cell",
        ),
        table=_table_of_cells(campaign, metric),
        sample=_sample(campaign, metric),
    )


def has_order(campaign: StudiedCampaign, metric: Metric) -> bool:
    """Whether a cell has runs enough for a line."""
    cells = campaign.statistics(metric)
    return any(cell.trend_slope is not None and cell.n > 2 for cell in cells)


def against(campaign: StudiedCampaign, up: Metric, across: Metric) -> Figure:
    """`kv-cache-against-peak-memory`: two metrics of the same runs."""
    others = campaign.runs(across).rename(columns={"value": "x"})[["run", "x"]]
    runs = campaign.runs(up).merge(others, on="run").assign(kind="run")
    told: list[dict[str, Value]] = []
    for row in records(runs):
        row["tip"][across.label] = across.format(row["x"])
        told.append(
            {
                "Run": Entry(row["run"], row["href"]),
                across.label: across.format(row["x"]),
                up.label: up.format(row["value"]),
            }
        )
    says = f"{up.subject} and {across.within_sentence} of {counted(len(runs), 'run')}."
    if across.name in up.derived_from or up.name in across.derived_from:
        says += " One metric is computed from the other, so this is no independent evidence."
    rows = _with_room(up, runs.assign(group=runs["Environment"]))
    return Figure(
        says=says,
        chart=chart(
            shapes.points,
            _with_room(across, rows, "x"),
            across=metric_title(across),
            up=metric_title(up),
            groups=campaign.environments,
        ),
        table=table_of(told),
        sample="Each point is a run.",
    )


# ---- Rows and their places -------------------------------------------------------------------------------------------


def _first(metric: Metric, rows: pd.DataFrame) -> "pd.Series[float]":
    """What sorts the best rows before others."""
    return rows["value"] if metric.direction == "lower" else -rows["value"]


def placed(
    campaign: StudiedCampaign, rows: pd.DataFrame, *, beside: bool = True
) -> tuple[pd.DataFrame, list[str], str]:
    """Rows in their places: a `panel` for each load and in it a row by `name`, that with the least of `first` first, as
    far as there is room; the environments that share the row of a model as `group`; and a note of what there is no room
    for. Environments that are not to stand `beside` each other have a row each.
    """
    rows = rows.assign(panel=rows["Load"], name=rows["Model"])
    groups = []
    if rows["Environment"].nunique() > 1:
        if rows["Model"].nunique() == 1:
            rows["name"] = rows["Environment"]
        elif beside:
            rows["group"] = rows["Environment"]
            used = set(rows["group"])
            groups = [name for name in campaign.environments if name in used]
        else:
            rows["name"] = rows["Model"] + ", " + rows["Environment"]
    rows["first"] = rows.groupby(["panel", "name"])["first"].transform("min")
    rows["load"] = rows["workload"].map(campaign.data.axes[2].index)
    rows = rows.sort_values(["load", "first"], kind="stable")
    names = rows.drop_duplicates(["panel", "name"])
    panels = list(dict.fromkeys(names["panel"]))[:MOST_PANELS]
    by_panel = names[names["panel"].isin(panels)].groupby("panel", sort=False)
    has_room = by_panel.head(_room(len(panels)))[["panel", "name"]]
    shown, note = rows.merge(has_room), ""
    number, of = (len(each.drop_duplicates(KEYS)) for each in (shown, rows))
    if number < of:
        note = f" {number} of {of} cells are drawn, the first of each panel; the table has all."
    if len(panels) < 2:
        shown = shown.drop(columns="panel")
    return shown, groups, note


def _room(panels: int) -> int:
    """How many rows each of so many panels may have."""
    return max(MOST_ROWS // max(panels, 1), LEAST_ROWS)


def _with_room(
    metric: Metric, rows: pd.DataFrame, column: str = "value"
) -> pd.DataFrame:
    """The rows, and behind them what the axis of each panel has to show at least, where its values are equal or nearly
    so: it would number them with digits that nobody measured."""
    reach, room = FEWEST_STEPS * 10.0**-metric.decimals, []
    panels = [each for _, each in rows.groupby("panel")] if "panel" in rows else [rows]
    for mine in panels:
        low, high = mine[column].min(), mine[column].max()
        if high - low < reach:
            least = max((low + high - reach) / 2, metric.minimum)
            for end in (least, (low + high + reach) / 2):
                shown = {"kind": "room", column: round(end, metric.decimals)}
                room.append(mine.head(1).assign(**shown))
    return pd.concat([rows, *room])


# ---- Sentence and table ----------------------------------------------------------------------------------------------


def _headline(campaign: StudiedCampaign, metric: Metric) -> str:
    """What differs, or else the best and the worst."""
    names = campaign.names
    compared = sentences.headline(names, metric, campaign.compared(metric))
    return compared or sentences.means(names, metric, campaign.statistics(metric))


def _sample(
    campaign: StudiedCampaign,
    metric: Metric,
    note: str = "",
    only: pd.DataFrame | None = None,
) -> str:
    """How many runs stand behind the figures (of these cells only), what is left out, and what prompts they had."""
    cells = set(campaign.cells_here if only is None else cells_of(only))
    statistics = [row for row in campaign.statistics(metric) if row.cell in cells]
    reasons = {
        row["run"]: row["excluded"]
        for row in records(campaign.runs(metric))
        if row["excluded"] and tuple(row[key] for key in KEYS) in cells
    }
    about = sentences.about_prompts(metric, campaign.records)
    return f"{sentences.sample(statistics, reasons)}{note} {about}".strip()


def _table_of_cells(campaign: StudiedCampaign, metric: Metric) -> Table:
    """Cells with the statistics of a metric and links to their runs."""
    measured = campaign.runs(metric)
    head = "Runs" if measured["counts"].all() else "Runs (in brackets: left out)"
    entries: dict[Cell, list[Entry]] = {}
    for row, cell in zip(records(measured), cells_of(measured), strict=True):
        words = metric.format(row["value"], unit=False)
        text = words if row["counts"] else f"({words})"
        entries.setdefault(cell, []).append(Entry(text, row["href"]))
    cells = campaign.cells(metric)
    told = zip(cells["tip"], cells_of(cells), strict=True)
    return table_of([{**tip, head: entries[cell]} for tip, cell in told])

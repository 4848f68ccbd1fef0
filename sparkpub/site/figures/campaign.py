"""The figures of a campaign's metrics: a question to its tables, a shape, a sentence, a table."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.record.text import counted, outward, percent
from sparkpub.review.names import told_apart
from sparkpub.review.reviewed import Cell
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences
from sparkpub.site.figures import said, shapes
from sparkpub.site.figures.figure import (
    Entry,
    Figure,
    Heads,
    TableLine,
    chart,
    telling,
)
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
DIFFERENCE = "Difference in % of the baseline"
WHISKER = 1.5
"""A box's lines reach to the last run within so many times the distance of its quartiles (Tukey 1977)."""


# ---- A row for each cell ---------------------------------------------------------------------------------------------


def every_run(
    campaign: StudiedCampaign, _: Sequence[TableRow], metric: Metric
) -> Figure:
    """`peak-memory`: every run of a metric, the mean of each cell and its interval."""
    return _with_runs(campaign, metric, campaign.cells(metric))


def box(campaign: StudiedCampaign, _: Sequence[TableRow], metric: Metric) -> Figure:
    """`peak-memory-box`: every run, the median of each cell, its quartiles and the ends of its whiskers."""
    runs = campaign.runs(metric)
    by_cell = runs[runs["counts"]].groupby(KEYS, sort=False)["value"]
    cells = campaign.worded(by_cell.apply(_box).unstack().reset_index())
    if cells["n"].max() > 1:  # one run has no quartiles
        cells = cells[cells["n"] > 1]
    form = partial(metric.format, unit=False)
    heads: Heads = {
        "Cell": ("cell", str),
        "n": ("n", "{:g}".format),
        "Lower end": ("least", form),
        "Lower quartile": ("low", form),
        axis_title("Median", metric.unit): ("value", form),
        "Upper quartile": ("high", form),
        "Upper end": ("most", form),
    }
    cells = telling(cells, heads)
    note = f"Boxes are quartiles, lines the ends within {WHISKER} times their distance."
    made = _with_runs(campaign, metric, cells)
    return replace(made, table=[*cells["tip"]], note=note)


def _box(values: "pd.Series[float]") -> "pd.Series[float]":
    low, middle, high = values.quantile([0.25, 0.5, 0.75])
    reach = WHISKER * (high - low)
    inside = values[values.between(low - reach, high + reach)]
    ends = {"least": inside.min(), "most": inside.max()}
    return pd.Series(
        {"n": len(values), "low": low, "value": middle, "high": high} | ends
    )


def _with_runs(
    campaign: StudiedCampaign, metric: Metric, cells: pd.DataFrame
) -> Figure:
    """Cells with their runs."""
    means = cells.assign(kind="mean", first=_first(metric, cells))
    rows = pd.concat([means, campaign.runs(metric).assign(kind="run")])
    shape = partial(shapes.dots, title=metric_title(metric))
    return _of_cells(campaign, metric, shape, rows, spaced=True)


def relative(
    campaign: StudiedCampaign, pairs: Sequence[TableRow], metric: Metric
) -> Figure:
    """`peak-memory-relative`: every run in per cent of the baseline's mean, so that cells of any size compare.

    The zero is the mean of the runs that are shown, not that of the cell, in which a machine counts by its error.
    """
    sides = ["model", "workload"]
    compared = {(row.model, row.workload) for row in pairs}
    runs = campaign.runs(metric).merge(pd.DataFrame([*compared], columns=sides))
    is_baseline = runs["counts"] & (runs["environment"] == campaign.data.baseline)
    means = runs[is_baseline].groupby(sides)["value"].mean().rename("base")
    runs = runs.join(means, on=sides, how="inner")
    shares = 100 * (runs["value"] / runs["base"] - 1)
    told = zip(runs["tip"], shares, strict=True)
    head = "% from the baseline's mean"
    tips = [{**tip, head: percent(share, 2)} for tip, share in told]
    first, tip = _first(metric, runs), column(runs, tips)
    rows = runs.assign(kind="run", first=first, value=shares, tip=tip)
    margin = campaign.data.margin_percent
    title = f"% from {sentences.mean_of(campaign.baseline)}"
    shape = partial(shapes.dots, title=title, band=margin)
    made = _of_cells(campaign, metric, shape, rows, only=rows)
    says = said.farthest(rows, campaign.baseline)
    return replace(made, says=says, note=f"The band is ±{margin:g} %.")


def compared_in_percent(campaign: StudiedCampaign, metric: Metric) -> list[TableRow]:
    """The comparisons of a metric on a scale with a true zero."""
    rows = campaign.compared(metric)
    return [row for row in rows if row.difference_percent is not None]


def bars(
    campaign: StudiedCampaign, found: Sequence[TableRow], metric: Metric
) -> Figure:
    """`peak-memory-bars`: means from zero with their intervals, the best first."""
    cells = campaign.cells(metric)
    means, top = cells["value"], None
    if means.min() >= 0 and means.max() > 0:
        top = min(cells[["value", "high"]].max().max(), MOST_BEYOND * means.max())
    rows = cells.assign(first=_first(metric, cells))
    shape = partial(shapes.bars, title=metric_title(metric), top=top)
    made = _of_cells(campaign, metric, shape, rows)
    return replace(made, says=sentences.means(campaign.names, metric, found))


def _of_cells(
    campaign: StudiedCampaign,
    metric: Metric,
    shape: Callable[..., shapes.Spec],
    rows: pd.DataFrame,
    *,
    spaced: bool = False,
    only: pd.DataFrame | None = None,
) -> Figure:
    """Rows of a metric in their places, with the table of all cells; `spaced` is an axis of its values, and `only` what
    the sample speaks of."""
    shown, groups, more = placed(campaign, rows)
    if spaced:
        shown = _with_room(metric, shown)
    return Figure(
        says=_headline(campaign, metric),
        chart=chart(shape, shown, groups=groups),
        table=_table_of_cells(campaign, metric),
        sample=_sample(campaign, metric, more, only=only),
    )


# ---- Differences, sweeps, order --------------------------------------------------------------------------------------


def comparison(campaign: StudiedCampaign, rows: pd.DataFrame) -> Figure:
    """`comparison`: each leading metric's difference from the baseline, what is decided first."""
    margin = campaign.data.margin_percent
    heads: Heads = {
        "Metric": ("panel", str),
        "Comparison": ("name", str),
        "Difference": ("value", percent),
        "Deciding interval": ("interval", str),
        "p of a difference, adjusted": ("p_adjusted", "{:.2g}".format),
        "Verdict": (
            "verdict",
            partial(sentences.verdict_words, margin_percent=margin),
        ),
    }
    ends = (outward(*each) for each in zip(rows["low"], rows["high"], strict=True))
    intervals = [" to ".join(map(percent, each)) for each in ends]
    rows = telling(rows.assign(interval=intervals), heads)
    by_panel = rows.groupby("panel", sort=False)
    drawn = by_panel.head(_room(by_panel.ngroups))
    of_level = [f"{level:g} %" for level in rows["level"].unique()]
    levels = of_level[0]
    if len(of_level) > 1:
        levels = "deciding (90 % for equal and not clear, else 95 %)"
    return Figure(
        says=said.verdicts(rows, campaign.baseline, margin),
        chart=chart(shapes.forest, drawn, title=DIFFERENCE, band=margin),
        table=[*rows["tip"]],
        sample=_joined(
            f"Lines are {levels} intervals, the band ±{margin:g} %.",
            drawn_of(len(drawn), len(rows), "differences"),
        ),
        note="Verdicts are corrected for the number of comparisons (Holm), intervals are not.",
    )


def along(
    campaign: StudiedCampaign, found: Sequence[said.Curve], metric: Metric
) -> Figure:
    """`output-throughput-sweep`, `-by-depth` and the like: a metric along what a campaign varies."""
    alike, best = Counter(curve.line.held for curve in found), [*found]
    if len(found) > MOST_LINES:
        # Those of the load that was measured most, so that they compare.
        ((load, number),) = alike.most_common(1)
        same = [each for each in found if number == 1 or each.line.held == load]
        best = same[:MOST_LINES]
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
    first = found[0]
    told = []
    for row in records(means):
        told.append({"Line": row["line"], first.line.title: f"{row['x']:,g}"})
        told[-1] |= {name: text for name, text in row["tip"].items() if name != "Cell"}
    rows = pd.concat([means, runs]).dropna(subset="group")
    shared = first.line.held if len(alike) == 1 else ""
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
        table=told,
        sample=_sample(
            campaign,
            metric,
            f"All with {shared}." if shared else "",
            drawn_of(len(best), len(found), "lines"),
            only=places,
        ),
    )


def in_order(
    campaign: StudiedCampaign, found: Sequence[TableRow], metric: Metric
) -> Figure:
    """`peak-memory-order`: a metric against the order of the runs, and both ends of each cell's Theil-Sen line through
    the medians (Conover 1980)."""
    runs, cells = campaign.runs(metric), campaign.cells(metric)
    places = runs.set_index("run")["number"]
    long_enough = {row.cell for row in found}
    cells = cells[[cell in long_enough for cell in cells_of(cells)]]
    half = cells["trend_slope"] * (cells["n"] - 1) / 2
    ends = [
        cells.assign(x=cells["runs"].str[at].map(places), value=cells["p50"] + beside)
        for at, beside in ((0, -half), (-1, half))
    ]
    means = pd.concat(ends).assign(kind="mean")
    rows = pd.concat([means, runs.assign(kind="run", x=runs["number"])])
    return Figure(
        says=said.drift(campaign, metric) or _headline(campaign, metric),
        chart=chart(
            shapes.lines,
            _with_room(metric, rows.assign(group=rows["cell"])),
            across="Run order in the campaign",
            up=metric_title(metric),
            groups=list(dict.fromkeys(rows["cell"])),
            legend="Cell",
        ),
        table=_table_of_cells(campaign, metric),
        sample=_sample(campaign, metric),
    )


def trends(campaign: StudiedCampaign, metric: Metric) -> list[TableRow]:
    """The cells with runs enough for a line through them."""
    cells = campaign.statistics(metric)
    return [cell for cell in cells if cell.trend_slope is not None and cell.n > 2]


def against(
    campaign: StudiedCampaign, _: Mapping[Cell, str], up: Metric, across: Metric
) -> Figure:
    """`kv-cache-against-peak-memory`: two metrics of the same runs."""
    others = campaign.runs(across).rename(columns={"value": "x"})[["run", "x"]]
    runs = campaign.runs(up).merge(others, on="run").assign(kind="run")
    pairs = zip(runs["tip"], runs["x"], strict=True)
    tips = [{**tip, across.label: across.format(x)} for tip, x in pairs]
    runs = runs.assign(tip=column(runs, tips))
    told = []
    for row in records(runs):
        both = {each.label: row["tip"][each.label] for each in (across, up)}
        told.append({"Run": Entry(row["run"], row["href"]), **both})
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
        table=told,
        sample="Each point is a run.",
    )


# ---- Rows and their places -------------------------------------------------------------------------------------------


def _first(metric: Metric, rows: pd.DataFrame) -> "pd.Series[float]":
    """What sorts the best rows before others."""
    return rows["value"] if metric.direction == "lower" else -rows["value"]


def placed(
    campaign: StudiedCampaign, rows: pd.DataFrame, *, beside: bool = True
) -> tuple[pd.DataFrame, list[str], str]:
    """Rows in their places: a `panel` for each load and in it a row by `name`, as far as there is room; the
    environments that share the row of a model as `group`; and a note of what there is no room for.

    The row with the least of `first` comes first; of environments that are compared, the baseline in every panel.
    Environments that are not to stand `beside` each other have a row each.
    """
    rows = rows.assign(panel=rows["Load"], name=rows["Model"])
    environments = [
        name for name in campaign.environments if name in set(rows["Environment"])
    ]
    groups: list[str] = []
    if len(environments) > 1:
        if rows["Model"].nunique() == 1:
            rows["name"] = rows["Environment"]
            if len(campaign.differences):
                rows["first"] = rows["name"].map(environments.index)
        elif beside:
            rows["group"], groups = rows["Environment"], environments
        else:
            rows["name"] = rows["Model"] + ", " + rows["Environment"]
    rows["first"] = rows.groupby(["panel", "name"])["first"].transform("min")
    rows["load"] = rows["workload"].map(campaign.data.axes[2].index)
    rows = rows.sort_values(["load", "first"], kind="stable")
    names = rows.drop_duplicates(["panel", "name"])
    panels = list(dict.fromkeys(names["panel"]))[:MOST_PANELS]
    by_panel = names[names["panel"].isin(panels)].groupby("panel", sort=False)
    shown = rows.merge(by_panel.head(_room(len(panels)))[["panel", "name"]])
    number, of = (len(each.drop_duplicates(KEYS)) for each in (shown, rows))
    if len(panels) < 2:
        shown = shown.drop(columns="panel")
    return shown, groups, drawn_of(number, of, "cells")


def _room(panels: int) -> int:
    """How many rows each of so many panels may have."""
    return max(MOST_ROWS // max(panels, 1), LEAST_ROWS)


def drawn_of(number: int, of: int, what: str) -> str:
    """`24 of 200 cells are drawn; the table has all.`; empty where all are drawn."""
    if number == of:
        return ""
    return f"{number} of {of} {what} are drawn; the table has all."


def _with_room(
    metric: Metric, rows: pd.DataFrame, column: str = "value"
) -> pd.DataFrame:
    """The rows, and behind them what the axis of each panel has to show at least, where its values are equal or nearly
    so: it would number them with digits that nobody measured."""
    reach, room = FEWEST_STEPS * 10.0**-metric.decimals, []
    panels = [mine for _, mine in rows.groupby("panel")] if "panel" in rows else [rows]
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
    *notes: str,
    only: pd.DataFrame | None = None,
) -> str:
    """How many runs stand behind the figures (of these cells only), what is left out, and what prompts they had."""
    cells = set(campaign.cells_here if only is None else cells_of(only))
    statistics = [row for row in campaign.statistics(metric) if row.cell in cells]
    runs = campaign.runs(metric)
    is_here = column(runs, [cell in cells for cell in cells_of(runs)]).astype(bool)
    left_out = runs[~runs["counts"] & is_here]
    reasons = dict(zip(left_out["run"], left_out["excluded"], strict=True))
    about = sentences.about_prompts(metric, campaign.records)
    return _joined(sentences.sample(statistics, reasons), *notes, about)


def _joined(*said: str) -> str:
    return " ".join(filter(None, said))


def _table_of_cells(campaign: StudiedCampaign, metric: Metric) -> list[TableLine]:
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
    return [{**tip, head: entries[cell]} for tip, cell in told]

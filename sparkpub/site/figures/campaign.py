"""The figures of a campaign's metrics: a question to its tables, a shape, a sentence, a table."""

from collections.abc import Collection, Sequence
from operator import itemgetter

import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.record.text import between, counted, outward, percent, rounded
from sparkpub.review.grouping import grouped
from sparkpub.review.reviewed import Cell
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences
from sparkpub.site.figures import said, shapes
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.figure import (
    Entry,
    Figure,
    Table,
    Value,
    chart,
    plain,
    table_of,
)
from sparkpub.site.figures.theme import axis_title, metric_title
from sparkpub.site.study import KEYS, StudiedCampaign, cells_of, column, records
from sparkpub.site.sweeps import Axis

MOST_ROWS, MOST_PANELS, LEAST_ROWS = 24, 8, 4
"""Rows of a chart in all its panels, about a screen; its panels; and the rows of one that many others stand beside."""
MOST_LINES = 6
"""So many lines are told apart by colour and shape; further ones are in the table."""
FEWEST_STEPS = 6
"""Of a metric's last digit that an axis spans at least: it would spread the rounding errors of equal values."""
MOST_BEYOND = 1.3
"""An axis of bars ends at the latest at so many times the largest mean: the interval of two runs can be ten times."""
HARDLY_LESS = 0.5
"""How much less than their number runs may be worth before a table says so."""
WHISKER = 1.5
"""A box's lines reach to the last run within so many times the distance of its quartiles (Tukey 1977)."""


def every_run(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory`: every run of a metric, the mean of each cell and its interval."""
    table = _table_of_cells(
        campaign,
        metric,
        runs=True,
    )
    return _dots(campaign, metric, campaign.cells(metric), table)


def box(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-box`: every run, the median of each cell, its quartiles and the ends of its whiskers."""
    runs = campaign.runs(metric)
    by_cell = runs[runs["counts"]].groupby(KEYS, sort=False)["value"]
    boxes = pd.DataFrame(
        [
            dict(
                zip(
                    KEYS,
                    cell,
                    strict=True,
                )
            )
            | _box(values)
            for cell, values in by_cell
        ]
    )
    if boxes["n"].max() > 1:  # one run has no quartiles
        boxes = boxes[boxes["n"] > 1]
    words = campaign.cells(metric).drop(columns=["n", "value", "low", "high", "tip"])
    cells = words.merge(boxes, on=KEYS)
    ends = {
        "Lower end": "least",
        "Lower quartile": "low",
        axis_title("Median", metric.unit): "value",
        "Upper quartile": "high",
        "Upper end": "most",
    }
    told = []
    for row in records(cells):
        values = {
            head: metric.format(row[end], unit=False) for head, end in ends.items()
        }
        told.append({"Cell": row["cell"], "n": str(row["n"]), **values})
    note = (
        f" Boxes are quartiles, lines the ends within {WHISKER} times their distance."
    )
    return _dots(campaign, metric, cells, table_of(told), note)


def _dots(
    campaign: StudiedCampaign,
    metric: Metric,
    cells: pd.DataFrame,
    table: Table,
    note: str = "",
) -> Figure:
    """Cells with their runs."""
    runs = campaign.runs(metric).assign(kind="run")
    rows = pd.concat([cells.assign(kind="mean"), runs])
    shown, groups, more = _placed(campaign, metric, cells, rows)
    return Figure(
        says=_headline(campaign, metric),
        chart=chart(
            shapes.dots,
            _with_room(metric, shown),
            title=metric_title(metric),
            groups=groups,
        ),
        table=table,
        sample=_sample(campaign, metric, note + more),
    )


def _box(values: "pd.Series[float]") -> dict[str, float]:
    low, median, high = values.quantile([0.25, 0.5, 0.75])
    reach = WHISKER * (high - low)
    inside = values[values.between(low - reach, high + reach)]
    return {
        "n": len(values),
        "low": low,
        "value": median,
        "high": high,
        "least": inside.min(),
        "most": inside.max(),
    }


def relative(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-relative`: every run in per cent of the baseline's mean, so that cells of any size compare.

    The zero is the mean of the runs that are shown, not that of the cell, in which a machine counts by its error.
    """
    pairs = campaign.site.results.comparisons_of(campaign.data.name, metric.name)
    margin, sides = pairs[0].equivalence_margin_percent, ["model", "workload"]
    compared = pd.DataFrame([(row.model, row.workload) for row in pairs], columns=sides)
    runs = campaign.runs(metric).merge(compared.drop_duplicates())
    of_baseline = runs["counts"] & (runs["environment"] == campaign.data.baseline)
    means = runs[of_baseline].groupby(sides)["value"].mean()
    runs = runs.join(
        means.rename("base"),
        on=sides,
        how="inner",
    )
    runs["value"] = 100 * (runs["value"] / runs["base"] - 1)
    for tip, share in zip(
        runs["tip"],
        runs["value"],
        strict=True,
    ):
        tip["% from the baseline's mean"] = percent(share, 2)
    cells = campaign.cells(metric).merge(runs[KEYS].drop_duplicates(), on=KEYS)
    rows, groups, more = _placed(campaign, metric, cells, runs.assign(kind="run"))
    by_cell = runs[runs["counts"]].groupby(["row", "cell"])["value"]
    told = []
    for (_, cell), n, *ends in by_cell.agg(["size", "min", "mean", "max"]).itertuples():
        values = [str(n), *(percent(end, 2) for end in ends)]
        heads = ("n", "Least", "Mean", "Most")
        told.append(
            {"Cell": cell}
            | dict(
                zip(
                    heads,
                    values,
                    strict=True,
                )
            )
        )
    note = f" The band is ±{margin:g} %.{more}"
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
        table=table_of(told),
        sample=_sample(campaign, metric, note, set(cells_of(runs))),
    )


def bars(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-bars`: means from zero with their intervals, the best first."""
    cells = campaign.cells(metric)
    means, top = cells["value"], None
    if means.min() >= 0 and means.max() > 0:
        top = min(cells[["value", "high"]].max().max(), MOST_BEYOND * means.max())
    rows, groups, note = _placed(campaign, metric, cells, cells)
    return Figure(
        says=sentences.means(campaign.names, metric, campaign.statistics(metric)),
        chart=chart(
            shapes.bars,
            rows,
            title=metric_title(metric),
            groups=groups,
            top=top,
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
    rows = rows.assign(tip=column(rows, told))
    by_panel = rows.groupby("panel", sort=False)
    drawn = by_panel.head(room_for(list(by_panel.size())))
    note = f"Lines are {said.levels(rows)}, the band ±{margin:g} %"
    if rows["p_adjusted"].notna().any():
        note += "; only verdicts are corrected for the number of comparisons (Holm)"
    if len(drawn) < len(rows):
        note += f". {len(drawn)} of {len(rows)} are drawn, the largest differences first; the table has all"
    return Figure(
        says=said.verdicts(rows, campaign.baseline, margin),
        chart=difference_chart(drawn, margin),
        table=table_of(told),
        sample=f"{note}.",
    )


def difference_chart(rows: pd.DataFrame, margin: float | None) -> Chart:
    """Differences in per cent of the baseline, by metric. One without an interval keeps its place among the others."""
    low, high = (rows[end].fillna(rows["value"]) for end in ("low", "high"))
    title = "Difference in % of the baseline"
    return chart(
        shapes.forest,
        rows.assign(low=low, high=high),
        title=title,
        band=margin,
    )


def along(
    campaign: StudiedCampaign,
    metric: Metric,
    axis: Axis,
) -> Figure:
    """`output-throughput-sweep`, `-by-depth` and the like: a metric along what a campaign varies."""
    found = said.curves(campaign, axis, metric)
    shown = {curve.line for curve in _best_lines(found)}
    # In the campaign's order, so that a line has one colour whatever the metric.
    names = [name for line, name in campaign.lines.items() if line in shown]
    called, legend = distinct(names)
    groups = dict(
        zip(
            names,
            called,
            strict=True,
        )
    )
    places = pd.DataFrame(
        [
            (*cell, at, curve.name, groups[curve.name])
            for curve in found
            if curve.line in shown
            for at, cell in curve.line.points
        ],
        columns=[*KEYS, "x", "line", "group"],
    )
    means = campaign.cells(metric).merge(places, on=KEYS).assign(kind="mean")
    runs = campaign.runs(metric).merge(places, on=KEYS).assign(kind="run")
    note, held = "", {curve.line.held for curve in found}
    if len(held) == 1 and held != {""}:
        note += f" All with {found[0].line.held}."
    if len(found) > MOST_LINES:
        note += f" {MOST_LINES} of {len(found)} lines are drawn, the best of one load; the table has all."
    on_lines = {cell for curve in found for _, cell in curve.line.points}
    return Figure(
        says=said.growing(metric, found),
        chart=chart(
            shapes.lines,
            _with_room(metric, plain(pd.concat([means, runs]))),
            across=found[0].line.title,
            up=metric_title(metric),
            groups=called if len(called) > 1 else (),
            legend=legend,
            ticks=[float(at) for at in sorted(means["x"].unique())],
            knee=found[0].knee if len(found) == 1 else None,
        ),
        table=table_of(_growth(metric, found)),
        sample=_sample(campaign, metric, note, on_lines),
    )


def _growth(metric: Metric, found: Sequence[said.Curve]) -> list[dict[str, str]]:
    """The table of curves: each mean, and how it stands to the first."""
    told = []
    for curve in found:
        first = curve.cells[0][1].mean
        for at, cell in curve.cells:
            times = f"× {rounded(cell.mean / first)}" if first else "n/a"
            told.append(
                {
                    "Line": curve.name,
                    found[0].line.title: f"{at:,g}",
                    "n": str(cell.n),
                    axis_title("Mean", metric.unit): metric.format(
                        cell.mean, unit=False
                    ),
                    "95 % interval": interval(metric, cell),
                    "Relative to the first": times,
                }
            )
    return told


def _best_lines(found: Sequence[said.Curve]) -> Sequence[said.Curve]:
    """Of too many lines those of the load that was measured most, so that they compare."""
    if len(found) <= MOST_LINES:
        return found
    by_load = grouped(found, lambda curve: curve.line.held)
    most = max(by_load.values(), key=lambda mine: sum(len(one.cells) for one in mine))
    return (most if len(most) > 1 else found)[:MOST_LINES]


def in_order(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-order`: a metric against the order of the runs, and both ends of each cell's Theil-Sen line through
    the medians (Conover 1980)."""
    runs, cells = campaign.runs(metric), campaign.cells(metric)
    places = runs.set_index("run")["number"]
    _, environments, workloads = campaign.axes
    cells = cells[cells["trend_slope"].notna() & (cells["n"] > 2)].assign(kind="mean")
    cells["line"] = cells["cell"]
    named = cells["Model"] + (" · " + cells["Load"] if len(workloads) > 1 else "")
    half = cells["trend_slope"] * (cells["n"] - 1) / 2
    begin, end = (
        cells.assign(x=cells["runs"].str[at].map(places), value=cells["p50"] + more)
        for at, more in ((0, -half), (-1, half))
    )
    begin["label"] = named.where(cells["environment"] == environments[0], None)
    rows = pd.concat([begin, end, runs.assign(kind="run", x=runs["number"])])
    rows["group"] = rows["Environment"]
    return Figure(
        says=said.drift(campaign, metric) or _headline(campaign, metric),
        chart=chart(
            shapes.lines,
            _with_room(metric, plain(rows)),
            across="Run order in the campaign",
            up=metric_title(metric),
            groups=campaign.called(environments),
            legend="Environment",
        ),
        table=_table_of_cells(
            campaign,
            metric,
            runs=True,
        ),
        sample=_sample(campaign, metric),
    )


def has_order(campaign: StudiedCampaign, metric: Metric) -> bool:
    """Whether a cell has runs enough for a line."""
    cells = campaign.statistics(metric)
    return any(cell.trend_slope is not None and cell.n > 2 for cell in cells)


def against(
    campaign: StudiedCampaign,
    up: Metric,
    across: Metric,
) -> Figure:
    """`kv-cache-against-peak-memory`: two metrics of the same runs."""
    others = campaign.runs(across)[["run", "value"]]
    runs = campaign.runs(up).merge(others.rename(columns={"value": "x"}), on="run")
    for tip, x in zip(
        runs["tip"],
        runs["x"],
        strict=True,
    ):
        tip[across.label] = across.format(x)
    says = f"{up.subject} and {across.within_sentence} of {counted(len(runs), 'run')}."
    if across.name in up.derived_from or up.name in across.derived_from:
        says += " One metric is computed from the other, so this is no independent evidence."
    rows = plain(runs.assign(kind="run", group=runs["Environment"]))
    told: list[dict[str, Value]] = [
        {
            "Run": Entry(row["run"], row["href"]),
            across.label: across.format(row["x"]),
            up.label: up.format(row["value"]),
        }
        for row in records(runs)
    ]
    return Figure(
        says=says,
        chart=chart(
            shapes.points,
            _with_room(across, _with_room(up, rows), "x"),
            across=metric_title(across),
            up=metric_title(up),
            groups=campaign.called(campaign.axes[1]),
        ),
        table=table_of(told),
        sample="Each point is a run.",
    )


# ---- Rows and their places -------------------------------------------------------------------------------------------


def _placed(
    campaign: StudiedCampaign,
    metric: Metric,
    cells: pd.DataFrame,
    rows: pd.DataFrame,
) -> tuple[list[shapes.Row], list[str], str]:
    """The rows of those cells for which there is room, in the order of these, the best first; the environments that
    share a row; and a note of what there is no room for."""
    first = cells["value"] if metric.direction == "lower" else -cells["value"]
    places, note = places_of(campaign, cells.assign(size=first))
    shown = rows.drop(columns="cell").merge(places, on=KEYS)
    shown = shown.sort_values("place", kind="stable")
    groups = []
    if "group" in places:
        used = set(places["environment"])
        groups = campaign.called([key for key in campaign.axes[1] if key in used])
    return plain(shown), groups if len(groups) > 1 else [], note


def places_of(
    campaign: StudiedCampaign,
    cells: pd.DataFrame,
    *,
    beside: bool = True,
) -> tuple[pd.DataFrame, str]:
    """How cells stand in a chart: a `panel` for each workload, a row by `name`, those of the least `size` first, and
    `place`, their order. Environments share the row of their model, or, not `beside` each other, have one each."""
    models, environments, workloads = campaign.axes
    rows = cells[[*KEYS, "size"]].copy()
    rows["panel"], rows["name"] = cells["Load"], cells["Model"]
    several = len(environments) > 1
    by_environment = several and len(models) == 1
    if by_environment:
        rows["name"] = cells["Environment"]
    elif several and not beside:
        rows["name"] = cells["Model"] + ", " + cells["Environment"]
    if several and beside:
        rows["group"] = cells["Environment"]
    rows["first"] = rows.groupby(["panel", "name"])["size"].transform("min")
    if by_environment and len(environments) == 2:
        rows["first"] = rows["environment"].map(environments.index)
    rows["load"] = rows["workload"].map(workloads.index)
    numbers = rows.groupby("load")["name"].nunique().nlargest(MOST_PANELS)
    rows = rows[rows["load"].isin(numbers.index)]
    rows = rows.sort_values(["load", "first"], kind="stable")
    rows["place"] = range(len(rows))
    by_load = rows.groupby("load", sort=False)["name"]
    rank = by_load.transform(lambda names: pd.factorize(names)[0])
    shown = rows[rank < room_for(list(numbers))].drop(columns=["size", "first", "load"])
    if len(numbers) < 2:
        shown = shown.drop(columns="panel")
    note = ""
    if len(shown) < len(cells):
        note = f" {len(shown)} of {len(cells)} cells are drawn, the first of each panel; the table has all."
    return shown, note


def room_for(counts: Sequence[int]) -> int:
    """How many rows each panel may have, so that panels of these many rows have `MOST_ROWS` together."""
    for most in range(max(counts, default=0), LEAST_ROWS, -1):
        if sum(min(count, most) for count in counts) <= MOST_ROWS:
            return most
    return LEAST_ROWS


def distinct(names: Sequence[str]) -> tuple[list[str], str]:
    """Names without the parts that all of them share, and these parts; whole where nothing would be left of one."""
    parts = [name.split(", ") for name in names]
    shared = [part for part in parts[0] if all(part in each for each in parts)]
    called = [", ".join(part for part in each if part not in shared) for each in parts]
    if len(names) < 2 or not all(called):
        return list(names), "Line"
    return called, ", ".join(shared) or "Line"


def _with_room(
    metric: Metric, rows: Sequence[shapes.Row], column: str = "value"
) -> list[shapes.Row]:
    """The rows, and behind them what the axis of each panel has to show at least, where its values are equal or nearly
    so: it would number them with digits that nobody measured."""
    reach, found = FEWEST_STEPS * 10.0**-metric.decimals, list(rows)
    for first, *others in grouped(rows, lambda row: row.get("panel")).values():
        values = [row[column] for row in (first, *others)]
        low, high = min(values), max(values)
        if high - low < reach:
            least = max((low + high - reach) / 2, metric.minimum)
            for end in (least, (low + high + reach) / 2):
                room = {"kind": "room", column: round(end, metric.decimals)}
                found.append({**first, **room})
    return found


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
    only: Collection[Cell] | None = None,
) -> str:
    """How many runs stand behind the figures (of these cells only), what is left out, and what prompts they had."""
    statistics, runs = campaign.statistics(metric), campaign.runs(metric)
    if only is not None:
        statistics = [row for row in statistics if row.cell in only]
        runs = runs[[cell in only for cell in cells_of(runs)]]
    out = runs[~runs["counts"]]
    reasons = dict(
        zip(
            out["run"],
            out["reason"],
            strict=True,
        )
    )
    about = sentences.about_prompts(metric, campaign.records)
    return f"{sentences.sample(statistics, reasons)}{note} {about}".strip()


def _table_of_cells(
    campaign: StudiedCampaign,
    metric: Metric,
    runs: bool = False,
) -> Table:
    """Cells with the statistics of a metric and, if asked, links to their runs."""
    of_cells = {cell.cell: cell for cell in campaign.statistics(metric)}
    measured = records(campaign.runs(metric))
    by_cell = grouped(measured, itemgetter(*KEYS))
    are_all_in = all(row["counts"] for row in measured)
    head = "Runs" if are_all_in else "Runs (in brackets: left out)"
    told: list[dict[str, Value]] = []
    for cell, label in campaign.cells_here.items():
        line: dict[str, Value] = {"Cell": label}
        line |= _statistics(metric, of_cells.get(cell))
        if runs:
            entries = []
            for row in by_cell.get(cell, ()):
                words = metric.format(row["value"], unit=False)
                text = words if row["counts"] else f"({words})"
                entries.append(Entry(text, row["href"]))
            line[head] = entries
        told.append(line)
    return table_of(told)


def _statistics(metric: Metric, cell: TableRow | None) -> dict[str, str]:
    """n, mean, interval, sd and median of a cell, without their unit."""
    heads = ["n", axis_title("Mean", metric.unit), "95 % interval", "sd", "Median"]
    if cell is None:
        values = ["0", "not available", "", "", ""]
        return dict(
            zip(
                heads,
                values,
                strict=True,
            )
        )
    number = str(cell.n)
    if len(cell.machines) > 1:
        each = ", ".join(map(str, cell.n_by_machine))
        number = f"{cell.n} on {len(cell.machines)} machines ({each})"
    mean, median = (metric.format(value, unit=False) for value in (cell.mean, cell.p50))
    sd = "n/a" if cell.sd is None else metric.format(cell.sd, unit=False)
    values = [number, mean, interval(metric, cell), sd, median]
    return dict(
        zip(
            heads,
            values,
            strict=True,
        )
    )


def interval(metric: Metric, cell: TableRow) -> str:
    """The 95 % interval of the mean, without its unit; and why it is wide, where runs are worth less than their number:
    neighbours are alike, or shared a server."""
    words = "n too small"
    if cell.ci95 is not None:
        low, high = cell.ci95
        words = between(low, high, metric.decimals)
    return f"{words}{worth(cell)}"


def worth(cell: TableRow) -> str:
    """` (n worth 1.9)` where runs are worth less than their number; empty elsewhere."""
    if cell.n_effective > cell.n - HARDLY_LESS:
        return ""
    return f" (n worth {cell.n_effective:.1f})"

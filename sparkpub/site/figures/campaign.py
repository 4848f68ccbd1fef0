"""The figures of a campaign's metrics: a question to its tables, a shape, a sentence, a table."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from sparkpub.record.metrics import Metric
from sparkpub.record.text import between, counted, outward, percent, rounded
from sparkpub.review.names import runs_of
from sparkpub.review.tables.column import TableRow
from sparkpub.site import sentences
from sparkpub.site.figures import said, shapes
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.figure import Entry, Figure, Table, plain, table_of
from sparkpub.site.figures.theme import axis_title, metric_title
from sparkpub.site.study import KEYS, StudiedCampaign, column, records
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


def every_run(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory`: every run of a metric, the mean of each cell and its interval."""
    cells = campaign.cells(metric)
    rows, groups, note = _beside_runs(campaign, metric, cells.assign(kind="mean"))
    return Figure(
        title=f"{metric.label}: every run",
        says=_headline(campaign, metric),
        chart=Chart(
            partial(shapes.dots, title=metric_title(metric), groups=groups), rows
        ),
        **_details(campaign, metric, note, runs="linked"),
    )


def box(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-box`: every run, the median of each cell, its quartiles and the ends within 1.5 times their distance
    (Tukey 1977)."""
    runs = campaign.runs(metric)
    counted_runs = runs[runs["counts"]].groupby(KEYS, sort=False)["value"]
    found = []
    for cell, values in counted_runs:
        low, median, high = values.quantile([0.25, 0.5, 0.75])
        inside = values[
            values.between(low - 1.5 * (high - low), high + 1.5 * (high - low))
        ]
        ends = {
            "low": low,
            "value": median,
            "high": high,
            "least": inside.min(),
            "most": inside.max(),
        }
        found.append(dict(zip(KEYS, cell, strict=True)) | ends | {"n": len(values)})
    boxes = pd.DataFrame(found)
    if boxes["n"].max() > 1:  # one run has no quartiles
        boxes = boxes[boxes["n"] > 1]
    cells = campaign.cells(metric)[
        [*KEYS, "cell", "Model", "Environment", "Load"]
    ].merge(boxes, on=KEYS)
    rows, groups, note = _beside_runs(campaign, metric, cells.assign(kind="mean"))
    body: list[list[Any]] = []
    for row in records(cells):
        words = [
            metric.format(row[name], unit=False)
            for name in ("least", "low", "value", "high", "most")
        ]
        body.append([row["cell"], str(row["n"]), *words])
    head = (
        "Cell",
        "n",
        "Lower end",
        "Quartile",
        axis_title("Median", metric.unit),
        "Quartile",
        "Upper end",
    )
    details = _details(
        campaign,
        metric,
        f" Boxes are quartiles, lines the ends within 1.5 times their distance.{note}",
    )
    return Figure(
        title=f"{metric.label}: how runs spread",
        says=_headline(campaign, metric),
        chart=Chart(
            partial(shapes.dots, title=metric_title(metric), groups=groups), rows
        ),
        **details | {"table": Table(head, body)},
    )


def relative(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-relative`: every run in per cent of the baseline's mean, so that cells of any size compare.

    The zero is the mean of the runs that are shown, not that of the cell, in which a machine counts by its error.
    """
    pairs = campaign.site.results.comparisons_of(campaign.data.name, metric.name)
    baseline, margin = pairs[0].baseline, pairs[0].equivalence_margin_percent
    called = campaign.names.environment(campaign.data.name, baseline)
    runs = campaign.runs(metric)
    of_baseline = runs[runs["counts"] & (runs["environment"] == baseline)]
    means = of_baseline.groupby(["model", "workload"])["value"].mean().rename("base")
    runs = runs.join(means, on=["model", "workload"])
    compared = {(row.model, row.workload) for row in pairs}
    pairs_of_runs = zip(runs["model"], runs["workload"], strict=True)
    runs = runs[[pair in compared for pair in pairs_of_runs]].dropna(subset="base")
    runs["value"] = 100 * (runs["value"] / runs["base"] - 1)
    for tip, share in zip(runs["tip"], runs["value"], strict=True):
        tip["% from the baseline's mean"] = percent(share, 2)
    cells = campaign.cells(metric).merge(runs[KEYS].drop_duplicates(), on=KEYS)
    rows, groups, note = _placed(campaign, metric, cells, runs.assign(kind="run"))
    shape = partial(
        shapes.dots,
        title=f"% from {sentences.mean_of(called)}",
        groups=groups,
        band=margin,
        shared=True,
    )
    body: list[list[Any]] = []
    for cell, shares in runs[runs["counts"]].groupby("cell", sort=False)["value"]:
        ends = [
            percent(share, 2) for share in (shares.min(), shares.mean(), shares.max())
        ]
        body.append([cell, str(len(shares)), *ends])
    order = {cell: place for place, cell in enumerate(campaign.cells_here.values())}
    compared_cells = set(zip(*(runs[key] for key in KEYS), strict=True))
    statistics = [
        cell for cell in campaign.statistics(metric) if cell.cell in compared_cells
    ]
    sample = sentences.sample(statistics, campaign.excluded(runs["run"]))
    table = Table(
        ("Cell", "n", "Least", "Mean", "Most"),
        sorted(body, key=lambda row: order[str(row[0])]),
    )
    return Figure(
        title=f"{metric.label}: every run against {runs_of(called)}",
        says=said.farthest(runs, called),
        chart=Chart(shape, shapes.in_strips(rows, groups, shared=True)),
        table=table,
        **_about(campaign, metric, f"{sample} The band is ±{margin:g} %.{note}"),
    )


def bars(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-bars`: means from zero with their intervals, the best first."""
    cells = campaign.cells(metric)
    means, top = cells["value"], None
    if len(cells) and means.min() >= 0 and means.max() > 0:
        top = min(cells[["value", "high"]].max().max(), MOST_BEYOND * means.max())
    rows, groups, note = _placed(campaign, metric, cells, cells)
    shape = partial(shapes.bars, title=metric_title(metric), groups=groups, top=top)
    return Figure(
        title=f"{metric.label}: means",
        says=sentences.means(campaign.names, metric, campaign.statistics(metric)),
        chart=Chart(shape, rows),
        **_details(campaign, metric, note),
    )


def comparison(campaign: StudiedCampaign) -> Figure:
    """`comparison`: each leading metric's difference from the baseline, what is decided first."""
    rows = campaign.differences
    margin = campaign.data.margin_percent
    baseline = campaign.names.environment(
        campaign.data.name, campaign.data.baseline or ""
    )
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
    drawn = _first_of_panels(rows)
    note = f"Lines are {said.levels(rows)}, the band ±{margin:g} %"
    if rows["p_adjusted"].notna().any():
        note += "; only verdicts are corrected for the number of comparisons (Holm)"
    if len(drawn) < len(rows):
        note += f". {len(drawn)} of {len(rows)} are drawn, the largest differences first; the table has all"
    return Figure(
        title=f"Difference from {runs_of(baseline)}, metric by metric",
        says=said.verdicts(rows, baseline, margin),
        chart=difference_chart(drawn, margin),
        table=table_of(told),
        sample=f"{note}.",
        flags=campaign.flags(),
    )


def difference_chart(rows: pd.DataFrame, margin: float | None) -> Chart:
    """Differences in per cent of the baseline, by metric. One without an interval keeps its place among the others."""
    for end in ("low", "high"):
        rows = rows.assign(**{end: rows[end].fillna(rows["value"])})
    return Chart(
        partial(shapes.forest, title="Difference in % of the baseline", band=margin),
        plain(rows),
    )


def along(campaign: StudiedCampaign, metric: Metric, axis: Axis) -> Figure:
    """`output-throughput-sweep`, `-by-depth` and the like: a metric along what a campaign varies."""
    found = said.curves(campaign, axis, metric)
    shown = _best_lines(found)
    word = found[0].line.title
    # In the campaign's order, so that a line has one colour whatever the metric.
    names = [
        name
        for line, name in campaign.lines.items()
        if line in {curve.line for curve in shown}
    ]
    on = pd.DataFrame(
        [(*cell, at, curve.name) for curve in shown for at, cell in curve.line.points],
        columns=[*KEYS, "x", "line"],
    )
    runs, cells = campaign.runs(metric), campaign.cells(metric)
    rows = pd.concat(
        [
            cells.merge(on, on=KEYS).assign(kind="mean"),
            runs.merge(on, on=KEYS).assign(kind="run"),
        ]
    )
    called, legend = distinct(names)
    rows["group"] = rows["line"].map(dict(zip(names, called, strict=True)))
    ticks = sorted({float(at) for curve in shown for at, _ in curve.cells})
    knee = found[0].growth.knee if len(found) == 1 else None
    shape = partial(
        shapes.lines,
        across=word,
        up=metric_title(metric),
        groups=called if len(called) > 1 else (),
        legend=legend,
        ticks=ticks,
        knee=None if knee is None else found[0].cells[knee][0],
    )
    statistics = [cell for curve in found for _, cell in curve.cells]
    measured = runs.merge(
        pd.DataFrame(
            [cell for curve in found for _, cell in curve.line.points], columns=KEYS
        ),
        on=KEYS,
    )
    note = sentences.sample(statistics, campaign.excluded(measured["run"]))
    held = {curve.line.held for curve in found}
    if len(held) == 1 and held != {""}:
        note += f" All with {found[0].line.held}."
    if len(found) > MOST_LINES:
        note += f" {MOST_LINES} of {len(found)} lines are drawn, the best of one load; the table has all."
    body: list[list[Any]] = []
    for curve in found:
        first = curve.cells[0][1].mean
        for at, cell in curve.cells:
            times = f"× {rounded(cell.mean / first)}" if first else "n/a"
            mean = metric.format(cell.mean, unit=False)
            body.append(
                [
                    curve.name,
                    f"{at:,g}",
                    str(cell.n),
                    mean,
                    interval(metric, cell),
                    times,
                ]
            )
    head = (
        "Line",
        word,
        "n",
        axis_title("Mean", metric.unit),
        "95 % interval",
        "Relative to the first",
    )
    return Figure(
        title=f"{metric.label} against {found[0].line.word}",
        says=said.growing(metric, found),
        chart=Chart(shape, plain(rows) + _room(metric, rows["value"])),
        table=Table(head, body),
        **_about(campaign, metric, note),
    )


def _best_lines(found: Sequence[said.Curve]) -> Sequence[said.Curve]:
    """Of too many lines those of the load that was measured most, so that they compare."""
    if len(found) <= MOST_LINES:
        return found
    points: dict[str, int] = {}
    for curve in found:
        points[curve.line.held] = points.get(curve.line.held, 0) + len(curve.cells)
    most = max(points, key=points.__getitem__)
    mine = [curve for curve in found if curve.line.held == most]
    return (mine if len(mine) > 1 else found)[:MOST_LINES]


def in_order(campaign: StudiedCampaign, metric: Metric) -> Figure:
    """`peak-memory-order`: a metric against the order of the runs, and both ends of each cell's Theil-Sen line through
    the medians (Conover 1980)."""
    runs, ends = campaign.runs(metric), []
    places = dict(zip(runs["run"], runs["number"], strict=True))
    several = len(campaign.axes[2]) > 1
    cells = campaign.cells(metric)
    for cell in records(cells[cells["trend_slope"].notna() & (cells["n"] > 2)]):
        middle = (cell["n"] - 1) / 2
        for index in (0, cell["n"] - 1):
            label = f"{cell['Model']} · {cell['Load']}" if several else cell["Model"]
            named = index == 0 and cell["environment"] == campaign.axes[1][0]
            ends.append(
                cell
                | {
                    "kind": "mean",
                    "x": places[cell["runs"][index]],
                    "value": cell["p50"] + cell["trend_slope"] * (index - middle),
                    "line": cell["cell"],
                    "label": label if named else None,
                }
            )
    rows = pd.concat([pd.DataFrame(ends), runs.assign(kind="run", x=runs["number"])])
    environments = _environments(campaign, campaign.axes[1])
    shape = partial(
        shapes.lines,
        across="Run order in the campaign",
        up=metric_title(metric),
        groups=environments,
        legend="Environment",
    )
    return Figure(
        title=f"{metric.label} in run order",
        says=said.drift(campaign, metric) or _headline(campaign, metric),
        chart=Chart(
            shape,
            plain(rows.assign(group=rows["Environment"]))
            + _room(metric, runs["value"]),
        ),
        **_details(campaign, metric, runs="listed"),
    )


def has_order(campaign: StudiedCampaign, metric: Metric) -> bool:
    """Whether a cell has runs enough for a line."""
    cells = campaign.statistics(metric)
    return any(cell.trend_slope is not None and cell.n > 2 for cell in cells)


def against(campaign: StudiedCampaign, up: Metric, across: Metric) -> Figure:
    """`kv-cache-against-peak-memory`: two metrics of the same runs."""
    runs = campaign.runs(up, across)
    says = f"{up.subject} and {across.within_sentence} of {counted(len(runs), 'run')}."
    if across.name in up.derived_from or up.name in across.derived_from:
        says += " One metric is computed from the other, so this is no independent evidence."
    shape = partial(
        shapes.points,
        across=metric_title(across),
        up=metric_title(up),
        groups=_environments(campaign, campaign.axes[1]),
    )
    rows = plain(runs.assign(kind="run", group=runs["Environment"]))
    room = (
        _room(metric, runs[column]) for metric, column in ((up, "value"), (across, "x"))
    )
    rows += [
        {"kind": "room", **runs[["x", "value"]].iloc[0], **end}
        for ends in room
        for end in ends
    ]
    body: list[list[Any]] = []
    for row in records(runs):
        run = Entry(row["run"], row["href"])
        body.append([run, across.format(row["x"]), up.format(row["value"])])
    return Figure(
        title=f"{up.label} against {across.within_sentence}",
        says=says,
        chart=Chart(shape, rows),
        table=Table(("Run", across.label, up.label), body),
        sample="Each point is a run.",
        flags=campaign.flags(),
    )


# ---- Rows and their places -------------------------------------------------------------------------------------------


def _beside_runs(
    campaign: StudiedCampaign, metric: Metric, cells: pd.DataFrame
) -> tuple[list[shapes.Row], list[str], str]:
    """Cells with their runs, as `dots` draws them."""
    runs = campaign.runs(metric)
    rows, groups, note = _placed(
        campaign, metric, cells, pd.concat([cells, runs.assign(kind="run")])
    )
    # Under a name of their panel, so that it has no row more.
    names = {row.get("panel"): row["name"] for row in rows}
    room: list[shapes.Row] = []
    for panel, values in runs.groupby("Load", sort=False)["value"]:
        if panel in names:
            here = {"panel": panel, "name": names[panel]}
            room += [{**row, **here} for row in _room(metric, values)]
    if None in names:
        room = [{**row, "name": names[None]} for row in _room(metric, runs["value"])]
    return shapes.in_strips(rows, groups) + room, groups, note


def _placed(
    campaign: StudiedCampaign, metric: Metric, cells: pd.DataFrame, rows: pd.DataFrame
) -> tuple[list[shapes.Row], list[str], str]:
    """The rows of those cells for which there is room, in the order of these, the best first; the environments that
    share a row; and a note of what there is no room for."""
    first = cells["value"] if metric.direction == "lower" else -cells["value"]
    places, note = places_of(campaign, cells.assign(size=first))
    shown = (
        rows.drop(columns=["cell"])
        .merge(places, on=KEYS)
        .sort_values("place", kind="stable")
    )
    groups = []
    if "group" in places:
        used = set(places["environment"])
        groups = _environments(
            campaign, [key for key in campaign.axes[1] if key in used]
        )
        if len(groups) < 2:
            groups = []
    return plain(shown), groups, note


def places_of(
    campaign: StudiedCampaign, cells: pd.DataFrame, *, beside: bool = True
) -> tuple[pd.DataFrame, str]:
    """How cells stand in a chart: a `panel` for each workload, a row by `name`, those of the least `size` first, and
    `place`, their order. Environments share the row of their model, or, not `beside` each other, have one each."""
    models, environments, workloads = campaign.axes
    rows = cells[[*KEYS, "size"]].copy()
    rows["panel"], rows["name"] = cells["Load"], cells["Model"]
    by_environment = len(models) == 1 and len(environments) > 1
    if beside and len(environments) > 1:
        rows["group"] = cells["Environment"]
    if by_environment:
        rows["name"] = cells["Environment"]
    elif not beside and len(environments) > 1:
        rows["name"] = cells["Model"] + ", " + cells["Environment"]
    rows["first"] = rows.groupby(["panel", "name"])["size"].transform("min")
    if by_environment and len(environments) == 2:
        rows["first"] = rows["environment"].map(environments.index)
    rows["load"] = rows["workload"].map(workloads.index)
    numbers = rows.groupby("load")["name"].nunique()
    numbers = numbers.nlargest(MOST_PANELS)
    most = room_for(list(numbers))
    shown = rows[rows["load"].isin(numbers.index)].sort_values(
        ["load", "first"], kind="stable"
    )
    shown = shown.assign(place=range(len(shown)))
    rank = shown.groupby("load", sort=False)["name"].transform(
        lambda names: pd.factorize(names)[0]
    )
    shown = shown[rank < most].drop(columns=["size", "first", "load"])
    if len(numbers) < 2:
        shown = shown.drop(columns="panel")
    note = ""
    if len(shown) < len(cells):
        note = f" {len(shown)} of {len(cells)} cells are drawn, the first of each panel; the table has all."
    return shown, note


def without_room(campaign: StudiedCampaign) -> list[str]:
    """The workloads of a campaign for which a chart of all has no panel."""
    rows = pd.DataFrame(list(campaign.cells_here), columns=KEYS)
    numbers = rows.groupby("workload", sort=False)["model"].nunique()
    shown = set(numbers.nlargest(MOST_PANELS).index)
    return [
        workload
        for workload in campaign.axes[2]
        if workload in numbers.index and workload not in shown
    ]


def room_for(counts: Sequence[int]) -> int:
    """How many rows each panel may have, so that panels of these many rows have `MOST_ROWS` together."""
    for most in range(max(counts, default=0), LEAST_ROWS, -1):
        if sum(min(count, most) for count in counts) <= MOST_ROWS:
            return most
    return LEAST_ROWS


def _first_of_panels(rows: pd.DataFrame) -> pd.DataFrame:
    """The first rows of each panel, as many as have room."""
    by_panel = rows.groupby("panel", sort=False)
    return by_panel.head(room_for(list(by_panel.size())))


def _environments(campaign: StudiedCampaign, keys: Sequence[str]) -> list[str]:
    return [campaign.names.environment(campaign.data.name, key) for key in keys]


def distinct(names: Sequence[str]) -> tuple[list[str], str]:
    """Names without the parts that all of them share, and these parts; whole where nothing would be left of one."""
    parts = [name.split(", ") for name in names]
    shared = [part for part in parts[0] if all(part in each for each in parts)]
    called = [", ".join(part for part in each if part not in shared) for each in parts]
    if len(names) < 2 or not all(called):
        return list(names), "Line"
    return called, ", ".join(shared) or "Line"


def _room(metric: Metric, values: "pd.Series[float]") -> list[shapes.Row]:
    """What an axis has to show at least, where all values are equal or nearly so: it would number them with digits that
    nobody measured."""
    if values.empty:
        return []
    step = 10.0**-metric.decimals
    low, high = values.min(), values.max()
    if high - low >= FEWEST_STEPS * step:
        return []
    middle, reach = (low + high) / 2, FEWEST_STEPS // 2 * step
    ends = (max(middle - reach, metric.minimum), middle + reach)
    return [
        {"kind": "room", str(values.name): round(end, metric.decimals)} for end in ends
    ]


# ---- Sentence and table ----------------------------------------------------------------------------------------------


def _headline(campaign: StudiedCampaign, metric: Metric) -> str:
    """What differs, or else the best and the worst."""
    names = campaign.names
    compared = sentences.headline(names, metric, campaign.compared(metric))
    return compared or sentences.means(names, metric, campaign.statistics(metric))


def _about(campaign: StudiedCampaign, metric: Metric, sample: str) -> dict[str, Any]:
    about = sentences.about_prompts(metric, campaign.records)
    return {"sample": f"{sample} {about}".strip(), "flags": campaign.flags(metric)}


def _details(
    campaign: StudiedCampaign, metric: Metric, note: str = "", runs: str = ""
) -> dict[str, Any]:
    """What all figures of one metric over cells have: the sample, the findings, and a table of cells with their runs,
    `linked` or `listed`, or none."""
    rows = campaign.runs(metric)
    statistics = campaign.statistics(metric)
    sample = sentences.sample(statistics, campaign.excluded(rows["run"])) + note
    by_cell = {cell.cell: cell for cell in statistics}
    body: list[list[Any]] = []
    for cell, label in campaign.cells_here.items():
        line: list[Any] = [label, *_figures(metric, by_cell.get(cell))]
        if runs:
            entries = []
            for row in records(rows[rows["cell"] == label]):
                words = metric.format(row["value"], unit=False)
                words = words if row["counts"] else f"({words})"
                entries.append(Entry(words, row["href"] if runs == "linked" else ""))
            line.append(entries)
        body.append(line)
    head = [
        "Cell",
        "n",
        axis_title("Mean", metric.unit),
        "95 % interval",
        "sd",
        "Median",
    ]
    if runs:
        head += ("Runs",) if rows["counts"].all() else ("Runs (in brackets: left out)",)
    return {**_about(campaign, metric, sample), "table": Table(tuple(head), body)}


def _figures(metric: Metric, cell: TableRow | None) -> list[str]:
    """n, mean, interval, sd and median of a cell, without their unit."""
    if cell is None:
        return ["0", "not available", "", "", ""]
    number = str(cell.n)
    if len(cell.machines) > 1:
        each = ", ".join(map(str, cell.n_by_machine))
        number = f"{cell.n} on {len(cell.machines)} machines ({each})"
    spread = "n/a" if cell.sd is None else metric.format(cell.sd, unit=False)
    mean, median = (metric.format(value, unit=False) for value in (cell.mean, cell.p50))
    return [number, mean, interval(metric, cell), spread, median]


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

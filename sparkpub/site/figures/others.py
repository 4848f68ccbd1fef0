"""The figures that are not of one metric: of a campaign, of a model, and of the whole site."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from statistics import median
from typing import Any

import pandas as pd

from sparkpub.plan import coverage as plan_coverage
from sparkpub.record.errors import CollectError
from sparkpub.record.load import Load
from sparkpub.record.store import Stored
from sparkpub.record.text import (
    between,
    counted,
    extent,
    listed,
    outward,
    percent,
    rounded,
    significant,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import USUAL, Board
from sparkpub.review.models import ModelName
from sparkpub.review.names import Names, flow_name, lengths_name, load_name, runs_of
from sparkpub.review.progress import VersionLine, VersionPoint, change_between
from sparkpub.review.reviewed import Cell
from sparkpub.review.setup import Setup, setup_of
from sparkpub.review.speeds import GENERATION, Speed
from sparkpub.review.tables.bandwidths import UNKNOWN
from sparkpub.review.tables.capacities import (
    LIMIT_TPOT_MS,
    LIMITS_SECONDS,
    TOLD_SECONDS,
    in_order,
)
from sparkpub.review.tables.column import rows as table_rows
from sparkpub.site import sweeps
from sparkpub.site.figures import said, samples, shapes
from sparkpub.site.figures.campaign import (
    MOST_LINES,
    difference_chart,
    distinct,
    places_of,
)
from sparkpub.site.figures.draw import Chart
from sparkpub.site.figures.figure import Entry, Figure, Table, Value, plain, table_of
from sparkpub.site.publication import run_address
from sparkpub.site.study import KEYS, WORDS, StudiedCampaign, column, records

FEWEST = 3
"""Points from which on there is a picture."""
GIGA = 1e9


# ---- A campaign: capacity, memory bandwidth --------------------------------------------------------------------------


_WAITS = {
    "ttft": "First token, p95 in s",
    "tpot_p95_ms": "Time per output token, p95 in ms",
    "served_req_s": "Completed a second",
    "in_flight": "In flight",
    "user_tok_s": "tok/s for each user",
}


def capacities(campaign: StudiedCampaign) -> pd.DataFrame:
    """The table of capacities in the order of the ranking: `name` (the build), `column` (the limit), `value` (requests
    a second, 0 where no rate holds), `highest` (rate that was measured), `tip`."""
    table = campaign.site.results.capacities
    rows = campaign.part(table)
    rows["name"] = [
        campaign.names.build(campaign.data.name, *build)
        for build in zip(rows["model"], rows["environment"], strict=True)
    ]
    told = in_order(table_rows(rows[rows["limit_seconds"] == TOLD_SECONDS]))
    ranks = {
        (row.model, row.environment, row.load): rank for rank, row in enumerate(told)
    }
    builds = zip(rows["model"], rows["environment"], rows["load"], strict=True)
    rows["rank"] = [ranks[build] for build in builds]
    rows = rows.sort_values(["rank", "limit_seconds"], kind="stable")
    rows["column"] = [f"{limit:g} s" for limit in rows["limit_seconds"]]
    rows["value"] = rows["rate"].fillna(0)
    rows["ttft"] = [round(wait / 1000, 3) for wait in rows["ttft_p95_ms"]]
    rows["highest"] = [rates[-1] for rates in rows["rates"]]
    rows["steps"] = [
        ", ".join(f"{rate:g}" for rate in rates) for rates in rows["rates"]
    ]
    tips = [
        {
            "build": row["name"],
            "load": row["load"],
            f"within {row['column']}": row["text"],
            **{
                title: rounded(row[name])
                for name, title in _WAITS.items()
                if row[name] is not None
            },
            "rates measured": row["steps"],
        }
        for row in records(rows)
    ]
    rows["tip"] = column(rows, tips)
    return rows


def capacity(campaign: StudiedCampaign) -> Figure:
    """`capacity`: requests a second that each build bears within each limit of the time to first token."""
    rows = capacities(campaign)
    body: list[list[Any]] = []
    for (build, load), limits in rows.groupby(["name", "load"], sort=False):
        last = limits.iloc[-1]
        means = ["" if pd.isna(last[name]) else rounded(last[name]) for name in _WAITS]
        note = last["note"] if isinstance(last["note"], str) else ""
        body.append([build, load, *limits["text"], *means, note, last["steps"]])
    within = [f"Within {limit:g} s" for limit in LIMITS_SECONDS]
    head = ("Build", "Load", *within, *_WAITS.values(), "Note", "Rates measured")
    caption = f"Requests per second; from “{_WAITS['ttft']}” on at the rate within {TOLD_SECONDS:g} s"
    shown = rows.assign(
        text=rows["text"].where(
            ~rows["at_least"], "all to " + rows["rate"].map("{:g}".format)
        ),
    )
    # The darker shades of the ramp would hide the figures.
    shape = partial(
        shapes.grid,
        across="Requests/s with the first token within",
        shades=(0.05, 0.25, 0.6),
    )
    return Figure(
        title="Capacity: requests per second within limits of the time to first token and per output token",
        says=said.capacity(rows),
        sample=(
            "The highest arrival rate measured at which 95 % of the first tokens come within the limit, 95 % of the "
            f"times per output token are at most {LIMIT_TPOT_MS:g} ms, at most 1 % of the requests fail, and every "
            "lower rate holds, too. “All to”: every measured rate holds, so the limit is not known. "
            f"Load: {listed(dict.fromkeys(rows['load']))}."
        ),
        chart=Chart(shape, plain(shown)),
        table=Table(head, body, caption=f"{caption}, else at the lowest"),
        flags=campaign.flags(),
    )


def bandwidths(campaign: StudiedCampaign) -> pd.DataFrame:
    """Every build under the load of most of them, the largest share of the bandwidth first: `name`, the bytes of a
    token in GB as `x`, tok/s as `value`; builds whose bytes nobody knows come last."""
    table = campaign.site.results.bandwidths
    rows = table[table["campaign"] == campaign.data.name].astype(object).infer_objects()
    if rows.empty:
        return rows
    rows = rows[rows["workload"] == Counter(rows["workload"]).most_common(1)[0][0]]
    known = campaign.names.campaign(campaign.data.name)
    several = rows["model"].map(rows["model"].value_counts()) > 1
    names = rows["model"].map(lambda key: known.models.get(key, key))
    environments = rows["environment"].map(lambda key: known.environments.get(key, key))
    rows["name"] = names.where(~several, names + ", " + environments)
    rows["x"] = rows["bytes_per_token"] / GIGA
    rows["value"], rows["group"] = rows["output_throughput_tok_s"], rows["weights"]
    rows = campaign.part(rows)
    rows["share"] = -rows["share_percent"].fillna(0)
    return rows.sort_values("share", kind="stable")


def bandwidth(campaign: StudiedCampaign) -> Figure:
    """`memory-bandwidth`: tokens per second of one user against the bytes of weights that each token reads, and what
    the memory allows."""
    rows = bandwidths(campaign)
    shown = rows[rows["share_percent"].notna()].assign(kind="run")
    limit = (shown["bandwidth_bytes_s"] / GIGA).max()
    low, high = outward(
        shown["share_percent"].min(), shown["share_percent"].max(), decimals=0
    )
    says = (
        f"One user takes {low:g} to {high:g} % of the memory's {limit:g} GB/s, "
        f"half of the {counted(len(shown), 'build')} {rounded(median(shown['share_percent']), 2)} % or more."
    )
    if len(shown) < len(rows):
        more = counted(len(rows) - len(shown), "more build")
        says += f" For {more} the bytes of a token are {UNKNOWN}."
    doubtful = int((~shown["is_plausible"].astype(bool)).sum())
    if doubtful:
        builds = counted(doubtful, "build")
        says += f" For {builds} that is more than engines reach: the format or the size may be wrong."
    told = []
    for row in records(rows):
        size = experts = share = ""
        if row["share_percent"] is not None:
            size, share = rounded(row["x"]), f"{rounded(row['share_percent'], 2)} %"
            read = row["expert_bytes_per_token"]
            experts = rounded(read / GIGA) if read else ""
        told.append(
            {
                "Build": row["name"],
                "Weights": row["weights"],
                "GB per token": size,
                "Of them experts": experts,
                "Who says so": row["source"] or "",
                "ms per token": rounded(row["milliseconds_per_token"]),
                "tok/s": rounded(row["value"]),
                "Of the bandwidth": share,
            }
        )
    # Those whose bytes nobody knows come last.
    shown["tip"] = column(shown, told[: len(shown)])
    allowed = [
        {"kind": "limit", "x": x, "value": limit / x} for x in sorted(shown["x"])
    ]
    shape = partial(
        shapes.points,
        across="GB of weights read per token",
        up="Output tokens per second, one user",
        groups=list(dict.fromkeys(shown["weights"])),
        legend="Weights",
        log=True,
    )
    return Figure(
        title="One user: tokens per second against the weights read for each",
        says=says,
        sample=(
            f"Dashed: all of the {limit:g} GB/s. Every build under one load; caches are not counted. Bytes are "
            "those of the parts of a checkpoint, or two for each parameter that the publisher states, where all parts "
            "have 16 bits. Left out: speculative decoding, and models whose publisher states no such number."
        ),
        chart=Chart(shape, [*plain(shown), *allowed]),
        table=table_of(told),
        flags=campaign.flags(),
    )


# ---- A campaign: coverage, utilisation, machines ---------------------------------------------------------------------


SIGNS = {"done": "●", "failed": "×", "quarantined": "◘", "missing": "○", "extra": "+"}
"""State of a planned run to its sign."""
LEGEND = "● done, × failed, ◘ quarantined, ○ missing;"
Slot = tuple[Cell, int, str]
"""A cell, an iteration of it, and the machine where each machine repeats the campaign, else an empty text."""
COLOURS = dict(zip(SIGNS, ("good", "bad", "warn", "fg2", "c3"), strict=True))


def coverage(campaign: StudiedCampaign) -> Figure:
    """`coverage`: a sign for each planned or recorded iteration of a cell, on each machine where machines repeat it."""
    matrix = campaign.data.matrix
    repeated = matrix is not None and matrix.machines == "replicate"
    recorded: dict[Slot, list[Stored]] = {}
    for run in campaign.data.runs:
        machine = run.record.machine.id or "" if repeated else ""
        slot = run.record.cell, run.record.iteration, machine
        recorded.setdefault(slot, []).append(run)
    machines = machine_names(campaign.site, [campaign.data.name]) if repeated else {}
    found = []
    for (cell, iteration, machine), state in _states(campaign, recorded).items():
        if not campaign.holds(*cell):
            continue
        runs = recorded.get((cell, iteration, machine), [])
        words, on = campaign.words(cell), machines.get(machine, "")
        sign = {
            "machine": on,
            "column": iteration,
            "group": state,
            "text": SIGNS[state] + "+" * (len(runs) > 1),
            "href": run_address(runs[0]) if runs else None,
            "tip": {"cell": words["cell"], "iteration": f"{iteration}"}
            | {"machine": on, "state": state},
        }
        found.append(words | sign)
    rows = pd.DataFrame(found)
    undone = (rows["group"] != "done").astype(int)
    places, note = _of_cells(campaign, rows, undone, "sum")
    shown = rows.merge(places, on=KEYS).sort_values("place", kind="stable")
    if repeated:
        shown["name"] = shown["name"] + ", " + shown["machine"]
        shown = shown.sort_values(["place", "machine"], kind="stable")
    told: list[dict[str, Value]] = []
    entries = [
        Entry(f"{row['column']} {row['text']}", row["href"] or "")
        for row in records(rows)
    ]
    signs = column(rows, entries).groupby([rows["cell"], rows["machine"]])
    of_cells = {key: list(mine) for key, mine in signs}
    for label in campaign.cells_here.values():
        for on in dict.fromkeys(rows["machine"]):
            line: dict[str, Value] = {"Cell": label}
            if repeated:
                line["Machine"] = on
            told.append(line | {"Iterations": of_cells.get((label, on), [])})
    colours = {state: f"var(--sp-{name})" for state, name in COLOURS.items()}
    shape = partial(shapes.grid, across="Iteration", colours=colours)
    return Figure(
        title="Planned and completed runs",
        says=said.coverage(list(rows["group"])),
        sample=f"{LEGEND} + means that the iteration was recorded more than once.{note}",
        chart=Chart(shape, plain(shown)),
        table=table_of(told),
        flags=campaign.flags(),
    )


def _states(
    campaign: StudiedCampaign, recorded: Mapping[Slot, Sequence[Stored]]
) -> dict[Slot, str]:
    """The state of every iteration; those that are there are all where no matrix says what was planned, or one that was
    changed after a run: the check `not-as-requested` says so."""
    data = campaign.data
    states: dict[Slot, str] = {}
    with suppress(CollectError):
        if data.matrix is not None:
            planned = plan_coverage.states(data.matrix, data.records, data.quarantined)
            for run, state in planned.items():
                slot = run.cell, run.iteration, run.machine or ""
                states[slot] = "missing" if state == "retry" else state
    planned_any = bool(states)
    for slot, runs in recorded.items():
        found = "done" if any(run.record.status == "ok" for run in runs) else "failed"
        states.setdefault(slot, "extra" if planned_any else found)
    return states


def _of_cells(
    campaign: StudiedCampaign, rows: pd.DataFrame, sizes: "pd.Series[Any]", how: str
) -> tuple[pd.DataFrame, str]:
    """The places of the cells of rows, those with the largest sum or mean of a size first."""
    words = [*KEYS, *WORDS]
    cells = (
        rows.assign(size=sizes)
        .groupby(words, sort=False)["size"]
        .agg(how)
        .reset_index()
    )
    order = {cell: place for place, cell in enumerate(campaign.cells_here)}
    cells["row"] = [
        order[cell] for cell in zip(*(cells[key] for key in KEYS), strict=True)
    ]
    cells = cells.sort_values("row").assign(size=lambda found: -found["size"])
    return places_of(campaign, cells, beside=False)


LIMITS = (5, 25, 50, 75, 95)
"""Between two shades of utilisation, in per cent."""
STRETCHES, MOST_RUNS = 48, 60
"""Into which a run is divided, and cells at most whose runs are read."""


def sampled(campaign: StudiedCampaign) -> list[Stored]:
    """The first run with telemetry of each cell, as many as are read."""
    return campaign.firsts("telemetry")[:MOST_RUNS]


def utilisation(campaign: StudiedCampaign) -> Figure:
    """`gpu-utilisation`: how busy the GPU was over time, one run of each cell. Stretches of one shade are one."""
    found: list[dict[str, Any]] = []
    body: list[list[Any]] = []
    for run in sampled(campaign):
        stretches = busy(run)
        if not stretches:
            continue
        mean = sum(value for *_, value in stretches) / len(stretches)
        address = run_address(run)
        body.append(
            [Entry(run.run_id, address), f"{stretches[-1][1]:.0f}", f"{mean:.1f} %"]
        )
        of_run = campaign.words(run.record.cell) | {"mean": mean, "href": address}
        for start, end, value in _joined(stretches):
            tip = {"run": run.run_id, "seconds": f"{start:g} to {end:g}"}
            tip["GPU utilisation"] = f"{value:g} %"
            found.append(of_run | {"x": start, "end": end, "value": value, "tip": tip})
    rows = pd.DataFrame(found)
    places, note = _of_cells(campaign, rows, rows["mean"], "first")
    shown = rows.merge(places, on=KEYS).sort_values("place", kind="stable")
    shape = partial(
        shapes.grid,
        across="Seconds since launch",
        shades=LIMITS,
        unit="GPU utilisation (%)",
    )
    share = between(rows["mean"].min(), rows["mean"].max(), 0)
    return Figure(
        title="GPU utilisation over time",
        says=f"The GPU was busy {share} % of the time from launch to exit.",
        sample=f"The first run of {counted(len(body), 'cell')}.{note}",
        chart=Chart(shape, plain(shown)),
        table=Table(("Run", "Seconds", "Mean utilisation"), body),
        flags=campaign.flags(),
    )


def busy(stored: Stored) -> list[tuple[float, float, float]]:
    """(start, end, mean GPU utilisation in %) of equal stretches of a run, in seconds since launch.
    Empty where the telemetry knows of no GPU."""
    telemetry = samples.read(stored)
    points = [] if telemetry is None else telemetry.timed("gpu_utilization_percent")
    if len(points) < 2 or points[-1][0] <= points[0][0]:
        return []
    begin = points[0][0]
    width = (points[-1][0] - begin) / STRETCHES
    values: dict[int, list[float]] = {}
    for time, value in points:
        values.setdefault(min(STRETCHES - 1, int((time - begin) / width)), []).append(
            value
        )
    return [
        (
            round(begin + index * width, 1),
            round(begin + (index + 1) * width, 1),
            round(sum(mine) / len(mine), 1),
        )
        for index, mine in sorted(values.items())
    ]


def _joined(
    stretches: Sequence[tuple[float, float, float]],
) -> list[tuple[float, float, float]]:
    """Neighbours of one shade as one stretch with their mean: no more than that is seen."""
    joined: list[list[Any]] = []
    for start, end, value in stretches:
        shade = sum(value >= limit for limit in LIMITS)
        if joined and joined[-1][0] == shade and joined[-1][2] == start:
            joined[-1][2] = end
            joined[-1][3].append(value)
        else:
            joined.append([shade, start, end, [value]])
    return [
        (start, end, round(sum(values) / len(values), 1))
        for _, start, end, values in joined
    ]


ALL = "all together"
ID_LETTERS = 6
"""Of a machine's id, enough to tell a few machines apart."""


def machine_names(site: Any, campaigns: Sequence[str]) -> dict[str, str]:
    """Id of a machine to what readers call it: its kind and the first letters of the id."""
    names = {}
    for campaign in campaigns:
        for record in site.dataset.campaign(campaign).records:
            name = record.machine.id or ""
            what = (
                "machine"
                if record.machine.kind is None
                else setup_of(record).machine_in_short
            )
            names[name] = f"{what} {name[:ID_LETTERS]}".strip()
    return names


def effects(campaign: StudiedCampaign) -> pd.DataFrame:
    """The leading comparisons on each machine, in per cent of its own baseline, and for all together (`over`): `panel`,
    `name`, `value, low, high` (95 %), `verdict`, `machine`, and of all together the columns of `replications`."""
    names = campaign.site.joined(campaign.data)
    measured, together = campaign.site.results.over(names)
    if measured.empty or together.empty:
        return pd.DataFrame()
    sides = ["model", "workload", "baseline", "candidate"]
    several = len(together[sides].drop_duplicates()) > 1
    sessions = _session_names(campaign, names)
    one = measured.astype(object).infer_objects()
    base = one["mean_baseline"].abs()
    one = one.assign(
        over=False,
        value=one["difference_percent"],
        low=100 * one["ci95_difference_low"] / base,
        high=100 * one["ci95_difference_high"] / base,
        called=[
            sessions[session]
            for session in zip(one["campaign"], one["machine"], strict=True)
        ],
    )
    whole = together[together["effect_unit"] == "%"].astype(object).infer_objects()
    whole = whole.assign(
        over=True,
        value=whole["effect"],
        low=whole["ci95_effect_low"],
        high=whole["ci95_effect_high"],
        called=ALL,
    )
    found = []
    for metric in campaign.site.headlines(campaign.data):
        of_all = whole[whole["metric"] == metric.name]
        for place, pair in enumerate(of_all[sides].itertuples(index=False)):
            same = pd.DataFrame([pair], columns=sides)
            mine = one[one["metric"] == metric.name].merge(same, on=sides)
            rows = pd.concat([mine, of_all.iloc[[place]]])
            cell = f"{pair.model} ({pair.workload}), " if several else ""
            found.append(
                rows.assign(
                    panel=metric.label,
                    name=cell + rows["called"],
                    environment=str(pair.candidate),
                )
            )
    rows = pd.concat(found) if found else pd.DataFrame()
    if rows.empty:
        return rows
    return campaign.part(rows.assign(campaign=campaign.data.name))


def _session_names(
    campaign: StudiedCampaign, campaigns: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Campaign and id of a machine to what readers call the session: the machine, and of several campaigns the day; the
    campaign, too, where that does not part them."""
    machines = machine_names(campaign.site, campaigns)
    days: dict[tuple[str, str], str] = {}
    for name in campaigns:
        for record in campaign.site.dataset.campaign(name).records:
            days.setdefault((name, record.machine.id or ""), record.started.value[:10])
    if len(campaigns) == 1:
        return {session: machines[session[1]] for session in days}
    names = {session: f"{machines[session[1]]}, {day}" for session, day in days.items()}
    alike = Counter(names.values())
    return {
        session: f"{name}, {session[0]}" if alike[name] > 1 else name
        for session, name in names.items()
    }


def per_machine(campaign: StudiedCampaign) -> Figure:
    """`effect-per-machine`: whether the leading metrics show the same on every machine, or in each session."""
    rows, margin = effects(campaign), campaign.data.margin_percent
    baseline = campaign.names.environment(
        campaign.data.name, campaign.data.baseline or ""
    )
    metrics = {
        metric.name: metric.within_sentence
        for metric in campaign.site.metrics(campaign.data)
    }
    told = []
    for row in records(rows):
        interval, number = "none", ""
        if row["low"] is not None:
            low, high = outward(row["low"], row["high"], 2)
            interval = f"{percent(low, 2)} to {percent(high, 2)}"
        if not row["over"]:
            number = f"{row['n_baseline']:.0f} and {row['n_candidate']:.0f}"
        told.append(
            {
                "Metric": row["panel"],
                "Machine": row["name"],
                "n": number,
                "Difference": percent(row["value"], 2),
                "95 % interval": interval,
                "Verdict": row["verdict"],
                "Between machines": _between(row),
            }
        )
    sessions = rows.loc[~rows["over"].astype(bool), "machine"].nunique()
    return Figure(
        title=f"Difference from {runs_of(baseline)} on each machine",
        says=said.replication(rows[rows["over"].astype(bool)], metrics, sessions),
        sample=(
            f"Lines are 95 % intervals; inside the band of ±{margin:g} % two environments are equivalent. "
            f"The interval of “{ALL}” holds for machines like these."
        ),
        chart=difference_chart(rows.assign(tip=column(rows, told)), margin),
        table=table_of(told),
        flags=campaign.flags(),
    )


def _between(row: Mapping[str, Any]) -> str:
    """What differs between machines, of the row for all together."""
    if not row["over"]:
        return ""
    told = f"{row['replication']}. {row['why']}"
    if row["q"] is None:
        return told
    spread = f"τ = {significant(row['between_sd'])} %, I² = {row['i2_percent']:.0f} %"
    if row["prediction95_low"] is not None:
        low, high = outward(row["prediction95_low"], row["prediction95_high"], 2)
        spread += f", one more machine: {percent(low, 2)} to {percent(high, 2)}"
    return f"{told} {spread}."


# ---- Machine and user ------------------------------------------------------------------------------------------------


FILLED = "Filled: no other point{} gives both more."
NEAR = 0.06
"""Of both axes: a number beside a point nearer than this to another's would stand over it."""


def users_of(campaign: StudiedCampaign) -> pd.DataFrame:
    """Every cell on a line of the load with a rate of each user: `line, order` (the load), `x` (a user's tok/s),
    `value` (the machine's), `front` (whether no cell of its model has more of both), `label`, `n`."""
    speeds = {
        speed.cell: speed
        for speed in campaign.site.speeds
        if speed.campaign == campaign.data.name
        and campaign.holds(*speed.cell)
        and GENERATION in speed.figures
        and speed.per_user
    }
    found = []
    for line, name in campaign.lines.items():
        points = [(load, cell) for load, cell in line.points if cell in speeds]
        if line.axis is not sweeps.LOAD or len(points) < 2:
            continue
        for load, cell in points:
            runs = speeds[cell].figures[GENERATION].n
            found.append(
                dict(zip(KEYS, cell, strict=True))
                | _rates(speeds[cell], name, load)
                | {"n": runs}
            )
    if not found:
        return pd.DataFrame()
    rows = pd.DataFrame(found)
    parts = [_with_front(mine) for _, mine in rows.groupby("model", sort=False)]
    return pd.concat(parts)


def users(campaign: StudiedCampaign) -> Figure:
    """`pareto-front`: throughput of the machine against the speed of each user, along the load."""
    rows = users_of(campaign)
    line = next(line for line in campaign.lines if line.axis is sweeps.LOAD)
    notes = f"{line.title} beside each point. {FILLED.format(said.of_its_model(rows))}"
    if rows["line"].nunique() > MOST_LINES:
        notes += f" {MOST_LINES} of {rows['line'].nunique()} lines are drawn; the table has all."
    return Figure(
        title="Throughput of the machine against the speed of each user",
        says=said.users(rows, line),
        sample=notes,
        chart=_users_chart(rows, "Line"),
        table=table_of(list(rows["tip"])),
        flags=campaign.flags(),
    )


def users_of_model(
    model: ModelName, speeds: Sequence[Speed], names: Mapping[Setup, str]
) -> Figure | None:
    """A curve for each set-up over its users, for the machine, tool and lengths with the most points; None where no
    set-up was measured with several numbers of users. `names` are those of the set-ups."""
    setups = _usual(speeds)
    if not setups:
        return None
    points = []
    for setup, mine in setups.items():
        for speed in sorted(mine, key=lambda speed: speed.load.at_once or 0):
            points.append(_rates(speed, names[setup], speed.load.at_once or 0))
    rows = _with_front(pd.DataFrame(points))
    most = rows.iloc[int(rows["value"].argmax())]
    first = next(iter(setups.values()))[0]
    return Figure(
        key=f"users-of-{model.slug}",
        title="How many users can it serve?",
        says=(
            f"Most measured: {rounded(most['value'])} tok/s in all, with {counted(most['order'], 'user')} "
            f"at {rounded(most['x'])} tok/s each ({most['line']})."
        ),
        chart=_users_chart(rows, "Recipe"),
        table=table_of(list(rows["tip"])),
        sample=(
            f"{first.machine}, {lengths_name(first.load)} ({first.load.tool}); users beside each point. "
            f"{FILLED.format('')}"
        ),
    )


def _rates(speed: Speed, line: str, load: float) -> dict[str, Any]:
    """What all users together and what one of them gets under a load, in tok/s."""
    machine = round(speed.figures[GENERATION].mean, 2)
    return {
        "line": line,
        "order": load,
        "value": machine,
        "x": round(speed.per_user or 0, 2),
    }


def _with_front(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `front`: whether no other one gives both more; and `label`: the load, or nothing where another
    point's number has the place, of which those on the front have theirs first."""
    points = list(zip(rows["x"], rows["value"], strict=True))
    front = [
        not any(
            x <= other_x and y <= other_y and (x, y) != (other_x, other_y)
            for other_x, other_y in points
        )
        for x, y in points
    ]
    widest, highest = rows["x"].max() or 1, rows["value"].max() or 1
    taken: list[tuple[float, float]] = []
    labels: list[str | None] = [None] * len(rows)
    for place in sorted(range(len(rows)), key=lambda place: not front[place]):
        across, up = points[place][0] / widest, points[place][1] / highest
        if all(max(abs(across - x), abs(up - y)) >= NEAR for x, y in taken):
            labels[place] = f"{rows['order'].iloc[place]:,g}"
            taken.append((across, up))
    told = [
        {
            "Line": row["line"],
            "Users": f"{row['order']:,g}",
            "All users (tok/s)": rounded(row["value"], 4),
            "Each user (tok/s)": rounded(row["x"], 4),
            "Best choice": "yes" if best else "no",
        }
        for row, best in zip(records(rows), front, strict=True)
    ]
    return rows.assign(front=front, label=column(rows, labels), tip=column(rows, told))


def _users_chart(rows: pd.DataFrame, legend: str) -> Chart:
    lines = list(dict.fromkeys(rows["line"]))[:MOST_LINES]
    called, shared = distinct(lines)
    shown = rows[rows["line"].isin(lines)]
    shown = shown.assign(group=shown["line"].map(dict(zip(lines, called, strict=True))))
    shape = partial(
        shapes.lines,
        across="Speed for each user (tok/s)",
        up="All users (tok/s)",
        groups=called if len(called) > 1 else (),
        legend=legend if shared == "Line" else shared,
    )
    points = shown.drop(columns="label").assign(kind="run", counts=shown["front"])
    return Chart(shape, plain(pd.concat([shown.assign(kind="mean"), points])))


Setups = Mapping[Setup, Sequence[Speed]]
"""Set-up to its speeds under loads that differ in their users alone."""


def _usual(speeds: Sequence[Speed]) -> Setups:
    """Of the lengths that were measured with several numbers of users those nearest to a usual request; empty where
    there are none."""
    closed = []
    for speed in speeds:
        is_closed = speed.load.at_once and speed.load.request_rate is None
        if is_closed and speed.per_user and GENERATION in speed.figures:
            closed.append(speed)
    choices: list[Setups] = []
    for mine in grouped(closed, _shape).values():
        by_setup = grouped(mine, lambda speed: speed.setup)
        lines = {setup: found for setup, found in by_setup.items() if len(found) > 1}
        if lines:
            choices.append(lines)
    return min(choices, key=_unusual, default={})


def _shape(speed: Speed) -> tuple[object, ...]:
    """What the points of a chart have in common: all of the load but its users."""
    load = speed.load
    lengths = load.input_tokens, load.output_tokens, load.depth
    return speed.machine, load.tool, load.dataset, *lengths


def _unusual(setups: Setups) -> tuple[Any, ...]:
    """Sorts lengths: those with curves of at least three points first, then those nearest to a usual request."""
    load: Load = next(iter(setups.values()))[0].load
    wanted_in, wanted_out = USUAL
    before = (load.input_tokens or 0) + load.depth or 1
    away = abs(math.log2(before / wanted_in)) + abs(
        math.log2((load.output_tokens or 1) / wanted_out)
    )
    is_short = max(map(len, setups.values())) < sweeps.SHOWS_A_SHAPE
    return is_short, away, -len(setups)


# ---- Models and versions ---------------------------------------------------------------------------------------------


MOST_LABELS = 6


def models(one: Board, some: Board, addresses: Mapping[str, str]) -> Figure | None:
    """What one user gets alone and what some get together, of every set-up on both boards. None for fewer than three.
    `addresses` are those of the models' pages by name."""
    together = {speed.setup: speed for speed in some.speeds}
    found = [
        (speed, together[speed.setup])
        for speed in one.speeds
        if speed.setup in together
    ]
    if len(found) < FEWEST:
        return None
    rates = [
        tuple(round(speed.figures[GENERATION].mean, 2) for speed in pair)
        for pair in found
    ]
    users = flow_name(some.load)
    rows: list[shapes.Row] = []
    slowest = min(alone for alone, _ in rates)
    named = _at_the_edges(rates)
    for place, ((speed, _), (alone, all_users)) in enumerate(
        zip(found, rates, strict=True)
    ):
        tip = {
            "model": speed.model.name,
            "weights": speed.weights,
            "one user": f"{alone:g} tok/s",
            users: f"{all_users:g} tok/s",
        }
        row = {
            "kind": "run",
            "group": speed.weights,
            "x": alone,
            "value": all_users,
            "tip": tip,
        }
        if place in named:
            # Left of the slowest one there is no room.
            row |= {"label": speed.model.name, "right": alone == slowest}
        rows.append(row)
    ratios = [all_users / alone for alone, all_users in rates]
    most = some.load.at_once or math.inf
    possible = [ratio for ratio in ratios if ratio <= most] or ratios
    sample = f"Each point is a model in one format on a {one.machine}: {lengths_name(one.load)} ({one.load.tool})."
    if len(possible) < len(ratios):
        # No server can have these: their one user was held back.
        points = counted(len(ratios) - len(possible), "point")
        sample += f" Left out of the sentence: {points} above {most:g} times, whose single user was held back."
    body: list[list[Any]] = []
    for (speed, _), both in zip(found, rates, strict=True):
        name = Entry(speed.model.name, addresses.get(speed.model.name, ""))
        body.append([name, speed.weights, *map(rounded, both)])
    shape = partial(
        shapes.points,
        across="One user (tok/s)",
        up=f"{users} together (tok/s)",
        groups=list(dict.fromkeys(str(row["group"]) for row in rows)),
        legend="Weights",
        log=True,
    )
    return Figure(
        key="one-and-many-users",
        title="More users: more in total, less for each",
        says=f"{users.capitalize()} together get {extent(possible)} times the tokens of one.",
        chart=Chart(shape, rows),
        table=Table(
            ("Model", "Weights", "One user (tok/s)", f"{users} together (tok/s)"), body
        ),
        sample=sample,
    )


def _at_the_edges(rates: Sequence[tuple[float, ...]]) -> set[int]:
    """The points that no other one beats in both, and the slowest one."""
    ordered = sorted(range(len(rates)), key=lambda place: rates[place][0], reverse=True)
    front: list[int] = []
    for place in ordered:
        if not front or rates[place][1] > rates[front[-1]][1]:
            front.append(place)
    return {*front[: MOST_LABELS - 1], ordered[-1]}


MOST_LOADS = 4
"""With room below each other; the table has all."""


def versions_of_model(
    model: ModelName, lines: Sequence[VersionLine], names: Names
) -> Figure | None:
    """What was measured more than once over versions and days, in per cent of the first; None where nothing was."""
    if not lines:
        return None
    called = _called(lines, names)
    drawn = list(zip(lines, called, strict=True))[:MOST_LOADS]
    sessions = _sessions([line for line, _ in drawn])
    rows: list[shapes.Row] = []
    for line, name in drawn:
        for point in line.points:
            since = change_between(line.points[0].mean, point.mean)
            row = {
                "panel": name,
                "name": sessions[_session(point)],
                "value": 0.0,
                "low": 0.0,
                "high": 0.0,
                "verdict": "first",
            }
            if point.change is not None:
                low, high = since.interval or (since.percent, since.percent)
                row |= {"value": since.percent, "low": low, "high": high}
                row["verdict"] = (
                    "changed" if point.change.is_beyond_noise else "not shown"
                )
            row["tip"] = {
                "load": name,
                "measured": f"{rounded(point.mean.value)} tok/s",
                "from the first": percent(since.percent),
            }
            rows.append({key: value for key, value in row.items() if value is not None})
    sample = "Lines are 95 % intervals of the change from the first, each by itself; filled: beyond the noise."
    if len(drawn) < len(lines):
        sample += f" {len(drawn)} of {len(lines)} loads are drawn; the table has all."
    body: list[list[Any]] = []
    for line, name in zip(lines, called, strict=True):
        points = [
            f"{rounded(point.mean.value)} ({point.day}, {point.speed.engine})"
            for point in line.points
        ]
        body.append([name, " → ".join(points), line.differs, line.total.in_words])
    return Figure(
        key=f"versions-of-{model.slug}",
        title="Output throughput of one load, measured again",
        says=said.versions(lines),
        sample=sample,
        chart=Chart(partial(shapes.forest, title="Change from the first (%)"), rows),
        table=Table(
            ("Weights and load", "Measured (tok/s)", "Set differently", "Change"), body
        ),
    )


def _called(lines: Sequence[VersionLine], names: Names) -> list[str]:
    """`BF16, 8 users, 512 in, 128 out`; with environment and machine, `..., Docker, H200`, where that names several."""
    short = [f"{line.first.weights}, {load_name(line.first.load)}" for line in lines]
    times = Counter(short)
    called = []
    for line, name in zip(lines, short, strict=True):
        if times[name] > 1:
            first = line.points[0].speed
            environment = names.environment(first.campaign, first.cell[1])
            called.append(f"{name}, {environment}, {line.first.machine}")
        else:
            called.append(name)
    return called


Session = tuple[str, str, str]
"""Campaign, engine and day."""


def _session(point: VersionPoint) -> Session:
    return point.speed.campaign, point.speed.engine, point.day


def _sessions(lines: Sequence[VersionLine]) -> dict[Session, str]:
    """What stands beside each session, in order of time: `2026-08-16, vLLM 0.26.0`; a second one of a day has a 2."""
    points = [point for line in lines for point in line.points]
    points.sort(key=lambda point: point.speed.records[0].started.value)
    found: dict[Session, str] = {}
    times: Counter[tuple[str, str]] = Counter()
    for session in dict.fromkeys(map(_session, points)):
        _, engine, day = session
        times[day, engine] += 1
        number = times[day, engine]
        found[session] = (
            f"{day} ({number}), {engine}" if number > 1 else f"{day}, {engine}"
        )
    return found

"""The figures of a campaign that are not of one metric."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from sparkpub.plan import coverage as plan_coverage
from sparkpub.record.errors import CollectError
from sparkpub.record.store import Stored
from sparkpub.record.text import (
    between,
    counted,
    listed,
    outward,
    percent,
    rounded,
    significant,
)
from sparkpub.review.reviewed import Cell
from sparkpub.review.setup import setup_of
from sparkpub.review.tables.bandwidths import UNKNOWN
from sparkpub.review.tables.capacities import (
    LIMIT_TPOT_MS,
    TOLD_SECONDS,
    in_order,
)
from sparkpub.review.tables.column import rows as table_rows
from sparkpub.site.figures import said, samples, shapes
from sparkpub.site.figures.campaign import difference_chart, places_of
from sparkpub.site.figures.figure import (
    Entry,
    Figure,
    Value,
    chart,
    plain,
    table_of,
)
from sparkpub.site.publication import run_address
from sparkpub.site.study import KEYS, WORDS, StudiedCampaign, column, records

FEWEST = 3
"""Points from which on there is a picture."""
GIGA = 1e9


# ---- Capacity --------------------------------------------------------------------------------------------------------


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
    rows = campaign.part(campaign.site.results.capacities)
    if "workload" in campaign.only:  # which is one rate of many
        return rows[:0]
    told = in_order(table_rows(rows[rows["limit_seconds"] == TOLD_SECONDS]))
    ranked = [(row.model, row.environment, row.load) for row in told]
    builds = list(
        zip(
            rows["model"],
            rows["environment"],
            rows["load"],
            strict=True,
        )
    )
    rows["rank"] = [ranked.index(build) for build in builds]
    rows["name"] = [campaign.build(*build) for *build, _ in builds]
    rows["column"] = [f"{limit:g} s" for limit in rows["limit_seconds"]]
    rows["value"] = rows["rate"].fillna(0)
    rows["ttft"] = rows["ttft_p95_ms"] / 1000
    rows["highest"] = [rates[-1] for rates in rows["rates"]]
    rows["steps"] = [", ".join(map("{:g}".format, rates)) for rates in rows["rates"]]
    rows = rows.sort_values(["rank", "limit_seconds"], kind="stable")
    tips = []
    for row in records(rows):
        tip = {"build": row["name"], "load": row["load"]}
        tip |= {f"within {row['column']}": row["text"], **_waits(row)}
        tips.append(tip | {"rates measured": row["steps"]})
    return rows.assign(tip=column(rows, tips))


def _waits(row: Mapping[str, Any]) -> dict[str, str]:
    found = {title: row[name] for name, title in _WAITS.items()}
    return {title: "" if at is None else rounded(at) for title, at in found.items()}


def capacity(campaign: StudiedCampaign) -> Figure:
    """`capacity`: requests a second that each build bears within each limit of the time to first token."""
    rows = capacities(campaign)
    told = []
    for (build, load), limits in rows.groupby(["name", "load"], sort=False):
        line = {"Build": build, "Load": load}
        *_, last = each = records(limits)
        line |= {f"Within {row['column']}": row["text"] for row in each}
        line |= {**_waits(last), "Note": last["note"] or ""}
        told.append(line | {"Rates measured": last["steps"]})
    caption = (
        f"Requests per second; from “{_WAITS['ttft']}” on at the rate within {TOLD_SECONDS:g} s, "
        "else at the lowest"
    )
    all_hold = "all to " + rows["rate"].map("{:g}".format)
    return Figure(
        says=said.capacity(rows),
        sample=(
            "The highest arrival rate measured at which 95 % of the first tokens come within the limit, 95 % of the "
            f"times per output token are at most {LIMIT_TPOT_MS:g} ms, at most 1 % of the requests fail, and every "
            "lower rate holds, too. “All to”: every measured rate holds, so the limit is not known. "
            f"Load: {listed(dict.fromkeys(rows['load']))}."
        ),
        chart=chart(
            shapes.grid,
            rows.assign(text=rows["text"].mask(rows["at_least"], all_hold)),
            across="Requests/s with the first token within",
            # The darker shades of the ramp would hide the figures.
            shades=(0.05, 0.25, 0.6),
        ),
        table=replace(table_of(told), caption=caption),
    )


# ---- Memory bandwidth ------------------------------------------------------------------------------------------------


def bandwidths(campaign: StudiedCampaign) -> pd.DataFrame:
    """Every build under the load of most of them, the largest `share` of the bandwidth (in %) first: `name`, the bytes
    of a token in GB as `x`, tok/s as `value`. Builds whose bytes nobody knows come last."""
    table = campaign.site.results.bandwidths
    rows = table[table["campaign"] == campaign.data.name]
    loads = rows["workload"].astype(str)
    rows = campaign.part(
        rows[loads.isin(loads.value_counts(sort=False).nlargest(1).index)]
    )
    builds = zip(
        rows["model"],
        rows["environment"],
        strict=True,
    )
    rows["name"] = [campaign.build(*build) for build in builds]
    rows["x"] = rows["bytes_per_token"] / GIGA
    rows["value"], rows["group"] = rows["output_throughput_tok_s"], rows["weights"]
    rows["share"] = rows["share_percent"]
    if rows["share"].count() < FEWEST:
        return rows[:0]
    return rows.sort_values(
        "share",
        ascending=False,
        kind="stable",
    )


def bandwidth(campaign: StudiedCampaign) -> Figure:
    """`memory-bandwidth`: tokens per second of one user against the bytes of weights that each token reads, and what
    the memory allows."""
    rows = bandwidths(campaign)
    told = [_of_build(row) for row in records(rows)]
    rows = rows.assign(kind="run", tip=column(rows, told))
    shown = rows[rows["share"].notna()]
    limit = (shown["bandwidth_bytes_s"] / GIGA).max()
    allowed = [
        {"kind": "limit", "x": x, "value": limit / x} for x in sorted(shown["x"])
    ]
    return Figure(
        says=_share_taken(rows, limit),
        sample=(
            f"Dashed: all of the {limit:g} GB/s. Every build under one load; caches are not counted. Bytes are "
            "those of the parts of a checkpoint, or two for each parameter that the publisher states, where all parts "
            "have 16 bits. Left out: speculative decoding, and models whose publisher states no such number."
        ),
        chart=chart(
            shapes.points,
            [*plain(shown), *allowed],
            across="GB of weights read per token",
            up="Output tokens per second, one user",
            groups=list(dict.fromkeys(shown["weights"])),
            legend="Weights",
            log=True,
        ),
        table=table_of(told),
    )


def _share_taken(rows: pd.DataFrame, limit: float) -> str:
    """How much of `limit` GB/s builds take, and of how many that is not known or more than can be."""
    shown = rows[rows["share"].notna()]
    low, high = outward(
        shown["share"].min(),
        shown["share"].max(),
        decimals=0,
    )
    middle = rounded(median(shown["share"]), 2)
    says = (
        f"One user takes {low:g} to {high:g} % of the memory's {limit:g} GB/s, "
        f"half of the {counted(len(shown), 'build')} {middle} % or more."
    )
    if len(shown) < len(rows):
        more = counted(len(rows) - len(shown), "more build")
        says += f" For {more} the bytes of a token are {UNKNOWN}."
    doubtful = int((~shown["is_plausible"].astype(bool)).sum())
    if doubtful:
        builds = counted(doubtful, "build")
        says += f" For {builds} that is more than engines reach: the format or the size may be wrong."
    return says


def _of_build(row: Mapping[str, Any]) -> dict[str, str]:
    """What a build reads and makes, for the table."""
    size = experts = share = ""
    if row["share"] is not None:
        size, share = rounded(row["x"]), f"{rounded(row['share'], 2)} %"
        read = row["expert_bytes_per_token"]
        experts = rounded(read / GIGA) if read else ""
    return {
        "Build": row["name"],
        "Weights": row["weights"],
        "GB per token": size,
        "Of them experts": experts,
        "Who says so": row["source"] or "",
        "ms per token": rounded(row["milliseconds_per_token"]),
        "tok/s": rounded(row["value"]),
        "Of the bandwidth": share,
    }


# ---- Coverage --------------------------------------------------------------------------------------------------------


SIGNS = {
    "done": "●",
    "failed": "×",
    "quarantined": "◘",
    "missing": "○",
    "extra": "+",
}
"""State of a planned run to its sign."""
Slot = tuple[Cell, str, int]
"""A cell, the machine where each repeats the campaign, else an empty text, and an iteration."""
LEGEND = "● done, × failed, ◘ quarantined, ○ missing; + means that the iteration was recorded more than once."
_COLOURS = {"done": "good", "failed": "bad", "quarantined": "warn", "extra": "c3"}


def coverage(campaign: StudiedCampaign) -> Figure:
    """`coverage`: a sign for each planned or recorded iteration of a cell, on each machine where machines repeat it."""
    rows = _slots(campaign)
    told: list[dict[str, Value]] = []
    for (label, machine), mine in rows.groupby(["cell", "machine"], sort=False):
        line: dict[str, Value] = {"Cell": str(label)}
        if machine:
            line["Machine"] = str(machine)
        signs = mine["column"].astype(str) + " " + mine["text"]
        line["Iterations"] = list(map(Entry, signs, mine["href"].fillna("")))
        told.append(line)
    shown, note = _by_size(campaign, rows, rows["group"] != "done")
    on = shown["machine"]
    shown["name"] += on.where(on == "", ", " + on)
    return Figure(
        says=said.coverage(list(rows["group"])),
        sample=f"{LEGEND}{note}",
        chart=chart(
            shapes.grid,
            shown,
            across="Iteration",
        ),
        table=table_of(told),
    )


def _slots(campaign: StudiedCampaign) -> pd.DataFrame:
    """Every planned or recorded iteration, by cell and machine where each machine repeats the campaign: the words of
    its cell, `machine`, `column` (the iteration), `group` (its state), `text` (the sign of that) and `colour`, `href`,
    `tip`.

    Where no matrix says what was planned, or one that was changed after a run, those that are there are all: the check
    `not-as-requested` says so.
    """
    data = campaign.data
    planned: dict[Slot, str] = {}
    are_repeated = data.matrix is not None and data.matrix.machines == "replicate"
    machines = machine_names(campaign.site, [data.name]) if are_repeated else {}
    with suppress(CollectError):
        if data.matrix is not None:
            states = plan_coverage.states(data.matrix, data.records, data.quarantined)
            for run, is_there in states.items():
                planned[run.cell, run.machine or "", run.iteration] = is_there
    recorded: dict[Slot, list[Stored]] = {}
    for stored in data.runs:
        record = stored.record
        machine = record.machine.id or "" if are_repeated else ""
        slot = record.cell, machine, record.iteration
        recorded.setdefault(slot, []).append(stored)
    found = []
    for slot in {**planned, **recorded}:
        cell, machine, iteration = slot
        if not campaign.holds(*cell):
            continue
        runs = recorded.get(slot, [])
        has_good = any(run.record.status == "ok" for run in runs)
        unplanned = "extra" if planned else "done" if has_good else "failed"
        state = planned.get(slot, unplanned).replace("retry", "missing")
        row: dict[str, Any] = dict(
            zip(
                KEYS,
                cell,
                strict=True,
            )
        )
        row |= {"machine": machines.get(machine, ""), "column": iteration}
        tip = {"cell": campaign.cells_here[cell], "iteration": f"{iteration}"}
        row["tip"] = tip | {"machine": row["machine"], "state": state}
        row |= {"group": state, "text": SIGNS[state] + "+" * (len(runs) > 1)}
        row["colour"] = f"var(--sp-{_COLOURS.get(state, 'fg2')})"
        row["href"] = run_address(runs[0]) if runs else None
        found.append(row)
    rows = campaign.worded(pd.DataFrame(found))
    return rows.sort_values(["row", "machine"], kind="stable")


def _by_size(
    campaign: StudiedCampaign, rows: pd.DataFrame, sizes: "pd.Series[Any]"
) -> tuple[pd.DataFrame, str]:
    """The rows of those cells for which there is room, those with the largest mean of a size first, and a note of what
    there is no room for."""
    cells = rows.assign(size=-sizes.astype(float)).groupby([*KEYS, *WORDS], sort=False)
    places, note = places_of(
        campaign,
        cells["size"].mean().reset_index(),
        beside=False,
    )
    shown = rows.merge(places, on=KEYS)
    return shown.sort_values("place", kind="stable"), note


# ---- Utilisation -----------------------------------------------------------------------------------------------------


LIMITS = (5, 25, 50, 75, 95)
"""Between two shades of utilisation, in per cent."""
STRETCHES, MOST_RUNS = 48, 60
"""Into which a run is divided, and cells at most whose runs are read."""


def busy_runs(campaign: StudiedCampaign) -> list[tuple[Stored, pd.DataFrame]]:
    """The first run of each cell, of `MOST_RUNS` at most, and its stretches; those whose telemetry knows of no GPU left
    out."""
    runs = ((run, busy(run)) for run in campaign.sampled()[:MOST_RUNS])
    return [(run, stretches) for run, stretches in runs if len(stretches)]


def utilisation(campaign: StudiedCampaign) -> Figure:
    """`gpu-utilisation`: how busy the GPU was over time, one run of each cell. Stretches of one shade are one."""
    found: list[pd.DataFrame] = []
    told: list[dict[str, Value]] = []
    for run, stretches in busy_runs(campaign):
        mean, address = stretches["value"].mean(), run_address(run)
        line: dict[str, Value] = {"Run": Entry(run.run_id, address)}
        seconds = f"{stretches['end'].iloc[-1]:.0f}"
        told.append(line | {"Seconds": seconds, "Mean utilisation": f"{mean:.1f} %"})
        rows = _joined(stretches).assign(mean=mean, href=address)
        tips = []
        for row in records(rows):
            tip = {"run": run.run_id, "seconds": f"{row['x']:g} to {row['end']:g}"}
            tips.append(tip | {"GPU utilisation": f"{row['value']:g} %"})
        rows[[*KEYS]] = run.record.cell
        found.append(rows.assign(tip=column(rows, tips)))
    rows = campaign.worded(pd.concat(found, ignore_index=True))
    shown, note = _by_size(campaign, rows, rows["mean"])
    share = between(rows["mean"].min(), rows["mean"].max(), 0)
    return Figure(
        says=f"The GPU was busy {share} % of the time from launch to exit.",
        sample=f"The first run of {counted(len(told), 'cell')}.{note}",
        chart=chart(
            shapes.grid,
            shown,
            across="Seconds since launch",
            shades=LIMITS,
            unit="GPU utilisation (%)",
        ),
        table=table_of(told),
    )


def busy(stored: Stored) -> pd.DataFrame:
    """Equal stretches of a run from `x` to `end`, in seconds since launch, with the mean GPU utilisation as `value`, in
    per cent. Empty where the telemetry knows of no GPU."""
    telemetry = samples.read(stored)
    points = [] if telemetry is None else telemetry.timed("gpu_utilization_percent")
    rows = pd.DataFrame(points, columns=["time", "value"])
    begin, width = rows["time"].min(), np.ptp(rows["time"]) / STRETCHES
    if len(rows) < 2 or not width:
        return pd.DataFrame()
    places = ((rows["time"] - begin) / width).astype(int).clip(upper=STRETCHES - 1)
    means = rows["value"].groupby(places).mean()
    ends = {"x": begin + width * means.index, "end": begin + width * (means.index + 1)}
    return pd.DataFrame({**ends, "value": means}).round(1)


def _joined(stretches: pd.DataFrame) -> pd.DataFrame:
    """Neighbours of one shade as one stretch with their mean: no more than that is seen."""
    shade = np.searchsorted(
        LIMITS,
        stretches["value"],
        side="right",
    )
    begins = np.diff(shade, prepend=-1).astype(bool)
    begins |= stretches["x"] != stretches["end"].shift()
    joined = stretches.groupby(begins.cumsum())
    return joined.agg({"x": "first", "end": "last", "value": "mean"}).round(1)


# ---- Machines --------------------------------------------------------------------------------------------------------


ALL = "all together"
ID_LETTERS = 6
"""Of a machine's id, enough to tell a few machines apart."""
SIDES = ["model", "workload", "baseline", "candidate"]
"""What a comparison is of."""


def machine_names(site: Any, campaigns: Sequence[str]) -> dict[str, str]:
    """Id of a machine to what readers call it: its kind and the first letters of the id."""
    names = {}
    for campaign in campaigns:
        for record in site.dataset.campaign(campaign).records:
            name, what = record.machine.id or "", "machine"
            if record.machine.kind is not None:
                what = setup_of(record).machine_in_short
            names[name] = f"{what} {name[:ID_LETTERS]}".strip()
    return names


def effects(campaign: StudiedCampaign) -> pd.DataFrame:
    """The leading comparisons on each machine, in per cent of its own baseline, and for all together (`over`): `panel`,
    `name`, `value, low, high` (95 %), `verdict`, `machine`, and of all together the columns of `replications`."""
    campaigns = campaign.site.joined(campaign.data)
    measured, together = campaign.site.results.over(campaigns)
    if measured.empty or together.empty:
        return pd.DataFrame()
    called = _session_names(campaign, campaigns)
    sessions = zip(
        measured["campaign"],
        measured["machine"],
        strict=True,
    )
    base = measured["mean_baseline"].abs()
    each = measured.astype(object).assign(
        over=False,
        value=measured["difference_percent"],
        low=100 * measured["ci95_difference_low"] / base,
        high=100 * measured["ci95_difference_high"] / base,
        called=[called[session] for session in sessions],
    )
    ends = {
        "effect": "value",
        "ci95_effect_low": "low",
        "ci95_effect_high": "high",
    }
    whole = together[together["effect_unit"] == "%"].astype(object)
    whole = whole.rename(columns=ends).assign(over=True, called=ALL)
    labels = {
        metric.name: metric.label for metric in campaign.site.headlines(campaign.data)
    }
    whole = whole[whole["metric"].isin(labels)]
    pairs = whole[[*SIDES, "metric"]].assign(
        place=whole["metric"].map(list(labels).index), pair=range(len(whole))
    )
    rows = pd.concat([each, whole]).merge(pairs, on=[*SIDES, "metric"])
    rows = rows.sort_values(["place", "pair", "over"], kind="stable").infer_objects()
    cell = rows["model"] + " (" + rows["workload"] + "), "
    are_several = len(together[SIDES].drop_duplicates()) > 1
    rows["name"] = (cell if are_several else "") + rows["called"]
    rows["panel"] = rows["metric"].map(labels)
    rows["environment"], rows["campaign"] = rows["candidate"], campaign.data.name
    return campaign.part(rows)


def _session_names(
    campaign: StudiedCampaign, campaigns: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Campaign and id of a machine to what readers call the session: the machine, and of several campaigns the day; the
    campaign, too, where that does not part them."""
    machines = machine_names(campaign.site, campaigns)
    names: dict[tuple[str, str], str] = {}
    for campaign_name in campaigns:
        for record in campaign.site.dataset.campaign(campaign_name).records:
            machine = record.machine.id or ""
            on = f", {record.started.value[:10]}" if len(campaigns) > 1 else ""
            names.setdefault((campaign_name, machine), machines[machine] + on)
    alike = Counter(names.values())
    return {
        session: f"{name}, {session[0]}" if alike[name] > 1 else name
        for session, name in names.items()
    }


def per_machine(campaign: StudiedCampaign) -> Figure:
    """`effect-per-machine`: whether the leading metrics show the same on every machine, or in each session."""
    rows, margin = effects(campaign), campaign.data.margin_percent
    told = [_of_machine(row) for row in records(rows)]
    rows = rows.assign(tip=column(rows, told))
    is_of_all = rows["over"].astype(bool)
    metrics = {
        metric.name: metric.within_sentence
        for metric in campaign.site.metrics(campaign.data)
    }
    sessions = rows.loc[~is_of_all, "machine"].nunique()
    return Figure(
        says=said.replication(rows[is_of_all], metrics, sessions),
        sample=(
            f"Lines are 95 % intervals; inside the band of ±{margin:g} % two environments are equivalent. "
            f"The interval of “{ALL}” holds for machines like these."
        ),
        chart=difference_chart(rows, margin),
        table=table_of(told),
    )


def _of_machine(row: Mapping[str, Any]) -> dict[str, str]:
    """A comparison on one machine or on all together, for the table."""
    number = between_machines = ""
    if row["over"]:
        between_machines = _between_machines(row)
    else:
        number = f"{row['n_baseline']:.0f} and {row['n_candidate']:.0f}"
    return {
        "Metric": row["panel"],
        "Machine": row["name"],
        "n": number,
        "Difference": percent(row["value"], 2),
        "95 % interval": _ends(row["low"], row["high"]) or "none",
        "Verdict": row["verdict"],
        "Between machines": between_machines,
    }


def _between_machines(row: Mapping[str, Any]) -> str:
    told = f"{row['replication']}. {row['why']}"
    if row["q"] is None:
        return told
    spread = f"τ = {significant(row['between_sd'])} %, I² = {row['i2_percent']:.0f} %"
    one_more = _ends(row["prediction95_low"], row["prediction95_high"])
    if one_more:
        spread += f", one more machine: {one_more}"
    return f"{told} {spread}."


def _ends(low: float | None, high: float | None) -> str:
    """`−0.61 % to +0.52 %`; empty where there is no interval."""
    if low is None or high is None:
        return ""
    below, above = outward(low, high, 2)
    return f"{percent(below, 2)} to {percent(above, 2)}"

"""The figures of a campaign that are not of one metric."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
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
from sparkpub.site.figures import said, shapes
from sparkpub.site.figures.campaign import difference_chart, placed
from sparkpub.site.figures.figure import Entry, Figure, Value, chart, plain, table_of
from sparkpub.site.figures.telemetry import read
from sparkpub.site.publication import run_address
from sparkpub.site.study import KEYS, StudiedCampaign, column, records

FEWEST = 3
"""Points from which on there is a picture."""
GIGA = 1e9


# ---- Capacity --------------------------------------------------------------------------------------------------------


_WAITS = {
    "First token, p95 in ms": "ttft_p95_ms",
    "Time per output token, p95 in ms": "tpot_p95_ms",
    "Completed a second": "served_req_s",
    "In flight": "in_flight",
    "tok/s for each user": "user_tok_s",
}


def capacities(campaign: StudiedCampaign) -> pd.DataFrame:
    """The table of capacities in the order of the ranking: `name` (the build), `column` (the limit), `value` (requests
    a second, 0 where no rate holds), `highest` (rate that was measured)."""
    rows = campaign.part(campaign.site.results.capacities)
    if "workload" in campaign.only:  # which is one rate of many
        return rows[:0]
    told = in_order(table_rows(rows[rows["limit_seconds"] == TOLD_SECONDS]))
    ranks = {(row.model, row.environment, row.load): at for at, row in enumerate(told)}
    builds = list(zip(rows["model"], rows["environment"], rows["load"], strict=True))
    names, campaign_name = campaign.names, campaign.data.name
    rows["rank"] = [ranks[build] for build in builds]
    rows["name"] = [names.build(campaign_name, *build) for *build, _ in builds]
    rows["column"] = rows["limit_seconds"].map("{:g} s".format)
    rows["value"], rows["highest"] = rows["rate"].fillna(0), rows["rates"].str[-1]
    return rows.sort_values(["rank", "limit_seconds"], kind="stable")


def capacity(campaign: StudiedCampaign) -> Figure:
    """`capacity`: requests a second that each build bears within each limit of the time to first token."""
    rows = capacities(campaign)
    told: list[dict[str, Value]] = []
    for _, limits in rows.groupby("rank", sort=False):
        *_, last = each = records(limits)
        line: dict[str, Value] = {"Build": last["name"], "Load": last["load"]}
        line |= {f"Within {row['column']}": row["text"] for row in each}
        for title, name in _WAITS.items():
            line[title] = "" if last[name] is None else rounded(last[name])
        rates = ", ".join(map("{:g}".format, last["rates"]))
        told.append(line | {"Note": last["note"] or "", "Rates measured": rates})
    tips = column(rows, [told[rank] for rank in rows["rank"]])
    all_hold = "all to " + rows["rate"].map("{:g}".format)
    caption = (
        f"Requests per second; from “{next(iter(_WAITS))}” on at the rate within {TOLD_SECONDS:g} s, "
        "else at the lowest"
    )
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
            rows.assign(text=rows["text"].mask(rows["at_least"], all_hold), tip=tips),
            across="Requests/s with the first token within",
            # The darker shades of the ramp would hide the figures.
            shades=(0.05, 0.25, 0.6),
        ),
        table=replace(table_of(told), caption=caption),
    )


# ---- Memory bandwidth ------------------------------------------------------------------------------------------------


def bandwidths(campaign: StudiedCampaign) -> pd.DataFrame:
    """The table of bandwidths under the load of most builds, the largest share first: `name` (the build), the bytes of
    a token in GB as `x`, tok/s as `value`. Builds whose bytes nobody knows come last."""
    table = campaign.site.results.bandwidths
    loads = table.loc[table["campaign"] == campaign.data.name, "workload"].astype(str)
    usual = loads.value_counts(sort=False).nlargest(1).index
    rows = campaign.part(table[table["workload"].isin(usual)])
    if rows["share_percent"].count() < FEWEST:
        return rows[:0]
    names, builds = campaign.names, zip(rows["model"], rows["environment"], strict=True)
    rows["name"] = [names.build(campaign.data.name, *build) for build in builds]
    rows["x"] = rows["bytes_per_token"] / GIGA
    rows["value"], rows["group"] = rows["output_throughput_tok_s"], rows["weights"]
    return rows.sort_values("share_percent", ascending=False, kind="stable")


def bandwidth(campaign: StudiedCampaign) -> Figure:
    """`memory-bandwidth`: tokens per second of one user against the bytes of weights that each token reads, and what
    the memory allows."""
    rows = bandwidths(campaign)
    told = [_of_build(row) for row in records(rows)]
    rows = rows.assign(kind="run", tip=column(rows, told))
    shown = rows[rows["share_percent"].notna()]
    shares, limit = shown["share_percent"], (shown["bandwidth_bytes_s"] / GIGA).max()
    allowed = [
        {"kind": "limit", "x": x, "value": limit / x} for x in sorted(shown["x"])
    ]
    says = (
        f"One user takes {between(shares.min(), shares.max(), 0)} % of the memory's {limit:g} GB/s, "
        f"half of the {counted(len(shown), 'build')} {rounded(shares.median(), 2)} % or more."
    )
    if len(shown) < len(rows):
        more = counted(len(rows) - len(shown), "more build")
        says += f" For {more} the bytes of a token are {UNKNOWN}."
    return Figure(
        says=says,
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


def _of_build(row: Mapping[str, Any]) -> dict[str, str]:
    """What a build reads and makes, for the table."""
    size = experts = share = ""
    if row["share_percent"] is not None:
        size, share = rounded(row["x"]), f"{rounded(row['share_percent'], 2)} %"
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
    "done": ("●", "good"),
    "failed": ("×", "bad"),
    "quarantined": ("◘", "warn"),
    "missing": ("○", "fg2"),
}
"""State of a planned run to its sign and its colour."""


def coverage(campaign: StudiedCampaign) -> Figure:
    """`coverage`: a sign for each planned or recorded iteration of a cell, on each machine where machines repeat it."""
    rows = _slots(campaign)
    told: list[dict[str, Value]] = []
    for (cell, machine), mine in rows.groupby(["cell", "machine"], sort=False):
        line: dict[str, Value] = {"Cell": str(cell)}
        if machine:
            line["Machine"] = str(machine)
        signs = mine["column"].astype(str) + " " + mine["text"]
        told.append(line | {"Iterations": list(map(Entry, signs, mine["href"]))})
    is_done = rows["group"] == "done"
    share = is_done.groupby([rows[key] for key in KEYS]).transform("mean")
    shown, _, note = placed(campaign, rows.assign(first=share), beside=False)
    on = shown["machine"]
    shown["name"] += on.where(on == "", ", " + on)
    legend = ", ".join(f"{sign} {state}" for state, (sign, _) in SIGNS.items())
    return Figure(
        says=said.coverage(list(rows["group"])),
        sample=f"{legend.capitalize()}.{note}",
        chart=chart(shapes.grid, shown, across="Iteration"),
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
    states: dict[tuple[Cell, str, int], str] = {}
    with suppress(CollectError):
        if data.matrix is not None:
            planned = plan_coverage.states(data.matrix, data.records, data.quarantined)
            for run, is_there in planned.items():
                states[run.cell, run.machine or "", run.iteration] = is_there
    are_repeated = any(machine for _, machine, _ in states)
    addresses: dict[tuple[Cell, str, int], str] = {}
    for stored in data.runs:
        record = stored.record
        machine = (record.machine.id or "") if are_repeated else ""
        slot = record.cell, machine, record.iteration
        addresses.setdefault(slot, run_address(stored))
        states.setdefault(slot, "done" if record.status == "ok" else "failed")
    machines = machine_names(campaign, [data.name]) if are_repeated else {}
    found = []
    for slot, state in states.items():
        cell, machine, iteration = slot
        if not campaign.holds(*cell):
            continue
        group = state.replace("retry", "missing")
        sign, colour = SIGNS[group]
        tip = {"cell": campaign.cells_here[cell], "iteration": str(iteration)}
        tip |= {"machine": machines.get(machine, ""), "state": group}
        row: dict[str, Any] = dict(zip(KEYS, cell, strict=True))
        row |= {"machine": tip["machine"], "column": iteration, "group": group}
        row |= {"text": sign, "colour": f"var(--sp-{colour})", "tip": tip}
        found.append(row | {"href": addresses.get(slot, "")})
    return campaign.worded(pd.DataFrame(found))


# ---- Utilisation -----------------------------------------------------------------------------------------------------


LIMITS = (5, 25, 50, 75, 95)
"""Between two shades of utilisation, in per cent."""
STRETCHES, MOST_RUNS = 48, 60
"""Into which a run is divided, and cells at most whose runs are read."""


def busy_runs(campaign: StudiedCampaign) -> list[tuple[Stored, pd.DataFrame]]:
    """The first run of each cell, of `MOST_RUNS` at most, and its stretches; those whose telemetry knows of no GPU left
    out."""
    first: dict[Cell, Stored] = {}
    for run in campaign.data.runs:
        if run.record.file("telemetry") and campaign.holds(*run.record.cell):
            first.setdefault(run.record.cell, run)
    runs = ((run, busy(run)) for run in list(first.values())[:MOST_RUNS])
    return [(run, stretches) for run, stretches in runs if len(stretches)]


def utilisation(campaign: StudiedCampaign) -> Figure:
    """`gpu-utilisation`: how busy the GPU was over time, one run of each cell."""
    found: list[pd.DataFrame] = []
    told: list[dict[str, Value]] = []
    for run, stretches in busy_runs(campaign):
        mean, address = stretches["mean"].iloc[0], run_address(run)
        line: dict[str, Value] = {"Run": Entry(run.run_id, address)}
        seconds = f"{stretches['end'].iloc[-1]:.0f}"
        told.append(line | {"Seconds": seconds, "Mean utilisation": f"{mean:.1f} %"})
        tips = [
            {
                "run": run.run_id,
                "second": f"{row['x']:g}",
                "busy": f"{row['value']:g} %",
            }
            for row in records(stretches)
        ]
        rows = stretches.assign(first=-mean, href=address, tip=column(stretches, tips))
        rows[KEYS] = run.record.cell
        found.append(rows)
    rows = campaign.worded(pd.concat(found, ignore_index=True))
    shown, _, note = placed(campaign, rows, beside=False)
    share = between(-rows["first"].max(), -rows["first"].min(), 0)
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
    """Stretches of a run from `x` to `end`, in seconds since launch, with the GPU utilisation as `value` and that of
    the run as `mean`, in per cent. Neighbours of one shade are one: no more is seen. Empty where the telemetry knows of
    no GPU."""
    telemetry = read(stored)
    points = telemetry.timed("gpu_utilization_percent") if telemetry else ()
    rows = pd.DataFrame(points, columns=["time", "value"])
    begin, end = rows["time"].min(), rows["time"].max()
    if len(rows) < 2 or begin == end:
        return pd.DataFrame()
    width = (end - begin) / STRETCHES
    places = ((rows["time"] - begin) / width).astype(int).clip(upper=STRETCHES - 1)
    means = rows["value"].groupby(places).mean()
    x = (begin + width * means.index).round(1)
    end = (begin + width * (means.index + 1)).round(1)
    found = pd.DataFrame({"x": x, "end": end, "value": means}).reset_index(drop=True)
    shade = np.searchsorted(LIMITS, found["value"], side="right")
    begins = (np.diff(shade, prepend=-1) != 0) | (found["x"] != found["end"].shift())
    joined = found.groupby(begins.cumsum())
    stretches = joined.agg({"x": "first", "end": "last", "value": "mean"}).round(1)
    return stretches.assign(mean=means.mean())


# ---- Machines --------------------------------------------------------------------------------------------------------


ALL = "all together"
ID_LETTERS = 6
"""Of a machine's id, enough to tell a few machines apart."""
SIDES = ["model", "workload", "baseline", "candidate", "metric"]
"""What a comparison is of."""


def machine_names(
    campaign: StudiedCampaign, campaigns: Sequence[str]
) -> dict[str, str]:
    """Id of a machine to what readers call it: its kind and the first letters of the id."""
    names = {}
    for name in campaigns:
        for record in campaign.site.dataset.campaign(name).records:
            machine = record.machine.id or ""
            kind = (
                setup_of(record).machine_in_short if record.machine.kind else "machine"
            )
            names[machine] = f"{kind} {machine[:ID_LETTERS]}".strip()
    return names


def effects(campaign: StudiedCampaign) -> pd.DataFrame:
    """The leading comparisons on each machine, in per cent of its own baseline, and for all together (`over`): `panel`,
    `name`, `value, low, high` (95 %), `verdict`, `machine`, and of all together the columns of `replications`."""
    campaigns = campaign.site.joined(campaign.data)
    measured, together = campaign.site.results.over(campaigns)
    metrics = campaign.site.headlines(campaign.data)
    labels = {metric.name: metric.label for metric in metrics}
    is_shown = (together["effect_unit"] == "%") & together["metric"].isin(labels)
    whole = together[is_shown].astype(object)
    if whole.empty:
        return whole
    ends = {"effect": "value", "ci95_effect_low": "low", "ci95_effect_high": "high"}
    whole = whole.rename(columns=ends).assign(over=True, called=ALL)
    pairs = whole[SIDES].assign(pair=range(len(whole)))
    pairs["place"] = pairs["metric"].map(list(labels).index)
    machines = machine_names(campaign, campaigns)
    called = measured["machine"].astype(object).map(machines)
    if len(campaigns) > 1:
        called += ", " + measured["campaign"].astype(str)
    base = measured["mean_baseline"].abs()
    each = measured.astype(object).assign(
        over=False,
        called=called,
        value=measured["difference_percent"],
        low=100 * measured["ci95_difference_low"] / base,
        high=100 * measured["ci95_difference_high"] / base,
    )
    rows = pd.concat([each, whole]).merge(pairs, on=SIDES)
    rows = rows.sort_values(["place", "pair", "over"], kind="stable").infer_objects()
    rows["name"], rows["panel"] = rows["called"], rows["metric"].map(labels)
    if len(whole.drop_duplicates(SIDES[:-1])) > 1:
        rows["name"] = rows["model"] + " (" + rows["workload"] + "), " + rows["called"]
    rows["environment"], rows["campaign"] = rows["candidate"], campaign.data.name
    return campaign.part(rows)


def per_machine(campaign: StudiedCampaign) -> Figure:
    """`effect-per-machine`: whether the leading metrics show the same on every machine, or in each session."""
    rows, margin = effects(campaign), campaign.data.margin_percent
    told = [_of_machine(row) for row in records(rows)]
    rows = rows.assign(tip=column(rows, told))
    is_of_all = rows["over"].astype(bool)
    known = campaign.site.metrics(campaign.data)
    metrics = {metric.name: metric.within_sentence for metric in known}
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
        between_machines = f"{row['replication']}. {row['why']}"
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


def _ends(low: float | None, high: float | None) -> str:
    """`−0.61 % to +0.52 %`; empty where there is no interval."""
    if low is None or high is None:
        return ""
    below, above = outward(low, high, 2)
    return f"{percent(below, 2)} to {percent(above, 2)}"

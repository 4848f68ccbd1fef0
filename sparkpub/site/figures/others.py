"""The figures of a campaign that are not of one metric."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from sparkpub.record.store import Stored
from sparkpub.record.text import (
    between,
    counted,
    listed,
    outward,
    percent,
    rounded,
    span,
)
from sparkpub.review.grouping import grouped
from sparkpub.review.models import is_large
from sparkpub.review.reviewed import Cell
from sparkpub.review.setup import setup_of
from sparkpub.review.tables.bandwidths import UNKNOWN
from sparkpub.review.tables.capacities import LIMITS, TOLD_SECONDS, in_order
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.column import rows as table_rows
from sparkpub.site.figures import said, shapes
from sparkpub.site.figures.campaign import DIFFERENCE, placed
from sparkpub.site.figures.figure import (
    Entry,
    Figure,
    Heads,
    TableLine,
    chart,
    plain,
    telling,
)
from sparkpub.site.figures.telemetry import read
from sparkpub.site.publication import run_address
from sparkpub.site.study import KEYS, StudiedCampaign

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
    """The table of capacities in the order of the ranking, large models first: `name` (the build), `column` (the
    limit), `value` (requests a second, 0 where no rate holds), `highest` (rate that was measured)."""
    rows = campaign.part(campaign.site.results.capacities)
    if "workload" in campaign.only:  # which is one rate of many
        return rows[:0]
    told = in_order(table_rows(rows[rows["limit_seconds"] == TOLD_SECONDS]))
    ranked = [(row.model, row.environment, row.load) for row in told]
    builds = list(zip(rows["model"], rows["environment"], rows["load"], strict=True))
    named = {
        build: campaign.names.build(campaign.data.name, *build[:2]) for build in ranked
    }
    ranked.sort(key=lambda build: not is_large(named[build]))
    rows["rank"] = [ranked.index(build) for build in builds]
    rows["name"] = [named[build] for build in builds]
    rows["column"] = rows["limit_seconds"].map("{:g} s".format)
    rows["value"], rows["highest"] = rows["rate"].fillna(0), rows["rates"].str[-1]
    return rows.sort_values(["rank", "limit_seconds"], kind="stable")


def capacity(_: StudiedCampaign, rows: pd.DataFrame) -> Figure:
    """`capacity`: requests a second that each build bears within each limit of the time to first token."""
    within = rows.pivot(index="rank", columns="limit_seconds", values="text")
    heads: Heads = {
        "Build": ("name", str),
        "Load": ("load", str),
        **{f"Within {limit:g} s": (limit, str) for limit in within},
        **{title: (name, rounded) for title, name in _WAITS.items()},
        "Note": ("note", str),
        "Rates measured": ("rates", lambda rates: ", ".join(f"{at:g}" for at in rates)),
    }
    # What is known of a build stands beside its last limit.
    builds = rows.groupby("rank", sort=False).tail(1).join(within, on="rank")
    told = telling(builds, heads).set_index("rank")["tip"]
    all_hold = "all to " + rows["rate"].map("{:g}".format)
    shown = rows.assign(
        text=rows["text"].mask(rows["at_least"], all_hold), tip=rows["rank"].map(told)
    )
    return Figure(
        says=said.capacity(rows),
        sample=f"Kept up: {LIMITS}. “All to”: the limit is not known.",
        note=(
            "At most 1 % of the requests fail, and every lower rate holds, too. Waits in the table are those at the "
            f"rate within {TOLD_SECONDS:g} s, else at the lowest. Load: {listed(dict.fromkeys(rows['load']))}."
        ),
        chart=chart(
            shapes.grid,
            shown,
            across="Requests/s with the first token within",
            # The darker shades of the ramp would hide the figures.
            shades=(0.05, 0.25, 0.6),
        ),
        table=[*told],
    )


# ---- Memory bandwidth ------------------------------------------------------------------------------------------------


_OF_BANDWIDTH: Heads = {
    "Build": ("name", str),
    "Weights": ("weights", str),
    "GB per token": ("x", rounded),
    "Of them experts": ("experts", rounded),
    "Who says so": ("source", str),
    "ms per token": ("milliseconds_per_token", rounded),
    "tok/s": ("value", rounded),
    "Of the bandwidth": ("share_percent", lambda share: f"{rounded(share, 2)} %"),
}


def bandwidths(campaign: StudiedCampaign) -> pd.DataFrame:
    """The table of bandwidths under the load of most builds, the largest share first: `name` (the build), the bytes of
    a token in GB as `x`, tok/s as `value`. Builds whose bytes nobody knows come last."""
    table = campaign.site.results.bandwidths
    loads = table.loc[table["campaign"] == campaign.data.name, "workload"].astype(str)
    usual = loads.value_counts(sort=False).nlargest(1).index
    rows = campaign.part(table[table["workload"].isin(usual)])
    if rows["share_percent"].count() < FEWEST:
        return rows[:0]
    builds = zip(rows["model"], rows["environment"], strict=True)
    rows["name"] = [
        campaign.names.build(campaign.data.name, *build) for build in builds
    ]
    known, experts = rows["share_percent"].notna(), rows["expert_bytes_per_token"]
    rows["x"] = rows["bytes_per_token"].where(known) / GIGA
    rows["experts"] = experts.where(experts > 0) / GIGA
    rows["value"], rows["group"] = rows["output_throughput_tok_s"], rows["weights"]
    return rows.sort_values("share_percent", ascending=False, kind="stable")


def bandwidth(_: StudiedCampaign, rows: pd.DataFrame) -> Figure:
    """`memory-bandwidth`: tokens per second of one user against the bytes of weights that each token reads, and what
    the memory allows."""
    rows = telling(rows.assign(kind="run"), _OF_BANDWIDTH)
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
        sample=f"Dashed: all of the {limit:g} GB/s.",
        note=(
            "Every build under one load, without caches. Bytes are those of the "
            "checkpoint's parts, or two for each parameter that the publisher states, where all parts have 16 bits. "
            "Left out: speculative decoding, and models of which neither is known."
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
        table=[*rows["tip"]],
    )


# ---- Coverage --------------------------------------------------------------------------------------------------------


COLOURS = {
    "done": "good",
    "failed": "bad",
    "quarantined": "warn",
    "missing": "fg2",
}
"""State of planned runs to its colour."""


def coverage(campaign: StudiedCampaign, cells: Mapping[Cell, str]) -> Figure:
    """`coverage`: how many planned runs of each cell are in which state, and in the table a link to each that is
    there. Where no matrix says what was planned, those are all."""
    recorded = grouped(campaign.data.runs, lambda run: run.record.cell)
    planned, total = campaign.data.covered, Counter[str]()
    told: list[TableLine] = []
    rows: list[dict[str, Any]] = []
    for cell, called in cells.items():
        runs = recorded.get(cell, [])
        states = Counter(
            "done" if run.record.status == "ok" else "failed" for run in runs
        )
        if cell in planned:
            states = Counter({name: getattr(planned[cell], name) for name in COLOURS})
        total += states
        number = states.total()
        line: dict[str, str] = {
            "Cell": called,
            "Planned": str(number),
            **{name.capitalize(): str(states[name]) for name in COLOURS},
            "Records": str(len(runs)),
        }
        links = [Entry(str(run.record.iteration), run_address(run)) for run in runs]
        told.append({**line, "Iterations": links})
        more = f" ({len(runs)} records)" if len(runs) > number else ""
        about: dict[str, Any] = dict(zip(KEYS, cell, strict=True))
        about |= {"tip": line, "first": states["done"] - number}
        rows += [
            {
                **about,
                "column": state,
                "text": f"{of}{more}",
                "colour": f"var(--sp-{COLOURS[state]})",
            }
            for state, of in (+states).items()
        ]
    shown, _, note = placed(campaign, campaign.worded(pd.DataFrame(rows)), beside=False)
    return Figure(
        says=said.coverage(total),
        sample=f"Numbers are runs. {note}".strip(),
        chart=chart(shapes.grid, shown, across="State"),
        table=told,
    )


# ---- Utilisation -----------------------------------------------------------------------------------------------------


SHADES = (5, 25, 50, 75, 95)
"""Between two shades of utilisation, in per cent."""
STRETCHES = 40
"""Into which a run is divided."""


def busy_runs(campaign: StudiedCampaign) -> list[tuple[Stored, pd.DataFrame]]:
    """The first run of each cell and its stretches; those whose telemetry knows of no GPU left out."""
    known = [run for run in campaign.data.runs if run.record.file("telemetry")]
    by_cell = grouped(known, lambda run: run.record.cell)
    first = [runs[0] for cell, runs in by_cell.items() if campaign.holds(*cell)]
    found = [(run, busy(run)) for run in first]
    return [(run, stretches) for run, stretches in found if len(stretches)]


def utilisation(
    campaign: StudiedCampaign, runs: Sequence[tuple[Stored, pd.DataFrame]]
) -> Figure:
    """`gpu-utilisation`: how busy the GPU was over time, one run of each cell."""
    found: list[pd.DataFrame] = []
    heads: Heads = {
        "run": ("run", str),
        "second": ("x", "{:g}".format),
        "busy": ("value", "{:.1f} %".format),
    }
    told: list[TableLine] = []
    for run, stretches in runs:
        about = dict(zip(KEYS, run.record.cell, strict=True))
        about |= {"run": run.run_id, "href": run_address(run)}
        mean = stretches["mean"].iloc[0]
        found.append(telling(stretches.assign(**about, first=-mean), heads))
        told.append(
            {
                "Run": Entry(run.run_id, about["href"]),
                "Seconds": f"{stretches['end'].iloc[-1]:.0f}",
                "Mean utilisation": f"{mean:.1f} %",
            }
        )
    rows = campaign.worded(pd.concat(found, ignore_index=True))
    shown, _, note = placed(campaign, rows, beside=False)
    share = span([f"{mean:.0f}" for mean in sorted(rows["mean"])])
    return Figure(
        says=f"The GPU was busy {share} % of the time from launch to exit.",
        sample=f"The first run of {counted(len(told), 'cell')}. {note}".strip(),
        chart=chart(
            shapes.grid,
            shown,
            across="Seconds since launch",
            shades=SHADES,
            unit="GPU utilisation (%)",
        ),
        table=told,
    )


def busy(stored: Stored) -> pd.DataFrame:
    """Stretches of a run from `x` to `end`, in seconds since launch, with the mean GPU utilisation as `value`, in per
    cent, and that of the whole run as `mean`; neighbours of one shade are one, since no more is seen. Empty where the
    telemetry knows of no GPU."""
    telemetry = read(stored)
    points = telemetry.timed("gpu_utilization_percent") if telemetry else ()
    at, shares = np.array([*points], float).reshape(-1, 2).T
    if len(at) == 0 or at.min() == at.max():
        return pd.DataFrame()
    width = (at.max() - at.min()) / STRETCHES
    place = ((at - at.min()) // width).astype(int).clip(max=STRETCHES - 1)
    count, total = np.bincount(place), np.bincount(place, shares)
    there = np.flatnonzero(count)
    shades = np.digitize(total[there] / count[there], SHADES)
    is_new = (np.diff(shades, prepend=-1) != 0) | (np.diff(there, prepend=-2) != 1)
    first, last = there[is_new], there[np.roll(is_new, -1)]
    begins = np.flatnonzero(is_new)
    within = [np.add.reduceat(each[there], begins) for each in (total, count)]
    rows = {
        "x": at.min() + width * first,
        "end": at.min() + width * last + width,
        "value": within[0] / within[1],
        "mean": shares.mean(),
    }
    return pd.DataFrame(rows).round(2)


# ---- Machines --------------------------------------------------------------------------------------------------------


ALL = "all together"
ID_LETTERS = 6
"""Of a machine's id, enough to tell a few machines apart."""
_PAIR = attrgetter("model", "workload", "baseline", "candidate", "metric")
"""What a comparison is of."""


def effects(campaign: StudiedCampaign) -> list[tuple[TableRow, list[TableRow]]]:
    """The leading comparisons over several machines or sessions, in per cent, each with those of single machines."""
    measured, together = campaign.site.results.over(campaign.site.joined(campaign.data))
    by_pair = grouped(table_rows(measured), _PAIR)
    by_metric = grouped(table_rows(together), attrgetter("metric"))
    return [
        (row, by_pair[_PAIR(row)])
        for metric in campaign.headlines
        for row in by_metric.get(metric.name, ())
        if row.effect_unit == "%"
        and campaign.holds(row.model, row.candidate, row.workload)
    ]


def per_machine(
    campaign: StudiedCampaign, found: Sequence[tuple[TableRow, list[TableRow]]]
) -> Figure:
    """`effect-per-machine`: whether the leading metrics show the same on every machine, or in each session."""
    margin = campaign.data.margin_percent
    metrics = {each.name: each for each in campaign.site.metrics(campaign.data)}
    are_several = len({_PAIR(whole)[:-1] for whole, _ in found}) > 1
    rows: list[dict[str, Any]] = []
    for whole, each in found:
        of = f"{whole.model} ({whole.workload}), " if are_several else ""
        about = {"model": whole.model, "environment": whole.candidate}
        about |= {"workload": whole.workload, "panel": metrics[whole.metric].label}
        for row in each:
            share = 100 / abs(row.mean_baseline)
            ends = [share * end for end in row.ci95_difference or ()]
            known = _with_ends(row.difference_percent, ends, row.verdict)
            known["name"] = of + _session_name(campaign, row)
            known["n"] = f"{row.n_baseline} and {row.n_candidate}"
            rows.append(about | known)
        known = _with_ends(whole.effect, whole.ci95_effect or (), whole.verdict)
        known |= {"name": of + ALL, "between": f"{whole.replication}. {whole.why}"}
        rows.append(about | known)
    shown = telling(pd.DataFrame(rows), _OF_MACHINES)
    sessions = {(row.campaign, row.machine) for _, each in found for row in each}
    return Figure(
        says=said.replication([whole for whole, _ in found], sessions),
        sample=(
            f"Lines are 95 % intervals; inside the band of ±{margin:g} % two environments are equal. "
            f"The interval of “{ALL}” holds for machines like these."
        ),
        chart=chart(shapes.forest, shown, title=DIFFERENCE, band=margin),
        table=[*shown["tip"]],
    )


_OF_MACHINES: Heads = {
    "Metric": ("panel", str),
    "Machine": ("name", str),
    "n": ("n", str),
    "Difference": ("value", partial(percent, decimals=2)),
    "95 % interval": ("interval", str),
    "Verdict": ("verdict", str),
    "Between machines": ("between", str),
}


def _with_ends(value: float, ends: Sequence[float], verdict: str) -> dict[str, Any]:
    """A difference as a row of a forest."""
    low, high = ends or (value, value)
    interval = " to ".join(percent(end, 2) for end in outward(low, high, 2))
    row = {"value": value, "low": low, "high": high, "verdict": verdict}
    return row | {"interval": interval if ends else "none"}


def _session_name(campaign: StudiedCampaign, row: TableRow) -> str:
    """What readers call a machine: its kind and the first letters of its id; and the campaign where it is another."""
    records = campaign.site.dataset.campaign(row.campaign).records
    record = next(each for each in records if each.machine.id == row.machine)
    kind = setup_of(record).machine_in_short if record.machine.kind else "machine"
    name = f"{kind} {row.machine[:ID_LETTERS]}"
    return name if row.campaign == campaign.data.name else f"{name}, {row.campaign}"

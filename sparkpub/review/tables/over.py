"""What several cells, sessions or campaigns show together: tables made of comparisons.

- `pooled`: a metric over the cells of a campaign. Cells are combined as machines are. Exploratory: p-values are not
  corrected.
- `replications`: one comparison over several machines, or sessions of one: a session is what one machine measured in
  one campaign. A difference is formed within each first: see `estimate.over`.
- `repeats`: a cell against the same cell of an earlier campaign. Time is what they differ in, so blocks of time are no
  fault. The margin is the methodology's 5 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from sparkpub.review.reviewed import Include, ReviewedCampaign
from sparkpub.review.statistics.estimate import (
    MINIMUM_RUNS,
    Estimate,
    over,
    replication,
    spread,
)
from sparkpub.review.tables import reasons
from sparkpub.review.tables.cells import (
    CELL,
    about_metrics,
    in_matrix_order,
    rows_with_values,
)
from sparkpub.review.tables.column import (
    Columns,
    TableRow,
    columns,
    groups,
    interval,
    rows_by,
    shared,
    table_of,
    texts,
)
from sparkpub.review.tables.comparisons import (
    FIGURES,
    AskedComparison,
    Margin,
    adjusted,
    compare_pairs,
    effects,
    estimate,
    estimate_percent,
    over_machines,
)

MEMORY_UNIT = "GiB"
"""Of metrics whose differences are pooled as they are: what an environment takes does not grow with the model."""
REPEAT_PERCENT = 5.0
"""The methodology's margin for a repeated campaign."""
_COMPARED = ["model", "workload", "metric", "baseline", "candidate"]
"""What makes two rows the same comparison, whatever the campaign."""
_SPREAD = (
    "between_sd",
    "i2_percent",
    "q",
    "heterogeneity_p",
    "prediction95_low",
    "prediction95_high",
)
_ABOUT = shared("campaign", "model", "workload", "metric", "unit", "family")
POOLED: Columns = {
    **shared("campaign", "metric", "unit", "family", "baseline", "candidate"),
    **columns(
        "integer",
        cells="Cells that are pooled",
        left_out="Cells whose runs are worth too few",
    ),
    **columns(
        "number",
        effect="The difference that the cells show together",
    ),
    **interval(
        ci95_effect="its 95 % interval",
    ),
    **columns(
        "number",
        error="Standard error of the effect",
        df="Degrees of freedom behind the error",
        t="Their quotient",
        p_value="p of no difference",
        q="Cochran's Q",
        heterogeneity_p="p of the cells having one difference",
    ),
}
REPEATS: Columns = {
    **shared("campaign", "model", "workload", "metric", "unit", "family"),
    **columns(
        "text",
        against="The earlier campaign",
    ),
    **shared("environment"),
    **columns(
        "answer",
        same_specification="Whether both measured the same; empty where records do not say",
    ),
    **FIGURES,
}
REPLICATIONS: Columns = {
    **_ABOUT,
    **columns(
        "list",
        campaigns="The campaigns whose sessions these are",
    ),
    **shared("baseline", "candidate"),
    **columns(
        "integer",
        machines="Machines, or sessions, together",
    ),
    **columns(
        "number",
        effect="The difference, in the unit of the effect",
    ),
    **columns(
        "text",
        effect_unit="% of the machine's own baseline, or the metric's unit without a true zero",
    ),
    **interval(
        ci95_effect="its 95 % interval",
        prediction95="where one more machine is expected",
    ),
    **columns(
        "number",
        p_adjusted="p of no difference, corrected over the primary rows",
        equivalence_margin_percent="Margin within which a difference does not matter",
        equivalence_p_adjusted="p of a difference beyond the margin, corrected",
        between_sd="Spread of the true effects between machines",
        i2_percent="Its share in the spread of the effects found",
        q="Cochran's Q",
        heterogeneity_p="p of the machines having one effect",
    ),
    **columns(
        "list",
        verdicts="The verdicts of the single machines",
    ),
    **columns(
        "text",
        verdict="The verdict on the mean over machines like these",
        replication="replicates, does not replicate or undecided",
        why="What the replication rests on",
    ),
}


def pooled(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Every metric over the cells of a campaign, where there are several cells to pool."""
    by = ["campaign", "metric", "baseline", "candidate"]
    return table_of(
        POOLED,
        (
            row
            for cells in rows_by(comparisons, by)
            if (row := _pooled(cells)) is not None
        ),
    )


def _pooled(cells: Sequence[TableRow]) -> dict[str, Any] | None:
    first = cells[0]
    absolute = first.unit == MEMORY_UNIT
    known = of_cells(cells, percent=not absolute)
    if not known:
        return None
    together = over(known)
    return {
        **first._asdict(),
        **spread(known),
        "cells": len(known),
        "left_out": len(cells) - len(known),
        "unit": first.unit if absolute else "%",
        "effect": together.value,
        "ci95_effect": together.interval(),
        "error": together.error,
        "df": together.df,
        "t": together.value / together.error,
        "p_value": float(together.p_value),
    }


def of_cells(found: Iterable[TableRow], *, percent: bool) -> list[Estimate]:
    """What comparisons show, for `over`: in percent of their baselines or in their unit. Cells worth fewer than four
    runs are left out; empty for fewer than two, or where one has no spread at all."""
    estimates = map(estimate_percent if percent else estimate, found)
    known = [one for one in estimates if one and one.df >= MINIMUM_RUNS - 1]
    is_enough = len(known) > 1 and all(one.error > 0 for one in known)
    return known if is_enough else []


def repeats(
    runs: pd.DataFrame,
    campaigns: Mapping[str, ReviewedCampaign],
    against: str,
    include: Include = "counted",
) -> pd.DataFrame:
    """Each cell of a table of runs against the same cell of an earlier campaign, whose runs are there, too."""
    rows = in_matrix_order(rows_with_values(runs, include), campaigns)
    parts = groups(rows, [*CELL, "metric"])
    about = about_metrics(rows.iloc[[part[0] for part in parts]], campaigns)
    names = ("model", "environment", "workload", "metric")
    keys = list(zip(*map(about.get, names), strict=True))
    earlier, later = dict[Any, int](), dict[Any, int]()
    for number, campaign in enumerate(about["campaign"]):
        (earlier if campaign == against else later)[keys[number]] = number
    pairs = [(earlier[key], later[key]) for key in later if key in earlier]
    margin = Margin(REPEAT_PERCENT, declared=False)
    asked = []
    for one, other in pairs:
        data = campaigns[about["campaign"][other]].campaign
        metric = data.metrics[about["metric"][other]]
        asked.append(AskedComparison((parts[one], parts[other]), metric, margin))
    found = compare_pairs(rows, asked, declared="as-published")
    specifications = texts(rows["specification"])
    for (one, other), row in zip(pairs, found, strict=True):
        vars(row).update({name: column[other] for name, column in about.items()})
        row.against = against
        same = {*specifications[parts[one]], *specifications[parts[other]]}
        row.same_specification = None if "" in same else len(same) == 1
    return table_of(REPEATS, map(vars, adjusted(found)))


def sessions(comparisons: pd.DataFrame, alone: Mapping[str, str]) -> pd.DataFrame:
    """The comparisons as single machines measured them. `alone` are the campaigns of one machine, with its id: their
    comparisons are that machine's."""
    machine = comparisons["machine"].astype(object)
    machine = machine.fillna(comparisons["campaign"].astype(object).map(alone))
    return comparisons.assign(machine=machine)[machine.notna()]


def replications(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Every comparison that two machines or sessions of a table made at least, together, in the order first met."""
    found = []
    for table in tables:
        several = table[table.duplicated(_COMPARED, keep=False)]
        each = list(rows_by(several, _COMPARED))
        overall = adjusted([_over(same) for same in each])
        found += [_replication(*both) for both in zip(each, overall, strict=True)]
    return table_of(REPLICATIONS, found)


def _over(same: Sequence[TableRow]) -> TableRow:
    """The comparison over some sessions, p-values uncorrected; it is called after the first of them."""
    first = same[0]
    found = over_machines(same)
    for name in (*_ABOUT, "baseline", "candidate"):
        setattr(found, name, getattr(first, name))
    return found


def _replication(same: Sequence[TableRow], overall: TableRow) -> dict[str, Any]:
    """What several sessions show together, by column."""
    verdicts = tuple(row.verdict for row in same)
    known = effects(same)
    between: dict[str, Any] = dict.fromkeys(_SPREAD)
    between |= spread(known) if known else {}
    effect, unit, scale = overall.difference, overall.unit, 1.0
    if overall.difference_percent is not None:
        effect, unit = overall.difference_percent, "%"
        scale = 100 / abs(overall.mean_baseline)
    interval = overall.ci95_difference
    word = "machine" if len({row.machine for row in same}) == len(same) else "session"
    said = replication(overall.verdict, verdicts, between["heterogeneity_p"])
    return {
        **vars(overall),
        **between,
        "campaigns": tuple(dict.fromkeys(row.campaign for row in same)),
        "machines": len(same),
        "effect": effect,
        "effect_unit": unit,
        "ci95_effect": interval and tuple(scale * end for end in interval),
        "verdicts": verdicts,
        "replication": said,
        "why": reasons.of_replication(overall, said, verdicts, known, word),
    }

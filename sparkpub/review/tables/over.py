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
    Column,
    Columns,
    TableRow,
    groups,
    rows_by,
    table_of,
    texts,
)
from sparkpub.review.tables.comparisons import (
    FIGURES,
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
_ABOUT: Columns = {
    "campaign": Column("text", "The campaign, or the first of several"),
    "model": Column("text", "Key of the model"),
    "workload": Column("text", "Key of the workload"),
    "metric": Column("text", "Name of the metric"),
    "unit": Column("text", "Unit of the metric"),
    "family": Column("text", "primary, or secondary for exploratory metrics"),
}
POOLED: Columns = {
    "campaign": Column("text", "The campaign"),
    "metric": Column("text", "Name of the metric"),
    "unit": Column(
        "text",
        "Unit of the effect: the metric's own for memory, else % of each cell's baseline",
    ),
    "family": Column("text", "primary, or secondary for exploratory metrics"),
    "baseline": Column("text", "The environment that is compared with"),
    "candidate": Column("text", "The environment that is compared"),
    "cells": Column("integer", "Cells that are pooled"),
    "left_out": Column("integer", "Cells whose runs are worth too few"),
    "effect": Column(
        "number", "The difference that the cells show together", shown="signed"
    ),
    "ci95_effect_low": Column(
        "number", "Lower end of its 95 % interval", heading="95 % interval"
    ),
    "ci95_effect_high": Column("number", "Upper end of it"),
    "error": Column("number", "Standard error of the effect"),
    "df": Column("number", "Degrees of freedom behind the error"),
    "t": Column("number", "Their quotient"),
    "p_value": Column("number", "p of no difference"),
    "q": Column("number", "Cochran's Q", heading="Q"),
    "heterogeneity_p": Column(
        "number", "p of the cells having one difference", heading="p of heterogeneity"
    ),
}
REPEATS: Columns = {
    "campaign": Column("text", "The campaign"),
    "model": Column("text", "Key of the model"),
    "workload": Column("text", "Key of the workload"),
    "metric": Column("text", "Name of the metric"),
    "unit": Column("text", "Unit of means and differences"),
    "family": Column("text", "primary, or secondary for exploratory metrics"),
    "against": Column("text", "The earlier campaign"),
    "environment": Column("text", "Key of the environment"),
    "same_specification": Column(
        "answer", "Whether both measured the same; empty where records do not say"
    ),
    **FIGURES,
}
REPLICATIONS: Columns = {
    **_ABOUT,
    "campaigns": Column("list", "The campaigns whose sessions these are"),
    "baseline": Column("text", "The environment that is compared with"),
    "candidate": Column("text", "The environment that is compared"),
    "machines": Column("integer", "Machines, or sessions, together"),
    "effect": Column(
        "number", "The difference, in the unit of the effect", shown="signed"
    ),
    "effect_unit": Column(
        "text",
        "% of the machine's own baseline, or the metric's unit without a true zero",
        heading="unit",
    ),
    "ci95_effect_low": Column(
        "number", "Lower end of its 95 % interval", heading="95 % interval"
    ),
    "ci95_effect_high": Column("number", "Upper end of it"),
    "prediction95_low": Column(
        "number",
        "Lower end of where one more machine is expected",
        heading="95 % prediction",
    ),
    "prediction95_high": Column("number", "Upper end of it"),
    "p_adjusted": Column(
        "number", "p of no difference, corrected over the primary rows"
    ),
    "equivalence_margin_percent": Column(
        "number", "Margin within which a difference does not matter"
    ),
    "equivalence_p_adjusted": Column(
        "number", "p of a difference beyond the margin, corrected"
    ),
    "between_sd": Column(
        "number", "Spread of the true effects between machines", heading="τ"
    ),
    "i2_percent": Column(
        "number", "Its share in the spread of the effects found", heading="I² %"
    ),
    "q": Column("number", "Cochran's Q", heading="Q"),
    "heterogeneity_p": Column(
        "number", "p of the machines having one effect", heading="p of heterogeneity"
    ),
    "verdicts": Column("list", "The verdicts of the single machines"),
    "verdict": Column("text", "The verdict on the mean over machines like these"),
    "replication": Column("text", "replicates, does not replicate or undecided"),
    "why": Column("text", "What the replication rests on"),
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
    found = compare_pairs(
        rows,
        [(parts[one], parts[other]) for one, other in pairs],
        [
            campaigns[about["campaign"][other]].campaign.metrics[about["metric"][other]]
            for _, other in pairs
        ],
        [Margin(REPEAT_PERCENT, declared=False)] * len(pairs),
        declared="as-published",
    )
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

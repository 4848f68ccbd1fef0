"""What several sessions or campaigns show together: tables made of comparisons.

- `replications`: one comparison over several machines, or sessions of one: a session is what one machine measured in
  one campaign. A difference is formed within each first: see `estimate.over`.
- `repeats`: a cell against the same cell of an earlier campaign. Time is what they differ in, so blocks of time are no
  fault. The margin is the methodology's 5 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from sparkpub.review.statistics.estimate import (
    MINIMUM_RUNS,
    Estimate,
    replication,
    spread,
)
from sparkpub.review.tables import reasons
from sparkpub.review.tables.column import (
    Columns,
    TableRow,
    columns,
    groups,
    interval,
    rows,
    shared,
    table,
)
from sparkpub.review.tables.comparisons import (
    FIGURES,
    difference,
    effects,
    estimates,
    figured,
    judged,
    over_machines,
    pairs_of,
)

if TYPE_CHECKING:
    from sparkpub.review.reviewed import ReviewedCampaign

REPEAT_PERCENT = 5.0
"""The methodology's margin for a repeated campaign."""
_COMPARED = ["model", "workload", "metric", "baseline", "candidate"]
"""What makes two rows the same comparison, whatever the campaign."""
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
    **shared("campaign", "model", "workload", "metric", "unit", "family"),
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


def of_cells(found: pd.DataFrame) -> Estimate | None:
    """What comparisons of several cells show, for `over`, in their unit. Cells worth fewer than four runs are left
    out; None for fewer than two."""
    each = estimates(found)
    known = each.of(each.df >= MINIMUM_RUNS - 1)
    return known if len(known.value) > 1 else None


def repeats(campaigns: Sequence["ReviewedCampaign"], against: str) -> pd.DataFrame:
    """Each cell of some campaigns against the same cell of an earlier one, which is among them."""
    pairs, sides = pairs_of(
        campaigns,
        lambda cells: cells["campaign"] == against,
        same=["model", "environment", "workload", "metric"],
    )
    if not sides:
        return table(REPEATS, [])
    found = []
    for pair, one, other in sides:
        digests = {*one["specification"], *other["specification"]}
        same = None if "" in digests else len(digests) == 1
        figures = difference(one, other, "mixed") | {"same_specification": same}
        found.append(pd.DataFrame(figures, index=pair))
    about = pairs.assign(
        against=against,
        equivalence_margin_percent=REPEAT_PERCENT,
        margin_declared=False,
    )
    return table(REPEATS, judged(figured(about.join(pd.concat(found))), ["family"]))


def sessions(comparisons: pd.DataFrame, alone: Mapping[str, str]) -> pd.DataFrame:
    """The comparisons as single machines measured them. `alone` are the campaigns of one machine, with its id: their
    comparisons are that machine's."""
    machine = comparisons["machine"].astype(object)
    machine = machine.fillna(comparisons["campaign"].astype(object).map(alone))
    return comparisons.assign(machine=machine)[machine.notna()]


def replications(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Every comparison that two machines or sessions of a table made at least, together, in the order first met."""
    found: list[dict[str, Any]] = []
    for each in tables:
        several = each[each.duplicated(_COMPARED, keep=False)]
        sessions = [several.iloc[part] for part in groups(several, _COMPARED)]
        if sessions:
            # It is called after the first of them.
            together = pd.DataFrame(
                {**same.iloc[0], "direction": "neither"} | over_machines(same)
                for same in sessions
            )
            ratios = [name for name in together.columns if "ratio" in name]
            together = judged(figured(together.drop(columns=ratios)), ["family"])
            found += map(_replication, sessions, rows(together))
    return table(REPLICATIONS, found)


def _replication(same: pd.DataFrame, overall: TableRow) -> dict[str, Any]:
    """What several sessions show together, by column."""
    verdicts, known = tuple(same["verdict"]), effects(same)
    between: dict[str, Any] = {} if known is None else {**spread(known)}
    effect, unit, scale = overall.difference, overall.unit, 1.0
    if overall.difference_percent is not None:
        effect, unit = overall.difference_percent, "%"
        scale = 100 / abs(overall.mean_baseline)
    low, high = overall.ci95_difference or (None, None)
    word = "machine" if same["machine"].is_unique else "session"
    said = replication(overall.verdict, verdicts, between.get("heterogeneity_p"))
    return {
        **overall._asdict(),
        **between,
        "campaigns": tuple(same["campaign"].unique()),
        "machines": len(same),
        "effect": effect,
        "effect_unit": unit,
        "ci95_effect_low": low and scale * low,
        "ci95_effect_high": high and scale * high,
        "verdicts": verdicts,
        "replication": said,
        "why": reasons.of_replication(overall, verdicts, known, word),
    }

"""The table of what several machines or sessions show together: see `statistics.replication`.

It is made of sessions: comparisons as one machine measured them in one campaign.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from sparkpub.review.statistics.compare import Comparison
from sparkpub.review.statistics.estimate import Combined, Interval
from sparkpub.review.statistics.replication import (
    between,
    over_machines,
    replication,
    why,
)
from sparkpub.review.tables.column import Column, Columns, TableRow, rows_by, table_of
from sparkpub.review.tables.comparisons import Found, adjusted, found_in

_COMPARED = ["model", "workload", "metric", "baseline", "candidate"]
"""What makes two rows the same comparison, whatever the campaign."""
_ABOUT: Columns = {
    "campaign": Column("text", "The campaign, or the first of several"),
    "model": Column("text", "Key of the model"),
    "workload": Column("text", "Key of the workload"),
    "metric": Column("text", "Name of the metric"),
    "unit": Column("text", "Unit of the metric"),
    "family": Column("text", "primary, or secondary for exploratory metrics"),
}
_EFFECT: Columns = {
    "effect": Column("number", "The difference, in the unit of the effect"),
    "effect_unit": Column("text", "% of the machine's own baseline, or the metric's unit without a true zero"),
    "ci95_effect_low": Column("number", "Lower end of its 95 % interval"),
    "ci95_effect_high": Column("number", "Upper end of it"),
}  # fmt: skip
COLUMNS: Columns = {
    **_ABOUT,
    "campaigns": Column("list", "The campaigns whose sessions these are"),
    "baseline": Column("text", "The environment that is compared with"),
    "candidate": Column("text", "The environment that is compared"),
    "machines": Column("integer", "Machines, or sessions, together"),
    **_EFFECT,
    "prediction95_low": Column("number", "Lower end of where one more machine is expected"),
    "prediction95_high": Column("number", "Upper end of it"),
    "p_adjusted": Column("number", "p of no difference, corrected over the primary rows"),
    "equivalence_margin_percent": Column("number", "Margin within which a difference does not matter"),
    "equivalence_p_adjusted": Column("number", "p of a difference beyond the margin, corrected"),
    "between_sd": Column("number", "Spread of the true effects between machines"),
    "i2_percent": Column("number", "Its share in the spread of the effects found"),
    "q": Column("number", "Cochran's Q"),
    "heterogeneity_p": Column("number", "p of the machines having one effect"),
    "verdicts": Column("list", "The verdicts of the single machines"),
    "verdict": Column("text", "The verdict on the mean over machines like these"),
    "replication": Column("text", "replicates, does not replicate or undecided"),
    "why": Column("text", "What the replication rests on"),
}  # fmt: skip
"""Columns of one comparison over several machines, or over several sessions of a machine."""


def sessions(comparisons: pd.DataFrame, alone: Mapping[str, str]) -> pd.DataFrame:
    """The comparisons as single machines measured them. `alone` are the campaigns of one machine, with its id: their
    comparisons are that machine's."""
    machine = comparisons["machine"].astype(object)
    machine = machine.fillna(comparisons["campaign"].astype(object).map(alone))
    return comparisons.assign(machine=machine)[machine.notna()]


def replications(groups: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Every comparison that two machines or sessions of a group made at least, together, in the order first met."""
    found = []
    for group in groups:
        several = list(_several(group))
        overall = adjusted([_over(same) for same in several])
        for same, (about, one) in zip(several, overall, strict=True):
            found.append({**about, **_replication(same, one)})
    return table_of(COLUMNS, found)


def _several(group: pd.DataFrame) -> Iterator[list[TableRow]]:
    """The same comparison by several machines or sessions, in the order first met."""
    several = group[group.duplicated(_COMPARED, keep=False)]
    return rows_by(several, _COMPARED)


def _over(same: Sequence[TableRow]) -> Found:
    """The comparison over the machines of a group, p-values uncorrected; it is called after the first of them."""
    first = same[0]
    about = {name: getattr(first, name) for name in _ABOUT}
    about |= {"baseline": first.baseline, "candidate": first.candidate}
    # Which way is better changes no figure of a replication.
    within = [found_in(row) for row in same]
    return about, over_machines(within, direction="neither", unit=first.unit)


def _effect(found: Comparison, unit: str) -> dict[str, Any]:
    """The effect of a comparison, in percent of the baseline where the scale has a true zero."""
    effect, interval = found.difference, found.ci95_difference
    if found.difference_percent is not None:
        effect, unit = found.difference_percent, "%"
        interval = _in_percent(found)
    low, high = interval or (None, None)
    return {
        "effect": effect,
        "effect_unit": unit,
        "ci95_effect_low": low,
        "ci95_effect_high": high,
    }


def _in_percent(found: Comparison) -> Interval | None:
    """The interval of the difference in percent of the baseline's mean."""
    if found.ci95_difference is None:
        return None
    low, high = found.ci95_difference
    return 100 * low / abs(found.mean_baseline), 100 * high / abs(found.mean_baseline)


def _replication(same: Sequence[TableRow], overall: Comparison) -> dict[str, Any]:
    """What several sessions show together, by column."""
    verdicts = tuple(row.verdict for row in same)
    together = between([found_in(row) for row in same])
    what = "machine" if len({row.machine for row in same}) == len(same) else "session"
    return {
        "campaigns": tuple(dict.fromkeys(row.campaign for row in same)),
        "machines": len(same),
        **_effect(overall, same[0].unit),
        "p_adjusted": overall.p_adjusted,
        "equivalence_margin_percent": overall.equivalence_margin_percent,
        "equivalence_p_adjusted": overall.equivalence_p_adjusted,
        "verdicts": verdicts,
        "verdict": overall.verdict,
        "replication": replication(overall.verdict, verdicts, together),
        "why": why(overall.verdict, verdicts, together, what),
        **_spread(together),
    }


def _spread(together: Combined | None) -> dict[str, Any]:
    """How much the machines differ; all None where too few of them have an interval."""
    names = ("between_sd", "i2_percent", "q", "heterogeneity_p")
    low, high = (together and together.prediction95) or (None, None)
    spread = {name: together and getattr(together, name) for name in names}
    return {**spread, "prediction95_low": low, "prediction95_high": high}

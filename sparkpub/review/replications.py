"""What each machine found, and what several machines or sessions show together: see `statistics.replication`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sparkpub.review.grouping import grouped
from sparkpub.review.rows import ComparisonRow, Row, by_family
from sparkpub.review.statistics.compare import Verdict
from sparkpub.review.statistics.describe import Interval
from sparkpub.review.statistics.replication import (
    Combined,
    Replication,
    between,
    over_machines,
    replication,
    why,
)


@dataclass(frozen=True, kw_only=True)
class EffectRow(Row):
    """What one machine found in one campaign: `effect` in `effect_unit`, percent of the machine's own baseline or, on a
    scale without a true zero, the metric's unit. `machine` is the machine's id, empty where nobody knows it."""

    baseline: str
    candidate: str
    machine: str
    n_baseline: int
    n_candidate: int
    effect: float
    effect_unit: str
    ci95_effect: Interval | None
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class ReplicationRow(Row):
    """One comparison over several machines, or over several sessions (`campaigns`) of a machine.

    `effect` is the mean over machines like these, in `effect_unit` as in `EffectRow`, with its interval and `verdict`,
    corrected over the primary rows; `verdicts` are those of the single machines. `between_sd` is the spread of the true
    effects, `i2_percent` its share, `q` Cochran's Q. `prediction95` is where one more machine is expected.
    """

    campaigns: tuple[str, ...]
    baseline: str
    candidate: str
    machines: int
    effect: float
    effect_unit: str
    ci95_effect: Interval | None
    prediction95: Interval | None
    p_adjusted: float | None
    equivalence_margin_percent: float
    equivalence_p_adjusted: float | None
    between_sd: float | None
    i2_percent: float | None
    q: float | None
    heterogeneity_p: float | None
    verdicts: tuple[Verdict, ...]
    verdict: Verdict
    replication: Replication
    why: str


@dataclass(frozen=True)
class Measured:
    """A comparison as one machine measured it in one campaign."""

    machine: str
    row: ComparisonRow


Key = tuple[str, ...]


def key_of(row: ComparisonRow) -> Key:
    """What makes two rows the same comparison, whatever the campaign."""
    return row.model, row.workload, row.metric, row.baseline, row.candidate


def effects(measured: Iterable[Measured]) -> list[EffectRow]:
    """What each machine or session found of the comparisons that several of them made."""
    several = chain.from_iterable(_groups(measured))
    return [_effect(one.machine, one.row) for one in several]


def _groups(measured: Iterable[Measured]) -> list[list[Measured]]:
    """The same comparison by several machines or sessions, in the order first met."""
    groups = grouped(measured, lambda one: key_of(one.row))
    return [group for group in groups.values() if len(group) > 1]


def _effect(machine: str, row: ComparisonRow) -> EffectRow:
    effect, unit, interval = row.difference, row.unit, row.ci95_difference
    if row.difference_percent is not None:
        effect, unit = row.difference_percent, "%"
        interval = _in_percent(row)
    return EffectRow(
        **row.about,
        baseline=row.baseline,
        candidate=row.candidate,
        machine=machine,
        n_baseline=row.n_baseline,
        n_candidate=row.n_candidate,
        effect=effect,
        effect_unit=unit,
        ci95_effect=interval,
        verdict=row.verdict,
    )


def _in_percent(row: ComparisonRow) -> Interval | None:
    """The interval of the difference in percent of the baseline's mean."""
    if row.ci95_difference is None:
        return None
    low, high = row.ci95_difference
    return 100 * low / abs(row.mean_baseline), 100 * high / abs(row.mean_baseline)


def replications(measured: Iterable[Measured]) -> list[ReplicationRow]:
    """Every comparison that two machines or sessions made at least, together, in the order first met."""
    several = _groups(measured)
    overall = by_family([_over(group) for group in several])
    return [
        _replication(group, row) for group, row in zip(several, overall, strict=True)
    ]


def _over(group: Sequence[Measured]) -> ComparisonRow:
    """The comparison over the machines of a group, p-values uncorrected; it is called after the first of them."""
    first = group[0].row
    # Which way is better changes no figure of a replication.
    found = over_machines(
        [one.row for one in group], direction="neither", unit=first.unit
    )
    return ComparisonRow(
        **first.about,
        baseline=first.baseline,
        candidate=first.candidate,
        **vars(found),
    )


def _replication(group: Sequence[Measured], row: ComparisonRow) -> ReplicationRow:
    effect = _effect("", row)
    verdicts = tuple(one.row.verdict for one in group)
    together = between([one.row for one in group])
    what = "machine" if len({one.machine for one in group}) == len(group) else "session"
    return ReplicationRow(
        **row.about,
        campaigns=tuple(dict.fromkeys(one.row.campaign for one in group)),
        baseline=row.baseline,
        candidate=row.candidate,
        machines=len(group),
        effect=effect.effect,
        effect_unit=effect.effect_unit,
        ci95_effect=effect.ci95_effect,
        p_adjusted=row.p_adjusted,
        equivalence_margin_percent=row.equivalence_margin_percent,
        equivalence_p_adjusted=row.equivalence_p_adjusted,
        verdicts=verdicts,
        verdict=row.verdict,
        replication=replication(row.verdict, verdicts, together),
        why=why(row.verdict, verdicts, together, what),
        **_spread(together),
    )


def _spread(together: Combined | None) -> dict[str, Any]:
    """How much the machines differ; all None where too few of them have an interval."""
    names = ("between_sd", "i2_percent", "q", "heterogeneity_p", "prediction95")
    if together is None:
        return dict.fromkeys(names)
    return {name: getattr(together, name) for name in names}

"""The methodology's success criteria, applied: variation, statistical power, repeatability, completeness."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sparkpub import coverage
from sparkpub.analysis.compare import DETECTABLE_PERCENT
from sparkpub.errors import CollectError

if TYPE_CHECKING:
    from sparkpub.analysis.summary import RepeatRow, Statistics

MAX_CV_PERCENT, MIN_POWER, REPEAT_PERCENT = 5.0, 0.8, 5.0


@dataclass(frozen=True)
class Criterion:
    """One criterion applied to one primary metric of a cell (`model/environment/workload`, for power the
    candidate's), or to a whole campaign. `met` is None where the data do not decide."""

    campaign: str
    criterion: Literal["variation", "power", "repeatability", "completeness"]
    cell: str | None
    metric: str | None
    value: float | None
    threshold: float
    met: bool | None
    why: str


def criteria(found: "Statistics") -> tuple[Criterion, ...]:
    """Every criterion applied to every primary metric, and completeness to every campaign."""
    return tuple(item for part in (_variation, _power, _repeatability, _completeness) for item in part(found))


def _variation(found: "Statistics") -> Iterator[Criterion]:
    for row in found.cells:
        if row.family == "primary" and row.unit != "°C":
            cell, cv = f"{row.model}/{row.environment}/{row.workload}", row.cv_percent
            met = None if cv is None else cv < MAX_CV_PERCENT
            why = f"coefficient of variation in percent, n = {row.n}"
            yield Criterion(row.campaign, "variation", cell, row.metric, cv, MAX_CV_PERCENT, met, why)


def _power(found: "Statistics") -> Iterator[Criterion]:
    for row in found.comparisons:
        if row.family == "primary":
            cell, power = f"{row.model}/{row.candidate}/{row.workload}", row.power_10_percent
            met = None if power is None else power >= MIN_POWER
            why = f"power against {DETECTABLE_PERCENT:g} % at 5 %, n = {row.n_baseline} and {row.n_candidate}"
            yield Criterion(row.campaign, "power", cell, row.metric, power, MIN_POWER, met, why)


def _repeatability(found: "Statistics") -> Iterator[Criterion]:
    for row in found.repeats:
        if row.family == "primary":
            cell, value = f"{row.model}/{row.environment}/{row.workload}", row.difference_percent
            why = f"difference in percent from campaign {row.against}: {row.why}"
            met = _repeats(row)
            yield Criterion(row.campaign, "repeatability", cell, row.metric, value, REPEAT_PERCENT, met, why)
    if not found.repeats:
        why = f"no cell in common with {found.against}" if found.against else "no repeat was compared (--against)"
        for data in found.campaigns:
            yield Criterion(data.name, "repeatability", None, None, None, REPEAT_PERCENT, None, why)


def _repeats(row: "RepeatRow") -> bool | None:
    """True where the difference is shown to lie within the margin, False where its interval lies wholly beyond it."""
    if row.verdict == "equivalent":
        return True
    margin = REPEAT_PERCENT / 100 * abs(row.mean_baseline)
    beyond = row.ci95_difference is not None and (row.ci95_difference[0] > margin or row.ci95_difference[1] < -margin)
    return False if beyond and row.verdict != "undecided" else None


def _completeness(found: "Statistics") -> Iterator[Criterion]:
    for data in found.campaigns:
        done = planned = 0
        why = "no matrix says what was planned"
        if data.matrix is not None:
            try:
                counts = coverage.by_cell(data.matrix, data.records, data.quarantined)
                done, planned = sum(count.done for count in counts), sum(count.planned for count in counts)
                why = f"{done} of {planned} planned runs are done"
            except CollectError as error:
                why = error.what
        share, met = (100 * done / planned, done == planned) if planned else (None, None)
        yield Criterion(data.name, "completeness", None, None, share, 100.0, met, why)

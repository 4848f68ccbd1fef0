"""What every row of the statistics is about, and the comparison of two environments as a row."""

from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from sparkpub.review.statistics.compare import Comparison, adjust

Family = Literal["primary", "secondary"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What every row of the statistics is about."""

    campaign: str
    model: str
    workload: str
    metric: str
    unit: str
    family: Family

    @property
    def about(self) -> dict[str, Any]:
        """These fields by name, for another row about the same."""
        return {item.name: getattr(self, item.name) for item in fields(Row)}


@dataclass(frozen=True, kw_only=True)
class ComparisonRow(Comparison, Row):
    """One metric of one model and workload: environment `candidate` against environment `baseline`."""

    baseline: str
    candidate: str


@dataclass(frozen=True, kw_only=True)
class MachineRow(ComparisonRow):
    """The same on one machine of a campaign that ran on several. `machine` is its id."""

    machine: str


@dataclass(frozen=True, kw_only=True)
class RepeatRow(Comparison, Row):
    """One metric of one cell in `campaign` against the same cell in campaign `against`; the margin is 5 %.

    `same_specification` is None where either campaign's records carry none.
    """

    against: str
    environment: str
    same_specification: bool | None


R = TypeVar("R", ComparisonRow, MachineRow, RepeatRow)


def by_family(rows: list[R]) -> list[R]:
    """The rows in their own order, the primary ones with Holm's correction; the others are exploratory."""
    primary = iter(adjust([row for row in rows if row.family == "primary"]))
    return [next(primary) if row.family == "primary" else row for row in rows]

"""The statistics that claims, posts and tables of pages can name: what each is called, means and counts in.

A statistic of a `sample` is a column of `tables.cells.summary`, and one of a `comparison` a column of
`tables.comparisons.compare`, under its own name. `claims.quantities.ask` answers for these and for the other kinds.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from sparkpub.record.errors import ClaimError

StatisticKind = Literal[
    "runs", "sample", "order", "relation", "comparison", "pooled", "gap"
]


@dataclass(frozen=True)
class Statistic:
    """One entry of vocabulary.toml. `unit` "metric" is that of the metric. `phrase` names it in a sentence about a
    `{metric}`, one `{against}` which it is set, a `{candidate}` and a `{baseline}`. `digits` are those of a plain
    number; others have those of their unit, and `finer` as many more than their metric. `interval` is the column of
    its 95 % interval."""

    name: str
    kind: StatisticKind
    phrase: str
    definition: str
    unit: str = ""
    digits: int = 2
    finer: int = 0
    interval: str = ""
    signed: bool = False

    @property
    def is_column(self) -> bool:
        """Whether it is a column of a table, which several machines and campaigns have together."""
        return self.kind in ("sample", "comparison")

    @property
    def compares(self) -> bool:
        """Whether it is of one environment against another."""
        return self.kind in ("comparison", "pooled", "gap")


def _read() -> dict[str, Statistic]:
    text = resources.files(__package__).joinpath("vocabulary.toml").read_text("utf-8")
    entries: dict[str, dict[str, Any]] = tomllib.loads(text)
    return {name: Statistic(name, **entry) for name, entry in entries.items()}


STATISTICS: Mapping[str, Statistic] = _read()


def statistic_called(name: str) -> Statistic:
    """The statistic of that name. Raises ClaimError where there is none."""
    if name not in STATISTICS:
        known = ", ".join(sorted(STATISTICS))
        raise ClaimError(f"no statistic {name!r}", remedy=f"known are {known}")
    return STATISTICS[name]

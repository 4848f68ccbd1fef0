"""What a data folder shows: the three tables, as `sparkpub.load` gives them to notebooks, and what follows from them.

results = load(Path("data/comprehensive"))
results.runs, results.cells, results.comparisons
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from sparkpub.record.errors import UsageError
from sparkpub.review import dataset as datasets
from sparkpub.review.checks import what_counts
from sparkpub.review.reviewed import Include, ReviewedCampaign, ReviewedDataset
from sparkpub.review.tables import (
    bandwidths,
    capacities,
    cells,
    comparisons,
    criteria,
    over,
    runs,
)
from sparkpub.review.tables.column import TableRows, table


@dataclass(frozen=True, eq=False)
class Results:
    """What the runs show that count. Each table is made when it is first asked for, and once: none waits for what the
    checks say that the figures mean.

    `include` says which runs the tables are made of: those that count, or every recorded one. `campaign` names the only
    one asked for, `against` an earlier one that it repeats. The tables' columns are described in `COLUMNS` of their
    modules, in `sparkpub.review.tables`.

    Raises UsageError for a campaign that is not there, and where `against` leaves open what is compared.
    """

    reviewed: ReviewedDataset
    include: Include = "counted"
    campaign: str | None = None
    against: str | None = None

    def __post_init__(self) -> None:
        for name in (self.campaign, self.against):
            if name is not None and name not in self.reviewed.campaigns:
                raise UsageError(
                    f"no campaign {name!r}",
                    remedy=f"there are: {', '.join(self.reviewed.campaigns) or 'none'}",
                )
        if self.against is None:
            return
        if len(self.campaigns) != 1 or self.campaign == self.against:
            raise UsageError(
                "--against compares one campaign with another",
                remedy="name the first with --campaign",
            )

    @cached_property
    def campaigns(self) -> Mapping[str, ReviewedCampaign]:
        """The campaigns that are asked for, with their runs by cell."""
        named = self.reviewed.campaigns if self.campaign is None else [self.campaign]
        return self._including(name for name in named if name != self.against)

    def _including(self, names: Iterable[str]) -> dict[str, ReviewedCampaign]:
        """Campaigns with the runs that count, or with all."""
        known = {name: self.reviewed.campaigns[name] for name in names}
        if self.include == "counted":
            return known
        return {name: each.whole for name, each in known.items()}

    @cached_property
    def excluded(self) -> Mapping[str, str]:
        """Runs left out of these tables, with the reason."""
        asked = self._with_earlier.values()
        return {run: why for each in asked for run, why in each.excluded.items()}

    @cached_property
    def _with_earlier(self) -> Mapping[str, ReviewedCampaign]:
        """The campaigns that are asked for, and behind them the one that they are held against."""
        return {**self.campaigns, **self._including(filter(None, [self.against]))}

    # -- the three tables ------------------------------------------------------------------------------------

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row per run and metric, excluded runs with the reason."""
        known = self.reviewed.campaigns
        return runs.of_all([known[name].runs for name in self.campaigns])

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row per metric of each cell (model, environment, workload), described."""
        each = [reviewed.cells for reviewed in self.campaigns.values()]
        return table(cells.COLUMNS, pd.concat(each, ignore_index=True) if each else [])

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """A row per metric of each cell that is compared with the baseline environment."""
        return _comparisons(self.campaigns.values())

    # -- what follows from them ------------------------------------------------------------------------------

    @cached_property
    def overall(self) -> pd.DataFrame:
        """The comparisons over all machines."""
        return self.comparisons[self.comparisons["machine"].isna()]

    @cached_property
    def repeats(self) -> pd.DataFrame:
        """A row per metric of each cell that the earlier campaign has, too."""
        if self.against is None:
            return table(over.REPEATS, [])
        return over.repeats([*self._with_earlier.values()], self.against)

    @cached_property
    def replications(self) -> pd.DataFrame:
        """A row per comparison that several machines of a campaign, or of the two campaigns, made: what they show
        together."""
        each = self._with_earlier.values()
        if self.against is not None:
            return _over(*each)[1]
        return over.replications(_sessions([one]) for one in each)

    @cached_property
    def capacities(self) -> pd.DataFrame:
        """A row per model, environment, load without its rate, and limit: the highest arrival rate that holds."""
        each = [_capacities(reviewed) for reviewed in self.campaigns.values()]
        return table(capacities.COLUMNS, pd.concat(each) if each else [])

    @cached_property
    def bandwidths(self) -> pd.DataFrame:
        """A row per cell of one request at once: the share of the memory's bandwidth that its throughput needs."""
        return bandwidths.bandwidths(self.cells, self.campaigns)

    @cached_property
    def criteria(self) -> pd.DataFrame:
        """A row per success criterion of the methodology and cell, or campaign."""
        campaigns = [reviewed.campaign for reviewed in self.campaigns.values()]
        return criteria.criteria(campaigns, self.cells, self.overall, self.repeats)

    def over(self, campaigns: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The comparisons of all these campaigns as single machines measured them, in this order, and their
        `replications`."""
        return _over(*(self._with_earlier[name] for name in campaigns))

    # -- row by row, for code that puts rows into words ----------------------------------------------------------

    @cached_property
    def cell_rows(self) -> TableRows:
        """The table of cells."""
        return TableRows(chain(*(each.cell_rows for each in self.campaigns.values())))

    @cached_property
    def comparison_rows(self) -> TableRows:
        """The comparisons over all machines."""
        each = (reviewed.comparison_rows for reviewed in self.campaigns.values())
        return TableRows(row for row in chain(*each) if row.machine is None)


@lru_cache(maxsize=32)
def _over(*campaigns: ReviewedCampaign) -> tuple[pd.DataFrame, pd.DataFrame]:
    """See `Results.over`: kept, since every metric of a campaign and every place that names it asks for the same."""
    together = _sessions(campaigns)
    return together, over.replications([together])


@lru_cache(maxsize=32)
def _capacities(reviewed: ReviewedCampaign) -> pd.DataFrame:
    """Those of a campaign, kept."""
    known = {reviewed.campaign.name: reviewed}
    return capacities.capacities(reviewed.cells, known)


def _sessions(campaigns: Iterable[ReviewedCampaign]) -> pd.DataFrame:
    """The comparisons of campaigns as single machines measured them."""
    known = [*campaigns]
    alone = {
        reviewed.campaign.name: reviewed.machines[0]
        for reviewed in known
        if len(reviewed.machines) == 1
    }
    return over.sessions(_comparisons(known), alone)


def _comparisons(campaigns: Iterable[ReviewedCampaign]) -> pd.DataFrame:
    """The comparisons of campaigns, those within single machines behind all others."""
    each = [reviewed.comparisons for reviewed in campaigns]
    found = table(comparisons.COLUMNS, pd.concat(each) if each else [])
    within = found["machine"].notna().to_numpy()
    return found.iloc[np.argsort(within, kind="stable")].reset_index(drop=True)


def load(
    data: Path | str,
    *more: Path | str,
    include: Include = "counted",
    skip: Callable[[str], None] | None = None,
) -> Results:
    """The results of data folders, such as `data/comprehensive`.

    Raises RecordError with every damaged file, unless `skip` takes each as a line of text.
    """
    folders = [Path(folder) for folder in (data, *more)]
    return Results(what_counts(datasets.load(*folders, skip=skip)), include)

"""What a data folder shows: the three tables, as `sparkpub.load` gives them to notebooks.

results = load(Path("data/comprehensive"))
results.runs, results.cells, results.comparisons
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from sparkpub.review import dataset as datasets
from sparkpub.review.checks import Review, review
from sparkpub.review.dataset import Dataset
from sparkpub.review.frame import Frame
from sparkpub.review.summary import Statistics, statistics
from sparkpub.review.tables import cells, comparisons, runs
from sparkpub.review.tables.cells import Include


@dataclass(frozen=True, eq=False)
class Results:
    """The campaigns of data folders with their review. Each table is made when it is first asked for, and once.

    `include` says which runs cells and comparisons are made of: those that count, or every recorded one. The tables'
    columns are described in `COLUMNS` of their modules, in `sparkpub.review.tables`.
    """

    dataset: Dataset
    include: Include = "counted"

    @cached_property
    def review(self) -> Review:
        """What the checks found, and which runs count."""
        return review(self.dataset)

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Each campaign with its runs by cell."""
        return self.review.frames

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row per run and metric, excluded runs with the reason."""
        return runs.runs(self.frames)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row per metric of each cell (model, environment, workload), described."""
        return cells.cells(self.runs, self.frames, self.include)

    @cached_property
    def statistics(self) -> Statistics:
        """The rows of cells and comparisons, and what follows from them."""
        return statistics(self.dataset, self.frames, include=self.include)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """A row per metric of each cell that is compared with the baseline environment."""
        return comparisons.comparisons(self.frames, self.include)


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
    return Results(datasets.load(*folders, skip=skip), include)

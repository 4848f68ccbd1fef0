"""A campaign made of figures chosen in the test, as a dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from sparkpub.review.claims.claim import Claim
from sparkpub.review.claims.ledger import Verdict, judge
from sparkpub.review.dataset import Dataset
from tests.leaderboards import reviewed
from tests.review.statistics.campaigns import a_campaign

Cells = Mapping[tuple[str, str], Sequence[float]]
"""(model, environment) to the values of a metric in run order."""


def a_dataset(
    cells: Cells,
    metric: str = "output_throughput_tok_s",
    *,
    name: str = "c",
    order: Literal["random", "interleaved"] = "random",
    **others: Cells,
) -> Dataset:
    """Campaign `c`, or another `name`: one record per value, a minute apart, cells in turn.

    `others` maps further metrics to their values.
    """
    measured = {
        place: {metric: values, **{key: cell[place] for key, cell in others.items()}}
        for place, values in cells.items()
    }
    campaign = a_campaign(name, measured, order=order, matrix=False)
    return Dataset(Path(), {name: campaign})


def together(*datasets: Dataset) -> Dataset:
    """Their campaigns in one."""
    campaigns = {}
    for dataset in datasets:
        campaigns.update(dataset.campaigns)
    return Dataset(Path(), MappingProxyType(campaigns))


def verdict_on(dataset: Dataset, review: Any = None, **fields: Any) -> Verdict:
    """The verdict on one claim about campaign `c`."""
    chosen: dict[str, Any] = {
        "id": "it",
        "source": {"document": "somewhere"},
        "about": "data",
        "campaign": "c",
        "note": "A margin of its own.",
        "recorded": "supported",
    }
    if "decided_by" in fields:
        chosen["says"] = "It is so."
    claim = Claim.model_validate(chosen | fields)
    return judge([claim], review or reviewed(dataset))[0]

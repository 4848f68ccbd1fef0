"""What a kind of figure is: a module with a constant `KIND` that says which figures of it there are."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from sparkpub.record.metrics import Metric
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.rows import MakeRows
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import slug

Make = Callable[[Selection, str], Figure]
"""Makes a figure of a selection, with the key under which it is published."""
Offer = tuple[str, Make]
"""A figure by the name that pages and authors ask for, `peak-memory-box`, and what makes it."""


def _none_of_metric(_selection: Selection, _metric: Metric) -> Iterator[Offer]:
    yield from ()


def _none_of_campaign(_selection: Selection) -> Iterator[Offer]:
    yield from ()


@dataclass(frozen=True)
class Kind:
    """`of_metric` and `of_campaign` offer what a campaign has; `tables` are the rows that only this kind makes, by
    name."""

    of_metric: Callable[[Selection, Metric], Iterator[Offer]] = _none_of_metric
    of_campaign: Callable[[Selection], Iterator[Offer]] = _none_of_campaign
    tables: Mapping[str, MakeRows] = field(default_factory=dict)


def of_each_metric(
    ending: str, figure: Callable[[Metric, Selection, str], Figure]
) -> Kind:
    """A figure of every metric that a campaign has: `peak-memory` with this ending."""

    def offers(_campaign: Selection, metric: Metric) -> Iterator[Offer]:
        yield slug(metric.name) + ending, partial(figure, metric)

    return Kind(of_metric=offers)


def of_rows(name: str, figure: Make, table: str, make: MakeRows) -> Kind:
    """A figure of every campaign that has rows in a table of the kind's own."""

    def offers(campaign: Selection) -> Iterator[Offer]:
        if campaign.rows(table):
            yield name, figure

    return Kind(of_campaign=offers, tables={table: make})

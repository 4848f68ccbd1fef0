"""How far the repetitions inside a run lie apart, and whether their mean says anything.

repeated(record)    each time and rate whose repetitions are known, as Repeated
"""

from collections.abc import Iterator
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

import scipy

from sparkpub.plan.requested import load_of
from sparkpub.record.metrics import METRICS, TIMED_UNITS
from sparkpub.record.record import Record, Spread

APART_SHARE = 0.4
"""Standard deviation of repetitions, as a share of their mean, from which that says nothing if its 95 % interval begins
at zero."""


class Repeated(NamedTuple):
    """A metric of a run with mean and deviation of its repetitions, of which there are `number` where that is known."""

    metric: str
    mean: float
    deviation: float
    number: int | None

    @property
    def share(self) -> float:
        """The deviation as a share of the mean."""
        return self.deviation / abs(self.mean) if self.mean else 0.0

    @property
    def says_nothing(self) -> bool:
        """Whether the mean may be anything: its 95 % interval begins at zero, where it is known of how many it is."""
        if self.share < APART_SHARE or self.number is None:
            return self.share >= APART_SHARE
        t = float(scipy.special.stdtrit(self.number - 1, 0.975))
        return t * self.share >= sqrt(self.number)


def repeated(record: Record) -> Iterator[Repeated]:
    """The times and rates of a run whose repetitions are known."""
    load = load_of(record)
    # Requests sent together wait for each other, and those of a data set differ: they repeat nothing.
    are_alike = load.at_once == 1 and load.dataset is None
    for name in (*record.samples, *record.spreads):
        metric = record.metrics[name]
        if metric.unit not in TIMED_UNITS or metric.value is None:
            continue
        if name in METRICS and METRICS[name].distribution and not are_alike:
            continue
        if name in record.spreads:
            spread = record.spreads[name]
            yield Repeated(name, metric.value, _deviation(spread), spread.repetitions)
        elif len(values := record.samples[name]) > 1:
            yield Repeated(name, fmean(values), stdev(values), len(values))


def _deviation(spread: Spread) -> float:
    """The standard deviation with n - 1 below the line, where it is known that it has n."""
    n = spread.repetitions
    if spread.divisor != "n" or n is None or n < 2:
        return spread.deviation
    return spread.deviation * sqrt(n / (n - 1))

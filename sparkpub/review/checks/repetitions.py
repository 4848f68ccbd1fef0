"""Whether the repetitions inside a run agree so far that their mean says something, and are more than one."""

from collections import defaultdict
from collections.abc import Iterator
from math import sqrt
from operator import itemgetter
from statistics import fmean, stdev
from typing import NamedTuple

import scipy

from sparkpub.plan.requested import load_of
from sparkpub.record.metrics import Metric
from sparkpub.record.record import Record, Spread
from sparkpub.record.store import Stored
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import TIMED_UNITS, Case, View

APART_SHARE = Threshold(
    "apart share",
    0.4,
    "Standard deviation of a run's repetitions, as a share of their mean, from which that says nothing if its 95 % "
    "interval begins at zero, as it does with three repetitions and 40 %. Of 1,900 rates of llama-benchy on a DGX "
    "Spark, 30 have more.",
)
LEAST_REPETITIONS = Threshold(
    "least repetitions",
    3,
    "Repetitions from which no spread at all, in any figure of a run, shows that it was measured once: 950 runs of "
    "llama-benchy have some.",
)


class Repeated(NamedTuple):
    """A metric of a run with its repetitions, as they are told."""

    metric: Metric
    mean: float
    deviation: float
    repetitions: int | None

    @property
    def share(self) -> float:
        return self.deviation / abs(self.mean) if self.mean else 0.0

    @property
    def says_nothing(self) -> bool:
        """Whether the mean may be anything: its 95 % interval begins at zero, where it is known of how many it is."""
        if self.share < APART_SHARE or self.repetitions is None:
            return self.share >= APART_SHARE
        t = float(scipy.special.stdtrit(self.repetitions - 1, 0.975))
        return t * self.share >= sqrt(self.repetitions)


def repetitions(view: View) -> Iterator[Finding]:
    """Runs whose repetitions lie so far apart that their mean says nothing, a finding for each metric, and runs whose
    repetitions are one."""
    apart: dict[str, list[tuple[float, Case]]] = defaultdict(list)
    for stored in view.happened:
        for each in _repeated(view, stored):
            if each.says_nothing:
                case = (stored, _said(each))
                apart[each.metric.name].append((each.share, case))
    for name, found in apart.items():
        found.sort(key=itemgetter(0), reverse=True)
        of_what = view.metrics[name].within_sentence.removeprefix("mean ")
        yield from view.cases(
            "repetitions",
            "warning",
            [case for _, case in found],
            f"has repetitions of {of_what} too far apart for a mean",
            f"have repetitions of {of_what} too far apart for a mean",
            metric=name,
        )
    yield from view.cases(
        "repetitions",
        "warning",
        _measured_once(view),
        "was measured once, and says that it was repeated",
        "were measured once, and say that they were repeated",
        what="once",
        remedy="Look in the client's log for its number of repetitions, and correct it.",
    )


def _said(worst: Repeated) -> str:
    metric = worst.metric
    number = "" if worst.repetitions is None else f" over {worst.repetitions}"
    return (
        f"{metric.within_sentence} {metric.format(worst.mean)} ± {metric.format(worst.deviation)} "
        f"({100 * worst.share:.0f} %{number})"
    )


def _repeated(view: View, stored: Stored) -> Iterator[Repeated]:
    """The times and rates of a run whose repetitions are known."""
    record = stored.record
    if not (record.samples or record.spreads):
        return
    are_alike = _are_alike(record)
    for name, values in record.samples.items():
        if len(values) > 1 and _is_repeated(view.metrics[name], are_alike=are_alike):
            yield Repeated(
                view.metrics[name], fmean(values), stdev(values), len(values)
            )
    for name, spread in record.spreads.items():
        mean, metric = record.value(name), view.metrics[name]
        if mean is not None and _is_repeated(metric, are_alike=are_alike):
            yield Repeated(metric, mean, _deviation(spread), spread.repetitions)


def _are_alike(record: Record) -> bool:
    """Whether the requests of a run repeat each other. Those sent together do not, as they wait for each other, and
    neither do those of a data set."""
    load = load_of(record)
    return load.at_once == 1 and load.dataset is None


def _is_repeated(metric: Metric, *, are_alike: bool) -> bool:
    """Whether several values of a metric repeat it."""
    return metric.unit in TIMED_UNITS and (are_alike or not metric.distribution)


def _deviation(spread: Spread) -> float:
    """The standard deviation with n - 1 below the line, where it is known that it has n."""
    n = spread.repetitions
    if spread.divisor != "n" or n is None or n < 2:
        return spread.deviation
    return spread.deviation * sqrt(n / (n - 1))


def _measured_once(view: View) -> list[Case]:
    """Runs that tell several repetitions, without any spread in any figure."""
    cases = []
    for stored in view.happened:
        found = list(_repeated(view, stored))
        times = max((each.repetitions or 0 for each in found), default=0)
        is_alike = all(each.deviation == 0 for each in found)
        if times >= LEAST_REPETITIONS and is_alike and any(map(_is_exact, found)):
            detail = f"its {times} repetitions agree to the last digit"
            cases.append((stored, detail))
    return cases


def _is_exact(each: Repeated) -> bool:
    """Whether a figure has more than three digits, of which the last would differ from time to time."""
    return float(f"{each.mean:.3g}") != each.mean


CHECKS = (
    Check(
        "repetitions",
        "meaning",
        ("warning",),
        "Do the repetitions inside a run agree?",
        repetitions,
        thresholds=(APART_SHARE, LEAST_REPETITIONS),
        remedy="Measure more repetitions, or longer prompts and answers.",
    ),
)

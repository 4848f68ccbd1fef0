"""Whether the repetitions inside a run agree so far that their mean says something, and are more than one."""

from collections.abc import Iterator
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from sparkpub.plan.requested import load_of
from sparkpub.record.metrics import Metric
from sparkpub.record.record import Spread
from sparkpub.record.store import Stored
from sparkpub.record.text import listed
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.checks.view import Case, View, about_metrics

APART_SHARE = Threshold(
    "apart share",
    0.4,
    "Standard deviation of a run's repetitions, as a share of their mean, from which that says nothing: of three "
    "repetitions, the 95 % interval then begins at zero. Of 2,190 rates of llama-benchy on a DGX Spark, 2 % have more.",
)
LEAST_REPETITIONS = Threshold(
    "least repetitions",
    3,
    "Repetitions from which no spread at all, in any figure of a run, shows that it was measured once: 950 runs of "
    "llama-benchy have some.",
)


class Apart(NamedTuple):
    """A metric of a run with its repetitions, as they are told."""

    metric: Metric
    mean: float
    deviation: float
    repetitions: int | None

    @property
    def share(self) -> float:
        return self.deviation / abs(self.mean) if self.mean else 0.0


def repetitions(view: View) -> Iterator[Finding]:
    """Runs whose repetitions lie so far apart that their mean says nothing, and runs whose repetitions are one."""
    worst_of: list[tuple[Stored, Apart]] = []
    names: dict[str, str] = {}
    for stored in view.happened:
        found = [each for each in _repeated(view, stored) if each.share >= APART_SHARE]
        names |= {each.metric.name: each.metric.within_sentence for each in found}
        if found:
            worst_of.append((stored, max(found, key=_share)))
    worst_of.sort(key=lambda case: -_share(case[1]))
    said = f"repetitions so far apart that their mean says nothing, in {listed(tuple(names.values()))}"
    yield from view.cases(
        "repetitions",
        "warning",
        [(stored, _said(worst)) for stored, worst in worst_of],
        f"has {said}",
        f"have {said}",
        **about_metrics(list(names)) if names else {},
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


def _share(each: Apart) -> float:
    return each.share


def _said(worst: Apart) -> str:
    metric = worst.metric
    number = "" if worst.repetitions is None else f" over {worst.repetitions}"
    return (
        f"{metric.within_sentence} {metric.format(worst.mean)} ± {metric.format(worst.deviation)} "
        f"({100 * worst.share:.0f} %{number})"
    )


def _repeated(view: View, stored: Stored) -> Iterator[Apart]:
    """The metrics of a run whose repetitions are known. A distribution over several requests at once is not repeated by
    them: they wait for each other."""
    record = stored.record
    alone = load_of(record).at_once == 1
    for name, values in record.samples.items():
        metric = view.metrics[name]
        if len(values) > 1 and (alone or not metric.distribution):
            yield Apart(metric, fmean(values), stdev(values), len(values))
    for name, spread in record.spreads.items():
        metric, mean = view.metrics[name], record.value(name)
        if mean is not None and (alone or not metric.distribution):
            yield Apart(metric, mean, _deviation(spread), spread.repetitions)


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
        if times >= LEAST_REPETITIONS and all(each.deviation == 0 for each in found):
            detail = f"its {times} repetitions agree to the last digit"
            cases.append((stored, detail))
    return cases


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

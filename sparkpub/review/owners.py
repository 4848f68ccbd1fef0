"""Owners beside each other: what several measured of one model in one format under one load on one kind of machine."""

from collections.abc import Iterable
from dataclasses import dataclass

from sparkpub.record.metrics import METRICS
from sparkpub.review.differences import difference, told
from sparkpub.review.grouping import grouped
from sparkpub.review.speeds import GENERATION, PROMPT, Speed

_ANSWERS = (GENERATION, "ttft_p50_ms", "ttft_mean_ms", PROMPT)
"""Metrics that two owners are compared by, the first that both have."""
ENDS = 3
"""Owners with the lowest figures, and with the highest, beside whom each one stands."""


@dataclass(frozen=True)
class OwnersPair:
    """One owner's figure beside another owner's."""

    one: Speed
    other: Speed
    metric: str

    @property
    def percent(self) -> float:
        """How much the other owner's figure is above the first's."""
        one, other = (
            speed.figures[self.metric].mean for speed in (self.one, self.other)
        )
        return 100 * float(other / one - 1)

    @property
    def differs(self) -> str:
        """What the other's server was told differently, as far as the records say."""
        return difference(told(self.one.records[0]), told(self.other.records[0]))


def pairs(speeds: Iterable[Speed]) -> list[OwnersPair]:
    """Everything that several owners measured, each owner's best figure of it beside the others', or of many beside the
    lowest and the highest of them."""
    sure = [
        speed
        for speed in speeds
        if not speed.doubts and speed.load.request_rate is None
    ]
    found = []
    for alike in grouped(sure, _alike).values():
        for metric in _ANSWERS:
            having = [speed for speed in alike if speed.mean(metric)]
            best = {}
            sign = 1 if METRICS[metric].direction == "higher" else -1
            for speed in sorted(
                having, key=lambda each: sign * each.figures[metric].mean
            ):
                best[speed.owner] = speed
            if len(best) > 1:
                ranked = sorted(best, key=lambda name: best[name].figures[metric].mean)
                beside = {*ranked[:ENDS], *ranked[-ENDS:]}
                found += [
                    OwnersPair(best[one], best[other], metric)
                    for one in best
                    for other in best
                    if one != other and other in beside
                ]
                break
    return found


def _alike(speed: Speed) -> tuple[object, ...]:
    """What has to be the same before two owners' figures are compared."""
    return speed.machine, speed.model.key, speed.weights, speed.load, speed.cached

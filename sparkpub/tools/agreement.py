"""Whether the figures of one report agree: summaries with what they summarise, sums with their parts.

A tool's reader says which of its figures have to be equal; what each of them means is said there. What a report does
not hold is compared with nothing. What must agree whatever the tool, such as throughput and latency, is asked of the
record (`review/checks/rules.py`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparkpub.record.percentiles import quantiles
from sparkpub.tools import reading

SAME = 1e-6
"""Relative difference of two figures that are one: what adding and printing floats may change."""
Sum = tuple[str, Sequence[str]]
"""Where a sum stands in a report, and where its parts do."""


def of_values(
    what: str, said: Mapping[str, Any], values: Sequence[float], tolerance: float = SAME
) -> list[str]:
    """Where a summary is not that of its values: `said` by statistic, `mean` or `p50` to `p99`, which are interpolated.
    The first that differs is told."""
    if not values:
        return []
    array = np.asarray(values, dtype=float)
    for statistic, figure in said.items():
        with np.errstate(all="ignore"):  # of a file that nobody measured
            found = _statistic(statistic, array)
        given = reading.number(figure)
        if given is None or found is None:
            continue
        if not math.isclose(given, found, rel_tol=tolerance):
            return [
                f"the {statistic} of {what} is {given:.6g}, and that of its {len(values)} values is {found:.6g}"
            ]
    return []


def _statistic(name: str, values: NDArray[np.float64]) -> float | None:
    """The mean, or a percentile by its name; None for another name."""
    if name == "mean":
        return float(values.mean())
    percent = reading.number(name.removeprefix("p"))
    if percent is None or not 0 <= percent <= 100:
        return None
    (found,) = quantiles(values, [percent / 100])
    return float(found)


def sums(report: Any, table: Iterable[Sum], tolerance: float = SAME) -> list[str]:
    """Where a sum is not that of its parts, by dotted paths."""
    return list(_sums(report, table, tolerance))


def _sums(report: Any, table: Iterable[Sum], tolerance: float) -> Iterator[str]:
    for whole, parts in table:
        said = reading.number(reading.at(report, whole))
        known = [reading.number(reading.at(report, part)) for part in parts]
        found = [part for part in known if part is not None]
        if said is None or len(found) < len(known):
            continue
        yield from equal(whole, said, " + ".join(parts), sum(found), tolerance)


def equal(
    name: str,
    said: float | None,
    product: str,
    found: float | None,
    tolerance: float = SAME,
) -> list[str]:
    """Where two figures that are one are not; nothing where one of them is unknown."""
    if said is None or found is None or math.isclose(said, found, rel_tol=tolerance):
        return []
    return [f"{name} is {said:.6g}, and {product} is {found:.6g}"]


def means(report: Any, places: Iterable[str], words: tuple[str, str, str]) -> list[str]:
    """Where a mean is not its sum divided by its count: `places` of summaries, and what they call the three."""
    found = []
    for place in places:
        mean, total, count = (
            reading.number(reading.at(report, f"{place}.{word}")) for word in words
        )
        if total is not None and count:
            found += equal(
                f"{place}.{words[0]}", mean, "its sum by its count", total / count
            )
    return found


def of_peak(
    peak: float | None, tokens: float | None, slowest: float | None
) -> list[str]:
    """Where no second had as many tokens as an answer of mean length gives in a second, if answers took no longer than
    the slowest, in seconds: times are in another unit. An answer of `slowest` lies in two calendar seconds more."""
    if peak is None or tokens is None or slowest is None:
        return []
    least = tokens / (slowest + 2)
    if peak >= least:
        return []
    return [
        f"no second had more than {peak:g} tokens, and {tokens:.4g} tokens within {slowest:.3g} s make {least:.4g}"
    ]


TEXT_TOLERANCE = 0.25
"""Relative difference between the tokens that a server counted and those of its text, encoded again: 12 % at most in
real answers of random tokens, which are the worst to encode."""


def of_text(counted: float | None, encoded: float | None) -> list[str]:
    """Where fewer tokens were counted than the text of the answers has: pieces of a stream that hold several tokens
    each. More may have been, of reasoning that is not part of the text."""
    if not counted or not encoded or counted >= encoded * (1 - TEXT_TOLERANCE):
        return []
    return [
        f"{counted:g} tokens were counted, and the text of the answers has {encoded:g}"
    ]

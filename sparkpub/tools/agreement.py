"""Whether the figures of one report agree: summaries with what they summarise, sums with their parts.

A tool's mapping says which of its figures have to be equal (`agree:`). What a report does not hold is compared with
nothing. What must agree whatever the tool, such as throughput and latency, is asked of the record
(`review/checks/rules.py`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparkpub.record.percentiles import quantiles
from sparkpub.tools import reading
from sparkpub.tools.figures import scale_of, statistics_of
from sparkpub.tools.language import ResultMapping, TimesPlace
from sparkpub.tools.where import at

SAME = 1e-6
"""Relative difference of two figures that are one: what adding and printing floats may change."""


def contradictions(
    mapping: ResultMapping, document: Any, *, lost_some: bool
) -> Iterator[str]:
    """Where figures that a mapping names are not equal. Lists hold requests that failed, too: where some did, they are
    compared with nothing."""
    for whole, parts in mapping.agree.sums.items():
        found = [at(document, part) for part in parts]
        if not (lost_some and any(isinstance(part, list) for part in found)):
            yield from equal(
                whole, _number(document, whole), " + ".join(parts), _sum(found)
            )
    for mean, (whole, number) in mapping.agree.means.items():
        total, count = _number(document, whole), _number(document, number)
        if total is not None and count:
            said = _number(document, mean)
            yield from equal(mean, said, "its sum by its count", total / count)
    for stem, place in mapping.agree.values.items() if not lost_some else ():
        yield from _unlike_its_values(mapping.requests[stem], stem, place, document)


def _unlike_its_values(
    times: TimesPlace, stem: str, each: TimesPlace, document: Any
) -> list[str]:
    """Where a tool's statistics of a time are not those of each request's."""
    paths: Mapping[str, str] = each.statistics
    scale: float | None = 1.0
    if not paths:
        named = statistics_of(stem, times)
        scale = scale_of(each, document, "ms")
        paths = {
            name.removeprefix(f"{stem}_").removesuffix("_ms"): path
            for name, path in named.items()
        }
    said = {statistic: at(document, path) for statistic, path in paths.items()}
    values = [(scale or 1.0) * value for value in _flat(at(document, each.at))]
    return of_values(stem, said, values)


def _number(document: Any, where: str) -> float | None:
    return reading.number(at(document, where))


def _sum(parts: Sequence[Any]) -> float | None:
    """Of numbers, or of the numbers of lists; None where one of them is missing."""
    total = 0.0
    for part in parts:
        numbers = _flat(part) if isinstance(part, list) else reading.numbers([part])
        if not numbers:
            return None
        total += sum(numbers)
    return total


def _flat(found: Any) -> list[float]:
    """The numbers of a list, or of lists in a list."""
    if isinstance(found, list) and any(isinstance(item, list) for item in found):
        return [value for item in found for value in reading.numbers(item)]
    return reading.numbers(found)


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


def equal(
    name: str, said: float | None, product: str, found: float | None
) -> list[str]:
    """Where two figures that are one are not; nothing where one of them is unknown."""
    if said is None or found is None or math.isclose(said, found, rel_tol=SAME):
        return []
    return [f"{name} is {said:.6g}, and {product} is {found:.6g}"]

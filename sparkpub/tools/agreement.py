"""Whether the figures of one report agree: means with their values, sums with their parts.

A mapping says which figures of its tool have to be equal (`agree:`). What a report does not hold is compared with
nothing. What must agree whatever the tool, such as throughput and latency, is asked of the record
(`review/checks/rules.py`).
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sparkpub.record.percentiles import quantiles
from sparkpub.tools import reading
from sparkpub.tools.language import ResultMapping
from sparkpub.tools.where import at

_SAME = 1e-6
"""Relative difference of two figures that are one: what adding and printing floats may change."""
_PRINTED = 1e-3
"""Between a mean and its repetitions, which tools print with six digits, or round to two decimals."""
_SHARES = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}


def contradictions(
    mapping: ResultMapping, document: Any, *, lost_some: bool
) -> Iterator[str]:
    """Where figures that a mapping names are not equal. Lists hold requests that failed, too: where some did, they are
    compared with nothing."""
    for whole, parts in mapping.agree.sums.items():
        found = [at(document, part) for part in parts]
        if lost_some and any(isinstance(part, list) for part in found):
            continue
        numbers = list(map(_flat, found))
        if all(numbers):
            parted = sum(map(sum, numbers))
            yield from _unequal(whole, at(document, whole), " + ".join(parts), parted)
    for mean, behind in mapping.agree.means.items():
        said = at(document, mean)
        if isinstance(behind, str):
            values = reading.numbers(at(document, behind))
            yield from _of_values(mean, {"mean": said}, values, _PRINTED)
            continue
        total, count = (reading.number(at(document, one)) for one in behind)
        if total is not None and count:
            yield from _unequal(mean, said, "its sum by its count", total / count)
    for stem, each in mapping.agree.values.items() if not lost_some else ():
        scale = None if each.statistics else each.scale_to("ms", document)
        paths: Mapping[str, str] = each.statistics or {
            name.removeprefix(f"{stem}_").removesuffix("_ms"): path
            for name, path in mapping.requests[stem].statistics_of(stem).items()
        }
        values = [(scale or 1.0) * value for value in _flat(at(document, each.at))]
        told = {name: at(document, path) for name, path in paths.items()}
        yield from _of_values(stem, told, values, _SAME)


def _flat(found: Any) -> list[float]:
    """A number, the numbers of a list, or those of the lists in a list."""
    if not isinstance(found, list):
        return reading.numbers([found])
    if any(isinstance(item, list) for item in found):
        return [value for item in found for value in reading.numbers(item)]
    return reading.numbers(found)


def _of_values(
    what: str, said: dict[str, Any], values: list[float], tolerance: float
) -> Iterator[str]:
    """The first of `said`, the mean or another statistic, that is not so of the values."""
    for name, figure in said.items() if values else ():
        array = np.asarray(values)
        if name == "mean":
            found = array.mean()
        else:
            (found,) = quantiles(array, [_SHARES[name]])
        whose = f"that of its {len(values)} values"
        wrong = list(_unequal(f"the {name} of {what}", figure, whose, found, tolerance))
        if wrong:
            yield from wrong
            return


def _unequal(
    name: str, figure: Any, product: str, found: float, tolerance: float = _SAME
) -> Iterator[str]:
    said = reading.number(figure)
    if said is not None and not math.isclose(said, found, rel_tol=tolerance):
        yield f"{name} is {said:.6g}, and {product} is {found:.6g}"

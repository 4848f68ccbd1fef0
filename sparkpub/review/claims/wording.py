"""Whether the sentence of a claim says what its expectation tests: the direction, the side of a bound, the unit.

A verdict stands beside a sentence, so a sentence that says the opposite of its test is a false result. Words are read
only where they can be read without a doubt; a sentence with words of both directions, or with a negation, passes.
"""

import re
from collections.abc import Iterator

from sparkpub.review.claims.expectations import Expect

_UP = r"higher|more|larger|greater|hotter|warmer|longer|increases?|raises?"
_DOWN = r"lower|less|fewer|smaller|cooler|colder|shorter|decreases?|reduces?"
_DIRECTION = re.compile(
    rf"\b(?:(?P<up>{_UP})|(?P<down>{_DOWN}))\b(?! than \{{)", re.IGNORECASE
)
_NEGATION = re.compile(r"\b(?:not|no|never|neither|nor|without)\b", re.IGNORECASE)
_MOST = re.compile(r"(?<!\bat )\b(?:highest|most|largest|greatest|longest)\b", re.I)
_LEAST = re.compile(r"(?<!\bat )\b(?:lowest|least|smallest|fewest|shortest)\b", re.I)
_BOUND = re.compile(
    r"\b(?P<negated>not |no |never )?"
    r"(?:(?P<upper>within|below|under|less than|fewer than|at most|up to)"
    r"|(?P<lower>above|over|more than|at least|beyond)) \{(?:number|within)\}",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"\} ?(%|percent\b|per cent\b|[KMGT]i?B\b|ms\b|s\b|seconds\b|min\b|minutes\b|hours\b|h\b|°C|W\b|MHz\b"
    r"|tok/s\b|req/s\b|tokens\b)"
)
_WRITTEN = {
    "percent": "%",
    "per cent": "%",
    "seconds": "s",
    "minutes": "min",
    "hours": "h",
}
"""Units in words, as the data call them."""


def problems(
    says: str, expect: Expect, compare: str | None, unit: str | None
) -> Iterator[str]:
    """What the sentence says otherwise than the expectation; `unit` is that of the figures, None where unknown."""
    yield from _of_bounds(says, expect)
    yield from _of_units(says, unit)
    if expect.highest is not None and _LEAST.search(says) and not _MOST.search(says):
        yield "says speaks of the lowest, and the expectation tests the highest"
    if expect.lowest is not None and _MOST.search(says) and not _LEAST.search(says):
        yield "says speaks of the highest, and the expectation tests the lowest"
    if compare is not None:
        yield from _of_direction(says, expect, compare)


def _of_bounds(says: str, expect: Expect) -> Iterator[str]:
    """An interval that is turned round, a bound on the wrong side."""
    low, high = says.find("{low}"), says.find("{high}")
    if 0 <= high < low:
        yield "says names {high} before {low}: its interval is turned round"
    bounds = expect.bounds
    if bounds is not None and bounds[0] < 0 < bounds[1] and max(low, high) >= 0:
        yield "its interval crosses zero, and {low} and {high} have no sign: say within which limit it lies"
    for found in _BOUND.finditer(says):
        upper = (found["upper"] is not None) != (found["negated"] is not None)
        if upper and expect.holds is not None and ">" in expect.condition[1]:
            yield f"says “{found[0]}”, and the expectation is {expect.holds}"
        if not upper and expect.holds is not None and "<" in expect.condition[1]:
            yield f"says “{found[0]}”, and the expectation is {expect.holds}"
        if not upper and expect.equivalent_within_percent is not None:
            yield f"says “{found[0]}”, and the expectation is a difference within that margin"


def _of_units(says: str, unit: str | None) -> Iterator[str]:
    """A unit behind a figure that is not the unit of what is tested."""
    if unit is None:
        return
    for found in _UNIT.finditer(says):
        if _WRITTEN.get(found[1], found[1]) != unit:
            tested = unit or "a plain number"
            yield f"says gives its figure in {found[1]}, and what is tested is in {tested}"


def _of_direction(says: str, expect: Expect, compare: str) -> Iterator[str]:
    tested = _tested(expect)
    words = list(_DIRECTION.finditer(says))
    up = any(word["up"] for word in words)
    down = any(word["down"] for word in words)
    if tested is None or up == down or _NEGATION.search(says):
        return
    said_up = up != _is_turned(says, compare)
    if said_up != (tested == "higher"):
        yield f"says “{words[0][0]}”, and the expectation tests that {compare.partition(' / ')[0]} is {tested}"


def _tested(expect: Expect) -> str | None:
    """On which side of its baseline an expectation puts the candidate; None where it does not say."""
    if expect.direction is not None:
        return expect.direction
    bounds, same = expect.bounds, 0.0
    if expect.ratio is not None:
        same = 1.0
    if bounds is None or bounds[0] <= same <= bounds[1]:
        return None
    if expect.spans is not None and bounds[0] > 0:
        return None  # a ratio or a difference: the form does not tell
    return "higher" if bounds[0] > same else "lower"


def _is_turned(says: str, compare: str) -> bool:
    """Whether a sentence speaks of the baseline, compared with the candidate."""
    candidate, baseline = (_place(says, name) for name in compare.split(" / "))
    behind = re.search(r"\bthan\b", says)
    if behind is not None and candidate >= 0 and baseline >= 0:
        return candidate > behind.start() > baseline
    return baseline >= 0 and (candidate < 0 or baseline < candidate)


def _place(says: str, environment: str) -> int:
    """Where a sentence names an environment, -1 where it does not: `natively` is `native`."""
    stem = environment.removesuffix("e")
    found = re.search(rf"\b{re.escape(stem)}", says, re.IGNORECASE)
    return -1 if found is None else found.start()

"""How each form of expectation is read for the units of a claim: supported, refuted or undecided."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import scipy

from sparkpub.record.errors import ClaimError
from sparkpub.review.claims.claim import Claim, Expect
from sparkpub.review.claims.quantities import Quantity, Question, ask
from sparkpub.review.statistics.estimate import ALPHA, MINIMUM_RUNS, holm

Decided = Literal["supported", "refuted", "undecided"]
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class UnitVerdict:
    """What one unit of a claim's scope says."""

    unit: str
    quantity: Quantity
    verdict: Decided
    shown: str

    def document(self) -> dict[str, Any]:
        """The reading as in `sparkpub claims --json`."""
        found = self.quantity
        return {
            "unit": self.unit,
            "statistic": found.statistic.name,
            "value": found.value,
            "ci95": found.ci95,
            "n": found.n,
            "verdict": self.verdict,
        }


def read(claim: Claim, expect: Expect, units: Sequence[Question]) -> list[UnitVerdict]:
    """What each unit says. Raises ClaimError for a unit or statistic that is not there."""
    statistic = expect.decisive or claim.shown
    answers = {unit.chosen.label: ask(statistic, unit) for unit in units}
    if expect.published or expect.spans:
        return _beside_published(claim, expect, answers)
    if expect.highest or expect.lowest:
        return _beyond_others(expect, answers)
    if statistic == "trend_p":
        adjusted = holm([found.value for found in answers.values()])
        pairs = zip(answers.items(), adjusted, strict=True)
        answers = {name: replace(found, value=p) for (name, found), p in pairs}
    chances = len(units) if claim.scope.startswith("any") else 1
    readings = []
    for unit, (name, found) in zip(units, answers.items(), strict=True):
        verdict, shown = _decided(claim, expect, found, chances), _told(found)
        if expect.equivalent_within_percent is not None:
            test = ask("equivalence_p", unit)
            if verdict != "refuted":
                verdict = "supported" if _is_equivalent(test, chances) else "undecided"
            if test.value is not None:
                shown += f", TOST {test.text()}"
        readings.append(UnitVerdict(name, found, verdict, shown))
    return readings


def _decided(claim: Claim, expect: Expect, found: Quantity, chances: int) -> Decided:
    """By the 95 % interval where there is one; `=` at the digits written. Beyond these runs an estimate without an
    interval decides nothing."""
    if expect.holds is None or found.value is None:
        return _inside(found, *expect.bounds, chances)
    _, sign, number = expect.condition
    is_counted = found.statistic.kind == "runs"
    if claim.about == "world" and found.ci95 is None and not is_counted:
        return "undecided"
    if sign == "=":
        return _agreeing(found, float(number), len(number.partition(".")[2]))
    if found.ci95 is not None:
        return _inside(found, *expect.bounds, chances)
    is_so = _OPERATORS[sign](found.value, float(number))
    if is_so and found.statistic.unit == "p" and sign.startswith(">"):
        # A test that finds nothing shows nothing: a large p refutes no effect and supports none.
        return "undecided"
    return "supported" if is_so else "refuted"


def _inside(found: Quantity, low: float, high: float, chances: int) -> Decided:
    """Whether the 95 % interval lies inside [low, high], outside, or across a bound; few runs decide nothing.

    Where one of several units is enough, each of them is one more chance, and support needs the interval that is wide
    enough for all: that at Bonferroni's level. Where its degrees of freedom are not known they are taken as too few.
    """
    if found.value is None or found.ci95 is None or found.worth < MINIMUM_RUNS:
        return "undecided"
    bottom, top = found.ci95
    if top < low or bottom > high:
        return "refuted"
    levels = [1 - ALPHA / 2, 1 - ALPHA / (2 * chances)]
    plain, wide = scipy.special.stdtrit(found.df, levels)
    bottom, top = (
        found.value + (end - found.value) * wide / plain for end in found.ci95
    )
    return "supported" if low <= bottom and top <= high else "undecided"


def _is_equivalent(test: Quantity, chances: int) -> bool:
    if test.value is None or test.worth < MINIMUM_RUNS:
        return False
    return test.value * chances < ALPHA


def _told(found: Quantity) -> str:
    """A quantity with its interval, and what it rests on."""
    if found.value is None or found.statistic.kind == "runs":
        return found.text()
    parts = [found.rests_on]
    if found.ci95 is not None:
        parts.insert(0, f"95 % interval {found.interval()}")
        if found.worth < MINIMUM_RUNS <= min(found.n):
            parts.append(
                f"worth {found.worth:.1f} independent ones where {MINIMUM_RUNS} are needed"
            )
    return f"{found.text()} ({', '.join(parts)})"


def _agreeing(found: Quantity, published: float, decimals: int) -> Decided:
    """Whether a published figure is this one rounded. A difference of two rounded means may be off by one digit."""
    if found.value is None:
        return "undecided"
    digits = 1.0 if found.statistic.name == "difference" else 0.5
    apart = abs(found.value - published)
    return "supported" if apart <= digits * 10.0**-decimals + 1e-9 else "refuted"


def _beside_published(
    claim: Claim, expect: Expect, answers: Mapping[str, Quantity]
) -> list[UnitVerdict]:
    """Each published figure beside what the data give: of units, or of the units with the smallest and largest."""
    published = list((expect.published or {}).items())
    if expect.spans:
        known = [
            (found.value, name)
            for name, found in answers.items()
            if found.value is not None
        ]
        ends = [min(known)[1], max(known)[1]] if known else []
        published = list(zip(ends, expect.spans, strict=False))
    readings = []
    for name, figure in published:
        found = _unit(answers, name, expect.form)
        said = found.say(figure, claim.decimals)
        shown = f"published {said}, the data give {found.text(claim.decimals + 1)}"
        verdict = _agreeing(found, figure, claim.decimals)
        readings.append(UnitVerdict(name, found, verdict, shown))
    return readings


def _unit(answers: Mapping[str, Quantity], name: str, form: str) -> Quantity:
    if name not in answers:
        remedy = f"there are {', '.join(answers)}"
        raise ClaimError(f"{form}: no unit {name!r}", remedy=remedy)
    return answers[name]


def _beyond_others(
    expect: Expect, answers: Mapping[str, Quantity]
) -> list[UnitVerdict]:
    """Whether one unit lies beyond every other: decided only where 95 % intervals do not overlap."""
    name = expect.highest or expect.lowest or ""
    own = _unit(answers, name, expect.form)
    readings = []
    for unit, found in answers.items():
        if unit == name:
            continue
        verdict: Decided = "undecided"
        if own.ci95 and found.ci95:
            is_above = own.ci95[0] > found.ci95[1]
            if is_above or own.ci95[1] < found.ci95[0]:
                is_so = is_above == bool(expect.highest)
                verdict = "supported" if is_so else "refuted"
        shown = f"{_told(own)} against {_told(found)}"
        readings.append(UnitVerdict(f"{name} against {unit}", found, verdict, shown))
    return readings

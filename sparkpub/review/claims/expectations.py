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
        found, ends = self.quantity, self.quantity.ci95
        return {
            "unit": self.unit,
            "statistic": found.statistic.name,
            "value": found.value,
            "ci95": None if ends is None else list(ends),
            "n": list(found.n),
            "verdict": self.verdict,
        }


def read(claim: Claim, expect: Expect, units: Sequence[Question]) -> list[UnitVerdict]:
    """What each unit says. Raises ClaimError for a unit or statistic that is not there."""
    if expect.published or expect.spans:
        return _beside_published(claim, expect, units)
    if expect.highest or expect.lowest:
        return _beyond_others(claim, expect, units)
    statistic, low, high = expect.interval
    answers = [ask(statistic, unit) for unit in units]
    if statistic == "trend_p":
        adjusted = holm([found.value for found in answers])
        pairs = zip(answers, adjusted, strict=True)
        answers = [replace(found, value=p) for found, p in pairs]
    chances = len(units) if claim.scope.startswith("any") else 1
    readings = []
    for unit, found in zip(units, answers, strict=True):
        shown, verdict = _told(found), _inside(found, low, high, chances)
        if expect.holds:
            verdict = _holds(claim, expect, found, chances)
        if expect.equivalent_within_percent:
            test = ask("equivalence_p", unit)
            verdict = "refuted" if verdict == "refuted" else _equivalent(test, chances)
            shown += f", TOST {test.text()}" if test.value is not None else ""
        readings.append(UnitVerdict(unit.chosen.label, found, verdict, shown))
    return readings


def _inside(quantity: Quantity, low: float, high: float, chances: int) -> Decided:
    """Whether the 95 % interval lies inside [low, high], outside, or across a bound; few runs decide nothing.

    Where one of several units is enough, each of them is one more chance, and support needs the interval that is wide
    enough for all: that at Bonferroni's level. Where its degrees of freedom are not known they are taken as too few.
    """
    if quantity.ci95 is None or quantity.worth < MINIMUM_RUNS:
        return "undecided"
    assert quantity.value is not None
    bottom, top = quantity.ci95
    if top < low or bottom > high:
        return "refuted"
    levels = [1 - ALPHA / 2, 1 - ALPHA / (2 * chances)]
    plain, wide = scipy.special.stdtrit(quantity.df, levels)
    bottom, top = (
        quantity.value + (end - quantity.value) * float(wide / plain)
        for end in quantity.ci95
    )
    return "supported" if low <= bottom and top <= high else "undecided"


def _equivalent(test: Quantity, chances: int) -> Decided:
    if test.value is None or test.worth < MINIMUM_RUNS:
        return "undecided"
    return "supported" if test.value * chances < ALPHA else "undecided"


def _holds(claim: Claim, expect: Expect, found: Quantity, chances: int) -> Decided:
    """`=` holds at the digits written; an inequality is read with the 95 % interval where there is one. Beyond these
    runs an estimate without an interval decides nothing."""
    _, sign, number = expect.condition
    is_counted = found.statistic.kind == "runs"
    if found.value is None:
        return "undecided"
    if claim.about == "world" and found.ci95 is None and not is_counted:
        return "undecided"
    if sign == "=":
        return _agreeing(found, float(number), len(number.partition(".")[2]))
    if found.ci95 is not None:
        _, low, high = expect.interval
        return _inside(found, low, high, chances)
    is_so = _OPERATORS[sign](found.value, float(number))
    if is_so and found.statistic.unit == "p" and sign.startswith(">"):
        # A test that finds nothing shows nothing: a large p refutes no effect and supports none.
        return "undecided"
    return "supported" if is_so else "refuted"


def _told(quantity: Quantity) -> str:
    """A quantity with its interval, and what it rests on."""
    if quantity.value is None or quantity.statistic.kind == "runs":
        return quantity.text()
    parts = [quantity.rests_on]
    if quantity.ci95 is not None:
        parts.insert(0, f"95 % interval {quantity.interval()}")
        if quantity.worth < MINIMUM_RUNS <= min(quantity.n):
            parts.append(
                f"worth {quantity.worth:.1f} independent ones where {MINIMUM_RUNS} are needed"
            )
    return f"{quantity.text()} ({', '.join(parts)})"


def _agreeing(found: Quantity, published: float, decimals: int) -> Decided:
    """Whether a published figure is this one rounded. A difference of two rounded means may be off by one digit."""
    if found.value is None:
        return "undecided"
    digits = 1.0 if found.statistic.name == "difference" else 0.5
    apart = abs(found.value - published)
    return "supported" if apart <= digits * 10.0**-decimals + 1e-9 else "refuted"


def _beside_published(
    claim: Claim, expect: Expect, units: Sequence[Question]
) -> list[UnitVerdict]:
    """Each published figure beside what the data give: of units, or of the units with the smallest and largest."""
    answers = {unit.chosen.label: ask(claim.shown, unit) for unit in units}
    beside = [
        (name, _unit(answers, name, "published"), figure)
        for name, figure in (expect.published or {}).items()
    ]
    if expect.spans:
        known = sorted(
            (found.value, name)
            for name, found in answers.items()
            if found.value is not None
        )
        ends = zip(
            ("smallest", "largest"), known[:1] + known[-1:], expect.spans, strict=False
        )
        beside = [
            (f"{word} ({name})", answers[name], bound)
            for word, (_, name), bound in ends
        ]
    return [
        UnitVerdict(
            name,
            found,
            _agreeing(found, figure, claim.decimals),
            f"published {found.say(figure, claim.decimals)}, the data give {found.text(claim.decimals + 1)}",
        )
        for name, found, figure in beside
    ]


def _unit(answers: Mapping[str, Quantity], name: str, form: str) -> Quantity:
    if name not in answers:
        remedy = f"there are {', '.join(answers)}"
        raise ClaimError(f"{form}: no unit {name!r}", remedy=remedy)
    return answers[name]


def _beyond_others(
    claim: Claim, expect: Expect, units: Sequence[Question]
) -> list[UnitVerdict]:
    """Whether one unit lies beyond every other: decided only where 95 % intervals do not overlap."""
    name = expect.highest or expect.lowest or ""
    others = {unit.chosen.label: ask(claim.shown, unit) for unit in units}
    own = _unit(others, name, expect.form)
    return [
        UnitVerdict(
            f"{name} against {unit}",
            found,
            _beyond(own, found, highest=expect.highest is not None),
            f"{_told(own)} against {_told(found)}",
        )
        for unit, found in others.items()
        if unit != name
    ]


def _beyond(one: Quantity, other: Quantity, *, highest: bool) -> Decided:
    if one.ci95 is None or other.ci95 is None:
        return "undecided"
    is_above = one.ci95[0] > other.ci95[1]
    if not is_above and one.ci95[1] >= other.ci95[0]:
        return "undecided"
    return "supported" if is_above == highest else "refuted"

"""How each form of expectation is read for the units of a claim: supported, refuted or undecided."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import scipy

from sparkpub.record.errors import ClaimError
from sparkpub.review.claims.claim import Expect
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


@dataclass(frozen=True)
class Expected:
    """An expectation, the units it is about, and for forms on these very numbers which statistic at how many digits."""

    expect: Expect
    questions: Sequence[Question]
    statistic: str
    decimals: int
    world: bool = False
    """Whether it is about more than these runs: then an estimate without an interval decides nothing."""
    chances: int = 1
    """How many units could each make the claim true by chance: all of them where one is enough."""

    def answers(self, statistic: str) -> list[tuple[str, Quantity]]:
        """The name of each unit, and a statistic of it."""
        return [
            (question.group.label, ask(statistic, question))
            for question in self.questions
        ]

    def read(self) -> list["UnitVerdict"]:
        """What each unit says. Raises ClaimError for a unit or statistic that is not there."""
        return _READERS.get(self.expect.form, _read_interval)(self)


def _word(truth: bool | None) -> Decided:
    if truth is None:
        return "undecided"
    return "supported" if truth else "refuted"


def _inside(quantity: Quantity, low: float, high: float, chances: int = 1) -> Decided:
    """Whether the 95 % interval lies inside [low, high], outside, or across a bound; few runs decide nothing.

    Where one of several units is enough, support needs the interval that is wide enough for all of them.
    """
    if quantity.ci95 is None or quantity.worth < MINIMUM_RUNS:
        return "undecided"
    bottom, top = quantity.ci95
    if top < low or bottom > high:
        return "refuted"
    bottom, top = _widened(quantity, chances)
    if low <= bottom and top <= high:
        return "supported"
    return "undecided"


def _widened(quantity: Quantity, chances: int) -> tuple[float, float]:
    """The interval at Bonferroni's level. Where its degrees of freedom are not known they are taken as too few, so
    that it is rather too wide than too narrow."""
    assert quantity.ci95 is not None
    assert quantity.value is not None
    plain, wide = scipy.special.stdtrit(
        quantity.df, [1 - ALPHA / 2, 1 - ALPHA / (2 * chances)]
    )
    bottom, top = (
        quantity.value + (end - quantity.value) * float(wide / plain)
        for end in quantity.ci95
    )
    return bottom, top


def _with_interval(quantity: Quantity) -> str:
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


def _read_equivalence(asked: Expected) -> list[UnitVerdict]:
    margin, readings = asked.expect.equivalent_within_percent or 0.0, []
    for question in asked.questions:
        quantity = ask("difference_percent", question)
        test = ask("equivalence_p", question)
        shown = _with_interval(quantity)
        if test.value is not None:
            shown += f", TOST {test.text()}"
        verdict = _equivalent(quantity, test, margin, asked.chances)
        readings.append(UnitVerdict(question.group.label, quantity, verdict, shown))
    return readings


def _equivalent(
    quantity: Quantity, test: Quantity, margin: float, chances: int
) -> Decided:
    """Shown by TOST, refuted by an interval wholly beyond the margin, else undecided."""
    if (
        test.value is not None
        and test.worth >= MINIMUM_RUNS
        and test.value * chances < ALPHA
    ):
        return "supported"
    beyond = _inside(quantity, -margin, margin) == "refuted"
    return "refuted" if beyond else "undecided"


def _read_interval(asked: Expected) -> list[UnitVerdict]:
    """A direction is a difference on one side of zero."""
    name = asked.expect.form
    if name == "direction":
        name = "difference"
        low, high = 0.0, math.inf
        if asked.expect.direction == "lower":
            low, high = -math.inf, 0.0
    else:
        low, high = getattr(asked.expect, name)
    readings = []
    for unit, found in asked.answers(name):
        verdict = _inside(found, low, high, asked.chances)
        readings.append(UnitVerdict(unit, found, verdict, _with_interval(found)))
    return readings


def _read_condition(asked: Expected) -> list[UnitVerdict]:
    name, sign, number = asked.expect.condition
    answers = asked.answers(name)
    if name == "trend_p":
        adjusted = holm([found.value for _, found in answers])
        answers = [
            (unit, replace(found, value=p))
            for (unit, found), p in zip(answers, adjusted, strict=True)
        ]
    readings = []
    for unit, found in answers:
        verdict = _condition(found, sign, number, asked)
        readings.append(UnitVerdict(unit, found, verdict, _with_interval(found)))
    return readings


def _condition(quantity: Quantity, sign: str, number: str, asked: Expected) -> Decided:
    """`=` holds at the digits written; an inequality is read with the 95 % interval where there is one."""
    bound = float(number)
    if quantity.value is None:
        return "undecided"
    if asked.world and quantity.ci95 is None and quantity.statistic.kind != "runs":
        return "undecided"
    if sign == "=":
        return _word(_agrees(quantity, bound, len(number.partition(".")[2])))
    if quantity.statistic.unit == "p" and sign.startswith(">"):
        # A test that finds nothing shows nothing: a large p refutes no effect and supports none.
        if _OPERATORS[sign](quantity.value, bound):
            return "undecided"
        return "refuted"
    if quantity.ci95 is None:
        return _word(_OPERATORS[sign](quantity.value, bound))
    if sign.startswith("<"):
        return _inside(quantity, -math.inf, bound, asked.chances)
    return _inside(quantity, bound, math.inf, asked.chances)


def _agrees(quantity: Quantity, published: float, decimals: int) -> bool | None:
    """Whether a published figure is this one rounded. A difference of two rounded means may be off by one digit."""
    if quantity.value is None:
        return None
    digits = 1.0 if quantity.statistic.name == "difference" else 0.5
    return abs(quantity.value - published) <= digits * 10.0**-decimals + 1e-9


def _read_published(asked: Expected) -> list[UnitVerdict]:
    published = asked.expect.published or {}
    units = {question.group.label: question for question in asked.questions}
    unknown = [unit for unit in published if unit not in units]
    if unknown:
        raise ClaimError(
            f"published: no unit {unknown[0]!r}", remedy=f"there are {', '.join(units)}"
        )
    return [
        _against(unit, ask(asked.statistic, units[unit]), figure, asked)
        for unit, figure in published.items()
    ]


def _read_span(asked: Expected) -> list[UnitVerdict]:
    low, high = asked.expect.spans or (0.0, 0.0)
    known = [
        (found.value, unit, found)
        for unit, found in asked.answers(asked.statistic)
        if found.value is not None
    ]
    known.sort(key=lambda item: item[0])
    if not known:
        return []
    ends = (("smallest", known[0], low), ("largest", known[-1], high))
    return [
        _against(f"{word} ({unit})", quantity, figure, asked)
        for word, (_, unit, quantity), figure in ends
    ]


def _against(
    unit: str, found: Quantity, published: float, asked: Expected
) -> UnitVerdict:
    """A published figure beside what the data give."""
    shown = f"published {found.say(published, asked.decimals)}, the data give {found.text(asked.decimals + 1)}"
    return UnitVerdict(
        unit, found, _word(_agrees(found, published, asked.decimals)), shown
    )


def _read_extreme(asked: Expected) -> list[UnitVerdict]:
    """Whether one unit lies beyond every other: supported or refuted only where 95 % intervals do not overlap."""
    name = getattr(asked.expect, asked.expect.form)
    units = dict(asked.answers(asked.statistic))
    if name not in units:
        raise ClaimError(
            f"{asked.expect.form}: no unit {name!r}",
            remedy=f"there are {', '.join(units)}",
        )
    own = units.pop(name)
    highest = asked.expect.form == "highest"
    readings = []
    for unit, found in units.items():
        verdict = _beyond(own, found, highest=highest)
        shown = f"{_with_interval(own)} against {_with_interval(found)}"
        readings.append(UnitVerdict(f"{name} against {unit}", found, verdict, shown))
    return readings


def _beyond(one: Quantity, other: Quantity, *, highest: bool) -> Decided:
    if one.ci95 is None or other.ci95 is None:
        return "undecided"
    if one.ci95[0] > other.ci95[1]:
        return _word(highest)
    if one.ci95[1] < other.ci95[0]:
        return _word(not highest)
    return "undecided"


_READERS: Mapping[str, Callable[[Expected], list[UnitVerdict]]] = {
    "equivalent_within_percent": _read_equivalence,
    "holds": _read_condition,
    "published": _read_published,
    "spans": _read_span,
    "highest": _read_extreme,
    "lowest": _read_extreme,
}

"""A claim as its author writes it in claims.yaml: what is tested, of which runs, and the verdict that was recorded."""

import math
import re
from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, PositiveFloat, model_validator

from sparkpub.record import documents
from sparkpub.record.record import Declared, Key, MetricName
from sparkpub.review.claims.facts import FactSource

VerdictWord = Literal["supported", "refuted", "undecided", "void", "hypothesis"]
ExpectedInterval = tuple[FiniteFloat, FiniteFloat]
_CONDITION = re.compile(r"([a-z][a-z0-9_]*)\s*(<=|>=|=|<|>)\s*(-?\d+(?:\.\d+)?)")
_SCOPE = r"^((each|any) (cell|model|environment)|pooled)$"
_DECISIVE = {
    "equivalent_within_percent": "difference_percent",
    "ratio": "ratio",
    "difference": "difference",
    "difference_percent": "difference_percent",
    "direction": "difference",
}
"""Form of an expectation to the statistic that decides."""
_COMPARE = r"^[a-z0-9][a-z0-9.-]* / [a-z0-9][a-z0-9.-]*$"


class Expect(Declared):
    """What the claim says of each unit of its scope: exactly one of these.

    Intervals (`ratio`, `difference`, `difference_percent`) and `direction` are read with the 95 % interval: it lies
    inside (supported), outside (refuted) or across (undecided). `published` and `spans` are read at the claim's
    `decimals`: they are about these very numbers. `holds` is `statistic < number` (also <=, >, >=, =).
    """

    equivalent_within_percent: PositiveFloat | None = None
    ratio: ExpectedInterval | None = None
    difference: ExpectedInterval | None = None
    difference_percent: ExpectedInterval | None = None
    direction: Literal["higher", "lower"] | None = None
    holds: Annotated[str, Field(pattern=f"^{_CONDITION.pattern}$")] | None = None
    published: dict[str, FiniteFloat] | None = None
    """Unit (`deepseek` or `deepseek/native`) to the figure that was published for it."""
    spans: ExpectedInterval | None = None
    """The smallest and largest value over the units, as published."""
    highest: str | None = None
    lowest: str | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError(
                f"an expectation is exactly one of {', '.join(type(self).model_fields)}"
            )
        low, high = self.bounds
        if low > high:
            raise ValueError(
                f"{self.form}: [{low:g}, {high:g}] is turned round: the lower bound stands first"
            )
        return self

    @property
    def form(self) -> str:
        """The name of the one expectation that is set."""
        return next(iter(self.model_fields_set))

    @property
    def decisive(self) -> str | None:
        """The statistic that decides; None where the claim names it."""
        if self.holds is not None:
            return self.condition[0]
        return _DECISIVE.get(self.form)

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which the statistic lies where the claim is true, or which it has as its ends over the units."""
        margin = self.equivalent_within_percent
        if margin is not None:
            return -margin, margin
        sign, bound = "<" if self.direction == "lower" else ">", 0.0
        if self.holds is not None:
            _, sign, written = self.condition
            bound = float(written)
        elif self.direction is None:
            ends = (
                self.ratio or self.difference or self.difference_percent or self.spans
            )
            return ends or (-math.inf, math.inf)
        return (-math.inf, bound) if sign.startswith("<") else (bound, math.inf)

    @property
    def condition(self) -> tuple[str, str, str]:
        """`holds` as (statistic, operator, number as written)."""
        found = _CONDITION.fullmatch(self.holds or "")
        assert found is not None
        return found[1], found[2], found[3]


class Claim(documents.ListEntry):
    """One statement that data test. Its sentence is made from the test, so that it says nothing else. `about: data` is
    what these runs show. `about: world` goes beyond them: it needs several machines or days to be supported, and is
    void where findings of the review cast doubt on identity, order or coverage."""

    says: Annotated[str, Field(min_length=1)] | None = None
    """The sentence of a hypothesis, of a claim that is not tested."""
    source: FactSource
    about: Literal["data", "world"]
    campaign: Key
    repeated_in: tuple[Key, ...] = ()
    """Campaigns that measured the same on other machines or days: the claim is about all of them together, and its
    interval holds what differs between them."""
    metric: MetricName | None = None
    against: MetricName | None = None
    """A second metric, for statistics that relate two (slope, zero_at, r_squared, gap)."""
    statistic: str | None = None
    """What `published`, `spans`, `highest` and `lowest` read; the mean, or with `compare` the difference."""
    compare: Annotated[str, Field(pattern=_COMPARE)] | None = None
    """`candidate / baseline`: environments."""
    scope: Annotated[str, Field(pattern=_SCOPE)] = "pooled"
    models: tuple[Key, ...] = ()
    environments: tuple[Key, ...] = ()
    workloads: tuple[Key, ...] = ()
    include: Literal["counted", "all"] = "counted"
    decimals: Annotated[int, Field(ge=0, le=6)] = 2
    expect: Expect | None = None
    decided_by: str | None = None
    """For a hypothesis: the measurement that would decide it."""
    note: str | None = None
    """The author's own words, shown beside the sentence."""
    recorded: VerdictWord

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.expect is None) == (self.decided_by is None):
            raise ValueError(
                "a claim has expect:, or decided_by: where it is a hypothesis"
            )
        if self.expect is None and self.says is None:
            raise ValueError("a hypothesis has says:, its sentence")
        if self.expect is not None and self.says is not None:
            raise ValueError(
                "the sentence is made from expect: remove says:, and put words of your own into note:"
            )
        if self.compare is not None and "cell" in self.scope:
            raise ValueError("a comparison has scope each model, any model or pooled")
        return self

    @property
    def sides(self) -> tuple[str, str] | None:
        """Candidate and baseline of a comparison."""
        if self.compare is None:
            return None
        candidate, baseline = self.compare.split(" / ")
        return candidate, baseline

    @property
    def shown(self) -> str:
        """The statistic that forms about these very numbers read."""
        return self.statistic or ("mean" if self.compare is None else "difference")

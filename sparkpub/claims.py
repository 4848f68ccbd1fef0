"""claims.yaml: every factual statement that data can test, and the verdict the data give.

A claim is data, never code: a closed set of expectations over a closed set of statistics. Its author records
the verdict that the text was written for; when the data give another one, the build stops and names the pages
to reread.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveFloat, ValidationError, model_validator

from sparkpub import yaml_lines
from sparkpub.errors import ClaimError
from sparkpub.facts import FactSource
from sparkpub.record import Key, MetricName

VerdictWord = Literal["supported", "refuted", "undecided", "void", "hypothesis"]
Interval = tuple[FiniteFloat, FiniteFloat]
_CONDITION = re.compile(r"([a-z][a-z0-9_]*)\s*(<=|>=|=|<|>)\s*(-?\d+(?:\.\d+)?)")
_SCOPE = r"^((each|any) (cell|model|environment)|pooled)$"
_COMPARE = r"^[a-z0-9][a-z0-9.-]* / [a-z0-9][a-z0-9.-]*$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Expect(_Strict):
    """What the claim says of each unit of its scope: exactly one of these.

    Intervals (`ratio`, `difference`, `difference_percent`) and `direction` are read with the 95 % interval: it lies
    inside (supported), outside (refuted) or across (undecided). `published` and `spans` are read at the claim's
    `decimals`: they are about these very numbers. `holds` is `statistic < number` (also <=, >, >=, =).
    """

    equivalent_within_percent: PositiveFloat | None = None
    ratio: Interval | None = None
    difference: Interval | None = None
    difference_percent: Interval | None = None
    direction: Literal["higher", "lower"] | None = None
    holds: Annotated[str, Field(pattern=f"^{_CONDITION.pattern}$")] | None = None
    published: dict[str, FiniteFloat] | None = None
    """Unit (`deepseek` or `deepseek/native`) to the figure that was published for it."""
    spans: Interval | None = None
    """The smallest and largest value over the units, as published."""
    highest: str | None = None
    lowest: str | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"an expectation is exactly one of {', '.join(type(self).model_fields)}")
        return self

    @property
    def form(self) -> str:
        """The name of the one expectation that is set."""
        return next(iter(self.model_fields_set))

    @property
    def condition(self) -> tuple[str, str, str]:
        """`holds` as (statistic, operator, number as written)."""
        found = _CONDITION.fullmatch(self.holds or "")
        assert found is not None
        return found[1], found[2], found[3]


class Claim(_Strict):
    """One statement. `about: data` is what these runs show; `about: world` needs identity, order and coverage
    beyond doubt, and is void where findings of the review cast doubt on them."""

    id: Key
    says: Annotated[str, Field(min_length=1)]
    source: FactSource
    about: Literal["data", "world"]
    campaign: Key
    metric: MetricName | None = None
    against: MetricName | None = None
    """A second metric, for statistics that relate two (slope, intercept, r_squared, difference_gap)."""
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
    recorded: VerdictWord

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.expect is None) == (self.decided_by is None):
            raise ValueError("a claim has expect:, or decided_by: where it is a hypothesis")
        if self.compare is not None and "cell" in self.scope:
            raise ValueError("a comparison has scope each model, any model or pooled")
        return self


@dataclass(frozen=True)
class Verdict:
    """A claim with what the data say of it. `text` is one sentence for a reader; `evidence` is JSON data:
    `units` (label, n, statistic, value, ci95, verdict each), `findings` (check, cell, message) where void."""

    claim: Claim
    verdict: VerdictWord
    text: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether the text was written for another verdict."""
        return self.verdict != self.claim.recorded

    def document(self) -> dict[str, Any]:
        """The verdict as in `sparkpub claims --json`."""
        return {
            "id": self.claim.id,
            "says": self.claim.says,
            "source": self.claim.source.model_dump(exclude_none=True),
            "about": self.claim.about,
            "verdict": self.verdict,
            "recorded": self.claim.recorded,
            "text": self.text,
            "evidence": dict(self.evidence),
        }


class _Claims(_Strict):
    claims: tuple[Claim, ...]


def read(path: Path) -> list[Claim]:
    """Claims in the order of the file; none where there is no file. Raises ClaimError with every mistake, by line."""
    if not path.is_file():
        return []
    document, lines = yaml_lines.read(path, ClaimError)
    problems = list(lines.duplicates)
    claims: tuple[Claim, ...] = ()
    try:
        claims = _Claims.model_validate({"claims": document or []}).claims
    except ValidationError as error:
        problems += lines.described(error, (), _keys_at, "claims", drop=1)
    problems += yaml_lines.repeated(lines, [claim.id for claim in claims])
    yaml_lines.refuse(problems, ClaimError)
    return list(claims)


def _keys_at(loc: Sequence[int | str]) -> list[str]:
    parts: dict[str, type[BaseModel]] = {"expect": Expect, "source": FactSource}
    inner = parts.get(str(loc[-1]) if loc else "", Claim)
    return list(inner.model_fields)

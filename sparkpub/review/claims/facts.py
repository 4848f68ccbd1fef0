"""facts.yaml: figures that no run of ours measured, each with the place it comes from.

A published figure, a data sheet's bandwidth, an early run without a record: prose may use them only by name
(`{{ fact("gb10-memory") }}`), and the list of facts is a page of its own.
"""

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, FiniteFloat, model_validator

from sparkpub.record import documents
from sparkpub.record.errors import ClaimError
from sparkpub.record.record import Declared
from sparkpub.record.text import number, with_unit
from sparkpub.record.web import Address

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_ALSO_WRITTEN = {
    "%": ("percent", "per cent"),
    "times": ("x", "×", "-fold"),
    "°C": ("celsius",),
    "h": ("hours",),
    "tok/s": ("tokens/sec", "tok_s"),
}
"""Unit to what sources call it."""


class FactSource(Declared):
    """Where a figure was published: a document and the place in it, with an address where there is one."""

    document: Annotated[str, Field(min_length=1)]
    section: str | None = None
    url: Annotated[Address, Field(pattern=r"^https://")] | None = None

    def __str__(self) -> str:
        return self.document + (f", “{self.section}”" if self.section else "")


class Fact(documents.ListEntry):
    """One figure. `value` is in `unit`; `upper` makes it a range; `decimals` is how it was published."""

    says: Annotated[str, Field(min_length=1)]
    value: FiniteFloat
    upper: FiniteFloat | None = None
    unit: str = ""
    decimals: Annotated[int, Field(ge=0, le=6)] = 0
    source: FactSource
    quote: Annotated[str, Field(min_length=1)] | None = None
    """The words of the source, in which the figure and its unit stand."""
    unquoted: Annotated[str, Field(min_length=1)] | None = None
    """Why there are none: nobody wrote them down, or they are kept nowhere."""
    quoted_unit: str | None = None
    """The unit in the quotation where it is not `unit`: memory in GiB that was published as GB."""

    @model_validator(mode="after")
    def _says_what_it_is(self) -> Self:
        if self.upper is not None and self.upper < self.value:
            raise ValueError(
                f"upper: {self.upper:g} is below value: {self.value:g}: the range is turned round"
            )
        if (self.quote is None) == (self.unquoted is None):
            raise ValueError(
                "a fact has quote:, the words of its source with the figure in them, or unquoted:, why there are none"
            )
        if self.quote is not None:
            self._stands_in(self.quote)
        return self

    def _stands_in(self, quote: str) -> None:
        """Raise ValueError where the quotation has another figure or another unit."""
        there = {
            round(float(found.replace(",", "")), self.decimals)
            for found in _NUMBER.findall(quote)
        }
        for value in (self.value, self.upper):
            if value is not None and round(abs(value), self.decimals) not in there:
                raise ValueError(f"quote: {number(value, self.decimals)} is not in it")
        unit = self.quoted_unit or self.unit
        names = "|".join(map(re.escape, (unit, *_ALSO_WRITTEN.get(unit, ()))))
        if not re.search(rf"(?<![A-Za-z])(?:{names})(?![A-Za-z])", quote):
            raise ValueError(f"quote: its unit, {unit}, is not in it")

    @property
    def text(self) -> str:
        """As a reader sees it: `119.64 GiB`, `20–30 GB`, `−0.5 to +0.3 %`."""
        words = number(self.value, self.decimals)
        if self.upper is not None:
            is_signed = self.value < 0
            join = " to " if is_signed else "–"
            words += f"{join}{number(self.upper, self.decimals, signed=is_signed)}"
        return with_unit(words, self.unit)


def read(path: Path) -> dict[str, Fact]:
    """Facts by id, in the order of the file; none where there is no file. Raises ClaimError with every mistake."""
    return {fact.id: fact for fact in documents.read_parts(path, Fact, ClaimError)}

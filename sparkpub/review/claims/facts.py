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

_IN_UNIT = re.compile(r"\bin ([KMGT]i?B|tok/s|ms|MHz|GHz|W|°C|%)(?![\w/])")
"""A unit that the sentence of a fact names for its figure."""

_FILE = re.compile(r"[\w-]+(?:/[\w.-]+)*\.\w+(?![\w/])")
"""A document that is a file of the repository."""


class FactSource(Declared):
    """Where a figure was published: a document and the place in it, with an address where there is one."""

    document: Annotated[str, Field(min_length=1)]
    section: str | None = None
    url: Annotated[Address, Field(pattern=r"^https://")] | None = None

    def file(self, repository: Path) -> Path | None:
        """The document, where it is a file of the repository."""
        named = _FILE.match(self.document)
        if named is None or not (repository / named[0]).is_file():
            return None
        return repository / named[0]

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
    note: str | None = None

    @model_validator(mode="after")
    def _says_what_it_is(self) -> Self:
        if self.upper is not None and self.upper < self.value:
            raise ValueError(
                f"upper: {self.upper:g} is below value: {self.value:g}: the range is turned round"
            )
        for found in _IN_UNIT.finditer(self.says):
            if found[1] != self.unit:
                there = self.unit or "no unit"
                raise ValueError(f"says “{found[0]}”, and its value has {there}")
        return self

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

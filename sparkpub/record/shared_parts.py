"""Parts that records have in common, held once.

The runs of a campaign name the same machine, the same packages and the same request, and reading makes each of them
anew: a record takes 72 kB in memory, of which these are a third, and the sets in which pydantic notes which fields were
given another third.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from sparkpub.record.record import Record

_OWN = frozenset({"run_id", "metrics", "started", "ended", "evidence", "gates"})
"""Fields of a record that no two runs have in common."""


class SharedParts:
    """What the records that it has seen hold. No record is changed: it does not matter who else holds a part."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], Any] = {}
        self._given: dict[frozenset[str], set[str]] = {}

    def share(self, record: Record) -> Record:
        """The record, with the parts that an equal one of an earlier record can stand for replaced by that."""
        for name, value in record:
            if name not in _OWN and isinstance(value, BaseModel | tuple | dict):
                digest = hashlib.blake2b(to_json(value), digest_size=16).digest()
                record.__dict__[name] = self._known.setdefault((name, digest), value)
        self._share_given(record)
        return record

    def _share_given(self, model: BaseModel) -> None:
        """Have models that were given the same fields name them in one set."""
        own = model.model_fields_set
        given = self._given.setdefault(frozenset(own), own)
        object.__setattr__(model, "__pydantic_fields_set__", given)
        for part in _models(model.__dict__.values()):
            self._share_given(part)


def _models(values: Iterable[Any]) -> Iterable[BaseModel]:
    """The models among the values, and in lists and mappings among them."""
    for value in values:
        if isinstance(value, BaseModel):
            yield value
        elif isinstance(value, dict):
            yield from _models(value.values())
        elif isinstance(value, tuple | list):
            yield from _models(value)

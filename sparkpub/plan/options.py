"""Options of the parts of a matrix that have a `type`: environments and workloads."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import (
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_serializer,
    model_validator,
)

from sparkpub.record.record import Declared, Title


class TypedOptions(Declared):
    """Options whose `type` decides what else may be said.

    They remember how they were declared, and are written like that: fingerprints of specifications and campaign.json
    hold what people wrote, not what a later version makes of it.
    """

    label: Title | None = None
    """What pages call it; None for a name made of the options."""
    _declared: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def declared(self) -> Mapping[str, Any]:
        """The options in the vocabulary of the matrix, `type` included, as they were written."""
        return self._declared

    @property
    def measured(self) -> dict[str, Any]:
        """What of `declared` decides what a run measures: all but the name for readers."""
        return {
            name: value for name, value in self._declared.items() if name != "label"
        }

    @model_validator(mode="wrap")
    @classmethod
    def _remember(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        options = handler(value)
        if isinstance(value, Mapping):
            options._declared = dict(value)
        return options

    @model_serializer(mode="plain")
    def _as_declared(self) -> dict[str, Any]:
        return dict(self._declared)

"""Which part of the data a chart shows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scope:
    """A campaign, or a part of it. Each tuple is in the order of the matrix; `cells` are labels of rows, and `names`
    are keys with what readers call them."""

    campaign: str
    models: tuple[str, ...]
    environments: tuple[str, ...]
    workloads: tuple[str, ...]
    cells: tuple[str, ...]
    names: tuple[tuple[str, str], ...] = ()

    def holds(self, model: str, environment: str, workload: str) -> bool:
        """Whether a cell of the campaign is in this part of it."""
        return (
            model in self.models
            and environment in self.environments
            and workload in self.workloads
        )

    def name(self, key: str) -> str:
        """What readers call a key; the key itself where it has no other name."""
        return dict(self.names).get(key, key)

    def in_words(self, keys: Sequence[str], value: str) -> str:
        """A Vega expression: the name of the one of these keys that an expression gives."""
        names = [self.name(key) for key in keys]
        return f"{json.dumps(names)}[indexof({json.dumps(list(keys))}, {value})]"

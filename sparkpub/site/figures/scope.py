"""Which part of the data a chart shows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scope:
    """A campaign, or a part of it. Each tuple is in the order of the matrix; `cells` are labels of rows."""

    campaign: str
    models: tuple[str, ...]
    environments: tuple[str, ...]
    workloads: tuple[str, ...]
    cells: tuple[str, ...]

    def holds(self, model: str, environment: str, workload: str) -> bool:
        """Whether a cell of the campaign is in this part of it."""
        return (
            model in self.models
            and environment in self.environments
            and workload in self.workloads
        )

"""Which part of the data a chart shows, and the rows that it reads.

Charts hold no rows: they name them. `runs` has one row per run (`run, campaign, model, environment, workload, cell,
iteration, order, state, flags, href, start_temp` and one column per metric), `cells` one per cell and metric
(`campaign, model, environment, workload, cell, metric, n, mean, lo, hi`), `trends` two per cell and metric (the ends
of the trend line). Units are those of the metric.
"""

from dataclasses import dataclass

STATES = ("counted", "excluded")
COVERAGE = {"done": "●", "failed": "×", "quarantined": "◘", "missing": "○", "extra": "+"}
"""State of a planned run to its sign."""
PARTS = ("weights", "KV cache", "engine and other", "page cache", "free", "used, not broken down")
"""Into which the machine's memory is divided."""


@dataclass(frozen=True)
class Scope:
    """A campaign, or a part of it. Each tuple is in the order of the matrix; `cells` are labels of rows."""

    campaign: str
    models: tuple[str, ...]
    environments: tuple[str, ...]
    workloads: tuple[str, ...]
    cells: tuple[str, ...]

    def where(self, *more: str) -> str:
        """A Vega expression that keeps this scope's rows."""
        parts = [f"datum.campaign === {self.campaign!r}"]
        for axis, names in (("model", self.models), ("environment", self.environments), ("workload", self.workloads)):
            parts.append(f"indexof({list(names)!r}, datum.{axis}) >= 0")
        return " && ".join([*parts, *more])

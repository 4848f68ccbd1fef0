"""Which runs of a matrix to measure now, and what to do with them: the options of `sparkpub collect`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun
from sparkpub.record.errors import UsageError


@dataclass(frozen=True)
class Choice:
    """What of the matrix to run now, and what to do with it."""

    data: Path
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Axis (model, environment, workload, iteration) to the values wanted; an axis not named is unrestricted."""
    max_runs: int | None = None
    commit: bool = True
    push: bool = False
    retry_failed: bool = False
    """Whether runs that have used up their retries get as many attempts again."""

    def wants(self, run: PlannedRun) -> bool:
        """Whether a planned run is among those chosen."""
        return all(
            str(getattr(run, axis)) in values for axis, values in self.only.items()
        )


def axes(texts: Sequence[str], matrix: Matrix) -> dict[str, frozenset[str]]:
    """`--only axis=value` options as a choice. Raises UsageError naming what there is."""
    numbers = range(1, matrix.most_iterations + 1)
    known = {
        "model": list(matrix.models),
        "environment": list(matrix.environments),
        "workload": list(matrix.workloads),
        "iteration": [str(number) for number in numbers],
    }
    chosen: dict[str, set[str]] = {}
    for text in texts:
        axis, equals, value = text.partition("=")
        if not equals or axis not in known:
            remedy = f"write axis=value with one of {', '.join(known)}"
            raise UsageError(f"--only {text}", remedy=remedy)
        if value not in known[axis]:
            there = ", ".join(known[axis])
            if axis == "iteration":
                there = f"1 to {matrix.most_iterations}"
            what = f"--only {text}: the matrix has no such {axis}"
            raise UsageError(what, remedy=f"there are: {there}")
        chosen.setdefault(axis, set()).add(value)
    return {axis: frozenset(values) for axis, values in chosen.items()}

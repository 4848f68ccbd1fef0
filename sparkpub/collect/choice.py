"""Which runs of a matrix to measure now, and what to do with them: the options of `sparkpub collect`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparkpub.plan.matrix import Matrix
from sparkpub.plan.plan import PlannedRun, plan
from sparkpub.record.errors import UsageError

AXES = ("model", "environment", "workload", "iteration")


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
    chosen: dict[str, set[str]] = defaultdict(set)
    for text in texts:
        axis, _, value = text.partition("=")
        if axis not in AXES:
            remedy = f"write axis=value with one of {', '.join(AXES)}"
            raise UsageError(f"--only {text}", remedy=remedy)
        there = dict.fromkeys(str(getattr(run, axis)) for run in plan(matrix))
        if value not in there:
            what = f"--only {text}: the matrix has no such {axis}"
            raise UsageError(what, remedy=f"there are: {', '.join(there)}")
        chosen[axis].add(value)
    return {axis: frozenset(values) for axis, values in chosen.items()}

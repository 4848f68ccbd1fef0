"""A campaign as the checks see it: runs by cell in order of time, series of figures, and how findings are worded."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, TypeVar

from sparkpub.record.metrics import Metric
from sparkpub.record.store import Stored
from sparkpub.review.checks.evidence import EvidenceReader
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.checks.threshold import Threshold
from sparkpub.review.dataset import CampaignData
from sparkpub.review.frame import Cell, Frame, Series

MATERIAL_SHARE_OF_MARGIN = Threshold(
    "material share of margin",
    0.5,
    "A drift from first to last run, or an outlier's distance, matters from this share of the equivalence "
    "margin on: three identical readings and a fourth 0.01 % away are remarkable to a test and to nobody "
    "else.",
)

Made = TypeVar("Made")

_HYPHEN_FOR_MINUS = re.compile(r"(?<=[ (])-(?=\d)")


def label(cell: Cell) -> str:
    """The text form of a cell: `model/environment/workload`."""
    return "/".join(cell)


@dataclass(frozen=True, eq=False)
class View:
    """One campaign. `out` says which runs did not properly happen (or are quarantined), and why; `damage` holds
    the lines of the campaign's files that could not be read. Equal to itself alone, so that checks share what a
    function makes of it."""

    campaign: CampaignData
    out: Mapping[str, str] = field(default_factory=dict)
    damage: tuple[str, ...] = ()
    evidence: EvidenceReader = field(default_factory=EvidenceReader)
    _made: dict[Callable[["View"], Any], Any] = field(default_factory=dict, repr=False)

    def once(self, make: Callable[["View"], Made]) -> Made:
        """What a function makes of this view, made at its first use: several checks share it."""
        if make not in self._made:
            self._made[make] = make(self)
        found: Made = self._made[make]
        return found

    @property
    def runs(self) -> tuple[Stored, ...]:
        """Every recorded run, failed ones too, in order of time."""
        return self.campaign.runs

    @cached_property
    def frame(self) -> Frame:
        """The campaign as a table: which runs count, and the figures of every selection."""
        return Frame(self.campaign, self.out)

    @property
    def recorded(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """All runs by cell, in order of time; cells that the matrix declares and nobody ran are there, empty."""
        return self.frame.recorded

    @property
    def ran(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """Runs that happened properly, further records of one iteration included: what the machine did."""
        return self.frame.ran

    @property
    def counted(self) -> Mapping[Cell, tuple[Stored, ...]]:
        """The runs that enter the figures, by cell."""
        return self.frame.counted

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Every metric recorded in the campaign, by name, in the order met."""
        return self.frame.metrics

    @property
    def standing(self) -> tuple[Stored, ...]:
        """The runs that nobody has taken out yet, in order of time."""
        return tuple(stored for stored in self.runs if stored.record.run_id not in self.out)

    @cached_property
    def happened(self) -> tuple[Stored, ...]:
        """The runs of `ran`, cell by cell."""
        return tuple(stored for runs in self.ran.values() for stored in runs)

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The metrics that a campaign is about: the primary ones, and one summary of each distribution over requests
        (the median, else the mean)."""
        return tuple(name for name, metric in self.metrics.items() if self._is_result(metric))

    def _is_result(self, metric: Metric) -> bool:
        if not metric.distribution:
            return metric.role == "primary"
        median = f"{metric.distribution}_p50_ms"
        return metric.name == median or (metric.summary == "mean" and median not in self.metrics)

    def matters(self, values: Sequence[float], change: float) -> bool:
        """Whether a change is large enough to matter beside the equivalence margin of these values' mean."""
        margin = self.campaign.margin_percent / 100 * abs(fmean(values))
        return abs(change) >= MATERIAL_SHARE_OF_MARGIN * margin

    def series(self, cell: Cell, metric: str, *, ran: bool = False) -> Series | None:
        """A metric over the runs of a cell that count; with `ran` over all that happened."""
        return self.frame.series((cell,), metric, "ran" if ran else "counted")

    def figures(self, cell: Cell, metric: str, *, ran: bool = False) -> tuple[float, ...]:
        """The values of `series`, in order of time."""
        series = self.series(cell, metric, ran=ran)
        return () if series is None else series.values

    def finding(self, check: str, severity: Severity, message: str, *, cell: Cell | None = None,
                run: Stored | None = None, **evidence: Any) -> Finding:  # fmt: skip
        """A finding of this campaign; a run brings its cell along."""
        where = run.record.cell if run is not None else cell
        about = None if where is None else label(where), None if run is None else run.record.run_id
        words = _HYPHEN_FOR_MINUS.sub("\N{MINUS SIGN}", message)
        return Finding(check, severity, self.campaign.name, *about, words, evidence)

    def together(self, check: str, severity: Severity, runs: Sequence[Stored], say: Callable[[str], str],
                 evidence: Callable[[Sequence[Stored]], Mapping[str, Any]] = lambda _: {},
                 ) -> Iterable[Finding]:  # fmt: skip
        """The same fault in several runs, as few findings as say it: one for a whole campaign, else one per
        cell. `say` makes the message from words for the runs concerned."""
        if not runs:
            return
        if len(runs) == len(self.runs) > 1:
            yield self.finding(check, severity, say(f"all {len(runs)} runs of the campaign"),
                               runs=ids(runs), **evidence(runs))  # fmt: skip
            return
        by_cell: dict[Cell, list[Stored]] = defaultdict(list)
        for stored in runs:
            by_cell[stored.record.cell].append(stored)
        for cell, some in by_cell.items():
            if len(some) == 1:
                words = f"iteration {some[0].record.iteration} of {label(cell)}"
                yield self.finding(check, severity, say(words), run=some[0], **evidence(some))
                continue
            total = len(self.recorded[cell])
            words = f"{'all' if len(some) == total else f'{len(some)} of'} {total} runs of {label(cell)}"
            yield self.finding(check, severity, say(words), cell=cell, runs=ids(some), **evidence(some))


def ids(runs: Iterable[Stored]) -> list[str]:
    """The run ids, for evidence."""
    return [stored.record.run_id for stored in runs]

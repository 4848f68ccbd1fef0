"""What a check finds, and what a check is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from sparkpub.review.checks.view import View

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

Kind = Literal["happened", "meaning", "evidence", "prose"]
"""What follows from a finding. `happened`: the run did not happen properly, it leaves the pooled figures.
`meaning`: the figures stay and carry a flag, and an error voids the claims about the world that rest on them.
`evidence`: the figures stay and carry a flag. `prose`: a sentence of the site is at fault, no run."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check found. `message` is plain text in words for a reader.

    `cell` is `model/environment/workload`; None with `evidence["cells"]` for several cells, and None without it
    for the whole campaign. `run` is None for findings on several runs, whose ids are in `evidence["runs"]`.
    `evidence` holds what is needed to verify the finding by hand, as JSON values.
    """

    check: str
    severity: Severity
    campaign: str
    cell: str | None
    run: str | None
    message: str
    evidence: dict[str, Any]

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of the runs concerned by name; empty where a whole cell or campaign is meant."""
        return (self.run,) if self.run is not None else tuple(self.evidence.get("runs", ()))

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells concerned; empty for the whole campaign."""
        return (self.cell,) if self.cell is not None else tuple(self.evidence.get("cells", ()))

    def document(self) -> dict[str, Any]:
        """The finding as `sparkpub check --json` prints it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Check:
    """A named question put to every campaign.

    `severities` are those it can raise. `implies` names checks that trip with it by their nature, when a single
    fault is planted in clean data. `run` yields findings of one campaign; it reads, and changes nothing. It is
    None for checks of kind `prose`, which read pages (`checks.prose`).
    """

    name: str
    kind: Kind
    severities: tuple[Severity, ...]
    question: str
    run: Callable[["View"], Iterable[Finding]] | None = None
    implies: frozenset[str] = frozenset()

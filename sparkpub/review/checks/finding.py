"""What a check finds, and the numbers that checks decide by."""

from dataclasses import dataclass
from typing import Any, Literal, Self

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Threshold(float):
    """A number that a check decides by, with the reason for its value. It stands in the module of the check that uses
    it, whose variable names it for readers, too."""

    reason: str

    def __new__(cls, value: float, reason: str) -> Self:
        """The number; it calculates and prints like any float."""
        made = super().__new__(cls, value)
        made.reason = reason
        return made


@dataclass(frozen=True)
class Finding:
    """One thing that a check found. `message` is plain text in words for a reader.

    `cell` is `model/environment/workload`; None with `evidence["cells"]` for several cells, and None without it
    for the whole campaign. `run` is None for findings on several runs, whose ids are in `evidence["runs"]`.
    `evidence` holds what is needed to verify the finding by hand, as JSON values. `remedy` is what an operator can do
    about it; empty for a note, and where the message says it.
    """

    check: str
    severity: Severity
    campaign: str
    cell: str | None
    run: str | None
    message: str
    evidence: dict[str, Any]
    remedy: str = ""

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of the runs concerned by name; empty where a whole cell or campaign is meant."""
        return tuple(self.evidence.get("runs", ())) if self.run is None else (self.run,)

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells concerned; empty for the whole campaign."""
        if self.cell is None:
            return tuple(self.evidence.get("cells", ()))
        return (self.cell,)

    @property
    def where(self) -> str:
        """What it is about: file and line of a page, else campaign, cell and run."""
        if "line" in self.evidence:
            return f"{self.evidence['file']}:{self.evidence['line']}"
        return " ".join(filter(None, (self.campaign, self.cell, self.run)))

    def document(self) -> dict[str, Any]:
        """The finding as `sparkpub check --json` prints it."""
        return vars(self)

"""What a check finds."""

from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


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
        return (
            (self.run,)
            if self.run is not None
            else tuple(self.evidence.get("runs", ()))
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells concerned; empty for the whole campaign."""
        return (
            (self.cell,)
            if self.cell is not None
            else tuple(self.evidence.get("cells", ()))
        )

    @property
    def where(self) -> str:
        """What it is about: file and line of a page, else campaign, cell and run."""
        if "line" in self.evidence and "file" in self.evidence:
            return f"{self.evidence['file']}:{self.evidence['line']}"
        return " ".join(part for part in (self.campaign, self.cell, self.run) if part)

    def document(self) -> dict[str, Any]:
        """The finding as `sparkpub check --json` prints it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

"""campaign.json: the matrix as run, where the data come from, and what people decided about them."""

from typing import Literal

from sparkpub.record.record import Key, MatrixOptions, Origin, RunId, Strict, Title


class Acknowledgement(Strict):
    """A finding that people know of and publish with their reason. `cell` is `model/environment/workload`,
    a part may be `*`, and null is the whole campaign."""

    check: str
    cell: str | None = None
    reason: str


class Quarantine(Strict):
    """A run taken out of the figures, visibly and reversibly."""

    run: RunId
    reason: str


class Footnote(Strict):
    """What those who measured say of some of their results. A cell is as of an acknowledgement; none: of them all."""

    cells: tuple[str, ...] = ()
    text: str

    @property
    def subjects(self) -> tuple[str, ...]:
        """What it is about, for people: `muse-glimmer-30b, container-bf16-spec`."""
        return tuple(
            ", ".join(part for part in cell.split("/") if part != "*")
            for cell in self.cells
        )


class Campaign(Strict):
    """One campaign: a folder of records that were measured for one question."""

    schema_version: Literal[1] = 1
    campaign: Key
    title: Title
    matrix: MatrixOptions | None = None
    """The matrix as run, in the vocabulary of the YAML file; null for an import without one."""
    origin: Origin | None = None
    licence: str | None = None
    note: str | None = None
    footnotes: tuple[Footnote, ...] = ()
    ended: str | None = None
    """Why its owner lets a campaign end before every planned run is done; until then such a campaign is unfinished."""
    acknowledged: tuple[Acknowledgement, ...] = ()
    quarantined: tuple[Quarantine, ...] = ()

    def with_quarantine(self, run: str, reason: str | None) -> "Campaign":
        """With a run taken out of the figures for a reason, or with None put back."""
        kept = [item for item in self.quarantined if item.run != run]
        if reason is not None:
            kept.append(Quarantine(run=run, reason=reason))
        return self.model_copy(update={"quarantined": tuple(kept)})

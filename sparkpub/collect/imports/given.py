"""What an import is told besides the results."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import Field, ValidationError

from sparkpub.collect.imports.facts import NotesLayout, known
from sparkpub.plan.matrix import Matrix
from sparkpub.record import documents
from sparkpub.record.campaign import Footnote
from sparkpub.record.errors import ImportFormatError, field_problems
from sparkpub.record.record import Declared, Key, Machine, Origin
from sparkpub.tools.language import PathPattern


class CampaignPart(Declared):
    """A campaign of some of the tools whose results lie together, with words of its own where it needs them."""

    campaign: Key
    tools: tuple[str, ...]
    title: str | None = None
    note: str | None = None


class About(Declared):
    """What people know of results besides the files: where they come from, what they were measured on.

    `unavailable` says why something is not there, by field, evidence role or metric; `disputed` on which options
    the sources contradict each other.
    """

    title: str | None = None
    origin: Origin | None = None
    licence: str | None = None
    note: str | None = None
    footnotes: tuple[Footnote, ...] = ()
    campaigns: tuple[CampaignPart, ...] = ()
    """Results of these tools become campaigns of their own."""
    machine: Machine = Machine()
    disputed: dict[str, str] = Field(default_factory=dict)
    unavailable: dict[str, str] = Field(default_factory=dict)
    path: PathPattern | None = None
    """What the names of files say of builds, as `{model}__{variant}__{rest}.log`."""
    layout: NotesLayout | None = None
    """Where facts lie that the results do not hold."""


def read_about(path: Path) -> About:
    """From YAML. Raises ImportFormatError naming file and field."""
    document, _ = documents.parse(
        documents.text_of(path, ImportFormatError), str(path), ImportFormatError
    )
    try:
        return About.model_validate_json(json.dumps(document or {}, default=str))
    except ValidationError as error:
        raise ImportFormatError(
            field_problems(error)[0], where=str(path), remedy="correct the field"
        ) from None


@dataclass(frozen=True)
class Given:
    """What the command line says: a cell's names where the results do not, the matrix, and what people know."""

    campaign: str
    matrix: Matrix | None = None
    about: About = field(default_factory=About)
    model: str | None = None
    environment: str | None = None
    machine: str | None = None
    """A key of the catalogue, or the name of any other machine."""
    mapping: Path | None = None
    """The file that says what the columns of a table mean."""
    say: Callable[[str], None] = lambda _: None
    """Where lines about the progress go."""

    def of_part(self, part: CampaignPart) -> "Given":
        """The same for a campaign of some tools."""
        words = part.model_dump(include={"title", "note"}, exclude_none=True)
        about = self.about.model_copy(update=words)
        return replace(self, campaign=part.campaign, about=about)

    @property
    def layouts(self) -> tuple[NotesLayout, ...]:
        """Where facts may lie: as people describe it, else as it is often seen."""
        layout = self.about.layout
        return known() if layout is None else (layout,)

    def model_key(self, name: str) -> str | None:
        """The matrix's key of the model with that id or path; None where it declares none."""
        models = self.matrix.models if self.matrix else {}
        for key, facts in models.items():
            if name in (facts.id, facts.path):
                return key
        return None


@dataclass(frozen=True)
class Left:
    """Something that became no record, and why. `refused`: it should have become one."""

    source: str
    reason: str
    refused: bool = True


CONTAINER = "container"
"""Environment of results beside which an image is named."""
UNDATED = "the results hold no date; the time is the file's last modification"

"""Several owners: the lines of arena.yaml, and `owner.json` in each data folder that `gather` has filled.

The owner's files stay as they were published. In memory their campaigns are called `OWNER.CAMPAIGN`, so that those of
two owners never meet under one name.
"""

from pathlib import Path, PurePosixPath
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError

from sparkpub.record import documents
from sparkpub.record.errors import RecordError, UsageError, field_problems
from sparkpub.record.record import Key, Strict
from sparkpub.record.settings import DEFAULT_DATA

OWNER_FILE = "owner.json"
ARENA_FILE = "arena.yaml"


class ArenaLine(documents.ListEntry):
    """One line of arena.yaml: whose results, where, and at which commit."""

    id: Annotated[Key, Field(alias="owner")]
    repository: Annotated[str, Field(pattern=r"^(https?|file)://\S+$")]
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    data: str = DEFAULT_DATA.as_posix()
    """The folder of the owner's campaigns."""
    campaigns: tuple[Key, ...] = ()
    """Which of them; all where none is named."""
    results: Annotated[str | None, Field(alias="import")] = None
    """A folder, or a file, with results of other tools; in place of `data`."""
    mapping: str | None = None
    """File beside arena.yaml that says what the columns of the results mean."""
    about: str | None = None
    """File beside arena.yaml with what is known of the results besides."""
    machine: str | None = None
    environment: str | None = None
    model: str | None = None
    licence: str | None = None
    """Without one only figures and links are shown."""

    @property
    def folder(self) -> str:
        """What is wanted of the repository."""
        return self.data if self.results is None else self.results


class Owner(Strict):
    """Where an owner's campaigns come from."""

    owner: Key
    repository: str
    commit: str
    folder: str
    """Where the campaigns, or the results that were imported, lie in the repository."""
    imported: bool = False
    """Whether the campaigns were made of results here: then the repository holds no record of them."""
    licence: str | None = None
    made_from: str = ""
    """Digest of everything that decides what is gathered."""

    def name(self, campaign: str) -> str:
        """What a campaign of the owner is called here."""
        return f"{self.owner}.{campaign}"

    @property
    def address(self) -> str:
        """The folder in the repository at the commit, as the usual hosts show it."""
        place = PurePosixPath(self.commit, self.folder)
        return f"{self.repository.removesuffix('.git')}/tree/{place}"


def of(data: Path) -> Owner | None:
    """The owner of a data folder; None of one's own. Raises RecordError for a damaged file."""
    path = data / OWNER_FILE
    if not path.is_file():
        return None
    try:
        return Owner.model_validate_json(path.read_bytes())
    except ValidationError as error:
        what, *_ = field_problems(error)
    raise RecordError(what, where=str(path), remedy="run sparkpub gather again")


def read(path: Path) -> list[ArenaLine]:
    """The lines of arena.yaml. Raises UsageError with every mistake, by line."""
    if not path.is_file():
        remedy = "write a line per owner; the guide shows one"
        raise UsageError("there is no such file", where=str(path), remedy=remedy)
    return documents.read_parts(path, ArenaLine, UsageError)


def gathered(folder: Path) -> list[Path]:
    """The data folders of the owners below a folder, by name; none where nothing was gathered."""
    return sorted(path.parent for path in folder.glob(f"*/{OWNER_FILE}"))


Named = TypeVar("Named", bound=Strict)


def as_owned(part: Named, owner: Owner) -> Named:
    """A record, or a campaign, under the name that it has here."""
    known = part.model_dump(include={"campaign", "run_id", "matrix"})
    campaign = owner.name(known["campaign"])
    update: dict[str, object] = {"campaign": campaign}
    if "run_id" in known:
        stem = known["run_id"].removeprefix(f"{known['campaign']}-")
        update["run_id"] = f"{campaign}-{stem}"
    if known.get("matrix"):
        update["matrix"] = {**known["matrix"], "campaign": campaign}
    return part.model_copy(update=update)

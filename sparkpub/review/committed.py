"""What git knows of a campaign: records that are gone or changed, and which of two records was committed first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from sparkpub.record import repository

_COMMIT = "commit "


class Committed(NamedTuple):
    """A JSON file that a commit added or changed."""

    commit: str
    name: str
    is_new: bool


@dataclass(frozen=True)
class History:
    """What commits did to the JSON files of a campaign's folder. Nothing where git does not know it: outside a
    repository, in a clone without its history, or before the first commit."""

    folder: Path

    @cached_property
    def commits(self) -> tuple[Committed, ...]:
        """The files that commits added or changed, the oldest first."""
        shallow = repository.told(self.folder, "rev-parse", "--is-shallow-repository")
        if shallow != "false":
            return ()
        told = _log(self.folder, "--diff-filter=AM", "--name-status", "--", "*.json")
        found = []
        for commit, line in told:
            status, _, name = line.partition("\t")
            found.append(Committed(commit, name, status == "A"))
        return tuple(found)

    @property
    def removed(self) -> list[str]:
        """The names of files that were committed once and are not there now."""
        names = {each.name for each in self.commits}
        return sorted(
            name
            for name in names
            if "/" not in name and not (self.folder / name).exists()
        )

    @property
    def changed(self) -> list[str]:
        """The names of files that are there and are not what was committed first."""
        if not self.commits:
            return []
        names = {each.name for each in self.commits if not each.is_new}
        # What is changed and not committed yet.
        told = repository.told(
            self.folder,
            "diff",
            "--name-only",
            "--diff-filter=M",
            "--relative",
            "HEAD",
            "--",
            "*.json",
        )
        names.update((told or "").splitlines())
        return sorted(name for name in names if (self.folder / name).exists())


def arrivals(data: Path) -> Mapping[str, int]:
    """When each JSON file below a data folder came to the branch at hand: its path in the folder to the place of the
    commit that brought it, which is that of the merge for what was merged. Dates of commits are their authors' to
    choose, and the order in which they came to this branch is not."""
    places: dict[str, int] = {}
    found: dict[str, int] = {}
    arguments = ("--first-parent", "-m", "--diff-filter=A", "--name-only")
    for commit, path in _log(data, *arguments, "--", "*.json"):
        place = places.setdefault(commit, len(places))
        found.setdefault(path, place)
    return found


def head(folder: Path) -> str | None:
    """What all that git says of a folder rests on: the commit at hand, and whether its whole history is there."""
    return repository.told(folder, "rev-parse", "HEAD", "--is-shallow-repository")


def _log(folder: Path, *arguments: str) -> Iterable[tuple[str, str]]:
    """Each line that git says of a commit, with the commit, the oldest first."""
    told = repository.told(
        folder,
        "log",
        "--reverse",
        "--no-renames",
        "--relative",
        f"--format={_COMMIT}%H",
        *arguments,
    )
    commit = ""
    for line in (told or "").splitlines():
        if line.startswith(_COMMIT):
            commit = line.removeprefix(_COMMIT)
        elif line:
            yield commit, line

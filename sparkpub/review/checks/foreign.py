"""What lies in a data folder and is no part of a campaign: other programs obey some files, whoever brought them."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from os import DirEntry
from pathlib import Path
from typing import NamedTuple

from sparkpub.record.store import (
    CAMPAIGN_FILE,
    campaign_folders,
    everything,
    record_paths,
)
from sparkpub.review.checks.check import Check
from sparkpub.review.checks.finding import Finding, Severity
from sparkpub.review.dataset import Dataset


class Kind(NamedTuple):
    """How bad it is that such a file is there, what it is, and what comes of it."""

    severity: Severity
    what: str
    so: str


_REPOSITORY = Kind(
    "error",
    "a git repository in the place of data",
    "Git runs the programs that its configuration names",
)
_LINK = Kind("error", "a link", "Links are not followed here")
_DEVICE = Kind(
    "error", "neither a file nor a folder", "Whoever opens it may wait for ever"
)
_SETTINGS = Kind("error", "settings of git", "They change what git does with the data")
_OTHER = Kind("info", "named by no record", "Nothing here reads it")

_ABOUT = re.compile(
    r"\.gitkeep|(?:readme|licen[cs]e|copying|notice|attributions?|authors|citation)(?:[.-][\w.-]+)?",
    re.IGNORECASE,
)
"""Names of what keeps an empty folder in git, and of what says where data come from."""
_OF_A_REPOSITORY = frozenset({"head", "objects", "refs"})
"""By which git takes a folder for a repository (gitrepository-layout(5)). Some file systems know no capitals."""
_OF_GIT = frozenset({".gitmodules", ".gitattributes"})
_LISTED = 3
"""Names that a message lists."""


def foreign_files(dataset: Dataset) -> Iterator[Finding]:
    """One finding for each kind of foreign file in each folder of a data folder."""
    folders = {campaign.folder.parent for campaign in dataset.campaigns.values()}
    for data in sorted(folders | {dataset.folder}):
        found: dict[tuple[str, Kind], list[str]] = defaultdict(list)
        if data.is_dir():
            for path, kind in _foreign(dataset, data):
                name = path.relative_to(data)
                found[name.parts[0], kind].append(name.as_posix())
        for (top, kind), names in found.items():
            listed = ", ".join(names[:_LISTED])
            if len(names) > _LISTED:
                listed += f" and {len(names) - _LISTED} more"
            text = f"No part of a campaign: {listed} ({kind.what}). {kind.so}."
            evidence = {"what": kind.what, "files": names}
            yield Finding(
                "foreign-file", kind.severity, top, None, None, text, evidence
            )


def _foreign(dataset: Dataset, data: Path) -> Iterator[tuple[Path, Kind]]:
    """What lies in a data folder and does not belong there, by name."""
    known = {
        str(file)
        for campaign in dataset.campaigns.values()
        for run in campaign.runs
        for file in run.files
    }
    # Who compares two folders loads the campaigns that differ.
    looked_at = {*dataset.campaigns, *dataset.damage}
    skipped = {folder.name for folder in campaign_folders(data)} - looked_at
    names: dict[str, set[str]] = defaultdict(set)
    unread: dict[str, Collection[str]] = {}
    for entry in everything(data):
        path = Path(entry.path)
        top = path.relative_to(data).parts[0]
        if top in skipped:
            continue
        folder = str(path.parent)
        names[folder].add(entry.name.lower())
        if names[folder] >= _OF_A_REPOSITORY:
            yield path.parent / "HEAD", _REPOSITORY
            names[folder].clear()  # it is told once
        if path.parent.parent == data and folder not in unread:
            unread[folder] = _unread(path.parent, known)
        kind = _kind(entry, known, unread.get(folder, ()))
        if kind is not None:
            yield path, kind


def _kind(
    entry: DirEntry[str], known: Collection[str], unread: Collection[str]
) -> Kind | None:
    """What is wrong with an entry of a data folder; None where nothing is. `unread` are the beginnings of names beside
    it that may be evidence of records that were not read."""
    if entry.is_symlink():
        return _LINK
    if entry.is_dir():
        return None
    if not entry.is_file():
        return _DEVICE
    if entry.name.lower() in _OF_GIT:
        return _SETTINGS
    if entry.path in known or _ABOUT.fullmatch(entry.name):
        return None
    return None if entry.name.startswith(tuple(unread)) else _OTHER


def _unread(folder: Path, known: Collection[str]) -> list[str]:
    """How names in a campaign's folder begin of which no loaded run says that they belong to it."""
    records = [path for path in record_paths(folder) if str(path) not in known]
    return [CAMPAIGN_FILE, *(f"{path.stem}." for path in records)]


CHECKS = (
    Check(
        "foreign-file",
        "evidence",
        ("error", "info"),
        "Does everything in the data folder belong to a campaign?",
        remedy="Delete it.",
    ),
)

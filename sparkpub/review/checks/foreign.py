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


class ForeignKind(NamedTuple):
    """How bad it is that such a file is there, what it is, and what comes of it."""

    severity: Severity
    what: str
    so: str


_REPOSITORY = ForeignKind(
    "error",
    "a git repository in the place of data",
    "Git runs the programs that its configuration names",
)
_LINK = ForeignKind("error", "a link", "Links are not followed here")
_DEVICE = ForeignKind(
    "error", "neither a file nor a folder", "Whoever opens it may wait for ever"
)
_SETTINGS = ForeignKind(
    "error", "settings of git", "They change what git does with the data"
)
_OTHER = ForeignKind("info", "named by no record", "Nothing here reads it")

_ABOUT = re.compile(
    r"\.gitkeep|\.collecting|(?:readme|licen[cs]e|copying|notice|attributions?|authors|citation)(?:[.-][\w.-]+)?",
    re.IGNORECASE,
)
"""Names of what keeps an empty folder in git, of what a collector locks, and of what says where data come from."""
_OF_A_REPOSITORY = frozenset({"head", "objects", "refs"})
"""By which git takes a folder for a repository (gitrepository-layout(5)). Some file systems know no capitals."""
_OF_GIT = frozenset({".gitmodules", ".gitattributes"})
_LISTED = 3
"""Names that a message lists."""


def foreign_files(dataset: Dataset) -> Iterator[Finding]:
    """One finding for each kind of foreign file in each campaign, and for each kind of those that are in none."""
    folders = {campaign.folder.parent for campaign in dataset.campaigns.values()}
    for data in sorted(folders | {dataset.folder}):
        found: dict[tuple[str | None, ForeignKind], list[str]] = defaultdict(list)
        if data.is_dir():
            for path, kind in _foreign(dataset, data):
                name = path.relative_to(data)
                top = name.parts[0]
                campaign = top if top in dataset.campaigns else None
                found[campaign, kind].append(name.as_posix())
        for (campaign, kind), names in found.items():
            about = campaign or names[0].partition("/")[0]
            listed = ", ".join(names[:_LISTED])
            if len(names) > _LISTED:
                listed += f" and {len(names) - _LISTED} more"
            text = f"No part of a campaign: {listed} ({kind.what}). {kind.so}."
            evidence = {"what": kind.what, "files": names}
            yield Finding(
                "foreign-file", kind.severity, about, None, None, text, evidence
            )


def _foreign(dataset: Dataset, data: Path) -> Iterator[tuple[Path, ForeignKind]]:
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
    names: dict[Path, set[str]] = defaultdict(set)
    unread: dict[Path, bool] = {}
    for entry in everything(data):
        path = Path(entry.path)
        if path.relative_to(data).parts[0] in skipped:
            continue
        folder = path.parent
        names[folder].add(entry.name.lower())
        if names[folder] >= _OF_A_REPOSITORY:
            yield folder / "HEAD", _REPOSITORY
            names[folder].clear()  # it is told once
        kind = _kind(entry)
        if kind is None or (kind is _OTHER and entry.path in known):
            continue
        if kind is _OTHER and folder.parent == data:
            if entry.name == CAMPAIGN_FILE:
                continue
            if folder not in unread:
                unread[folder] = _has_unread(folder, known)
            if unread[folder]:
                continue
        yield path, kind


def _kind(entry: DirEntry[str]) -> ForeignKind | None:
    """What is wrong with an entry of a data folder that no record names; None where nothing is."""
    if entry.is_symlink():
        return _LINK
    if entry.is_dir():
        return None
    if not entry.is_file():
        return _DEVICE
    if entry.name.lower() in _OF_GIT:
        return _SETTINGS
    return None if _ABOUT.fullmatch(entry.name) else _OTHER


def _has_unread(folder: Path, known: Collection[str]) -> bool:
    """Whether a campaign's folder has records that are in no loaded run: nothing tells what evidence is theirs."""
    return any(str(path) not in known for path in record_paths(folder))


CHECKS = (
    Check(
        "foreign-file",
        "evidence",
        ("error", "info"),
        "Does everything in the data folder belong to a campaign?",
        remedy="Delete it.",
    ),
)

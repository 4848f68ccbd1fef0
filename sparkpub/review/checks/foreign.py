"""What lies in a data folder and is no part of a campaign: other programs obey some files, whoever brought them."""

import re
from collections import defaultdict
from collections.abc import Iterator
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
    for data in sorted(
        {folder for folder in folders | {dataset.folder} if folder.is_dir()}
    ):
        found: dict[tuple[str | None, ForeignKind], list[str]] = defaultdict(list)
        for path, kind in _foreign(dataset, data):
            name = path.relative_to(data)
            campaign = name.parts[0] if name.parts[0] in dataset.campaigns else None
            found[campaign, kind].append(name.as_posix())
        for (campaign, kind), names in found.items():
            about = campaign or names[0].partition("/")[0]
            more = len(names) - _LISTED
            listed = ", ".join(names[:_LISTED]) + (
                f" and {more} more" if more > 0 else ""
            )
            text = f"No part of a campaign: {listed} ({kind.what}). {kind.so}."
            evidence = {"what": kind.what, "files": names}
            yield Finding(
                "foreign-file", kind.severity, about, None, None, text, evidence
            )


def _foreign(dataset: Dataset, data: Path) -> Iterator[tuple[Path, ForeignKind]]:
    """What lies in a data folder and does not belong there, by name."""
    known = {file for run in dataset.runs for file in run.files}
    # Who compares two folders loads the campaigns that differ.
    looked_at = {*dataset.campaigns, *dataset.damage}
    campaigns = campaign_folders(data)
    skipped = {folder.name for folder in campaigns} - looked_at
    # Nothing tells which evidence belongs to a record that could not be read.
    unread = {
        folder for folder in campaigns if not known.issuperset(record_paths(folder))
    }
    names: dict[Path, set[str]] = defaultdict(set)
    for entry in everything(data):
        path = Path(entry.path)
        folder = path.parent
        if path.relative_to(data).parts[0] in skipped:
            continue
        names[folder].add(entry.name.lower())
        if names[folder] >= _OF_A_REPOSITORY:
            yield folder / "HEAD", _REPOSITORY
            names[folder].clear()  # it is told once
        kind = _kind(entry)
        is_of_campaign = folder in unread or path in known
        is_campaign = folder.parent == data and entry.name == CAMPAIGN_FILE
        if kind is not None and (
            kind is not _OTHER or not (is_of_campaign or is_campaign)
        ):
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


CHECKS = (
    Check(
        "foreign-file",
        "evidence",
        ("error", "info"),
        "Does everything in the data folder belong to a campaign?",
        remedy="Delete it.",
    ),
)

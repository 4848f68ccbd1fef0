"""What lies in a data folder and is no part of a campaign: other programs obey some files, whoever brought them."""

import re
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
from sparkpub.review.grouping import grouped


class ForeignKind(NamedTuple):
    """How bad it is that such a file is there, what it is, and what comes of it."""

    severity: Severity
    what: str
    so: str


_LINK = ForeignKind("error", "a link", "Links are not followed here")
_OF_GIT = ForeignKind("error", "what git obeys", "It changes what git does here")
_OTHER = ForeignKind("info", "named by no record", "Nothing here reads it")

_ABOUT = re.compile(
    r"\.gitkeep|\.collecting|(?:readme|licen[cs]e|copying|notice|attributions?|authors|citation)(?:[.-][\w.-]+)?",
    re.IGNORECASE,
)
"""Names of what keeps an empty folder in git, of what a collector locks, and of what says where data come from."""
_OBEYED = frozenset({".gitmodules", ".gitattributes", "head"})
"""Settings, and the sign of a repository (gitrepository-layout(5)). Some file systems know no capitals."""
_LISTED = 3
"""Names that a message lists."""


def foreign_files(dataset: Dataset) -> Iterator[Finding]:
    """One finding for each kind of foreign file in each campaign, and for each kind of those that are in none."""
    folders = {campaign.folder.parent for campaign in dataset.campaigns.values()}
    for data in sorted(filter(Path.is_dir, folders | {dataset.folder})):
        found = grouped(_foreign(dataset, data), lambda each: each[:2])
        for (campaign, kind), files in found.items():
            names = [name for *_, name in files]
            about = campaign or names[0].partition("/")[0]
            more = len(names) - _LISTED
            listed = ", ".join(names[:_LISTED]) + f" and {more} more" * (more > 0)
            text = f"No part of a campaign: {listed} ({kind.what}). {kind.so}."
            yield Finding(
                "foreign-file",
                kind.severity,
                about,
                None,
                None,
                text,
                {"what": kind.what, "files": names},
            )


def _foreign(
    dataset: Dataset, data: Path
) -> Iterator[tuple[str | None, ForeignKind, str]]:
    """What lies in a data folder and does not belong there: its campaign, its kind and its name."""
    campaigns = campaign_folders(data)
    own = {file for run in dataset.runs for file in run.files}
    own |= {folder / CAMPAIGN_FILE for folder in campaigns}
    # Nothing tells which evidence belongs to a record that could not be read.
    unread = {
        folder for folder in campaigns if not own.issuperset(record_paths(folder))
    }
    # Who compares two folders loads the campaigns that differ.
    looked_at = {*dataset.campaigns, *dataset.damage}
    skipped = {folder.name for folder in campaigns} - looked_at
    for entry in everything(data):
        path = Path(entry.path)
        name = path.relative_to(data)
        kind = _kind(entry)
        belongs = kind is _OTHER and (path in own or path.parent in unread)
        if kind and not belongs and name.parts[0] not in skipped:
            is_known = name.parts[0] in dataset.campaigns
            yield name.parts[0] if is_known else None, kind, name.as_posix()


def _kind(entry: DirEntry[str]) -> ForeignKind | None:
    """What is wrong with an entry of a data folder that no record names; None where nothing is."""
    if entry.is_symlink():
        return _LINK
    if entry.name.lower() in _OBEYED and entry.is_file():
        return _OF_GIT
    return None if entry.is_dir() or _ABOUT.fullmatch(entry.name) else _OTHER


CHECKS = (
    Check(
        "foreign-file",
        "evidence",
        ("error", "info"),
        "Does everything in the data folder belong to a campaign?",
        remedy="Delete it.",
    ),
)

"""Evidence on the site itself: raw records, logs and telemetry as published files, each with its SHA-256."""

from dataclasses import dataclass
from pathlib import Path

from sparkpub.record.store import Stored
from sparkpub.site.content import SiteOptions

FOLDER = "evidence"
INERT = frozenset(
    {".json", ".csv", ".txt", ".parquet", ".gz", ".zst", ".xz", ".zip", ".npz"}
)
"""Files that keep their names: a server gives them a type that no browser takes for a page."""


@dataclass(frozen=True)
class Published:
    """A file of a run as published. `address` is None where it is missing, `repository` its address there at the
    last commit that touched it, or None."""

    role: str
    name: str
    sha256: str
    size: int
    path: Path
    address: str | None
    repository: str | None
    truncated: bool = False


def published(stored: Stored, options: SiteOptions) -> tuple[Published, ...]:
    """The record itself, then its evidence in the order of the record."""
    files = [("record", stored.path, stored.sha256, stored.path.stat().st_size, False)]
    files += [
        (item.role, stored.evidence_path(item), item.sha256, item.bytes, item.truncated)
        for item in stored.record.evidence
    ]
    found = []
    for role, path, sha256, size, truncated in files:
        address = _address(stored, path)
        repository = None if address is None else repository_address(path, options)
        found.append(
            Published(
                role, path.name, sha256, size, path, address, repository, truncated
            )
        )
    return tuple(found)


def _address(stored: Stored, path: Path) -> str | None:
    """Where a file is published, or None for what is not there, no plain file, or outside the campaign's folder."""
    if not path.is_file():
        return None
    folder = stored.path.parent
    # Most files lie beside their record, and finding out where a path leads takes a look at each of its folders.
    is_beside = path.parent == folder and not path.is_symlink()
    if not is_beside and not path.resolve().is_relative_to(folder.resolve()):
        return None
    return f"{FOLDER}/{stored.record.campaign}/{inert(path.name)}"


def inert(name: str) -> str:
    """The name under which a browser shows or stores a file and never runs it: `run.log.txt`, `page.html.txt`."""
    return name if Path(name).suffix.lower() in INERT else f"{name}.txt"


def repository_address(path: Path, options: SiteOptions) -> str | None:
    """The file in the repository at the last commit that touched it; None without a repository or a commit."""
    if options.repo_url is None:
        return None
    try:
        name = path.resolve().relative_to(options.repository.resolve()).as_posix()
    except ValueError:
        return None
    commit = options.commits.get(name)
    return f"{options.repo_url.rstrip('/')}/blob/{commit}/{name}" if commit else None

"""Evidence on the site itself: raw records, logs and telemetry as published files, each with its SHA-256."""

from dataclasses import dataclass
from pathlib import Path

from sparkpub.record.store import Stored
from sparkpub.site.content import SiteOptions

FOLDER = "evidence"


@dataclass(frozen=True)
class Published:
    """A file of a run as published. `address` is None where the file is not there; `repository` is its address
    there at the last commit that touched it, or None."""

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
    return tuple(
        Published(
            role=role,
            name=path.name,
            sha256=sha256,
            size=size,
            path=path,
            address=_address(stored.record.campaign, path) if path.is_file() else None,
            repository=repository_address(path, options),
            truncated=truncated,
        )
        for role, path, sha256, size, truncated in files
    )


def _address(campaign: str, path: Path) -> str:
    # Servers know what .txt is; a .log they offer for download, if they serve it at all.
    name = f"{path.name}.txt" if path.suffix == ".log" else path.name
    return f"{FOLDER}/{campaign}/{name}"


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

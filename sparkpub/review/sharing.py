"""The line of one's own repository for an arena: where it is, the commit that was pushed, the campaigns that pass."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sparkpub.record import package, repository
from sparkpub.record.errors import UsageError
from sparkpub.record.repository import GitError
from sparkpub.record.settings import DEFAULT_DATA
from sparkpub.review.checks import review
from sparkpub.review.dataset import load


@dataclass(frozen=True)
class Share:
    """A line of arena.yaml, and the campaigns that it leaves out, each with the reason."""

    line: str
    left_out: dict[str, str] = field(default_factory=dict)


def share(data: Path) -> Share:
    """The line for the repository that a data folder lies in.

    Raises UsageError where others could not fetch it: no repository, no public address, or a commit that was not
    pushed.
    """
    try:
        root = repository.root(data)
    except GitError as error:
        raise UsageError(str(error)) from None
    remote = repository.told(root, "remote", "get-url", "origin") or ""
    address = package.public_address(remote).removesuffix(".git")
    if not address.startswith("http"):
        remedy = "git remote add origin https://…, and push"
        raise UsageError(
            "the repository has no public address", where=str(root), remedy=remedy
        )
    commit = repository.told(root, "rev-parse", "HEAD")
    if repository.told(root, "status", "--porcelain", "--", str(data.resolve())):
        raise UsageError(
            "not all of it is committed", where=str(data), remedy="commit it, and push"
        )
    if not repository.told(root, "branch", "--remotes", "--contains", "HEAD"):
        raise UsageError(
            "its last commit was not pushed", where=str(root), remedy="git push"
        )
    found = review(load(data))
    errors = [each for each in found.findings if each.severity == "error"]
    left_out = {each.campaign: f"{each.check}: {each.message}" for each in errors}
    passing = [
        name
        for name, campaign in found.dataset.campaigns.items()
        if campaign.runs and name not in left_out
    ]
    if not passing:
        raise UsageError(
            "no campaign passes the checks", where=str(data), remedy="sparkpub check"
        )
    owner = urlsplit(address).path.split("/")[1].lower()
    parts = [f"owner: {owner}", f"repository: {address}", f"commit: {commit}"]
    folder = data.resolve().relative_to(root.resolve())
    if folder != DEFAULT_DATA:
        parts.append(f"data: {folder}")
    parts.append(f"campaigns: [{', '.join(passing)}]")
    return Share(f"- {{{', '.join(parts)}}}", left_out)

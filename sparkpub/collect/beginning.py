"""A new repository: the campaigns that are declared before anything is measured, and its first commit."""

from pathlib import Path

from sparkpub.collect.declaring import declare
from sparkpub.collect.invoker import process_arguments
from sparkpub.plan import matrix
from sparkpub.record import package, repository
from sparkpub.record.repository import GitError
from sparkpub.record.settings import DEFAULT_DATA


def declare_matrix(folder: Path, name: str) -> None:
    """Declare the campaign of a matrix of the repository: pages can speak of it before its first run."""
    declared = matrix.read(folder / name)
    declare(folder / DEFAULT_DATA / declared.campaign, declared)


def first_commit(folder: Path, title: str) -> str:
    """Make the folder a git repository with everything in its first commit; says what was done, or what is left to do.

    A folder within another repository stays a part of that one.
    """
    try:
        around = repository.root(folder)
    except GitError:
        around = None
    if around is not None:
        return f"{folder} lies in the git repository {around}; commit it there"
    owner = process_arguments()
    try:
        repository.begin(folder, owner)
    except GitError as error:
        return f"no git repository was made: {error}"
    try:
        for arguments in (
            ("add", "--all"),
            ("commit", "--quiet", "--message", f"Start {title}"),
        ):
            done = repository.ended(folder, *arguments, process=owner)
            repository.printed(done, arguments[0])
    except GitError as error:
        return f"not committed: {error}; then: git add --all && git commit"
    return f"{folder} is written: a git repository with its first commit{_not_yet()}"


def _not_yet() -> str:
    """What is to be done before a workflow elsewhere can install this sparkpub; empty where it can."""
    if "file:" not in package.requirement():
        return ""
    return (
        ".\nIts sparkpub.txt names a place on this machine; "
        "before you push, name an address there that GitHub can reach"
    )

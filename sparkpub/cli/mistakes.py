"""What went wrong, in one line each: of errors, and of how a command was called."""

import errno
import traceback
from pathlib import Path

import click

from sparkpub.record.errors import SparkpubError, said_by_system


def install_command(extra: str) -> str:
    """What to run where packages of an extra are missing."""
    from sparkpub.record import package

    return package.install_command(extra)


_REMEDIES = {
    errno.EACCES: "check its permissions",
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EROFS: "choose a place that can be written",
    errno.EISDIR: "give a file",
    errno.ENOTDIR: "give a folder",
}
"""What to do about an error of the system, where it is not to look for the file."""


_OF_A_REPOSITORY = ("mkdocs.yml", "site_src")
"""What a command of the site looks for in the current folder."""


def _misused(error: click.UsageError) -> str | None:
    """A mistake of first contact, with the line to type instead; None for any other."""
    command = None if error.ctx is None else error.ctx.command
    if isinstance(error, click.MissingParameter) and command is not None:
        example = (command.help or "").rpartition("Example: ")[2].strip()
        name = error.param.human_readable_name if error.param else "an argument"
        return f"{command.name} needs {name}; for example: {example}"
    if isinstance(error, click.BadParameter) and error.message.endswith("is a file."):
        return f"{error.message.removesuffix('.')}; give a folder"
    if isinstance(error, click.BadParameter) and "does not exist" in error.message:
        for name in _OF_A_REPOSITORY:
            if f"'{name}'" in error.message:
                remedy = (
                    "change to your repository, or make one: sparkpub init my-spark"
                )
                return f"this folder has no {name}; {remedy}"
    return None


def explained(error: Exception) -> tuple[list[str], int]:
    """What went wrong, one line per problem, and the exit status."""
    if isinstance(error, SparkpubError):
        return error.lines(), error.exit_code
    if isinstance(error, click.Abort):
        return ["interrupted; start the command again to continue"], 1
    if isinstance(error, click.UsageError):
        said = _misused(error)
        if said is not None:
            return [said], 2
    if isinstance(error, click.ClickException):
        message = " ".join(error.format_message().split()).rstrip(".")
        return [f"{message}; see --help"], 2
    if isinstance(error, OSError):
        remedy = _REMEDIES.get(
            error.errno or 0, "check that it exists and is accessible"
        )
        return [f"{said_by_system(error)}; {remedy}"], 2
    if isinstance(error, ModuleNotFoundError) and error.name:
        what = f"this needs {error.name}, which is not installed"
        return [f"{what}; {install_command('site')}"], 2
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(f"unexpected {type(error).__name__}: {error}".split())
    return [f"{text}, {Path(place.filename).name}:{place.lineno}; please report it"], 1

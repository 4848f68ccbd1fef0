"""What went wrong, in one line each: of errors, and of commands and options that people try."""

import difflib
import errno
import re
import traceback
from pathlib import Path

import click

from sparkpub.cli.group import cli
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


_INSTEAD = {
    "--dry-run": "sparkpub plan MATRIX shows the runs, sparkpub import --preview what would come in",
    "-n": "sparkpub plan MATRIX shows the runs and starts nothing",
    "-v": "--version shows the version, and --json what a command knows in full",
    "--verbose": "--json shows what a command knows in full",
    "--force": "sparkpub collect --retry-failed runs failed runs again; finished runs are never run again",
    "--resume": "start the same command again; it continues by itself",
}
"""Options that people try, and what does what they want."""


_MEANT = {
    "bench": "sparkpub quick URL, or sparkpub collect MATRIX",
    "compare": "sparkpub stats --campaign C --against C2",
    "create": "sparkpub init DIR",
    "measure": "sparkpub quick URL, or sparkpub collect MATRIX",
    "new": "sparkpub init DIR",
    "publish": "sparkpub build, and git push",
    "push": "sparkpub collect MATRIX --push",
    "report": "sparkpub stats, or sparkpub build",
    "resume": "sparkpub collect MATRIX, which continues by itself",
    "run": "sparkpub collect MATRIX",
    "start": "sparkpub collect MATRIX",
    "validate": "sparkpub check",
}
"""Commands that people try, and those that do what they want."""
_UNKNOWN_COMMAND = re.compile(r"No such command '([^']*)'")
_OF_A_REPOSITORY = ("mkdocs.yml", "site_src")
"""What a command of the site looks for in the current folder."""


def _misused(error: click.UsageError) -> str | None:
    """A mistake of first contact, with the line to type instead; None for any other."""
    command = None if error.ctx is None else error.ctx.command
    unknown = _UNKNOWN_COMMAND.search(error.message)
    if unknown is not None:
        name = unknown[1]
        near = difflib.get_close_matches(name, cli.commands, n=1)
        hint = _MEANT.get(name) or (f"did you mean {near[0]}?" if near else None)
        return f"no command {name!r}; {hint or 'sparkpub help lists them'}"
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
    if isinstance(error, click.NoSuchOption) and error.option_name in _INSTEAD:
        return [f"no option {error.option_name}; {_INSTEAD[error.option_name]}"], 2
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

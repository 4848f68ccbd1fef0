"""The command line: every command body is a call or two; only `main` turns errors into text and exit codes."""

import os
import sys

import click

from sparkpub.cli import (  # noqa: F401 - importing them adds their commands
    arena_commands,
    import_commands,
    measure_commands,
    publish_commands,
    review_commands,
    start_commands,
)
from sparkpub.cli.group import cli
from sparkpub.cli.mistakes import explained
from sparkpub.cli.printing import coloured

__all__ = ["cli", "main"]


def main() -> None:
    """Run the command line; a problem is one line on stderr, and never a traceback.

    Exit status: 0 fine, 1 problems found or runs failed, 2 wrong usage or unreadable input.
    """
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except Exception as error:
        lines, code = explained(error)
        colour = None
        if os.environ.get("NO_COLOR"):
            colour = False
        for line in lines:
            click.echo(coloured(f"error: {line}"), err=True, color=colour)
        sys.exit(code)

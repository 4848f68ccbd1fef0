"""The command line: every command body is a call or two; only `main` turns errors into text and exit codes."""

import sys

import click

from sparkpub import __version__
from sparkpub.errors import SparkpubError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="sparkpub")
def cli() -> None:
    """Measure LLM inference, review the runs, publish what survives."""


# -- measuring: doctor, plan, collect, status --------------------------------------------------------------


# -- importing: import -------------------------------------------------------------------------------------


# -- reviewing: check, stats, claims, values, quarantine ---------------------------------------------------


# -- publishing: export, render, build ---------------------------------------------------------------------


def main() -> None:
    """Run the command line; a problem is one line on stderr, and never a traceback.

    Exit status: 0 fine, 1 problems found or runs failed, 2 wrong usage or unreadable input.
    """
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}; see --help", err=True)
        sys.exit(2)
    except click.Abort:
        click.echo("error: interrupted; start the command again to go on", err=True)
        sys.exit(1)
    except SparkpubError as error:
        for line in error.lines():
            click.echo(f"error: {line}", err=True)
        sys.exit(error.exit_code)

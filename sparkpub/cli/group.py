"""The command `sparkpub` itself."""

import os

import click

from sparkpub import __version__


@click.group(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
        "auto_envvar_prefix": "SPARKPUB",
    }
)
@click.version_option(__version__, "-V", "--version", prog_name="sparkpub")
@click.pass_context
def cli(context: click.Context) -> None:
    """Measure LLM inference, check the runs, publish the results.

    Set defaults of options by variables such as SPARKPUB_COLLECT_DATA.
    """
    if os.environ.get("NO_COLOR"):
        context.color = False

"""The command `sparkpub` itself: defaults of options, and help."""

import os
from pathlib import Path
from typing import Any

import click

from sparkpub import __version__
from sparkpub.record.errors import UsageError
from sparkpub.record.settings import tool_table


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

    Set defaults of options under [tool.sparkpub] in pyproject.toml, or by variables such as SPARKPUB_COLLECT_DATA.
    """
    if os.environ.get("NO_COLOR"):
        context.color = False
    context.default_map = _defaults(Path("pyproject.toml"))


def _defaults(project: Path) -> dict[str, dict[str, Any]]:
    """What `[tool.sparkpub]` says, by command and parameter: `data = "results"` for every command that has `--data`,
    and `[tool.sparkpub.check]` for one of them."""
    table = tool_table(project)
    found: dict[str, dict[str, Any]] = {name: {} for name in cli.commands}
    shared = {key: value for key, value in table.items() if key not in cli.commands}
    for key in shared:
        if not any(_parameter(command, key) for command in cli.commands.values()):
            remedy = "use the name of an option without its hyphens, e.g. data"
            where = f"[tool.sparkpub] of {project}"
            raise UsageError(
                f"no command has an option --{key}", where=where, remedy=remedy
            )
    for name, command in cli.commands.items():
        own = table.get(name)
        if not isinstance(own, dict):
            own = {}
        for key, value in (shared | own).items():
            parameter = _parameter(command, key)
            if parameter is not None:
                found[name][parameter] = value
            elif key in own:
                where = f"[tool.sparkpub.{name}] of {project}"
                raise UsageError(
                    f"{name} has no option --{key}",
                    where=where,
                    remedy="see its --help",
                )
    return found


def _parameter(command: click.Command, key: str) -> str | None:
    """The parameter behind an option's name; None where the command has no such option."""
    for parameter in command.params:
        if f"--{key}" in parameter.opts:
            return parameter.name
    return None


@cli.command("help")
@click.argument("name", metavar="[COMMAND]", required=False)
@click.pass_context
def help_(context: click.Context, name: str | None) -> None:
    """Show what the commands do, or how one of them is called.

    Example: sparkpub help collect
    """
    parent = context.parent
    assert parent is not None
    if name is None:
        click.echo(parent.get_help())
        return
    _, command, _ = cli.resolve_command(parent, [name])
    assert command is not None
    with click.Context(command, info_name=name, parent=parent) as asked:
        click.echo(command.get_help(asked))

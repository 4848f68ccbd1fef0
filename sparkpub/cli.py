"""The command line: every command body is a call or two; only `main` turns errors into text and exit codes."""

import difflib
import errno
import gc
import itertools
import json
import logging
import os
import re
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from sparkpub import __version__
from sparkpub.record import outside
from sparkpub.record.errors import SparkpubError, UsageError, said_by_system
from sparkpub.record.settings import tool_table
from sparkpub.record.store import DEFAULT_DATA, write_atomic

if TYPE_CHECKING:
    from sparkpub.plan.matrix import Matrix
    from sparkpub.review.checks import Review

_PATH, _FOLDER = click.Path(path_type=Path), click.Path(path_type=Path, file_okay=False)
_PRESENT = click.Path(path_type=Path, exists=True, file_okay=False)
_MATRIX = click.argument("matrix_file", metavar="MATRIX", type=_PATH)
_DATA = click.option(
    "--data",
    type=_FOLDER,
    default=DEFAULT_DATA,
    help="Folder of the campaigns.",
)
_SITE = Path("site_src")
_SOURCES = click.option(
    "--sources",
    type=_PRESENT,
    default=_SITE,
    help="Folder of pages, claims.yaml and facts.yaml.",
)
_ON = click.option(
    "--on",
    "address",
    metavar="ADDRESS",
    help="Use the machines of a Ray cluster: HOST:PORT, or auto on one of its machines.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")


def _DIR(command: Callable[..., None]) -> Callable[..., None]:  # noqa: N802 - a decorator like those above
    """The data folder as an argument, or with `--data` as everywhere else."""

    @click.argument("folder", metavar="[DIR]", type=_PATH, required=False)
    @_DATA
    @wraps(command)
    def with_folder(folder: Path | None, data: Path, **given: Any) -> None:
        command(data=folder or data, **given)

    return with_folder


def _print(
    as_json: bool,
    document: Callable[..., Any],
    lines: Callable[..., Iterable[str]],
    *about: Any,
) -> None:
    """What there is to say of something: its document as JSON, or its lines."""
    if as_json:
        click.echo(json.dumps(document(*about), indent=1))
        return
    for line in lines(*about):
        click.echo(_coloured(line))


def _next(*words: object) -> None:
    """The command that follows, as the last line for a person. A pipe, a file and a log do without."""
    if sys.stdout.isatty():
        click.echo(f"next: {' '.join(map(str, words))}")


def _on_data(data: Path) -> str:
    """The option that names a data folder, where it is not the default."""
    if data == DEFAULT_DATA:
        return ""
    return f" --data {shlex.quote(str(data))}"


def _finish(*, failed: bool) -> NoReturn:
    """End with the exit status that says whether problems were found, or something was refused."""
    sys.exit(int(failed))


def _refuse_output(output: Path, *, folder: bool = False) -> None:
    """Raise UsageError where `output` cannot become a file, or a folder. A device or pipe would be replaced by one."""
    if not output.absolute().parent.is_dir():
        raise click.UsageError(f"the folder {output.parent} does not exist")
    if not output.exists():
        return
    if output.is_dir() and not folder:
        raise click.UsageError(f"{output} is a folder; choose another name")
    if output.is_file() and folder:
        raise click.UsageError(f"{output} is a file; choose another name")
    if not output.is_dir() and not output.is_file():
        what = f"{output} is a device or a pipe and not a file"
        raise click.UsageError(f"{what}; use -o - for standard output")


_PAGE = 40
"""Expressions that `values` shows at once."""


def _few(data: Path) -> str:
    """The campaigns of a data folder, to filter by."""
    names = sorted(path.parent.name for path in data.glob("*/campaign.json"))
    return f" (campaigns: {', '.join(names)})"


_COLOURS = {"error": "red", "missing": "red", "warning": "yellow"}
"""First words of a line that stand out. A pipe, a file and NO_COLOR get them plain."""


def _coloured(line: str) -> str:
    """A line for a terminal: names and texts from outside cannot steer it."""
    line = outside.plain(line)
    first, space, rest = line.partition(" ")
    colour = _COLOURS.get(first.rstrip(":"))
    if colour is None:
        return line
    return click.style(first, fg=colour) + space + rest


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
    command = cli.get_command(parent, name)
    if command is None:
        near = difflib.get_close_matches(name, cli.commands, n=1)
        hint = f"did you mean {near[0]}" if near else "sparkpub help lists them"
        raise click.UsageError(f"no command {name!r}; {hint}")
    with click.Context(command, info_name=name, parent=parent) as asked:
        click.echo(command.get_help(asked))


# -- beginning: init ---------------------------------------------------------------------------------------


@cli.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--title", default="Benchmarks", help="Name of the site.")
@click.option(
    "--from",
    "source",
    type=_PATH,
    metavar="PATH",
    help="Start with results of other tools, as `sparkpub import PATH` does.",
)
@click.option(
    "--campaign",
    default="imported",
    help="With --from: name of the campaign.",
)
@click.option("--machine", help="With --from: kind of machine, such as dgx-spark.")
@click.option("--model", help="With --from: key of the model.")
@click.option("--environment", help="With --from: key of the environment.")
@click.option(
    "--mapping",
    type=_PATH,
    help="With --from a table: file that maps its columns (YAML).",
)
def init(
    folder: Path,
    title: str,
    source: Path | None,
    campaign: str,
    **names: Any,
) -> None:
    """Create a repository for your own measurements and their site.

    It has example matrices, a post, claims, and workflows for GitHub.

    Example: sparkpub init my-spark --title "My Spark"
    """
    from sparkpub import schemas
    from sparkpub.collect import beginning
    from sparkpub.site import starter

    there = f"next: cd {shlex.quote(str(folder))} &&"
    if source is None:
        starter.write(folder, title)
        beginning.declare_matrix(folder, starter.DEMO)
        schemas.write_into(folder)
        click.echo(beginning.first_commit(folder, title))
        click.echo(f"{there} sparkpub collect {starter.DEMO} && sparkpub serve")
        return
    from sparkpub.collect import importers
    from sparkpub.collect.importers.base import Given

    starter.refuse(folder, title)
    about = importers.about(None, source)
    say = partial(click.echo, err=True)
    given = Given(campaign, None, about, typed=_typed(), say=say, **names)
    outcome = importers.import_results(None, source, folder / DEFAULT_DATA, given)
    starter.write(folder, title, campaign=campaign)
    schemas.write_into(folder)
    _print(False, outcome.document, outcome.lines)
    click.echo(beginning.first_commit(folder, title))
    click.echo(f"{there} sparkpub serve")
    _finish(failed=bool(outcome.refused))


def _typed() -> tuple[str, ...]:
    """The command that runs, in words: its argument, and the options that were given."""
    context = click.get_current_context()
    words = ["sparkpub", str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if not isinstance(parameter, click.Option):
            words.append(str(value))
        elif parameter.is_flag:
            words += (parameter.opts if value else parameter.secondary_opts)[:1]
        else:
            words += [parameter.opts[0], str(value)]
    return tuple(words)


@cli.command("schemas")
@click.argument("folder", metavar="[DIR]", type=_FOLDER, default=Path(".schemas"))
@_JSON
def schemas_(folder: Path, as_json: bool) -> None:
    """Write JSON Schemas of the files that you edit, for your editor.

    They are of the matrix, campaign.json, claims.yaml, facts.yaml and the mapping of a table. In a YAML file, name one
    in the first line: # yaml-language-server: $schema=../.schemas/matrix.json

    Example: sparkpub schemas
    """
    from sparkpub import schemas

    written = schemas.write(folder)
    _print(
        as_json,
        lambda: {"files": list(map(str, written))},
        lambda: [f"written: {path}" for path in written],
    )


# -- measuring: quick, doctor, plan, collect, status -------------------------------------------------------


@cli.command()
@click.argument("url")
@_DATA
@click.option("--model", help="Model to measure, if the server has several.")
@click.option(
    "--tokenizer",
    help="Folder or file of the tokenizer. [default: the model's, else the server counts]",
)
@click.option(
    "--prompt",
    "input_tokens",
    type=click.IntRange(min=1),
    multiple=True,
    default=(512, 2048),
    help="Tokens of a prompt. Can be repeated.",
)
@click.option(
    "--output",
    "output_tokens",
    type=click.IntRange(min=1),
    default=128,
    help="Tokens of each answer.",
)
@click.option(
    "--at-once",
    "concurrency",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1, 4, 16),
    help="Requests sent at once. Can be repeated.",
)
@click.option(
    "--rounds", type=click.IntRange(min=1, max=100), default=3, help="Rounds."
)
@click.option(
    "--random-weights",
    is_flag=True,
    help="Measure a model whose answers make no sense. Every page says so.",
)
@click.option(
    "--open", "open_page", is_flag=True, help="Build the campaign's page and open it."
)
@_JSON
def quick(
    url: str,
    data: Path,
    model: str | None,
    tokenizer: str | None,
    random_weights: bool,
    open_page: bool,
    as_json: bool,
    **load: Any,
) -> None:
    """Measure a server that is running, without writing a matrix.

    Works with Ollama, llama-server, vLLM, SGLang, LM Studio, TGI and TensorRT-LLM. llama-benchy makes the load. The
    matrix that was run is written to the folder matrix, so that you can repeat or extend it.

    Example: sparkpub quick localhost:8000
    """
    from sparkpub.collect import quick as door
    from sparkpub.review import published

    say = partial(click.echo, err=as_json)
    found = door.look(url, model, random=random_weights)
    for line in found.lines:
        say(_coloured(line))
    wanted = door.Wanted(**load)
    document = door.declare(found, wanted, door.free_name(found, data), tokenizer)
    path, matrix = door.write_matrix(document)
    say(f"matrix {path}; if you interrupt it: {door.continuing(path, data)}")
    outcome = door.measure(matrix, data, say if as_json else None)
    records = door.measured(matrix, data)
    for line in door.summary(records):
        say(line)
    compared = None
    if records:
        compared = published.beside(matrix.campaign, data, DEFAULT_DATA)
    if compared is not None:
        say(_coloured(compared))
    for line in door.next_steps(matrix, path, data, outcome):
        say(line)
    _print(as_json, partial(door.document, matrix, path, records, outcome), list)
    if open_page and records:
        _show(data / matrix.campaign, matrix.title, say)
    sys.exit(outcome.exit_code)


def _install(extra: str) -> str:
    """What to run where packages of an extra are missing."""
    from sparkpub.record import package

    return f"pip install '{package.requirement(extra)}'"


def _show(campaign: Path, title: str, say: Callable[[str], None]) -> None:
    """Build the campaign's page and show it in the browser until Ctrl-C. Raises UsageError where the packages for that
    are missing."""
    try:
        from sparkpub.site import alone
    except ModuleNotFoundError as error:
        what = f"no page is built: {error.name} is not installed"
        remedy = _install("site")
        raise UsageError(what, remedy=remedy) from None
    with alone.page(campaign, title) as (address, end):
        say(f"page {address} (Ctrl-C ends it)")
        if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
            click.launch(address)
        try:
            end.wait()
        except KeyboardInterrupt:
            say("")


@cli.command()
@click.argument("matrix_file", metavar="[MATRIX]", required=False, type=_PATH)
@_DATA
@click.option(
    "--smoke",
    is_flag=True,
    help="Run each cell of the matrix once, without gates. Nothing is kept.",
)
@_ON
@_JSON
def doctor(
    matrix_file: Path | None,
    data: Path,
    smoke: bool,
    address: str | None,
    as_json: bool,
) -> None:
    """Show what this machine can measure and what is missing.

    With --on it shows this for each machine of a Ray cluster.

    Example: sparkpub doctor matrix/demo.yaml --smoke
    """
    from sparkpub.collect import doctor as physician

    if smoke and matrix_file is None:
        raise click.UsageError("--smoke needs a MATRIX")
    declared = _declared(matrix_file)
    if address is not None:
        if smoke:
            raise click.UsageError("--smoke runs on this machine, and --on asks others")
        _doctor_on(declared, address, as_json)
        return
    found = physician.examine(declared, data, smoke=smoke)
    _print(
        as_json, physician.document, partial(physician.lines, matrix=declared), found
    )
    failed = any(item.state == "missing" for item in found)
    if matrix_file is None:
        _next("sparkpub quick URL for a server that runs, or sparkpub doctor MATRIX")
    elif not failed:
        _next(f"sparkpub collect {matrix_file}{_on_data(data)}")
    _finish(failed=failed)


def _declared(matrix_file: Path | None) -> "Matrix | None":
    """The matrix in a file, where one is given."""
    from sparkpub.plan import matrix

    if matrix_file is None:
        return None
    return matrix.read(matrix_file)


def _doctor_on(declared: "Matrix | None", address: str, as_json: bool) -> None:
    from sparkpub.collect.fleet import doctor as physician

    found = physician.examine(declared, address)
    _print(as_json, physician.document, physician.lines, found)
    _finish(failed=physician.fails(found))


@cli.command()
@_MATRIX
@_DATA
@_JSON
def plan(matrix_file: Path, data: Path, as_json: bool) -> None:
    """Show the planned runs in order, with state and time estimate.

    Example: sparkpub plan matrix/demo.yaml
    """
    from sparkpub.collect import overview
    from sparkpub.plan import matrix

    declared = matrix.read(matrix_file)
    _print(as_json, overview.plan_document, overview.plan_lines, declared, data)
    _next(f"sparkpub collect {matrix_file}{_on_data(data)}")


@cli.command()
@_MATRIX
@_DATA
@click.option(
    "--only",
    multiple=True,
    metavar="AXIS=VALUE",
    help="Run only these cells. Can be repeated.",
)
@click.option(
    "--max-runs",
    type=click.IntRange(min=1),
    help="Stop after this many runs.",
)
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Run failed iterations again, with as many attempts as before.",
)
@click.option("--no-commit", is_flag=True, help="Do not commit the records to git.")
@click.option("--push", is_flag=True, help="Push each commit to the branch's upstream.")
@click.option(
    "--campaign",
    help="Measure under this name, to repeat a matrix by night. [default: the matrix's]",
)
@click.option(
    "--pull", is_flag=True, help="Pull the newest image of each Docker tag first."
)
@_ON
@_JSON
def collect(
    matrix_file: Path,
    data: Path,
    only: tuple[str, ...],
    address: str | None,
    as_json: bool,
    no_commit: bool,
    campaign: str | None,
    pull: bool,
    **how: Any,
) -> None:
    """Run the benchmarks of a matrix that are not done yet.

    You can interrupt it and start it again. Press Ctrl-C once to stop after the current run, twice to stop at once;
    the run is then recorded as interrupted. The exit status is 1 if a planned run has no successful record or a run
    is not committed.
    With --on the runs are measured on the machines of a Ray cluster and recorded here.

    Example: sparkpub collect matrix/demo.yaml --data local --only environment=native
    """
    from sparkpub.collect import session
    from sparkpub.collect.choice import Choice, axes
    from sparkpub.plan import matrix

    if how["push"] and no_commit:
        raise click.UsageError("--push and --no-commit cannot be combined")
    declared = matrix.read(matrix_file)
    if campaign is not None:
        declared = matrix.renamed(declared, campaign)
    choice = Choice(data, axes(only, declared), commit=not no_commit, **how)
    say = None
    if as_json:
        say = partial(click.echo, err=True)
    if pull:
        from sparkpub.collect.environments import docker

        for line in docker.pulled(declared.environments.values()):
            click.echo(_coloured(line), err=as_json)
    if address is None:
        outcome = session.collect(declared, choice, say)
    else:
        from sparkpub.collect.fleet import session as fleet

        outcome = fleet.collect(declared, choice, address, say)
    # For people the last line of the progress has said it.
    _print(as_json, partial(asdict, outcome), list)
    if outcome.left:
        _next(f"sparkpub collect {matrix_file}{_on_data(data)}, which continues")
    else:
        _next(f"sparkpub check{_on_data(data)} && sparkpub serve")
    sys.exit(outcome.exit_code)


@cli.command()
@_MATRIX
@_DATA
@click.option(
    "--watch",
    is_flag=True,
    help="Show it again every two seconds, until every run is done or Ctrl-C.",
)
@_JSON
def status(matrix_file: Path, data: Path, watch: bool, as_json: bool) -> None:
    """Show how many runs are done, failed, quarantined or still to do.

    One line per cell, and the run that is in progress.

    Example: sparkpub status matrix/demo.yaml --watch
    """
    from sparkpub.collect import overview
    from sparkpub.plan import matrix

    if watch and as_json:
        raise click.UsageError("--watch is for people, and --json for programs")
    declared = matrix.read(matrix_file)
    while watch and overview.is_under_way(declared, data):
        click.clear()
        _print(False, dict, overview.status_lines, declared, data)
        time.sleep(2)
    _print(as_json, overview.status_document, overview.status_lines, declared, data)
    _next(f"sparkpub check{_on_data(data)}")


# -- importing: import -------------------------------------------------------------------------------------


class _Format(click.ParamType[str]):
    """A format that can be imported. The importers are loaded only where one is asked for."""

    name = "format"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The format, if there is one of that name."""
        if value not in self.known():
            known = ", ".join(self.known())
            self.fail(f"unknown format {value!r}; known formats: {known}", param, ctx)
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Those that begin like it."""
        return [
            CompletionItem(name) for name in self.known() if name.startswith(incomplete)
        ]

    def known(self) -> list[str]:
        """Every format."""
        from sparkpub.collect.importers import IMPORTERS

        return sorted(IMPORTERS)


_MACHINE_HELP = "Kind of machine, such as dgx-spark, if the results do not name it."
_ENVIRONMENT_HELP = "Key of the environment. [default: container, where an image is named beside the results]"


@cli.command("import")
@click.argument("path", type=_PATH)
@click.option(
    "--campaign",
    help="Campaign to which the runs are added. [default: the name of PATH]",
)
@_DATA
@click.option("--machine", help=_MACHINE_HELP)
@click.option("--environment", help=_ENVIRONMENT_HELP)
@click.option("--model", help="Key of the model, if the results do not name it.")
@click.option(
    "--workload",
    help="Key of the workload. [default: made from the tool's options]",
)
@click.option(
    "--format",
    "kind",
    type=_Format(),
    help="Read only this format. [default: each file's own]",
)
@click.option(
    "--mapping",
    type=_PATH,
    help="File that maps the columns of a table (YAML). What `sparkpub export` wrote needs --format table instead.",
)
@click.option(
    "--matrix", "matrix_file", type=_PATH, help="Matrix that declares the campaign."
)
@click.option("--about", "about_file", type=_PATH, help="Extra metadata (YAML).")
@click.option(
    "--preview",
    is_flag=True,
    help="Show what would be imported, without writing anything.",
)
@click.option(
    "--verbose",
    is_flag=True,
    help="List every file that is skipped or refused, and with --preview every cell.",
)
@click.option(
    "--originals/--no-originals",
    default=True,
    help="Keep the imported files as evidence.",
)
@_JSON
def import_(
    path: Path,
    campaign: str | None,
    data: Path,
    kind: str | None,
    matrix_file: Path | None,
    about_file: Path | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Import other tools' results.

    PATH is a file or a folder with results of aiperf, benchmark-spark, genai-perf, guidellm, inference-perf,
    llama-bench, llama-benchy, lm-eval, sglang, trtllm-bench and vllm-bench, in any mixture: what they saved, or what
    they printed. For CSV and JSON of your own, --preview prints a mapping to begin with, and --mapping reads them.
    What lies beside the results, such as meta.json, telemetry and logs, is read too. Importing the same results again
    changes nothing. The exit status is 1 if anything was refused.

    Example: sparkpub import results/ --machine dgx-spark --campaign mine
    """
    from sparkpub.collect import importers
    from sparkpub.collect.importers.base import Given, as_key

    how = {name: more.pop(name) for name in ("originals", "preview")}
    verbose = more.pop("verbose")
    given = Given(
        campaign or as_key(path.resolve().name.partition(".")[0]),
        _declared(matrix_file),
        importers.about(about_file, path),
        typed=_typed(),
        say=partial(click.echo, err=True),
        **more,
    )
    outcome = importers.import_results(kind, path, data, given, **how)
    _print(as_json, outcome.document, partial(outcome.lines, verbose=verbose))
    if not how["preview"]:
        _next(f"sparkpub check{_on_data(data)} && sparkpub serve")
    _finish(failed=bool(outcome.refused))


# -- reviewing: check, changes, stats, claims, values, quarantine ---------------------------------------------------


@cli.command()
@_DIR
@_JSON
@click.option(
    "--github",
    is_flag=True,
    help="Print the findings as annotations for a GitHub workflow.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    help="Lowest severity for exit status 1. Findings acknowledged in campaign.json do not count.",
)
@click.option(
    "--sources",
    type=_PRESENT,
    help="Also check the pages and claims in this folder. [default: site_src, with the default DIR]",
)
def check(
    data: Path,
    as_json: bool,
    github: bool,
    fail_on: Literal["error", "warning"],
    sources: Path | None,
) -> None:
    """Run the data-quality checks over runs, claims and pages. DIR may be an archive of a campaign.

    Example: sparkpub check --fail-on warning
    """
    from sparkpub.record import archive
    from sparkpub.review.checks import annotations, reviewing

    sources = _beside(data, sources)
    try:
        with archive.as_folder(data) as folder:
            found = _reviewed(folder, sources)
            text = reviewing.as_text
            if github:
                text = annotations.of_review
            _print(
                as_json,
                lambda: json.loads(reviewing.as_json(found)),
                partial(text, found),
            )
            failed = found.unacknowledged(fail_on)
    except SparkpubError as error:
        if github:
            _print(False, list, partial(annotations.of_error, error))
        raise
    _finish(failed=bool(failed))


def _beside(data: Path, sources: Path | None) -> Path | None:
    """The folder of pages and claims: as given, else that of the study where the data are."""
    if sources is None and data == DEFAULT_DATA and _SITE.is_dir():
        return _SITE
    return sources


def _without_collection() -> None:
    """Leave cyclic garbage to the end of the command: it has next to none, and each search for it goes through the
    objects of all runs, which takes a fifth of the time of 10,000 runs."""
    gc.disable()
    click.get_current_context().call_on_close(gc.enable)


def _reviewed(data: Path, sources: Path | None) -> "Review":
    """The review of a data folder, and of the pages in `sources` where they are given."""
    from sparkpub.review.checks import review
    from sparkpub.review.dataset import load

    _without_collection()
    dataset = load(data, skip=lambda _: None)
    if sources is None:
        return review(dataset)
    from sparkpub.site.build import SiteOptions, proofread

    return proofread(dataset, SiteOptions(sources))


@cli.command()
@click.argument("base", metavar="BASE", type=_PRESENT)
@_DIR
@_JSON
@click.option(
    "--sources",
    type=_PRESENT,
    help="Judge the claims in this folder on both sides. [default: site_src, for the default DIR]",
)
@click.option(
    "--markdown", is_flag=True, help="Print Markdown, for the summary of a workflow."
)
def changes(
    base: Path, data: Path, as_json: bool, sources: Path | None, markdown: bool
) -> None:
    """Show what DIR changes against another data folder.

    BASE is that other folder. The runs, coverage, findings, cells, verdicts and claims are compared.

    Example: sparkpub changes ../main/data/comprehensive
    """
    from sparkpub.review import against_base, changes_told

    sources = _beside(data, sources)
    claims = None
    if sources is not None:
        claims = sources / "claims.yaml"
    found = against_base.changes(base, data, claims)
    told = changes_told.as_text
    if markdown:
        told = changes_told.as_markdown
    _print(as_json, found.document, partial(told, found))


@cli.command()
@_DIR
@_SOURCES
@_JSON
def claims(data: Path, sources: Path, as_json: bool) -> None:
    """Show every claim with its verdict.

    The exit status is 1 if a verdict differs from the recorded one.

    Example: sparkpub claims --json
    """
    from sparkpub.review.claims import ledger
    from sparkpub.review.dataset import load
    from sparkpub.site.build import SiteOptions, publish
    from sparkpub.site.prose import uses

    verdicts = publish(load(data), SiteOptions(sources)).verdicts
    _print(
        as_json,
        lambda: json.loads(ledger.as_json(verdicts)),
        lambda: ledger.as_text(verdicts, partial(uses, sources)).splitlines(),
    )
    _finish(failed=any(verdict.changed for verdict in verdicts))


@cli.command()
@click.argument("words", metavar="[WORD]...", nargs=-1)
@_DATA
@_SOURCES
@click.option("--all", "every", is_flag=True, help="Show all of them, not a page.")
@_JSON
def values(
    words: tuple[str, ...], data: Path, sources: Path, every: bool, as_json: bool
) -> None:
    """List the template expressions for posts, with current values.

    Shown are those that contain every WORD: a campaign, a model, a metric, a statistic.

    Example: sparkpub values mean peak_memory small
    """
    from sparkpub.review.dataset import load
    from sparkpub.site.build import SiteOptions, names, publish

    publication = publish(load(data), SiteOptions(sources))
    wanted = " ".join(words)
    most = None if every or as_json else _PAGE + 1
    found = list(itertools.islice(names(publication, wanted), most))
    if not found and wanted:
        click.echo(f"no expression contains {wanted!r}", err=True)
    _print(as_json, lambda: {"values": found}, lambda: found[: most and _PAGE])
    if most and len(found) == most:
        click.echo(
            f"and more: add a word such as a campaign or a metric, or --all{_few(data)}"
        )


@cli.command()
@click.argument("run_id")
@click.option("--reason", help="Why the run is excluded; shown publicly.")
@click.option("--undo", is_flag=True, help="Restore the run.")
@_DATA
@_JSON
def quarantine(
    run_id: str, reason: str | None, undo: bool, data: Path, as_json: bool
) -> None:
    """Exclude a run from the results (--undo restores it). Nothing is deleted.

    Example: sparkpub quarantine RUN_ID --reason "the fan was blocked"
    """
    from sparkpub.review.checks import quarantine as quarantines
    from sparkpub.review.dataset import load

    if undo is (reason is not None):
        raise click.UsageError("give either --reason or --undo")
    campaign = quarantines.quarantine(load(data), run_id, reason)
    done = "excluded from"
    if undo:
        done = "included in"
    _print(
        as_json,
        lambda: {"run": run_id, "campaign": campaign, "quarantined": not undo},
        lambda: [f"{run_id} is {done} the results of {campaign}"],
    )
    _next("sparkpub check")


@cli.command()
@_DIR
@click.option("--campaign", metavar="C", help="Only this campaign.")
@click.option(
    "--against",
    metavar="C2",
    help="Compare the campaign with this earlier one, cell by cell, and combine both.",
)
@click.option(
    "--include",
    type=click.Choice(["counted", "all"]),
    default="counted",
    help="Which runs: without excluded ones, or all as recorded.",
)
@click.option(
    "--json",
    "form",
    flag_value="json",
    help="Print JSON only.",
)
@click.option(
    "--markdown", "form", flag_value="markdown", help="Print Markdown tables."
)
@click.option("--csv", "form", flag_value="csv", help="Print one CSV table.")
def stats(
    data: Path, form: Literal["json", "markdown", "csv"] | None, **asked: Any
) -> None:
    """Show the statistics of every cell and the comparisons.

    Also shown are effects over cells and over machines, success criteria, the
    capacity of servers (the highest arrival rate that holds) and the share of
    the memory bandwidth that one user gets.

    Example: sparkpub stats --campaign demo --include all --markdown
    """
    from sparkpub.review import stats_told
    from sparkpub.review.checks import review
    from sparkpub.review.dataset import load
    from sparkpub.review.results import Results

    _without_collection()
    found = Results(review(load(data)), **asked)
    if form == "json":
        sys.stdout.buffer.writelines(stats_told.json_pieces(found))
    else:
        click.echo(stats_told.render(found, form or "text"), nl=False)


# -- publishing: export, archive, unpack, render, build ----------------------------------------------------


@cli.command()
@_DIR
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "json"]),
    default="csv",
    help="Format of the file.",
)
@click.option(
    "--table",
    type=click.Choice(["runs", "cells", "comparisons"]),
    default="runs",
    help="Which table.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    required=True,
    help="File to write, or - for standard output. A folder with --partitioned.",
)
@click.option(
    "--partitioned",
    is_flag=True,
    help="Write one Parquet file per campaign, for DuckDB, Polars or Spark.",
)
def export(data: Path, form: str, table: str, output: Path, partitioned: bool) -> None:
    """Write a table of the results: runs, cells or comparisons.

    The table of runs has a row per run and metric, excluded runs with the
    reason. Cells are described, comparisons are of environments.

    Example: sparkpub export --format parquet -o runs.parquet
    """
    from sparkpub.review.export import FORMATS, write_partitioned
    from sparkpub.review.results import load

    to_stdout = str(output) == "-"
    if partitioned and form != "parquet":
        raise click.UsageError("--partitioned writes Parquet: add --format parquet")
    if partitioned and to_stdout:
        raise click.UsageError("--partitioned needs a folder; name one with -o")
    if partitioned and output.resolve() == data.resolve():
        raise click.UsageError(f"{output} holds the records; choose another folder")
    if not to_stdout:
        _refuse_output(output, folder=partitioned)
    _without_collection()
    found = getattr(load(data), table)
    if partitioned:
        write_partitioned(found, output)
        return
    content = FORMATS[form](found)
    if to_stdout:
        click.echo(content, nl=False)
    else:
        write_atomic(output, content)


@cli.command()
@click.argument("campaign")
@click.argument("cell")
@_DATA
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; otherwise the recipe is printed.",
)
def recipe(campaign: str, cell: str, data: Path, output: Path | None) -> None:
    """Write the server of a cell as a recipe of sparkrun.

    CELL is model/environment/workload. The recipe holds image, variables, options and command of the server.

    Example: sparkpub recipe h200-vllm dense7b/container/serve-c8 -o recipe.yaml
    """
    from sparkpub.review.checks import review
    from sparkpub.review.dataset import load
    from sparkpub.review.recipe import written
    from sparkpub.review.results import Results

    if output is not None:
        _refuse_output(output)
    dataset = load(data)
    only = replace(dataset, campaigns={campaign: dataset.campaign(campaign)})
    text = written(Results(review(only)), campaign, cell)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_atomic(output, text)


@cli.command("archive")
@click.argument("campaign")
@_DATA
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True, dir_okay=False),
    required=True,
    help="File to write, - for standard output.",
)
@_JSON
def archive_(campaign: str, data: Path, output: Path, as_json: bool) -> None:
    """Write a campaign to one tar file with checksums (BagIt).

    The same data give the same bytes.

    Example: sparkpub archive demo -o demo.tar
    """
    from sparkpub.record import archive
    from sparkpub.record.store import CAMPAIGN_FILE, file_sha256
    from sparkpub.record.text import file_size

    folder = data / campaign
    if not (folder / CAMPAIGN_FILE).is_file():
        what = f"no campaign {campaign!r}"
        raise UsageError(what, where=str(data), remedy="name one of its folders")
    if str(output) == "-":
        archive.write_to(folder, sys.stdout.buffer)
        return
    _refuse_output(output)
    written = archive.write(folder, output)
    digest = file_sha256(output)
    _print(
        as_json,
        lambda: {"archive": str(output), "sha256": digest, **asdict(written)},
        lambda: [
            f"{output}: {written.runs} runs, {written.files} files, {file_size(written.size)}",
            f"sha256 {digest}",
        ],
    )


@cli.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_DATA
@_JSON
def unpack(file: Path, data: Path, as_json: bool) -> None:
    """Add the campaign of an archive to the data folder.

    The checksums are verified first.

    Example: sparkpub unpack demo.tar --data others
    """
    from sparkpub.record import archive

    name = archive.unpack(file, data)
    _print(
        as_json,
        lambda: {"campaign": name, "folder": str(data / name)},
        lambda: [
            f"{data / name} is written; check it with: sparkpub check {shlex.quote(str(data))}"
        ],
    )


@cli.command()
@click.argument("folder", metavar="[DIR]...", nargs=-1, type=_PATH)
@click.option(
    "--data",
    multiple=True,
    type=_FOLDER,
    help="Folder of the campaigns, like DIR. Can be repeated. [default: data/comprehensive]",
)
@click.option("--out", type=_FOLDER, required=True, help="Folder to write.")
@_SOURCES
@click.option(
    "--templates",
    type=click.Path(path_type=Path, exists=True),
    help="Folder of your own page templates.",
)
@click.option("--name", default="sparkpub", help="Name of the site.")
@click.option(
    "--url",
    default="",
    show_default=False,
    help="Address of the site, ending in a slash, for feed and citations.",
)
@click.option("--repo-url", help="Address of the repository, for links to evidence.")
@_JSON
def render(
    folder: tuple[Path, ...],
    data: tuple[Path, ...],
    out: Path,
    as_json: bool,
    **given: Any,
) -> None:
    """Write all pages and files to a folder, for any site generator.

    Example: sparkpub render --out docs
    """
    from sparkpub.review.dataset import load
    from sparkpub.site import disk
    from sparkpub.site.build import SiteOptions, build, refuse
    from sparkpub.site.history import last_commits

    folders = [*folder, *data] or [DEFAULT_DATA]
    commits = {}
    if given["repo_url"]:
        commits = last_commits(Path.cwd(), folders)
    options = SiteOptions(commits=commits, **given)
    dataset = load(*folders)
    refuse(dataset, options)
    tree = build(dataset, options)
    written = disk.write(tree, out)
    assets = disk.page_assets(tree)
    _print(
        as_json,
        lambda: {"files": len(tree), "written": written, "assets": list(assets)},
        lambda: [
            f"{out}: {len(tree)} files, {written} of them new or changed",
            f"every page needs {' and '.join(assets)}",
        ],
    )


_CONFIG = click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=Path("mkdocs.yml"),
    help="Configuration of MkDocs.",
)


@cli.command()
@_CONFIG
@click.option("--site-dir", type=_FOLDER, help="Folder to write.")
@click.option(
    "--data",
    multiple=True,
    type=_PRESENT,
    help="Folder of the campaigns. Can be repeated. [default: as the configuration says]",
)
@click.option(
    "--sources",
    type=_PRESENT,
    help="Folder of pages and claims. [default: as the configuration says]",
)
@_JSON
def build(
    config: Path,
    site_dir: Path | None,
    data: tuple[Path, ...],
    sources: Path | None,
    as_json: bool,
) -> None:
    """Check runs and claims, then build the site.

    An error that campaign.json does not acknowledge stops the build.

    Example: sparkpub build
    """
    from sparkpub.site.mkdocs import build_site

    built = build_site(config, site_dir, data, sources)
    _print(as_json, lambda: {"site": str(built)}, lambda: [f"built: {built}"])
    _next("sparkpub serve, or git push")


@cli.command()
@_CONFIG
@click.option("--address", default="127.0.0.1:8000", help="HOST:PORT to serve at.")
def serve(config: Path, address: str) -> None:
    """Show the site in your browser, rebuilt as files change. Ctrl-C ends it.

    It is `mkdocs serve`, for installations that put only sparkpub on the path.

    Example: sparkpub serve
    """
    from sparkpub.site.mkdocs import serve_site

    log = logging.getLogger("mkdocs")
    log.setLevel(logging.WARNING)
    log.addHandler(logging.StreamHandler())
    click.echo(f"http://{address}/ (Ctrl-C ends it)")
    serve_site(config, address)


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
        lines, code = _explained(error)
        colour = None
        if os.environ.get("NO_COLOR"):
            colour = False
        for line in lines:
            click.echo(_coloured(f"error: {line}"), err=True, color=colour)
        sys.exit(code)


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
    if isinstance(error, click.BadParameter) and "does not exist" in error.message:
        for name in _OF_A_REPOSITORY:
            if f"'{name}'" in error.message:
                remedy = (
                    "change to your repository, or make one: sparkpub init my-spark"
                )
                return f"this folder has no {name}; {remedy}"
    return None


def _explained(error: Exception) -> tuple[list[str], int]:
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
        return [f"{what}; {_install('site')}"], 2
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(f"unexpected {type(error).__name__}: {error}".split())
    return [f"{text}, {Path(place.filename).name}:{place.lineno}; please report it"], 1

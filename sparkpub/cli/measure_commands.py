"""Measuring: `quick`, `doctor`, `plan`, `collect` and `status`."""

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from sparkpub.cli.group import cli
from sparkpub.cli.mistakes import install_command
from sparkpub.cli.options import DATA, JSON, MATRIX, ON, PATH, declared_in
from sparkpub.cli.printing import (
    coloured,
    finish,
    next_step,
    on_data,
    print_as,
    show_page,
)
from sparkpub.record.errors import UsageError
from sparkpub.record.settings import DEFAULT_DATA


@cli.command("quick")
@click.argument("url")
@DATA
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
    default=(1, 10),
    help="Requests sent at once. Can be repeated.",
)
@click.option(
    "--rounds", type=click.IntRange(min=1, max=100), default=4, help="Rounds."
)
@click.option(
    "--gpus",
    type=click.IntRange(min=0),
    multiple=True,
    help="GPU of the server, by its index, on a machine with several. Can be repeated.",
)
@click.option(
    "--random-weights",
    is_flag=True,
    help="Measure a model whose answers make no sense. Every page says so.",
)
@click.option(
    "--open", "open_page", is_flag=True, help="Build the campaign's page and open it."
)
@JSON
def quick_(
    url: str,
    data: Path,
    model: str | None,
    tokenizer: str | None,
    gpus: tuple[int, ...],
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
    from sparkpub.collect import quick, session
    from sparkpub.collect.choice import Choice
    from sparkpub.review import published

    say = partial(click.echo, err=as_json)
    alone = _alone() if open_page else None
    found = quick.look(url, model, random=random_weights)
    for line in found.lines:
        say(coloured(line))
    wanted = quick.Wanted(**load)
    if left_out := quick.left_out(found, wanted):
        say(left_out)
    document = quick.declare(
        found, wanted, quick.free_name(found, data), tokenizer, gpus
    )
    path, matrix = quick.write_matrix(document)
    say(f"matrix {path}; if you interrupt it: {quick.continuing(path, data)}")
    choice = Choice(data, commit=False)
    say(quick.takes(found, matrix))
    outcome = session.collect(matrix, choice, say if as_json else None, quick.Rounds)
    records = quick.measured(matrix, data)
    compared = None
    if records:
        compared = published.beside(matrix.campaign, data, DEFAULT_DATA)
    if compared is not None:
        say(coloured(compared))
    for line in quick.next_steps(matrix, path, data, outcome):
        say(line)
    print_as(as_json, partial(quick.document, matrix, path, records, outcome), list)
    if alone is not None and records:
        with alone.page(data / matrix.campaign, matrix.title) as (address, end):
            show_page(address, end, say)
    sys.exit(outcome.exit_code)


def _alone() -> ModuleType:
    """What builds the page of one campaign. Raises UsageError where packages for that are missing."""
    try:
        from sparkpub.site import alone
    except ModuleNotFoundError as error:
        what = f"no page can be built: {error.name} is not installed"
        remedy = f"leave out --open, or {install_command('site')}"
        raise UsageError(what, remedy=remedy) from None
    return alone


@cli.command("doctor")
@click.argument("matrix_file", metavar="[MATRIX]", required=False, type=PATH)
@DATA
@click.option(
    "--smoke",
    is_flag=True,
    help="Run each cell of the matrix once, without gates. Nothing is kept.",
)
@JSON
def doctor_(
    matrix_file: Path | None,
    data: Path,
    smoke: bool,
    as_json: bool,
) -> None:
    """Show what this machine can measure and what is missing.

    Example: sparkpub doctor matrix/demo.yaml --smoke
    """
    from sparkpub.collect import doctor

    if smoke and matrix_file is None:
        raise click.UsageError("--smoke needs a MATRIX")
    declared = declared_in(matrix_file)
    found = doctor.examine(declared, data, smoke=smoke)
    print_as(as_json, doctor.document, doctor.lines, found)
    failed = any(item.state == "missing" for item in found)
    if matrix_file is None:
        next_step(
            "sparkpub quick URL for a server that runs, or sparkpub doctor MATRIX"
        )
    elif not failed:
        next_step(f"sparkpub collect {matrix_file}{on_data(data)}")
    finish(failed=failed)


@cli.command()
@MATRIX
@DATA
@JSON
def plan(matrix_file: Path, data: Path, as_json: bool) -> None:
    """Show the planned runs in order, with state and time estimate.

    Example: sparkpub plan matrix/demo.yaml
    """
    from sparkpub.collect import overview
    from sparkpub.plan import matrix

    declared = matrix.read(matrix_file)
    print_as(as_json, overview.plan_document, overview.plan_lines, declared, data)
    next_step(f"sparkpub collect {matrix_file}{on_data(data)}")


@cli.command()
@MATRIX
@DATA
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
@ON
@JSON
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
    is not committed; with --max-runs, if a run of this call failed.
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
            click.echo(coloured(line), err=as_json)
    if address is None:
        outcome = session.collect(declared, choice, say)
    else:
        from sparkpub.collect.fleet import session as fleet_session

        outcome = fleet_session.collect(declared, choice, address, say)
    # For people the last line of the progress has said it.
    print_as(as_json, partial(asdict, outcome), list)
    if outcome.left:
        next_step(f"sparkpub collect {matrix_file}{on_data(data)}, which continues")
    else:
        next_step(f"sparkpub check{on_data(data)} && sparkpub serve")
    sys.exit(outcome.exit_code)


@cli.command()
@MATRIX
@DATA
@JSON
def status(matrix_file: Path, data: Path, as_json: bool) -> None:
    """Show how many runs are done, failed, quarantined or still to do.

    One line per cell, and the run that is in progress.

    Example: sparkpub status matrix/demo.yaml
    """
    from sparkpub.collect import overview
    from sparkpub.plan import matrix

    declared = matrix.read(matrix_file)
    print_as(as_json, overview.status_document, overview.status_lines, declared, data)
    next_step(f"sparkpub check{on_data(data)}")

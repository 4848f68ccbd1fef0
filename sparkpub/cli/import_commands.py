"""Results of other tools: `import`."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from sparkpub.cli.group import cli
from sparkpub.cli.options import (
    DATA,
    JSON,
    PATH,
    declared_in,
    of_results,
    refuse_beside,
)
from sparkpub.cli.printing import finish, next_step, on_data, print_as


@cli.command("import")
@click.argument("path", type=PATH)
@of_results
@DATA
@click.option(
    "--matrix", "matrix_file", type=PATH, help="Matrix that declares the campaign."
)
@click.option(
    "--preview",
    is_flag=True,
    help="Show what would be imported, without writing anything.",
)
@click.option(
    "--verbose",
    is_flag=True,
    help="List every file that is skipped or refused.",
)
@click.option(
    "--originals/--no-originals",
    default=True,
    help="Keep the imported files as evidence.",
)
@click.option(
    "--again",
    is_flag=True,
    help="PATH is a campaign's folder of records: read their evidence again, and add what is new to them.",
)
@JSON
def import_(
    path: Path,
    again: bool,
    campaign: str | None,
    data: Path,
    matrix_file: Path | None,
    about_file: Path | None,
    as_json: bool,
    **more: Any,
) -> None:
    """Import other tools' results.

    PATH is a file or a folder with results of aiperf, benchmark-spark, genai-perf, guidellm, inference-perf,
    llama-bench, llama-benchy, llama-server, lm-eval, ollama, servebench, sglang, tool-eval-bench, trtllm-bench and
    vllm-bench, in any mixture: what they saved, or what they printed. For CSV and JSON of your own, --preview prints
    a mapping to begin with, and --mapping reads them. What lies beside the results, such as meta.json, telemetry and
    logs, is read too. Importing the same results again changes nothing. The exit status is 1 if anything was refused.

    Example: sparkpub import results/ --machine dgx-spark --campaign mine
    """
    if again:
        refuse_beside("again", "preview", "as_json")
        _read_again(path, preview=more["preview"], as_json=as_json)
        return
    from sparkpub.collect import imports
    from sparkpub.collect.imports.given import Given

    how = {name: more.pop(name) for name in ("originals", "preview")}
    verbose = more.pop("verbose")
    given = Given(
        campaign or imports.campaign_of(path),
        declared_in(matrix_file),
        imports.about(about_file, path),
        say=partial(click.echo, err=True),
        **more,
    )
    outcome = imports.import_results(path, data, given, **how)
    print_as(as_json, outcome.document, partial(outcome.lines, verbose=verbose))
    if not how["preview"]:
        next_step(f"sparkpub check{on_data(data)} && sparkpub serve")
    finish(failed=bool(outcome.refused))


def _read_again(folder: Path, *, preview: bool, as_json: bool) -> None:
    """Add to the records of a campaign what their evidence says besides; nothing else in them changes."""
    from sparkpub.record.store import read_campaign, to_json, write_atomic
    from sparkpub.record.text import counted
    from sparkpub.review.again import read_again

    read_campaign(folder)  # says what is wrong with a folder that is no campaign
    found = [*read_again(folder)]
    for stored, record in found:
        if not preview:
            write_atomic(stored.path, to_json(record))
    verb = "would gain" if preview else "gained"
    print_as(
        as_json,
        lambda: {"preview": preview, "gained": [run.run_id for _, run in found]},
        lambda: [f"{counted(len(found), 'record')} {verb} something"],
    )

"""A repository of one's own: `init` and `schemas`."""

import json
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from sparkpub.cli.group import cli
from sparkpub.cli.options import FOLDER, JSON, PATH, of_results
from sparkpub.cli.printing import finish, print_as
from sparkpub.record.settings import DEFAULT_DATA


@cli.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--title", default="Benchmarks", help="Name of the site.")
@click.option(
    "--from",
    "source",
    type=PATH,
    metavar="PATH",
    help="Start with results of other tools, as `sparkpub import PATH` does: the options below are for them.",
)
@of_results
def init(
    folder: Path,
    title: str,
    source: Path | None,
    campaign: str | None,
    about_file: Path | None,
    **names: Any,
) -> None:
    """Create a repository for your own measurements and their site.

    It has example matrices, a post, claims, and workflows for GitHub.

    Example: sparkpub init my-spark --title "My Spark"
    """
    from sparkpub import schemas
    from sparkpub.collect import beginning
    from sparkpub.record import package
    from sparkpub.site import starter

    there = f"next: cd {shlex.quote(str(folder))} &&"
    if source is None:
        starter.write(folder, title)
        beginning.declare_matrix(folder, starter.DEMO)
        schemas.write_into(folder)
        click.echo(beginning.first_commit(folder, title))
        lacking = {"site", "demo"} - {*package.installed_extras()}
        if lacking:
            command = package.install_command(",".join(sorted(lacking)))
            click.echo(f"first: {command}")
        click.echo(f"{there} sparkpub collect {starter.DEMO} && sparkpub serve")
        return
    from sparkpub.collect import imports
    from sparkpub.collect.imports.given import Given

    starter.refuse(folder)
    about = imports.about(about_file, source)
    say = partial(click.echo, err=True)
    campaign = campaign or imports.campaign_of(source)
    given = Given(campaign, None, about, say=say, **names)
    outcome = imports.import_results(source, folder / DEFAULT_DATA, given)
    starter.write(folder, title, campaign=campaign)
    schemas.write_into(folder)
    print_as(False, outcome.document, outcome.lines)
    click.echo(beginning.first_commit(folder, title))
    stopping = list(_stopping(folder / DEFAULT_DATA))
    for line in stopping or [f"{there} sparkpub serve"]:
        click.echo(line)
    finish(failed=bool(outcome.refused or stopping))


def _stopping(data: Path) -> Iterator[str]:
    """What would stop the build of imported results, and the lines of campaign.json that answer it."""
    from sparkpub.record.store import CAMPAIGN_FILE
    from sparkpub.review.checks import review
    from sparkpub.review.dataset import load

    answers: dict[str, list[dict[str, str]]] = {}
    for finding in review(load(data)).unacknowledged("error"):
        yield f"the build would stop: {finding.message}"
        answer = {"check": finding.check, "reason": "..."}
        of_campaign = answers.setdefault(finding.campaign or "", [])
        if answer not in of_campaign:
            of_campaign.append(answer)
    for campaign, acknowledged in answers.items():
        path = data / campaign / CAMPAIGN_FILE
        yield f"correct it, or say why it stands, in {path}:"
        yield f'  "acknowledged": {json.dumps(acknowledged)}'


@cli.command("schemas")
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=Path(".schemas"))
@JSON
def schemas_(folder: Path, as_json: bool) -> None:
    """Write JSON Schemas of the files that you edit, for your editor.

    They are of the matrix, campaign.json, claims.yaml, facts.yaml and the mapping of a table. In a YAML file, name one
    in the first line: # yaml-language-server: $schema=../.schemas/matrix.json

    Example: sparkpub schemas
    """
    from sparkpub import schemas

    written = schemas.write(folder)
    print_as(
        as_json,
        lambda: {"files": list(map(str, written))},
        lambda: [f"written: {path}" for path in written],
    )

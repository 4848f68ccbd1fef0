"""What leaves the repository: `export`, `recipe`, `render`, `build` and `serve`."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sparkpub.cli.group import cli
from sparkpub.cli.options import DATA, FOLDER, JSON, PATH, PRESENT, SOURCES, on_folder
from sparkpub.cli.printing import next_step, print_as, show_page
from sparkpub.cli.review_commands import without_collection
from sparkpub.record.errors import UsageError
from sparkpub.record.settings import DEFAULT_DATA


@cli.command()
@on_folder
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "json"]),
    default="csv",
    help="Format of the file.",
)
@click.option(
    "--table",
    type=click.Choice(["runs", "cells", "comparisons", "capacities"]),
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
    """Write a table of the results: runs, cells, comparisons or capacities.

    The table of runs has a row per run and metric, excluded runs with the
    reason. Cells are described, comparisons are of environments, capacities
    are the highest arrival rates that hold.

    Example: sparkpub export --format parquet -o runs.parquet
    """
    from sparkpub.record.store import write_atomic
    from sparkpub.review.results import load
    from sparkpub.review.told import FORMATS, write_partitioned

    to_stdout = str(output) == "-"
    if partitioned and form != "parquet":
        raise click.UsageError("--partitioned writes Parquet: add --format parquet")
    if partitioned and to_stdout:
        raise click.UsageError("--partitioned needs a folder; name one with -o")
    if not to_stdout and not partitioned and output.exists() and not output.is_file():
        # A device or pipe would be replaced by a file.
        raise click.UsageError(f"{output} is no file; choose another name")
    without_collection()
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
@DATA
def recipe(campaign: str, cell: str, data: Path) -> None:
    """Print the server of a cell as a recipe of sparkrun.

    CELL is model/environment/workload. The recipe holds image, variables, options and command of the server.

    Example: sparkpub recipe h200-vllm dense7b/container/serve-c8 > recipe.yaml
    """
    from sparkpub.review.checks import what_counts
    from sparkpub.review.dataset import load
    from sparkpub.review.recipe import written
    from sparkpub.review.results import Results

    dataset = load(data)
    only = replace(dataset, campaigns={campaign: dataset.campaign(campaign)})
    click.echo(written(Results(what_counts(only)), campaign, cell), nl=False)


@cli.command()
@click.argument("folder", metavar="[DIR]...", nargs=-1, type=PATH)
@click.option(
    "--data",
    multiple=True,
    type=FOLDER,
    help="Folder of the campaigns, like DIR. Can be repeated. [default: data/comprehensive]",
)
@click.option("--out", type=FOLDER, required=True, help="Folder to write.")
@SOURCES
@click.option("--name", default="sparkpub", help="Name of the site.")
@click.option(
    "--url",
    default="",
    show_default=False,
    help="Address of the site, ending in a slash, for feed and citations.",
)
@click.option("--repo-url", help="Address of the repository, for links to evidence.")
@JSON
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
    from sparkpub.site import disk, workers
    from sparkpub.site.build import build, refuse
    from sparkpub.site.content import SiteOptions
    from sparkpub.site.history import last_commits

    folders = [*folder, *data] or [DEFAULT_DATA]
    commits = {}
    if given["repo_url"]:
        commits = last_commits(Path.cwd(), folders)
    options = SiteOptions(commits=commits, **given)
    try:
        dataset = load(*folders)
        refuse(dataset, options)
        site = build(dataset, options)
    finally:
        workers.stop()
    files = disk.write(site, out)
    print_as(
        as_json,
        lambda: {"files": files, "assets": site.assets[:2]},
        lambda: [
            f"{out}: {files} files",
            f"every page needs {' and '.join(site.assets[:2])}",
        ],
    )


def _serve_alone(campaign: Path) -> None:
    """Build the page of a campaign's folder, and show it until Ctrl-C."""
    from sparkpub.record.store import read_campaign
    from sparkpub.site import alone

    title = read_campaign(campaign.resolve()).title
    with alone.page(campaign.resolve(), title) as (address, end):
        show_page(address, end, click.echo)


_CONFIG = click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=Path("mkdocs.yml"),
    help="Configuration of MkDocs.",
)


@cli.command()
@_CONFIG
@click.option("--site-dir", type=FOLDER, help="Folder to write.")
@click.option(
    "--data",
    multiple=True,
    type=PRESENT,
    help="Folder of the campaigns. Can be repeated. [default: as the configuration says]",
)
@click.option(
    "--sources",
    type=PRESENT,
    help="Folder of pages and claims. [default: as the configuration says]",
)
@JSON
def build(
    config: Path,
    site_dir: Path | None,
    data: tuple[Path, ...],
    sources: Path | None,
    as_json: bool,
) -> None:
    """Check runs and claims, then build the site.

    An error that campaign.json does not acknowledge stops the build. A site that nothing has changed since is left as
    it is.

    Example: sparkpub build
    """
    from sparkpub.site.mkdocs import build_site

    site, built = build_site(config, site_dir, data, sources)
    print_as(
        as_json,
        lambda: {"site": str(site), "built": built},
        lambda: [f"{'built' if built else 'unchanged'}: {site}"],
    )
    next_step("sparkpub serve, or git push")


@cli.command()
@click.argument("campaign", metavar="[CAMPAIGN]", required=False, type=PRESENT)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("mkdocs.yml"),
    help="Configuration of MkDocs.",
)
@click.option("--address", default="127.0.0.1:8000", help="HOST:PORT to serve at.")
def serve(campaign: Path | None, config: Path, address: str) -> None:
    """Show the site in your browser, rebuilt as files change. Ctrl-C ends it.

    It is `mkdocs serve`, for installations that put only sparkpub on the path. With the folder of a CAMPAIGN it shows
    that campaign's page, at a free port and without a site of your own.

    Example: sparkpub serve
    """
    if campaign is not None:
        _serve_alone(campaign)
        return
    if not config.is_file():
        remedy = "change to your repository, make one with sparkpub init my-spark, or name a campaign's folder"
        raise UsageError(f"this folder has no {config}", remedy=remedy)
    from sparkpub.site.mkdocs import serve_site

    log = logging.getLogger("mkdocs")
    log.setLevel(logging.WARNING)
    log.addHandler(logging.StreamHandler())
    click.echo(f"http://{address}/ (Ctrl-C ends it)")
    serve_site(config, address)

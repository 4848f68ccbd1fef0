"""What the data show: `check`, `changes`, `claims`, `values`, `quarantine` and `stats`."""

import gc
import itertools
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from sparkpub.cli.group import cli
from sparkpub.cli.mistakes import install_command
from sparkpub.cli.options import (
    DATA,
    JSON,
    PRESENT,
    SITE,
    SOURCES,
    on_campaign,
    on_folder,
)
from sparkpub.cli.printing import finish, next_step, print_as
from sparkpub.record.settings import DEFAULT_DATA

if TYPE_CHECKING:
    from sparkpub.review.checks import Review


@cli.command()
@on_campaign
@JSON
@click.option("--verbose", is_flag=True, help="Print warnings and notes too.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    help="Lowest severity for exit status 1. Findings acknowledged in campaign.json do not count.",
)
@click.option(
    "--sources",
    type=PRESENT,
    help="Also check the pages and claims in this folder. [default: site_src, with the default DIR]",
)
def check(
    data: Path,
    campaign: str | None,
    as_json: bool,
    verbose: bool,
    fail_on: Literal["error", "warning"],
    sources: Path | None,
) -> None:
    """Run the data-quality checks over runs, claims and pages. DIR may name a campaign.

    Example: sparkpub check --fail-on warning
    """
    from sparkpub.review.checks import reviewing

    pages = sources if campaign else _beside(data, sources)
    found = _reviewed(data, pages, asked=sources is not None)
    if campaign is not None:
        found = found.only(campaign)
    text = partial(reviewing.as_text, found, fail_on, verbose=verbose)
    print_as(as_json, partial(reviewing.document, found), text)
    finish(failed=bool(found.unacknowledged(fail_on)))


def _beside(data: Path, sources: Path | None) -> Path | None:
    """The folder of pages and claims: as given, else that of the study where the data are."""
    if sources is None and data == DEFAULT_DATA and SITE.is_dir():
        return SITE
    return sources


def without_collection() -> None:
    """Leave cyclic garbage to the end of the command: it has next to none, and each search for it goes through the
    objects of all runs, which takes a fifth of the time of 10,000 runs."""
    gc.disable()
    click.get_current_context().call_on_close(gc.enable)


def _reviewed(data: Path, sources: Path | None, *, asked: bool) -> "Review":
    """The review of a data folder, and of the pages in `sources`: where nobody asked for these, without them on an
    installation that only measures."""
    from sparkpub.review.checks import review
    from sparkpub.review.dataset import load

    without_collection()
    dataset = load(data, skip=lambda _: None)
    if sources is None:
        return review(dataset)
    try:
        from sparkpub.site.build import SiteOptions, proofread
    except ModuleNotFoundError as error:
        if asked:
            raise
        lacking = f"{error.name} is not installed; {install_command('site')}"
        click.echo(f"pages and claims are not checked: {lacking}", err=True)
        return review(dataset)
    return proofread(dataset, SiteOptions(sources))


@cli.command()
@click.argument("base", metavar="BASE", type=PRESENT)
@on_folder
@JSON
@click.option(
    "--sources",
    type=PRESENT,
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
    from sparkpub.review.changes import as_markdown, as_text
    from sparkpub.review.changes import changes as changes_between

    sources = _beside(data, sources)
    claims = None
    if sources is not None:
        claims = sources / "claims.yaml"
    found = changes_between(base, data, claims)
    told = as_markdown if markdown else as_text
    print_as(as_json, lambda: found, partial(told, found))


@cli.command()
@on_folder
@SOURCES
@JSON
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
    print_as(
        as_json,
        lambda: {"claims": [verdict.document() for verdict in verdicts]},
        lambda: ledger.as_text(verdicts, partial(uses, sources)).splitlines(),
    )
    finish(failed=any(verdict.changed for verdict in verdicts))


_SHOWN_AT_ONCE = 40
"""Expressions that `values` shows at once."""


def _campaigns_of(data: Path) -> str:
    """The campaigns of a data folder, to filter by."""
    names = sorted(path.parent.name for path in data.glob("*/campaign.json"))
    return f" (campaigns: {', '.join(names)})"


@cli.command()
@click.argument("words", metavar="[WORD]...", nargs=-1)
@DATA
@SOURCES
@click.option("--all", "every", is_flag=True, help="Show all of them, not a page.")
@JSON
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
    most = None if every or as_json else _SHOWN_AT_ONCE + 1
    found = list(itertools.islice(names(publication, wanted), most))
    if not found and wanted:
        click.echo(f"no expression contains {wanted!r}", err=True)
    print_as(
        as_json, lambda: {"values": found}, lambda: found[: most and _SHOWN_AT_ONCE]
    )
    if most and len(found) == most:
        click.echo(
            f"and more: add a word such as a campaign or a metric, or --all{_campaigns_of(data)}"
        )


@cli.command("quarantine")
@click.argument("run", metavar="RUN")
@click.option("--reason", help="Why the run is excluded; shown publicly.")
@click.option("--undo", is_flag=True, help="Restore the run.")
@DATA
@JSON
def quarantine_(
    run: str, reason: str | None, undo: bool, data: Path, as_json: bool
) -> None:
    """Exclude a run from the results (--undo restores it). Nothing is deleted.

    RUN is the id of the run, or one of its files.

    Example: sparkpub quarantine RUN_ID --reason "the fan was blocked"
    """
    from sparkpub.review.checks import quarantine
    from sparkpub.review.dataset import load

    if undo is (reason is not None):
        raise click.UsageError("give either --reason or --undo")
    dataset = load(data)
    run_id = quarantine.meant(dataset, run)
    campaign = quarantine.quarantine(dataset, run_id, reason)
    done = "excluded from"
    if undo:
        done = "included in"
    print_as(
        as_json,
        lambda: {"run": run_id, "campaign": campaign, "quarantined": not undo},
        lambda: [f"{run_id} is {done} the results of {campaign}"],
    )
    next_step("sparkpub check")


@cli.command()
@on_campaign
@click.option(
    "--campaign", metavar="C", help="Only this campaign, like its name in place of DIR."
)
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

    Also shown are effects over machines, success criteria, the
    capacity of servers (the highest arrival rate that holds) and the share of
    the memory bandwidth that one user gets.

    Example: sparkpub stats --campaign demo --include all --markdown
    """
    from sparkpub.review import told
    from sparkpub.review.checks import what_counts
    from sparkpub.review.dataset import load
    from sparkpub.review.results import Results

    without_collection()
    found = Results(what_counts(load(data)), **asked)
    if form == "json":
        sys.stdout.buffer.writelines(told.json_pieces(found))
    else:
        click.echo(told.render(found, form or "text"), nl=False)

"""Results of several owners beside each other: `gather` and `share`."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from sparkpub.cli.group import cli
from sparkpub.cli.options import FOLDER, JSON, PATH, on_folder
from sparkpub.cli.printing import coloured, finish, next_step, print_as
from sparkpub.record.settings import GATHERED

if TYPE_CHECKING:
    from sparkpub.collect.gather import Gathered


@cli.command()
@click.argument("arena", metavar="[ARENA]", type=PATH, default=Path("arena.yaml"))
@click.option("--out", type=FOLDER, default=GATHERED, help="Folder to fill.")
@click.option("--known", type=PATH, help="An arena.yaml whose lines are passed over.")
@click.option(
    "--newest",
    is_flag=True,
    help="Then move each line to the newest commit of its repository, and print in Markdown what that changes.",
)
@JSON
def gather(
    arena: Path, out: Path, known: Path | None, newest: bool, as_json: bool
) -> None:
    """Fetch other owners' campaigns for this site.

    ARENA is a file with a line for each owner: repository, commit, and campaigns or results to import. Each is fetched
    at its commit and laid into a folder that git ignores; the site shows what is there. A line that fails costs its
    line; the exit status is then 1.

    Example: sparkpub gather
    """
    from sparkpub.collect import gather as gathering

    if newest and (as_json or known):
        raise click.UsageError("--newest goes with neither --json nor --known")
    hub = gathering.Hub(partial(click.echo, err=True), _verify)
    found = list(gathering.gather(arena, out, hub, known))
    if newest:
        failed = [each for each in found if each.failed]
        for line in map(_told, failed):
            click.echo(coloured(line), err=True)
        with TemporaryDirectory() as fresh:
            for each in gathering.newer(arena, Path(fresh), hub):
                failed += [each] * each.failed
                for line in _changes(each, out, Path(fresh)):
                    click.echo(line)
        finish(failed=bool(failed))
    print_as(as_json, lambda: [vars(each) for each in found], lambda: map(_told, found))
    next_step("sparkpub serve")
    finish(failed=any(each.failed for each in found))


def _told(found: "Gathered") -> str:
    """What became of a line of the file, as a line."""
    begin = "error: " if found.failed else ""
    return f"{begin}{found.owner} at {found.commit[:12]}: {found.text}"


def _verify(data: Path) -> None:
    """Raise RecordError for damage in a data folder."""
    # It loads pandas, which gathering what is unchanged does not need.
    from sparkpub.review.dataset import load

    load(data)


def _changes(found: "Gathered", out: Path, fresh: Path) -> Iterator[str]:
    """What an owner's newer commit, gathered below `fresh`, changes; of a line that cannot be moved the reason."""
    from sparkpub.review.changes import as_markdown, changes, escaped

    yield from (f"# {found.owner} at {found.commit[:12]}", "")
    if found.failed:
        yield f"Not gathered: {escaped(found.text)}"
        return
    before = out / found.owner
    with TemporaryDirectory() as nothing:
        known = before if before.is_dir() else Path(nothing)
        yield from as_markdown(changes(known, fresh / found.owner))


@cli.command()
@on_folder
@click.option(
    "--hub",
    metavar="ADDRESS",
    help="Repository of the hub. [default: where this sparkpub was installed from]",
)
def share(data: Path, hub: str | None) -> None:
    """Print the line with which an arena gathers this repository.

    It names the repository, the commit that was pushed, and the campaigns in which no check finds an error.

    Example: sparkpub share
    """
    from sparkpub.record.package import public_source
    from sparkpub.review.sharing import share as share_line

    found = share_line(data)
    click.echo(found.line)
    for campaign, reason in found.left_out.items():
        click.echo(f"left out: {campaign}: {reason}", err=True)
    address = hub or public_source().removeprefix("git+")
    click.echo(
        f"propose it at {address.removesuffix('.git')}/edit/main/arena.yaml", err=True
    )

"""Other people's results that sparkpub reads: a folder becomes runs, with what lies beside them, in their places.

A tool is a mapping (`tools/*.yaml`), in the language that people describe their own tables with. What has logic, such
as tests that make a run together, is a shape (`tools/shapes`).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sparkpub.collect.imports import starter
from sparkpub.collect.imports.drafts import Draft
from sparkpub.collect.imports.folder import Folder
from sparkpub.collect.imports.given import About, Given, Left, read_about
from sparkpub.collect.imports.outcome import ImportOutcome
from sparkpub.collect.imports.placing import placed
from sparkpub.collect.imports.runs import NO_RESULT, UNMAPPED, read_files
from sparkpub.collect.imports.starter import Kind
from sparkpub.collect.imports.writing import write
from sparkpub.record.errors import ImportFormatError, UsageError
from sparkpub.record.record import Key
from sparkpub.tools.asked import as_key

_HEADING = re.compile(r"(?m)^# (\S[^\n]*?)\s*$")
_FIRST_LETTERS = 5000
_LONGEST_TITLE = 300
_NO_RESULTS = (NO_RESULT, UNMAPPED)


def import_results(
    path: Path,
    data: Path,
    given: Given,
    *,
    originals: bool = True,
    preview: bool = False,
) -> ImportOutcome:
    """Read everything under `path` into a campaign; the formats are found file by file. With `preview` nothing is
    written.

    Raises ImportFormatError where there is nothing, UsageError where the command line has to say more.
    """
    _refuse(given)
    folder, outcome = Folder(path, given), ImportOutcome(preview)
    found = read_files(folder)
    drafts = [item for item in found if isinstance(item, Draft)]
    lefts = [item for item in found if isinstance(item, Left)]
    unknown = [left.source for left in lefts if left.reason in _NO_RESULTS]
    outcome.unread = starter.kinds(folder, unknown)
    if not drafts and not any(left.refused for left in lefts):
        if not (outcome.unread and preview):
            raise _no_results(folder, lefts, outcome.unread)
        return outcome
    if given.about.path is None and given.mapping is None:
        files = sorted(draft.run.beside.file.source for draft in drafts)
        outcome.pattern = starter.builds(files)
    campaigns = [
        (of, list(placed(items, data / of.campaign)))
        for of, items in _by_campaign(found, given)
    ]
    for of, items in campaigns:
        write(items, data, of, outcome, originals=originals)
    for line in outcome.on_machines(given.machine):
        given.say(line)
    return outcome


def _no_results(
    folder: Folder, lefts: Sequence[Left], unread: Sequence[Kind]
) -> ImportFormatError:
    """That there is nothing, with the first reason that says more, or how to go on."""
    reasons = [left.reason for left in lefts if left.reason not in _NO_RESULTS]
    texts = [left.source for left in lefts if left.source.endswith(".md")]
    what, remedy = "no results of a known tool in it", "give what the tool wrote"
    if folder.given.mapping is not None:
        what, remedy = "nothing in it that the mapping reads", "correct its files:"
    elif unread:
        reasons = ["--preview prints a mapping to begin with, for --mapping"]
    elif texts:
        remedy = f"for a table in {texts[0]} save it as CSV: --preview prints a mapping"
    remedy = (*reasons, remedy)[0]
    return ImportFormatError(what, where=str(folder.path), remedy=remedy)


def about(path: Path | None, results: Path) -> About:
    """What people say of results in a file, or in the `about.yaml` of the folder that they lie in; the title is else
    that of its README."""
    beside = results / "about.yaml"
    if path is None and beside.is_file():
        path = beside
    said = About() if path is None else read_about(path)
    return said if said.title else said.model_copy(update={"title": _title(results)})


def campaign_of(results: Path) -> str:
    """The name of the campaign of a file or folder."""
    return as_key(results.resolve().name.partition(".")[0])


def _title(results: Path) -> str | None:
    """The heading of the folder's README; None where there is none."""
    readme = results / "README.md"
    if not readme.is_file():
        return None
    heading = _HEADING.search(readme.read_text(errors="replace")[:_FIRST_LETTERS])
    return heading and heading[1][:_LONGEST_TITLE]


def _by_campaign(
    found: Sequence[Draft | Left], given: Given
) -> Iterator[tuple[Given, list[Draft | Left]]]:
    """What goes into each campaign: that of the command line, and those that people declare for some tools."""
    declared = {
        tool: part.campaign for part in given.about.campaigns for tool in part.tools
    }
    items: dict[str, list[Draft | Left]] = defaultdict(list)
    for item in found:
        tool = item.run.mapping.tool if isinstance(item, Draft) else ""
        items[declared.get(tool, given.campaign)].append(item)
    for part in given.about.campaigns:
        if part.campaign in items:
            yield given.of_part(part), items.pop(part.campaign)
    if items:
        yield given, items[given.campaign]


def _refuse(given: Given) -> None:
    """Raise UsageError for a command line that contradicts itself."""
    try:
        TypeAdapter(Key).validate_python(given.campaign)
    except ValidationError:
        raise UsageError(
            f"{given.campaign!r} is no name of a campaign",
            where="--campaign",
            remedy="use a-z, 0-9, dot and hyphen",
        ) from None
    if given.matrix is not None and given.matrix.campaign != given.campaign:
        raise UsageError(
            f"the matrix declares campaign {given.matrix.campaign!r}",
            where="--campaign",
            remedy="give the same name",
        )

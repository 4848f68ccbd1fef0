"""Other people's results that sparkpub reads.

A tool is a mapping (`tools/*.yaml`), in the language that people describe their own tables with (`mapping`). What has
logic, such as tests that make a run together, is a module with a line below.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sparkpub.collect.importers import mapping_starter, placing, table
from sparkpub.collect.importers.base import (
    About,
    Draft,
    Given,
    Importer,
    Left,
    read_about,
)
from sparkpub.collect.importers.benchmark_spark import BenchmarkSpark
from sparkpub.collect.importers.formats import NO_RESULT, MakeReader, read_files
from sparkpub.collect.importers.reports import ReportReader
from sparkpub.collect.importers.writing import ImportOutcome, write
from sparkpub.plan.workloads import WORKLOADS, parser_of
from sparkpub.record import catalogue
from sparkpub.record.errors import ImportFormatError, UsageError
from sparkpub.record.record import Key
from sparkpub.tools.language import of_tools, read_mapping


def _by_mapping(path: Path, given: Given) -> Iterator[Draft | Left]:
    """What a mapping of people's own reads: a tool's reports, or tables. Raises ImportFormatError for its mistakes."""
    mapping = read_mapping(given.mapping)
    reads = mapping.declared.reads
    if reads is not None and parser_of(reads) is None:
        raise ImportFormatError(
            f"reads: {reads} is no workload",
            where=str(given.mapping),
            remedy=f"name one of {', '.join(WORKLOADS)}",
        )
    if mapping.declared.tool is None:
        yield from table.read(path, given, mapping)
    else:
        reader = partial(ReportReader, (mapping.declared,))
        yield from read_files(path, given, (reader,))


READERS: Mapping[str, MakeReader] = {
    "benchmark-spark": BenchmarkSpark,
    **{tool: partial(ReportReader, mappings) for tool, mappings in of_tools().items()},
}
"""Formats that are read file by file."""
_FOUND_BY_THEMSELVES: Sequence[MakeReader] = (
    BenchmarkSpark,
    *(
        partial(ReportReader, mappings, among_others=True)
        for mappings in of_tools().values()
    ),
)
IMPORTERS: Mapping[str, Importer] = {
    "table": _by_mapping,
    **{name: partial(read_files, make=(reader,)) for name, reader in READERS.items()},
}


def import_results(
    kind: str | None,
    path: Path,
    data: Path,
    given: Given,
    *,
    originals: bool = True,
    preview: bool = False,
) -> ImportOutcome:
    """Read everything under `path` into a campaign: of one format, or of all that are found by themselves where `kind`
    is None. With `preview` nothing is written.

    Raises ImportFormatError where there is nothing, UsageError where the command line has to say more.
    """
    if kind is None and given.mapping is not None:
        kind = "table"
    _refuse(kind, given)
    if kind is None:
        found = list(read_files(path, given, tuple(_FOUND_BY_THEMSELVES)))
    else:
        found = list(IMPORTERS[kind](path, given))
    nothing = not any(isinstance(item, Draft) or item.refused for item in found)
    said = [item.reason for item in found if isinstance(item, Left)]
    why = (reason for reason in said if not reason.startswith(NO_RESULT))
    remedy = next(why, "give what the tool wrote")
    if nothing and kind is None:
        proposal = mapping_starter.proposed(table.files_of(path))
        if proposal is not None and preview:
            return ImportOutcome(starter=tuple(proposal.lines()))
        if proposal is not None:
            remedy = "--preview prints a mapping to begin with, for --mapping"
    if nothing:
        what = "of a known tool" if kind is None else f"of {kind}"
        raise ImportFormatError(
            f"no results {what} in it",
            where=str(path),
            remedy=remedy,
        )
    campaigns = [
        (of, list(placing.placed(items, data / of.campaign, of)))
        for of, items in _by_campaign(found, given)
    ]
    outcome = ImportOutcome()
    for of, placed in campaigns:
        outcome += write(placed, data, of, originals=originals, preview=preview)
    if outcome.machineless:
        known = ", ".join(catalogue.machines())
        given.say(
            f"{outcome.machineless:,} runs do not name the machine: add --machine ({known})"
        )
    return outcome


def _by_campaign(
    found: Sequence[Draft | Left], given: Given
) -> Iterator[tuple[Given, list[Draft | Left]]]:
    """What goes into each campaign: that of the command line, and those that people declare for some tools."""
    declared = {
        tool: part.campaign for part in given.about.campaigns for tool in part.tools
    }
    items: dict[str, list[Draft | Left]] = defaultdict(list)
    for item in found:
        tool = item.tool if isinstance(item, Draft) else ""
        items[declared.get(tool, given.campaign)].append(item)
    for part in given.about.campaigns:
        if part.campaign in items:
            yield given.of_part(part), items.pop(part.campaign)
    if items:
        yield given, items[given.campaign]


def about(path: Path | None, results: Path) -> About:
    """What people say of results in a file, or in the `about.yaml` of the folder that they lie in; else nothing."""
    if path is not None:
        return read_about(path)
    beside = results / "about.yaml"
    return read_about(beside) if beside.is_file() else About()


def _refuse(kind: str | None, given: Given) -> None:
    """Raise UsageError for a command line that contradicts itself."""
    try:
        TypeAdapter(Key).validate_python(given.campaign)
    except ValidationError:
        raise UsageError(
            f"{given.campaign!r} is no name of a campaign",
            where="--campaign",
            remedy="use a-z, 0-9, dot and hyphen",
        ) from None
    if given.mapping is not None and kind != "table":
        raise UsageError(
            f"{kind} has a format of its own and needs no mapping",
            where="--mapping",
            remedy="leave it out, or import the file as a table",
        )
    if given.matrix is not None and given.matrix.campaign != given.campaign:
        raise UsageError(
            f"the matrix declares campaign {given.matrix.campaign!r}",
            where="--campaign",
            remedy="give the same name",
        )
    if given.machine is not None and given.machine not in catalogue.machines():
        raise UsageError(
            f"no machine {given.machine!r} in the catalogue",
            where="--machine",
            remedy=f"known: {', '.join(catalogue.machines())}; describe another one under machine: of --about",
        )

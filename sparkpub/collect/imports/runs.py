"""Files as runs, by the mappings of tools (`tools/*.yaml`) and of people.

A file is one object, JSON lines of several, a table, or what a shape makes of it. A tool with several forms of reports
has a mapping of each.
"""

import fnmatch
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from sparkpub.collect.imports.doubtful import not_own, sample
from sparkpub.collect.imports.drafts import Draft, Drafts, FoundRun
from sparkpub.collect.imports.folder import Beside, Folder
from sparkpub.collect.imports.given import Given, Left
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError, field_problems
from sparkpub.record.text import counted
from sparkpub.tools import forms
from sparkpub.tools.forms import FileError, ResultFile
from sparkpub.tools.language import MappingFile, ResultMapping, of_tools, read_mappings
from sparkpub.tools.shapes import SHAPES
from sparkpub.tools.shapes.base import Document, ShapedRun
from sparkpub.tools.where import at, holds

NO_RESULT = "not a result of a known tool"
_OF_OTHERS = "the same tool's results lie in other files, too"
UNMAPPED = "not a result that the mapping reads"


class ToolReader:
    """Reads the results of one tool, or by a mapping of somebody's."""

    def __init__(
        self,
        mappings: Sequence[ResultMapping],
        given: Given,
        declared: MappingFile | None = None,
    ) -> None:
        self.mappings, self._declared = mappings, declared
        named = (mapping.shape for mapping in mappings if mapping.shape is not None)
        default = None if declared is None else "table"
        self._shape = SHAPES[next(named, default)]
        self._missing = {} if declared is None else mappings[0].needed()
        """Places that a mapping of somebody's names and no file has had so far."""
        self._columns: set[str] = set()
        self._drafts = Drafts(given)

    def read(self, beside: Beside) -> list[Draft | Left]:
        """What a file holds; nothing where it has no results. Raises FileError for one that is damaged."""
        file, first, shape = beside.file, self.mappings[0], self._shape
        is_kind = shape.suffixes is None or file.suffix in shape.suffixes
        names = (file.name, file.source)
        if not is_kind or not any(fnmatch.fnmatch(name, first.files) for name in names):
            return []
        shaped = shape.runs(file)
        omitted = [run for run in shaped if run.omitted]
        runs = list(self._runs(shaped, beside))
        if not runs and any(run.is_wrong for run in omitted):
            raise FileError(omitted[0].omitted)  # nothing else shows whose file it is
        if not (runs or omitted):
            return []
        why_not = self._doubt(beside)
        twin = None if why_not else shape.twin(file)
        if twin is not None:
            if file.suffix != ".csv" and beside.folder.is_sidecar(file):
                return []  # it is read with the report
            why_not = f"the same results as {twin}"
        if why_not:
            return [Left(file.source, why_not, refused=False)]
        is_csv = shape is SHAPES["table"] and file.suffix in forms.CSV
        if is_csv and (uneven := forms.csv_table(file.text).uneven):
            what = (
                "with fewer cells than the header, or empty ones after it; none is lost"
            )
            beside.folder.given.say(f"{file.source}: {counted(uneven, 'row')} {what}")
        lefts = (Left(file.source, run.omitted, run.is_wrong) for run in omitted)
        return [*lefts, *self._drafted(runs, beside)]

    def refuse_missing(self) -> None:
        """Raise ImportFormatError for columns that a mapping of somebody's names and no file has."""
        if self._declared is not None and self._columns:
            lines = self._declared.lines
            problems = [
                f"no file has {place!r}, {lines.where(key)}; "
                + documents.suggestion(place, self._columns)
                for place, key in self._missing.items()
            ]
            documents.refuse(problems, ImportFormatError)

    def _doubt(self, beside: Beside) -> str:
        """Why the results in a file are none of its owner's, or there in other files, too; empty where they are."""
        file, machine = beside.file, beside.folder.given.machine
        if not {*Path(file.source).parts}.isdisjoint(self.mappings[0].others):
            return _OF_OTHERS
        if self._declared is not None:
            return sample(file)
        is_text = file.suffix in forms.TEXTS
        return not_own(file, machine, is_named=beside.is_named) if is_text else ""

    def _runs(self, shaped: Sequence[ShapedRun], beside: Beside) -> list[FoundRun]:
        """The runs of a file, each by the first mapping that it is of."""
        found: list[FoundRun] = []
        told = None if self._declared is None else self._declared.content
        for run in shaped:
            by_mapping = (
                [
                    FoundRun(run, row, kept, mapping, self._shape, beside, told)
                    for row, kept in _spread(mapping, run.said, beside.file)
                ]
                for mapping in self.mappings
            )
            if not run.omitted:
                found += next(filter(None, by_mapping), [])
        first = self.mappings[0]
        if self._declared is not None:
            for each in found:
                self._columns |= each.row.keys()
                for place in [*self._missing]:
                    if at(each.row, place) is not None or place in each.row:
                        del self._missing[place]
            if not (first.when or first.reads or any(map(_is_result, found))):
                return []
        return found

    def _drafted(
        self, runs: Sequence[FoundRun], beside: Beside
    ) -> Iterator[Draft | Left]:
        """What the runs of a file become."""
        beside.is_of_one_run = len(runs) == 1
        for number, run in enumerate(runs, 1):
            source = beside.file.source
            if len(runs) > 1:
                source += f", run {number}"
            try:
                yield self._drafts.draft(source, run)
            except ValidationError as error:
                yield Left(source, "; ".join(field_problems(error)))


def read_files(folder: Folder) -> list[Draft | Left]:
    """The runs of a file or folder: the readers are offered every file, and the first that takes it has it. Raises
    ImportFormatError for a mapping that cannot work."""
    given = folder.given
    if given.mapping is None:
        readers = [ToolReader(mappings, given) for mappings in of_tools().values()]
    else:
        files = read_mappings(given.mapping)
        readers = [ToolReader((file.declared,), given, file) for file in files]
    found: list[Draft | Left] = []
    mappings = [each for reader in readers for each in reader.mappings]
    reports = {each.lines: each.files for each in mappings}
    """The names of reports, by that of the file of requests beside them."""
    for file in folder.files():
        if isinstance(file, Left):
            found.append(file)
            continue
        there = folder.reports(file.path.parent)
        is_kept = fnmatch.filter(there, reports.get(file.name, ""))
        beside = Beside(file, folder)
        if not (beside.is_other or is_kept):
            found += _offered(beside, readers)
    for reader in readers:
        reader.refuse_missing()
    return sorted(found, key=lambda item: item.source)


def _offered(beside: Beside, readers: Sequence[ToolReader]) -> list[Draft | Left]:
    """What the first reader that takes a file makes of it, else why none takes it, if something has to be said."""
    file, problem = beside.file, ""
    for reader in readers:
        try:
            if found := reader.read(beside):
                return found
        except FileError as error:
            problem = problem or str(error)
    is_mapped = beside.folder.given.mapping is not None
    if problem and (is_mapped or file.suffix in forms.JSON):
        is_asked_for = beside.folder.path.is_file() or not is_mapped
        return [Left(file.source, problem, refused=is_asked_for)]
    why = UNMAPPED if is_mapped else NO_RESULT
    is_expected = beside.folder.is_sidecar(file)
    return [] if is_expected else [Left(file.source, why, refused=False)]


def _spread(
    mapping: ResultMapping, document: Document, file: ResultFile
) -> Iterator[tuple[Document, Document]]:
    """The runs of a document that the mapping is for, each with what is kept of it: its row with what lies around it,
    or the document."""
    named = mapping.named_by(file.source)
    if named is None:
        return
    if named:
        document = {**document, "path": named}
    steps = mapping.rows.split(".") if mapping.rows is not None else []
    for said, alone in forms.spread_out(document, steps):
        if not holds(said, mapping.when):
            continue
        row = at(said, mapping.rows)
        if not mapping.around:
            yield said, alone
        elif isinstance(row, dict):
            around = {name: at(said, where) for name, where in mapping.around.items()}
            yield said, {**row, **around}


def _is_result(run: FoundRun) -> bool:
    """Whether a row names a model, if its table does, and holds a figure."""
    model = run.mapping.run.model
    places = [place.at for place in run.mapping.figures.values() if place.at]
    is_of_model = model is None or at(run.row, model) is not None
    return is_of_model and any(at(run.row, place) is not None for place in places)

"""Files as runs, by the mappings of tools (`tools/*.yaml`) and of people.

A file is one object, JSON lines of several, a table, or what a shape makes of it. A tool with several forms of reports
has a mapping of each.
"""

import fnmatch
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from sparkpub.collect.imports.doubtful import not_own, sample
from sparkpub.collect.imports.drafts import Drafts, FoundRun, UnplacedError
from sparkpub.collect.imports.folder import Beside, Folder
from sparkpub.collect.imports.given import (
    Draft,
    Given,
    Left,
)
from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError, field_problems
from sparkpub.record.text import counted
from sparkpub.tools import forms
from sparkpub.tools.forms import FileError, ResultFile
from sparkpub.tools.language import (
    MappingFile,
    ResultMapping,
)
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
        *,
        declared: MappingFile | None = None,
    ) -> None:
        self.tool = mappings[0].tool
        self.found: list[Draft | Left] = []
        """What the files that were taken hold."""
        self._mappings, self._declared = mappings, declared
        named = (mapping.shape for mapping in mappings if mapping.shape is not None)
        default = None if declared is None else "table"
        self._shape = SHAPES[next(named, default)]
        self._missing = {} if declared is None else mappings[0].needed()
        """Places that a mapping of somebody's names and no file has had so far."""
        self._columns: set[str] = set()
        self._drafts = Drafts(given, declared)

    def takes(self, beside: Beside) -> bool:
        """Whether a file holds results, which are then kept. Raises FileError for one that is damaged."""
        file, suffixes = beside.file, self._shape.suffixes
        is_other = suffixes is not None and file.suffix not in suffixes
        if is_other or not self._may_be_report(file):
            return self._is_beside_report(beside)
        shaped = self._shape.runs(file)
        omitted = [
            Left(file.source, run.omitted, refused=run.is_wrong)
            for run in shaped
            if run.omitted
        ]
        runs = self._runs(shaped, file)
        if not runs and any(left.refused for left in omitted):
            raise FileError(omitted[0].reason)  # nothing else shows whose file it is
        if not (runs or omitted):
            return False
        why_not = _OF_OTHERS if self._is_other(file) else self._doubt(beside)
        if why_not:
            self.found.append(Left(file.source, why_not, refused=False))
            return True
        twin = self._shape.twin(file)
        if twin is None:
            self.found += [*omitted, *self._read(runs, beside)]
            self._say_uneven(beside)
        elif file.suffix != ".csv" and beside.folder.is_sidecar(file):
            return False  # it is read with the report
        else:
            why = f"the same results as {twin}"
            self.found.append(Left(file.source, why, refused=False))
        return True

    def _say_uneven(self, beside: Beside) -> None:
        """That rows of a CSV end early, once."""
        file = beside.file
        is_csv = self._shape is SHAPES["table"] and file.suffix in forms.CSV
        uneven = forms.csv_table(file.text).uneven if is_csv else 0
        if uneven:
            rows = counted(uneven, "row")
            beside.folder.given.say(
                f"{file.source}: {rows} with fewer cells than the header, or empty ones after it; none is lost"
            )

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

    def _may_be_report(self, file: ResultFile) -> bool:
        """Whether a file, by its name or path, is one of those that the tool's mapping speaks of."""
        names, files = (file.name, file.source), self._mappings[0].files
        return any(fnmatch.fnmatch(name, files) for name in names)

    def _is_other(self, file: ResultFile) -> bool:
        """Whether results of the tool are there in other files, too."""
        others = self._mappings[0].others
        return bool(others) and not {*Path(file.source).parts}.isdisjoint(others)

    def _is_beside_report(self, beside: Beside) -> bool:
        """Whether a file is one of the requests that a report beside it has."""
        first, file = self._mappings[0], beside.file
        there = beside.folder.reports(file.path.parent)
        return file.name == first.lines and bool(fnmatch.filter(there, first.files))

    def _doubt(self, beside: Beside) -> str:
        """Why the results in a file are none of its owner's; empty where they are."""
        file = beside.file
        if self._declared is not None:
            return sample(file)
        if file.suffix not in forms.TEXTS:
            return ""
        machine = beside.folder.given.machine
        return not_own(file, machine, is_named=beside.is_named)

    def _runs(self, shaped: Sequence[ShapedRun], file: ResultFile) -> list[FoundRun]:
        """The runs of a file, each by the first mapping that it is of."""
        found = []
        for run in shaped:
            if run.omitted:
                continue
            by_mapping = (
                [
                    FoundRun(run, said, [kept], mapping, self._shape)
                    for said, kept in _spread(mapping, run.said, file)
                ]
                for mapping in self._mappings
            )
            found += next(filter(None, by_mapping), [])
        first = self._mappings[0]
        if self._declared is not None:
            self._look_for_columns(found)
            if not (first.when or first.reads or any(map(_is_result, found))):
                return []
        return found

    def _look_for_columns(self, runs: Sequence[FoundRun]) -> None:
        for run in runs:
            self._columns |= run.said.keys()
            for place in [*self._missing]:
                if place in run.said or at(run.said, place) is not None:
                    del self._missing[place]

    def _read(self, runs: Sequence[FoundRun], beside: Beside) -> Iterator[Draft | Left]:
        """What the runs of a file become."""
        beside.is_of_one_run = len(runs) == 1
        for number, run in enumerate(runs, 1):
            source = beside.file.source
            if len(runs) > 1:
                source += f", run {number}"
            try:
                yield self._drafts.draft(source, run, beside)
            except UnplacedError as problem:
                yield Left(source, str(problem))
            except ValidationError as error:
                yield Left(source, "; ".join(field_problems(error)))


def read_files(folder: Folder, readers: Sequence[ToolReader]) -> list[Draft | Left]:
    """The runs of a file or folder: the readers are offered every file, and the first that takes it has it."""
    others: list[Draft | Left] = []
    for file in folder.files():
        if isinstance(file, Left):
            others.append(file)
            continue
        beside = Beside(file, folder)
        if not beside.is_other:
            others += _offered(beside, readers)
    for reader in readers:
        reader.refuse_missing()
    found = [*others, *(item for reader in readers for item in reader.found)]
    return sorted(found, key=lambda item: item.source)


def _offered(beside: Beside, readers: Sequence[ToolReader]) -> Iterator[Left]:
    """Offer a file to the readers: why none takes it, if something has to be said."""
    file, problem = beside.file, ""
    for reader in readers:
        try:
            if reader.takes(beside):
                return
        except FileError as error:
            problem = problem or str(error)
    is_mapped = beside.folder.given.mapping is not None
    if problem and (is_mapped or file.suffix in forms.JSON):
        is_asked_for = beside.folder.path.is_file() or not is_mapped
        yield Left(file.source, problem, refused=is_asked_for)
    elif not beside.folder.is_sidecar(file):
        yield Left(file.source, UNMAPPED if is_mapped else NO_RESULT, refused=False)


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
    is_of_model = model is None or at(run.said, model) is not None
    return is_of_model and any(at(run.said, place) is not None for place in places)

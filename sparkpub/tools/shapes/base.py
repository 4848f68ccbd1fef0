"""What a shape is: how files of a tool become runs, where a run is not a JSON object of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sparkpub.tools import forms
from sparkpub.tools.forms import ResultFile

Document = dict[str, Any]
FigureSource = Literal["published", "report", "log"]
"""A table, or what a tool reports or prints."""


@dataclass(frozen=True)
class ShapedRun:
    """One run of a file."""

    said: Document
    """Where a mapping looks for values."""
    files: Mapping[str, bytes] | None = None
    """Its evidence by role, empty where that is its file alone; None: the document is kept as its report."""
    omitted: str = ""
    """Why it shall be none."""
    is_wrong: bool = False
    """Whether that can be corrected."""
    missing: str = ""
    """What it lacks to count as a measurement."""
    family: str | None = None
    """What the model is, where nothing names it."""
    is_mixed: bool = False
    """Whether its file is of several models, so that one name cannot fit them all."""


def of_json(file: ResultFile) -> list[ShapedRun]:
    """The JSON objects of a file. Raises FileError."""
    return [ShapedRun(document) for document in forms.of_json(file.content)]


def of_table(file: ResultFile) -> list[ShapedRun]:
    """The rows of a table in a file, and those of a CSV that have to be corrected. Raises FileError."""
    rows = [ShapedRun(row) for row in forms.of_table(file)]
    longer = forms.csv_table(file.text).longer if file.suffix in forms.CSV else ()
    return rows + [
        ShapedRun({}, omitted=forms.more_cells(line), is_wrong=True) for line in longer
    ]


@dataclass(frozen=True)
class ReportShape:
    """In which files a tool's reports are, and how they become runs."""

    runs: Callable[[ResultFile], list[ShapedRun]] = of_json
    """The runs of a file; none where it is of another kind. Raises FileError for one that is damaged."""
    suffixes: tuple[str, ...] | None = forms.JSON
    """Of the files that may be reports; None: of any."""
    twin: Callable[[ResultFile], str | None] = lambda _: None
    """The name of a file beside it that says the same with more, and is read in its place."""
    beside: Callable[[bytes, bytes], Document] = lambda *_: {}
    """What the text that people wrote, and the log, beside a report say of it, by the names of the report."""
    source: FigureSource = "report"
    """What its figures are."""

"""Files as objects: JSON, JSON lines, CSV, YAML, and the tables and commands in a text. Nothing here knows a tool."""

import csv
import io
import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from sparkpub.record import documents
from sparkpub.record.errors import ImportFormatError
from sparkpub.record.outside import MOST_BYTES, UnfitError
from sparkpub.record.record import Moment
from sparkpub.tools import reading

JSON, CSV = (".json", ".jsonl"), (".csv", ".tsv")
TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".txt")
TEXTS = (".log", ".stdout", ".out", ".txt", ".md")
"""What a program printed, as people keep it: the one that says most first."""
LONGEST_WORD = 500
"""Characters of an argument that are kept."""
_RULE = re.compile(r"\s*-{2,}(?:\s+-{2,})+\s*")
_PLACEHOLDER = re.compile(r"\{\w+\}")


class FileError(Exception):
    """A file of the right kind that cannot be used; the text says why."""


@dataclass(frozen=True)
class ResultFile:
    """A file as read. `source` is its path within the folder that was given, for lines to people."""

    path: Path
    source: str
    content: bytes

    @property
    def name(self) -> str:
        """Its name without `.gz`."""
        return self.path.name.removesuffix(".gz")

    @property
    def suffix(self) -> str:
        """Its suffix without `.gz`: `.json`."""
        return Path(self.name).suffix.lower()

    @property
    def stem(self) -> str:
        """Its name without any suffix."""
        return Path(self.name).stem

    @cached_property
    def text(self) -> str:
        """As every parser reads it."""
        return reading.text(self.content)

    @property
    def modified(self) -> Moment:
        """When it was last modified, for results that hold no date."""
        return Moment.at(datetime.fromtimestamp(self.path.stat().st_mtime, UTC))


MARKS = (".", "-", "_")
"""What parts the words of a file's name."""


def begins(name: str, begin: str) -> bool:
    """Whether a name begins with another one, and a mark: `c16.json` does not begin with `c1`."""
    return name.startswith(begin) and name.removeprefix(begin)[:1] in MARKS


@lru_cache(maxsize=2)
def of_json(content: bytes) -> list[dict[str, Any]]:
    """The JSON objects of a file: one, those of an array, or one on each line; other values are passed over. Raises
    FileError where it is none of these, or was cut short. Every reader asks it of the same file; nobody changes it."""
    try:
        document = reading.strict_json(content)
        listed = document if isinstance(document, list) else [document]
    except ValueError as problem:
        listed = _of_lines(content, problem)
    return reading.objects(listed)


def beside(content: bytes) -> list[dict[str, Any]]:
    """The JSON objects of a file that says more of a report; none of one that is damaged."""
    with suppress(FileError):
        return of_json(content)
    return []


def _of_lines(content: bytes, why_no_document: ValueError) -> list[Any]:
    """The JSON values of lines. Raises FileError where a line has none, with the bound that something is out of."""
    lines = [line for line in reading.text(content).splitlines() if line.strip()]
    try:
        values = [reading.strict_json(line.encode()) for line in lines]
    except UnfitError as problem:
        raise FileError(str(problem)) from None
    except ValueError:
        values = []
    if values:
        return values
    is_unfit = isinstance(why_no_document, UnfitError)
    raise FileError(str(why_no_document) if is_unfit else "not JSON, or cut short")


def spread_out(item: Any, path: list[str]) -> Iterator[tuple[dict[str, Any], Any]]:
    """The rows at a path below an object: each as the object is with that row in the place of all, without the lists
    around it, and as it is with no other row."""
    if not path:
        if isinstance(item, dict):
            yield item, item
        else:  # a figure alone, or none
            yield {} if item is None else {"value": item}, item
        return
    if not isinstance(item, dict):
        return
    step, *rest = path
    if step == "*":
        for name, value in item.items():
            for row, alone in spread_out(value, rest):
                yield {"key": name, **row}, {name: alone}
        return
    around = {
        name: value
        for name, value in item.items()
        if name != step and not isinstance(value, list)
    }
    below = item.get(step)
    for part in below if isinstance(below, list) else [below]:
        for row, alone in spread_out(part, rest):
            kept = [alone] if isinstance(below, list) else alone
            yield {**around, step: row}, {**item, step: kept}


class CsvTable(NamedTuple):
    """A CSV as read."""

    rows: list[dict[str, Any]]
    """By the names of the header; an empty cell, and one that is missing at the end, is None."""
    longer: list[int]
    """The lines of rows with more cells than the header, which are not among the rows."""
    uneven: int
    """How many rows have fewer cells than the header, or empty ones after its last."""


@lru_cache(maxsize=2)
def csv_table(text: str) -> CsvTable:
    """Every reader asks it of the same file; nobody changes it. Raises FileError where it is none, or the header names
    two columns alike."""
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    before = csv.field_size_limit(MOST_BYTES)  # one for the whole process
    rows, longer, uneven = [], [], 0
    try:
        names = [name.strip() for name in next(reader, ())]
        if len(set(names)) < len(names):
            raise FileError("two columns of the header have the same name; rename one")
        for line in reader:
            cells = [cell.strip() or None for cell in line]
            if any(cells[len(names) :]):
                longer.append(reader.line_num)
            elif any(cells):
                uneven += len(cells) != len(names)
                rows.append(dict(itertools.zip_longest(names, cells[: len(names)])))
    except csv.Error as error:
        raise FileError(f"not CSV, or cut short: {error}") from None
    finally:
        csv.field_size_limit(before)
    return CsvTable(rows, longer, uneven)


def more_cells(line: int) -> str:
    """What is wrong with such a line of a CSV."""
    return f"line {line} has more cells than the header; correct it"


def of_csv(text: str) -> list[dict[str, Any]]:
    """The rows of a CSV that a program wrote. Raises FileError, for a row with more cells than the header, too."""
    table = csv_table(text)
    if table.longer:
        raise FileError(more_cells(table.longer[0]))
    return table.rows


def of_columns(text: str) -> list[dict[str, str]]:
    """The rows of the table in a text whose header is underlined with dashes, a word to a cell."""
    lines = text.splitlines()
    rules = [number for number, line in enumerate(lines) if _RULE.fullmatch(line)]
    if not rules or not rules[0]:
        return []
    header = lines[rules[0] - 1].split()
    rows = [line.split() for line in lines[rules[0] + 1 :]]
    return [
        dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header)
    ]


def of_table(file: ResultFile) -> list[dict[str, Any]]:
    """The rows of a table in a file, or the objects of a JSON document. Raises FileError."""
    if file.suffix == ".txt":
        return of_columns(file.text)
    if file.suffix in CSV:
        return csv_table(file.text).rows
    return of_json(file.content)


def of_yaml(file: ResultFile) -> Any:
    """The document. Raises FileError."""
    try:
        document, _ = documents.parse(file.text, file.source, ImportFormatError)
    except ImportFormatError as error:
        raise FileError(error.lines()[0]) from None
    return document


def tables(text: str, column: str) -> Iterator[list[dict[str, str]]]:
    """The rows of each Markdown table of a text that has a column of that name. Raises FileError where a row has other
    columns than its header."""
    blocks = itertools.groupby(text.splitlines(), lambda line: line.startswith("|"))
    for is_table, lines in blocks:
        rows = [line.strip("|").split("|") for line in lines if is_table]
        if rows and column in [cell.strip() for cell in rows[0]]:
            yield _named([row for row in rows if set("".join(row)) - set(":- ")])


def _named(rows: list[list[str]]) -> list[dict[str, str]]:
    header, *others = [[cell.strip() for cell in row] for row in rows]
    if any(len(row) != len(header) for row in others):
        raise FileError("cut short: a row has other columns than the header")
    return [dict(zip(header, row, strict=True)) for row in others]


def typed(cell: str) -> str | int | float:
    """A number as such, where a cell is one."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def words(command: Any) -> list[str]:
    """A command line, or a list of its words, word by word; the quotes within JSON stay where they are."""
    if isinstance(command, list):
        return [str(word) for word in command]
    return [word for word in str(command or "").split() if word != "\\"]


def arguments(command: list[str]) -> Iterator[tuple[str, str]]:
    """`--max-num-seqs 256 --trust-remote-code` as names and values; a flag alone is `true`, and one whose value was to
    be filled in says nothing."""
    flags: list[list[str]] = []
    for word in command:
        if word.startswith("--"):
            flags.append([*word[2:].split("=", 1)])
        elif flags:
            flags[-1].append(word)
    for name, *values in flags:
        value = " ".join(values) or "true"
        if not _PLACEHOLDER.fullmatch(value):
            yield name.replace("-", "_"), value.strip("'\"")[:LONGEST_WORD]
